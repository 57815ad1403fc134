# find_package(elizainference CONFIG) gives elizainference::elizainference, the shared library with its header.
# Everything is found from here, so the SDK may lie anywhere.
get_filename_component(_elizainference_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET elizainference::elizainference)
  add_library(elizainference::elizainference SHARED IMPORTED)
  set_target_properties(elizainference::elizainference PROPERTIES
    IMPORTED_LOCATION "${_elizainference_prefix}/lib/libelizainference.so"
    IMPORTED_SONAME libelizainference.so
    INTERFACE_INCLUDE_DIRECTORIES "${_elizainference_prefix}/include")
endif()

unset(_elizainference_prefix)

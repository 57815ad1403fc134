"""libelizainference, as it is shipped and as tests take it apart."""

load("@rules_cc//cc:defs.bzl", "cc_shared_library")

# libmlx, and what that needs in turn, is found beside the library. By DT_RPATH and not DT_RUNPATH: a loader uses the
# former also for the needs of libraries that it found with it.
_FIND_BESIDE_ELF = ["-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN"]
_FIND_BESIDE_MACOS = ["-Wl,-rpath,@loader_path"]

def elizainference_shared_library(name, deps, exports = "//native/ffi:exports", **kwargs):
    """A shared library that exports `exports` and hides everything else, ggml and llama.cpp included.

    Its file is called libelizainference.so (.dylib), whatever the target's name: clients look for that, and an SONAME
    has to be true.

    Args:
      name: name of the target.
      deps: the cc_library targets that hold the exported functions.
      exports: an export_lists target.
      **kwargs: other attributes of a cc_shared_library.
    """
    version_script = Label(exports + ".lds")
    symbol_list = Label(exports + ".symbols")
    cc_shared_library(
        name = name,
        additional_linker_inputs = select({
            Label("//platforms:macos"): [symbol_list],
            "//conditions:default": [version_script],
        }),
        shared_lib_name = select({
            Label("//platforms:macos"): "libelizainference.dylib",
            "//conditions:default": "libelizainference.so",
        }),
        user_link_flags = select({
            Label("//platforms:macos"): [
                "-Wl,-exported_symbols_list,$(location %s)" % symbol_list,
                "-Wl,-install_name,@rpath/libelizainference.dylib",
            ],
            "//conditions:default": [
                "-Wl,--version-script=$(location %s)" % version_script,
                "-Wl,-soname,libelizainference.so",
                # A symbol that nobody defines is an error here, not in the client's dlopen.
                "-Wl,-z,defs",
                "-Wl,-z,relro,-z,now",
            ],
        }) + select({
            Label("//platforms:mlx_enabled_macos"): _FIND_BESIDE_MACOS,
            Label("//platforms:mlx_enabled"): _FIND_BESIDE_ELF,
            "//conditions:default": [],
        }),
        deps = deps,
        **kwargs
    )

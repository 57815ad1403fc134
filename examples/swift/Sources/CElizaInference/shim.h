// A module map names a file beside it; the library's header is on the include path.
#include <eliza-inference-ffi.h>

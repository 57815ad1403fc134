// First on the include path of CUDA sources, before the C library's <math.h>, which it wraps.
//
// CUDA's headers declare functions that glibc 2.41 and newer declare too (cospi, sinpi, rsqrt), without noexcept unless
// they see such a glibc. The hermetic toolchain's headers are of a new glibc that claims to be the old one it links
// with, so the two declarations disagree. Here glibc's extensions stay out of <math.h>; CUDA brings its own.
#pragma once

#include <features.h>

#pragma push_macro("__USE_GNU")
#pragma push_macro("__GLIBC_USE_ISOC23")
#undef __USE_GNU
#undef __GLIBC_USE_ISOC23
#define __GLIBC_USE_ISOC23 0
#include_next <math.h>
#pragma pop_macro("__GLIBC_USE_ISOC23")
#pragma pop_macro("__USE_GNU")

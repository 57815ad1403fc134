// Included before all of an upstream test: what it has to say goes to stdout. The library's own log says nothing by
// itself.
#pragma once

#include <cstdio>

#include "common/log.h"

#undef LOG
#define LOG(...) std::printf(__VA_ARGS__)

// Environment variables as the library reads them: one that is empty is one that is not set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace eliza {

// Its value; "" where it is not set.
std::string variable(const char* name);

// Its value as a number; nullopt where it is not set. Throws Error(ELIZA_ERR_INVALID_ARG) where that is none from
// `least` to `most`: the value, and `wanted`, "a number of seconds from 1 to 3600".
std::optional<int64_t> number_variable(const char* name, int64_t least, int64_t most, const std::string& wanted);

}  // namespace eliza

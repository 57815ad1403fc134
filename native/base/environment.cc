#include "native/base/environment.h"

#include <cerrno>
#include <cstdlib>

#include "native/base/error.h"

namespace eliza {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<int64_t> number_variable(const char* name, int64_t least, int64_t most, const std::string& wanted) {
  const std::string value = variable(name);
  if (value.empty()) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(value.c_str(), &end, 10);
  if (errno != 0 || end == value.c_str() || *end != '\0' || number < least || number > most) {
    throw Error(ELIZA_ERR_INVALID_ARG,
                std::string(name) + " is '" + value + "': set it to " + wanted + ", or unset it");
  }
  return number;
}

}  // namespace eliza

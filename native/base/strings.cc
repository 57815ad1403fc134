#include "native/base/strings.h"

namespace eliza {

std::string squashed(std::string_view name) {
  std::string result;
  for (char c : name) {
    c = ascii_lower(c);
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) result += c;
  }
  return result;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string result;
  for (const std::string& part : parts) result += (result.empty() ? "" : ", ") + part;
  return result;
}

}  // namespace eliza

#include "native/text/quote.h"

#include "nlohmann/json.hpp"

namespace eliza {

std::string in_quotes(std::string_view bytes) {
  constexpr size_t kMaxBytes = 1024;  // a path is shown whole
  const std::string shown = std::string(bytes.substr(0, kMaxBytes)) + (bytes.size() > kMaxBytes ? "..." : "");
  return nlohmann::json(shown).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string list_in_quotes(const std::vector<std::string>& names) {
  constexpr size_t kMaxNames = 8;
  std::string list;
  for (size_t i = 0; i < names.size() && i < kMaxNames; ++i) list += (i == 0 ? "" : ", ") + in_quotes(names[i]);
  if (names.size() > kMaxNames) list += " and " + std::to_string(names.size() - kMaxNames) + " more";
  return list;
}

}  // namespace eliza

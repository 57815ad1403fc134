// Objects of the runtime that are to be deleted, and its reason for the failure before.
#pragma once

#include <memory>
#include <string>

#include "native/backends/litert_lm/litert-lm-api.h"
#include "native/base/strings.h"

namespace eliza::litert_lm {

// With its delete function: Owned<X>(api.x_create(), api.x_delete).
template <typename T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

// Why the last call on this thread failed.
inline std::string last_error(const Api& api) {
  const char* message = api.get_last_error_message();
  return is_set(message) ? message : "it gives no reason";
}

}  // namespace eliza::litert_lm

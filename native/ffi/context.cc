#include "native/ffi/context.h"

#include "native/base/error.h"
#include "native/ffi/backend-choice.h"
#include "native/seam/llm-backend.h"

namespace eliza {

std::shared_ptr<const Tokenizer> Context::tokenizer() {
  std::lock_guard<std::mutex> lock(tokenizer_mutex_);
  if (tokenizer_ == nullptr) tokenizer_ = open_tokenizer(bundle_dir_);
  return tokenizer_;
}

}  // namespace eliza

const char* llm_backend_context_bundle_dir(const EliInferenceContext* context) {
  try {
    return eliza::ContextPin(context)->bundle_dir().c_str();
  } catch (...) {
    return nullptr;
  }
}

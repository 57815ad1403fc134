// From a bundle to what answers for it: the backend that the selector picks, or the in-tree llama.cpp.
#pragma once

#include <memory>
#include <string>

#include "native/ffi/context.h"
#include "native/include/eliza-inference-ffi.h"
#include "native/seam/llm-backend.h"
#include "native/text/tokenizer.h"

namespace eliza {

struct OpenedSession {
  std::string backend;
  std::unique_ptr<LlmBackendSession> session;
};

// A session on the backend chosen for this bundle and config. Throws Error, which says why no backend could serve where
// none could. `handle` is that of `context`, for the backends that ask for it.
OpenedSession open_session(EliInferenceContext* handle, Context& context, const eliza_llm_stream_config_t& config);

// The bundle's tokenizer: that of its GGUF where it holds one, whoever will answer its streams (a bundle has one
// vocabulary, and this is the cheap way to it), else that of the backend chosen for it. Throws Error.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& bundle_dir);

// Throws Error(ELIZA_ERR_NOT_IMPLEMENTED) where the bundle is one for another backend than llama.cpp, the only one that
// has `what`: "embeddings".
void require_llama_cpp(const std::string& bundle_dir, const char* what);

}  // namespace eliza

// What a backend answers that does not override the optional part of its interface.
#include "native/seam/llm-backend.h"

#include "native/base/error.h"

int LlmBackendSession::save_slot(const char*, char** out_error) {
  return eliza::set_error(out_error, ELIZA_ERR_INVALID_ARG,
                          "This stream's backend cannot save its KV cache to a file. Prefill the prompt again instead, "
                          "or select llama.cpp with ELIZA_LLM_BACKEND=llama.cpp.");
}

int LlmBackendSession::restore_slot(const char*, char** out_error) {
  return eliza::set_error(out_error, ELIZA_ERR_INVALID_ARG,
                          "This stream's backend cannot restore its KV cache from a file. Prefill the prompt instead, "
                          "or select llama.cpp with ELIZA_LLM_BACKEND=llama.cpp.");
}

int LlmBackendSession::set_seed(uint64_t) { return ELIZA_ERR_NOT_IMPLEMENTED; }

bool LlmBackendFactory::can_honour(const eliza_llm_stream_config_t*, std::string*) const { return true; }

std::string LlmBackendFactory::explain(const char*) const { return {}; }

std::string LlmBackendFactory::remark(const char*) const { return {}; }

std::shared_ptr<const eliza::Tokenizer> LlmBackendFactory::tokenizer(const char*) const { return nullptr; }

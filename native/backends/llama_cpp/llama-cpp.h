// The in-tree path: llama.cpp behind LlmBackendSession. The implicit fallback of the selector, so it has no factory.
#pragma once

#include <memory>
#include <string>

#include "native/seam/llm-backend.h"
#include "native/text/tokenizer.h"

namespace eliza::llama_cpp {

// Throws Error(ELIZA_ERR_NOT_IMPLEMENTED) where this CPU lacks an instruction set the build needs; names it, and which
// build to take instead.
void check_host_cpu();

// A session on the bundle's text/*.gguf. The weights are shared by all sessions (and tokenizers) of the process with the
// same file and GPU layers, and freed with the last of them. Throws Error.
std::unique_ptr<LlmBackendSession> open(const std::string& bundle_dir, const eliza_llm_stream_config_t& config);

// The tokenizer of the bundle's text/*.gguf: the vocabulary of a loaded model, else one loaded without weights.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& bundle_dir);

// The GBNF grammar that accepts what a JSON schema (as JSON text) does. Needs no model. Throws
// Error(ELIZA_ERR_INVALID_ARG) where the text is no JSON, or holds what a grammar cannot express.
std::string json_schema_to_gbnf(const std::string& schema);

}  // namespace eliza::llama_cpp

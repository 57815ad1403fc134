// Entry points: the model's vocabulary and metadata, and what else is asked of a context and not of a stream.
#include <algorithm>
#include <climits>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "native/backends/llama_cpp/llama-cpp.h"
#include "native/base/error.h"
#include "native/ffi/arguments.h"
#include "native/ffi/backend-choice.h"
#include "native/ffi/context.h"
#include "native/ffi/entry.h"
#include "native/ffi/features.h"
#include "native/ffi/output.h"
#include "native/include/eliza-inference-ffi.h"
#include "native/text/utf8-gate.h"

int eliza_inference_tokenize_supported(void) { return eliza::kTokenizeSupported; }

int eliza_inference_tokenize(EliInferenceContext* context, const char* text, size_t text_len, int add_special,
                             int parse_special, int** out_tokens, size_t* out_count, char** out_error) {
  eliza::clear(out_tokens);
  eliza::clear(out_count);
  return eliza::enter(out_error, [&] {
    eliza::ContextPin pin(context);
    eliza::require(out_tokens, "out_tokens");
    eliza::require(out_count, "out_count");
    eliza::require_array(text, text_len, "text", "text_len");
    const std::vector<int32_t> tokens =
        pin->tokenizer()->tokenize(std::string_view(text, text_len), add_special != 0, parse_special != 0);
    *out_tokens = eliza::new_copy(tokens.data(), tokens.size());
    *out_count = tokens.size();
    return ELIZA_OK;
  });
}

int eliza_inference_detokenize(EliInferenceContext* context, const int* tokens, size_t num_tokens, int remove_special,
                               int unparse_special, char* text_out, size_t text_cap, char** out_error) {
  if (text_cap > 0) eliza::clear(text_out);
  return eliza::enter(out_error, [&] {
    eliza::ContextPin pin(context);
    eliza::require(text_out, "text_out");
    eliza::require_array(tokens, num_tokens, "tokens", "num_tokens");
    const std::string text = eliza::to_valid_utf8(
        pin->tokenizer()->detokenize(tokens, num_tokens, remove_special != 0, unparse_special != 0));
    if (text.size() >= text_cap) {
      throw eliza::Error(ELIZA_ERR_INVALID_ARG, "the text needs a text_cap of " + std::to_string(text.size() + 1) +
                                                    " bytes with its NUL, and text_cap is " + std::to_string(text_cap));
    }
    if (text.size() > INT_MAX) throw eliza::Error(ELIZA_ERR_INVALID_ARG, "the text is longer than an int can count");
    std::memcpy(text_out, text.c_str(), text.size() + 1);
    return static_cast<int>(text.size());
  });
}

int eliza_inference_model_meta(EliInferenceContext* context, const char* key, char** out_value, char** out_error) {
  eliza::clear(out_value);
  return eliza::enter(out_error, [&] {
    eliza::ContextPin pin(context);
    eliza::require(out_value, "out_value");
    eliza::require_text(key, "key");
    const std::optional<std::string> value = pin->tokenizer()->metadata(key);
    if (!value) {
      throw eliza::Error(ELIZA_ERR_INVALID_ARG, "the model of \"" + pin->bundle_dir() + "\" has no metadata under \"" +
                                                    std::string(key) + "\"");
    }
    *out_value = eliza::new_text(eliza::to_valid_utf8(*value));
    return ELIZA_OK;
  });
}

int eliza_inference_json_schema_to_gbnf(const char* schema, char** out_gbnf, char** out_error) {
  eliza::clear(out_gbnf);
  return eliza::enter(out_error, [&] {
    eliza::require(out_gbnf, "out_gbnf");
    eliza::require_text(schema, "schema");
    *out_gbnf = eliza::new_text(eliza::llama_cpp::json_schema_to_gbnf(schema));
    return ELIZA_OK;
  });
}

int eliza_inference_embed_supported(void) { return eliza::kEmbedSupported; }

int eliza_inference_embed(EliInferenceContext* context, const char* text, size_t text_len, int pooling, float* out,
                          size_t out_cap, int* out_dim, char** out_error) {
  eliza::clear(out_dim);
  return eliza::enter(out_error, [&] {
    eliza::ContextPin pin(context);
    eliza::require_array(text, text_len, "text", "text_len");
    eliza::require(out_dim, "out_dim");
    eliza::require_array(out, out_cap, "out", "out_cap");
    eliza::require_llama_cpp(pin->bundle_dir(), "embeddings");
    const std::vector<float> embedding = pin->llama_cpp().embed(std::string_view(text, text_len), pooling);
    *out_dim = static_cast<int>(embedding.size());
    if (embedding.size() > out_cap) {
      throw eliza::Error(ELIZA_ERR_INVALID_ARG, "out_cap is " + std::to_string(out_cap) + ", and an embedding has " +
                                                    std::to_string(embedding.size()) + " floats");
    }
    std::copy(embedding.begin(), embedding.end(), out);
    return ELIZA_OK;
  });
}

int eliza_inference_llm_eot_supported(void) { return eliza::kEotSupported; }

int eliza_inference_llm_eot_score(EliInferenceContext* context, const int32_t* token_ids, size_t num_tokens,
                                  int32_t target_token, float* out_probability, int32_t* out_top_token,
                                  float* out_top_probability, char** out_error) {
  eliza::clear(out_probability);
  eliza::clear(out_top_token);
  eliza::clear(out_top_probability);
  return eliza::enter(out_error, [&] {
    eliza::ContextPin pin(context);
    eliza::require_array(token_ids, num_tokens, "token_ids", "num_tokens");
    eliza::require(out_probability, "out_probability");
    eliza::require(out_top_token, "out_top_token");
    eliza::require(out_top_probability, "out_top_probability");
    eliza::require_llama_cpp(pin->bundle_dir(), "end-of-turn scores");
    const eliza::llama_cpp::TurnScore score = pin->llama_cpp().eot_score(token_ids, num_tokens, target_token);
    *out_probability = score.target_probability;
    *out_top_token = score.top_token;
    *out_top_probability = score.top_probability;
    return ELIZA_OK;
  });
}

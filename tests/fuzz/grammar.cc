// GBNF grammars and JSON schemas of strangers: a grammar, or an error in words.
#include <cstdlib>
#include <string>

#include "native/include/eliza-inference-ffi.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using eliza::fuzz::require;
  static EliInferenceContext* const context = [] {
    const char* const bundle = std::getenv("FUZZ_BUNDLE");
    require(bundle != nullptr, "FUZZ_BUNDLE names a bundle");
    return eliza_inference_create(bundle, nullptr);
  }();
  eliza::fuzz::Input input(data, size);
  const bool schema = input.below(2) == 0;
  std::string text(input.rest());
  char* error = nullptr;
  if (schema) {
    char* gbnf = nullptr;
    const int status = eliza_inference_json_schema_to_gbnf(text.c_str(), &gbnf, &error);
    require((status == ELIZA_OK) == (gbnf != nullptr), "a grammar for a success");
    if (status != ELIZA_OK) eliza::fuzz::require_message(error);
    eliza_inference_free_string(error);
    error = nullptr;
    if (gbnf == nullptr) return 0;
    text = gbnf;
    eliza_inference_free_string(gbnf);
  }
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  config.max_tokens = 2;
  config.context_size = 64;
  config.gbnf_grammar = text.c_str();
  EliLlmStream* const stream = eliza_inference_llm_stream_open(context, &config, &error);
  if (stream == nullptr) eliza::fuzz::require_message(error);
  eliza_inference_free_string(error);
  error = nullptr;
  const int32_t prompt[] = {1, 300};
  if (stream != nullptr && eliza_inference_llm_stream_prefill(stream, prompt, 2, nullptr) == ELIZA_OK) {
    int32_t tokens[2];
    size_t count = 0;
    char piece[64];
    const int status =
        eliza_inference_llm_stream_next(stream, tokens, 2, &count, piece, sizeof piece, nullptr, nullptr, &error);
    if (status < 0) eliza::fuzz::require_message(error);
    eliza_inference_free_string(error);
  }
  eliza_inference_llm_stream_close(stream);
  return 0;
}

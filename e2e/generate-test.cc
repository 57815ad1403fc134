// Generates with a tiny model through the library that the other module builds.
//
//   generate-test BUNDLE/text/MODEL.gguf
#include <eliza-inference-ffi.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

[[noreturn]] void fail(const char* what, const char* error) {
  std::fprintf(stderr, "%s: %s\n", what, error != nullptr ? error : "no reason given");
  std::exit(1);
}

std::string generate(const std::string& bundle, const std::string& prompt, int max_tokens) {
  char* error = nullptr;
  EliInferenceContext* const context = eliza_inference_create(bundle.c_str(), &error);
  if (context == nullptr) fail("create", error);
  int* tokens = nullptr;
  size_t size = 0;
  if (eliza_inference_tokenize(context, prompt.data(), prompt.size(), 1, 0, &tokens, &size, &error) != ELIZA_OK) {
    fail("tokenize", error);
  }
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  config.max_tokens = max_tokens;
  EliLlmStream* const stream = eliza_inference_llm_stream_open(context, &config, &error);
  if (stream == nullptr) fail("open", error);
  int status = eliza_inference_llm_stream_prefill(stream, tokens, size, &error);
  std::string result;
  while (status == 0) {
    int32_t step[32];
    char text[1024];
    size_t count = 0;
    status = eliza_inference_llm_stream_next(stream, step, 32, &count, text, sizeof text, nullptr, nullptr, &error);
    if (status >= 0) result += text;
  }
  if (status < 0) fail("next", error);
  eliza_inference_llm_stream_close(stream);
  eliza_inference_free_tokens(tokens);
  eliza_inference_destroy(context);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("arguments", "BUNDLE/text/MODEL.gguf");
  const std::filesystem::path model = argv[1];
  const std::string text = generate(model.parent_path().parent_path(), "abc", 12);
  if (text != "defghijklmno") fail("the model said", text.c_str());
}

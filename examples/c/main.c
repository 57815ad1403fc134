/* Streams what a model says after a prompt: generate BUNDLE PROMPT. Built by CMakeLists.txt or the Makefile beside it,
 * from the SDK alone. */
#include <eliza-inference-ffi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s BUNDLE PROMPT\n", argv[0]);
    return 2;
  }
  char* error = NULL;
  int* prompt = NULL;
  size_t prompt_size = 0;
  EliInferenceContext* context = eliza_inference_create(argv[1], &error);
  if (context) {
    /* The last 1: "<|im_start|>" and the like become special tokens, as a chat template wants it that you filled in.
     * What a user typed takes 0, or it could end its turn and forge another. */
    eliza_inference_tokenize(context, argv[2], strlen(argv[2]), 1, 1, &prompt, &prompt_size, &error);
  }

  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  config.max_tokens = 64;
  EliLlmStream* stream = prompt ? eliza_inference_llm_stream_open(context, &config, &error) : NULL;
  int status = stream ? eliza_inference_llm_stream_prefill(stream, prompt, prompt_size, &error) : ELIZA_ERR_FFI_FAULT;
  while (status == 0) {
    int32_t tokens[32];
    char text[1024];
    size_t count;
    status = eliza_inference_llm_stream_next(stream, tokens, 32, &count, text, sizeof text, NULL, NULL, &error);
    if (status >= 0) {
      fputs(text, stdout);
      fflush(stdout);
    }
  }
  if (status < 0) fprintf(stderr, "%s\n", error ? error : "no reason given");

  eliza_inference_free_string(error);
  eliza_inference_llm_stream_close(stream);
  eliza_inference_free_tokens(prompt);
  eliza_inference_destroy(context);
  return status < 0;
}

/* A client in C99 that knows the header and the library file, and nothing else of this repository.
 *
 *   client BUNDLE PROMPT MAX_TOKENS
 *
 * writes what the model says after PROMPT to stdout: once as a desktop client pulls it, then cancelled, reset and
 * pulled again, then after keeping only the prompt. The three must be the same. Exit code 0 when all went well. */
#include <eliza-inference-ffi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS_CAP 32
#define TEXT_CAP 1024

static void fail(const char* what, int status, char* error) {
  fprintf(stderr, "%s: %d: %s\n", what, status, error != NULL ? error : "(no message)");
  eliza_inference_free_string(error);
  exit(1);
}

/* Pulls a whole generation into `text`. */
static void pull(EliLlmStream* stream, int max_tokens, char* text, size_t capacity) {
  char* error = NULL;
  size_t length = 0;
  int total = 0;
  int status = 0;
  while (status == 0) {
    int32_t tokens[TOKENS_CAP];
    size_t count = 0;
    char chunk[TEXT_CAP];
    memset(chunk, 'x', sizeof chunk);
    status =
        eliza_inference_llm_stream_next(stream, tokens, TOKENS_CAP, &count, chunk, sizeof chunk, NULL, NULL, &error);
    if (status < 0) fail("next", status, error);
    if (count > TOKENS_CAP) fail("next returned more tokens than asked for", (int)count, NULL);
    if (memchr(chunk, '\0', sizeof chunk) == NULL) fail("next returned text without an end", status, NULL);
    if (length + strlen(chunk) >= capacity) fail("more text than expected", (int)length, NULL);
    strcpy(text + length, chunk);
    length += strlen(chunk);
    total += (int)count;
  }
  if (total != max_tokens) fail("tokens returned", total, NULL);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s BUNDLE PROMPT MAX_TOKENS\n", argv[0]);
    return 2;
  }
  char* error = NULL;
  int status;

  /* What a client does before anything else. */
  char expected_version[16];
  sprintf(expected_version, "%d", ELIZA_INFERENCE_ABI_VERSION);
  if (strcmp(eliza_inference_abi_version(), expected_version) != 0) {
    fail("header and library disagree", atoi(eliza_inference_abi_version()), NULL);
  }
  if (!eliza_inference_llm_stream_supported() || !eliza_inference_tokenize_supported()) {
    fail("no text in this library", 0, NULL);
  }

  /* Errors are strings that it frees, or does not ask for. */
  if (eliza_inference_create("/no/such/bundle", &error) != NULL || error == NULL) fail("create", 0, error);
  if (strstr(error, "/no/such/bundle") == NULL) fail("the error does not name the bundle", 0, error);
  eliza_inference_free_string(error);
  status = eliza_inference_last_status();
  if (status != ELIZA_ERR_BUNDLE_INVALID) fail("the status of create", status, NULL);
  if (eliza_inference_create("/no/such/bundle", NULL) != NULL) fail("create", 0, NULL);

  EliInferenceContext* context = eliza_inference_create(argv[1], &error);
  if (context == NULL) fail("create", 0, error);

  int* prompt = NULL;
  size_t prompt_size = 0;
  status = eliza_inference_tokenize(context, argv[2], strlen(argv[2]), 1, 0, &prompt, &prompt_size, &error);
  if (status != ELIZA_OK) fail("tokenize", status, error);

  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  config.max_tokens = atoi(argv[3]);
  EliLlmStream* stream = eliza_inference_llm_stream_open(context, &config, &error);
  if (stream == NULL) fail("open", 0, error);

  static char first[65536], second[65536], third[65536];

  status = eliza_inference_llm_stream_prefill(stream, prompt, prompt_size, &error);
  if (status != 0) fail("prefill", status, error);
  pull(stream, config.max_tokens, first, sizeof first);

  /* A cancel sticks until a reset. */
  int32_t token;
  size_t count;
  char text[TEXT_CAP];
  if (eliza_inference_llm_stream_cancel(stream) != ELIZA_OK) fail("cancel", 0, NULL);
  status = eliza_inference_llm_stream_next(stream, &token, 1, &count, text, sizeof text, NULL, NULL, &error);
  if (status != ELIZA_ERR_CANCELLED || error == NULL) fail("next after cancel", status, error);
  eliza_inference_free_string(error);
  status = eliza_inference_llm_stream_reset(stream);
  if (status != ELIZA_OK) fail("reset", status, NULL);

  status = eliza_inference_llm_stream_prefill(stream, prompt, prompt_size, &error);
  if (status != 0) fail("prefill after reset", status, error);
  pull(stream, config.max_tokens, second, sizeof second);

  /* The prompt again, all but its last token still in the cache. */
  const int32_t kept = eliza_inference_llm_stream_reset_keep(stream, (int32_t)prompt_size - 1);
  if (kept != 0 && kept != (int32_t)prompt_size - 1) fail("reset_keep", kept, NULL);
  status = eliza_inference_llm_stream_prefill(stream, prompt + kept, prompt_size - (size_t)kept, &error);
  if (status != 0) fail("prefill after reset_keep", status, error);
  pull(stream, config.max_tokens, third, sizeof third);

  if (strcmp(first, second) != 0) fail("another text after reset", 0, NULL);
  if (strcmp(first, third) != 0) fail("another text after reset_keep", 0, NULL);
  fputs(first, stdout);

  eliza_inference_llm_stream_close(stream);
  eliza_inference_llm_stream_close(NULL);
  eliza_inference_free_tokens(prompt);
  eliza_inference_free_tokens(NULL);
  eliza_inference_free_string(NULL);
  eliza_inference_destroy(context);
  eliza_inference_destroy(NULL);
  return 0;
}

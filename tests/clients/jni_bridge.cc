// A client shaped like an Android JNI bridge, with a stand-in for the virtual machine.
//
//   jni_bridge BUNDLE PROMPT MAX_TOKENS
//
// What such bridges do differently from the other clients, and what the library owes them for it:
//   - they free() the errors themselves, so these come from the process's malloc;
//   - they hand every chunk to NewStringUTF, which ends the app where the bytes are not characters, so no call may
//     ever return a part of one;
//   - they keep handles in a jlong, and pull with room for 256 tokens and 4,096 bytes.
#include <eliza-inference-ffi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using jlong = int64_t;
using jint = int32_t;

// -- The virtual machine ------------------------------------------------------------------------------------------

// The check that Android's runtime makes on the argument of NewStringUTF (art's CheckUtfBytes): lead bytes are followed
// by their continuation bytes, and nothing else. What fails it there is an abort.
bool is_valid_for_new_string_utf(const char* text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text);
  while (*bytes != 0) {
    const unsigned char lead = *bytes++;
    int continuation;
    if (lead < 0x80) {
      continuation = 0;
    } else if (lead >= 0xC0 && lead < 0xE0) {
      continuation = 1;
    } else if (lead >= 0xE0 && lead < 0xF0) {
      continuation = 2;
    } else if (lead >= 0xF0 && lead < 0xF8) {
      continuation = 3;
    } else {
      return false;
    }
    for (; continuation > 0; --continuation) {
      if ((*bytes++ & 0xC0) != 0x80) return false;
    }
  }
  return true;
}

class Env {
 public:
  std::string NewStringUTF(const char* text) {
    if (!is_valid_for_new_string_utf(text)) {
      std::fprintf(stderr, "JNI DETECTED ERROR IN APPLICATION: input is not valid Modified UTF-8\n");
      std::abort();
    }
    return text;
  }

  [[noreturn]] void ThrowNew(const char* what, char* error) {
    std::string message = what;
    if (error != nullptr) message += ": " + NewStringUTF(error);
    std::free(error);
    throw std::runtime_error(message);
  }
};

// -- The bridge ---------------------------------------------------------------------------------------------------

template <typename Handle>
Handle* from_jlong(jlong handle) {
  return reinterpret_cast<Handle*>(static_cast<intptr_t>(handle));
}

jlong to_jlong(const void* handle) { return static_cast<jlong>(reinterpret_cast<intptr_t>(handle)); }

jlong nativeCreate(Env* env, const std::string& bundle) {
  char* error = nullptr;
  EliInferenceContext* context = eliza_inference_create(bundle.c_str(), &error);
  if (context == nullptr) env->ThrowNew("create", error);
  return to_jlong(context);
}

std::vector<jint> nativeTokenize(Env* env, jlong context, const std::string& text) {
  char* error = nullptr;
  int* tokens = nullptr;
  size_t count = 0;
  if (eliza_inference_tokenize(from_jlong<EliInferenceContext>(context), text.data(), text.size(), 1, 1, &tokens,
                               &count, &error) != ELIZA_OK) {
    env->ThrowNew("tokenize", error);
  }
  std::vector<jint> result(tokens, tokens + count);
  std::free(tokens);
  return result;
}

jlong nativeOpenStream(Env* env, jlong context, jint max_tokens) {
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  config.max_tokens = max_tokens;
  char* error = nullptr;
  EliLlmStream* stream = eliza_inference_llm_stream_open(from_jlong<EliInferenceContext>(context), &config, &error);
  if (stream == nullptr) env->ThrowNew("open", error);
  return to_jlong(stream);
}

void nativePrefill(Env* env, jlong stream, const std::vector<jint>& tokens) {
  char* error = nullptr;
  if (eliza_inference_llm_stream_prefill(from_jlong<EliLlmStream>(stream), tokens.data(), tokens.size(), &error) != 0) {
    env->ThrowNew("prefill", error);
  }
}

// The next chunk; *done is set with the last.
std::string nativeNext(Env* env, jlong stream, bool* done) {
  int32_t tokens[256];
  char text[4096];
  size_t count = 0;
  int32_t drafted = 0;
  int32_t accepted = 0;
  char* error = nullptr;
  const int status = eliza_inference_llm_stream_next(from_jlong<EliLlmStream>(stream), tokens, 256, &count, text,
                                                     sizeof text, &drafted, &accepted, &error);
  if (status < 0) env->ThrowNew("next", error);
  *done = status == 1;
  return env->NewStringUTF(text);
}

// What the app sees of a failing call.
template <typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s BUNDLE PROMPT MAX_TOKENS\n", argv[0]);
    return 2;
  }
  Env env;
  if (message_of([&] { nativeCreate(&env, "/no/such/bundle"); }).find("/no/such/bundle") == std::string::npos) {
    std::fprintf(stderr, "the error does not name the bundle\n");
    return 1;
  }
  // A path in no encoding at all, which the message must not carry into NewStringUTF.
  if (message_of([&] { nativeCreate(&env, "/no/\xff\xc3/bundle"); }).empty()) {
    std::fprintf(stderr, "no error for a path that is not UTF-8\n");
    return 1;
  }

  try {
    const jlong context = nativeCreate(&env, argv[1]);
    const jlong stream = nativeOpenStream(&env, context, std::atoi(argv[3]));
    nativePrefill(&env, stream, nativeTokenize(&env, context, argv[2]));
    for (bool done = false; !done;) std::fputs(nativeNext(&env, stream, &done).c_str(), stdout);

    // The app closes in whatever order its finalizers run.
    eliza_inference_destroy(from_jlong<EliInferenceContext>(context));
    eliza_inference_llm_stream_close(from_jlong<EliLlmStream>(stream));
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

// The JNI bridge of the AAR: the native methods of ai.eliza.inference.Native, on the public C ABI and nothing else.
//
// It lies in dist/ and not below native/, because it is a client like any other, which comes in the package with the
// library. It holds no state but the classes of what it returns and throws, as long as it is loaded: handles are the
// library's own ids, in which a closed one is an error and not a crash, and every other reference to an object of
// Java's is local to its call. It needs no C++ runtime.
#include <eliza-inference-ffi.h>
#include <jni.h>

#include <cstring>

namespace {

// The most that one step may give. A piece of text that does not fit is an error that names its size.
constexpr size_t kTokens = 256;
constexpr size_t kTextBytes = 16384;

template <typename Handle>
Handle* from_java(jlong handle) {
  return reinterpret_cast<Handle*>(static_cast<intptr_t>(handle));
}

EliInferenceContext* engine_of(jlong handle) { return from_java<EliInferenceContext>(handle); }
EliLlmStream* stream_of(jlong handle) { return from_java<EliLlmStream>(handle); }
jlong to_java(const void* handle) { return static_cast<jlong>(reinterpret_cast<intptr_t>(handle)); }

// The elements of an array of Java's, to be read during a call; of null there are none. Where memory for them ran out,
// `failed`, and Java's exception is pending.
template <typename Array, typename Element>
class Elements {
 public:
  Elements(JNIEnv* env, Array array) : env_(env), array_(array) {
    if (array == nullptr) return;
    size_ = static_cast<size_t>(env->GetArrayLength(array));
    data_ = get(env, array);
  }
  ~Elements() {
    if (data_ != nullptr) release(env_, array_, data_);
  }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;

  bool failed() const { return array_ != nullptr && data_ == nullptr; }
  size_t size() const { return size_; }
  const Element* data() const { return data_; }
  const char* c_str() const { return reinterpret_cast<const char*>(data_); }

 private:
  static jbyte* get(JNIEnv* env, jbyteArray array) { return env->GetByteArrayElements(array, nullptr); }
  static jint* get(JNIEnv* env, jintArray array) { return env->GetIntArrayElements(array, nullptr); }
  // JNI_ABORT: nothing was written.
  static void release(JNIEnv* env, jbyteArray array, jbyte* data) {
    env->ReleaseByteArrayElements(array, data, JNI_ABORT);
  }
  static void release(JNIEnv* env, jintArray array, jint* data) {
    env->ReleaseIntArrayElements(array, data, JNI_ABORT);
  }

  JNIEnv* env_;
  Array array_;
  size_t size_ = 0;
  Element* data_ = nullptr;
};

using Bytes = Elements<jbyteArray, jbyte>;
using Ints = Elements<jintArray, jint>;

// What follows returns null where memory ran out: an exception of Java's is pending then.

jbyteArray new_bytes(JNIEnv* env, const char* text) {
  const auto size = static_cast<jsize>(std::strlen(text));
  jbyteArray bytes = env->NewByteArray(size);
  if (bytes != nullptr) env->SetByteArrayRegion(bytes, 0, size, reinterpret_cast<const jbyte*>(text));
  return bytes;
}

jintArray new_ints(JNIEnv* env, const int32_t* values, size_t count) {
  const auto size = static_cast<jsize>(count);
  jintArray ints = env->NewIntArray(size);
  if (ints != nullptr) env->SetIntArrayRegion(ints, 0, size, values);
  return ints;
}

// A class of Java's whose objects are made here, at each step of a generation or where memory has run out: not the time
// to look for it.
class JavaClass {
 public:
  // False where there is no such class or constructor: an exception of Java's is pending then.
  bool find(JNIEnv* env, const char* name, const char* signature) {
    jclass type = env->FindClass(name);
    if (type == nullptr) return false;
    constructor_ = env->GetMethodID(type, "<init>", signature);
    if (constructor_ == nullptr) return false;
    type_ = static_cast<jclass>(env->NewGlobalRef(type));  // without it, the class and its methods might be unloaded
    env->DeleteLocalRef(type);
    return type_ != nullptr;
  }

  void forget(JNIEnv* env) { env->DeleteGlobalRef(type_); }

  template <typename... Arguments>
  jobject make(JNIEnv* env, Arguments... arguments) const {
    return env->NewObject(type_, constructor_, arguments...);
  }

 private:
  jclass type_ = nullptr;
  jmethodID constructor_ = nullptr;
};

// Set once, before any method of Native can be called.
JavaClass chunk_class;
JavaClass exception_class;

// Throws what a call of the library failed with, and frees its message; `otherwise` is that of a call that has none.
void fail(JNIEnv* env, int status, char* error, const char* otherwise = "") {
  jbyteArray message = new_bytes(env, error != nullptr ? error : otherwise);
  eliza_inference_free_string(error);
  if (message == nullptr) return;
  jobject exception = exception_class.make(env, static_cast<jint>(status), message);
  if (exception != nullptr) env->Throw(static_cast<jthrowable>(exception));
}

// Throws where a call did not succeed.
void check(JNIEnv* env, int status, char* error, const char* otherwise = "") {
  if (status < 0) fail(env, status, error, otherwise);
}

// The string that a call gave, which is freed.
jbyteArray take(JNIEnv* env, int status, char* text, char* error) {
  if (status < 0) {
    fail(env, status, error);
    return nullptr;
  }
  jbyteArray bytes = new_bytes(env, text);
  eliza_inference_free_string(text);
  return bytes;
}

// A slot's file, to be saved or restored.
void with_slot(JNIEnv* env, jlong stream, jbyteArray file, int (*call)(EliLlmStream*, const char*, char**)) {
  const Bytes name(env, file);
  if (name.failed()) return;
  char* error = nullptr;
  const int status = call(stream_of(stream), name.c_str(), &error);
  check(env, status, error);
}

JNIEnv* env_of(JavaVM* vm) {
  void* env = nullptr;
  return vm->GetEnv(&env, JNI_VERSION_1_6) == JNI_OK ? static_cast<JNIEnv*>(env) : nullptr;
}

}  // namespace

// On the thread that loads the library, for the class Native: classes are looked for where that one came from.
extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  JNIEnv* env = env_of(vm);
  const bool found = env != nullptr && chunk_class.find(env, "ai/eliza/inference/Chunk", "([B[IZII)V") &&
                     exception_class.find(env, "ai/eliza/inference/InferenceException", "(I[B)V");
  return found ? JNI_VERSION_1_6 : JNI_ERR;
}

extern "C" JNIEXPORT void JNICALL JNI_OnUnload(JavaVM* vm, void*) {
  JNIEnv* env = env_of(vm);
  if (env == nullptr) return;
  chunk_class.forget(env);
  exception_class.forget(env);
}

#define NATIVE(type, name) extern "C" JNIEXPORT type JNICALL Java_ai_eliza_inference_Native_##name

NATIVE(jlong, create)(JNIEnv* env, jclass, jbyteArray bundle) {
  // The config has no size field: this is what keeps bridge and library from reading past each other's.
  constexpr char kVersion[] = {'0' + ELIZA_INFERENCE_ABI_VERSION / 10, '0' + ELIZA_INFERENCE_ABI_VERSION % 10, '\0'};
  if (std::strcmp(eliza_inference_abi_version(), kVersion) != 0) {
    fail(env, ELIZA_ERR_ABI_MISMATCH, nullptr,
         "libelizainference.so and libelizainference_jni.so have different ABIs; take both from one package");
    return 0;
  }
  const Bytes path(env, bundle);
  if (path.failed()) return 0;
  char* error = nullptr;
  EliInferenceContext* engine = eliza_inference_create(path.c_str(), &error);
  if (engine == nullptr) fail(env, eliza_inference_last_status(), error);
  return to_java(engine);
}

NATIVE(void, destroy)(JNIEnv*, jclass, jlong engine) { eliza_inference_destroy(engine_of(engine)); }

NATIVE(jintArray, tokenize)
(JNIEnv* env, jclass, jlong engine, jbyteArray text, jboolean add_special, jboolean parse_special) {
  const Bytes bytes(env, text);
  if (bytes.failed()) return nullptr;
  int* tokens = nullptr;
  size_t count = 0;
  char* error = nullptr;
  const int status = eliza_inference_tokenize(engine_of(engine), bytes.c_str(), bytes.size(), add_special,
                                              parse_special, &tokens, &count, &error);
  if (status < 0) {
    fail(env, status, error);
    return nullptr;
  }
  jintArray result = new_ints(env, tokens, count);
  eliza_inference_free_tokens(tokens);
  return result;
}

NATIVE(jbyteArray, backends)(JNIEnv* env, jclass, jlong engine) {
  char* json = nullptr;
  char* error = nullptr;
  const int status = eliza_inference_llm_backend_report(engine_of(engine), &json, &error);
  return take(env, status, json, error);
}

NATIVE(jbyteArray, metadata)(JNIEnv* env, jclass, jlong engine, jbyteArray key) {
  const Bytes name(env, key);
  if (name.failed()) return nullptr;
  char* value = nullptr;
  char* error = nullptr;
  const int status = eliza_inference_model_meta(engine_of(engine), name.c_str(), &value, &error);
  return take(env, status, value, error);
}

NATIVE(jlong, open)
(JNIEnv* env, jclass, jlong engine, jint max_tokens, jfloat temperature, jfloat top_p, jint top_k,
 jfloat repeat_penalty, jint slot, jbyteArray prompt_cache_key, jint draft_min, jint draft_max, jbyteArray drafter_path,
 jbyteArray grammar, jint gpu_layers, jbyteArray cache_type_k, jbyteArray cache_type_v, jint context_size) {
  const Bytes key(env, prompt_cache_key), drafter(env, drafter_path), gbnf(env, grammar), type_k(env, cache_type_k),
      type_v(env, cache_type_v);
  if (key.failed() || drafter.failed() || gbnf.failed() || type_k.failed() || type_v.failed()) return 0;
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  config.max_tokens = max_tokens;
  config.temperature = temperature;
  config.top_p = top_p;
  config.top_k = top_k;
  config.repeat_penalty = repeat_penalty;
  config.slot_id = slot;
  config.prompt_cache_key = key.c_str();
  config.draft_min = draft_min;
  config.draft_max = draft_max;
  config.mtp_drafter_path = drafter.c_str();
  config.gbnf_grammar = gbnf.c_str();
  config.n_gpu_layers = gpu_layers;
  config.cache_type_k = type_k.c_str();
  config.cache_type_v = type_v.c_str();
  config.context_size = context_size;
  char* error = nullptr;
  EliLlmStream* stream = eliza_inference_llm_stream_open(engine_of(engine), &config, &error);
  if (stream == nullptr) fail(env, eliza_inference_last_status(), error);
  return to_java(stream);
}

NATIVE(void, close)(JNIEnv*, jclass, jlong stream) { eliza_inference_llm_stream_close(stream_of(stream)); }

NATIVE(void, prefill)(JNIEnv* env, jclass, jlong stream, jintArray tokens) {
  const Ints ids(env, tokens);
  if (ids.failed()) return;
  char* error = nullptr;
  const int status = eliza_inference_llm_stream_prefill(stream_of(stream), ids.data(), ids.size(), &error);
  check(env, status, error);
}

NATIVE(jobject, next)(JNIEnv* env, jclass, jlong stream) {
  int32_t tokens[kTokens];
  char text[kTextBytes];
  size_t count = 0;
  int32_t drafted = 0;
  int32_t accepted = 0;
  char* error = nullptr;
  const int status = eliza_inference_llm_stream_next(stream_of(stream), tokens, kTokens, &count, text, sizeof text,
                                                     &drafted, &accepted, &error);
  if (status < 0) {
    fail(env, status, error);
    return nullptr;
  }
  jbyteArray bytes = new_bytes(env, text);
  jintArray ids = bytes != nullptr ? new_ints(env, tokens, count) : nullptr;
  if (ids == nullptr) return nullptr;
  const jboolean last = status == 1 ? JNI_TRUE : JNI_FALSE;
  return chunk_class.make(env, bytes, ids, last, drafted, accepted);
}

NATIVE(void, cancel)(JNIEnv*, jclass, jlong stream) { eliza_inference_llm_stream_cancel(stream_of(stream)); }

NATIVE(void, reset)(JNIEnv* env, jclass, jlong stream) {
  check(env, eliza_inference_llm_stream_reset(stream_of(stream)), nullptr, "reset: the stream is closed; open another");
}

NATIVE(jint, resetKeep)(JNIEnv* env, jclass, jlong stream, jint tokens) {
  const int kept = eliza_inference_llm_stream_reset_keep(stream_of(stream), tokens);
  check(env, kept, nullptr, "resetKeep: the stream is closed, or the number of tokens negative");
  return kept;
}

NATIVE(void, setSeed)(JNIEnv* env, jclass, jlong stream, jlong seed) {
  check(env, eliza_inference_llm_stream_set_seed(stream_of(stream), static_cast<uint64_t>(seed)), nullptr,
        "setSeed: the stream is closed, or its generation has begun; seed it before the first next");
}

NATIVE(jbyteArray, statistics)(JNIEnv* env, jclass, jlong stream) {
  char* json = nullptr;
  char* error = nullptr;
  const int status = eliza_inference_llm_stream_stats(stream_of(stream), &json, &error);
  return take(env, status, json, error);
}

NATIVE(void, saveSlot)(JNIEnv* env, jclass, jlong stream, jbyteArray file) {
  with_slot(env, stream, file, eliza_inference_llm_stream_save_slot);
}

NATIVE(void, restoreSlot)(JNIEnv* env, jclass, jlong stream, jbyteArray file) {
  with_slot(env, stream, file, eliza_inference_llm_stream_restore_slot);
}

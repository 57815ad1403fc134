// A library with LiteRT-LM's symbols that behaves as a test says: through fake_behave for the next calls, or for good,
// by what it was compiled with, as one of another version.
//
// Its model is the text "0 1 2 3 …", a token each; tokens are bytes, and 256 starts a text.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "native/backends/litert_lm/litert-lm-api.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum Behaviour : int {
  kGood,
  kSilentDecode,  // the decode never calls back
  kEndlessDecode,
  kFailingDecode,  // its second call brings an error
  kStuckPrefill,   // until fake_release
  kFailingPrefill,
  kStuckEngine,
  kFailingEngine,  // as of a dispatch library that does not come up
};

std::atomic<int> behaviour{kGood};
std::atomic<int> pushed{0};    // chunks of all decodes
std::atomic<int> sessions{0};  // that live
std::atomic<bool> released{false};
std::atomic<int> stuck{0};  // calls that wait for it
thread_local std::string last_error;

constexpr int kVocabulary = 257;

void wait_for_release() {
  ++stuck;
  while (!released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  --stuck;
}

}  // namespace

struct LiteRtLmEngineSettings {};
struct LiteRtLmEngine {};
struct LiteRtLmSessionConfig {
  int max_tokens = 0;
};
struct LiteRtLmSamplerParams {};
struct LiteRtLmInputData {
  std::string text;
};
struct LiteRtLmStreamChunk {
  std::string text;
  bool final = false;
  const char* error = nullptr;
};
struct LiteRtLmTokenizeResult {
  std::vector<int> tokens;
};
struct LiteRtLmDetokenizeResult {
  std::string text;
};
struct LiteRtLmTokenUnion {
  int start = 256;
};
struct LiteRtLmSession {
  int max_tokens = 0;
  int steps = 0;
  std::atomic<bool> cancelled{false};
  std::thread decode;
};

// -- For tests ----------------------------------------------------------------------------------------------------

EXPORT void fake_behave(int how) {
  behaviour = how;
  released = false;
}
EXPORT void fake_release() { released = true; }
EXPORT int fake_pushed() { return pushed; }
EXPORT int fake_sessions() { return sessions; }
EXPORT int fake_stuck() { return stuck; }

// -- LiteRT-LM ----------------------------------------------------------------------------------------------------

#ifdef FAKE_NEWER
EXPORT int litert_lm_get_api_version() { std::abort(); }
#endif

EXPORT const char* litert_lm_get_last_error_message() { return last_error.c_str(); }
EXPORT void litert_lm_set_min_log_level(int) {}

EXPORT LiteRtLmEngineSettings* litert_lm_engine_settings_create(const char*, const char* backend, const char*,
                                                                const char*) {
  if (std::strcmp(backend, "cpu") != 0) std::abort();  // as the real one does for some names
  return new LiteRtLmEngineSettings;
}
EXPORT void litert_lm_engine_settings_delete(LiteRtLmEngineSettings* settings) { delete settings; }
EXPORT void litert_lm_engine_settings_set_max_num_tokens(LiteRtLmEngineSettings*, int) {}
EXPORT void litert_lm_engine_settings_set_cache_dir(LiteRtLmEngineSettings*, const char*) {}
EXPORT LiteRtLmEngine* litert_lm_engine_create(const LiteRtLmEngineSettings*) {
  if (behaviour == kStuckEngine) wait_for_release();
  if (behaviour == kFailingEngine) {
    last_error = "INTERNAL: \xff no dispatch today";
    return nullptr;
  }
  return new LiteRtLmEngine;
}
EXPORT void litert_lm_engine_delete(LiteRtLmEngine* engine) { delete engine; }

EXPORT LiteRtLmTokenizeResult* litert_lm_engine_tokenize(LiteRtLmEngine*, const char* text) {
  auto* result = new LiteRtLmTokenizeResult;
  for (const char* c = text; *c != '\0'; ++c) result->tokens.push_back(static_cast<unsigned char>(*c));
  return result;
}
EXPORT const int* litert_lm_tokenize_result_get_tokens(LiteRtLmTokenizeResult* result) { return result->tokens.data(); }
EXPORT size_t litert_lm_tokenize_result_get_num_tokens(LiteRtLmTokenizeResult* result) { return result->tokens.size(); }
EXPORT void litert_lm_tokenize_result_delete(LiteRtLmTokenizeResult* result) { delete result; }
EXPORT LiteRtLmDetokenizeResult* litert_lm_engine_detokenize(LiteRtLmEngine*, const int* tokens, size_t count) {
  auto* result = new LiteRtLmDetokenizeResult;
  for (size_t i = 0; i < count; ++i) {
    if (tokens[i] < 0 || tokens[i] >= kVocabulary) {
      delete result;
      last_error = "no such token";
      return nullptr;
    }
    result->text += tokens[i] < 256 ? std::string(1, static_cast<char>(tokens[i])) : "<s>";
  }
  return result;
}
EXPORT const char* litert_lm_detokenize_result_get_string(LiteRtLmDetokenizeResult* result) {
  return result->text.c_str();
}
EXPORT void litert_lm_detokenize_result_delete(LiteRtLmDetokenizeResult* result) { delete result; }

EXPORT LiteRtLmTokenUnion* litert_lm_engine_get_start_token(LiteRtLmEngine*) { return new LiteRtLmTokenUnion; }
EXPORT int litert_lm_token_union_get_type(LiteRtLmTokenUnion*) { return 1; }
EXPORT const char* litert_lm_token_union_get_string(LiteRtLmTokenUnion*) { return nullptr; }
EXPORT int litert_lm_token_union_get_ids(LiteRtLmTokenUnion* start, const int** ids, size_t* count) {
  *ids = &start->start;
  *count = 1;
  return 0;
}
EXPORT void litert_lm_token_union_delete(LiteRtLmTokenUnion* start) { delete start; }

EXPORT LiteRtLmSamplerParams* litert_lm_sampler_params_create(int) { return new LiteRtLmSamplerParams; }
EXPORT void litert_lm_sampler_params_delete(LiteRtLmSamplerParams* params) { delete params; }
EXPORT void litert_lm_sampler_params_set_top_k(LiteRtLmSamplerParams*, int32_t) {}
EXPORT void litert_lm_sampler_params_set_top_p(LiteRtLmSamplerParams*, float) {}
EXPORT void litert_lm_sampler_params_set_temperature(LiteRtLmSamplerParams*, float) {}
EXPORT void litert_lm_sampler_params_set_seed(LiteRtLmSamplerParams*, int32_t) {}
EXPORT LiteRtLmSessionConfig* litert_lm_session_config_create() { return new LiteRtLmSessionConfig; }
EXPORT void litert_lm_session_config_delete(LiteRtLmSessionConfig* config) { delete config; }
EXPORT void litert_lm_session_config_set_sampler_params(LiteRtLmSessionConfig*, const LiteRtLmSamplerParams*) {}
EXPORT void litert_lm_session_config_set_max_output_tokens(LiteRtLmSessionConfig* config, int tokens) {
  config->max_tokens = tokens;
}
EXPORT void litert_lm_session_config_set_apply_prompt_template(LiteRtLmSessionConfig*, bool) {}
EXPORT LiteRtLmInputData* litert_lm_input_data_create(int, const void* data, size_t size) {
  return new LiteRtLmInputData{std::string(static_cast<const char*>(data), size)};
}
EXPORT void litert_lm_input_data_delete(LiteRtLmInputData* input) { delete input; }

EXPORT LiteRtLmSession* litert_lm_engine_create_session(LiteRtLmEngine*, LiteRtLmSessionConfig* config) {
  ++sessions;
  auto* session = new LiteRtLmSession;
  session->max_tokens = config->max_tokens;
  return session;
}
EXPORT void litert_lm_session_delete(LiteRtLmSession* session) {
  if (session->decode.joinable()) session->decode.join();
  delete session;
  --sessions;
}
EXPORT int litert_lm_session_run_prefill(LiteRtLmSession* session, const LiteRtLmInputData* const* inputs, size_t) {
  if (behaviour == kStuckPrefill) wait_for_release();
  if (behaviour == kFailingPrefill) {
    last_error = "INTERNAL: \xff no prefill today";
    return -1;
  }
  session->steps += static_cast<int>(inputs[0]->text.size()) + (session->steps == 0 ? 1 : 0);
  return 0;
}

#ifndef FAKE_OLDER
EXPORT const char* litert_lm_stream_chunk_get_text(const LiteRtLmStreamChunk* chunk) {
  return chunk->final ? nullptr : chunk->text.c_str();
}
#endif
EXPORT bool litert_lm_stream_chunk_is_final(const LiteRtLmStreamChunk* chunk) { return chunk->final; }
EXPORT const char* litert_lm_stream_chunk_get_error(const LiteRtLmStreamChunk* chunk) { return chunk->error; }

EXPORT int litert_lm_session_run_decode_async(LiteRtLmSession* session, LiteRtLmStreamCallback callback, void* data) {
  if (behaviour == kSilentDecode) return 0;
  if (session->decode.joinable()) session->decode.join();
  session->cancelled = false;
  session->decode = std::thread([session, callback, data, how = behaviour.load()] {
    const int most = how == kEndlessDecode ? 1 << 30 : session->max_tokens > 0 ? session->max_tokens : 20;
    const char* error = nullptr;
    for (int i = 0; i < most; ++i) {
      if (session->cancelled) {
        error = "CANCELLED.";
        break;
      }
      if (how == kFailingDecode && i == 1) {
        error = "INTERNAL: \xff the device is gone";
        break;
      }
      ++session->steps;
      ++pushed;
      const LiteRtLmStreamChunk chunk{std::string(1, static_cast<char>('0' + i % 10)), false, nullptr};
      callback(data, &chunk);
    }
    const LiteRtLmStreamChunk last{{}, true, error};
    callback(data, &last);
  });
  return 0;
}
EXPORT void litert_lm_session_cancel_process(LiteRtLmSession* session) { session->cancelled = true; }

#ifndef FAKE_INCOMPLETE
EXPORT int litert_lm_session_rewind_to_step(LiteRtLmSession* session, int step) {
  if (step > session->steps) {
    last_error = "INVALID_ARGUMENT: the target step is greater than the current step";
    return -1;
  }
  session->steps = step;
  return 0;
}
#endif

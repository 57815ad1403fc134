// Entry points: speech and vision, which this library has not. Clients bind each family all or nothing, and a missing
// symbol in one makes them give up text as well; so all exist, and say that there is nothing behind them.
#include <cstdlib>
#include <string>

#include "native/base/error.h"
#include "native/ffi/context.h"
#include "native/ffi/entry.h"
#include "native/include/eliza-inference-ffi.h"

namespace eliza {
namespace {

struct Feature {
  const char* name;
  const char* probe;  // the function that tells whether it is there
};

constexpr Feature kSpeechSynthesis = {"speech synthesis", "tts_stream_supported"};
constexpr Feature kSpeechRecognition = {"speech recognition", "asr_stream_supported"};
constexpr Feature kVoiceActivity = {"voice activity detection", "vad_supported"};
constexpr Feature kWakeWord = {"wake word detection", "wakeword_supported"};
constexpr Feature kSpeaker = {"speaker embedding", "speaker_supported"};
constexpr Feature kDiarization = {"speaker diarization", "diariz_supported"};
constexpr Feature kKokoro = {"Kokoro speech synthesis", "kokoro_supported"};
constexpr Feature kVision = {"image description", "vision_supported"};

[[noreturn]] void refuse(const Feature& feature) {
  throw Error(ELIZA_ERR_NOT_IMPLEMENTED, std::string("this library has no ") + feature.name +
                                             ", it serves text only; ask eliza_inference_" + feature.probe +
                                             "() first, and use another library where it is 0");
}

// A call on a context, which is a handle like any other.
int lacks(const EliInferenceContext* context, const Feature& feature, char** out_error) {
  return enter(out_error, [&]() -> int {
    ContextPin pin(context);
    refuse(feature);
  });
}

// A call on a handle that only this feature could have handed out: none can be right.
int lacks(const Feature& feature, char** out_error) {
  return enter(out_error, [&]() -> int { refuse(feature); });
}

// A call that opens something.
std::nullptr_t opens_nothing(const EliInferenceContext* context, const Feature& feature, char** out_error) {
  lacks(context, feature, out_error);
  return nullptr;
}

}  // namespace
}  // namespace eliza

// ---- Speech synthesis ----

int eliza_inference_tts_stream_supported(void) { return 0; }

int eliza_inference_tts_synthesize(EliInferenceContext* context, const char*, size_t, const char*, float*, size_t,
                                   char** out_error) {
  return eliza::lacks(context, eliza::kSpeechSynthesis, out_error);
}

int eliza_inference_tts_synthesize_stream(EliInferenceContext* context, const char*, size_t, const char*,
                                          eliza_tts_chunk_callback_t, void*, char** out_error) {
  return eliza::lacks(context, eliza::kSpeechSynthesis, out_error);
}

int eliza_inference_cancel_tts(EliInferenceContext* context, char** out_error) {
  return eliza::lacks(context, eliza::kSpeechSynthesis, out_error);
}

int eliza_inference_encode_reference(EliInferenceContext* context, const float*, size_t, int, int*, int*, int**,
                                     char** out_error) {
  return eliza::lacks(context, eliza::kSpeechSynthesis, out_error);
}

int eliza_inference_kokoro_supported(void) { return 0; }

int eliza_inference_kokoro_load(EliInferenceContext* context, const char*, const char*, int, char** out_error) {
  return eliza::lacks(context, eliza::kKokoro, out_error);
}

int eliza_inference_kokoro_synthesize(EliInferenceContext* context, const char*, size_t, float, float*, size_t,
                                      char** out_error) {
  return eliza::lacks(context, eliza::kKokoro, out_error);
}

int eliza_inference_kokoro_sample_rate(EliInferenceContext* context) {
  return eliza::lacks(context, eliza::kKokoro, nullptr);
}

#if ELIZA_INFERENCE_ABI_VERSION >= 14
int eliza_inference_kokoro_g2p_kind(EliInferenceContext* context) {
  return eliza::lacks(context, eliza::kKokoro, nullptr);
}

int eliza_inference_kokoro_synthesize_ipa(EliInferenceContext* context, const char*, size_t, float, float*, size_t,
                                          char** out_error) {
  return eliza::lacks(context, eliza::kKokoro, out_error);
}
#endif

// ---- Speech recognition ----

int eliza_inference_asr_timestamps_supported(void) { return 0; }
int eliza_inference_asr_stream_supported(void) { return 0; }

int eliza_inference_asr_transcribe(EliInferenceContext* context, const float*, size_t, int, char*, size_t,
                                   char** out_error) {
  return eliza::lacks(context, eliza::kSpeechRecognition, out_error);
}

int eliza_inference_asr_transcribe_timed(EliInferenceContext* context, const float*, size_t, int, char*, size_t, int*,
                                         int*, size_t*, char** out_error) {
  return eliza::lacks(context, eliza::kSpeechRecognition, out_error);
}

EliAsrStream* eliza_inference_asr_stream_open(EliInferenceContext* context, int, char** out_error) {
  return eliza::opens_nothing(context, eliza::kSpeechRecognition, out_error);
}

int eliza_inference_asr_stream_feed(EliAsrStream*, const float*, size_t, char** out_error) {
  return eliza::lacks(eliza::kSpeechRecognition, out_error);
}

int eliza_inference_asr_stream_partial(EliAsrStream*, char*, size_t, int*, size_t*, char** out_error) {
  return eliza::lacks(eliza::kSpeechRecognition, out_error);
}

int eliza_inference_asr_stream_finish(EliAsrStream*, char*, size_t, int*, size_t*, char** out_error) {
  return eliza::lacks(eliza::kSpeechRecognition, out_error);
}

void eliza_inference_asr_stream_close(EliAsrStream*) {}

// ---- Voice activity ----

int eliza_inference_vad_supported(void) { return 0; }

EliVad* eliza_inference_vad_open(EliInferenceContext* context, int, char** out_error) {
  return eliza::opens_nothing(context, eliza::kVoiceActivity, out_error);
}

int eliza_inference_vad_process(EliVad*, const float*, size_t, float*, char** out_error) {
  return eliza::lacks(eliza::kVoiceActivity, out_error);
}

int eliza_inference_vad_reset(EliVad*, char** out_error) { return eliza::lacks(eliza::kVoiceActivity, out_error); }

void eliza_inference_vad_close(EliVad*) {}

// ---- Wake word ----

int eliza_inference_wakeword_supported(void) { return 0; }

EliWakeWord* eliza_inference_wakeword_open(EliInferenceContext* context, int, const char*, char** out_error) {
  return eliza::opens_nothing(context, eliza::kWakeWord, out_error);
}

int eliza_inference_wakeword_score(EliWakeWord*, const float*, size_t, float*, char** out_error) {
  return eliza::lacks(eliza::kWakeWord, out_error);
}

int eliza_inference_wakeword_reset(EliWakeWord*, char** out_error) { return eliza::lacks(eliza::kWakeWord, out_error); }

void eliza_inference_wakeword_close(EliWakeWord*) {}

// ---- Speakers ----

int eliza_inference_speaker_supported(void) { return 0; }

EliSpeaker* eliza_inference_speaker_open(EliInferenceContext* context, const char*, char** out_error) {
  return eliza::opens_nothing(context, eliza::kSpeaker, out_error);
}

int eliza_inference_speaker_embed(EliSpeaker*, const float*, size_t, float*, char** out_error) {
  return eliza::lacks(eliza::kSpeaker, out_error);
}

void eliza_inference_speaker_free(float* embedding) { std::free(embedding); }

void eliza_inference_speaker_close(EliSpeaker*) {}

int eliza_inference_diariz_supported(void) { return 0; }

EliDiariz* eliza_inference_diariz_open(EliInferenceContext* context, const char*, char** out_error) {
  return eliza::opens_nothing(context, eliza::kDiarization, out_error);
}

int eliza_inference_diariz_segment(EliDiariz*, const float*, size_t, int8_t*, size_t*, char** out_error) {
  return eliza::lacks(eliza::kDiarization, out_error);
}

void eliza_inference_diariz_close(EliDiariz*) {}

// ---- Vision ----

int eliza_inference_vision_supported(void) { return 0; }

int eliza_inference_describe_image(EliInferenceContext* context, const unsigned char*, size_t, const char*, const char*,
                                   char*, size_t, char** out_error) {
  return eliza::lacks(context, eliza::kVision, out_error);
}

#if ELIZA_INFERENCE_ABI_VERSION >= 13
int eliza_inference_vision_stream_supported(void) { return 0; }

EliLlmStream* eliza_inference_describe_image_stream_open(EliInferenceContext* context, const unsigned char*, size_t,
                                                         const char*, const char*, char** out_error) {
  return eliza::opens_nothing(context, eliza::kVision, out_error);
}
#endif

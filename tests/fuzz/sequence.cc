// Calls of the C ABI in any order, with any arguments, on open, closed and made up handles, with cancels and closes
// from another thread. Linked over the alphabet (//tests/alphabet) and over llama.cpp with a tiny model, by
// $FUZZ_BUNDLE.
#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "native/include/eliza-inference-ffi.h"
#include "tests/fuzz/input.h"

#ifdef ELIZA_FUZZ_ALPHABET
#include "tests/alphabet/alphabet-backend.h"
#endif

namespace {

using eliza::fuzz::Input;
using eliza::fuzz::require;

constexpr size_t kSlots = 4;
constexpr size_t kMostCalls = 64;

struct World {
  std::array<EliInferenceContext*, kSlots> contexts = {};
  std::array<EliLlmStream*, kSlots> streams = {};
  std::string folder;
  std::string bundle;
  std::vector<std::thread> others;
};

// A status that a function may return.
void check(int status, int most) { require(status >= ELIZA_ERR_CANCELLED && status <= most, "a status that exists"); }

// The status of `call`, which gets an out_error: with a message exactly where it failed.
template <typename Call>
int checked(int most, Call&& call) {
  char* error = nullptr;
  const int status = call(&error);
  check(status, most);
  require((status < 0) == (error != nullptr), "a message for a failure, and none for a success");
  if (error != nullptr) eliza::fuzz::require_message(error);
  eliza_inference_free_string(error);
  return status;
}

std::string slot_file(const World& world, Input& input) {
  const char* const names[] = {"/a", "/b", "/missing/c", "", "/\xff"};
  const std::string name = names[input.below(5)];
  return name.empty() ? world.folder : world.folder + name;
}

eliza_llm_stream_config_t any_config(Input& input) {
  eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  config.max_tokens = static_cast<int8_t>(input.byte());
  config.context_size = static_cast<int32_t>(input.byte()) * 2;
  if (input.below(4) == 0) config.temperature = static_cast<float>(input.byte()) / 32 - 1;
  if (input.below(4) == 0) config.top_k = static_cast<int8_t>(input.byte());
  if (input.below(8) == 0) config.draft_max = static_cast<int8_t>(input.byte());
  if (input.below(8) == 0) config.prompt_cache_key = "key";
  if (input.below(8) == 0) config.gbnf_grammar = "root ::= [a-z]+";
  if (input.below(8) == 0) config.cache_type_k = "q8_0";
  if (input.below(8) == 0) config.slot_id = static_cast<int8_t>(input.byte());
  return config;
}

void create(World& world, Input& input) {
  const size_t at = input.below(kSlots);
  const std::string bundle = input.below(8) == 0 ? world.bundle + "/nothing" : world.bundle;
  eliza_inference_destroy(world.contexts[at]);
  checked(0, [&](char** error) {
    world.contexts[at] = eliza_inference_create(bundle.c_str(), error);
    return eliza_inference_last_status();
  });
}

void open(World& world, Input& input) {
  const size_t at = input.below(kSlots);
  const eliza_llm_stream_config_t config = any_config(input);
  const bool no_config = input.below(16) == 0;
  eliza_inference_llm_stream_close(world.streams[at]);
  EliInferenceContext* const context = world.contexts[input.below(kSlots)];
  const int status = checked(0, [&](char** error) {
    world.streams[at] = eliza_inference_llm_stream_open(context, no_config ? nullptr : &config, error);
    return eliza_inference_last_status();
  });
  require((status == ELIZA_OK) == (world.streams[at] != nullptr), "a stream for a success");
}

void prefill(Input& input, EliLlmStream* stream) {
  std::vector<int32_t> tokens(input.below(96));
  for (int32_t& token : tokens) token = input.byte() + (input.below(32) == 0 ? 100'000 : 0);
  checked(
      0, [&](char** error) { return eliza_inference_llm_stream_prefill(stream, tokens.data(), tokens.size(), error); });
}

void next(Input& input, EliLlmStream* stream) {
  const size_t tokens_cap = input.below(9);
  const size_t text_cap = input.below(33);
  std::vector<int32_t> tokens(tokens_cap + 1, -7);
  std::string text(text_cap + 1, '\x7f');
  size_t count = 99;
  int32_t drafted = -1;
  int32_t accepted = -1;
  checked(1, [&](char** error) {
    return eliza_inference_llm_stream_next(stream, tokens.data(), tokens_cap, &count, text.data(), text_cap, &drafted,
                                           &accepted, error);
  });
  require(count <= tokens_cap, "no more tokens than tokens_cap");
  require(tokens[tokens_cap] == -7 && text[text_cap] == '\x7f', "nothing written beyond the caps");
  if (text_cap > 0) {
    require(text.find('\0') < text_cap, "text ends within text_cap");
    const std::string piece = text.c_str();
    require(piece == eliza::to_valid_utf8(piece), "text is UTF-8");
  }
}

void slots(World& world, Input& input, EliLlmStream* stream, bool save) {
  const std::string path = slot_file(world, input);
  const auto call = save ? eliza_inference_llm_stream_save_slot : eliza_inference_llm_stream_restore_slot;
  checked(0, [&](char** error) { return call(stream, path.c_str(), error); });
}

void ask(World& world, Input& input, EliLlmStream* stream) {
  EliInferenceContext* const context = world.contexts[input.below(kSlots)];
  const std::string text(input.bytes(input.below(24)));
  const size_t what = input.below(4);
  char* json = nullptr;
  int* tokens = nullptr;
  size_t count = 0;
  checked(0, [&](char** error) {
    switch (what) {
      case 0:
        return eliza_inference_llm_stream_stats(stream, &json, error);
      case 1:
        return eliza_inference_llm_backend_report(context, &json, error);
      case 2:
        return eliza_inference_tokenize(context, text.data(), text.size(), 1, 1, &tokens, &count, error);
      default:
        return eliza_inference_model_meta(context, text.c_str(), &json, error);
    }
  });
  if (json != nullptr) require(eliza::to_valid_utf8(json) == json, "a result is UTF-8");
  eliza_inference_free_string(json);
  eliza_inference_free_tokens(tokens);
}

void call(World& world, Input& input) {
  EliLlmStream* stream = world.streams[input.below(kSlots)];
  if (input.below(16) == 0) stream = reinterpret_cast<EliLlmStream*>(uintptr_t{input.byte()} * 0x0101010101010101);
  switch (input.below(14)) {
    case 0:
      return create(world, input);
    case 1:
    case 2:
      return open(world, input);
    case 3:
    case 4:
      return prefill(input, stream);
    case 5:
    case 6:
      return next(input, stream);
    case 7:
      return check(eliza_inference_llm_stream_cancel(stream), 0);
    case 8:
      if (world.others.size() < 4) {
        const bool close = input.below(4) == 0;
        world.others.emplace_back([stream, close] {
          close ? eliza_inference_llm_stream_close(stream) : void(eliza_inference_llm_stream_cancel(stream));
        });
      }
      return;
    case 9:
      return check(eliza_inference_llm_stream_reset(stream), 0);
    case 10:
      return check(eliza_inference_llm_stream_reset_keep(stream, static_cast<int8_t>(input.byte())), 127);
    case 11:
      return slots(world, input, stream, input.below(2) == 0);
    case 12:
      return ask(world, input, stream);
    default:
      // Closed, and kept: a stale handle from here on.
      if (input.below(4) == 0) return eliza_inference_destroy(world.contexts[input.below(kSlots)]);
      eliza_inference_llm_stream_close(stream);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string folder = eliza::fuzz::make_folder();
  Input input(data, size);
  World world;
  world.folder = folder;
#ifdef ELIZA_FUZZ_ALPHABET
  eliza_test_alphabet_backend();
  world.bundle = folder;
#else
  const char* const bundle = std::getenv("FUZZ_BUNDLE");
  require(bundle != nullptr, "FUZZ_BUNDLE names a bundle");
  world.bundle = bundle;
#endif
  // Most inputs should get somewhere.
  char* error = nullptr;
  const eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
  world.contexts[0] = eliza_inference_create(world.bundle.c_str(), &error);
  require(world.contexts[0] != nullptr, "a context");
  world.streams[0] = eliza_inference_llm_stream_open(world.contexts[0], &config, &error);
  require(world.streams[0] != nullptr, "a stream");

  for (size_t calls = 0; calls < kMostCalls && !input.empty(); ++calls) call(world, input);
  for (std::thread& other : world.others) other.join();
  for (EliInferenceContext* context : world.contexts) eliza_inference_destroy(context);
  for (EliLlmStream* stream : world.streams) eliza_inference_llm_stream_close(stream);
#ifdef ELIZA_FUZZ_ALPHABET
  require(eliza_test_alphabet_sessions() == 0, "no session is left");
#endif
  return 0;
}

#include "tests/ffi/fake-backend.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "native/base/error.h"
#include "native/seam/llm-backend.h"
#include "native/text/tokenizer.h"

namespace {

FakeHooks hooks = {};
thread_local FakeThrow pending_throw = FAKE_THROW_NOTHING;
std::atomic<int> last_session{0};
std::atomic<int> live_sessions{0};

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool closed = false;
  int waiting = 0;
} gate;

void wait_while_paused() {
  std::unique_lock<std::mutex> lock(gate.mutex);
  ++gate.waiting;
  // With an end: where this thread has a lock that the one which would end the pause waits for, the test should fail.
  gate.changed.wait_for(lock, std::chrono::minutes(1), [] { return !gate.closed; });
  --gate.waiting;
}

void throw_what_is_pending() {
  switch (std::exchange(pending_throw, FAKE_THROW_NOTHING)) {
    case FAKE_THROW_NOTHING:
      return;
    case FAKE_THROW_ERROR:
      throw eliza::Error(ELIZA_ERR_BUNDLE_INVALID, "fake error");
    case FAKE_THROW_BAD_ALLOC:
      throw std::bad_alloc();
    case FAKE_THROW_STD_EXCEPTION:
      throw std::runtime_error("fake exception");
    case FAKE_THROW_INT:
      throw 1;
  }
}

// What the hook returns, or `otherwise` where there is none.
template <typename... Parameters, typename... Arguments>
int ask(int (*hook)(Parameters...), int otherwise, Arguments... arguments) {
  if (hook == nullptr) return otherwise;
  const int result = hook(arguments...);
  throw_what_is_pending();
  return result;
}

class FakeSession final : public LlmBackendSession {
 public:
  explicit FakeSession(int32_t max_tokens) : max_tokens_(max_tokens) { ++live_sessions; }

  ~FakeSession() override {
    if (hooks.deleted != nullptr) hooks.deleted(id_);
    --live_sessions;
  }

  int prefill(const int32_t* token_ids, size_t num_tokens, char** out_error) override {
    wait_while_paused();
    generated_ = 0;
    return ask(hooks.prefill, ELIZA_OK, id_, token_ids, num_tokens, out_error);
  }

  int next(int32_t* tokens_out, size_t tokens_cap, size_t* num_tokens_out, char* text_out, size_t text_cap,
           int32_t* drafter_drafted_out, int32_t* drafter_accepted_out, char** out_error) override {
    wait_while_paused();
    if (hooks.next != nullptr) {
      return ask(hooks.next, ELIZA_OK, id_, tokens_out, tokens_cap, num_tokens_out, text_out, text_cap,
                 drafter_drafted_out, drafter_accepted_out, out_error);
    }
    if (text_cap < 2) return eliza::set_error(out_error, ELIZA_ERR_INVALID_ARG, "text_cap must be 2");
    if (max_tokens_ > 0 && generated_ == max_tokens_) return 1;
    *tokens_out = 'a';
    *num_tokens_out = 1;
    text_out[0] = 'a';
    text_out[1] = '\0';
    ++generated_;
    return generated_ == max_tokens_;
  }

  int cancel() override { return ask(hooks.cancel, ELIZA_OK, id_); }
  int reset() override { return ask(hooks.reset, ELIZA_OK, id_); }
  int reset_keep(int32_t n_keep) override { return ask(hooks.reset_keep, n_keep, id_, n_keep); }
  int save_slot(const char* filename, char** out_error) override {
    return ask(hooks.save_slot, ELIZA_OK, id_, filename, out_error);
  }
  int restore_slot(const char* filename, char** out_error) override {
    return ask(hooks.restore_slot, ELIZA_OK, id_, filename, out_error);
  }
  int set_seed(uint64_t seed) override { return ask(hooks.set_seed, ELIZA_OK, id_, seed); }

  bool has_concurrent_stats() const override { return ask(hooks.has_concurrent_stats, 0, id_) != 0; }

  LlmSessionStats stats() const override {
    LlmSessionStats stats;
    stats.device = "device \xff";  // as a driver may call it: not UTF-8
    stats.generated_tokens = generated_;
    stats.ignored_options = {"repeat_penalty"};
    return stats;
  }

 private:
  const int id_ = ++last_session;
  const int32_t max_tokens_;
  std::atomic<int32_t> generated_{0};  // stats may be asked meanwhile
};

// Its tokens are bytes.
class ByteTokenizer final : public eliza::Tokenizer {
 public:
  std::vector<int32_t> tokenize(std::string_view text, bool add_special, bool) const override {
    std::vector<int32_t> tokens;
    if (add_special) tokens.push_back(kBos);
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }

  std::string detokenize(const int32_t* tokens, size_t num_tokens, bool remove_special,
                         bool unparse_special) const override {
    std::string text;
    for (size_t i = 0; i < num_tokens; ++i) {
      if (tokens[i] < 0 || tokens[i] > kBos) throw eliza::Error(ELIZA_ERR_INVALID_ARG, "no token of the fake");
      if (tokens[i] < kBos) text += static_cast<char>(tokens[i]);
      if (tokens[i] == kBos && unparse_special && !remove_special) text += "<s>";
    }
    return text;
  }

  std::optional<std::string> metadata(const std::string& key) const override {
    if (key == "fake.key") return "fake value \xff";
    return std::nullopt;
  }

 private:
  static constexpr int32_t kBos = 256;
};

class FakeFactory final : public LlmBackendFactory {
 public:
  const char* name() const override { return "fake"; }
  bool available() const override { return true; }
  bool can_serve(const char* bundle_dir) const override { return ask(hooks.can_serve, 1, bundle_dir) != 0; }
  int preference_rank() const override { return 1000; }

  std::shared_ptr<const eliza::Tokenizer> tokenizer(const char*) const override {
    return std::make_shared<ByteTokenizer>();
  }

  LlmBackendSession* open(EliInferenceContext* context, const eliza_llm_stream_config_t* config,
                          char** out_error) override {
    wait_while_paused();
    const bool opens = ask(hooks.open, 1, context, config, out_error) != 0;
    return opens ? new FakeSession(config->max_tokens) : nullptr;
  }
};

}  // namespace

void eliza_test_fake_backend(const FakeHooks* new_hooks) {
  static FakeFactory* const factory = new FakeFactory;  // the registry does not own it
  llm_backend_register(factory);
  hooks = new_hooks != nullptr ? *new_hooks : FakeHooks{};
}

void eliza_test_throw(FakeThrow what) { pending_throw = what; }

void eliza_test_set_error(char** out_error, int status, const char* message) {
  eliza::set_error(out_error, status, message);
}

void eliza_test_pause(int on) {
  const std::lock_guard<std::mutex> lock(gate.mutex);
  gate.closed = on != 0;
  gate.changed.notify_all();
}

int eliza_test_paused(void) {
  const std::lock_guard<std::mutex> lock(gate.mutex);
  return gate.waiting;
}

int eliza_test_live_sessions(void) { return live_sessions; }

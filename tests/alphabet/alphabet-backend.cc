#include "tests/alphabet/alphabet-backend.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "native/backends/llama_cpp/slot-file.h"
#include "native/base/error.h"
#include "native/bundle/bundle.h"
#include "native/seam/llm-backend.h"
#include "native/text/token-stream.h"
#include "native/text/tokenizer.h"

namespace {

using eliza::llama_cpp::SavedContext;
using eliza::llama_cpp::SlotIdentity;

constexpr char kName[] = "alphabet";
constexpr int32_t kVocabulary = 256;
constexpr int32_t kDefaultContext = 4096;
constexpr size_t kChunk = 64;  // of a prefill, between two looks at the cancel flag
constexpr SlotIdentity kIdentity = {/*model=*/0x616c706861626574, /*runtime=*/1, /*type_k=*/1, /*type_v=*/1};

std::atomic<int> live_sessions{0};

int32_t follower(int32_t token) {
  if (token >= 'a' && token < 'z') return token + 1;
  if (token == 'z') return 0xC3;
  return token == 0xC3 ? 0xA9 : 'a';
}

class AlphabetSession final : public LlmBackendSession, private eliza::TokenSource {
 public:
  explicit AlphabetSession(const eliza_llm_stream_config_t& config)
      : max_tokens_(config.max_tokens), capacity_(config.context_size > 0 ? config.context_size : kDefaultContext) {
    if (config.gbnf_grammar != nullptr) throw eliza::Error(ELIZA_ERR_INVALID_ARG, "the alphabet has no grammar");
    ++live_sessions;
  }
  ~AlphabetSession() override { --live_sessions; }

  int prefill(const int32_t* token_ids, size_t num_tokens, char** out_error) override {
    check_cancelled();
    if (num_tokens > capacity_ - context_.size()) {
      return eliza::set_error(out_error, ELIZA_ERR_INVALID_ARG,
                              "the alphabet's context holds " + std::to_string(capacity_) + " tokens");
    }
    std::vector<int32_t> longer = context_;
    for (size_t at = 0; at < num_tokens; at += kChunk) {
      check_cancelled();
      const size_t end = std::min(at + kChunk, num_tokens);
      if (std::any_of(token_ids + at, token_ids + end, [](int32_t id) { return id < 0 || id >= kVocabulary; })) {
        return eliza::set_error(out_error, ELIZA_ERR_INVALID_ARG, "no token of the alphabet: its tokens are bytes");
      }
      longer.insert(longer.end(), token_ids + at, token_ids + end);
    }
    context_ = std::move(longer);
    stream_.begin(max_tokens_);
    return ELIZA_OK;
  }

  int next(int32_t* tokens_out, size_t tokens_cap, size_t* num_tokens_out, char* text_out, size_t text_cap,
           int32_t* drafted, int32_t* accepted, char**) override {
    check_cancelled();
    return stream_.next(tokens_out, tokens_cap, num_tokens_out, text_out, text_cap, drafted, accepted);
  }

  int cancel() override {
    cancelled_ = true;
    return ELIZA_OK;
  }

  int reset() override {
    keep(0);
    return ELIZA_OK;
  }

  int reset_keep(int32_t n_keep) override {
    const size_t kept = std::min(static_cast<size_t>(n_keep), context_.size());
    keep(kept);
    return static_cast<int>(kept);
  }

  int save_slot(const char* filename, char**) override {
    check_cancelled();
    SavedContext saved;
    saved.tokens = context_;
    saved.decoded = saved.visible = context_.size();
    saved.state.assign(context_.begin(), context_.end());
    write_slot_file(filename, kIdentity, saved);
    return ELIZA_OK;
  }

  int restore_slot(const char* filename, char**) override {
    check_cancelled();
    SavedContext saved = read_slot_file(filename, kIdentity);
    const bool fits = saved.tokens.size() <= capacity_ &&
                      std::equal(saved.tokens.begin(), saved.tokens.end(), saved.state.begin(), saved.state.end());
    if (!fits) throw eliza::Error(ELIZA_ERR_INVALID_ARG, "no slot of the alphabet; nothing was restored");
    context_ = std::move(saved.tokens);
    stream_.reset();
    return ELIZA_OK;
  }

  int set_seed(uint64_t) override { return ELIZA_OK; }

  LlmSessionStats stats() const override {
    LlmSessionStats stats;
    stats.device = "alphabet";
    stats.stop_reason = stop_reason_name(stream_.stop_reason());
    stats.generated_tokens = stream_.generated();
    stats.kv_used = static_cast<int64_t>(context_.size());
    stats.kv_capacity = static_cast<int64_t>(capacity_);
    return stats;
  }

 private:
  Step step(size_t limit, std::vector<eliza::DecodedToken>* out) override {
    for (size_t i = 0; i < std::min(limit, size_t{3}); ++i) {
      check_cancelled();
      if (context_.size() >= capacity_) return {eliza::StopReason::kContextFull};
      const int32_t token = follower(context_.empty() ? -1 : context_.back());
      context_.reserve(context_.size() + 1);
      out->push_back({token, std::string(1, static_cast<char>(token))});
      context_.push_back(token);
    }
    return {};
  }

  void check_cancelled() const {
    if (cancelled_) throw eliza::Error(ELIZA_ERR_CANCELLED, "the alphabet was cancelled; reset it to go on");
  }

  void keep(size_t count) {
    context_.resize(count);
    stream_.reset();
    cancelled_ = false;
  }

  const int32_t max_tokens_;
  const size_t capacity_;
  std::atomic<bool> cancelled_{false};
  std::vector<int32_t> context_;
  eliza::TokenStream stream_{this};
};

class ByteTokenizer final : public eliza::Tokenizer {
 public:
  std::vector<int32_t> tokenize(std::string_view text, bool, bool) const override {
    std::vector<int32_t> tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }

  std::string detokenize(const int32_t* tokens, size_t num_tokens, bool, bool) const override {
    std::string text;
    for (size_t i = 0; i < num_tokens; ++i) {
      if (tokens[i] < 0 || tokens[i] >= kVocabulary) {
        throw eliza::Error(ELIZA_ERR_INVALID_ARG, "no token of the alphabet: its tokens are bytes");
      }
      text += static_cast<char>(tokens[i]);
    }
    return text;
  }

  std::optional<std::string> metadata(const std::string& key) const override {
    return key == "general.name" ? std::optional<std::string>(kName) : std::nullopt;
  }
};

class AlphabetFactory final : public LlmBackendFactory {
 public:
  const char* name() const override { return kName; }
  bool available() const override { return true; }
  bool can_serve(const char* bundle_dir) const override {
    eliza::Bundle::open(bundle_dir);
    return true;
  }
  int preference_rank() const override { return 1000; }

  std::shared_ptr<const eliza::Tokenizer> tokenizer(const char*) const override {
    return std::make_shared<ByteTokenizer>();
  }

  LlmBackendSession* open(EliInferenceContext*, const eliza_llm_stream_config_t* config, char**) override {
    return new AlphabetSession(*config);
  }
};

}  // namespace

void eliza_test_alphabet_backend(void) {
  static AlphabetFactory factory;
  llm_backend_register(&factory);
}

int eliza_test_alphabet_sessions(void) { return live_sessions; }

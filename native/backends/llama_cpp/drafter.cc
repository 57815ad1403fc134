#include "native/backends/llama_cpp/drafter.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "native/backends/llama_cpp/owned.h"
#include "native/backends/llama_cpp/runtime.h"
#include "native/backends/llama_cpp/sampler.h"
#include "native/base/error.h"
#include "native/text/quote.h"
#include "src/llama-ext.h"

namespace eliza::llama_cpp {
namespace {

constexpr char kMtpArchitecture[] = "gemma4-assistant";
constexpr char kMtpTarget[] = "gemma4";

// What llama.cpp's own speculative decoding allows: fine-tuned models add a few tokens at the end.
constexpr int32_t kMostExtraTokens = 128;

[[noreturn]] void reject(const Model& model, const std::string& why) {
  throw Error(ELIZA_ERR_INVALID_ARG, "the drafter " + model.path() + " does not fit the bundle's model: " + why +
                                         "; take the drafter that was made for it, or none");
}

// Both have to mean the same by a token id.
void check_vocabulary(const Model& drafter, const Model& target) {
  const int32_t theirs = llama_vocab_n_tokens(drafter.vocab());
  const int32_t ours = llama_vocab_n_tokens(target.vocab());
  if (std::abs(theirs - ours) > kMostExtraTokens) {
    reject(drafter, "its vocabulary has " + std::to_string(theirs) + " tokens instead of " + std::to_string(ours));
  }
  for (int32_t id = 0; id < std::min(theirs, ours); ++id) {
    const char* their_text = llama_vocab_get_text(drafter.vocab(), id);
    const char* our_text = llama_vocab_get_text(target.vocab(), id);
    if (std::strcmp(their_text, our_text) == 0) continue;
    reject(drafter, "token " + std::to_string(id) + " is '" + shown(their_text) + "' in its vocabulary, and '" +
                        shown(our_text) + "' in the model's");
  }
}

// A language model of its own, with a context of its own that follows the target's.
class DraftModel final : public Drafter {
 public:
  DraftModel(std::shared_ptr<const Model> model, Context& target) : target_(target) {
    Context::Options options;
    options.capacity = static_cast<uint32_t>(target.capacity());
    options.threads = target.options().threads;
    context_ = std::make_unique<Context>(std::move(model), options, target.threadpool());
    context_->follow_cancel(target.cancel_flag());
  }

  void prefilled() override { follow(); }

  void decoded(int32_t) override {}

  void draft(size_t limit, std::vector<llama_token>* out) override {
    if (!follow()) return;
    const size_t drafter_size = static_cast<size_t>(llama_vocab_n_tokens(context_->model().vocab()));
    const llama_token target_size = llama_vocab_n_tokens(target_.model().vocab());
    while (out->size() < limit) {
      const llama_token token = argmax(context_->logits(), drafter_size);
      if (token >= target_size || llama_vocab_is_eog(context_->model().vocab(), token)) return;
      out->push_back(token);
      if (out->size() == limit) return;
      context_->append(&token, 1);
      context_->decode();
    }
  }

 private:
  // Decodes the target's tokens, all but the last few of which this context has already. False where it cannot: a
  // target that was tuned may have a token more than its drafter.
  bool follow() {
    const std::vector<llama_token>& tokens = target_.tokens();
    const llama_token size = llama_vocab_n_tokens(context_->model().vocab());
    if (std::any_of(tokens.begin(), tokens.end(), [size](llama_token token) { return token >= size; })) return false;
    context_->decode_prompt(tokens.data(), tokens.size());
    return true;
  }

  Context& target_;
  std::unique_ptr<Context> context_;
};

// A head on the target: from its last hidden state and the next token it predicts the token after that, and a hidden
// state for itself to go on from. It reads the target's keys and values, and has none of its own.
//
// https://github.com/huggingface/transformers/blob/main/docs/source/en/model_doc/gemma4_assistant.md
class MtpHead final : public Drafter {
 public:
  MtpHead(std::shared_ptr<const Model> model, Context& target)
      : model_(std::move(model)), target_(target), threadpool_(target.threadpool()) {
    if (target.model().header().architecture != kMtpTarget) {
      reject(*model_, std::string("it is a ") + kMtpArchitecture + ", which drafts for " + kMtpTarget +
                          ", and this is a " + shown(target.model().header().architecture));
    }
    const int32_t width = llama_model_n_embd_out(target.model().get());
    if (llama_model_n_embd_out(model_->get()) != width) {
      reject(*model_, "it expects hidden states of " + std::to_string(llama_model_n_embd_out(model_->get())) +
                          " values instead of " + std::to_string(width));
    }
    hidden_.resize(static_cast<size_t>(width));

    const Context::Options& options = target.options();
    llama_context_params params = llama_context_default_params();
    params.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
    params.ctx_other = target.get();
    params.n_ctx = llama_n_ctx(target.get());
    params.n_batch = params.n_ubatch = llama_n_ubatch(target.get());
    params.n_seq_max = params.n_outputs_max = 1;
    params.n_threads = params.n_threads_batch = options.threads;
    params.type_k = options.cache_types.k;
    params.type_v = options.cache_types.v;
    params.swa_full = false;
    params.no_perf = true;
    const CallScope scope;
    context_.reset(llama_init_from_model(model_->get(), params));
    if (context_ == nullptr) reject(*model_, "llama.cpp cannot set it up (" + scope.reason() + ")");
    if (threadpool_ != nullptr) llama_attach_threadpool(context_.get(), threadpool_.get(), nullptr);
    llama_set_embeddings_nextn(context_.get(), /*value=*/true, /*masked=*/true);
    batch_.reset(llama_batch_ext_init(context_.get()));
  }

  void prefilled() override { decoded(-1); }

  void decoded(int32_t row) override { keep(target_.hidden(row)); }

  void draft(size_t limit, std::vector<llama_token>* out) override {
    const CallScope scope;
    const size_t vocab_size = static_cast<size_t>(llama_vocab_n_tokens(model_->vocab()));
    const llama_token target_size = llama_vocab_n_tokens(target_.model().vocab());
    // Each drafted token has the position of the first, the one that the target will decode next.
    const llama_pos position = static_cast<llama_pos>(target_.decoded());
    llama_token token = target_.tokens().back();
    while (out->size() < limit && !target_.cancelled()) {
      if (!decode(token, position)) break;
      token = argmax(llama_get_logits_ith(context_.get(), 0), vocab_size);
      if (token >= target_size || llama_vocab_is_eog(model_->vocab(), token)) break;
      out->push_back(token);
      keep(llama_get_embeddings_nextn_ith(context_.get(), 0));
    }
    // The cells are the target's: leave it none that it did not fill.
    llama_memory_seq_rm(llama_get_memory(context_.get()), 0, position, -1);
  }

 private:
  struct BatchDeleter {
    void operator()(llama_batch_ext* batch) const { llama_batch_ext_free(batch); }
  };

  void keep(const float* hidden) {
    if (hidden != nullptr) std::copy_n(hidden, hidden_.size(), hidden_.begin());
  }

  bool decode(llama_token token, llama_pos position) {
    llama_batch_ext_clear(batch_.get());
    const int32_t index = llama_batch_ext_add_token(batch_.get(), 0, token);
    return index == 0 && llama_batch_ext_set_pos(batch_.get(), index, &position) &&
           llama_batch_ext_set_embd_token(batch_.get(), index, {hidden_.data(), 1, hidden_.size()}) &&
           llama_batch_ext_set_output_logits(batch_.get(), index, true) &&
           llama_process(context_.get(), LLAMA_PROCESS_TYPE_DECODE, batch_.get()) == 0;
  }

  std::shared_ptr<const Model> model_;
  Context& target_;
  Context::Threadpool threadpool_;
  ContextPtr context_;
  std::unique_ptr<llama_batch_ext, BatchDeleter> batch_;
  std::vector<float> hidden_;
};

}  // namespace

bool is_mtp_drafter(const Model& drafter) { return drafter.header().architecture == kMtpArchitecture; }

std::unique_ptr<Drafter> make_drafter(std::shared_ptr<const Model> model, Context& target) {
  if (llama_model_is_recurrent(target.model().get()) || llama_model_is_hybrid(target.model().get())) {
    throw Error(ELIZA_ERR_INVALID_ARG, "mtp_drafter_path is set, but the bundle's model ('" +
                                           shown(target.model().header().architecture) +
                                           "') cannot take a rejected token back; leave it null");
  }
  check_vocabulary(*model, target.model());
  if (is_mtp_drafter(*model)) return std::make_unique<MtpHead>(std::move(model), target);
  return std::make_unique<DraftModel>(std::move(model), target);
}

}  // namespace eliza::llama_cpp

#include "native/backends/llama_cpp/embedder.h"

#include <cmath>
#include <string>

#include "llama.h"
#include "native/backends/llama_cpp/kv-cache.h"
#include "native/backends/llama_cpp/owned.h"
#include "native/backends/llama_cpp/runtime.h"
#include "native/backends/llama_cpp/tokenizer.h"
#include "native/base/cpu-topology.h"
#include "native/base/error.h"
#include "native/base/memory-info.h"
#include "native/base/number-text.h"
#include "native/text/context-fit.h"

namespace eliza::llama_cpp {
namespace {

enum llama_pooling_type pooling_type(int pooling) {
  switch (pooling) {
    case 1:
      return LLAMA_POOLING_TYPE_MEAN;
    case 2:
      return LLAMA_POOLING_TYPE_CLS;
    case 3:
      return LLAMA_POOLING_TYPE_LAST;
    default:
      throw Error(ELIZA_ERR_INVALID_ARG,
                  "pooling is " + std::to_string(pooling) + "; use 1 (mean), 2 (first token) or 3 (last token)");
  }
}

// llama.cpp keeps logits of every token beside the embeddings.
void check_memory(const Model& model, size_t num_tokens) {
  const std::optional<uint64_t> available = available_memory();
  const uint64_t rows = static_cast<uint64_t>(llama_vocab_n_tokens(model.vocab())) +
                        8 * static_cast<uint64_t>(llama_model_n_embd(model.get()));
  const uint64_t needed =
      2 * rows * num_tokens * sizeof(float) + cache_bytes(model, static_cast<uint32_t>(num_tokens), CacheTypes());
  if (!available || needed <= *available) return;
  throw Error(ELIZA_ERR_OOM, "embedding a text of " + std::to_string(num_tokens) + " tokens needs about " +
                                 mebibytes(needed) + ", where " + mebibytes(*available) +
                                 " of memory are available; split the text");
}

void normalise(std::vector<float>* vector) {
  double sum = 0;
  for (const float x : *vector) sum += static_cast<double>(x) * x;
  if (!(sum > 0) || !std::isfinite(sum)) {
    throw Error(ELIZA_ERR_FFI_FAULT,
                "the model's embedding of this text has no direction: its length is " + number_text(std::sqrt(sum)));
  }
  const float scale = static_cast<float>(1 / std::sqrt(sum));
  for (float& x : *vector) x *= scale;
}

}  // namespace

std::vector<float> Embedder::embed(std::string_view text, int pooling) {
  llama_context_params params = llama_context_default_params();
  params.pooling_type = pooling_type(pooling);
  std::vector<int32_t> tokens = GgufTokenizer(model_).tokenize(text, /*add_special=*/true, /*parse_special=*/false);
  if (tokens.empty()) throw Error(ELIZA_ERR_INVALID_ARG, "the text has no tokens: there is nothing to embed");
  const size_t most = static_cast<size_t>(llama_model_n_ctx_train(model_->get()));
  if (tokens.size() > most) {
    throw Error(ELIZA_ERR_INVALID_ARG, "the text has " + std::to_string(tokens.size()) +
                                           " tokens, and the model embeds at most " + std::to_string(most) +
                                           ": split it");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  throw_if_stopped(&stop_);
  check_memory(*model_, tokens.size());

  const uint32_t size = static_cast<uint32_t>(tokens.size());
  params.embeddings = true;
  params.n_ctx = params.n_batch = params.n_ubatch = size;
  params.n_seq_max = 1;
  params.n_threads = params.n_threads_batch = default_threads();
  params.no_perf = true;
  params.abort_callback = [](void* flag) { return is_stopped(static_cast<const StopFlag*>(flag)); };
  params.abort_callback_data = const_cast<StopFlag*>(&stop_);
  const CallScope scope;
  const ContextPtr context(llama_init_from_model(model_->get(), params));
  if (context == nullptr) {
    throw Error(ELIZA_ERR_FFI_FAULT, "llama.cpp cannot set up a context for embeddings (" + scope.reason() + ")");
  }
  const llama_batch batch = llama_batch_get_one(tokens.data(), static_cast<int32_t>(size));
  const int32_t status = checked_decode(context.get(), batch, model_->path());
  const float* embedding = status == 0 ? llama_get_embeddings_seq(context.get(), 0) : nullptr;
  if (embedding == nullptr) {
    throw_if_stopped(&stop_);
    throw Error(ELIZA_ERR_FFI_FAULT,
                "llama.cpp computed no embedding, status " + std::to_string(status) + " (" + scope.reason() + ")");
  }
  std::vector<float> result(embedding, embedding + llama_model_n_embd_out(model_->get()));
  normalise(&result);
  return result;
}

}  // namespace eliza::llama_cpp

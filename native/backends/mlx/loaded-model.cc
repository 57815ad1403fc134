#include "native/backends/mlx/loaded-model.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "mlx/memory.h"
#include "mlx/stream.h"
#include "native/backends/mlx/config.h"
#include "native/backends/mlx/weights.h"
#include "native/base/error.h"
#include "native/base/memory-info.h"

namespace eliza::mlx {
namespace {

// What ends a generation, by the file that says how to generate, or else by the model's own.
std::vector<int64_t> end_tokens(const std::string& directory, const Config& config) {
  const Range ids{0, kVocabulary.most};
  const std::optional<Config> generation = Config::read_optional(directory, "generation_config.json");
  std::vector<int64_t> tokens = generation ? generation->integers("eos_token_id", ids) : std::vector<int64_t>{};
  if (!tokens.empty()) return tokens;
  const std::optional<Config> text_config = config.object("text_config");
  return (text_config ? text_config->or_else(config) : config).integers("eos_token_id", ids);
}

// Bytes of a context of `tokens`: caches, and what a prefill chunk works with. An estimate from above.
uint64_t context_bytes(const Model& model, Device device, uint32_t tokens) {
  constexpr uint64_t kStep = 256;  // rows that a cache grows by
  const uint64_t cells = (tokens + kStep - 1) / kStep * kStep;
  const uint64_t chunk = std::min<uint64_t>(cells, kPrefillChunk);
  const uint64_t value_bytes = mx::size_of(model.dtype());
  uint64_t bytes = 0, largest_layer = 0;
  for (const CacheShape& shape : model.cache_shapes()) {
    const uint64_t window = static_cast<uint64_t>(shape.window);
    const uint64_t rows = window == 0 ? cells : std::min(cells, window + chunk);
    const uint64_t layer = 2 * rows * static_cast<uint64_t>(shape.heads * shape.head) * value_bytes;
    bytes += layer;
    largest_layer = std::max(largest_layer, layer);
  }
  bytes += largest_layer;  // growing is copying
  // A chunk's attention scores, and what softmax makes of them; Metal computes them in pieces.
  const uint64_t scores = static_cast<uint64_t>(model.query_heads()) * chunk * cells * sizeof(float);
  return bytes + (device == Device::kCpu ? 2 * scores : 0);
}

// MLX's CPU build does not notice that memory has run out: it crashes. So weights and context have to fit before
// anything is read.
void require_memory(const std::string& directory, uint64_t weight_bytes, const Model& model, Device device,
                    ContextWish context) {
  context.reserved = weight_bytes;
  context.trained = static_cast<uint32_t>(model.trained_context());
  const auto bytes = [&](uint32_t tokens) { return context_bytes(model, device, tokens); };
  const std::optional<uint64_t> available = available_memory();
  const uint64_t needed = weight_bytes + bytes(std::min(context.trained, kLeastContext));
  if (available && needed > *available) {
    throw Error(ELIZA_ERR_OOM, "the model " + directory + " needs about " + mebibytes(needed) +
                                   " for its weights and a small context, where " + mebibytes(*available) +
                                   " of memory are available; free some, or take a smaller model or one of fewer bits");
  }
  choose_context_size(context, bytes);
}

std::string read_identity(const std::string& directory) {
  const Config config = Config::read(directory);
  const Weights weights(directory, config);
  // A process that was forked has its parent's models, but not the threads that they belong to.
  return directory + "\n" + std::to_string(weights.fingerprint() ^ config.fingerprint()) + "\n" +
         std::to_string(getpid()) + "\n";
}

// MLX has a thread for each stream of the CPU, and never ends one: a model that is freed leaves its stream to the next.
class Streams {
 public:
  static Streams& instance() {
    static Streams* const streams = new Streams;
    return *streams;
  }

  mx::Stream take() {
    const mx::Device device = mx::default_device();
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto idle = std::find_if(idle_.begin(), idle_.end(), [&](const mx::Stream& s) { return s.device == device; });
    // "Unsafe", since nothing keeps two threads from using it at once: one model's thread has it at a time.
    if (idle == idle_.end()) return mx::new_thread_unsafe_stream(device);
    const mx::Stream stream = *idle;
    idle_.erase(idle);
    return stream;
  }

  void give_back(const mx::Stream& stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(stream);
  }

 private:
  std::mutex mutex_;
  std::vector<mx::Stream> idle_;
};

// Loaded models, as long as somebody has them. A model is loaded under the lock: two at once would both look at the
// same free memory.
struct Models {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<const LoadedModel>> loaded;
};

}  // namespace

LoadedModel::LoadedModel(const std::string& directory, Device device, const ContextWish& context)
    : directory_(directory), device_(use_device(device)) {
  try {
    worker_.run([&] { load(context); });
  } catch (...) {
    release();
    throw;
  }
}

void LoadedModel::load(const ContextWish& context) {
  stream_ = Streams::instance().take();
  mx::set_default_stream(*stream_);
  const Config config = Config::read(directory_);
  Weights weights(directory_, config);
  const bool widen = weights.quantised() && *device_ == Device::kCpu;
  if (widen) weights.widen_floats();
  std::unique_ptr<Model> model = make_model(config, weights);
  end_tokens_ = end_tokens(directory_, config);
  fingerprint_ = weights.fingerprint() ^ config.fingerprint();
  // Scales and norms are a small part of a quantised model; widened, they are twice that.
  const uint64_t weight_bytes = weights.bytes() + (widen ? weights.bytes() / 4 : 0);
  require_memory(directory_, weight_bytes, *model, *device_, context);
  mx::eval(weights.kept());
  model_ = std::move(model);
}

LoadedModel::~LoadedModel() { release(); }

// Arrays end on the thread that they belong to.
void LoadedModel::release() {
  worker_.run([this] {
    model_.reset();
    if (!stream_) return;
    try {
      mx::synchronize(*stream_);
      mx::clear_cache();
      Streams::instance().give_back(*stream_);
    } catch (const std::exception&) {
      // What the device failed at has been reported by the call that waited for it; this stream is not used again.
    }
  });
}

std::shared_ptr<const HfTokenizer> LoadedModel::tokenizer() const {
  const std::lock_guard<std::mutex> lock(tokenizer_mutex_);
  if (tokenizer_ == nullptr) tokenizer_ = HfTokenizer::load(directory_);
  return tokenizer_;
}

bool LoadedModel::ends_generation(int32_t token) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
}

uint32_t LoadedModel::context_size(ContextWish wish) const {
  wish.trained = static_cast<uint32_t>(model_->trained_context());
  return choose_context_size(wish, [this](uint32_t tokens) { return context_bytes(*model_, *device_, tokens); });
}

std::shared_ptr<const LoadedModel> acquire_model(const std::string& directory, const ContextWish& context) {
  static Models* const models = new Models;  // leaked: destroying it at exit would race with threads that hold models
  const DeviceChoice choice = choose_device();
  if (!choice.device) throw Error(ELIZA_ERR_NOT_IMPLEMENTED, choice.reason);
  const std::string key = read_identity(directory) + device_name(*choice.device);
  const std::lock_guard<std::mutex> lock(models->mutex);
  for (auto entry = models->loaded.begin(); entry != models->loaded.end();) {
    entry = entry->second.expired() ? models->loaded.erase(entry) : std::next(entry);
  }
  std::weak_ptr<const LoadedModel>& loaded = models->loaded[key];
  std::shared_ptr<const LoadedModel> model = loaded.lock();
  if (model == nullptr) {
    model = std::make_shared<const LoadedModel>(directory, *choice.device, context);
    loaded = model;
  }
  return model;
}

}  // namespace eliza::mlx

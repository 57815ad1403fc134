#include "native/backends/llama_cpp/kv-cache.h"

#include <algorithm>
#include <string_view>

#include "native/base/error.h"
#include "native/base/strings.h"
#include "native/text/context-fit.h"

namespace eliza::llama_cpp {
namespace {

// Those llama.cpp's own tools accept (common/arg.cpp).
constexpr ggml_type kCacheTypes[] = {GGML_TYPE_F32,  GGML_TYPE_F16,    GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                                     GGML_TYPE_Q4_1, GGML_TYPE_IQ4_NL, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1};

// One layer's share of the cache.
struct LayerShape {
  int64_t k_head = 0;  // dimension of a key head; 0: the layer has no cache of its own
  int64_t v_head = 0;
  int64_t heads = 0;
  bool windowed = false;  // sees only the last n_swa tokens
};

// How many layers share a pattern of windowed layers and one full layer, where the file does not say: the defaults of
// llama.cpp's src/models. Architectures that are missing here count as full, which estimates too much.
int64_t default_window_period(const std::string& architecture) {
  constexpr std::pair<std::string_view, int64_t> kPeriods[] = {
      {"gemma2", 2}, {"gemma3", 6},  {"gemma3n", 5}, {"gpt-oss", 2}, {"cohere2", 4},
      {"llama4", 4}, {"exaone4", 4}, {"olmo2", 4},   {"plamo3", 8},  {"afmoe", 4},
  };
  for (const auto& [name, period] : kPeriods) {
    if (name == architecture) return period;
  }
  return 1;  // every layer is full
}

bool is_windowed(const Model& model, size_t layer) {
  if (llama_model_n_swa(model.get()) <= 0) return false;
  const GgufHeader& header = model.header();
  const auto pattern = header.integers.find("attention.sliding_window_pattern");
  if (pattern != header.integers.end() && pattern->second.size() > 1) {
    return header.integer("attention.sliding_window_pattern", layer).value_or(0) != 0;
  }
  const int64_t period =
      header.integer("attention.sliding_window_pattern").value_or(default_window_period(header.architecture));
  return period > 0 && static_cast<int64_t>(layer) % period < period - 1;
}

LayerShape layer_shape(const Model& model, size_t layer) {
  const GgufHeader& header = model.header();
  const int64_t layers = llama_model_n_layer(model.get());
  const int64_t shared = header.integer("attention.shared_kv_layers").value_or(0);
  LayerShape shape;
  if (static_cast<int64_t>(layer) >= layers - shared) return shape;
  const int64_t query_heads = header.integer("attention.head_count", layer).value_or(llama_model_n_head(model.get()));
  shape.heads = header.integer("attention.head_count_kv", layer).value_or(query_heads);
  shape.windowed = is_windowed(model, layer);
  const int64_t default_head = query_heads > 0 ? llama_model_n_embd(model.get()) / query_heads : 0;
  shape.k_head = header.integer("attention.key_length").value_or(default_head);
  shape.v_head = header.integer("attention.value_length").value_or(default_head);
  if (shape.windowed) {
    shape.k_head = header.integer("attention.key_length_swa").value_or(shape.k_head);
    shape.v_head = header.integer("attention.value_length_swa").value_or(shape.v_head);
  }
  return shape;
}

// Values of the state that a layer without attention keeps, whatever the length of the context: from above, since which
// of a hybrid model's layers have none is not asked. Source: llama_hparams::n_embd_r and n_embd_s. Zero for the others.
double state_values(const Model& model) {
  if (!llama_model_is_recurrent(model.get()) && !llama_model_is_hybrid(model.get())) return 0;
  const auto key = [&](const char* name) {
    return static_cast<double>(std::max<int64_t>(0, model.header().integer(name).value_or(0)));
  };
  const double width = llama_model_n_embd(model.get());
  const double conv = key("ssm.conv_kernel");
  const double mamba = conv * (key("ssm.inner_size") + 2 * key("ssm.group_count") * key("ssm.state_size")) +
                       key("ssm.state_size") * key("ssm.inner_size");
  const double rwkv = width * (key("token_shift_count") + key("wkv.head_size"));
  const double kda = key("attention.head_count") * key("kda.head_dim") * (key("kda.head_dim") + 3 * conv);
  return mamba + rwkv + kda + width * key("shortconv.l_cache");
}

ggml_type parse_type(const char* field, const char* name) {
  if (!is_set(name)) return GGML_TYPE_F16;
  std::string known;
  for (const ggml_type type : kCacheTypes) {
    if (std::string_view(name) == ggml_type_name(type)) return type;
    known += (known.empty() ? "" : ", ") + std::string(ggml_type_name(type));
  }
  throw Error(ELIZA_ERR_INVALID_ARG,
              std::string(field) + " is '" + name + "', which is no type of a KV cache; known are " + known);
}

void check_head(const char* field, ggml_type type, int64_t head) {
  const int64_t block = ggml_blck_size(type);
  if (head % block == 0) return;
  throw Error(ELIZA_ERR_INVALID_ARG, std::string(field) + " is '" + ggml_type_name(type) + "', which packs " +
                                         std::to_string(block) + " values into a block, but this model's heads have " +
                                         std::to_string(head) + "; use 'f16'");
}

}  // namespace

CacheTypes cache_types(const Model& model, const char* k, const char* v) {
  CacheTypes types;
  types.k = parse_type("cache_type_k", k);
  types.v = parse_type("cache_type_v", v);
  for (int32_t layer = 0; layer < llama_model_n_layer(model.get()); ++layer) {
    const LayerShape shape = layer_shape(model, static_cast<size_t>(layer));
    check_head("cache_type_k", types.k, shape.k_head);
    check_head("cache_type_v", types.v, shape.v_head);
  }
  return types;
}

uint64_t cache_bytes(const Model& model, uint32_t n_ctx, CacheTypes types) {
  constexpr uint64_t kPadding = 256;  // llama.cpp rounds contexts and windows up to it
  const uint64_t cells = (n_ctx + kPadding - 1) / kPadding * kPadding;
  const uint64_t window = static_cast<uint64_t>(std::max(0, llama_model_n_swa(model.get())));
  const uint64_t window_cells =
      std::min(cells, (window + std::min<uint64_t>(cells, kPrefillChunk) + kPadding - 1) / kPadding * kPadding);
  const double state_bytes = state_values(model) * sizeof(float);
  double bytes = 0;  // of a file that lies, more than 64 bits hold
  for (int32_t layer = 0; layer < llama_model_n_layer(model.get()); ++layer) {
    const LayerShape shape = layer_shape(model, static_cast<size_t>(layer));
    const uint64_t per_cell = static_cast<uint64_t>(shape.heads) *
                              (ggml_row_size(types.k, shape.k_head) + ggml_row_size(types.v, shape.v_head));
    bytes += static_cast<double>(per_cell) * static_cast<double>(shape.windowed ? window_cells : cells) + state_bytes;
  }
  // The attention mask of a chunk, in f32 and as the copy in f16 that flash attention reads.
  bytes += static_cast<double>(cells * std::min<uint64_t>(cells, kPrefillChunk) * (sizeof(float) + sizeof(uint16_t)));
  constexpr double kMost = 1e18;  // an exabyte: what a uint64_t holds, and no machine has
  return static_cast<uint64_t>(std::min(bytes, kMost));
}

uint32_t context_size(const Model& model, int32_t config_size, int32_t manifest_size, CacheTypes types) {
  ContextWish wish;
  wish.config_size = config_size;
  wish.manifest_size = manifest_size;
  wish.trained = static_cast<uint32_t>(std::max(1, llama_model_n_ctx_train(model.get())));
  wish.advice = "more with cache_type_k and cache_type_v 'q8_0'";
  return choose_context_size(wish, [&](uint32_t n_ctx) { return cache_bytes(model, n_ctx, types); });
}

}  // namespace eliza::llama_cpp

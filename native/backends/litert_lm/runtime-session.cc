#include "native/backends/litert_lm/runtime-session.h"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "native/backends/litert_lm/bounded.h"
#include "native/backends/litert_lm/owned.h"
#include "native/base/error.h"

namespace eliza::litert_lm {
namespace {

Owned<LiteRtLmSessionConfig> session_config(const Engine& engine, const RuntimeSessionOptions& options) {
  const Api& api = engine.api();
  const SamplingSettings& sampling = options.sampling;
  const Owned<LiteRtLmSamplerParams> params(api.sampler_params_create(kTopP), api.sampler_params_delete);
  Owned<LiteRtLmSessionConfig> config(api.session_config_create(), api.session_config_delete);
  if (params == nullptr || config == nullptr) throw std::bad_alloc();
  // Greedy is a choice of one: the sampler of that name is not there on the CPU.
  const int32_t all = engine.vocabulary().size();
  const bool greedy = sampling.greedy();
  api.sampler_params_set_top_k(params.get(), greedy ? 1 : sampling.top_k > 0 ? std::min(sampling.top_k, all) : all);
  api.sampler_params_set_top_p(params.get(), greedy ? 1.0f : sampling.top_p);
  api.sampler_params_set_temperature(params.get(), greedy ? 1.0f : sampling.temperature);
  api.sampler_params_set_seed(params.get(), options.seed);
  api.session_config_set_sampler_params(config.get(), params.get());
  api.session_config_set_apply_prompt_template(config.get(), false);
  if (options.max_tokens > 0) api.session_config_set_max_output_tokens(config.get(), options.max_tokens);
  return config;
}

}  // namespace

// The runtime's session, deleted by whoever lets go of it last.
struct RuntimeSession::Handle {
  Handle(std::shared_ptr<const Engine> owner, const RuntimeSessionOptions& options) : engine(std::move(owner)) {
    session = engine->api().engine_create_session(engine->get(), session_config(*engine, options).get());
    if (session != nullptr) return;
    throw Error(ELIZA_ERR_FFI_FAULT, "LiteRT-LM cannot open a session (" + last_error(engine->api()) +
                                         "); close other streams of this model, or reset this one to try again");
  }
  ~Handle() { engine->api().session_delete(session); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  std::shared_ptr<const Engine> engine;
  LiteRtLmSession* session;
};

RuntimeSession::RuntimeSession(std::shared_ptr<const Engine> engine, const RuntimeSessionOptions& options,
                               std::shared_ptr<std::atomic<bool>> cancelled)
    : engine_(std::move(engine)), limit_(options.limit), cancelled_(std::move(cancelled)) {
  const std::shared_ptr<Floor::Turn> turn = engine_->floor()->enter(*cancelled_, limit_);
  const auto made =
      run_bounded(limit_, [engine = engine_, options, turn] { return std::make_shared<Handle>(engine, options); });
  if (!made) throw timed_out("opened a session", limit_);
  handle_ = *made;
}

RuntimeSession::~RuntimeSession() {
  if (end_generation()) return;  // and a call that has not come back lets go of the handle when it does
  // The decode goes on. To delete its session is to wait for it, so that is left to a thread.
  struct Doomed {
    std::shared_ptr<Handle> handle;
    std::shared_ptr<Generation> generation;
  };
  auto* const doomed = new (std::nothrow) Doomed{std::move(handle_), std::move(generation_)};
  if (doomed == nullptr) return;
  stay_loaded();
  try {
    std::thread([doomed] {
      doomed->handle.reset();
      doomed->generation->disown();
      delete doomed;
    }).detach();
  } catch (const std::exception&) {
    // No thread, or no memory for one. Then it stays, for the callbacks.
  }
}

void RuntimeSession::prefill(const std::string& text) {
  const std::shared_ptr<Floor::Turn> turn = engine_->floor()->enter(*cancelled_, limit_);
  const auto reason = run_bounded(limit_, [handle = handle_, text, turn]() -> std::optional<std::string> {
    const Api& api = handle->engine->api();
    const Owned<LiteRtLmInputData> input(api.input_data_create(kText, text.data(), text.size()), api.input_data_delete);
    if (input == nullptr) throw std::bad_alloc();
    const LiteRtLmInputData* const inputs[] = {input.get()};
    if (api.session_run_prefill(handle->session, inputs, 1) == 0) return std::nullopt;
    return last_error(api);
  });
  if (!reason) throw timed_out("prefilled the prompt", limit_);
  if (*reason) {
    throw Error(ELIZA_ERR_FFI_FAULT, "LiteRT-LM cannot prefill the prompt (" + **reason +
                                         "); reset the stream, and prefill less or something else");
  }
}

void RuntimeSession::decode() {
  std::shared_ptr<Floor::Turn> turn = engine_->floor()->enter(*cancelled_, limit_);
  generation_ = std::make_shared<Generation>(engine_->api(), engine_->floor(), cancelled_);
  generation_->start(handle_->session, std::move(turn));
}

Generation::Chunk RuntimeSession::next() {
  Generation::Chunk chunk = generation_->next(limit_);
  if (chunk.text || chunk.ended || *cancelled_) return chunk;
  silent_ = true;
  throw timed_out("given a token", limit_);
}

bool RuntimeSession::end_generation() noexcept {
  if (generation_ == nullptr) return true;
  generation_->stop();
  // Who has been silent for that long once is not waited for again.
  if (!generation_->wait_for_end(silent_ ? std::chrono::seconds(0) : limit_)) return false;
  generation_.reset();
  return true;
}

// The runtime makes it wait for its thread like any other work.
bool RuntimeSession::rewind(size_t step) {
  const std::shared_ptr<Floor::Turn> turn = engine_->floor()->enter(*cancelled_, limit_);
  return engine_->api().session_rewind_to_step(handle_->session, static_cast<int>(step)) == 0;
}

bool RuntimeSession::has_reached(size_t step) {
  const std::shared_ptr<Floor::Turn> turn = engine_->floor()->try_enter();
  return turn != nullptr && engine_->api().session_rewind_to_step(handle_->session, static_cast<int>(step)) == 0;
}

}  // namespace eliza::litert_lm

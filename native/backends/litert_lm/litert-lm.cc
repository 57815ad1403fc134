#include "native/backends/litert_lm/litert-lm.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "native/backends/litert_lm/accelerator.h"
#include "native/backends/litert_lm/bounded.h"
#include "native/backends/litert_lm/engine.h"
#include "native/backends/litert_lm/library.h"
#include "native/backends/litert_lm/model-header.h"
#include "native/backends/litert_lm/session.h"
#include "native/backends/litert_lm/tokenizer.h"
#include "native/base/cpu-topology.h"
#include "native/base/error.h"
#include "native/base/strings.h"
#include "native/bundle/bundle.h"
#include "native/text/context-size.h"

namespace eliza::litert_lm {
namespace {

constexpr char kNoModel[] = "the bundle holds no text/*.litertlm";

std::optional<Artifact> find_artifact(const char* bundle_dir) {
  return Bundle::open(bundle_dir).text_artifact(RuntimeClass::kLitertLm);
}

bool any_present(const std::vector<Rung>& rungs) {
  return std::any_of(rungs.begin(), rungs.end(), [](const Rung& rung) { return rung.present; });
}

// What an open needs, found. Throws Error, whose message says what is not there.
struct Place {
  const Library* library;
  Artifact artifact;
  Rung rung;
};

Place find_place(const char* bundle_dir) {
  const std::optional<Artifact> artifact = find_artifact(bundle_dir);
  if (!artifact) throw Error(ELIZA_ERR_BUNDLE_INVALID, kNoModel);
  const ModelHeader model = read_model_header(artifact->path);
  std::string why;
  const Library* const library = find_library(bundle_dir, &why);
  if (library == nullptr) throw Error(ELIZA_ERR_NOT_IMPLEMENTED, why);
  const std::vector<Rung> rungs = host_ladder(library);
  if (!any_present(rungs)) throw Error(ELIZA_ERR_NOT_IMPLEMENTED, no_accelerator(rungs));
  const Placement placement = place(model, rungs);
  if (!placement.rung) throw Error(ELIZA_ERR_BUNDLE_INVALID, artifact->path + ": " + placement.why);
  return {library, *artifact, *placement.rung};
}

std::shared_ptr<const Engine> open_engine(const Place& place, int32_t config_context_size) {
  EngineSettings settings;
  settings.model_path = place.artifact.path;
  settings.rung = place.rung;
  settings.context_size = requested_context(config_context_size, place.artifact.context_size).tokens;
  settings.threads = default_threads();
  return acquire_engine(*place.library, settings, wait_limit());
}

class Factory final : public LlmBackendFactory {
 public:
  const char* name() const override { return "litert-lm"; }

  bool available() const override {
    std::string why;
    const Library* const library = find_library(nullptr, &why);
    return library != nullptr && any_present(host_ladder(library));
  }

  // An ambiguous, broken or unfit model throws, and the selector shows the message.
  bool can_serve(const char* bundle_dir) const override {
    const std::optional<Artifact> artifact = find_artifact(bundle_dir);
    if (!artifact) return false;
    const ModelHeader model = read_model_header(artifact->path);
    std::string why;
    const Library* const library = find_library(bundle_dir, &why);  // the bundle may bring it
    const std::vector<Rung> rungs = host_ladder(library);
    if (!any_present(rungs)) return true;  // it could, were there something to run on
    const Placement placement = place(model, rungs);
    if (!placement.rung) throw Error(ELIZA_ERR_BUNDLE_INVALID, artifact->path + ": " + placement.why);
    return true;
  }

  int preference_rank() const override {
    std::string why;
    for (const Rung& rung : host_ladder(find_library(nullptr, &why))) {
      if (rung.present) return accelerator_rank(rung.accelerator);
    }
    return accelerator_rank(Accelerator::kCpu);
  }

  int preference_rank_for(const char* bundle_dir) const override {
    return accelerator_rank(find_place(bundle_dir).rung.accelerator);
  }

  bool can_honour(const eliza_llm_stream_config_t* config, std::string* why) const override {
    if (is_set(config->gbnf_grammar)) {
      *why = "LiteRT-LM cannot constrain its sampling to gbnf_grammar; leave it out, or use llama.cpp";
    } else if (config->draft_max > 0 && is_set(config->mtp_drafter_path)) {
      *why = "LiteRT-LM takes no drafter from a file of its own (mtp_drafter_path); leave it out, or use llama.cpp";
    }
    return why->empty();
  }

  std::string explain(const char* bundle_dir) const override {
    std::string problems;
    const auto add = [&](const std::string& problem) { problems += (problems.empty() ? "" : "; ") + problem; };
    std::string why;
    const Library* const library = find_library(bundle_dir, &why);
    if (!find_artifact(bundle_dir)) add(kNoModel);
    if (library == nullptr) add(why);
    const std::vector<Rung> rungs = host_ladder(library);
    if (!any_present(rungs)) add(no_accelerator(rungs));
    return problems;
  }

  std::string remark(const char* bundle_dir) const override {
    const std::optional<Artifact> artifact = find_artifact(bundle_dir);
    std::string why;
    const Library* const library = find_library(bundle_dir, &why);
    if (!artifact || library == nullptr) return {};
    return passed_over(read_model_header(artifact->path), host_ladder(library));
  }

  std::shared_ptr<const Tokenizer> tokenizer(const char* bundle_dir) const override {
    const Place place = find_place(bundle_dir);
    std::shared_ptr<const Engine> engine = find_engine(place.artifact.path);
    if (engine == nullptr) engine = open_engine(place, /*config_context_size=*/0);
    return std::make_shared<LiteRtTokenizer>(std::move(engine));
  }

  LlmBackendSession* open(EliInferenceContext* context, const eliza_llm_stream_config_t* config, char**) override {
    const char* const bundle_dir = llm_backend_context_bundle_dir(context);
    if (bundle_dir == nullptr) throw Error(ELIZA_ERR_INVALID_ARG, "the context is closed; open another one");
    return new Session(open_engine(find_place(bundle_dir), context_size_of(*config)), *config);
  }
};

}  // namespace

LlmBackendFactory* factory() {
  static Factory* const instance = new Factory;
  return instance;
}

}  // namespace eliza::litert_lm

#include "native/seam/selection.h"

#include <cstdlib>
#include <new>

#include "native/base/error.h"
#include "native/bundle/bundle.h"
#include "native/seam/builtins.h"
#include "native/seam/registry.h"

namespace eliza {

namespace {

BundleFacts bundle_facts(const std::string& directory) {
  BundleFacts facts;
  facts.directory = directory;
  try {
    facts.has_text_gguf = Bundle::open(directory).has_text_artifact(RuntimeClass::kLlamaCpp);
  } catch (const Error& error) {
    facts.error = error.what();
  }
  return facts;
}

}  // namespace

SelectionRequest request_for_bundle(const std::string& bundle_dir, const eliza_llm_stream_config_t* config, Ask ask) {
  SelectionRequest request;
  if (const char* value = std::getenv(kBackendVariable)) request.env_value = value;
  request.bundle = bundle_facts(bundle_dir);
  request.registered = Registry::instance().snapshot();
  request.known = known_backends();
  request.config = config;
  request.ask = ask;
  return request;
}

}  // namespace eliza

LlmBackendFactory* llm_backend_select(const char* bundle_dir, const eliza_llm_stream_config_t* config,
                                      char** out_error) {
  if (out_error == nullptr) return nullptr;
  *out_error = nullptr;

  eliza::Decision decision;
  if (bundle_dir == nullptr) {
    decision.outcome = eliza::Decision::Outcome::kError;
    decision.error = "The bundle directory is null. Pass the path of a bundle.";
  } else {
    decision = eliza::decide(eliza::request_for_bundle(bundle_dir, config, eliza::Ask::kOpen));
  }
  if (decision.outcome == eliza::Decision::Outcome::kError) {
    eliza::set_error(out_error, ELIZA_ERR_INVALID_ARG, decision.error);
    // Without memory for the message, null and null would read as "use llama.cpp".
    if (*out_error == nullptr) throw std::bad_alloc();
  }
  return decision.factory;
}

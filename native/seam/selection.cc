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

void refuse(char** out_error, int status, const std::string& message) {
  set_error(out_error, status, message);
  // Without memory for the message, null and null would read as "use llama.cpp".
  if (*out_error == nullptr) throw std::bad_alloc();
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

  if (bundle_dir == nullptr) {
    eliza::refuse(out_error, ELIZA_ERR_INVALID_ARG, "The bundle directory is null. Pass the path of a bundle.");
    return nullptr;
  }
  const eliza::SelectionRequest request = eliza::request_for_bundle(bundle_dir, config, eliza::Ask::kOpen);
  const eliza::Decision decision = eliza::decide(request);
  if (decision.outcome == eliza::Decision::Outcome::kError) {
    const int status = request.bundle.error.empty() ? ELIZA_ERR_INVALID_ARG : ELIZA_ERR_BUNDLE_INVALID;
    eliza::refuse(out_error, status, decision.error);
  }
  return decision.factory;
}

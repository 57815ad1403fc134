// Where a request to the selector comes from in earnest: the environment, the bundle directory, the process-wide
// registry and the built-in table. llm_backend_select (llm-backend.h) puts it for an open, report.h for people.
#pragma once

#include <string>

#include "native/seam/selector.h"

namespace eliza {

inline constexpr char kBackendVariable[] = "ELIZA_LLM_BACKEND";

// The request for a bundle as things are now; nothing is cached. A directory that is no bundle is a fact of it
// (BundleFacts::error), not an exception.
SelectionRequest request_for_bundle(const std::string& bundle_dir, const eliza_llm_stream_config_t* config, Ask ask);

}  // namespace eliza

// A decision as JSON, for eliza_inference_llm_backend_report and what shows it (docs/backends.md):
//
//   {
//     "env": {"name": "ELIZA_LLM_BACKEND", "value": "mlx-coreml"},   the variable as it is set; null: unset
//     "bundle": "path/to/bundle",
//     "chosen": null,                     the backend an open would use now; null where it would fail
//     "error": "ELIZA_LLM_BACKEND is …",  the message it would fail with; null where a backend is chosen
//     "backends": [                       llama.cpp, the registered in their order, the only known
//       {
//         "name": "mlx-coreml",
//         "compiled": true,               the gate of this backend is on in this build
//         "available": false,             its dependency is on this host       ┐
//         "can_serve": false,             the bundle holds an artifact for it  ├ null: not asked
//         "rank": null,                   the higher wins; llama.cpp is 0      ┘
//         "chosen": false,
//         "reason": "…"                   why chosen, or why not; never empty
//       }
//     ],
//     "gpu": {                            what n_gpu_layers of a stream on llama.cpp can reach; null: not looked at,
//       "devices": [],                    because ELIZA_LLM_BACKEND names another backend
//       "reason": "…"                     why there is none; null where there is one
//     },
//     "live": {"contexts": 1, "streams": 0, "models": 0}   that this process has open or loaded now
//   }
//
// These keys stay; more may come.
#pragma once

#include <functional>
#include <string>

#include "native/seam/gpu-facts.h"
#include "native/seam/selector.h"

namespace eliza {

// The report on the selection for `bundle_dir` as things are now. Asks every backend, and `gpus`, unless
// ELIZA_LLM_BACKEND names one. A bundle that cannot be read is an "error" in the report and throws nothing.
std::string backend_report(const std::string& bundle_dir, const std::function<GpuFacts()>& gpus = {});

// The same of any decision and the request it answers, without "gpu" and "live".
std::string decision_to_json(const SelectionRequest& request, const Decision& decision);

}  // namespace eliza

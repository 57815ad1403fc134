#include "native/seam/report.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "native/base/live-count.h"
#include "native/seam/selection.h"

namespace eliza {

namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json json_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json decision_json(const SelectionRequest& request, const Decision& decision) {
  Json chosen = nullptr;
  Json backends = Json::array();
  for (const BackendRow& row : decision.backends) {
    if (row.chosen) chosen = row.name;
    backends.push_back({{"name", row.name},
                        {"compiled", row.compiled},
                        {"available", json_or_null(row.available)},
                        {"can_serve", json_or_null(row.can_serve)},
                        {"rank", json_or_null(row.rank)},
                        {"chosen", row.chosen},
                        {"reason", row.reason}});
  }
  const bool failed = decision.outcome == Decision::Outcome::kError;
  return {{"env", {{"name", kBackendVariable}, {"value", json_or_null(request.env_value)}}},
          {"bundle", request.bundle.directory},
          {"chosen", std::move(chosen)},
          {"error", failed ? Json(decision.error) : Json(nullptr)},
          {"backends", std::move(backends)}};
}

Json gpu_json(const GpuFacts& facts) {
  return {{"devices", facts.devices}, {"reason", facts.devices.empty() ? Json(facts.reason) : Json(nullptr)}};
}

// Paths and the variable may hold bytes that are not UTF-8, which JSON cannot: those become U+FFFD.
std::string to_text(const Json& report) {
  constexpr int kCompact = -1;
  return report.dump(kCompact, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace

std::string decision_to_json(const SelectionRequest& request, const Decision& decision) {
  return to_text(decision_json(request, decision));
}

std::string backend_report(const std::string& bundle_dir, const std::function<GpuFacts()>& gpus) {
  const SelectionRequest request = request_for_bundle(bundle_dir, nullptr, Ask::kReport);
  const Decision decision = decide(request);
  Json report = decision_json(request, decision);
  // Whoever names another backend wants no device of llama.cpp's woken.
  const bool another_is_named = decision.named && !decision.backends.front().chosen;
  report["gpu"] = gpus && !another_is_named ? gpu_json(gpus()) : Json(nullptr);
  report["live"] = {{"contexts", live_count(Live::kContexts)},
                    {"streams", live_count(Live::kStreams)},
                    {"models", live_count(Live::kModels)}};
  return to_text(report);
}

}  // namespace eliza

// ELIZA_LLM_BACKEND: any bytes lead to a decision, and a value that names no backend to an error that lists them all.
#include "native/seam/selector.h"

#include <string>

#include "native/base/error.h"
#include "tests/fuzz/input.h"

namespace {

class Factory final : public LlmBackendFactory {
 public:
  Factory(const char* name, uint8_t answers) : name_(name), answers_(answers) {}

  const char* name() const override { return name_; }
  bool available() const override { return answer(0); }
  bool can_serve(const char*) const override { return answer(2); }
  int preference_rank() const override { return answers_ % 7 - 3; }
  LlmBackendSession* open(EliInferenceContext*, const eliza_llm_stream_config_t*, char**) override { return nullptr; }

 private:
  bool answer(int bit) const {
    if ((answers_ >> bit & 3) == 3) throw eliza::Error(ELIZA_ERR_FFI_FAULT, "no \xff answer");
    return (answers_ >> bit & 1) != 0;
  }

  const char* const name_;
  const uint8_t answers_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using eliza::fuzz::require;
  eliza::fuzz::Input input(data, size);
  const uint8_t flags = input.byte();
  Factory first("litert-lm", input.byte());
  Factory second("mlx-coreml", input.byte());
  eliza::SelectionRequest request;
  if ((flags & 1) != 0) request.registered.push_back({first.name(), &first});
  if ((flags & 2) != 0) request.registered.push_back({second.name(), &second});
  request.known = {{"litert-lm", "--flag", (flags & 1) != 0}, {"mlx-coreml", "--flag", (flags & 2) != 0}};
  request.bundle.directory = "/bundle";
  request.bundle.has_text_gguf = (flags & 4) != 0;
  request.ask = (flags & 8) != 0 ? eliza::Ask::kOpen : eliza::Ask::kReport;
  if ((flags & 16) == 0) request.env_value = std::string(input.rest());

  const eliza::Decision decision = eliza::decide(request);
  require(decision.backends.size() == 3, "a row for each backend");
  int chosen = 0;
  for (const eliza::BackendRow& row : decision.backends) {
    chosen += row.chosen ? 1 : 0;
    require(row.reason == eliza::to_valid_utf8(row.reason), "a reason is UTF-8");
  }
  if (decision.outcome == eliza::Decision::Outcome::kError) {
    eliza::fuzz::require_message(decision.error);
    require(decision.error.size() < 4000, "a message for reading");
    require(chosen == 0, "nothing is chosen by an error");
  } else {
    require(chosen <= 1, "one backend is chosen");
    require((decision.factory != nullptr) == (decision.outcome == eliza::Decision::Outcome::kFactory), "a factory");
  }
  return 0;
}

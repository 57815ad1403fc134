// Entry points: the library, contexts and memory.
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "native/backends/llama_cpp/llama-cpp.h"
#include "native/base/error.h"
#include "native/bundle/bundle.h"
#include "native/ffi/arguments.h"
#include "native/ffi/context.h"
#include "native/ffi/entry.h"
#include "native/include/eliza-inference-ffi.h"

namespace eliza {
namespace {

#define ELIZA_QUOTE_(x) #x
#define ELIZA_QUOTE(x) ELIZA_QUOTE_(x)
constexpr char kAbiVersion[] = ELIZA_QUOTE(ELIZA_INFERENCE_ABI_VERSION);

// The models of text streams are mapped while a stream has them open, so advice on those is taken and nothing is done.
int advise(EliInferenceContext* context, const char* region) {
  ContextPin pin(context);
  require(region, "region");
  const std::string_view name = region;
  for (const char* text_region : {"text", "mtp", "dflash"}) {
    if (name == text_region) return ELIZA_OK;
  }
  for (const char* other_region : {"tts", "asr", "vad", "wakeword"}) {
    if (name == other_region) {
      throw Error(ELIZA_ERR_NOT_IMPLEMENTED, "region \"" + std::string(name) + "\": this library serves text only");
    }
  }
  throw Error(ELIZA_ERR_INVALID_ARG,
              "no region \"" + std::string(name) + "\"; there are text, mtp, dflash, tts, asr, vad and wakeword");
}

}  // namespace
}  // namespace eliza

const char* eliza_inference_abi_version(void) { return eliza::kAbiVersion; }

EliInferenceContext* eliza_inference_create(const char* bundle_dir, char** out_error) {
  return eliza::enter_opening<EliInferenceContext>(out_error, [&] {
    eliza::require_text(bundle_dir, "bundle_dir");
    eliza::llama_cpp::check_host_cpu();
    const eliza::Bundle bundle = eliza::Bundle::open(bundle_dir);
    auto context = std::make_unique<eliza::Context>(bundle.directory());
    const uintptr_t id = eliza::handle_table().add(eliza::HandleKind::kContext, std::move(context));
    return reinterpret_cast<EliInferenceContext*>(id);
  });
}

void eliza_inference_destroy(EliInferenceContext* context) {
  eliza::guard(nullptr, [&] {
    return eliza::handle_table().close(eliza::HandleKind::kContext, reinterpret_cast<uintptr_t>(context));
  });
}

void eliza_inference_free_string(char* string) { std::free(string); }

void eliza_inference_free_tokens(int* tokens) { std::free(tokens); }

int eliza_inference_mmap_acquire(EliInferenceContext* context, const char* region, char** out_error) {
  return eliza::enter(out_error, [&] { return eliza::advise(context, region); });
}

int eliza_inference_mmap_evict(EliInferenceContext* context, const char* region, char** out_error) {
  return eliza::enter(out_error, [&] { return eliza::advise(context, region); });
}

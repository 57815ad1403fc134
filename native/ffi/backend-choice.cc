#include "native/ffi/backend-choice.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "native/backends/llama_cpp/llama-cpp.h"
#include "native/base/error.h"
#include "native/bundle/bundle.h"
#include "native/ffi/message.h"
#include "native/seam/selection.h"
#include "native/seam/selector.h"
#include "native/text/quote.h"

namespace eliza {
namespace {

constexpr char kLlamaCpp[] = "llama.cpp";

bool has_gguf(const std::string& bundle_dir) {
  return Bundle::open(bundle_dir).has_text_artifact(RuntimeClass::kLlamaCpp);
}

// nullptr: llama.cpp.
LlmBackendFactory* select(const std::string& bundle_dir, const eliza_llm_stream_config_t* config) {
  llm_backend_register_builtins();
  Message error;
  take_error_status();
  LlmBackendFactory* const factory = llm_backend_select(bundle_dir.c_str(), config, error.out());
  if (error) throw Error(take_error_status(), error.text());
  return factory;
}

// "holds a.bin, b.bin", for somebody who wonders why nothing in there is a model.
std::string text_listing(const std::string& bundle_dir) {
  constexpr size_t kMostNames = 8;
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(bundle_dir + "/text", error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    const bool is_directory = entry->is_directory(unknown);
    names.push_back(shown(entry->path().filename().string()) + (is_directory ? " (a directory)" : ""));
  }
  if (error) return "cannot be read (" + error.message() + ")";
  if (names.empty()) return "is empty";
  std::sort(names.begin(), names.end());
  std::string listing = "holds ";
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) listing += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kMostNames) listing += " and " + std::to_string(names.size() - kMostNames) + " more";
  return listing;
}

// Why a backend was passed over. Its own words are asked for only where it has been asked already whether it is
// available: to explain is not worth to wake another runtime.
std::string reason_of(const BackendRow& row, const std::string& bundle_dir) {
  if (row.factory != nullptr && row.available == false) {
    try {
      const std::string words = row.factory->explain(bundle_dir.c_str());
      if (!words.empty()) return words;
    } catch (const std::exception&) {
      // Then what the selector knows has to do.
    }
  }
  return row.reason;
}

// The fallback of a bundle that it cannot serve. llama.cpp would say that there is no text/*.gguf; the user of a bundle
// for another runtime wants to know why that one did not answer.
Error nobody_serves(const std::string& bundle_dir, const eliza_llm_stream_config_t* config) {
  std::string message = "no backend serves the bundle \"" + bundle_dir + "\": its text/ " + text_listing(bundle_dir) +
                        "; " + kLlamaCpp + " needs a text/*.gguf, a file with its suffix in lower case";
  const Decision decision = decide(request_for_bundle(bundle_dir, config, Ask::kOpen));
  for (const BackendRow& row : decision.backends) {
    if (row.name != kLlamaCpp) message += "; " + row.name + ": " + reason_of(row, bundle_dir);
  }
  return Error(ELIZA_ERR_BUNDLE_INVALID, message);
}

}  // namespace

OpenedSession open_session(EliInferenceContext* handle, Context& context, const eliza_llm_stream_config_t& config) {
  const std::string& bundle_dir = context.bundle_dir();
  LlmBackendFactory* const factory = select(bundle_dir, &config);
  if (factory == nullptr) {
    if (!has_gguf(bundle_dir)) throw nobody_serves(bundle_dir, &config);
    return {kLlamaCpp, context.llama_cpp().open(config)};
  }
  Message error;
  take_error_status();
  std::unique_ptr<LlmBackendSession> session(factory->open(handle, &config, error.out()));
  const std::string name = factory->name();
  if (session == nullptr) {
    const int status = take_error_status();  // of a message that set_error left; a backend may have left its own
    throw Error(status < 0 ? status : ELIZA_ERR_FFI_FAULT,
                error ? error.text() : name + " opened no stream, and gave no reason");
  }
  return {name, std::move(session)};
}

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& bundle_dir) {
  if (has_gguf(bundle_dir)) return llama_cpp::open_tokenizer(bundle_dir);
  LlmBackendFactory* const factory = select(bundle_dir, nullptr);
  if (factory == nullptr) throw nobody_serves(bundle_dir, nullptr);
  std::shared_ptr<const Tokenizer> tokenizer = factory->tokenizer(bundle_dir.c_str());
  if (tokenizer == nullptr) {
    throw Error(ELIZA_ERR_NOT_IMPLEMENTED, std::string(factory->name()) + " has no tokenizer for the bundle \"" +
                                               bundle_dir + "\"; a text/*.gguf of the same model would bring one");
  }
  return tokenizer;
}

void require_llama_cpp(const std::string& bundle_dir, const char* what) {
  if (has_gguf(bundle_dir)) return;
  LlmBackendFactory* const factory = select(bundle_dir, nullptr);
  if (factory == nullptr) return;  // llama.cpp says what it lacks
  throw Error(ELIZA_ERR_NOT_IMPLEMENTED, std::string(factory->name()) + ", which serves the bundle \"" + bundle_dir +
                                             "\", has no " + what + "; llama.cpp has, with a text/*.gguf");
}

}  // namespace eliza

// What an EliInferenceContext* stands for: a bundle, and what is loaded from it once for all its streams.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "native/backends/llama_cpp/llama-cpp.h"
#include "native/base/live-count.h"
#include "native/ffi/handle-table.h"
#include "native/include/eliza-inference-ffi.h"
#include "native/text/tokenizer.h"

namespace eliza {

class Context final : public HandleObject {
 public:
  explicit Context(std::string bundle_dir) : bundle_dir_(std::move(bundle_dir)), llama_cpp_(bundle_dir_) {}

  const std::string& bundle_dir() const { return bundle_dir_; }

  void stop() noexcept override { llama_cpp_.stop(); }

  // The in-tree backend, for whatever of the bundle it serves.
  llama_cpp::Engine& llama_cpp() { return llama_cpp_; }

  // The bundle's vocabulary, loaded at the first call. Throws Error.
  std::shared_ptr<const Tokenizer> tokenizer();

 private:
  const LiveCount live_{Live::kContexts};
  const std::string bundle_dir_;
  llama_cpp::Engine llama_cpp_;
  std::mutex tokenizer_mutex_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

// A context, for the length of a call. Throws Error where the handle is no open context.
class ContextPin {
 public:
  explicit ContextPin(const EliInferenceContext* handle)
      : pin_(handle_table().pin(HandleKind::kContext, reinterpret_cast<uintptr_t>(handle))) {}

  Context* operator->() const { return static_cast<Context*>(pin_.object()); }
  Context& operator*() const { return *operator->(); }

 private:
  HandleTable::Pin pin_;
};

}  // namespace eliza

// A session of the runtime, with its traps: it is dead after an error, though it does not say so; deleting it waits for
// its decode; and a callback of that decode may come when nobody wants it any more.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "native/backends/litert_lm/engine.h"
#include "native/backends/litert_lm/generation.h"
#include "native/text/sampling.h"

namespace eliza::litert_lm {

struct RuntimeSessionOptions {
  SamplingSettings sampling;
  int32_t seed = 0;
  int32_t max_tokens = 0;  // of one generation; 0: no bound
  std::chrono::seconds limit{};
};

// For one thread. What throws leaves it dead: destroy it.
class RuntimeSession {
 public:
  // `cancelled` is looked at by what waits, and by the runtime's thread.
  RuntimeSession(std::shared_ptr<const Engine> engine, const RuntimeSessionOptions& options,
                 std::shared_ptr<std::atomic<bool>> cancelled);
  ~RuntimeSession();
  RuntimeSession(const RuntimeSession&) = delete;
  RuntimeSession& operator=(const RuntimeSession&) = delete;

  // Appends a text to the context: with the runtime's own start token, where the context is empty.
  void prefill(const std::string& text);

  // Starts to generate. Only after a prefill or a rewind.
  void decode();

  bool decoding() const { return generation_ != nullptr; }  // until end_generation

  // Waits for what decode started to say something: text, or its end; neither, once cancelled.
  Generation::Chunk next();

  // Stops what decode started, where it has not ended; false where it does not stop in time: the session is dead.
  bool end_generation() noexcept;

  // Goes back to the first `step` tokens of the context; false where it has not as many, or the session is dead. Not
  // while it decodes.
  bool rewind(size_t step);

  // Whether the context has `step` tokens, to which it then goes back; false also where another session has the floor,
  // for this is not worth a wait.
  bool has_reached(size_t step);

 private:
  struct Handle;

  const std::shared_ptr<const Engine> engine_;
  const std::chrono::seconds limit_;
  const std::shared_ptr<std::atomic<bool>> cancelled_;
  std::shared_ptr<Handle> handle_;  // shared with a call that has not come back
  std::shared_ptr<Generation> generation_;
  bool silent_ = false;  // next has waited for it in vain
};

}  // namespace eliza::litert_lm

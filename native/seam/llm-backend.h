// The seam between the C ABI and the runtimes that answer it.
//
// A runtime takes part by implementing two interfaces: LlmBackendFactory, a static singleton that says whether it can
// serve a bundle on this host, and LlmBackendSession, one generation. At each open the FFI asks llm_backend_select
// which factory answers; when none does, the in-tree llama.cpp session does (it implements LlmBackendSession, but is
// never registered and never ranked).
//
// Errors: functions with an `out_error` return a negative ELIZA_* status (or nullptr) and set *out_error to a
// malloc'ed UTF-8 message. They may throw eliza::Error (native/base/error.h) instead: the FFI's exception wall
// turns it into the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "native/include/eliza-inference-ffi.h"
#include "native/text/tokenizer.h"

// What a session can tell about itself; eliza_inference_llm_stream_stats writes it as JSON.
struct LlmSessionStats {
  std::string device;            // "cpu", "Metal", an NPU's name
  std::string stop_reason;       // "", "end_of_generation", "max_tokens", "context_full", "cancelled"
  int64_t prompt_tokens = 0;     // prefilled since the last reset
  int64_t reused_tokens = 0;     // of these, found in a warm KV cache (prompt_cache_key)
  int64_t generated_tokens = 0;  // returned by next since the last reset
  int64_t drafted_tokens = 0;    // speculative tokens since the last reset
  int64_t accepted_tokens = 0;
  int64_t kv_used = 0;      // tokens in the context now
  int64_t kv_capacity = 0;  // and at most
  double prefill_ms = 0;    // time spent in prefill and in next since the last reset
  double decode_ms = 0;
  std::vector<std::string> ignored_options;  // config fields this runtime cannot honour, harmlessly
};

// One active generation. The FFI serialises the calls on a session, except cancel (and stats, see there), and deletes
// it. The contract of each function is that of the eliza_inference_llm_stream_* function of the same name.
struct LlmBackendSession {
  virtual ~LlmBackendSession() = default;

  virtual int prefill(const int32_t* token_ids, size_t num_tokens, char** out_error) = 0;
  virtual int next(int32_t* tokens_out, size_t tokens_cap, size_t* num_tokens_out, char* text_out, size_t text_cap,
                   int32_t* drafter_drafted_out, int32_t* drafter_accepted_out, char** out_error) = 0;
  // From any thread, also while another is in prefill or next; ELIZA_OK whether or not a pass runs.
  virtual int cancel() = 0;
  // Clears KV, sampler and counters; the session stays warm.
  virtual int reset() = 0;
  // Returns n_keep applied; 0 after a full-reset fallback; never an error.
  virtual int reset_keep(int32_t n_keep) = 0;
  virtual int save_slot(const char* filename, char** out_error);     // ELIZA_ERR_INVALID_ARG unless overridden
  virtual int restore_slot(const char* filename, char** out_error);  // likewise

  // Additions of ours, with defaults so that older backends compile unchanged.
  virtual int set_seed(uint64_t seed);  // ELIZA_ERR_NOT_IMPLEMENTED unless overridden
  virtual LlmSessionStats stats() const { return {}; }
  // Whether stats may be called from any thread, also while another is in a call: nobody who wants to show how far a
  // long prefill is has to wait for it. Where not, the FFI gives stats a turn like other calls.
  virtual bool has_concurrent_stats() const { return false; }
};

// One per linked runtime, with static lifetime. Every function may be called from any thread.
struct LlmBackendFactory {
  virtual ~LlmBackendFactory() = default;

  // The stable name users write in ELIZA_LLM_BACKEND: "litert-lm", "mlx-coreml".
  virtual const char* name() const = 0;
  // Compiled in AND its dependency is present on THIS host. Cheap.
  virtual bool available() const = 0;
  // A fitting artifact exists in the bundle: a directory probe plus at most a 64 KiB header read.
  virtual bool can_serve(const char* bundle_dir) const = 0;
  // Higher wins; llama.cpp is 0. May depend on the device found, so it is asked only where available said yes.
  virtual int preference_rank() const { return 0; }
  // The same for a bundle that can_serve said yes to, where what runs it depends on the model, too.
  virtual int preference_rank_for(const char* /*bundle_dir*/) const { return preference_rank(); }
  // Whether this runtime can honour what the config asks for where it would change the answer's form (a grammar, a
  // drafter). On false, *why says which option, and may not be null.
  virtual bool can_honour(const eliza_llm_stream_config_t* config, std::string* why) const;
  // Why available or can_serve said no, in words that tell the user what to do. Asked only of a backend that said no,
  // and only where somebody will read it.
  virtual std::string explain(const char* bundle_dir) const;
  // What a backend that said yes has to say to whoever reads the report: why it would not run on something better that
  // it knows of. Empty for nothing.
  virtual std::string remark(const char* bundle_dir) const;
  // The tokenizer of the bundle's artifact, for bundles that hold no text/*.gguf; nullptr where this runtime has none.
  virtual std::shared_ptr<const eliza::Tokenizer> tokenizer(const char* bundle_dir) const;
  // A session the caller deletes, or nullptr with *out_error set (by eliza::set_error, which also keeps the status;
  // else the caller is told ELIZA_ERR_FFI_FAULT).
  virtual LlmBackendSession* open(EliInferenceContext* context, const eliza_llm_stream_config_t* config,
                                  char** out_error) = 0;
};

// Adds a factory to the process-wide registry, which does not own it. Idempotent by name, in any case: the first
// registration of a name stays. A null factory, one without a name, or with a name of llama.cpp's, is ignored.
void llm_backend_register(LlmBackendFactory* factory);

// Registers the factories whose gate is on in this build. Idempotent, cheap after the first call.
void llm_backend_register_builtins();

// Which backend serves `bundle_dir` with `config` (may be null: nothing to honour):
//   a factory, *out_error null   open a session on it
//   nullptr,   *out_error null   use the in-tree llama.cpp
//   nullptr,   *out_error set    open fails with this message
// ELIZA_LLM_BACKEND, when set and not empty, is a hard select; otherwise the highest rank among those that can serve,
// are available and can honour wins (docs/backends.md). What a factory throws when asked is a no, and its text the
// reason; but std::bad_alloc is thrown on. `out_error` must not be null: without it the three results cannot be told
// apart, so the call then returns nullptr and selects nothing. Throws std::bad_alloc where there is no memory for the
// message.
LlmBackendFactory* llm_backend_select(const char* bundle_dir, const eliza_llm_stream_config_t* config,
                                      char** out_error);

// The bundle directory of a context, valid as long as the context; nullptr for a null or closed one. Defined by the
// FFI: the only thing a backend may ask of it.
const char* llm_backend_context_bundle_dir(const EliInferenceContext* context);

// Entry points: language model streams. Each is its checks and a delegate: arguments and results pass unchanged.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "native/backends/llama_cpp/llama-cpp.h"
#include "native/base/error.h"
#include "native/ffi/arguments.h"
#include "native/ffi/backend-choice.h"
#include "native/ffi/context.h"
#include "native/ffi/entry.h"
#include "native/ffi/features.h"
#include "native/ffi/output.h"
#include "native/ffi/stream.h"
#include "native/include/eliza-inference-ffi.h"
#include "native/seam/report.h"
#include "native/text/sampling.h"

namespace eliza {
namespace {

// One call of a stream's session. A status that came without a message gets one that tells at least where from.
template <typename Call>
int call_session(EliLlmStream* handle, const char* what, char** out_error, Call&& call) {
  return enter(out_error, [&] {
    StreamPin stream(handle);
    LlmStream::Turn session(stream.get());
    const int status = call(session);
    if (status < 0 && out_error != nullptr && *out_error == nullptr) {
      set_error(
          out_error, status,
          stream->backend() + ": " + what + " failed with status " + std::to_string(status) + " and gave no reason");
    }
    return status;
  });
}

std::string stats_json(const std::string& backend, const LlmSessionStats& stats) {
  const nlohmann::ordered_json json = {
      {"backend", backend},
      {"device", stats.device},
      {"stop_reason", stats.stop_reason},
      {"prompt_tokens", stats.prompt_tokens},
      {"reused_tokens", stats.reused_tokens},
      {"generated_tokens", stats.generated_tokens},
      {"drafted_tokens", stats.drafted_tokens},
      {"accepted_tokens", stats.accepted_tokens},
      {"kv_used", stats.kv_used},
      {"kv_capacity", stats.kv_capacity},
      {"prefill_ms", stats.prefill_ms},
      {"decode_ms", stats.decode_ms},
      {"ignored_options", stats.ignored_options},
  };
  // A device's name comes from a driver, and need not be UTF-8.
  return json.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace
}  // namespace eliza

int eliza_inference_llm_stream_supported(void) { return eliza::kStreamSupported; }
int eliza_inference_llm_mtp_supported(void) { return eliza::kMtpSupported; }
int eliza_inference_llm_kv_quant_supported(void) { return eliza::kKvQuantSupported; }

EliLlmStream* eliza_inference_llm_stream_open(EliInferenceContext* context, const eliza_llm_stream_config_t* config,
                                              char** out_error) {
  return eliza::enter_opening<EliLlmStream>(out_error, [&] {
    eliza::ContextPin pin(context);
    eliza::validate_stream_config(config);
    eliza::OpenedSession opened = eliza::open_session(context, *pin, *config);
    auto stream = std::make_unique<eliza::LlmStream>(std::move(opened.backend), std::move(opened.session));
    const uintptr_t id = eliza::handle_table().add(eliza::HandleKind::kLlmStream, std::move(stream),
                                                   reinterpret_cast<uintptr_t>(context));
    return reinterpret_cast<EliLlmStream*>(id);
  });
}

int eliza_inference_llm_stream_prefill(EliLlmStream* stream, const int32_t* token_ids, size_t num_tokens,
                                       char** out_error) {
  return eliza::call_session(stream, "prefill", out_error, [&](auto& session) {
    if (num_tokens == 0) throw eliza::Error(ELIZA_ERR_INVALID_ARG, "num_tokens is 0; a prefill appends at least 1");
    eliza::require_array(token_ids, num_tokens, "token_ids", "num_tokens");
    return session->prefill(token_ids, num_tokens, out_error);
  });
}

int eliza_inference_llm_stream_next(EliLlmStream* stream, int32_t* tokens_out, size_t tokens_cap,
                                    size_t* num_tokens_out, char* text_out, size_t text_cap,
                                    int32_t* drafter_drafted_out, int32_t* drafter_accepted_out, char** out_error) {
  const auto clear_outputs = [&] {
    eliza::clear(num_tokens_out);
    if (text_cap > 0) eliza::clear(text_out);
    eliza::clear(drafter_drafted_out);
    eliza::clear(drafter_accepted_out);
  };
  clear_outputs();
  const int status = eliza::call_session(stream, "next", out_error, [&](auto& session) {
    eliza::require(tokens_out, "tokens_out");
    eliza::require(num_tokens_out, "num_tokens_out");
    eliza::require(text_out, "text_out");
    if (tokens_cap == 0) throw eliza::Error(ELIZA_ERR_INVALID_ARG, "tokens_cap is 0; there must be room for a token");
    if (text_cap == 0) throw eliza::Error(ELIZA_ERR_INVALID_ARG, "text_cap is 0; there must be room for the NUL");
    return session->next(tokens_out, tokens_cap, num_tokens_out, text_out, text_cap, drafter_drafted_out,
                         drafter_accepted_out, out_error);
  });
  if (status < 0) clear_outputs();  // also of what a backend had written when it failed
  return status;
}

int eliza_inference_llm_stream_cancel(EliLlmStream* stream) {
  return eliza::enter(nullptr, [&] { return eliza::StreamPin(stream)->cancel(); });
}

int eliza_inference_llm_stream_save_slot(EliLlmStream* stream, const char* filename, char** out_error) {
  return eliza::call_session(stream, "save_slot", out_error, [&](auto& session) {
    eliza::require_text(filename, "filename");
    return session->save_slot(filename, out_error);
  });
}

int eliza_inference_llm_stream_restore_slot(EliLlmStream* stream, const char* filename, char** out_error) {
  return eliza::call_session(stream, "restore_slot", out_error, [&](auto& session) {
    eliza::require_text(filename, "filename");
    return session->restore_slot(filename, out_error);
  });
}

int eliza_inference_llm_stream_reset(EliLlmStream* stream) {
  return eliza::call_session(stream, "reset", nullptr, [](auto& session) { return session->reset(); });
}

int eliza_inference_llm_stream_reset_keep(EliLlmStream* stream, int32_t n_keep) {
  return eliza::call_session(stream, "reset_keep", nullptr, [&](auto& session) {
    return n_keep < 0 ? ELIZA_ERR_INVALID_ARG : session->reset_keep(n_keep);
  });
}

void eliza_inference_llm_stream_close(EliLlmStream* stream) {
  eliza::guard(nullptr, [&] {
    return eliza::handle_table().close(eliza::HandleKind::kLlmStream, reinterpret_cast<uintptr_t>(stream));
  });
}

int eliza_inference_llm_stream_set_seed(EliLlmStream* stream, uint64_t seed) {
  return eliza::call_session(stream, "set_seed", nullptr, [&](auto& session) { return session->set_seed(seed); });
}

int eliza_inference_llm_stream_stats(EliLlmStream* stream, char** out_json, char** out_error) {
  eliza::clear(out_json);
  return eliza::enter(out_error, [&] {
    eliza::StreamPin pin(stream);
    eliza::require(out_json, "out_json");
    *out_json = eliza::new_text(eliza::stats_json(pin->backend(), pin->stats()));
    return ELIZA_OK;
  });
}

int eliza_inference_llm_backend_report(EliInferenceContext* context, char** out_json, char** out_error) {
  eliza::clear(out_json);
  return eliza::enter(out_error, [&] {
    eliza::ContextPin pin(context);
    eliza::require(out_json, "out_json");
    llm_backend_register_builtins();
    *out_json = eliza::new_text(eliza::backend_report(pin->bundle_dir(), eliza::llama_cpp::gpu_facts));
    return ELIZA_OK;
  });
}

int eliza_inference_set_verifier_callback(EliInferenceContext* context, eliza_verifier_callback_t callback,
                                          void* user_data, char** out_error) {
  return eliza::enter(out_error, [&] {
    eliza::ContextPin pin(context);
    // The only backend that drafts.
    pin->llama_cpp().set_verifier_callback(callback, user_data);
    return ELIZA_OK;
  });
}

// The C ABI of libelizainference for Python.
//
// Talks to the public C ABI only, and is not linked to it: load() opens the library and fills a table of its functions.
// One extension thus serves every build of the library (with gates, for another ABI, a fake of the tests).
//
// Handles are ids that the library never reuses, and it serialises the calls on a stream. So nothing here is locked:
// a call that races with close gets InvalidArgument or Cancelled from the library. Every call that can take time
// releases the GIL.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/elizainference/native-library.h"

namespace py = pybind11;
using eliza::python::check;
using eliza::python::Library;
using eliza::python::library;
using eliza::python::OwnedString;
using eliza::python::StatusError;
using ReleaseGil = py::call_guard<py::gil_scoped_release>;

namespace {

const char* c_str(const std::optional<std::string>& string) { return string ? string->c_str() : nullptr; }

// The destructors of Python objects run with the GIL: release it here too, for closing waits for calls in flight and
// frees models.
template <typename T>
struct CloseWithoutGil {
  void operator()(T* object) const {
    const py::gil_scoped_release release;
    delete object;
  }
};
template <typename T>
using Holder = std::unique_ptr<T, CloseWithoutGil<T>>;

// -- The verifier's callback ------------------------------------------------------------------------------------------

// What a callback raised, on its way to the `next` of this thread that it was called in.
thread_local std::exception_ptr raised_in_callback;

// Where a context's callback is. The lock is for interpreters without a GIL: nothing that waits, and no Python code,
// runs under it.
class CallbackSlot {
 public:
  // A null object for none.
  py::object get() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return callback_;
  }

  void set(py::object callback) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(callback_, callback);
    // The former one ends with the argument, behind the lock.
  }

 private:
  std::mutex mutex_;
  py::object callback_;
};

// `user_data` is the context's CallbackSlot.
void on_verifier_event(const EliVerifierEvent* event, void* user_data) {
  const py::gil_scoped_acquire gil;
  try {
    // A copy: the callback may replace itself.
    const py::object callback = static_cast<CallbackSlot*>(user_data)->get();
    if (!callback || callback.is_none()) return;
    const std::vector<int> accepted(event->accepted_token_ids, event->accepted_token_ids + event->n_accepted);
    const std::vector<int> corrected(event->corrected_token_ids, event->corrected_token_ids + event->n_corrected);
    callback(accepted, event->rejected_from, event->rejected_to, corrected);
  } catch (...) {
    raised_in_callback = std::current_exception();
  }
}

// -- Streams ----------------------------------------------------------------------------------------------------------

class Stream {
 public:
  explicit Stream(EliLlmStream* stream) : stream_(stream) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { close(); }

  void close() {
    if (EliLlmStream* stream = stream_.exchange(nullptr)) library().llm_stream_close(stream);
  }

  void prefill(const std::vector<int32_t>& tokens) {
    OwnedString error;
    check(library().llm_stream_prefill(handle(), tokens.data(), tokens.size(), error.out()), error);
  }

  // (done, text, tokens, drafted, accepted) of one step. Called with the GIL.
  py::tuple next() {
    // On the stack, so that two threads in next do not share them. One step of speculative decoding is far below 64
    // tokens; 16 KiB holds the text of the longest of tokens many times over.
    int32_t tokens[64];
    char text[16384];
    size_t count = 0;
    int32_t drafted = 0;
    int32_t accepted = 0;
    int status = 0;
    {
      const py::gil_scoped_release release;
      OwnedString error;
      text[0] = '\0';
      status =
          library().llm_stream_next(handle(), tokens, 64, &count, text, sizeof text, &drafted, &accepted, error.out());
      if (raised_in_callback) std::rethrow_exception(std::exchange(raised_in_callback, nullptr));
      check(status, error);
    }
    py::tuple ids(count);
    for (size_t i = 0; i < count; ++i) ids[i] = tokens[i];
    return py::make_tuple(status == 1, py::str(text), ids, drafted, accepted);
  }

  // Quick by contract. A closed stream has nothing left to cancel.
  void cancel() {
    if (EliLlmStream* stream = stream_.load()) library().llm_stream_cancel(stream);
  }

  void save_slot(const std::string& path) {
    OwnedString error;
    check(library().llm_stream_save_slot(handle(), path.c_str(), error.out()), error);
  }

  void restore_slot(const std::string& path) {
    OwnedString error;
    check(library().llm_stream_restore_slot(handle(), path.c_str(), error.out()), error);
  }

  void reset() { check_plain(library().llm_stream_reset(handle()), "reset"); }

  int reset_keep(int32_t n_keep) {
    return check_plain(library().llm_stream_reset_keep(handle(), n_keep), "reset_keep");
  }

  void set_seed(uint64_t seed) { check_plain(library().llm_stream_set_seed(handle(), seed), "set_seed"); }

  std::string stats() {
    OwnedString json;
    OwnedString error;
    check(library().llm_stream_stats(handle(), json.out(), error.out()), error);
    return json.str_or("{}");
  }

 private:
  EliLlmStream* handle() const {
    EliLlmStream* stream = stream_.load();
    if (stream == nullptr) throw StatusError(ELIZA_ERR_INVALID_ARG, "this stream is closed; start another one");
    return stream;
  }

  // For the functions of the ABI that return a status and no message.
  static int check_plain(int status, const char* what) {
    if (status == ELIZA_ERR_NOT_IMPLEMENTED) {
      throw StatusError(status, std::string("the backend of this stream does not support ") + what);
    }
    if (status == ELIZA_ERR_INVALID_ARG) {
      throw StatusError(status, std::string(what) + " was refused: the stream is closed");
    }
    if (status < 0) throw StatusError(status, std::string(what) + " failed, with status " + std::to_string(status));
    return status;
  }

  std::atomic<EliLlmStream*> stream_;
};

// -- Contexts ---------------------------------------------------------------------------------------------------------

class Context {
 public:
  explicit Context(const std::string& bundle) {
    OwnedString error;
    context_ = library().create(bundle.c_str(), error.out());
    if (context_.load() == nullptr) throw StatusError(library().last_status(), error.str_or("out of memory"));
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    close();
    forget_callback();  // one that was set while another thread closed
  }

  void close() {
    EliInferenceContext* context = context_.exchange(nullptr);
    if (context == nullptr) return;
    // Streams may outlive the context; the slot does not.
    library().set_verifier_callback(context, nullptr, nullptr, nullptr);
    library().destroy(context);
    forget_callback();
  }

  // Called with the GIL. The library is told once where the callback is.
  void set_verifier_callback(const py::object& callback) {
    EliInferenceContext* context = handle();
    callback_.set(callback);
    if (told_.exchange(true)) return;
    const py::gil_scoped_release release;
    OwnedString error;
    check(library().set_verifier_callback(context, &on_verifier_event, &callback_, error.out()), error);
  }

  Holder<Stream> open(int32_t max_tokens, float temperature, float top_p, int32_t top_k, float repeat_penalty,
                      int32_t slot_id, const std::optional<std::string>& prompt_cache_key, int32_t draft_min,
                      int32_t draft_max, const std::optional<std::string>& mtp_drafter_path,
                      const std::optional<std::string>& gbnf_grammar, bool disable_thinking, int32_t n_gpu_layers,
                      const std::optional<std::string>& cache_type_k, const std::optional<std::string>& cache_type_v,
                      int32_t context_size) {
    if (context_size != 0 && library().abi < 15) {
      throw StatusError(ELIZA_ERR_INVALID_ARG,
                        "context_size needs a library of ABI 15; " + library().path + " is of ABI 12");
    }
    eliza_llm_stream_config_t config = ELIZA_LLM_STREAM_CONFIG_DEFAULT;
    config.max_tokens = max_tokens;
    config.temperature = temperature;
    config.top_p = top_p;
    config.top_k = top_k;
    config.repeat_penalty = repeat_penalty;
    config.slot_id = slot_id;
    config.prompt_cache_key = c_str(prompt_cache_key);
    config.draft_min = draft_min;
    config.draft_max = draft_max;
    config.mtp_drafter_path = c_str(mtp_drafter_path);
    config.gbnf_grammar = c_str(gbnf_grammar);
    config.disable_thinking = disable_thinking ? 1 : 0;
    config.n_gpu_layers = n_gpu_layers;
    config.cache_type_k = c_str(cache_type_k);
    config.cache_type_v = c_str(cache_type_v);
    config.context_size = context_size;
    OwnedString error;
    EliLlmStream* stream = library().llm_stream_open(handle(), &config, error.out());
    if (stream == nullptr) throw StatusError(library().last_status(), error.str_or("out of memory"));
    return Holder<Stream>(new Stream(stream));
  }

  std::vector<int> tokenize(const std::string& text, bool add_special, bool parse_special) {
    OwnedString error;
    int* tokens = nullptr;
    size_t count = 0;
    check(library().tokenize(handle(), text.data(), text.size(), add_special, parse_special, &tokens, &count,
                             error.out()),
          error);
    const std::unique_ptr<int, decltype(Library::free_tokens)> owner(tokens, library().free_tokens);
    return std::vector<int>(tokens, tokens + count);
  }

  std::string detokenize(const std::vector<int>& tokens, bool remove_special, bool unparse_special) {
    // Most texts fit the first buffer, and every text the second; the ABI has no call that asks for the size.
    for (size_t per_token = 16;; per_token = 4096) {
      OwnedString error;
      const size_t capacity = per_token * tokens.size() + 256;
      const std::unique_ptr<char[]> text(new char[capacity]);
      const int size = library().detokenize(handle(), tokens.data(), tokens.size(), remove_special, unparse_special,
                                            text.get(), capacity, error.out());
      if (size == ELIZA_ERR_INVALID_ARG && per_token == 16) continue;
      check(size, error);
      return std::string(text.get(), static_cast<size_t>(size));
    }
  }

  std::vector<float> embed(const std::string& text, int pooling) {
    // Longer than the embeddings of most models; the others say how long theirs are.
    std::vector<float> embedding(8192);
    for (;;) {
      OwnedString error;
      int size = 0;
      const int status = library().embed(handle(), text.data(), text.size(), pooling, embedding.data(),
                                         embedding.size(), &size, error.out());
      const bool fits = static_cast<size_t>(size) <= embedding.size();
      if (fits) check(status, error);
      embedding.resize(static_cast<size_t>(size));
      if (fits) return embedding;
    }
  }

  // (the probability of `target`, the likeliest token, its probability).
  std::tuple<float, int32_t, float> eot_score(const std::vector<int32_t>& tokens, int32_t target) {
    OwnedString error;
    float probability = 0;
    int32_t top_token = 0;
    float top_probability = 0;
    check(library().llm_eot_score(handle(), tokens.data(), tokens.size(), target, &probability, &top_token,
                                  &top_probability, error.out()),
          error);
    return {probability, top_token, top_probability};
  }

  std::string model_meta(const std::string& key) {
    OwnedString value;
    OwnedString error;
    check(library().model_meta(handle(), key.c_str(), value.out(), error.out()), error);
    return value.str_or("");
  }

  std::string backend_report() {
    OwnedString json;
    OwnedString error;
    check(library().llm_backend_report(handle(), json.out(), error.out()), error);
    return json.str_or("{}");
  }

 private:
  EliInferenceContext* handle() const {
    EliInferenceContext* context = context_.load();
    if (context == nullptr) throw StatusError(ELIZA_ERR_INVALID_ARG, "this engine is closed; open another one");
    return context;
  }

  void forget_callback() {
    const py::gil_scoped_acquire gil;
    callback_.set(py::object());
  }

  std::atomic<EliInferenceContext*> context_{nullptr};
  CallbackSlot callback_;
  std::atomic<bool> told_{false};
};

std::string json_schema_to_gbnf(const std::string& schema) {
  OwnedString gbnf;
  OwnedString error;
  check(library().json_schema_to_gbnf(schema.c_str(), gbnf.out(), error.out()), error);
  return gbnf.str_or("");
}

}  // namespace

PYBIND11_MODULE(_native, m, py::mod_gil_not_used()) {
  m.doc() = "The C ABI of libelizainference. Private: use elizainference.";

  py::register_local_exception_translator([](std::exception_ptr exception) {
    try {
      if (exception) std::rethrow_exception(exception);
    } catch (const StatusError& error) {
      const py::object instance =
          py::module_::import("elizainference._errors").attr("from_status")(error.status(), error.what());
      PyErr_SetObject(py::type::handle_of(instance).ptr(), instance.ptr());
    }
  });

  m.def("load", &eliza::python::load, py::arg("paths"), ReleaseGil());
  m.def("json_schema_to_gbnf", &json_schema_to_gbnf, py::arg("schema"), ReleaseGil());

  py::class_<Stream, Holder<Stream>>(m, "Stream")
      .def("prefill", &Stream::prefill, py::arg("tokens"), ReleaseGil())
      .def("next", &Stream::next)
      .def("cancel", &Stream::cancel, ReleaseGil())
      .def("save_slot", &Stream::save_slot, py::arg("path"), ReleaseGil())
      .def("restore_slot", &Stream::restore_slot, py::arg("path"), ReleaseGil())
      .def("reset", &Stream::reset, ReleaseGil())
      .def("reset_keep", &Stream::reset_keep, py::arg("n_keep"), ReleaseGil())
      .def("set_seed", &Stream::set_seed, py::arg("seed"), ReleaseGil())
      .def("stats", &Stream::stats, ReleaseGil())
      .def("close", &Stream::close, ReleaseGil());

  py::class_<Context, Holder<Context>>(m, "Context")
      .def(py::init<const std::string&>(), py::arg("bundle"), ReleaseGil())
      // A stream keeps its context: one of an engine that nobody holds any more reads on.
      .def("open", &Context::open, py::kw_only(), py::arg("max_tokens"), py::arg("temperature"), py::arg("top_p"),
           py::arg("top_k"), py::arg("repeat_penalty"), py::arg("slot_id"), py::arg("prompt_cache_key"),
           py::arg("draft_min"), py::arg("draft_max"), py::arg("mtp_drafter_path"), py::arg("gbnf_grammar"),
           py::arg("disable_thinking"), py::arg("n_gpu_layers"), py::arg("cache_type_k"), py::arg("cache_type_v"),
           py::arg("context_size"), ReleaseGil(), py::keep_alive<0, 1>())
      .def("tokenize", &Context::tokenize, py::arg("text"), py::arg("add_special"), py::arg("parse_special"),
           ReleaseGil())
      .def("detokenize", &Context::detokenize, py::arg("tokens"), py::arg("remove_special"), py::arg("unparse_special"),
           ReleaseGil())
      .def("embed", &Context::embed, py::arg("text"), py::arg("pooling"), ReleaseGil())
      .def("eot_score", &Context::eot_score, py::arg("tokens"), py::arg("target"), ReleaseGil())
      .def("model_meta", &Context::model_meta, py::arg("key"), ReleaseGil())
      .def("backend_report", &Context::backend_report, ReleaseGil())
      .def("set_verifier_callback", &Context::set_verifier_callback, py::arg("callback").none(true))
      .def("close", &Context::close, ReleaseGil());
}

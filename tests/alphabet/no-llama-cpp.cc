// Stands in for llama.cpp where a test links the layers above it alone: everything answers that it is not there.
#include "native/backends/llama_cpp/llama-cpp.h"
#include "native/base/error.h"

namespace eliza::llama_cpp {
namespace {

[[noreturn]] void not_there() { throw Error(ELIZA_ERR_NOT_IMPLEMENTED, "llama.cpp is not in this library for tests"); }

}  // namespace

struct Engine::Parts {};

Engine::Engine(std::string bundle_dir) : bundle_dir_(std::move(bundle_dir)) {}
Engine::~Engine() = default;
std::unique_ptr<LlmBackendSession> Engine::open(const eliza_llm_stream_config_t&) { not_there(); }
std::vector<float> Engine::embed(std::string_view, int) { not_there(); }
TurnScore Engine::eot_score(const int32_t*, size_t, int32_t) { not_there(); }
void Engine::stop() noexcept {}
void Engine::set_verifier_callback(eliza_verifier_callback_t, void*) {}

void check_host_cpu() {}
GpuFacts gpu_facts() { return {{}, "llama.cpp is not in this library for tests"}; }
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string&) { not_there(); }
std::string json_schema_to_gbnf(const std::string&) { not_there(); }

}  // namespace eliza::llama_cpp

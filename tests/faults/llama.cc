// The walk of walk.h on llama.cpp: what is ours fails, and what llama.cpp allocates for the samplers, grammars and
// vocabularies that we call. Not what it does to load a model and to compute: ggml ends a process that has no memory.
//
//   llama FOLDER BUNDLE
//
// FOLDER is an empty one to work in, BUNDLE is tiny_llama_cycle's. Prints a line of JSON for each loop and each
// problem; ends with 1 after a problem.
#include "llama.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/faults/walk.h"

// Calls that are not ours.
#define ELIZA_OUTSIDE(result, name, parameters, arguments) \
  extern "C" result __real_##name parameters;              \
  extern "C" result __wrap_##name parameters {             \
    const eliza::faults::Outside not_ours;                 \
    return __real_##name arguments;                        \
  }

ELIZA_OUTSIDE(void, llama_backend_init, (), ())
ELIZA_OUTSIDE(llama_model*, llama_model_load_from_file, (const char* path, llama_model_params params), (path, params))
ELIZA_OUTSIDE(void, llama_model_free, (llama_model * model), (model))
ELIZA_OUTSIDE(llama_context*, llama_init_from_model, (llama_model * model, llama_context_params params),
              (model, params))
ELIZA_OUTSIDE(void, llama_free, (llama_context * context), (context))
ELIZA_OUTSIDE(int32_t, llama_decode, (llama_context * context, llama_batch batch), (context, batch))
ELIZA_OUTSIDE(size_t, llama_state_seq_get_size, (llama_context * context, llama_seq_id sequence), (context, sequence))
ELIZA_OUTSIDE(size_t, llama_state_seq_get_data, (llama_context * context, uint8_t* data, size_t size, llama_seq_id id),
              (context, data, size, id))
ELIZA_OUTSIDE(size_t, llama_state_seq_set_data,
              (llama_context * context, const uint8_t* data, size_t size, llama_seq_id id), (context, data, size, id))
ELIZA_OUTSIDE(bool, llama_memory_seq_rm, (llama_memory_t memory, llama_seq_id id, llama_pos begin, llama_pos end),
              (memory, id, begin, end))

namespace eliza::faults {
namespace {

// Where a grammar has gone a token too far or too few, there is another text.
constexpr char kGrammar[] = R"(root ::= "defg" [a-z]{4} | "cdef" [a-z]{4})";

Course course_in(const std::string& folder, const std::string& bundle) {
  Course course;
  course.bundle = bundle;
  course.slots = folder;
  course.config.context_size = 64;
  course.config.max_tokens = 8;
  course.config.gbnf_grammar = kGrammar;
  course.prompt = "abc";
  course.text = "defghijk";
  course.more = "b";
  course.more_text = "cdefghij";
  return course;
}

int main(const std::string& folder, const std::string& bundle) {
  const Course plain = course_in(folder, bundle);
  const std::string drafter = bundle + "/text/tiny_llama_cycle.gguf";
  Course drafted = plain;
  drafted.config.mtp_drafter_path = drafter.c_str();
  drafted.config.draft_max = 3;
  for (int kind = 0; kind < kKinds; ++kind) {
    for (const bool sticky : {false, true}) {
      if (sticky && static_cast<Kind>(kind) == Kind::kInterrupt) continue;  // it never returns, and is right not to
      every("llama.cpp", static_cast<Kind>(kind), sticky, [&](auto... call) { return walk(plain, call...); });
      every("drafter", static_cast<Kind>(kind), sticky, [&](auto... call) { return walk(drafted, call...); });
    }
  }
  return problems() > 0;
}

}  // namespace
}  // namespace eliza::faults

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "llama FOLDER BUNDLE\n");
    return 2;
  }
  setenv("ELIZA_THREADS", "1", /*overwrite=*/1);  // ggml would start its threads with memory that fails
  return eliza::faults::main(argv[1], argv[2]);
}

// Speculative decoding: a small model drafts tokens, and the target model checks a batch of them in one step.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "llama.h"
#include "native/backends/llama_cpp/context.h"

namespace eliza::llama_cpp {

// Drafts for one target context, which outlives it. Whatever it drafts, the target's own choice decides: a drafter
// makes a generation faster or slower, never different.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // The target has decoded a prompt.
  virtual void prefilled() = 0;

  // The target has decoded a batch, and goes on after its token number `row` (-1: the last).
  virtual void decoded(int32_t row) = 0;

  // Appends at most `limit` tokens that are likely to follow the target's tokens, the last of which is not decoded yet.
  virtual void draft(size_t limit, std::vector<llama_token>* out) = 0;
};

// Whether the file is an MTP drafter, whose target has to keep hidden states for it (Context::Options::keep_hidden).
bool is_mtp_drafter(const Model& drafter);

// An MTP drafter (architecture gemma4-assistant) or a plain draft model. Throws Error(ELIZA_ERR_INVALID_ARG) where its
// vocabulary or its shape does not fit the target, or the target cannot take tokens back.
std::unique_ptr<Drafter> make_drafter(std::shared_ptr<const Model> model, Context& target);

}  // namespace eliza::llama_cpp

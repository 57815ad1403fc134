#include "native/text/token-stream.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "native/base/error.h"

namespace eliza {
namespace {

[[noreturn]] void throw_text_cap(size_t text_cap, size_t text_size) {
  throw Error(ELIZA_ERR_INVALID_ARG, "text_cap is " + std::to_string(text_cap) + ", but the next piece of text needs " +
                                         std::to_string(text_size + 1) +
                                         " bytes with its NUL; call next again with a text buffer of that size: "
                                         "nothing is lost");
}

void check_buffers(const int32_t* tokens_out, size_t tokens_cap, const size_t* num_tokens_out, const char* text_out,
                   size_t text_cap) {
  const char* problem = tokens_out == nullptr       ? "tokens_out is null; pass an array of tokens_cap token ids"
                        : tokens_cap == 0           ? "tokens_cap is 0; it must be >= 1"
                        : num_tokens_out == nullptr ? "num_tokens_out is null; pass where to store the token count"
                        : text_out == nullptr       ? "text_out is null; pass a buffer of text_cap bytes"
                        : text_cap == 0             ? "text_cap is 0; it must be >= 1, for the NUL"
                                                    : nullptr;
  if (problem != nullptr) throw Error(ELIZA_ERR_INVALID_ARG, problem);
}

}  // namespace

const char* stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kNone:
      return "";
    case StopReason::kEndOfGeneration:
      return "end_of_generation";
    case StopReason::kMaxTokens:
      return "max_tokens";
    case StopReason::kContextFull:
      return "context_full";
  }
  return "";
}

void TokenStream::reset() {
  state_ = State::kIdle;
  max_tokens_ = 0;
  generated_ = 0;
  source_stop_ = StopReason::kNone;
  stop_reason_ = StopReason::kNone;
  waiting_.clear();
  gate_.reset();
  drafted_ = 0;
  accepted_ = 0;
}

void TokenStream::begin(int32_t max_tokens) {
  reset();
  max_tokens_ = max_tokens;
  state_ = State::kGenerating;
}

size_t TokenStream::tokens_left() const {
  if (max_tokens_ <= 0) return std::numeric_limits<size_t>::max();
  return static_cast<size_t>(max_tokens_ - generated_);
}

int TokenStream::next(int32_t* tokens_out, size_t tokens_cap, size_t* num_tokens_out, char* text_out, size_t text_cap,
                      int32_t* drafted, int32_t* accepted) {
  check_buffers(tokens_out, tokens_cap, num_tokens_out, text_out, text_cap);
  *num_tokens_out = 0;
  text_out[0] = '\0';
  if (drafted != nullptr) *drafted = 0;
  if (accepted != nullptr) *accepted = 0;

  if (state_ == State::kIdle) {
    throw Error(ELIZA_ERR_INVALID_ARG, "next was called before any prefill; prefill a prompt first");
  }
  if (state_ == State::kEnded) return 1;

  // The bound of this call, on tokens decoded and on tokens delivered. (Tokens wait only where text did not fit, and
  // then none are decoded, so generated_ is also how many were decoded before the step.)
  const size_t limit = std::min(tokens_cap, tokens_left());
  if (waiting_.empty() && source_stop_ == StopReason::kNone && limit > 0) {
    const TokenSource::Step step = source_->step(limit, &waiting_);
    source_stop_ = step.stop;
    drafted_ += step.drafted;
    accepted_ += step.accepted;
  }

  const size_t text_room = text_cap - 1;
  Utf8Gate gate = gate_;
  text_.clear();
  size_t delivered = 0;
  while (delivered < std::min(limit, waiting_.size())) {
    const size_t text_before = text_.size();
    Utf8Gate gate_after = gate;
    gate_after.push(waiting_[delivered].text, &text_);
    if (text_.size() > text_room) {
      if (delivered == 0) throw_text_cap(text_cap, text_.size());
      text_.resize(text_before);
      break;
    }
    gate = gate_after;
    tokens_out[delivered] = waiting_[delivered].id;
    ++delivered;
  }

  // max_tokens ends a generation also where the source, against its contract, decoded beyond it.
  StopReason stop = StopReason::kNone;
  if (delivered == waiting_.size()) stop = source_stop_;
  if (stop == StopReason::kNone && delivered == tokens_left()) stop = StopReason::kMaxTokens;
  if (stop != StopReason::kNone) {
    const size_t text_before = text_.size();
    Utf8Gate gate_after = gate;
    gate_after.finish(&text_);
    if (text_.size() <= text_room) {
      gate = gate_after;
    } else {
      if (delivered == 0) throw_text_cap(text_cap, text_.size());
      text_.resize(text_before);
      stop = StopReason::kNone;
    }
  }

  // Nothing below throws.
  gate_ = gate;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(delivered));
  generated_ += static_cast<int64_t>(delivered);
  *num_tokens_out = delivered;
  std::memcpy(text_out, text_.c_str(), text_.size() + 1);
  if (drafted != nullptr) *drafted = drafted_;
  if (accepted != nullptr) *accepted = accepted_;
  drafted_ = 0;
  accepted_ = 0;
  if (stop == StopReason::kNone) return 0;
  stop_reason_ = stop;
  state_ = State::kEnded;
  return 1;
}

}  // namespace eliza

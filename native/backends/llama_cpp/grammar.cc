#include "native/backends/llama_cpp/grammar.h"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>

#include "native/backends/llama_cpp/runtime.h"
#include "native/backends/llama_cpp/tokenizer.h"
#include "native/base/error.h"
#include "native/text/utf8-gate.h"
#include "src/llama-grammar.h"

namespace eliza::llama_cpp {
namespace {

constexpr char kRoot[] = "root";

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// Reading a grammar takes memory and time that its length bounds.
constexpr size_t kMostBytes = size_t{1} << 20;

[[noreturn]] void reject(const std::string& what) { throw Error(ELIZA_ERR_INVALID_ARG, "gbnf_grammar " + what); }

// "line 3, column 7"
std::string position(const std::string& text, size_t offset) {
  const size_t line = 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<long>(offset), '\n'));
  const size_t last_break = offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
  const size_t column = offset - (last_break == std::string::npos ? 0 : last_break + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// llama.cpp says "parse: error parsing grammar: expecting ::= at REST", a blank line and the whole grammar, where REST
// is the grammar from the error on.
std::string explain(const std::string& errors, const std::string& gbnf, const std::string& reason) {
  constexpr char kIntroduction[] = "error parsing grammar: ";
  const size_t begin = errors.find(kIntroduction);
  if (begin == std::string::npos) return "cannot be used: " + reason;
  std::string what = errors.substr(begin + sizeof kIntroduction - 1);
  if (what.rfind("std::bad_alloc", 0) == 0) throw std::bad_alloc();  // which llama.cpp catches, too
  what.resize(std::min(what.size(), what.rfind("\n\n" + gbnf)));
  // The words before it may have an "at" themselves ("at least"), but few: REST, which is long, is not searched.
  constexpr int kMostAts = 4;
  size_t at = what.find(" at ");
  for (int i = 0; i < kMostAts && at != std::string::npos; ++i, at = what.find(" at ", at + 1)) {
    const size_t rest = what.size() - (at + 4);
    if (rest > gbnf.size() || gbnf.compare(gbnf.size() - rest, rest, what, at + 4, rest) != 0) continue;
    return "cannot be parsed, " + position(gbnf, gbnf.size() - rest) + ": " + what.substr(0, at);
  }
  return "cannot be parsed: " + what;
}

// Calls llama.cpp, which throws where a grammar is too much to follow.
template <typename Call>
void follow(Call call) {
  const CallScope scope;
  try {
    call();
  } catch (const std::runtime_error& error) {
    reject(std::string("cannot be followed: ") + error.what());
  }
}

}  // namespace

void Grammar::Deleter::operator()(llama_grammar* grammar) const { llama_grammar_free_impl(grammar); }

Grammar::Grammar(const llama_vocab* vocab, const std::string& gbnf) : vocab_(vocab), gbnf_(gbnf) {
  if (gbnf.size() > kMostBytes) {
    reject("has more than " + std::to_string(kMostBytes) + " bytes: " + std::to_string(gbnf.size()));
  }
  restart();
}

// Parsed anew, which takes a time in proportion to its length; llama.cpp's copy of a grammar looks for each element of
// its stacks among all of its rules.
void Grammar::restart() {
  const CallScope scope;
  llama_grammar* const grammar =
      llama_grammar_init_impl(vocab_, gbnf_.c_str(), kRoot, /*lazy=*/false, nullptr, 0, nullptr, 0);
  if (grammar == nullptr) reject(explain(scope.errors(), gbnf_, scope.reason()));
  grammar_.reset(grammar);
  unfinished_.clear();
}

bool Grammar::writes_text(llama_token token) const {
  if (llama_vocab_is_eog(vocab_, token)) return unfinished_.empty();
  const std::string piece = token_piece(vocab_, token);
  if (piece.empty()) return false;
  const std::string bytes = unfinished_ + piece;
  Utf8Gate gate;
  std::string whole;
  gate.push(bytes, &whole);
  return whole.size() + gate.held() == bytes.size() && bytes.compare(0, whole.size(), whole) == 0;
}

bool Grammar::allows(llama_token token) {
  llama_token_data candidate = {token, 0.0f, 0.0f};
  restrict(&candidate, 1);
  return candidate.logit == 0.0f;
}

void Grammar::restrict(llama_token_data* candidates, size_t count) {
  llama_token_data_array array = {candidates, count, /*selected=*/-1, /*sorted=*/false};
  follow([&] { llama_grammar_apply_impl(*grammar_, &array); });
  for (size_t i = 0; i < count; ++i) {
    if (candidates[i].logit != kForbidden && !writes_text(candidates[i].id)) candidates[i].logit = kForbidden;
  }
}

void Grammar::accept(llama_token token) {
  follow([&] { llama_grammar_accept_impl(*grammar_, token); });
  unfinished_ += token_piece(vocab_, token);
  Utf8Gate gate;
  std::string whole;
  gate.push(unfinished_, &whole);
  unfinished_.erase(0, unfinished_.size() - gate.held());
}

}  // namespace eliza::llama_cpp

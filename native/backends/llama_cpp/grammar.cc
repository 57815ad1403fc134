#include "native/backends/llama_cpp/grammar.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "native/backends/llama_cpp/runtime.h"
#include "native/backends/llama_cpp/tokenizer.h"
#include "native/base/error.h"
#include "native/text/utf8-gate.h"

namespace eliza::llama_cpp {
namespace {

constexpr char kRoot[] = "root";

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// llama.cpp's parser recurses into groups, and its search for left recursion along rules. No grammar that means
// something comes near either; one that was made to exhaust the stack does.
constexpr int kMostNesting = 200;
constexpr int kMostRules = 20000;

[[noreturn]] void reject(const std::string& what) { throw Error(ELIZA_ERR_INVALID_ARG, "gbnf_grammar " + what); }

// "line 3, column 7"
std::string position(const std::string& text, size_t offset) {
  const size_t line = 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<long>(offset), '\n'));
  const size_t last_break = offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
  const size_t column = offset - (last_break == std::string::npos ? 0 : last_break + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// Of a repetition "{5,3}", which llama.cpp would go on repeating for ever.
void check_repetition(const std::string& gbnf, size_t brace) {
  char* end = nullptr;
  const unsigned long long least = std::strtoull(gbnf.c_str() + brace + 1, &end, 10);
  while (*end == ' ' || *end == '\t') ++end;
  if (*end != ',') return;
  const char* const second = end + 1;
  const unsigned long long most = std::strtoull(second, &end, 10);
  if (end == second || most >= least) return;
  reject("cannot be parsed, " + position(gbnf, brace) + ": a repetition of at least " + std::to_string(least) +
         " and at most " + std::to_string(most) + " times");
}

// Looks at groups, rules and repetitions outside of literals ("…"), character classes ([…]) and comments (# …).
void check_structure(const std::string& gbnf) {
  int depth = 0;
  int rules = 0;
  for (size_t i = 0; i < gbnf.size(); ++i) {
    const char c = gbnf[i];
    if (c == '"' || c == '[') {
      const char close = c == '"' ? '"' : ']';
      for (++i; i < gbnf.size() && gbnf[i] != close; ++i) {
        if (gbnf[i] == '\\') ++i;
      }
    } else if (c == '#') {
      i = std::min(gbnf.find('\n', i), gbnf.size());
    } else if (c == '(') {
      if (++depth > kMostNesting) reject("has groups nested deeper than " + std::to_string(kMostNesting) + " levels");
    } else if (c == ')') {
      --depth;
    } else if (c == '{') {
      check_repetition(gbnf, i);
    } else if (gbnf.compare(i, 3, "::=") == 0) {
      if (++rules > kMostRules) reject("has more than " + std::to_string(kMostRules) + " rules");
    }
  }
}

// llama.cpp says "parse: error parsing grammar: expecting ::= at REST", a blank line and the whole grammar, where REST
// is the grammar from the error on.
std::string explain(const std::string& errors, const std::string& gbnf, const std::string& reason) {
  constexpr char kIntroduction[] = "error parsing grammar: ";
  const size_t begin = errors.find(kIntroduction);
  if (begin == std::string::npos) return "cannot be used: " + reason;
  std::string what = errors.substr(begin + sizeof kIntroduction - 1);
  what.resize(std::min(what.size(), what.rfind("\n\n" + gbnf)));
  for (size_t at = what.find(" at "); at != std::string::npos; at = what.find(" at ", at + 1)) {
    const std::string rest = what.substr(at + 4);
    if (rest.size() > gbnf.size() || gbnf.compare(gbnf.size() - rest.size(), rest.size(), rest) != 0) continue;
    return "cannot be parsed, " + position(gbnf, gbnf.size() - rest.size()) + ": " + what.substr(0, at);
  }
  return "cannot be parsed: " + what;
}

}  // namespace

Grammar::Grammar(const llama_vocab* vocab, const std::string& gbnf) : vocab_(vocab) {
  check_structure(gbnf);
  const CallScope scope;
  sampler_.reset(llama_sampler_init_grammar(vocab, gbnf.c_str(), kRoot));
  if (sampler_ == nullptr) reject(explain(scope.errors(), gbnf, scope.reason()));
}

void Grammar::restart() {
  const CallScope scope;
  llama_sampler_reset(sampler_.get());
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
  const CallScope scope;
  llama_token_data_array array = {candidates, count, /*selected=*/-1, /*sorted=*/false};
  llama_sampler_apply(sampler_.get(), &array);
  for (size_t i = 0; i < count; ++i) {
    if (candidates[i].logit != kForbidden && !writes_text(candidates[i].id)) candidates[i].logit = kForbidden;
  }
}

void Grammar::accept(llama_token token) {
  const CallScope scope;
  llama_sampler_accept(sampler_.get(), token);
  unfinished_ += token_piece(vocab_, token);
  Utf8Gate gate;
  std::string whole;
  gate.push(unfinished_, &whole);
  unfinished_.erase(0, unfinished_.size() - gate.held());
}

}  // namespace eliza::llama_cpp

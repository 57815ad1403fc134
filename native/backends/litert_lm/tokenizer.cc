#include "native/backends/litert_lm/tokenizer.h"

#include <algorithm>

#include "native/base/error.h"
#include "native/text/quote.h"
#include "native/text/token-ids.h"
#include "native/text/utf8-gate.h"

namespace eliza::litert_lm {
namespace {

constexpr size_t kLongestSpecial = 64;
constexpr size_t kMostBytesOfCharacter = 4;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The size of what is written like a special token at the start of `text`: "<…>", or "[…]", without blanks; 0: nothing.
size_t special_size(std::string_view text) {
  if (text.empty() || (text[0] != '<' && text[0] != '[')) return 0;
  const char last = text[0] == '<' ? '>' : ']';
  for (size_t i = 1; i < std::min(text.size(), kLongestSpecial); ++i) {
    if (text[i] == last) return i > 1 ? i + 1 : 0;
    if (text[i] == text[0] || is_blank(text[i])) return 0;
  }
  return 0;
}

bool starts_with(const std::vector<int32_t>& start, const int32_t* tokens, size_t count) {
  return !start.empty() && count >= start.size() && std::equal(start.begin(), start.end(), tokens);
}

// How many of the first ids are those that the runtime reads back from their text.
size_t exact_prefix(const Vocabulary& vocabulary, const int32_t* tokens, size_t count, std::string* text) {
  *text = vocabulary.text(tokens, count);
  const std::vector<int32_t> read = vocabulary.tokenize(*text);
  const size_t common =
      static_cast<size_t>(std::mismatch(tokens, tokens + std::min(count, read.size()), read.begin()).first - tokens);
  return read.size() == count ? common : std::min(common, count - 1);
}

// The unreadable token whose text starts at `at`; null for none. The text of a NUL is nothing, and only in nothing.
const Vocabulary::Unreadable* unreadable_at(const Vocabulary& vocabulary, const std::string& text, size_t at) {
  for (const Vocabulary::Unreadable& token : vocabulary.unreadable()) {
    if (token.text.empty() == text.empty() && text.compare(at, token.text.size(), token.text) == 0) return &token;
  }
  return nullptr;
}

[[noreturn]] void throw_unspeakable(const Vocabulary& vocabulary, int32_t token, size_t index) {
  throw Error(ELIZA_ERR_INVALID_ARG,
              "token " + std::to_string(token) + " (" + in_quotes(vocabulary.text(&token, 1)) + ") at index " +
                  std::to_string(index) +
                  " cannot be prefilled: LiteRT-LM takes text, and no text gives this token here (a part of a "
                  "character, or a control token); leave it out, or tokenize the text again");
}

}  // namespace

std::vector<int32_t> LiteRtTokenizer::tokenize(std::string_view input, bool add_special, bool parse_special) const {
  const std::string text = to_valid_utf8(input);
  std::vector<int32_t> tokens;
  if (add_special) tokens = vocabulary().start();
  const auto append = [&](std::string_view part) {
    const std::vector<int32_t> more = vocabulary().tokenize(std::string(part));
    tokens.insert(tokens.end(), more.begin(), more.end());
  };
  size_t done = 0;
  for (size_t at = 0; !parse_special && at < text.size(); ++at) {
    const size_t size = special_size(std::string_view(text).substr(at));
    if (size == 0 || vocabulary().tokenize(text.substr(at, size)).size() != 1) continue;
    append(std::string_view(text).substr(done, at + 1 - done));  // up to its "<"
    done = at + 1;
  }
  append(std::string_view(text).substr(done));
  return tokens;
}

bool LiteRtTokenizer::is_control(int32_t token) const {
  const std::string text = vocabulary().text(&token, 1);
  return special_size(text) == text.size() && !text.empty() &&
         vocabulary().tokenize(text) != std::vector<int32_t>{token};
}

std::string LiteRtTokenizer::detokenize(const int32_t* tokens, size_t num_tokens, bool remove_special,
                                        bool unparse_special) const {
  check_token_ids(tokens, num_tokens, vocabulary().size());
  size_t begin = 0;
  if (remove_special && starts_with(vocabulary().start(), tokens, num_tokens)) {
    begin = vocabulary().start().size();
  }
  std::string text;
  for (size_t i = begin; i <= num_tokens; ++i) {
    if (i < num_tokens && !is_control(tokens[i])) continue;
    text += vocabulary().text(tokens + begin, i - begin);
    if (i < num_tokens && unparse_special) text += vocabulary().text(tokens + i, 1);
    begin = i + 1;
  }
  return text;
}

std::optional<std::string> LiteRtTokenizer::metadata(const std::string&) const { return std::nullopt; }

std::vector<Spelling> spell(const Vocabulary& vocabulary, const int32_t* tokens, size_t first, size_t count,
                            size_t most) {
  std::vector<Spelling> spellings;
  for (size_t done = first; done < count;) {
    Spelling spelling = {{}, std::min(count - done, most)};
    const auto exact = [&] { return exact_prefix(vocabulary, tokens + done, spelling.count, &spelling.text); };
    // How far a longer stretch was read back is a good guess at the longest that is read back whole.
    while (spelling.count > 0) {
      const size_t prefix = exact();
      if (prefix == spelling.count) break;
      spelling.count = prefix;
    }
    if (spelling.count == 0) {
      // A character of several tokens, each of which is none by itself?
      const size_t longest = std::min(count - done, kMostBytesOfCharacter);
      do {
        if (++spelling.count > longest) throw_unspeakable(vocabulary, tokens[done], done);
      } while (exact() != spelling.count);
    }
    done += spelling.count;
    spellings.push_back(std::move(spelling));
  }
  return spellings;
}

void append_generated(const Vocabulary& vocabulary, const std::string& text, std::vector<DecodedToken>* out) {
  // The text comes with the token that completes it.
  const auto append_readable = [&](std::string part) {
    const std::vector<int32_t> ids = vocabulary.tokenize(part);
    for (size_t i = 0; i + 1 < ids.size(); ++i) out->push_back({ids[i], {}});
    if (!ids.empty()) out->push_back({ids.back(), std::move(part)});
  };
  if (text.empty()) {  // a NUL, which is the end of a C string
    const Vocabulary::Unreadable* const nul = unreadable_at(vocabulary, text, 0);
    out->push_back({nul == nullptr ? 0 : nul->id, std::string(1, '\0')});
    return;
  }
  const std::vector<int32_t> whole = vocabulary.tokenize(text);
  if (whole.size() == 1) return out->push_back({whole.front(), text});
  size_t readable = 0;
  for (size_t at = 0; at < text.size();) {
    const Vocabulary::Unreadable* const token = unreadable_at(vocabulary, text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    append_readable(text.substr(readable, at - readable));
    out->push_back({token->id, token->text});
    at += token->text.size();
    readable = at;
  }
  append_readable(text.substr(readable));
}

}  // namespace eliza::litert_lm

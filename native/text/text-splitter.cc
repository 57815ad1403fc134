#include "native/text/text-splitter.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "native/base/strings.h"
#include "native/text/json-document.h"
#include "native/text/unicode-classes.h"
#include "native/text/utf8-characters.h"

namespace eliza {
namespace {

constexpr char kGpt2Words[] = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr char kLlama3Words[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen2Words[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// A pattern is {"String": literal} or {"Regex": expression}.
std::pair<std::string, bool> pattern_of(const JsonField& field) {
  const JsonField pattern = field.required("pattern", "an object with \"String\" or \"Regex\"");
  if (const auto literal = pattern.optional("String")) return {literal->string("a string"), false};
  return {pattern.required("Regex", "a string").string("a string"), true};
}

std::string replace_all(const std::string& text, const std::string& pattern, const std::string& content) {
  std::string result;
  for (size_t at = 0;;) {
    const size_t found = text.find(pattern, at);
    result.append(text, at, found == text.npos ? text.npos : found - at);
    if (found == text.npos) return result;
    result += content;
    at = found + pattern.size();
  }
}

// The characters of a part, and where each begins; one more entry for the end.
class Characters {
 public:
  explicit Characters(const std::string& text) {
    for (size_t at = 0; at < text.size(); at += utf8_size(text[at])) {
      characters_.push_back(utf8_at(text, at));
      offsets_.push_back(at);
    }
    offsets_.push_back(text.size());
  }

  size_t size() const { return characters_.size(); }
  size_t offset(size_t i) const { return offsets_[i]; }
  char32_t operator[](size_t i) const { return i < size() ? characters_[i] : 0xFFFFFFFF; }  // no character at the end

  template <typename Is>
  size_t run(size_t at, size_t most, Is&& is) const {
    size_t end = at;
    while (end < size() && end - at < most && is(characters_[end])) ++end;
    return end;
  }

 private:
  std::vector<char32_t> characters_;
  std::vector<size_t> offsets_;
};

bool is_newline(char32_t c) { return c == '\r' || c == '\n'; }
bool is_other(char32_t c) { return !is_space(c) && !is_letter(c) && !is_number(c); }

char32_t lower(char32_t c, bool any_case) {
  if (!any_case) return c;
  if (c == 0x17F) return 's';  // the long s folds to s
  return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

// The end of 's, 't, 're, 've, 'm, 'll or 'd at `at`; `at` where there is none.
size_t contraction(const Characters& text, size_t at, bool any_case) {
  if (text[at] != '\'') return at;
  const char32_t first = lower(text[at + 1], any_case);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  const char32_t second = lower(text[at + 2], any_case);
  const bool two =
      (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return two ? at + 3 : at;
}

// \s+(?!\S)|\s+ on a run of spaces: one is left for the word behind.
size_t spaces(const Characters& text, size_t at) {
  const size_t end = text.run(at, SIZE_MAX, is_space);
  return end == text.size() || end == at + 1 ? end : end - 1;
}

size_t gpt2_word(const Characters& text, size_t at) {
  const size_t short_form = contraction(text, at, false);
  if (short_form > at) return short_form;
  const size_t begin = text[at] == ' ' ? at + 1 : at;
  for (const auto is : {is_letter, is_number, is_other}) {
    if (const size_t end = text.run(begin, SIZE_MAX, is); end > begin) return end;
  }
  return spaces(text, at);
}

size_t llama3_word(const Characters& text, size_t at, size_t most_digits) {
  const size_t short_form = contraction(text, at, true);
  if (short_form > at) return short_form;
  const bool leads = !is_newline(text[at]) && !is_letter(text[at]) && !is_number(text[at]);
  const size_t letters = leads ? at + 1 : at;
  if (const size_t end = text.run(letters, SIZE_MAX, is_letter); end > letters) return end;
  if (const size_t end = text.run(at, most_digits, is_number); end > at) return end;
  const size_t begin = text[at] == ' ' ? at + 1 : at;
  if (const size_t end = text.run(begin, SIZE_MAX, is_other); end > begin) return text.run(end, SIZE_MAX, is_newline);
  // \s*[\r\n]+: up to the last newline of the run.
  for (size_t end = text.run(at, SIZE_MAX, is_space); end > at; --end) {
    if (is_newline(text[end - 1])) return end;
  }
  return spaces(text, at);
}

// Parts of `part` between the given ends.
void cut(const TextPart& part, const std::vector<size_t>& ends, std::vector<TextPart>* out) {
  size_t begin = 0;
  for (const size_t end : ends) {
    if (end > begin) out->push_back({part.text.substr(begin, end - begin), part.at_start && begin == 0});
    begin = end;
  }
}

std::array<std::string, 256> byte_level_characters() {
  std::array<std::string, 256> characters;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const unsigned code = printable ? byte : next++;
    if (code < 0x80) {
      characters[byte] = static_cast<char>(code);
    } else {
      characters[byte] = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
    }
  }
  return characters;
}

const std::array<std::string, 256>& byte_level_table() {
  static const std::array<std::string, 256> table = byte_level_characters();
  return table;
}

}  // namespace

void StepBudget::take(const JsonField& field, size_t bytes) {
  // Files of models have three steps at most, and make three bytes of a space.
  constexpr size_t kMostSteps = 16;
  constexpr size_t kMostBytes = 16;
  bytes_ *= std::clamp<size_t>(bytes, 1, kMostBytes + 1);
  if (++steps_ > kMostSteps || bytes_ > kMostBytes) {
    field.reject("one of at most " + std::to_string(kMostSteps) + " steps, which together make at most " +
                 std::to_string(kMostBytes) + " bytes of one");
  }
}

void Normalizer::add(const JsonField& field) {
  const std::string& type = field.type();
  if (type == "Sequence") {
    field.required("normalizers", "an array").for_each_element([this](const JsonField& step) { add(step); });
  } else if (type == "Replace") {
    const auto [pattern, is_expression] = pattern_of(field);
    if (is_expression || pattern.empty())
      field.reject("a \"Replace\" of a literal \"String\": expressions are not supported");
    const std::string content = field.required("content", "a string").string("a string");
    budget_.take(field, (content.size() + pattern.size() - 1) / pattern.size());
    steps_.push_back({pattern, content});
  } else if (type == "Prepend") {
    const std::string content = field.required("prepend", "a string").string("a string");
    budget_.take(field, 1 + content.size());
    steps_.push_back({"", content});
  } else {
    field.required("type", "").reject("one of \"Sequence\", \"Replace\", \"Prepend\": others are not supported");
  }
}

std::string Normalizer::apply(std::string text) const {
  for (const Step& step : steps_) {
    if (!step.pattern.empty()) {
      text = replace_all(text, step.pattern, step.content);
    } else if (!text.empty()) {
      text.insert(0, step.content);
    }
  }
  return text;
}

void PreTokenizer::add(const JsonField& field) {
  const std::string& type = field.type();
  Step step{};
  if (type == "Sequence") {
    field.required("pretokenizers", "an array").for_each_element([this](const JsonField& child) { add(child); });
  } else if (type == "Split") {
    add_split(field);
  } else if (type == "Digits") {
    step.kind = Kind::kDigits;
    step.split = field.boolean_or("individual_digits", false);
    add_step(field, step, 1);
  } else if (type == "ByteLevel") {
    step.kind = Kind::kByteLevel;
    step.add_prefix_space = field.boolean_or("add_prefix_space", true);
    step.split = field.boolean_or("use_regex", true);
    add_step(field, step, step.add_prefix_space ? 4 : 2);
  } else if (type == "Metaspace") {
    add_metaspace(field);
  } else {
    field.required("type", "")
        .reject("one of \"Sequence\", \"Split\", \"Digits\", \"ByteLevel\", \"Metaspace\": others are not supported");
  }
}

void PreTokenizer::add_split(const JsonField& field) {
  static const std::unordered_map<std::string, Behavior> kBehaviors = {
      {"Removed", Behavior::kRemoved},
      {"Isolated", Behavior::kIsolated},
      {"Contiguous", Behavior::kContiguous},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
  };
  Step step{};
  const auto [pattern, is_expression] = pattern_of(field);
  const JsonField behavior = field.required("behavior", "a string");
  const auto known = kBehaviors.find(behavior.string("a string"));
  if (known == kBehaviors.end()) {
    behavior.reject("one of \"Removed\", \"Isolated\", \"Contiguous\", \"MergedWithPrevious\", \"MergedWithNext\"");
  }
  step.behavior = known->second;
  step.invert = field.boolean_or("invert", false);
  if (!is_expression) {
    const JsonField literal = field.required("pattern", "").required("String", "");
    if (pattern.empty()) literal.reject("a string that is not empty");
    step.kind = Kind::kLiteral;
    step.literal = pattern;
  } else {
    step.kind = Kind::kWords;
    const JsonField expression = field.required("pattern", "").required("Regex", "");
    if (pattern == kGpt2Words) {
      step.words = Words::kGpt2;
    } else if (pattern == kLlama3Words) {
      step.words = Words::kLlama3;
    } else if (pattern == kQwen2Words) {
      step.words = Words::kQwen2;
    } else {
      expression.reject("the expression of GPT-2, Llama 3 or Qwen 2: others are not supported");
    }
    // These expressions match every character, so that no text stands between two matches.
    const bool isolates =
        (step.behavior == Behavior::kIsolated && !step.invert) || (step.behavior == Behavior::kRemoved && step.invert);
    if (!isolates) behavior.reject("\"Isolated\", or \"Removed\" with \"invert\", for an expression");
  }
  add_step(field, step, 1);
}

void PreTokenizer::add_metaspace(const JsonField& field) {
  Step step{};
  step.kind = Kind::kMetaspace;
  const JsonField replacement = field.required("replacement", "a character");
  step.literal = replacement.string("a character");
  if (step.literal.empty() || utf8_size(step.literal[0]) != step.literal.size()) replacement.reject("a character");
  step.split = field.boolean_or("split", true);
  const std::string scheme =
      field.string_or("prepend_scheme", field.boolean_or("add_prefix_space", true) ? "always" : "never");
  if (scheme == "always") {
    step.prepend = Prepend::kAlways;
  } else if (scheme == "first") {
    step.prepend = Prepend::kFirst;
  } else if (scheme != "never") {
    field.required("prepend_scheme", "").reject("\"always\", \"first\" or \"never\"");
  }
  add_step(field, step, 1 + step.literal.size());
}

void PreTokenizer::add_step(const JsonField& field, const Step& step, size_t bytes) {
  budget_.take(field, bytes);
  steps_.push_back(step);
}

std::vector<TextPart> PreTokenizer::apply(TextPart part) const {
  std::vector<TextPart> parts;
  parts.push_back(std::move(part));
  for (const Step& step : steps_) {
    std::vector<TextPart> next;
    for (TextPart& one : parts) apply(step, std::move(one), &next);
    parts = std::move(next);
  }
  return parts;
}

void PreTokenizer::apply(const Step& step, TextPart part, std::vector<TextPart>* out) {
  switch (step.kind) {
    case Kind::kWords:
      split_words(step.words, part, out);
      return;
    case Kind::kLiteral:
      split_literal(step, part, out);
      return;
    case Kind::kDigits:
      split_digits(step.split, part, out);
      return;
    case Kind::kMetaspace: {
      part.text = replace_all(part.text, " ", step.literal);
      const bool prepends = step.prepend == Prepend::kAlways || (step.prepend == Prepend::kFirst && part.at_start);
      if (prepends && !starts_with(part.text, step.literal)) part.text.insert(0, step.literal);
      Step before{};
      before.literal = step.literal;
      before.behavior = Behavior::kMergedWithNext;
      if (step.split) {
        split_literal(before, part, out);
      } else {
        out->push_back(std::move(part));
      }
      return;
    }
    case Kind::kByteLevel: {
      if (step.add_prefix_space && !starts_with(part.text, " ")) part.text.insert(0, " ");
      const size_t first = out->size();
      if (step.split) {
        split_words(Words::kGpt2, part, out);
      } else {
        out->push_back(std::move(part));
      }
      for (size_t i = first; i < out->size(); ++i) {
        std::string characters;
        for (const char byte : (*out)[i].text) characters += byte_level_character(static_cast<unsigned char>(byte));
        (*out)[i].text = std::move(characters);
      }
      return;
    }
  }
}

void PreTokenizer::split_words(Words words, const TextPart& part, std::vector<TextPart>* out) {
  const Characters text(part.text);
  std::vector<size_t> ends;
  for (size_t at = 0; at < text.size();) {
    at = words == Words::kGpt2 ? gpt2_word(text, at) : llama3_word(text, at, words == Words::kLlama3 ? 3 : 1);
    ends.push_back(text.offset(at));
  }
  cut(part, ends, out);
}

void PreTokenizer::split_digits(bool one_by_one, const TextPart& part, std::vector<TextPart>* out) {
  const Characters text(part.text);
  std::vector<size_t> ends;
  for (size_t at = 0; at < text.size();) {
    const bool numeric = is_numeric(text[at]);
    const size_t most = numeric && one_by_one ? 1 : SIZE_MAX;
    at = text.run(at, most, [numeric](char32_t c) { return is_numeric(c) == numeric; });
    ends.push_back(text.offset(at));
  }
  cut(part, ends, out);
}

void PreTokenizer::split_literal(const Step& step, const TextPart& part, std::vector<TextPart>* out) {
  struct Range {
    size_t begin;
    size_t end;
    bool delimits;
  };
  std::vector<Range> ranges;
  for (size_t at = 0; at < part.text.size();) {
    const size_t found = std::min(part.text.find(step.literal, at), part.text.size());
    if (found > at) ranges.push_back({at, found, step.invert});
    if (found == part.text.size()) break;
    at = found + step.literal.size();
    ranges.push_back({found, at, !step.invert});
  }

  std::vector<size_t> ends;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const bool delimits = ranges[i].delimits;
    const bool last = i + 1 == ranges.size();
    const bool delimiter_next = !last && ranges[i + 1].delimits;
    bool ends_here = true;
    if (step.behavior == Behavior::kMergedWithPrevious) ends_here = delimits || !delimiter_next;
    if (step.behavior == Behavior::kMergedWithNext) ends_here = last || !delimits || delimiter_next;
    if (step.behavior == Behavior::kContiguous) ends_here = delimits != delimiter_next;
    if (step.behavior == Behavior::kRemoved && delimits) {
      // What ended before this delimiter has been cut off already.
      continue;
    }
    if (step.behavior == Behavior::kRemoved) {
      out->push_back(
          {part.text.substr(ranges[i].begin, ranges[i].end - ranges[i].begin), part.at_start && ranges[i].begin == 0});
    } else if (ends_here || last) {
      ends.push_back(ranges[i].end);
    }
  }
  cut(part, ends, out);
}

const std::string& byte_level_character(unsigned char byte) { return byte_level_table()[byte]; }

std::string byte_level_bytes(std::string_view text) {
  static const std::unordered_map<std::string_view, char> bytes = [] {
    std::unordered_map<std::string_view, char> map;
    for (unsigned byte = 0; byte < 256; ++byte) {
      map.emplace(byte_level_table()[byte], static_cast<char>(static_cast<unsigned char>(byte)));
    }
    return map;
  }();
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, utf8_size(text[at]));
    const auto found = bytes.find(character);
    if (found == bytes.end()) {
      result += character;
    } else {
      result += found->second;
    }
    at += character.size();
  }
  return result;
}

}  // namespace eliza

// How a tokenizer.json prepares text for its model: the steps of its "normalizer" and "pre_tokenizer".
//
// Its regular expressions are not interpreted. Those that byte-level vocabularies use are known by their text and
// written out here; any other is an error that quotes it. Nor may the steps, one after the other, make much of little.
// So a hostile file costs no more than time and memory linear in the text's length.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eliza {

class JsonField;

// A part of the text, on its way to the model.
struct TextPart {
  std::string text;
  bool at_start;  // it begins where the whole text begins
};

// The steps of a file that were taken, and how many bytes they may make of one: a few that double a text would be
// enough to run out of memory.
class StepBudget {
 public:
  // For a step that makes at most `bytes` of one byte. Throws at `field` where that is too much.
  void take(const JsonField& field, size_t bytes);

 private:
  size_t steps_ = 0;
  size_t bytes_ = 1;
};

class Normalizer {
 public:
  // Adds the steps of a "normalizer" value. Throws naming a step that is not supported.
  void add(const JsonField& field);

  std::string apply(std::string text) const;

 private:
  struct Step {
    std::string pattern;  // empty: `content` goes in front
    std::string content;
  };

  StepBudget budget_;
  std::vector<Step> steps_;
};

class PreTokenizer {
 public:
  // Adds the steps of a "pre_tokenizer" value. Throws naming a step that is not supported.
  void add(const JsonField& field);

  // The parts that the model encodes one by one.
  std::vector<TextPart> apply(TextPart part) const;

 private:
  enum class Kind { kWords, kLiteral, kDigits, kByteLevel, kMetaspace };
  enum class Words { kGpt2, kLlama3, kQwen2 };
  enum class Behavior { kRemoved, kIsolated, kContiguous, kMergedWithPrevious, kMergedWithNext };
  enum class Prepend { kNever, kFirst, kAlways };

  struct Step {
    Kind kind;
    Words words = Words::kGpt2;
    std::string literal;  // of kLiteral, and the replacement of kMetaspace
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;
    bool split = true;              // kByteLevel: by words; kMetaspace: before each replacement; kDigits: one by one
    bool add_prefix_space = false;  // kByteLevel
    Prepend prepend = Prepend::kNever;
  };

  void add_split(const JsonField& field);
  void add_metaspace(const JsonField& field);
  void add_step(const JsonField& field, const Step& step, size_t bytes);

  static void apply(const Step& step, TextPart part, std::vector<TextPart>* out);
  static void split_words(Words words, const TextPart& part, std::vector<TextPart>* out);
  static void split_literal(const Step& step, const TextPart& part, std::vector<TextPart>* out);
  static void split_digits(bool one_by_one, const TextPart& part, std::vector<TextPart>* out);

  StepBudget budget_;
  std::vector<Step> steps_;
};

// The character that a byte-level vocabulary writes for a byte, in UTF-8: itself where it is printable, U+0100 and
// further for the others.
const std::string& byte_level_character(unsigned char byte);

// The bytes of a byte-level token's text; characters that stand for no byte remain as they are.
std::string byte_level_bytes(std::string_view text);

}  // namespace eliza

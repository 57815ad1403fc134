#include "native/text/hf-tokenizer-file.h"

#include <string_view>

#include "native/text/json-document.h"

namespace eliza {
namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = size_t{64} << 20;  // Gemma's has 33 MB
// Besides the two tables; Gemma's list of added tokens has 45,000 values in 6,400 objects. (The parser goes through an
// array's elements after each object in it.)
constexpr size_t kMaxValues = 100000;
constexpr size_t kMaxContainers = 16384;

// Watches the parser. The two tables go into arrays of their own as they come, and the rest must stay small: as a tree
// of JSON values the tables would take a hundred bytes a row.
class Collector {
 public:
  explicit Collector(HfTokenizerFile* out) : file_(*out) {}

  // Whether the parser is to keep what this event brings.
  bool on(size_t depth, json::parse_event_t event, json& value) {
    switch (event) {
      case json::parse_event_t::key:
        return on_key(depth, value.get_ref<const std::string&>());
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        return on_start(depth, event == json::parse_event_t::object_start);
      case json::parse_event_t::array_end:
        if (!in(kMerges) || depth != 3) return true;
        add_merge(value);
        return false;
      case json::parse_event_t::object_end:
        return true;
      case json::parse_event_t::value:
        return on_value(depth, value);
    }
    return true;
  }

 private:
  static constexpr std::string_view kVocabulary = "vocab";
  static constexpr std::string_view kMerges = "merges";

  bool in(std::string_view table) const { return top_ == "model" && member_ == table; }

  bool on_key(size_t depth, const std::string& key) {
    if (depth == 1) {
      top_ = key;
      member_.clear();
    } else if (depth == 2) {
      member_ = key;
    } else if (depth == 3 && in(kVocabulary)) {
      token_ = key;
      return false;
    }
    return true;
  }

  bool on_start(size_t depth, bool is_object) {
    if (depth == kMaxJsonDepth) {
      fail_in_file(file_.path, "is nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    }
    if (in(kVocabulary) && (depth != 2 || !is_object)) {
      fail_in_file(file_.path, "/model/vocab must be an object of token ids, as in a model of type \"BPE\"");
    }
    if (in(kMerges) && (is_object || depth > 3)) reject_merge();
    merge_size_ = 0;
    count();
    if (!in(kMerges) && ++containers_ > kMaxContainers) {
      fail_in_file(file_.path, "holds more than " + std::to_string(kMaxContainers) + " objects and arrays");
    }
    return true;
  }

  bool on_value(size_t depth, const json& value) {
    if (in(kVocabulary) && depth == 3) {
      if (file_.vocabulary.size() > kMostTokenId) fail_in_file(file_.path, "/model/vocab has too many tokens");
      file_.vocabulary.emplace_back(token_, token_id(value));
      return false;
    }
    if (in(kMerges) && depth == 2) fail_in_file(file_.path, "/model/merges must be an array of merges");
    if (in(kMerges) && depth == 3) {
      add_merge(value);
      return false;
    }
    if (in(kMerges) && depth == 4) {  // one of a pair
      if (++merge_size_ > 2) reject_merge();
      return true;
    }
    count();
    return true;
  }

  int32_t token_id(const json& value) const {
    const JsonField field(file_.path, json::json_pointer() / "model" / "vocab" / token_, &value);
    return static_cast<int32_t>(field.whole_number(0, kMostTokenId));
  }

  // "left right", or ["left", "right"].
  void add_merge(const json& value) {
    if (file_.merges.size() == kMostMerges) fail_in_file(file_.path, "/model/merges has too many merges");
    if (value.is_string()) {
      const std::string& pair = value.get_ref<const std::string&>();
      if (pair.compare(0, 8, "#version") == 0) return;
      const size_t space = pair.find(' ');
      if (space == pair.npos || pair.find(' ', space + 1) != pair.npos) reject_merge();
      file_.merges.emplace_back(pair.substr(0, space), pair.substr(space + 1));
    } else {
      if (!value.is_array() || value.size() != 2 || !value[0].is_string() || !value[1].is_string()) reject_merge();
      file_.merges.emplace_back(value[0].get<std::string>(), value[1].get<std::string>());
    }
  }

  [[noreturn]] void reject_merge() const {
    fail_in_file(file_.path, "/model/merges/" + std::to_string(file_.merges.size()) +
                                 " must be two tokens, as [\"a\", \"b\"] or \"a b\"");
  }

  void count() {
    if (in(kMerges)) return;  // a pair in the making
    if (++values_ > kMaxValues) {
      fail_in_file(file_.path, "holds more than " + std::to_string(kMaxValues) + " values besides its vocabulary");
    }
  }

  HfTokenizerFile& file_;
  std::string top_;     // the key at the top that the parser is in
  std::string member_;  // the key below it
  std::string token_;
  size_t merge_size_ = 0;  // of the merge that the parser is in
  size_t values_ = 0;
  size_t containers_ = 0;
};

}  // namespace

HfTokenizerFile read_hf_tokenizer_file(const std::string& path) {
  HfTokenizerFile file;
  file.path = path;
  Collector collector(&file);
  const auto callback = [&collector](int depth, json::parse_event_t event, json& value) {
    return collector.on(static_cast<size_t>(depth), event, value);
  };
  file.document = parse_json(read_text_file(path, kMaxBytes, "a tokenizer"), path, callback);
  return file;
}

}  // namespace eliza

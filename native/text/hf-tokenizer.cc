#include "native/text/hf-tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>
#include <utility>

#include "native/base/error.h"
#include "native/base/regular-file.h"
#include "native/text/hf-tokenizer-file.h"
#include "native/text/json-document.h"
#include "native/text/quote.h"
#include "native/text/token-ids.h"
#include "native/text/utf8-gate.h"

namespace eliza {
namespace {

using nlohmann::json;

constexpr size_t kMostAddedBytes = 1024;  // of an added token's text: looking for it costs so much per byte of a text
constexpr size_t kMostEnds = 64;          // tokens around a text; models have one or two

JsonField root_of(const std::string& path, const json& document) {
  JsonField root(path, json::json_pointer(), &document);
  if (!document.is_object()) root.reject("an object");
  return root;
}

// The text of a token in tokenizer_config.json: a string, or an object with "content".
std::optional<std::string> token_text(const JsonField& config, const char* key) {
  const std::optional<JsonField> field = config.present(key);
  if (!field) return std::nullopt;
  if (field->value().is_object()) return field->required("content", "a string").string("a string");
  return field->string("a string, or an object with \"content\"");
}

// The byte of "<0xNN>"; -1 for other texts.
int byte_of(const std::string& text) {
  if (text.size() != 6 || text.compare(0, 3, "<0x") != 0 || text[5] != '>') return -1;
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  const int high = digit(text[3]);
  const int low = digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace

std::shared_ptr<const HfTokenizer> HfTokenizer::load(const std::string& directory,
                                                     std::map<std::string, std::string> keys) {
  const std::shared_ptr<HfTokenizer> tokenizer(new HfTokenizer);
  tokenizer->metadata_ = std::move(keys);
  HfTokenizerFile file = read_hf_tokenizer_file(directory + "/tokenizer.json");
  const JsonField root = root_of(file.path, file.document);
  tokenizer->read_vocabulary(root, file);
  if (const auto field = root.present("normalizer")) tokenizer->normalizer_.add(*field);
  if (const auto field = root.present("pre_tokenizer")) tokenizer->pre_tokenizer_.add(*field);
  tokenizer->read_added_tokens(root);
  tokenizer->read_model(root, file);
  tokenizer->read_decoder(root);
  if (const auto field = root.present("post_processor")) tokenizer->read_post_processor(*field);
  tokenizer->spell_tokens();
  tokenizer->read_config(directory);
  return tokenizer;
}

// Gives `text` its id; an error where the id has another text already.
int32_t HfTokenizer::place(const JsonField& field, const std::string& text, uint64_t id) {
  if (id >= tokens_.size()) tokens_.resize(id + 1);
  Token& token = tokens_[id];
  if (token.exists && token.text != text) field.reject("an id of its own: " + in_quotes(token.text) + " has it");
  token.exists = true;
  token.text = text;
  return static_cast<int32_t>(id);
}

void HfTokenizer::read_vocabulary(const JsonField& root, const HfTokenizerFile& file) {
  const JsonField model = root.required("model", "an object");
  if (!model.value().is_object()) model.reject("an object");
  if (file.vocabulary.empty())
    fail_in_file(file.path, "/model/vocab is missing or empty; it must hold the tokens' ids");
  for (const auto& [text, id] : file.vocabulary) {
    const auto index = static_cast<size_t>(id);
    if (index >= tokens_.size()) tokens_.resize(index + 1);
    if (tokens_[index].exists) {
      fail_in_file(file.path, place_name(json::json_pointer() / "model" / "vocab" / text) + " has the id " +
                                  std::to_string(id) + ", which another token has already");
    }
    tokens_[index].text = text;
    tokens_[index].exists = true;
  }
}

void HfTokenizer::read_added_tokens(const JsonField& root) {
  const std::optional<JsonField> list = root.present("added_tokens");
  if (!list) return;
  list->for_each_element([this](const JsonField& field) {
    const JsonField content = field.required("content", "a string");
    AddedToken token;
    token.content = content.string("a string");
    if (token.content.size() > kMostAddedBytes) {
      content.reject("at most " + std::to_string(kMostAddedBytes) + " bytes long");
    }
    const JsonField id = field.required("id", "the token's id");
    token.id = place(id, token.content, id.whole_number(0, kMostTokenId));
    token.special = field.boolean_or("special", false);
    token.left_strip = field.boolean_or("lstrip", false);
    token.right_strip = field.boolean_or("rstrip", false);
    if (field.boolean_or("single_word", false)) field.required("single_word", "").reject("false: it is not supported");
    tokens_[static_cast<size_t>(token.id)].special = token.special;
    if (token.content.empty()) return;
    added_.emplace(token.content, token.id);
    if (field.boolean_or("normalized", !token.special)) {
      const std::string normalized = normalizer_.apply(token.content);
      if (normalized.size() > kMostAddedBytes) {
        content.reject("at most " + std::to_string(kMostAddedBytes) + " bytes long, normalized");
      }
      if (!normalized.empty()) normalized_added_.add(normalized, token);
    } else {
      raw_added_.add(token.content, token);
    }
  });
}

void HfTokenizer::read_model(const JsonField& root, const HfTokenizerFile& file) {
  const JsonField model = root.required("model", "an object");
  // Older files leave the type of a BPE model out.
  if (model.string_or("type", "BPE") != "BPE") model.required("type", "").reject("\"BPE\": others are not supported");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.string_or(key, "").empty()) model.required(key, "").reject("null or empty: it is not supported");
  }
  const std::optional<JsonField> dropout = model.present("dropout");
  if (dropout && dropout->value() != 0) dropout->reject("null: ids would be drawn by chance");

  std::unordered_map<std::string_view, int32_t> vocabulary;
  vocabulary.reserve(file.vocabulary.size());
  for (const auto& [text, id] : file.vocabulary) {
    if (!vocabulary.emplace(tokens_[static_cast<size_t>(id)].text, id).second) {
      fail_in_file(file.path, "/model/vocab has " + in_quotes(text) + " twice");
    }
  }
  BpeModel::Options options;
  options.byte_fallback = model.boolean_or("byte_fallback", false);
  options.fuse_unknown = model.boolean_or("fuse_unk", false);
  options.ignore_merges = model.boolean_or("ignore_merges", false);
  if (const std::optional<JsonField> unknown = model.present("unk_token")) {
    const auto token = vocabulary.find(unknown->string("a string"));
    if (token == vocabulary.end()) unknown->reject("a token of /model/vocab");
    options.unknown = token->second;
    metadata_.emplace("tokenizer.ggml.unknown_token_id", std::to_string(token->second));
  }
  model_ = std::make_unique<BpeModel>(std::move(vocabulary), options);
  for (size_t i = 0; i < file.merges.size(); ++i) {
    const auto& [left, right] = file.merges[i];
    if (model_->add_merge(left, right)) continue;
    fail_in_file(file.path, "/model/merges/" + std::to_string(i) + " merges " + in_quotes(left) + " and " +
                                in_quotes(right) + "; these and " + in_quotes(left + right) +
                                " must be tokens of /model/vocab");
  }
}

void HfTokenizer::read_decoder(const JsonField& root) {
  const JsonField decoder = root.required("decoder", "an object that says what tokens stand for");
  std::vector<JsonField> steps;
  if (decoder.type() == "Sequence") {
    decoder.required("decoders", "an array").for_each_element([&steps](const JsonField& step) {
      steps.push_back(step);
    });
  } else {
    steps.push_back(decoder);
  }
  bool pieces = false;
  for (const JsonField& step : steps) {
    const std::string& type = step.type();
    if (type == "ByteLevel") {
      byte_level_ = true;
    } else if (type == "ByteFallback") {
      byte_fallback_ = true;
    } else if (type == "Replace" || type == "Metaspace") {
      pieces = true;
      const JsonField space = type == "Replace" ? step.required("pattern", "an object").required("String", "a string")
                                                : step.required("replacement", "a character");
      space_ = space.string("a string");
      if (space_.empty()) space.reject("a string that is not empty");
      if (type == "Replace" && step.string_or("content", "") != " ") {
        step.required("content", "a space").reject("a space: others are not supported");
      }
      const bool prepended =
          step.string_or("prepend_scheme", "always") != "never" && step.boolean_or("add_prefix_space", true);
      if (type == "Metaspace" && prepended) strip_ = 1;
    } else if (type == "Strip") {
      if (step.string_or("content", "") != " ")
        step.required("content", "a space").reject("a space: others are not supported");
      strip_ = step.required("start", "a number of spaces").whole_number(0, 16);
    } else if (type != "Fuse") {
      step.required("type", "")
          .reject(
              "one of \"Sequence\", \"ByteLevel\", \"Replace\", \"ByteFallback\", \"Fuse\", \"Strip\", \"Metaspace\": "
              "others are "
              "not supported");
    }
  }
  if (byte_level_ == pieces) decoder.reject("byte-level (\"ByteLevel\") or by pieces (\"Replace\" or \"Metaspace\")");
}

void HfTokenizer::read_post_processor(const JsonField& field) {
  const std::string& type = field.type();
  if (type == "Sequence") {
    field.required("processors", "an array").for_each_element([this](const JsonField& step) {
      read_post_processor(step);
    });
  } else if (type == "TemplateProcessing") {
    read_template(field);
  } else if (type != "ByteLevel") {  // which moves offsets only
    field.required("type", "")
        .reject("one of \"Sequence\", \"TemplateProcessing\", \"ByteLevel\": others are not supported");
  }
}

void HfTokenizer::read_template(const JsonField& field) {
  size_t sequences = 0;
  const JsonField single = field.required("single", "an array");
  single.for_each_element([&](const JsonField& item) {
    if (item.optional("Sequence")) {
      ++sequences;
      return;
    }
    const std::string name = item.required("SpecialToken", "an object").required("id", "a string").string("a string");
    const JsonField special = field.required("special_tokens", "an object").required(name.c_str(), "an object");
    special.required("ids", "an array").for_each_element([&](const JsonField& id) {
      const uint64_t token = id.whole_number(0, kMostTokenId);
      if (token >= tokens_.size() || !tokens_[token].exists) id.reject("the id of a token");
      if (prefix_.size() + suffix_.size() == kMostEnds) {
        id.reject("one of at most " + std::to_string(kMostEnds) + " around a text");
      }
      (sequences == 0 ? prefix_ : suffix_).push_back(static_cast<int32_t>(token));
    });
  });
  if (sequences != 1) single.reject("an array with one \"Sequence\"");
}

void HfTokenizer::read_config(const std::string& directory) {
  const std::string path = directory + "/tokenizer_config.json";
  if (is_there(path)) {
    const json document = read_small_json(path, "a tokenizer's settings");
    const JsonField config = root_of(path, document);
    read_ends(config);
    if (const std::optional<JsonField> chat = config.present("chat_template")) {
      if (chat->value().is_array()) {
        // Several by name; "default" is the one to use.
        chat->for_each_element([this](const JsonField& entry) {
          if (entry.string_or("name", "") != "default") return;
          metadata_["tokenizer.chat_template"] = entry.required("template", "a string").string("a string");
        });
      } else {
        metadata_["tokenizer.chat_template"] = chat->string("a string, or an array of templates");
      }
    }
  }
  const std::string chat_template = directory + "/chat_template.jinja";
  constexpr size_t kMostTemplateBytes = size_t{4} << 20;
  if (is_there(chat_template)) {
    metadata_["tokenizer.chat_template"] =
        to_valid_utf8(read_text_file(chat_template, kMostTemplateBytes, "a chat template"));
  }
}

// BOS and EOS: tokenizer_config.json has the last word on whether they are added.
void HfTokenizer::read_ends(const JsonField& config) {
  const auto token = [&](const char* key, const std::string& name) -> std::optional<int32_t> {
    const std::optional<std::string> text = token_text(config, key);
    const std::optional<int32_t> id = text ? find(*text) : std::nullopt;
    if (id) metadata_["tokenizer.ggml." + name + "_token_id"] = std::to_string(*id);
    return id;
  };
  const auto set = [&](const char* flag, const char* key, std::optional<int32_t> id, std::vector<int32_t>* ends) {
    const std::optional<JsonField> adds = config.present(flag);
    if (!adds) return;
    ends->clear();
    if (!adds->boolean()) return;
    if (!id) fail_in_file(config.file(), "/" + std::string(flag) + " is true, and /" + key + " names no token");
    ends->push_back(*id);
  };
  const std::optional<int32_t> bos = token("bos_token", "bos");
  const std::optional<int32_t> eos = token("eos_token", "eos");
  token("unk_token", "unknown");
  token("pad_token", "padding");
  set("add_bos_token", "bos_token", bos, &prefix_);
  set("add_eos_token", "eos_token", eos, &suffix_);
}

void HfTokenizer::spell_tokens() {
  for (Token& token : tokens_) {
    if (!token.exists) continue;
    const int byte = byte_fallback_ ? byte_of(token.text) : -1;
    if (byte >= 0) {
      token.bytes.assign(1, static_cast<char>(byte));
    } else if (!byte_level_) {
      for (size_t at = 0; at < token.text.size();) {
        const size_t found = token.text.find(space_, at);
        token.bytes.append(token.text, at, found == std::string::npos ? found : found - at);
        if (found == std::string::npos) break;
        token.bytes += ' ';
        at = found + space_.size();
      }
    } else {
      // A token that was added is spelt as it is.
      token.bytes = added_.count(token.text) > 0 ? token.text : byte_level_bytes(token.text);
    }
  }
}

std::optional<int32_t> HfTokenizer::find(std::string_view token) const {
  const auto added = added_.find(token);
  return added == added_.end() ? model_->find(token) : added->second;
}

std::vector<int32_t> HfTokenizer::tokenize(std::string_view input, bool add_special, bool parse_special) const {
  std::vector<int32_t> ids;
  if (add_special) ids = prefix_;
  const std::string text = to_valid_utf8_with_nuls(input);
  for (const AddedTokens::Part& raw : raw_added_.split(text, parse_special)) {
    if (raw.token >= 0) {
      ids.push_back(raw.token);
      continue;
    }
    const bool at_start = raw.text.data() == text.data();
    const std::string normalized = normalizer_.apply(std::string(raw.text));
    for (const AddedTokens::Part& part : normalized_added_.split(normalized, parse_special)) {
      if (part.token >= 0) {
        ids.push_back(part.token);
        continue;
      }
      const bool first = at_start && part.text.data() == normalized.data();
      for (const TextPart& word : pre_tokenizer_.apply({std::string(part.text), first}))
        model_->encode(word.text, &ids);
    }
  }
  if (add_special) ids.insert(ids.end(), suffix_.begin(), suffix_.end());
  return ids;
}

void HfTokenizer::check_tokens(const int32_t* tokens, size_t num_tokens) const {
  for (size_t i = 0; i < num_tokens; ++i) {
    const bool exists = tokens[i] >= 0 && tokens[i] < size() && tokens_[static_cast<size_t>(tokens[i])].exists;
    if (!exists) fail_unknown_token(tokens[i], i, size());
  }
}

std::string HfTokenizer::detokenize(const int32_t* tokens, size_t num_tokens, bool remove_special,
                                    bool unparse_special) const {
  check_tokens(tokens, num_tokens);
  const int32_t* end = tokens + num_tokens;
  if (remove_special) {
    const auto count = [](const std::vector<int32_t>& ends) { return static_cast<std::ptrdiff_t>(ends.size()); };
    if (end - tokens >= count(prefix_) && std::equal(prefix_.begin(), prefix_.end(), tokens)) tokens += count(prefix_);
    if (end - tokens >= count(suffix_) && std::equal(suffix_.begin(), suffix_.end(), end - count(suffix_))) {
      end -= count(suffix_);
    }
  }
  std::string text;
  for (; tokens != end; ++tokens) {
    const Token& token = tokens_[static_cast<size_t>(*tokens)];
    if (!token.special || unparse_special) text += token.bytes;
  }
  const size_t spaces = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(std::min(spaces, strip_));
}

std::string_view HfTokenizer::piece(int32_t token) const {
  if (token < 0 || token >= size()) return {};
  const Token& found = tokens_[static_cast<size_t>(token)];
  return found.special ? std::string_view() : std::string_view(found.bytes);
}

std::optional<std::string> HfTokenizer::metadata(const std::string& key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? std::nullopt : std::optional<std::string>(found->second);
}

}  // namespace eliza

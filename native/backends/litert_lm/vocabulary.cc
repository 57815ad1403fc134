#include "native/backends/litert_lm/vocabulary.h"

#include <algorithm>
#include <memory>

#include "native/backends/litert_lm/owned.h"
#include "native/base/error.h"

namespace eliza::litert_lm {

Vocabulary::Vocabulary(const Api& api, LiteRtLmEngine* engine) : api_(api), engine_(engine) {
  find_size();
  find_start();
  find_unreadable();
}

bool Vocabulary::holds(int32_t id) const {
  return Owned<LiteRtLmDetokenizeResult>(api_.engine_detokenize(engine_, &id, 1), api_.detokenize_result_delete) !=
         nullptr;
}

void Vocabulary::find_size() {
  constexpr int32_t kMost = 1 << 26;
  int32_t outside = 1;
  while (outside < kMost && holds(outside)) outside *= 2;
  int32_t inside = outside / 2;
  while (outside - inside > 1) {
    const int32_t middle = inside + (outside - inside) / 2;
    (holds(middle) ? inside : outside) = middle;
  }
  size_ = outside;
}

void Vocabulary::find_start() {
  const Owned<LiteRtLmTokenUnion> start(api_.engine_get_start_token(engine_), api_.token_union_delete);
  if (start == nullptr) return;
  if (api_.token_union_get_type(start.get()) == kUnionOfText) {
    const char* text = api_.token_union_get_string(start.get());
    if (text != nullptr) start_ = tokenize(text);
    return;
  }
  const int* ids = nullptr;
  size_t count = 0;
  if (api_.token_union_get_ids(start.get(), &ids, &count) == 0) start_.assign(ids, ids + count);
}

void Vocabulary::find_unreadable() {
  constexpr int32_t kMostSpecial = 1024;
  for (int32_t id = 0; id < std::min(size_, kMostSpecial); ++id) {
    std::string spelling = text(&id, 1);
    const auto same = [&](const Unreadable& other) { return other.text == spelling; };
    if (std::any_of(unreadable_.begin(), unreadable_.end(), same)) continue;
    if (tokenize(spelling).size() != 1) unreadable_.push_back({std::move(spelling), id});
  }
}

std::vector<int32_t> Vocabulary::tokenize(const std::string& text) const {
  if (text.empty()) return {};
  const Owned<LiteRtLmTokenizeResult> result(api_.engine_tokenize(engine_, text.c_str()), api_.tokenize_result_delete);
  if (result == nullptr) throw Error(ELIZA_ERR_FFI_FAULT, "LiteRT-LM cannot tokenize the text: " + last_error(api_));
  const int* const tokens = api_.tokenize_result_get_tokens(result.get());
  return {tokens, tokens + api_.tokenize_result_get_num_tokens(result.get())};
}

std::string Vocabulary::text(const int32_t* tokens, size_t count) const {
  if (count == 0) return {};
  const Owned<LiteRtLmDetokenizeResult> result(api_.engine_detokenize(engine_, tokens, count),
                                               api_.detokenize_result_delete);
  if (result == nullptr) throw Error(ELIZA_ERR_FFI_FAULT, "LiteRT-LM cannot write the tokens: " + last_error(api_));
  const char* const text = api_.detokenize_result_get_string(result.get());
  return text == nullptr ? "" : text;
}

}  // namespace eliza::litert_lm

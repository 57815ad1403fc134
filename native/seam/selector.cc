#include "native/seam/selector.h"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "native/base/error.h"
#include "native/base/strings.h"
#include "native/text/quote.h"

namespace eliza {

namespace {

constexpr char kLlamaCpp[] = "llama.cpp";
constexpr int kLlamaCppRank = 0;

// What an error message shows of a name that is longer: enough to recognise it by.
constexpr size_t kMaxNameBytes = 80;

std::string_view trimmed(std::string_view text) {
  constexpr char kAsciiSpace[] = " \t\n\v\f\r";
  const size_t begin = text.find_first_not_of(kAsciiSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kAsciiSpace) - begin + 1);
}

// How many insertions, deletions and replacements of a character lead from `a` to `b` (Levenshtein).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

// The name that a misspelt `value` was likely meant to be; empty where none is near.
std::string nearest_name(std::string_view value, const std::vector<BackendRow>& backends) {
  constexpr size_t kMaxEdits = 2;
  constexpr size_t kLongest = 64;  // a longer one is no misspelling
  const std::string given = squashed(value.substr(0, kLongest));
  std::string nearest;
  size_t fewest = kMaxEdits + 1;
  for (const BackendRow& row : backends) {
    const std::string name = squashed(row.name);
    const bool begins = given.size() >= 3 && name.compare(0, given.size(), given) == 0;
    const size_t edits = begins ? 1 : edit_distance(given, name);
    // Not everything: from "x", two edits lead to any name of two letters.
    if (edits < fewest && edits < given.size()) {
      fewest = edits;
      nearest = row.name;
    }
  }
  return nearest;
}

void add_reason(std::string* reason, std::string_view addition) {
  if (!reason->empty()) *reason += "; ";
  *reason += addition;
}

// The answer to one question. Factories are other people's code: whatever they throw is a no and, as text, a reason. An
// Error is worded for users already.
template <typename Question>
bool ask(const char* function, const Question& question, std::string* reason) {
  try {
    return question();
  } catch (const std::bad_alloc&) {
    // No answer. Taken for a no, it would run something else than what is meant.
    throw;
  } catch (const Error& error) {
    add_reason(reason, printable(error.what()));
  } catch (const std::exception& error) {
    add_reason(reason, std::string(function) + " failed: " + printable(error.what()));
  } catch (...) {
    add_reason(reason, std::string(function) + " failed with an unknown exception");
  }
  return false;
}

class Selector {
 public:
  explicit Selector(const SelectionRequest& request)
      : request_(request), wanted_(trimmed(request.env_value ? std::string_view(*request.env_value) : "")) {}

  Decision run() {
    const bool usable = request_.bundle.error.empty();
    decision_.named = !automatic();
    list_backends();
    if (usable || reporting()) interview_backends();
    if (!usable) {
      fail(request_.bundle.error);
    } else if (automatic()) {
      choose();
    } else {
      obey();
    }
    if (reporting()) add_remarks();
    for (BackendRow& row : decision_.backends) {
      if (row.reason.empty()) row.reason = usable ? "ELIZA_LLM_BACKEND does not name it" : "the bundle cannot be read";
    }
    return std::move(decision_);
  }

 private:
  bool reporting() const { return request_.ask == Ask::kReport; }
  bool automatic() const { return wanted_.empty(); }
  bool thorough() const { return reporting() || !automatic(); }
  bool is_wanted(const BackendRow& row) const {
    return same_backend_name(row.name, wanted_) || (is_llama_cpp_name(row.name) && is_llama_cpp_name(wanted_));
  }

  void list_backends() {
    BackendRow llama_cpp;
    llama_cpp.name = kLlamaCpp;
    llama_cpp.compiled = true;
    llama_cpp.available = true;
    if (request_.bundle.error.empty()) llama_cpp.can_serve = request_.bundle.has_text_gguf;
    llama_cpp.rank = kLlamaCppRank;
    decision_.backends.push_back(std::move(llama_cpp));

    for (const RegisteredBackend& backend : request_.registered) {
      BackendRow row;
      row.name = backend.name;
      row.factory = backend.factory;
      row.compiled = true;
      decision_.backends.push_back(std::move(row));
    }
    for (const KnownBackend& backend : request_.known) {
      const auto listed = [&](const BackendRow& row) { return same_backend_name(row.name, backend.name); };
      if (std::any_of(decision_.backends.begin(), decision_.backends.end(), listed)) continue;
      BackendRow row;
      row.name = backend.name;
      row.compiled = backend.compiled;
      row.reason = backend.compiled ? "not registered in this process"
                                    : "not compiled into this build; " + backend.flag + " does that";
      decision_.backends.push_back(std::move(row));
    }
  }

  // -- Asking ------------------------------------------------------------------------------------------------------

  void interview_backends() {
    for (BackendRow& row : decision_.backends) {
      if (row.factory != nullptr && (automatic() || is_wanted(row))) interview(&row);
    }
  }

  // Asks one backend. Where it may be passed over, its first no ends it; a report and an error tell all there is.
  void interview(BackendRow* row) const {
    const LlmBackendFactory& factory = *row->factory;
    if (request_.bundle.error.empty()) {
      const char* const bundle_dir = request_.bundle.directory.c_str();
      row->can_serve = ask("can_serve", [&] { return factory.can_serve(bundle_dir); }, &row->reason);
    }
    if (row->can_serve.value_or(false) || thorough()) {
      row->available = ask("available", [&] { return factory.available(); }, &row->reason);
    }
    if (row->available.value_or(false)) {
      if (request_.config != nullptr && row->can_serve.value_or(false)) {
        std::string why;
        row->can_honour = ask("can_honour", [&] { return factory.can_honour(request_.config, &why); }, &row->reason);
        if (!*row->can_honour && row->reason.empty()) {
          row->reason = why.empty() ? "it cannot honour an option of this stream" : printable(why);
        }
      }
      int rank = 0;
      const auto ask_rank = [&] {
        rank = row->can_serve.value_or(false) ? factory.preference_rank_for(request_.bundle.directory.c_str())
                                              : factory.preference_rank();
        return true;
      };
      if (ask("preference_rank", ask_rank, &row->reason)) row->rank = rank;
    }
    if (row->reason.empty()) row->reason = explanation(*row);
  }

  // Why a backend said no, in its own words where it has some and somebody will read them.
  std::string explanation(const BackendRow& row) const {
    const bool unavailable = row.available == false;
    const bool unfit = row.can_serve == false;
    if (!unavailable && !unfit) return {};
    std::string words;
    if (thorough()) {
      std::string failure;
      const auto explain = [&] { return words = row.factory->explain(request_.bundle.directory.c_str()), true; };
      ask("explain", explain, &failure);
    }
    if (!words.empty()) return printable(words);
    if (unfit) add_reason(&words, "it finds nothing in this bundle that it can serve");
    if (unavailable) add_reason(&words, "it is not available on this host");
    return words;
  }

  void add_remarks() {
    for (BackendRow& row : decision_.backends) {
      if (!is_willing(row)) continue;
      std::string words;
      std::string failure;
      const auto remark = [&] { return words = row.factory->remark(request_.bundle.directory.c_str()), true; };
      ask("remark", remark, &failure);
      if (!words.empty()) add_reason(&row.reason, printable(words));
    }
  }

  // -- Deciding ----------------------------------------------------------------------------------------------------

  static bool is_willing(const BackendRow& row) {
    return row.factory != nullptr && row.can_serve.value_or(false) && row.available.value_or(false) &&
           row.can_honour.value_or(true);
  }

  // Nobody is named: the highest rank wins, the first of equals. llama.cpp takes part where it has something to read.
  void choose() {
    BackendRow* const llama_cpp = &decision_.backends.front();
    const bool has_gguf = request_.bundle.has_text_gguf;
    const auto competes = [&](const BackendRow& row) { return is_willing(row) && row.rank.has_value(); };
    BackendRow* best = has_gguf ? llama_cpp : nullptr;
    for (BackendRow& row : decision_.backends) {
      if (competes(row) && (best == nullptr || *row.rank > *best->rank)) best = &row;
    }
    if (best == nullptr) {
      accept(llama_cpp, "no backend can serve this bundle, which holds no text/*.gguf either: open will fail");
      return;
    }
    const std::string winner = best->name + " (" + std::to_string(*best->rank) + ")";
    for (BackendRow& row : decision_.backends) {
      if (competes(row)) row.reason = "its rank " + std::to_string(*row.rank) + " does not exceed that of " + winner;
    }
    if (best == llama_cpp) {
      accept(best, "the default, and no backend that can serve this bundle outranks it");
    } else {
      llama_cpp->reason = has_gguf ? "its rank 0 is below that of " + winner : "the bundle holds no text/*.gguf";
      accept(best, "the highest rank (" + std::to_string(*best->rank) + ") of those that can serve this bundle");
    }
  }

  // A backend is named: it answers, or nobody does.
  void obey() {
    BackendRow* wanted = nullptr;
    for (BackendRow& row : decision_.backends) {
      if (is_wanted(row)) wanted = &row;
    }
    if (wanted == nullptr) {
      const std::string nearest = nearest_name(wanted_, decision_.backends);
      refuse("which names no backend" + (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
    } else if (wanted == &decision_.backends.front() || is_willing(*wanted)) {
      accept(wanted, "named by ELIZA_LLM_BACKEND");
    } else if (wanted->factory == nullptr) {
      refuse("but " + wanted->name + " is " + wanted->reason);
    } else if (wanted->can_serve == false) {
      refuse("but " + wanted->name + " cannot serve " + in_quotes(request_.bundle.directory, kMostPathBytes) + ": " +
             wanted->reason);
    } else if (wanted->available == false) {
      refuse("but " + wanted->name + " is not available: " + wanted->reason);
    } else {
      refuse("but " + wanted->name + " cannot do what this stream asks for: " + wanted->reason);
    }
  }

  void accept(BackendRow* row, std::string reason) {
    row->chosen = true;
    row->reason = std::move(reason);
    decision_.factory = row->factory;
    decision_.outcome = row->factory == nullptr ? Decision::Outcome::kLlamaCpp : Decision::Outcome::kFactory;
  }

  void fail(std::string message) {
    decision_.outcome = Decision::Outcome::kError;
    decision_.error = std::move(message);
  }

  // The hard error of a hard select. Who reads it wants to know what else to write there.
  void refuse(const std::string& why) {
    std::vector<std::string> valid;
    std::vector<std::string> absent;
    for (const BackendRow& row : decision_.backends) {
      const bool usable = row.factory != nullptr || &row == &decision_.backends.front();
      (usable ? valid : absent).push_back(row.name);
    }
    std::string message = "ELIZA_LLM_BACKEND is " + in_quotes(*request_.env_value, kMaxNameBytes) + ", " + why;
    if (message.back() != '?' && message.back() != '.') message += '.';
    message += " Valid names: " + joined(valid) + ".";
    if (!absent.empty()) message += " Not in this build: " + joined(absent) + ".";
    fail(message + " Unset it to let the library choose.");
  }

  const SelectionRequest& request_;
  const std::string_view wanted_;  // empty: choose
  Decision decision_;
};

}  // namespace

Decision decide(const SelectionRequest& request) { return Selector(request).run(); }

}  // namespace eliza

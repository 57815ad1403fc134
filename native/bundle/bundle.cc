#include "native/bundle/bundle.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "native/base/directory.h"
#include "native/base/error.h"
#include "native/base/strings.h"
#include "native/bundle/manifest.h"
#include "native/text/quote.h"
#include "native/text/utf8-gate.h"

namespace eliza {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& problem) {
  throw Error(ELIZA_ERR_BUNDLE_INVALID, to_valid_utf8(path) + problem);
}

bool is_directory(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// The same for an entry of a listing, which mostly knows without another system call.
bool is_directory(const std::string& directory, const dirent& entry) {
  if (entry.d_type == DT_DIR) return true;
  if (entry.d_type == DT_REG) return false;
  return is_directory(directory + "/" + entry.d_name);  // a link, or a file system that does not tell
}

// Why something is no model, to go on behind its name, and what to do about that.
struct Problem {
  std::string what;
  std::string advice = "download it again";
};

// What keeps `path` from being looked at; nullopt where nothing does, and *status is then what it is.
std::optional<Problem> look_at(const std::string& path, struct stat* status) {
  if (stat(path.c_str(), status) == 0) return std::nullopt;
  const int error_number = errno;
  if (error_number != ENOENT) return Problem{"cannot be read: " + system_reason(error_number), "make it readable"};
  const bool is_link = lstat(path.c_str(), status) == 0;
  return Problem{is_link ? "is a link to a file that does not exist" : "does not exist"};
}

// What keeps `path` from being a readable file; nullopt for nothing.
std::optional<Problem> file_problem(const std::string& path) {
  struct stat status;
  if (std::optional<Problem> problem = look_at(path, &status)) return problem;
  if (S_ISREG(status.st_mode)) return std::nullopt;
  return Problem{S_ISDIR(status.st_mode) ? "is a directory, not a file" : "is not a regular file"};
}

// The same for the directory of an MLX model.
std::optional<Problem> mlx_problem(const std::string& path) {
  struct stat status;
  if (std::optional<Problem> problem = look_at(path, &status)) return problem;
  if (!S_ISDIR(status.st_mode)) return Problem{"is not a directory"};
  if (std::optional<Problem> problem = file_problem(path + "/config.json")) {
    return Problem{"has no config.json: it " + problem->what, problem->advice};
  }
  const auto weights =
      list_directory(path, [](const dirent& entry) { return ends_with(entry.d_name, ".safetensors"); });
  return weights.empty() ? std::optional(Problem{"has no *.safetensors"}) : std::nullopt;
}

bool is_coreml_package(std::string_view name) { return ends_with(name, ".mlpackage") || ends_with(name, ".mlmodelc"); }

// A file of a split GGUF model, by llama.cpp's naming: NAME-00001-of-00003.gguf. Paths of one set differ in `part`.
struct SplitName {
  std::string prefix;
  int part;
  int parts;

  std::string path(int of_part) const {
    char suffix[32];
    std::snprintf(suffix, sizeof suffix, "-%05d-of-%05d.gguf", of_part, parts);
    return prefix + suffix;
  }
};

std::optional<SplitName> split_name(const std::string& path) {
  constexpr size_t kSuffixSize = sizeof "-00001-of-00003.gguf" - 1;
  if (path.size() < kSuffixSize) return std::nullopt;
  const std::string suffix = path.substr(path.size() - kSuffixSize);
  const SplitName name{path.substr(0, path.size() - kSuffixSize), std::atoi(suffix.c_str() + 1),
                       std::atoi(suffix.c_str() + 10)};
  if (name.part < 1 || name.part > name.parts || name.path(name.part) != path) return std::nullopt;
  return name;
}

// A file that may be the artifact.
struct Candidate {
  std::string path;      // relative to the bundle
  int32_t context_size;  // 0: not given
  std::string named_by;  // the manifest's field that names it; "" for one that was found in text/
};

// What is in text/ for a class, in the order of names.
std::vector<Candidate> find_candidates(const std::string& bundle, RuntimeClass runtime_class) {
  const std::string text = bundle + "/text";
  std::vector<std::string> names;
  if (runtime_class == RuntimeClass::kMlx) {
    if (!mlx_problem(text)) names.emplace_back();
    const auto models = list_directory(text, [&text](const dirent& entry) {
      return !is_coreml_package(entry.d_name) && is_directory(text, entry) && !mlx_problem(text + "/" + entry.d_name);
    });
    names.insert(names.end(), models.begin(), models.end());
  } else {
    const char* suffix = runtime_class == RuntimeClass::kLlamaCpp ? ".gguf" : ".litertlm";
    names = list_directory(text, [&text, suffix](const dirent& entry) {
      return ends_with(entry.d_name, suffix) && !is_directory(text, entry);
    });
  }
  std::vector<Candidate> candidates;
  for (const std::string& name : names) candidates.push_back({name.empty() ? "text" : "text/" + name, 0, ""});
  return candidates;
}

// What the manifest names for a class.
std::vector<Candidate> manifest_candidates(const std::string& bundle, const Manifest& manifest,
                                           RuntimeClass runtime_class) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < manifest.text.size(); ++i) {
    const ManifestFile& file = manifest.text[i];
    if (file.runtime_class != runtime_class) continue;
    candidates.push_back({file.path, file.context_size,
                          bundle + "/" + kManifestName + ": /files/text/" + std::to_string(i) + "/path: "});
  }
  return candidates;
}

// The one split set that all candidates belong to; nullopt where they do not.
std::optional<SplitName> common_split_set(const std::vector<Candidate>& candidates) {
  const std::optional<SplitName> set = split_name(candidates.front().path);
  if (!set) return std::nullopt;
  for (const Candidate& candidate : candidates) {
    const std::optional<SplitName> other = split_name(candidate.path);
    if (!other || other->prefix != set->prefix || other->parts != set->parts) return std::nullopt;
  }
  return set;
}

[[noreturn]] void fail_ambiguous(const std::string& bundle, const std::vector<Candidate>& candidates,
                                 RuntimeClass runtime_class) {
  std::vector<std::string> paths;
  for (const Candidate& candidate : candidates) paths.push_back(candidate.path);
  const std::string list = std::to_string(paths.size()) + " artifacts of runtimeClass " +
                           in_quotes(runtime_class_name(runtime_class)) +
                           ", where one can be meant: " + list_in_quotes(paths);
  if (candidates.front().named_by.empty()) {
    fail(bundle + "/text", " holds " + list + "; leave one, or name it in " + kManifestName);
  }
  fail(bundle + "/" + kManifestName, ": /files/text names " + list + "; leave one");
}

[[noreturn]] void fail_unusable(const std::string& bundle, const Candidate& candidate, const Problem& problem) {
  fail(candidate.named_by + bundle + "/" + candidate.path,
       " " + problem.what + "; " + problem.advice +
           (candidate.named_by.empty() ? ", or remove it" : ", or correct the manifest"));
}

void require_every_part(const std::string& bundle, const Candidate& candidate, const SplitName& set) {
  // A name can claim 99,999 parts: enough is known after a few that are not there.
  constexpr size_t kEnough = 16;
  std::vector<std::string> missing;
  for (int part = 1; part <= set.parts && missing.size() < kEnough; ++part) {
    if (file_problem(bundle + "/" + set.path(part))) missing.push_back(set.path(part));
  }
  if (missing.empty()) return;
  fail_unusable(
      bundle, candidate,
      {"is one file of " + std::to_string(set.parts) + ", but these are missing: " + list_in_quotes(missing)});
}

}  // namespace

Bundle Bundle::open(const std::string& directory) {
  struct stat status;
  const bool exists = stat(directory.c_str(), &status) == 0;
  if (!exists || !S_ISDIR(status.st_mode)) {
    const std::string problem = exists ? "is a file" : system_reason(errno);
    throw Error(ELIZA_ERR_BUNDLE_INVALID, "bundle directory " + in_quotes(directory) + ": " + problem +
                                              "; pass the directory that holds text/ (and " + kManifestName + ")");
  }
  Bundle bundle;
  bundle.directory_ = directory;
  bundle.manifest_ = read_manifest(directory);
  return bundle;
}

std::optional<Artifact> Bundle::text_artifact(RuntimeClass runtime_class) const {
  const std::vector<Candidate> candidates = manifest_ ? manifest_candidates(directory_, *manifest_, runtime_class)
                                                      : find_candidates(directory_, runtime_class);
  if (candidates.empty()) return std::nullopt;

  Candidate chosen = candidates.front();
  if (const auto set = runtime_class == RuntimeClass::kLlamaCpp ? common_split_set(candidates) : std::nullopt) {
    require_every_part(directory_, chosen, *set);
    chosen.path = set->path(1);
    for (const Candidate& part : candidates) chosen.context_size = std::max(chosen.context_size, part.context_size);
  } else if (candidates.size() > 1) {
    fail_ambiguous(directory_, candidates, runtime_class);
  }

  const std::string path = directory_ + "/" + chosen.path;
  const auto problem = runtime_class == RuntimeClass::kMlx ? mlx_problem(path) : file_problem(path);
  if (problem) fail_unusable(directory_, chosen, *problem);
  return Artifact{path, chosen.context_size};
}

bool Bundle::has_text_artifact(RuntimeClass runtime_class) const {
  return !(manifest_ ? manifest_candidates(directory_, *manifest_, runtime_class)
                     : find_candidates(directory_, runtime_class))
              .empty();
}

std::vector<std::string> Bundle::coreml_packages() const {
  const std::string text = directory_ + "/text";
  std::vector<std::string> packages = list_directory(
      text, [&text](const dirent& entry) { return is_coreml_package(entry.d_name) && is_directory(text, entry); });
  for (std::string& package : packages) package.insert(0, "text/");
  return packages;
}

}  // namespace eliza

#include "native/bundle/manifest.h"

#include <limits>
#include <set>
#include <utility>

#include "native/base/regular-file.h"
#include "native/text/json-document.h"
#include "native/text/quote.h"
#include "nlohmann/json.hpp"

namespace eliza {
namespace {

using nlohmann::json;
using Pointer = json::json_pointer;

// Real manifests hold a few kilobytes, four levels deep. The bounds keep a hostile one from costing memory, and
// recursion over it from running out of stack.
constexpr size_t kMaxBytes = size_t{4} << 20;
constexpr size_t kMaxObjects = 4096;  // the parser goes through a list's elements after each of them that is an object
constexpr size_t kMaxPathBytes = 1024;

constexpr RuntimeClass kRuntimeClasses[] = {RuntimeClass::kLlamaCpp, RuntimeClass::kLitertLm, RuntimeClass::kMlx};

// Watches the parser. JSON leaves open what a key that stands twice in an object means, and the parser has no bound on
// depth: both are errors here, with the place named.
class StructureCheck {
 public:
  explicit StructureCheck(const std::string& file) : file_(file) {}

  void on(json::parse_event_t event, const json& value) {
    switch (event) {
      case json::parse_event_t::key:
        levels_.back().key = value.get<std::string>();
        if (!levels_.back().keys.insert(levels_.back().key).second) {
          fail_in_file(file_, place_name(here()) + " appears twice; leave one of them");
        }
        break;
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        count_element();
        if (event == json::parse_event_t::object_start && ++objects_ > kMaxObjects) {
          fail_in_file(file_, "holds more than " + std::to_string(kMaxObjects) + " objects, too many for a manifest");
        }
        if (levels_.size() == kMaxJsonDepth) {
          fail_in_file(file_,
                       place_name(here()) + " is nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
        }
        levels_.emplace_back();
        levels_.back().is_array = event == json::parse_event_t::array_start;
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        levels_.pop_back();
        break;
      case json::parse_event_t::value:
        count_element();
        break;
    }
  }

 private:
  struct Level {
    bool is_array = false;
    size_t elements = 0;  // so far, with the one being parsed
    std::string key;      // the member being parsed
    std::set<std::string> keys;
  };

  void count_element() {
    if (!levels_.empty()) ++levels_.back().elements;
  }

  Pointer here() const {
    Pointer at;
    for (const Level& level : levels_) {
      if (level.is_array) {
        at /= level.elements - 1;
      } else {
        at /= level.key;
      }
    }
    return at;
  }

  const std::string& file_;
  size_t objects_ = 0;
  std::vector<Level> levels_;
};

bool is_relative_path(std::string_view path) {
  if (path.size() > kMaxPathBytes) return false;
  for (const char c : path) {
    if (c == '\\' || static_cast<unsigned char>(c) < 0x20) return false;
  }
  for (;;) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_sha256(std::string_view digest) {
  return digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == digest.npos;
}

RuntimeClass parse_runtime_class(const JsonField& field) {
  const json& value = field.value();
  std::string known;
  for (const RuntimeClass runtime_class : kRuntimeClasses) {
    // Not `value == name`: that makes a JSON value of the name, and ends the process where it gets no memory for it.
    const bool is_this = value.is_string() && value.get_ref<const std::string&>() == runtime_class_name(runtime_class);
    if (is_this) return runtime_class;
    known += (known.empty() ? "" : ", ") + in_quotes(runtime_class_name(runtime_class));
  }
  field.reject("one of " + known);
}

ManifestFile parse_file(const JsonField& field) {
  constexpr char kPath[] =
      "a path relative to the bundle, with \"/\" between its parts and no \"..\", \".\", empty part, backslash or "
      "control character";
  constexpr char kSha256[] = "the file's SHA-256 as 64 lower-case hexadecimal digits";
  constexpr uint64_t kMaxContext = std::numeric_limits<int32_t>::max();

  ManifestFile file;
  const JsonField path = field.required("path", kPath);
  file.path = path.string(kPath);
  if (!is_relative_path(file.path)) path.reject(kPath);

  const JsonField sha256 = field.required("sha256", kSha256);
  file.sha256 = sha256.string(kSha256);
  if (!is_sha256(file.sha256)) sha256.reject(kSha256);

  if (const std::optional<JsonField> ctx = field.optional("ctx")) {
    const json& tokens = ctx->value();
    if (!tokens.is_number_unsigned() || tokens.get<uint64_t>() < 1 || tokens.get<uint64_t>() > kMaxContext) {
      ctx->reject("a whole number of tokens from 1 to " + std::to_string(kMaxContext) +
                  " (leave it out for the model's own)");
    }
    file.context_size = static_cast<int32_t>(tokens.get<uint64_t>());
  }
  return file;
}

std::string parse_text(const JsonField& manifest, const char* key) {
  const std::optional<JsonField> field = manifest.optional(key);
  return field ? field->string("a string") : std::string();
}

}  // namespace

const char* runtime_class_name(RuntimeClass runtime_class) {
  switch (runtime_class) {
    case RuntimeClass::kLlamaCpp:
      return "llama-cpp";
    case RuntimeClass::kLitertLm:
      return "litert-lm";
    case RuntimeClass::kMlx:
      return "mlx";
  }
  return "";
}

Manifest parse_manifest(std::string_view text, const std::string& file) {
  StructureCheck check(file);
  const json document = parse_json(text, file, [&check](int, json::parse_event_t event, json& value) {
    check.on(event, value);
    return true;
  });
  const JsonField root(file, Pointer(), &document);

  Manifest manifest;
  manifest.id = parse_text(root, "id");
  manifest.tier = parse_text(root, "tier");
  manifest.version = parse_text(root, "version");

  const JsonField files = root.required("files", "an object of arrays of files, by what they are for");
  if (const std::optional<JsonField> entries = files.optional("text")) {
    entries->for_each_element([&manifest](const JsonField& entry) {
      manifest.text.push_back(parse_file(entry));
      if (const std::optional<JsonField> runtime_class = entry.optional("runtimeClass")) {
        manifest.text.back().runtime_class = parse_runtime_class(*runtime_class);
      }
    });
  }
  if (const std::optional<JsonField> entries = files.optional("mtp")) {
    entries->for_each_element([&manifest](const JsonField& entry) { manifest.mtp.push_back(parse_file(entry)); });
  }
  return manifest;
}

std::optional<Manifest> read_manifest(const std::string& directory) {
  const std::string file = directory + "/" + kManifestName;
  if (!is_there(file)) return std::nullopt;
  // From here on there is a manifest, and a bundle is never read as if it had none.
  return parse_manifest(read_text_file(file, kMaxBytes, "a manifest"), file);
}

}  // namespace eliza

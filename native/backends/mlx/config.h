// A model's config.json, with every value checked as it is read.
//
// Files come from strangers: a value of the wrong type or out of range is an Error(ELIZA_ERR_BUNDLE_INVALID) that names
// the file, the key, the value and what it may be. Whether the values fit the tensors is checked where those are taken
// (weights.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eliza::mlx {

// What a key's value has to be within.
struct Range {
  double least;
  double most;
};

// Bounds beyond any model there is, and within what products of two of them can be counted in.
inline constexpr Range kDimension{1, 1 << 20};
inline constexpr Range kLayers{1, 4096};
inline constexpr Range kVocabulary{1, 1 << 24};
inline constexpr Range kPositions{1, 1u << 30};
inline constexpr Range kPositive{1e-30, 1e30};

class Config {
 public:
  // Reads `directory`/config.json.
  static Config read(const std::string& directory);

  // The same for another file in it; nullopt where there is none.
  static std::optional<Config> read_optional(const std::string& directory, const std::string& name);

  const std::string& file() const;

  uint64_t fingerprint() const;  // of everything in the file

  bool has(const std::string& key) const;  // null counts as absent, here and below
  bool is_null(const std::string& key) const;

  // Without a fallback the key is required.
  int64_t integer(const std::string& key, Range range, std::optional<int64_t> fallback = std::nullopt) const;
  double number(const std::string& key, Range range, std::optional<double> fallback = std::nullopt) const;
  bool boolean(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, std::optional<std::string> fallback = std::nullopt) const;
  std::vector<std::string> texts(const std::string& key, size_t size) const;

  // An integer or an array of them; empty where absent.
  std::vector<int64_t> integers(const std::string& key, Range range) const;

  // Every member of an object whose values are texts.
  std::vector<std::pair<std::string, std::string>> text_members(const std::string& key) const;

  std::optional<Config> object(const std::string& key) const;

  // This one, where keys that it lacks are looked for in `outer`, an object of the same file.
  Config or_else(const Config& outer) const;

  // Throws: "FILE: /PLACE/KEY is VALUE; it must be WANTED".
  [[noreturn]] void reject(const std::string& key, const std::string& wanted) const;

 private:
  struct Document;
  struct Node;
  static Config read_file(const std::string& file);
  explicit Config(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  std::shared_ptr<const Node> node_;
};

// Throws where the config's model_type is none of those that run here, with the known ones.
void require_known_model(const Config& config);

}  // namespace eliza::mlx

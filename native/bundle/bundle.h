// A bundle: the directory that holds a model's files, and the manifest that names them (docs/bundle.md).
//
//   <bundle>/eliza-1.manifest.json     optional; where it exists it is the source of truth
//   <bundle>/text/*.gguf | *.litertlm | <mlx directory>/ | *.mlpackage | *.mlmodelc
//
// Nothing is cached: each probe reads the directory again, since models are downloaded and replaced while a process
// runs. Symlinks are followed (build systems and model caches stage files as links). Functions throw
// Error(ELIZA_ERR_BUNDLE_INVALID) naming the file and the field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace eliza {

inline constexpr char kManifestName[] = "eliza-1.manifest.json";

// The manifest's "runtimeClass" of a text artifact.
enum class RuntimeClass { kLlamaCpp, kLitertLm, kMlx };
const char* runtime_class_name(RuntimeClass runtime_class);  // "llama-cpp", "litert-lm", "mlx"

struct ManifestFile {
  std::string path;          // relative to the bundle, '/'-separated, without ".."
  std::string sha256;        // 64 lower-case hexadecimal digits; not checked here
  int32_t context_size = 0;  // "ctx"; 0: not given
  RuntimeClass runtime_class = RuntimeClass::kLlamaCpp;
};

struct Manifest {
  std::string id;
  std::string tier;
  std::string version;
  std::vector<ManifestFile> text;
  std::vector<ManifestFile> mtp;
};

// The model file (or directory, for MLX) a backend opens.
struct Artifact {
  std::string path;          // openable: bundle directory + relative path; the first file of a split GGUF set
  int32_t context_size = 0;  // the manifest's "ctx"; 0: not given
};

class Bundle {
 public:
  // Checks that `directory` is one and parses the manifest where there is one.
  static Bundle open(const std::string& directory);

  const std::string& directory() const { return directory_; }
  const std::optional<Manifest>& manifest() const { return manifest_; }

  // The text artifact of a class: the manifest's entry, else the only fitting file in text/. nullopt where there is
  // none. More than one candidate, or a manifest entry whose file is missing, is an error that lists them.
  std::optional<Artifact> text_artifact(RuntimeClass runtime_class) const;

  // Whether text/ (or the manifest) holds any artifact of the class; never throws for ambiguity. Cheap: one directory
  // listing, no file opened.
  bool has_text_artifact(RuntimeClass runtime_class) const;

  // CoreML packages in text/, which this build recognises but has no runtime for.
  std::vector<std::string> coreml_packages() const;

 private:
  std::string directory_;
  std::optional<Manifest> manifest_;
};

}  // namespace eliza

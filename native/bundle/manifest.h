// The manifest: its text, checked and turned into a Manifest. Private to this folder; bundle.h is what others use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "native/bundle/bundle.h"

namespace eliza {

// Reads <directory>/eliza-1.manifest.json; nullopt where there is no such file.
std::optional<Manifest> read_manifest(const std::string& directory);

// `file` names the source of `text` in errors. Fields this version does not know are ignored. Throws
// Error(ELIZA_ERR_BUNDLE_INVALID) naming the file, the field as a JSON pointer, what it holds and what it must be.
Manifest parse_manifest(std::string_view text, const std::string& file);

}  // namespace eliza

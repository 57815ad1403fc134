// Names and values from outside, made fit for an error message: file names need not be UTF-8, and a hostile manifest
// may hold megabytes in one string, and what a terminal acts on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eliza {

// The first `most` bytes, and "…" where there are more: whole characters, and control characters as \xNN.
std::string shown(std::string_view bytes, size_t most = 80);

// The first bytes between quotation marks.
std::string in_quotes(std::string_view bytes, size_t most = 1024);

// All of it.
inline std::string printable(std::string_view bytes) { return shown(bytes, bytes.size()); }

// As much as there is of a path: paths differ at their ends.
inline constexpr size_t kMostPathBytes = 4096;

// The names quoted, with commas; the first few and how many more where they are many.
std::string list_in_quotes(const std::vector<std::string>& names);

}  // namespace eliza

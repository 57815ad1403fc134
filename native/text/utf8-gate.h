// Lets bytes of generated text through as whole UTF-8 characters only.
//
// A token may end in the middle of a character; a client that gets half of one crashes (JNI's NewStringUTF) or shows
// garbage. The gate holds back an unfinished character until its bytes arrive, and replaces what can never become one
// by U+FFFD: one per maximal subpart of an ill-formed sequence (Unicode 15, section 3.9; the same as Python's
// bytes.decode("utf-8", "replace")). A NUL, valid in UTF-8 but the end of a C string, becomes U+FFFD too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace eliza {

class Utf8Gate {
 public:
  // Appends to `out` every character that `bytes` completes.
  void push(std::string_view bytes, std::string* out);

  // The text has ended: appends U+FFFD where a character was left unfinished.
  void finish(std::string* out);

  void reset() { held_size_ = 0; }

  // Bytes held back, 0 to 3.
  size_t held() const { return held_size_; }

 private:
  char held_[4];
  size_t held_size_ = 0;
};

// `bytes` as valid UTF-8, by the gate's rules.
std::string to_valid_utf8(std::string_view bytes);

// The same for text that is read, not shown: a NUL is a character like others.
std::string to_valid_utf8_with_nuls(std::string_view bytes);

}  // namespace eliza

// Owns the malloc'ed message that a function with an `out_error` may leave.
#pragma once

#include <cstdlib>
#include <string>

namespace eliza {

class Message {
 public:
  Message() = default;
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() { std::free(text_); }

  char** out() { return &text_; }
  explicit operator bool() const { return text_ != nullptr; }
  std::string text() const { return text_; }  // expects one

 private:
  char* text_ = nullptr;
};

}  // namespace eliza

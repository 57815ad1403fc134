// The library's log, silent unless the environment variable ELIZA_LOG names a file, or `stderr`.
//
// Runtimes log through it (llama.cpp's callback), so that nothing ever reaches the host's stdout or stderr unasked.
#pragma once

#include <string_view>

namespace eliza {

// Whether ELIZA_LOG is set: to skip making up messages that nobody reads. The variable is read once, at first use.
bool log_enabled();

// Appends one line, "<source>: <message>", to the log. `message` needs no newline. Any thread: a line is one write.
void log(std::string_view source, std::string_view message) noexcept;

}  // namespace eliza

// The classes of characters that tokenizers split text by.
#pragma once

namespace eliza {

bool is_letter(char32_t character);   // \p{L} of a tokenizer.json's expressions
bool is_number(char32_t character);   // \p{N} of them
bool is_numeric(char32_t character);  // what its "Digits" isolates: \p{N} of a newer Unicode
bool is_space(char32_t character);    // \s: White_Space

}  // namespace eliza

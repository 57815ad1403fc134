// Floating-point numbers in messages: the same in every locale. printf and std::to_string take the decimal point from
// the C locale, and a plain stream from the global C++ locale; both are the host's.
#pragma once

#include <locale>
#include <sstream>
#include <string>

namespace eliza {

// As printf's "%g" of so many digits: "0.5", "1e+30", "nan", "inf".
inline std::string number_text(double value, int digits = 6) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(digits);
  text << value;
  return text.str();
}

}  // namespace eliza

#include "io/emit/json_text.h"

#include <fmt/format.h>

#include <cmath>

namespace shardprop::emit {

JsonText& JsonText::real(double value) {
  // As torch's own writer has them.
  if (std::isnan(value)) return text("NaN");
  if (std::isinf(value)) return text(value > 0 ? "Infinity" : "-Infinity");
  std::string digits = fmt::format("{}", value);
  // A float without a fraction would be read as an int.
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return raw(digits);
}

void JsonText::quote(std::string_view value) {
  out_ += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out_ += c;
    }
  }
  out_ += '"';
}

}  // namespace shardprop::emit

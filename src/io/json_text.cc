#include "io/json_text.h"

#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace shardprop {

JsonText& JsonText::open(char bracket) {
  separate();
  out_ += bracket;
  ++depth_;
  first_ = true;
  return *this;
}

JsonText& JsonText::close(char bracket) {
  --depth_;
  if (indented_ && !first_) new_line();
  out_ += bracket;
  first_ = false;
  return *this;
}

JsonText& JsonText::key(std::string_view name) {
  separate();
  quote(name);
  out_ += indented_ ? ": " : ":";
  after_key_ = true;
  return *this;
}

JsonText& JsonText::text(std::string_view value) {
  separate();
  quote(value);
  return *this;
}

JsonText& JsonText::real(double value) {
  // The spellings are those of torch's own writer.
  if (std::isnan(value)) return text("NaN");
  if (std::isinf(value)) return text(value > 0 ? "Infinity" : "-Infinity");
  std::string digits = fmt::format("{}", value);
  // A float without a fraction would be read as an int.
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return raw(digits);
}

void JsonText::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_) out_ += ',';
  first_ = false;
  if (indented_ && depth_ > 0) new_line();
}

void JsonText::new_line() {
  out_ += '\n';
  out_.append(depth_, ' ');
}

void JsonText::quote(std::string_view value) {
  constexpr std::string_view kShort = "btn fr";  // from \b, 8, to \r, 13
  out_ += '"';
  while (!value.empty()) {
    const char c = value.front();
    const auto byte = static_cast<unsigned char>(c);
    const std::size_t length =
        byte < 0x80 ? 1 : utf8_length(value.substr(0, 4));
    if (length == 0) {
      out_ += "\xef\xbf\xbd";
    } else if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (byte >= '\b' && byte <= '\r' && byte != '\v') {
      out_ += '\\';
      out_ += kShort[byte - '\b'];
    } else if (byte < 0x20) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", byte);
    } else {
      out_ += value.substr(0, length);
    }
    value.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out_ += '"';
}

}  // namespace shardprop

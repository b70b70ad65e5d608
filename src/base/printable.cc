#include "base/printable.h"

#include "base/utf8.h"

namespace shardprop {
namespace {

void append_hex(std::string& out, unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\x";
  out += kDigits[byte / 16];
  out += kDigits[byte % 16];
}

// Returns the escape of a character that changes the direction of text or
// starts a new line on a Unicode terminal. The escape is for example "\\u202e";
// it is empty for other characters.
std::string_view escaped(std::string_view character) {
  struct Row {
    std::string_view character;
    std::string_view escape;
  };
  static constexpr Row kRows[] = {
      {"\u061c", "\\u061c"}, {"\u200e", "\\u200e"}, {"\u200f", "\\u200f"},
      {"\u2028", "\\u2028"}, {"\u2029", "\\u2029"}, {"\u202a", "\\u202a"},
      {"\u202b", "\\u202b"}, {"\u202c", "\\u202c"}, {"\u202d", "\\u202d"},
      {"\u202e", "\\u202e"}, {"\u2066", "\\u2066"}, {"\u2067", "\\u2067"},
      {"\u2068", "\\u2068"}, {"\u2069", "\\u2069"}};
  for (const Row& row : kRows) {
    if (character == row.character) return row.escape;
  }
  return {};
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte < 0x7F) {
      out += text[at++];
      continue;
    }
    if (byte == '\n' || byte == '\t') {
      out += byte == '\n' ? "\\n" : "\\t";
      ++at;
      continue;
    }
    const std::size_t length =
        byte < 0x80 ? 0 : utf8_length(text.substr(at, 4));
    // U+0080 to U+009F are control characters of two bytes.
    const bool control = length == 2 && byte == 0xC2 &&
                         static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (length == 0) {
      append_hex(out, byte);
      ++at;
    } else if (control) {
      append_hex(out, static_cast<unsigned char>(text[at + 1]));
      at += 2;
    } else {
      const std::string_view character = text.substr(at, length);
      const std::string_view escape = escaped(character);
      out += escape.empty() ? character : escape;
      at += length;
    }
  }
  return out;
}

}  // namespace shardprop

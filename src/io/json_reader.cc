#include "io/json_reader.h"

#include "base/index.h"
#include "base/utf8.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

namespace shardprop {
namespace {

// Far deeper than any program, and far below the limit of the stack.
constexpr int kMaxDepth = 200;
constexpr std::size_t kArenaChunk = std::size_t{64} * 1024;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) {
    out += static_cast<char>(static_cast<unsigned char>(byte));
  };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

// True if a path can show the key after a dot.
bool is_plain(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
  });
}

}  // namespace

std::string_view StringArena::store(std::string_view text) {
  if (text.empty()) return "";
  if (capacity_ - used_ < text.size()) {
    capacity_ = std::max(kArenaChunk, text.size());
    chunks_.push_back(std::make_unique<char[]>(capacity_));
    used_ = 0;
  }
  char* const place = chunks_.back().get() + used_;
  std::memcpy(place, text.data(), text.size());
  used_ += text.size();
  return {place, text.size()};
}

std::string JsonReader::path() const {
  std::string out = "$";
  for (const Segment& segment : path_) {
    if (segment.key.data() == nullptr) {
      out += '[' + std::to_string(segment.index) + ']';
    } else if (is_plain(segment.key)) {
      out += '.';
      out += segment.key;
    } else {
      constexpr std::size_t kMostShown = 60;
      out += "['";
      out += segment.key.substr(0, kMostShown);
      out += "']";
    }
  }
  return out;
}

void JsonReader::fail(ErrorCode code, std::string message, std::string help) {
  if (error_) return;
  error_ = Error{code, std::move(message), path(), {}, std::move(help)};
}

void JsonReader::expected(std::string_view what) {
  static constexpr std::string_view kFound[] = {
      "null", "a bool", "a number", "a string", "a list", "an object"};
  const Kind kind = peek();
  if (kind == Kind::kNothing) {
    syntax("a value is missing or is not JSON");
    return;
  }
  fail(ErrorCode::kFieldType, std::string(what) + " is expected here, not " +
                                  std::string(kFound[index(kind)]));
}

void JsonReader::syntax(std::string message) {
  if (error_) return;
  const std::size_t at = std::min(at_, text_.size());
  const auto line =
      1 + std::count(text_.begin(),
                     text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  fail(ErrorCode::kJsonSyntax, std::move(message));
  error_->notes.push_back("at byte " + std::to_string(at) + ", line " +
                          std::to_string(line));
}

void JsonReader::skip_blanks() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                text_[at_] == '\t' || text_[at_] == '\r')) {
    ++at_;
  }
}

JsonReader::Kind JsonReader::peek() {
  if (error_) return Kind::kNothing;
  skip_blanks();
  if (at_ >= text_.size()) return Kind::kNothing;
  switch (text_[at_]) {
    case 'n':
      return Kind::kNull;
    case 't':
    case 'f':
      return Kind::kBool;
    case '"':
      return Kind::kString;
    case '[':
      return Kind::kArray;
    case '{':
      return Kind::kObject;
    case '-':
    case 'N':
    case 'I':
      return Kind::kNumber;
    default:
      return is_digit(text_[at_]) ? Kind::kNumber : Kind::kNothing;
  }
}

bool JsonReader::literal(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

bool JsonReader::literal(char c) {
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool JsonReader::null() {
  if (peek() != Kind::kNull) return false;
  if (!literal("null")) syntax("a word that is not JSON");
  return true;
}

bool JsonReader::boolean() {
  if (peek() != Kind::kBool) {
    expected("a bool");
    return false;
  }
  if (literal("true")) return true;
  if (!literal("false")) syntax("a word that is not JSON");
  return false;
}

std::string_view JsonReader::number_token() {
  const std::size_t start = at_;
  const auto digits = [&] {
    const std::size_t first = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ - first;
  };
  literal('-');
  const bool is_word = at_ < text_.size() && !is_digit(text_[at_]);
  if (is_word && (literal("NaN") || literal("Infinity"))) {
    return text_.substr(start, at_ - start);
  }
  const std::size_t whole = at_;
  const std::size_t count = digits();
  if (count == 0 || (count > 1 && text_[whole] == '0')) {
    syntax("a number is malformed");
    return "0";
  }
  if (literal('.') && digits() == 0) syntax("a number is malformed");
  if (literal('e') || literal('E')) {
    if (!literal('+')) literal('-');
    if (digits() == 0) syntax("a number is malformed");
  }
  return text_.substr(start, at_ - start);
}

std::int64_t JsonReader::integer() {
  if (peek() != Kind::kNumber) {
    expected("an integer");
    return 0;
  }
  const std::string_view token = number_token();
  std::int64_t value = 0;
  const char* const first = token.data();
  const char* const last = first + token.size();
  const auto [stop, code] = std::from_chars(first, last, value);
  if (code != std::errc() || stop != last) {
    fail(ErrorCode::kFieldType, "`" + std::string(token.substr(0, 40)) +
                                    "` is not an integer that fits in 64 bits");
    return 0;
  }
  return value;
}

std::variant<std::int64_t, double> JsonReader::integer_or_number() {
  const std::size_t start = at_;
  const std::string_view token = number_token();
  if (error_) return std::int64_t{0};
  at_ = start;
  if (token.find_first_of(".eEN") == std::string_view::npos &&
      token.back() != 'y') {
    return integer();
  }
  return number();
}

double JsonReader::number() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool text = peek() == Kind::kString;
  if (!text && peek() != Kind::kNumber) {
    expected("a number");
    return 0;
  }
  const std::string_view token = text ? quoted() : number_token();
  if (token == "Infinity") return kInfinity;
  if (token == "-Infinity") return -kInfinity;
  if (token == "NaN") return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const char* const first = token.data();
  const char* const last = first + token.size();
  const auto [stop, code] = std::from_chars(first, last, value);
  if (text || stop != last) {
    fail(ErrorCode::kFieldType,
         "`" + std::string(token.substr(0, 40)) + "` is not a number");
    return 0;
  }
  // Numbers beyond the range of a double become 0 or infinity, as in other JSON
  // readers.
  if (code == std::errc::result_out_of_range) {
    const bool tiny = token.find("e-") != std::string_view::npos ||
                      token.find("E-") != std::string_view::npos;
    if (tiny) return 0;
    return token.front() == '-' ? -kInfinity : kInfinity;
  }
  return value;
}

std::string_view JsonReader::string() {
  if (peek() != Kind::kString) {
    expected("a string");
    return {};
  }
  return quoted();
}

// Returns the first position from `at` whose byte is not a plain character: a
// quote, a backslash, a control character, or part of a multi-byte character.
std::size_t JsonReader::end_of_plain(std::size_t at) const {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = 0x8080808080808080;
  // Tests eight bytes at a time. A byte that borrows from the next one is
  // itself marked, so the lowest mark is correct.
  while (std::endian::native == std::endian::little && at + 8 <= text_.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text_.data() + at, 8);
    const std::uint64_t quote = word ^ (kOnes * '"');
    const std::uint64_t backslash = word ^ (kOnes * '\\');
    const std::uint64_t marks =
        (word | (word - kOnes * 0x20) | (quote - kOnes) | (backslash - kOnes)) &
        kHighs;
    if (marks != 0) {
      return at + static_cast<std::size_t>(std::countr_zero(marks)) / 8;
    }
    at += 8;
  }
  const auto is_plain = [](unsigned char c) {
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
  };
  while (at < text_.size() && is_plain(static_cast<unsigned char>(text_[at]))) {
    ++at;
  }
  return at;
}

std::string_view JsonReader::quoted() {
  const std::size_t start = ++at_;
  for (;;) {
    at_ = end_of_plain(at_);
    if (at_ >= text_.size()) break;
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') return text_.substr(start, at_++ - start);
    if (c == '\\') return unescape(start);
    if (c < 0x20) break;
    const std::size_t length = utf8_length(text_.substr(at_, 4));
    if (length == 0) {
      syntax("a string is not UTF-8");
      return {};
    }
    at_ += length;
  }
  syntax(at_ < text_.size() ? "a control character in a string"
                            : "a string does not end");
  return {};
}

std::string_view JsonReader::unescape(std::size_t start) {
  unescaped_.assign(text_, start, at_ - start);
  while (at_ < text_.size()) {
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') {
      ++at_;
      return arena_.store(unescaped_);
    }
    if (c < 0x20) break;
    if (c == '\\') {
      ++at_;
      if (!escape(unescaped_)) return {};
      continue;
    }
    const std::size_t length =
        c < 0x80 ? end_of_plain(at_) - at_ : utf8_length(text_.substr(at_, 4));
    if (length == 0) {
      syntax("a string is not UTF-8");
      return {};
    }
    unescaped_.append(text_, at_, length);
    at_ += length;
  }
  syntax(at_ < text_.size() ? "a control character in a string"
                            : "a string does not end");
  return {};
}

std::optional<std::uint32_t> JsonReader::hex4() {
  if (text_.size() - at_ < 4) return std::nullopt;
  std::uint32_t value = 0;
  const char* const first = text_.data() + at_;
  const auto [stop, code] = std::from_chars(first, first + 4, value, 16);
  if (code != std::errc() || stop != first + 4) return std::nullopt;
  at_ += 4;
  return value;
}

bool JsonReader::escape(std::string& out) {
  const char c = at_ < text_.size() ? text_[at_++] : '\0';
  constexpr std::string_view kFrom = "\"\\/bfnrt";
  constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
  if (const std::size_t i = kFrom.find(c); i != std::string_view::npos) {
    out += kTo[i];
    return true;
  }
  const auto high = c == 'u' ? hex4() : std::nullopt;
  if (!high) {
    syntax("an escape in a string is malformed");
    return false;
  }
  std::uint32_t code = *high;
  if (code >= 0xD800 && code < 0xE000) {
    const bool leads = code < 0xDC00 && literal("\\u");
    const auto low = leads ? hex4() : std::nullopt;
    if (!low || *low < 0xDC00 || *low >= 0xE000) {
      syntax("half a surrogate pair in a string");
      return false;
    }
    code = 0x10000 + ((code - 0xD800) << 10) + (*low - 0xDC00);
  }
  append_utf8(out, code);
  return true;
}

void JsonReader::skip() {
  switch (peek()) {
    case Kind::kNull:
      null();
      return;
    case Kind::kBool:
      boolean();
      return;
    case Kind::kNumber:
      number_token();
      return;
    case Kind::kString:
      quoted();
      return;
    case Kind::kArray:
      array([this] { skip(); });
      return;
    case Kind::kObject:
      members([this](std::string_view) { skip(); });
      return;
    case Kind::kNothing:
      syntax("a value is missing or is not JSON");
      return;
  }
}

void JsonReader::end() {
  if (error_) return;
  skip_blanks();
  if (at_ != text_.size()) syntax("more follows after the value");
}

bool JsonReader::open(char bracket) {
  const Kind wanted = bracket == '{' ? Kind::kObject : Kind::kArray;
  if (peek() != wanted) {
    expected(bracket == '{' ? "an object" : "a list");
    return false;
  }
  if (++depth_ > kMaxDepth) {
    fail(ErrorCode::kTooDeep,
         "the file nests deeper than " + std::to_string(kMaxDepth) + " levels");
    return false;
  }
  ++at_;
  return true;
}

bool JsonReader::next_element(char closing, bool first) {
  if (error_) return false;
  skip_blanks();
  if (at_ < text_.size() && text_[at_] == closing) {
    ++at_;
    return false;
  }
  if (first) return true;
  if (!literal(',')) {
    syntax(at_ < text_.size() ? "a comma or bracket is missing"
                              : "the text ends too early");
    return false;
  }
  return true;
}

std::string_view JsonReader::take_key() {
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != '"') {
    syntax("a key is missing");
    return "";
  }
  const std::string_view key = quoted();
  skip_blanks();
  if (!literal(':')) syntax("a colon is missing");
  // Not null even if the key is empty, because a path tells keys from indices
  // by the null pointer.
  return key.data() == nullptr ? std::string_view("") : key;
}

bool JsonReader::first_time(std::size_t first, std::string_view key) {
  const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(first);
  if (std::find(begin, keys_.end(), key) != keys_.end()) {
    fail(ErrorCode::kRepeatedKey, "a key appears twice in one object");
    return false;
  }
  // Only the first keys are remembered. No known object has more fields, and
  // larger objects are tables.
  constexpr std::size_t kMostFields = 64;
  if (keys_.size() - first < kMostFields) keys_.push_back(key);
  return true;
}

}  // namespace shardprop

#include "io/toml_letters.h"

#include <algorithm>

namespace shardprop {
namespace {

bool is_beyond_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80; }

// Reads a file from its start; texts as toml++ delimits them.
class Letters {
 public:
  explicit Letters(std::string_view toml) : toml_(toml) {
    constexpr std::string_view kByteOrder = "\xEF\xBB\xBF";
    if (toml_.starts_with(kByteOrder)) at_ = kByteOrder.size();
  }

  std::optional<std::size_t> first_bare() {
    while (at_ < toml_.size()) {
      const char c = toml_[at_];
      if (c == '#') {
        at_ = std::min(toml_.find('\n', at_), toml_.size());
      } else if (c == '"' || c == '\'') {
        if (const auto found = pass_text(c)) return found;
      } else if (is_beyond_ascii(c)) {
        return at_;
      } else {
        ++at_;
      }
    }
    return std::nullopt;
  }

 private:
  bool starts_with(char c, std::size_t times) const {
    const std::string_view next = toml_.substr(at_, times);
    return next.size() == times &&
           std::ranges::count(next, c) == static_cast<std::ptrdiff_t>(times);
  }

  // To behind its closing quotes, or to the end of its line where it has none.
  std::optional<std::size_t> pass_text(char quote) {
    const bool has_lines = starts_with(quote, 3);
    at_ += has_lines ? 3 : 1;
    while (at_ < toml_.size()) {
      if (toml_[at_] == '\\' && quote == '"') {
        ++at_;
        if (has_lines) {
          at_ = std::min(toml_.find_first_not_of(" \t\r\n", at_), toml_.size());
          if (at_ < toml_.size() && is_beyond_ascii(toml_[at_])) return at_;
          if (toml_[at_ - 1] != '\\') continue;
        }
        ++at_;
      } else if (has_lines ? starts_with(quote, 3) : toml_[at_] == quote) {
        // Two more quotes belong to the text itself.
        at_ += has_lines ? 3 : 1;
        for (int i = 0; has_lines && i < 2 && starts_with(quote, 1); ++i) ++at_;
        return std::nullopt;
      } else if (!has_lines && toml_[at_] == '\n') {
        return std::nullopt;
      } else {
        ++at_;
      }
    }
    return std::nullopt;
  }

  std::string_view toml_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::size_t> bare_letter(std::string_view toml) {
  return Letters(toml).first_bare();
}

}  // namespace shardprop

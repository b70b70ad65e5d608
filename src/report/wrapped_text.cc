#include "report/wrapped_text.h"

#include <algorithm>
#include <iterator>

namespace shardprop {
namespace {

constexpr std::string_view kUnits[] = {"%",   "B",  "KiB", "MiB", "GiB",
                                       "TiB", "ns", "us",  "ms",  "s"};

// A number and its unit are one word: "55 %,".
std::size_t end_of_word(std::string_view text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  if (end == 0 || end == text.size() || text[end - 1] < '0' ||
      text[end - 1] > '9') {
    return end;
  }
  const std::size_t next = std::min(text.find(' ', end + 1), text.size());
  std::string_view unit = text.substr(end + 1, next - end - 1);
  unit = unit.substr(0, unit.find_last_not_of(".,;:)") + 1);
  return std::ranges::find(kUnits, unit) == std::end(kUnits) ? end : next;
}

}  // namespace

std::string wrapped(std::string_view text, const WrapOptions& options) {
  std::string out;
  std::string row(options.indent, ' ');
  bool empty = true;
  while (!text.empty()) {
    const std::size_t end = end_of_word(text);
    if (!empty && row.size() + 1 + end > options.width) {
      out += row + "\n";
      row.assign(options.behind, ' ');
      empty = true;
    }
    if (!empty) row += ' ';
    row += text.substr(0, end);
    empty = false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + row + "\n";
}

}  // namespace shardprop

#include "report/wrapped_text.h"

#include <algorithm>

namespace shardprop {

std::string wrapped(std::string_view text, const WrapOptions& options) {
  std::string out;
  std::string row(options.indent, ' ');
  bool empty = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
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

#include "c/row_text.h"

#include "base/try.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace shardprop::c {
namespace {

tl::unexpected<Error> bad_row(std::string_view text, std::string_view why) {
  return fail(ErrorCode::kInvalidArgument,
              "`" + std::string(text.substr(0, 80)) +
                  "` is not a row: " + std::string(why),
              "write \"einsum mk,kn->mn\", \"pointwise\", \"reduction sum\" or "
              "\"along dim\", then modifiers: \"pointwise.promoted\"");
}

// Letters, commas and one arrow: what the builder takes for granted.
bool is_notation(std::string_view text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string_view::npos || arrow == 0 ||
      text.find("->", arrow + 2) != std::string_view::npos) {
    return false;
  }
  int open = 0;
  char kind = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i == arrow) {
      if (open != 0) return false;
      ++i;
    } else if (c == '(' || c == '[') {
      if (open++ != 0) return false;
      kind = c;
    } else if (c == ')' || c == ']') {
      if (open-- != 1 || kind != (c == ')' ? '(' : '[')) return false;
    } else if (std::isalpha(static_cast<unsigned char>(c)) == 0 &&
               (c != ',' || open != 0)) {
      return false;
    }
  }
  if (open != 0) return false;
  // Every letter of an output is one of an input.
  const std::string_view inputs = text.substr(0, arrow);
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(arrow) + 2,
                     text.end(), [&](char c) {
                       return std::isalpha(static_cast<unsigned char>(c)) ==
                                  0 ||
                              inputs.find(c) != std::string_view::npos;
                     });
}

Result<OpDefinition> form_of(std::string_view text, std::string_view name,
                             std::string_view argument) {
  if (name == "pointwise" && argument.empty()) return pointwise();
  if (name == "einsum") {
    if (is_notation(argument)) return einsum(argument);
    return bad_row(text, "its notation is not like `mk,kn->mn`");
  }
  if (name == "reduction") {
    const auto op = parse_reduce_op(argument);
    if (op) return reduction(*op);
    return bad_row(text,
                   "it reduces by none of sum, avg, product, min, max, "
                   "band, bor, bxor");
  }
  if (name == "along" && !argument.empty()) return along(argument);
  return bad_row(text, "`" + std::string(name) + "` is not a form");
}

Result<OpDefinition> modified(OpDefinition row, std::string_view modifier,
                              std::string_view text) {
  if (modifier == "promoted") return std::move(row).promoted();
  if (modifier == "floating") return std::move(row).floating();
  if (modifier == "boolean") return std::move(row).boolean();
  if (modifier == "additive") return std::move(row).additive();
  if (modifier == "multilinear") return std::move(row).multilinear();
  if (modifier == "nondecreasing") return std::move(row).nondecreasing();
  if (modifier == "nonincreasing") return std::move(row).nonincreasing();
  if (modifier == "passes") return std::move(row).passes();
  if (modifier == "random") return std::move(row).random();
  if (modifier == "free") return std::move(row).free();
  return bad_row(text, "`" + std::string(modifier) + "` is not a modifier");
}

}  // namespace

Result<OpDefinition> parse_row(std::string_view text) {
  std::string_view rest = text;
  const auto next = [&rest]() {
    const std::size_t end = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return part;
  };
  const std::string_view form = next();
  const std::size_t space = std::min(form.find(' '), form.size());
  SP_ASSIGN(OpDefinition row,
            form_of(text, form.substr(0, space),
                    form.substr(std::min(space + 1, form.size()))));
  while (!rest.empty()) {
    SP_ASSIGN(row, modified(std::move(row), next(), text));
  }
  return row;
}

}  // namespace shardprop::c

#include "c/row_text.h"

#include "base/try.h"

#include <shardprop/ops/rule_text.h>

#include <algorithm>
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

Result<OpDefinition> form_of(std::string_view text, std::string_view name,
                             std::string_view argument) {
  if (name == "pointwise" && argument.empty()) return pointwise();
  if (name == "einsum") {
    if (auto checked = check_notation(argument); !checked) {
      return bad_row(text, checked.error().message);
    }
    return einsum(argument);
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

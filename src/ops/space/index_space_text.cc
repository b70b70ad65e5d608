// Prints and parses index spaces.

#include <shardprop/ops/index_space.h>

#include "base/index.h"
#include "base/parse_int.h"
#include "base/try.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace shardprop {
namespace {

constexpr FactorKind kKinds[] = {FactorKind::kParallel,  FactorKind::kBlocked,
                                 FactorKind::kWindowed,  FactorKind::kIndexed,
                                 FactorKind::kSegmented, FactorKind::kScanned};

std::string operand_text(const Operand& operand,
                         const std::vector<std::string>& names) {
  if (operand.dims.empty()) return "()";
  std::string text;
  for (const DimFactors& dim : operand.dims) {
    if (dim.size() != 1) text += dim.empty() ? "1" : "(";
    for (const FactorId id : dim) text += names[index(id)];
    if (dim.size() > 1) text += ")";
  }
  return text;
}

template <class List, class Text>
std::string joined(const List& list, Text text) {
  std::string out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ',';
    out += text(i);
  }
  return out;
}

std::string without_text(bool holds, Without without) {
  if (holds) return ".";
  if (without.is_forbidden()) return "!";
  if (!without.is_partial()) return "_";
  return std::string(to_string(without.reduce_op()));
}

std::string without_row(const std::vector<Operand>& operands,
                        const std::vector<std::vector<Without>>& without,
                        std::size_t factor) {
  return joined(operands, [&](std::size_t i) {
    return without_text(operands[i].holds(static_cast<int>(factor)),
                        without[i][factor]);
  });
}

// Returns whether sharding the factor has any effect other than the default.
bool says_something(const IndexSpace& space, std::size_t f) {
  const auto id = static_cast<int>(f);
  for (std::size_t i = 0; i < space.inputs.size(); ++i) {
    if (!space.inputs[i].holds(id) &&
        space.inputs_without[i][f] != Without::same()) {
      return true;
    }
  }
  for (std::size_t o = 0; o < space.outputs.size(); ++o) {
    if (!space.outputs[o].holds(id) &&
        !space.outputs_without[o][f].is_forbidden()) {
      return true;
    }
  }
  return false;
}

std::string partials_text(const std::vector<std::optional<ReduceOp>>& ops) {
  return joined(ops, [&](std::size_t i) {
    return ops[i] ? std::string(to_string(*ops[i])) : std::string("_");
  });
}

std::string factor_text(const std::string& name, const Factor& factor,
                        const std::vector<std::string>& names) {
  std::string text = name + "=" + std::to_string(factor.size);
  if (!factor.joins.empty()) text += " joins=";
  for (const FactorId id : factor.joins) text += names[index(id)];
  if (factor.kind != FactorKind::kParallel) {
    text += ' ';
    text += to_string(factor.kind);
  }
  if (factor.program == ProgramUse::kWhenSharded) text += " program";
  if (factor.program == ProgramUse::kWhenUneven) text += " program-uneven";
  if (factor.even) text += " even";
  if (factor.least == 1) text += " nonempty";
  if (factor.least > 1) text += " least=" + std::to_string(factor.least);
  return text;
}

std::string operands_with(const IndexSpace& space,
                          const std::vector<std::string>& names) {
  const auto operands = [&](const std::vector<Operand>& list) {
    return joined(list,
                  [&](std::size_t i) { return operand_text(list[i], names); });
  };
  return operands(space.inputs) + "->" + operands(space.outputs);
}

}  // namespace

std::vector<std::string> factor_names(const IndexSpace& space) {
  std::vector<std::string> names;
  std::map<std::string, int> taken;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const char own = space.factors[f].letter;
    std::string name(1,
                     std::isalpha(static_cast<unsigned char>(own)) != 0
                         ? own
                         : static_cast<char>('a' + static_cast<int>(f % 26)));
    while (taken[name]++ > 0) name = name[0] + std::to_string(taken[name] - 1);
    names.push_back(std::move(name));
  }
  return names;
}

std::string operands_text(const IndexSpace& space) {
  return operands_with(space, factor_names(space));
}

std::string to_string(const IndexSpace& space) {
  const std::vector<std::string> names = factor_names(space);
  std::string text = operands_with(space, names);
  text += " {" +
          joined(space.factors,
                 [&](std::size_t f) {
                   return factor_text(names[f], space.factors[f], names);
                 }) +
          "}";
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    if (!says_something(space, f)) continue;
    text += " " + names[f] + ":" +
            without_row(space.inputs, space.inputs_without, f) + "->" +
            without_row(space.outputs, space.outputs_without, f);
  }
  for (const Linearity& linearity : space.linearities) {
    text += " | " + partials_text(linearity.inputs) + "->" +
            partials_text(linearity.outputs);
  }
  return text;
}

namespace {

class SpaceParser {
 public:
  explicit SpaceParser(std::string_view text) : text_(text) {}

  Result<IndexSpace> parse() {
    const std::size_t brace = text_.find(" {");
    const std::size_t end = text_.find('}');
    if (brace == std::string_view::npos || end == std::string_view::npos ||
        end < brace) {
      return error("the factors in braces are missing");
    }
    SP_CHECK(factors(text_.substr(brace + 2, end - brace - 2)));
    SP_ASSIGN(auto sides, two_sides(text_.substr(0, brace)));
    SP_CHECK(operands(sides.first, space_.inputs));
    SP_CHECK(operands(sides.second, space_.outputs));
    space_.seal();
    std::string_view rest = text_.substr(end + 1);
    const std::size_t bar = std::min(rest.find(" | "), rest.size());
    SP_CHECK(withouts(rest.substr(0, bar)));
    rest.remove_prefix(bar);
    while (!rest.empty()) {
      rest.remove_prefix(3);
      const std::size_t next = std::min(rest.find(" | "), rest.size());
      SP_CHECK(linearity(rest.substr(0, next)));
      rest.remove_prefix(next);
    }
    return std::move(space_);
  }

 private:
  tl::unexpected<Error> error(std::string what) const {
    return fail(ErrorCode::kIndexSpaceSyntax,
                "an index space cannot be read: " + std::move(what),
                "write it as `ab,bc->ac {a=16,b=8,c=4} b:.,.->sum`");
  }

  Result<std::pair<std::string_view, std::string_view>> two_sides(
      std::string_view text) const {
    const std::size_t arrow = text.find("->");
    if (arrow == std::string_view::npos) return error("`->` is missing");
    return std::pair(text.substr(0, arrow), text.substr(arrow + 2));
  }

  static std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    if (text.empty()) return parts;
    while (true) {
      const std::size_t end = text.find(at);
      parts.push_back(text.substr(0, end));
      if (end == std::string_view::npos) return parts;
      text.remove_prefix(end + 1);
    }
  }

  Result<void> factors(std::string_view text) {
    for (const std::string_view part : split(text, ',')) {
      const std::vector<std::string_view> words = split(part, ' ');
      const std::size_t equals = words[0].find('=');
      const auto size = equals == std::string_view::npos
                            ? std::nullopt
                            : parse_int(words[0].substr(equals + 1));
      if (!size || *size < 0 || equals == 0) {
        return error("`" + std::string(part) + "` is not a factor");
      }
      const std::string name(words[0].substr(0, equals));
      if (space_.factors.size() >= 1000) return error("too many factors");
      const int id = space_.add_factor(*size, name[0]);
      if (!ids_.emplace(name, static_cast<FactorId>(id)).second) {
        return error("factor `" + name + "` appears twice");
      }
      for (std::size_t w = 1; w < words.size(); ++w) {
        constexpr std::string_view kJoins = "joins=";
        if (words[w].starts_with(kJoins)) {
          SP_CHECK(joins(space_.factor(id), words[w].substr(kJoins.size())));
        } else {
          SP_CHECK(word(space_.factor(id), words[w]));
        }
      }
    }
    return {};
  }

  // A joined factor follows the factors that it joins.
  Result<void> joins(Factor& factor, std::string_view names) const {
    std::vector<Operand> parts;
    SP_CHECK(operands("(" + std::string(names) + ")", parts));
    factor.joins = parts[0].dims[0];
    if (parts.size() != 1 || parts[0].dims.size() != 1 ||
        factor.joins.size() < 2 || space_.size(factor.joins) != factor.size) {
      return error("`joins=" + std::string(names) +
                   "` does not name two or more factors of that size");
    }
    return {};
  }

  static std::optional<std::int64_t> least_of(std::string_view word) {
    constexpr std::string_view kLeast = "least=";
    if (!word.starts_with(kLeast)) return std::nullopt;
    const auto size = parse_int(word.substr(kLeast.size()));
    return size && *size > 1 ? size : std::nullopt;
  }

  Result<void> word(Factor& factor, std::string_view word) const {
    for (const FactorKind kind : kKinds) {
      if (word == to_string(kind)) {
        factor.kind = kind;
        return {};
      }
    }
    if (word == "program") {
      factor.program = ProgramUse::kWhenSharded;
    } else if (word == "program-uneven") {
      factor.program = ProgramUse::kWhenUneven;
    } else if (word == "even") {
      factor.even = true;
    } else if (word == "nonempty") {
      factor.least = 1;
    } else if (const auto least = least_of(word)) {
      factor.least = *least;
    } else {
      return error("`" + std::string(word) + "` says nothing of a factor");
    }
    return {};
  }

  Result<void> operands(std::string_view text,
                        std::vector<Operand>& out) const {
    for (const std::string_view part : split(text, ',')) {
      Operand& operand = out.emplace_back();
      if (part == "()") continue;
      bool grouped = false;
      for (std::size_t i = 0; i < part.size();) {
        const char c = part[i];
        if (c == '(' || c == ')') {
          if (grouped == (c == '(')) return error("brackets do not match");
          grouped = c == '(';
          if (grouped) operand.dims.emplace_back();
          ++i;
          continue;
        }
        if (c == '1' && !grouped) {
          operand.dims.emplace_back();
          ++i;
          continue;
        }
        std::size_t end = i + 1;
        while (end < part.size() &&
               std::isdigit(static_cast<unsigned char>(part[end])) != 0 &&
               ids_.contains(std::string(part.substr(i, end + 1 - i)))) {
          ++end;
        }
        const auto found = ids_.find(std::string(part.substr(i, end - i)));
        if (found == ids_.end()) {
          return error("`" + std::string(1, c) + "` is not a factor");
        }
        if (!grouped) operand.dims.emplace_back();
        operand.dims.back().push_back(found->second);
        i = end;
      }
      if (grouped) return error("brackets do not match");
    }
    return {};
  }

  Result<void> row(std::string_view text, const std::vector<Operand>& operands,
                   std::vector<std::vector<Without>>& table, FactorId factor) {
    const auto parts = split(text, ',');
    if (parts.size() != operands.size()) {
      return error("`" + std::string(text) + "` is not of every operand");
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Without& without = table[i][index(factor)];
      if (parts[i] == ".") continue;
      if (parts[i] == "_") {
        without = Without::same();
      } else if (parts[i] == "!") {
        without = Without::forbidden();
      } else if (const auto op = parse_reduce_op(parts[i])) {
        without = Without::partial(*op);
      } else {
        return error("`" + std::string(parts[i]) + "` is not a reduction");
      }
    }
    return {};
  }

  Result<void> withouts(std::string_view text) {
    for (const std::string_view part : split(text, ' ')) {
      if (part.empty()) continue;
      const std::size_t colon = part.find(':');
      const auto found = colon == std::string_view::npos
                             ? ids_.end()
                             : ids_.find(std::string(part.substr(0, colon)));
      if (found == ids_.end()) {
        return error("`" + std::string(part) + "` names no factor");
      }
      SP_ASSIGN(auto sides, two_sides(part.substr(colon + 1)));
      SP_CHECK(row(sides.first, space_.inputs, space_.inputs_without,
                   found->second));
      SP_CHECK(row(sides.second, space_.outputs, space_.outputs_without,
                   found->second));
    }
    return {};
  }

  Result<void> linearity(std::string_view text) {
    SP_ASSIGN(auto sides, two_sides(text));
    Linearity out;
    SP_CHECK(partials(sides.first, out.inputs));
    SP_CHECK(partials(sides.second, out.outputs));
    if (out.inputs.size() != space_.inputs.size() ||
        out.outputs.size() != space_.outputs.size()) {
      return error("a linearity is not of every operand");
    }
    space_.linearities.push_back(std::move(out));
    return {};
  }

  Result<void> partials(std::string_view text,
                        std::vector<std::optional<ReduceOp>>& out) const {
    for (const std::string_view part : split(text, ',')) {
      if (part == "_") {
        out.emplace_back(std::nullopt);
      } else if (const auto op = parse_reduce_op(part)) {
        out.emplace_back(*op);
      } else {
        return error("`" + std::string(part) + "` is not a reduction");
      }
    }
    return {};
  }

  std::string_view text_;
  IndexSpace space_;
  std::map<std::string, FactorId> ids_;
};

}  // namespace

Result<IndexSpace> parse_index_space(std::string_view text) {
  return SpaceParser(text).parse();
}

}  // namespace shardprop

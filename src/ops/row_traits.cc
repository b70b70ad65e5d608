#include "ops/row_traits.h"

#include "ops/passed_elements.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

struct Draws {
  Distribution distribution = Distribution::kNotStated;
  void operator()(const OpCall&, IndexSpace&) const {}
};

struct Holds {
  ArgumentDomain domain;
  void operator()(const OpCall&, IndexSpace&) const {}
};

struct Lies {
  OperandOrder order = OperandOrder::kAny;
  void operator()(const OpCall&, IndexSpace&) const {}
};

struct Selects {
  std::vector<std::string> arguments;
  void operator()(const OpCall&, IndexSpace&) const {}
};

bool names(const std::vector<std::string>& arguments,
           std::string_view argument) {
  return arguments.empty() || std::find(arguments.begin(), arguments.end(),
                                        argument) != arguments.end();
}

}  // namespace

OpDefinition::Refine draws(Distribution distribution) {
  return Draws{distribution};
}

Distribution distribution(const OpDefinition& row) {
  for (const OpDefinition::Refine& refine : row.refinements()) {
    if (const auto* trait = refine.target<Draws>()) return trait->distribution;
  }
  return Distribution::kNotStated;
}

OpDefinition::Refine below(std::string_view argument,
                           ArgumentDomain::SizeOf size) {
  return Holds{{std::string(argument), size, false, false}};
}

OpDefinition::Refine positive(std::string_view argument) {
  return Holds{{std::string(argument), nullptr, true, false}};
}

OpDefinition::Refine nonzero(std::string_view argument) {
  return Holds{{std::string(argument), nullptr, false, true}};
}

std::vector<ArgumentDomain> domains(const OpDefinition& row) {
  std::vector<ArgumentDomain> out;
  for (const OpDefinition::Refine& refine : row.refinements()) {
    if (const auto* trait = refine.target<Holds>()) {
      out.push_back(trait->domain);
    }
  }
  return out;
}

OpDefinition in_order(OpDefinition row) {
  return std::move(row).refine("in_order()", Lies{OperandOrder::kAsWhole});
}

OpDefinition in_dense_rows(OpDefinition row) {
  return std::move(row).refine("in_dense_rows()",
                               Lies{OperandOrder::kDenseRows});
}

OperandOrder operand_order(const OpDefinition& row) {
  for (const OpDefinition::Refine& refine : row.refinements()) {
    if (const auto* trait = refine.target<Lies>()) return trait->order;
  }
  return OperandOrder::kAny;
}

OpDefinition::Refine selects(std::vector<std::string> arguments) {
  return Selects{std::move(arguments)};
}

bool selects_from(const OpDefinition& row, std::string_view argument) {
  for (const OpDefinition::Refine& refine : row.refinements()) {
    const auto* selected = refine.target<Selects>();
    const auto* passed = refine.target<PassedElements>();
    if ((selected != nullptr && names(selected->arguments, argument)) ||
        (passed != nullptr && names(passed->arguments, argument))) {
      return true;
    }
  }
  return false;
}

}  // namespace shardprop

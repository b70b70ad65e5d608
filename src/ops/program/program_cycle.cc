#include "ops/program/program_cycle.h"

#include "ops/program/program_text.h"

#include <set>
#include <string>
#include <variant>

namespace shardprop {
namespace {

void add_functions(const Expression& expression, std::set<std::string>& out) {
  if (const auto* call = std::get_if<CallExpression>(&expression.node)) {
    out.insert(call->function);
    for (const ExpressionPtr& value : call->positional) {
      add_functions(*value, out);
    }
    for (const auto& [name, value] : call->named) add_functions(*value, out);
  } else if (const auto* list = std::get_if<ListExpression>(&expression.node)) {
    for (const ExpressionPtr& value : list->elements) {
      add_functions(*value, out);
    }
  } else if (const auto* binary =
                 std::get_if<BinaryExpression>(&expression.node)) {
    add_functions(*binary->left, out);
    add_functions(*binary->right, out);
    out.emplace(operator_named(binary->op));
  }
}

std::set<std::string> functions_of(const ProgramText& program) {
  std::set<std::string> functions;
  for (const ProgramLine& line : program.lines) {
    add_functions(*line.value, functions);
  }
  for (const ExpressionPtr& result : program.results) {
    add_functions(*result, functions);
  }
  return functions;
}

class ProgramCycle {
 public:
  ProgramCycle(const OpLibrary& library, const OpRow& row)
      : library_(library), row_(row) {}

  // Returns whether the programs that `from` leads to call the row.
  bool leads_back(const OpRow& from) {
    if (!from.definition.has_program() ||
        from.definition.program_is_per_rank()) {
      return false;
    }
    for (const std::string& function :
         functions_of(*from.definition.program())) {
      if (function == "itself" && &from == &row_) return true;
      for (const std::string& name : library_.overloads("aten." + function)) {
        const OpRow* called = library_.row(*library_.find(name));
        if (called == nullptr) continue;
        if (called == &row_) return true;
        if (seen_.insert(called).second && leads_back(*called)) return true;
      }
    }
    return false;
  }

 private:
  const OpLibrary& library_;
  const OpRow& row_;
  std::set<const OpRow*> seen_;
};

}  // namespace

bool calls_itself(const OpLibrary& library, const OpRow& row) {
  return ProgramCycle(library, row).leads_back(row);
}

}  // namespace shardprop

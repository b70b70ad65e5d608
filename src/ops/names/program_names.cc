#include "ops/names/program_names.h"

#include "base/edit_distance.h"
#include "base/quantities.h"
#include "base/try.h"
#include "ops/names/rule_names.h"
#include "ops/program/program_functions.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace shardprop {
namespace {

// Some functions take this word, the results of the operator, as their first value.
constexpr std::string_view kResults = "out";
constexpr std::string_view kReserved[] = {"True", "False",  "None",
                                          "inf",  kResults, "return"};

class ProgramNameChecker {
 public:
  ProgramNameChecker(bool is_per_rank, const Overloads& overloads,
                     const OpLibrary& library)
      : is_per_rank_(is_per_rank), overloads_(overloads), library_(library) {
    for (const auto& overload : overloads) {
      for (const ArgumentSchema& argument : overload->arguments()) {
        if (known_.insert(argument.name).second) {
          arguments_.push_back(argument.name);
        }
      }
    }
  }

  Result<void> check(const ProgramText& program) {
    for (const ProgramLine& line : program.lines) {
      if (!line.condition.empty() && !known_.contains(line.condition)) {
        return unknown(line.condition, line.condition_at);
      }
      SP_CHECK(check(*line.value));
      for (const std::string& name : line.names) {
        if (std::find(std::begin(kReserved), std::end(kReserved), name) !=
            std::end(kReserved)) {
          return wrong(
              "expected a name that is not a word of the language, "
              "found `" +
                  name + '`',
              line.at, "rename the result");
        }
        if (known_.insert(name).second) results_.push_back(name);
      }
    }
    for (const ExpressionPtr& result : program.results) {
      SP_CHECK(check(*result));
    }
    return check_results(program);
  }

 private:
  static tl::unexpected<Error> wrong(std::string message, std::size_t at,
                                     std::string help) {
    return fail(Error{ErrorCode::kProgramSyntax,
                      std::move(message),
                      "column " + std::to_string(at + 1),
                      {},
                      std::move(help)});
  }

  std::string op() const {
    std::string name = overloads_.front()->name();
    constexpr std::string_view kDefault = ".default";
    if (name.ends_with(kDefault)) name.resize(name.size() - kDefault.size());
    return '`' + name + '`';
  }

  tl::unexpected<Error> unknown(const std::string& name, std::size_t at) const {
    std::vector<std::string> all = arguments_;
    all.insert(all.end(), results_.begin(), results_.end());
    const std::vector<std::string_view> views(all.begin(), all.end());
    const std::string nearest = did_you_mean(name, views);
    std::string message = "expected an argument of " + op();
    if (!arguments_.empty()) message += " (" + either_of(arguments_) + ')';
    message += " or an earlier result";
    if (!results_.empty()) message += " (" + either_of(results_) + ')';
    return wrong(message + ", found `" + name + '`', at,
                 name.size() > 1 && nearest.starts_with("did")
                     ? nearest
                     : "an assignment names a result: y = exp(x)");
  }

  Result<void> check(const Expression& expression) const {
    if (const auto* name = std::get_if<NameExpression>(&expression.node)) {
      if (known_.contains(name->name)) return {};
      if (name->name != kResults) return unknown(name->name, name->at);
      return wrong(
          "expected a value, found `out`, which has none before the "
          "program ends",
          name->at,
          "`out` is the first value of functions such as size(out, 0) "
          "and dtype(out)");
    }
    if (const auto* list = std::get_if<ListExpression>(&expression.node)) {
      for (const ExpressionPtr& one : list->elements) SP_CHECK(check(*one));
    } else if (const auto* both =
                   std::get_if<BinaryExpression>(&expression.node)) {
      SP_CHECK(check(*both->left));
      SP_CHECK(check(*both->right));
    } else if (const auto* call =
                   std::get_if<CallExpression>(&expression.node)) {
      SP_CHECK(check_call(*call));
    }
    return {};
  }

  static bool is_results(const CallExpression& call) {
    if (call.positional.empty()) return false;
    const auto* name = std::get_if<NameExpression>(&call.positional[0]->node);
    return name != nullptr && name->name == kResults;
  }

  Result<void> check_call(const CallExpression& call) const {
    SP_CHECK(check_repeated(call));
    const ProgramFunction* function = program_function(call.function);
    SP_CHECK(function != nullptr ? check_function(call, *function)
                                 : check_operator(call));
    const bool asks_results = function != nullptr && is_results(call);
    for (std::size_t i = asks_results ? 1 : 0; i < call.positional.size();
         ++i) {
      SP_CHECK(check(*call.positional[i]));
    }
    for (const auto& [name, value] : call.named) SP_CHECK(check(*value));
    return {};
  }

  Result<void> check_function(const CallExpression& call,
                              const ProgramFunction& function) const {
    constexpr std::string_view kHelp =
        "docs/row_language.md lists the functions of programs and their "
        "arguments";
    if (function.is_of_rank && !is_per_rank_) {
      return wrong(call.function + "() depends on the rank", call.at,
                   "a program on full tensors calls size() and places(), or "
                   "is a per_rank program");
    }
    const std::size_t count = call.positional.size();
    const std::size_t least =
        is_results(call) ? function.least_of_results : function.least;
    if (count < least || count > function.most) {
      return wrong(call.function + "() takes " +
                       counted(function.most, "value") + ", not " +
                       std::to_string(count),
                   call.at, std::string(kHelp));
    }
    for (std::size_t i = 0; i < call.named.size(); ++i) {
      const std::string& name = call.named[i].first;
      const bool is_argument = call.function == "itself" &&
                               std::find(arguments_.begin(), arguments_.end(),
                                         name) != arguments_.end();
      if (is_argument) continue;
      return wrong(call.function + "() has no argument `" + name + '`',
                   call.named_at[i], std::string(kHelp));
    }
    return {};
  }

  Result<void> check_operator(const CallExpression& call) const {
    const std::string name = "aten." + call.function;
    const std::vector<std::string> overloads = library_.overloads(name);
    if (overloads.empty()) {
      return wrong(
          "expected a function of programs or an operator of PyTorch, "
          "found `" +
              call.function + '`',
          call.at, suggestion(call.function));
    }
    std::size_t most = 0;
    std::set<std::string> known;
    std::string declaration;
    for (const std::string& overload : overloads) {
      const auto function = library_.find(overload);
      most = std::max(most, function->arguments().size());
      for (const ArgumentSchema& argument : function->arguments()) {
        known.insert(argument.name);
      }
      if (declaration.empty()) {
        declaration = "it is declared as " + to_string(*function);
      }
    }
    if (call.positional.size() > most) {
      return wrong(call.function + "() takes at most " +
                       counted(most, "value") + ", not " +
                       std::to_string(call.positional.size()),
                   call.at, declaration);
    }
    for (std::size_t i = 0; i < call.named.size(); ++i) {
      if (known.contains(call.named[i].first)) continue;
      return wrong(
          call.function + "() has no argument `" + call.named[i].first + '`',
          call.named_at[i], declaration);
    }
    std::optional<ArgumentFault> first;
    for (const std::string& overload : overloads) {
      auto fault = argument_fault(call, *library_.find(overload));
      if (!fault) return {};
      // An overload that lacks an argument is nearer than one that has no such name.
      if (!first || fault->rank > first->rank) first = std::move(fault);
    }
    return wrong(first->message, first->at, first->declaration);
  }

  struct ArgumentFault {
    std::string message;
    std::size_t at = 0;
    int rank = 0;
    std::string declaration;
  };

  // Returns why the call does not give the arguments of the overload, if so.
  static std::optional<ArgumentFault> argument_fault(
      const CallExpression& call, const FunctionSchema& function) {
    const auto& declared = function.arguments();
    const std::string place = "it is declared as " + to_string(function);
    if (call.positional.size() > declared.size()) {
      return ArgumentFault{call.function + "() takes at most " +
                               counted(declared.size(), "value") + ", not " +
                               std::to_string(call.positional.size()),
                           call.at, 0, place};
    }
    for (std::size_t i = 0; i < call.named.size(); ++i) {
      const std::string& name = call.named[i].first;
      const auto at = function.argument_index(name);
      if (!at) {
        return ArgumentFault{call.function + "() has no argument `" + name +
                                 "` besides the others of the call",
                             call.named_at[i], 0, place};
      }
      if (*at < call.positional.size()) {
        return ArgumentFault{call.function + "() has `" + name + "` as value " +
                                 std::to_string(*at + 1) + " already",
                             call.named_at[i], 1, place};
      }
    }
    for (std::size_t i = call.positional.size(); i < declared.size(); ++i) {
      const ArgumentSchema& one = declared[i];
      const bool is_named = std::any_of(
          call.named.begin(), call.named.end(),
          [&](const auto& named) { return named.first == one.name; });
      const bool may_lack =
          one.has_default || one.type == ArgumentType::kGenerator;
      if (is_named || may_lack) continue;
      return ArgumentFault{
          call.function + "() lacks the argument `" + one.name + '`', call.at,
          2, place};
    }
    return std::nullopt;
  }

  // An argument has one value.
  static Result<void> check_repeated(const CallExpression& call) {
    for (std::size_t i = 0; i < call.named.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (call.named[i].first != call.named[j].first) continue;
        return wrong(call.function + "() has the argument `" +
                         call.named[i].first + "` twice",
                     call.named_at[i], "remove one of them");
      }
    }
    return {};
  }

  std::string suggestion(const std::string& function) const {
    std::vector<std::string_view> functions;
    for (const ProgramFunction& one : program_functions()) {
      functions.push_back(one.name);
    }
    const std::string nearest = did_you_mean(function, functions);
    if (nearest.starts_with("did")) return nearest;
    // A program calls `aten.exp.default` as exp().
    constexpr std::string_view kAten = "aten.";
    const std::vector<std::string> names = library_.names();
    std::vector<std::string_view> operators;
    for (std::string_view name : names) {
      if (!name.starts_with(kAten)) continue;
      name.remove_prefix(kAten.size());
      operators.push_back(name.substr(0, name.find('.')));
    }
    const std::string spelled = did_you_mean(function, operators);
    return spelled.starts_with("did") ? spelled
                                      : "`shardprop ops` lists operators";
  }

  // A program returns a value for each result. It may leave out results that calls
  // do not produce.
  Result<void> check_results(const ProgramText& program) const {
    const std::size_t count = program.results.size();
    std::size_t most = 0;
    for (const auto& overload : overloads_) {
      for (const ArgumentSchema& one : overload->returns()) {
        if (one.is_list) return {};
      }
      std::size_t results = overload->returns().size();
      for (const ArgumentSchema& one : overload->arguments()) {
        if (one.alias && one.alias->writes) ++results;
      }
      most = std::max(most, results);
    }
    if (count <= most) return {};
    return wrong("expected " + counted(most, "result") + " as " + op() +
                     " declares, found " + std::to_string(count),
                 program.return_at, "return a value for each result");
  }

  bool is_per_rank_;
  const Overloads& overloads_;
  const OpLibrary& library_;
  std::set<std::string> known_;  // arguments and results so far
  std::vector<std::string> arguments_;
  std::vector<std::string> results_;
};

}  // namespace

Result<void> check_program_names(
    const ProgramText& program, bool is_per_rank,
    const std::vector<std::shared_ptr<const FunctionSchema>>& overloads,
    const OpLibrary& library) {
  return ProgramNameChecker(is_per_rank, overloads, library).check(program);
}

}  // namespace shardprop

// Tests calls that no operator accepts: every call of
// tests/golden/index_spaces.list, with every damage below. Each call gives an
// error, or an answer if the damage left it valid; no call throws. The test has
// no random choices and no seed.

#include <doctest/doctest.h>
#include <shardprop/strategy/local_context.h>
#include <shardprop/strategy/op_strategy.h>

#include "ops/call_text.h"
#include "ops/sample_calls.h"
#include "support/standard_library.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

using testing::fill_outputs;
using testing::parse_call;

const OpLibrary& library() { return testing::standard_library(); }

std::vector<OpSchema> calls() {
  std::ifstream file("tests/golden/index_spaces.list");
  std::vector<OpSchema> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    auto op = parse_call(line.substr(0, line.find(" => ")), library());
    REQUIRE_MESSAGE(op.has_value(), line);
    out.push_back(*std::move(op));
  }
  return out;
}

std::vector<GivenArgument> arguments_of(const OpSchema& op) {
  std::vector<GivenArgument> out;
  for (std::size_t i = 0; i < op.args.size(); ++i) {
    out.push_back({op.function->arguments()[i].name, op.args[i]});
  }
  return out;
}

// Passes a call through the library, up to its strategies on two ranks and
// their local programs.
bool is_answered(const OpSchema& like, std::vector<GivenArgument> given,
                 std::vector<TensorMeta> inputs) {
  auto op = make_op_schema(like.function, std::move(given), std::move(inputs));
  if (!op || !fill_outputs(*op, library())) return false;
  auto space = library().index_space(*op);
  if (!space) return false;
  LayoutTable layouts;
  const DeviceMesh mesh = DeviceMesh::parse("2").value();
  const auto all = op_strategies(
      std::make_shared<const OpSchema>(*std::move(op)),
      std::make_shared<const IndexSpace>(*std::move(space)), mesh, layouts);
  CHECK(!all.strategies.empty());
  for (const PlacementStrategy& strategy : all.strategies) {
    const LocalContext context{*all.op, *all.space, mesh, layouts, strategy};
    if (needs_program(context)) CHECK(!local_program(context).steps.empty());
  }
  return true;
}

struct Damage {
  std::string what;
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> inputs;
  bool is_certain = true;  // no operator takes it
};

void missing_arguments(const OpSchema& op, std::vector<Damage>& out) {
  const auto& declared = op.function->arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    // Files leave generators out.
    const bool is_optional =
        declared[i].has_default || declared[i].type == ArgumentType::kGenerator;
    if (is_optional) continue;
    auto given = arguments_of(op);
    given.erase(given.begin() + static_cast<std::ptrdiff_t>(i));
    out.push_back({"without " + declared[i].name, std::move(given), op.inputs});
  }
}

void further_arguments(const OpSchema& op, std::vector<Damage>& out) {
  auto given = arguments_of(op);
  given.push_back({"no_such_argument", std::int64_t{1}});
  out.push_back({"with another", std::move(given), op.inputs});
}

// A value of a type that the argument does not have.
void wrong_types(const OpSchema& op, std::vector<Damage>& out) {
  const auto& declared = op.function->arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const ArgumentType type = declared[i].type;
    const bool takes_words =
        type == ArgumentType::kString || type == ArgumentType::kLayout ||
        type == ArgumentType::kMemoryFormat || type == ArgumentType::kDevice;
    if (type == ArgumentType::kOther || type == ArgumentType::kGenerator) {
      continue;
    }
    auto given = arguments_of(op);
    given[i].value = takes_words ? Argument(2.5) : Argument(std::string("x"));
    out.push_back(
        {declared[i].name + " of another type", std::move(given), op.inputs});
  }
}

void dims_out_of_range(const OpSchema& op, std::vector<Damage>& out) {
  const auto& declared = op.function->arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].type != ArgumentType::kInt) continue;
    if (declared[i].name != "dim" && declared[i].name != "dims") continue;
    if (op.function->base_name() == "tile") continue;  // counts of repeats
    for (const std::int64_t dim : {std::int64_t{9}, std::int64_t{-10}}) {
      auto given = arguments_of(op);
      given[i].value = declared[i].is_list
                           ? Argument(std::vector<std::int64_t>{dim})
                           : Argument(dim);
      out.push_back({declared[i].name + " = " + std::to_string(dim),
                     std::move(given), op.inputs});
    }
  }
}

// Integers at the ends of their range, with which arithmetic overflows.
void numbers_out_of_range(const OpSchema& op, std::vector<Damage>& out) {
  using Limits = std::numeric_limits<std::int64_t>;
  const auto& declared = op.function->arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const bool is_number = declared[i].type == ArgumentType::kInt ||
                           declared[i].type == ArgumentType::kScalar;
    if (!is_number) continue;
    for (const std::int64_t number :
         {Limits::min(), Limits::min() + 1, Limits::max(), Limits::max() - 1,
          std::int64_t{-1}, std::int64_t{1} << 40}) {
      auto given = arguments_of(op);
      const auto* list = std::get_if<std::vector<std::int64_t>>(&op.args[i]);
      std::vector<std::int64_t> numbers(
          list == nullptr ? std::size_t{1}
                          : std::max<std::size_t>(list->size(), 1),
          number);
      given[i].value =
          declared[i].is_list ? Argument(std::move(numbers)) : Argument(number);
      out.push_back({declared[i].name + " = " + std::to_string(number),
                     std::move(given), op.inputs, false});
    }
  }
}

TensorMeta tensor(const Dims& shape, DType dtype) {
  return TensorMeta::contiguous(shape, dtype).value();
}

// A single notation without leading dims states every rank.
bool states_ranks(const OpSchema& op) {
  const OpRow* row = library().row(*op.function);
  const std::string text = row->definition.summary();
  return !row->definition.is_custom() && text.find("->") != std::string::npos &&
         text.find('+') == std::string::npos &&
         text.find('|') == std::string::npos &&
         text.find('*') == std::string::npos &&  // `*` is of any rank
         text.find("...") == std::string::npos;
}

void other_tensors(const OpSchema& op, std::vector<Damage>& out) {
  const auto with = [&](std::size_t i, const std::string& what, TensorMeta meta,
                        bool is_certain) {
    std::vector<TensorMeta> inputs = op.inputs;
    inputs[i] = std::move(meta);
    out.push_back({"operand " + std::to_string(i) + ' ' + what,
                   arguments_of(op), std::move(inputs), is_certain});
  };
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const TensorMeta& meta = op.inputs[i];
    Dims larger = meta.shape();
    larger.insert(larger.begin(), 7);
    with(i, "of a rank more", tensor(larger, meta.dtype()), states_ranks(op));
    with(i, "without dims", tensor(Dims{}, meta.dtype()),
         states_ranks(op) && meta.rank() > 0);
    for (std::size_t d = 0; d < meta.shape().size(); ++d) {
      for (const std::int64_t size : {meta.shape()[d] + 1, std::int64_t{0}}) {
        Dims shape = meta.shape();
        shape[d] = size;
        with(i, "of another size", tensor(shape, meta.dtype()), false);
      }
    }
    for (const DType dtype :
         {DType::kBool, DType::kI64, DType::kC64, DType::kF8E4M3FN}) {
      with(i, "of another dtype", tensor(meta.shape(), dtype), false);
    }
  }
}

std::vector<Damage> damages(const OpSchema& op) {
  std::vector<Damage> out;
  missing_arguments(op, out);
  further_arguments(op, out);
  wrong_types(op, out);
  dims_out_of_range(op, out);
  numbers_out_of_range(op, out);
  other_tensors(op, out);
  return out;
}

}  // namespace

TEST_CASE("damaged calls of every operator: an error each, nothing thrown") {
  int refused = 0;
  int answered = 0;
  std::vector<std::string> wrong;
  for (const OpSchema& op : calls()) {
    for (Damage& damage : damages(op)) {
      const std::string what = op.name() + ' ' + damage.what;
      INFO(what);
      bool answers = false;
      CHECK_NOTHROW(answers = is_answered(op, std::move(damage.given),
                                          std::move(damage.inputs)));
      ++(answers ? answered : refused);
      if (answers && damage.is_certain) wrong.push_back(what);
    }
  }
  MESSAGE(refused, " damaged calls are refused, ", answered,
          " are calls still");
  CHECK(refused >= 3000);
  for (const std::string& what : wrong) FAIL_CHECK(what, " is answered");
}

// Two kinds of refusal come later: a program that does not fit a call, and a write
// into a tensor of another shape or dtype.
TEST_CASE("inference takes a functional call exactly if its row takes it") {
  std::vector<std::string> wrong;
  int taken = 0;
  int refused = 0;
  const auto check = [&](const OpSchema& like, std::string what,
                         std::vector<GivenArgument> given,
                         std::vector<TensorMeta> inputs) {
    auto op =
        make_op_schema(like.function, std::move(given), std::move(inputs));
    if (!op) return;
    auto results = library().infer_results(*op);
    if (!results) {
      // The results of the undamaged call replace unknown results.
      if (results.error().code != ErrorCode::kShapeMismatch) return;
      ++refused;
      op->outputs = like.outputs;
      op->output_slots = like.output_slots;
      if (library().index_space(*op)) {
        wrong.push_back(like.name() + ' ' + std::move(what) +
                        " has an index space, but no inferred result: " +
                        results.error().message);
      }
      return;
    }
    ++taken;
    set_results(*op, *std::move(results));
    const auto space = library().index_space(*op);
    if (space || space.error().code == ErrorCode::kProgram) return;
    wrong.push_back(like.name() + ' ' + std::move(what) + ": " +
                    space.error().message);
  };
  for (OpSchema& op : calls()) {
    if (op.function->is_mutating()) continue;
    if (!fill_outputs(op, library())) continue;
    check(op, "as it is", arguments_of(op), op.inputs);
    for (Damage& damage : damages(op)) {
      check(op, std::move(damage.what), std::move(damage.given),
            std::move(damage.inputs));
    }
  }
  MESSAGE(taken, " calls are inferred, ", refused, " are refused");
  CHECK(taken > 2000);
  CHECK(refused > 2000);
  for (const std::string& what : wrong) FAIL_CHECK(what);
}

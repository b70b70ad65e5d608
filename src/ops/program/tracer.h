// `Tracer` runs a program on one call, with metas instead of tensors, and
// records the operators that it calls.
#pragma once

#include "ops/op_call.h"
#include "ops/program/choice.h"
#include "ops/program/program_text.h"
#include "ops/program/trace_value.h"

#include <shardprop/ops/op_library.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {

class Tracer {
 public:
  Tracer(const OpSchema& op, const OpLibrary& library, bool per_rank,
         const IndexSpace* space);

  // May throw CallError.
  std::shared_ptr<Decomposition> run(const ProgramText& text);

 private:
  using Values = std::vector<TraceValue>;
  using Named = std::vector<std::pair<std::string, TraceValue>>;

  // tracer.cc: names, lines and expressions.
  void bind_arguments();
  // Throws if a result of the program has another shape than that of the
  // operator.
  void check_shapes() const;
  // Returns the index of that result among the outputs; nullopt if it is not
  // produced.
  std::optional<std::size_t> output_of(std::size_t result) const;
  bool is_given(const std::string& name) const;
  bool is_made(const ProgramLine& line) const;
  bool is_not_made(const Expression& result) const;
  void assign(const ProgramLine& line);
  TraceValue value_of(const Expression& expression);
  TraceValue combined(const std::string& op, const TraceValue& left,
                      const TraceValue& right);

  // The functions that a program calls and that are not operators:
  // 1. trace_functions.cc: sizes, dims and dtypes.
  // 2. list_functions.cc: lists of tensors and numbers.
  // 3. step_functions.cc: functions that add steps.
  TraceValue called(const CallExpression& call);
  TraceValue or_default(const CallExpression& call);
  TraceValue itself(Named given);
  TraceValue listed(const ListExpression& list);
  TraceValue of_results(const std::string& function, const Values& values);
  std::optional<TraceValue> size_function(const std::string& name,
                                          const Values& v);
  std::optional<TraceValue> dims_function(const std::string& name,
                                          const Values& v);
  std::optional<TraceValue> list_function(const std::string& name,
                                          const Values& v);
  std::optional<TraceValue> step_function(const std::string& name,
                                          const Values& v);
  TraceValue cut_dim(const TensorValue& x) const;
  TraceValue result(const TraceValue& made, std::int64_t slot) const;
  TraceValue cast(const TraceValue& value, const TraceValue& dtype);
  TraceValue chosen(Choice::If condition, const Values& v);
  bool runs_program(const TensorValue& x, int dim) const;
  TraceValue trailing(TraceValue value, std::int64_t count);
  TraceValue places_along(const TraceValue& value, const TraceValue& dims);
  TraceValue places(std::int64_t size, const RankScalar& local_size,
                    const RankScalar& offset);
  TraceValue local_indices(const TraceValue& x, const TraceValue& indices);
  TraceValue outside(const TraceValue& x, const TensorValues& local);
  TraceValue collective(CollectiveKind kind, std::optional<ReduceOp> op,
                        const TraceValue& value, bool in_order = true);

  // trace_operations.cc: operators, as steps. `name` is a full overload name,
  // or a base name whose overload is looked up.
  TraceValue operation(const std::string& name, const Values& positional,
                       const Named& named);
  // `Refusal` says why no overload accepts the values: the message of one that accepts
  // their types, if there is one.
  struct Refusal {
    std::string message;
    std::shared_ptr<const FunctionSchema> overload;  // the one that refused
    bool has_types = false;
  };
  std::optional<TraceValue> apply(
      const std::shared_ptr<const FunctionSchema>& function,
      const Values& positional, const Named& named, Refusal& refused);
  // Returns the value of a number of a rank that has the full tensors.
  std::int64_t value_on_full_tensors(const RankScalar& scalar) const;
  TensorValue add_step(DecompositionStep step, const TensorMeta& result);

  const OpSchema& op_;
  const OpLibrary& library_;
  const IndexSpace* space_;  // null unless the program is per rank
  std::map<std::string, TraceValue> names_;
  std::shared_ptr<Decomposition> out_;
};

}  // namespace shardprop

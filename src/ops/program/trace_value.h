// `TraceValue` is the value of a name or an expression of a program during
// tracing.
#pragma once

#include <shardprop/ops/decomposition.h>

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace shardprop {

struct TensorValue {
  LocalRef ref;
  TensorMeta meta;
};
// An element is nullopt if an optional tensor of the list is absent.
using TensorValues = std::vector<std::optional<TensorValue>>;
using TraceValue =
    std::variant<Argument, TensorValue, TensorValues, RankScalar>;

bool is_none(const TraceValue& value);

// Converts a value to the kind that a program needs, or throws CallError.
const TensorValue& tensor_of(const TraceValue& value);
// Accepts a list with a single element too.
std::int64_t integer_of(const TraceValue& value);
std::vector<std::int64_t> integers_of(const TraceValue& value);
// Returns nullopt if the value is not a number; True counts as 1.
std::optional<double> number_of(const TraceValue& value);

// Converts the value to an argument of the operator on full tensors. Its
// tensors are appended to both lists.
Argument as_argument(const TraceValue& value, std::vector<TensorMeta>& inputs,
                     std::vector<LocalRef>& refs);
// Converts the value to an argument of a step.
LocalOp::Value as_local(const TraceValue& value);

}  // namespace shardprop

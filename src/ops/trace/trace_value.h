// What a name or an expression of a program stands for while it is traced.
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
// An absent optional tensor in a list of tensors.
using TensorValues = std::vector<std::optional<TensorValue>>;
using TraceValue =
    std::variant<Argument, TensorValue, TensorValues, RankScalar>;

bool is_none(const TraceValue& value);

// A value as the kind that a program needs, or a CallError.
const TensorValue& tensor_of(const TraceValue& value);
// Of a list, its only element.
std::int64_t integer_of(const TraceValue& value);
std::vector<std::int64_t> integers_of(const TraceValue& value);
// nullopt where it is not a number; True counts as 1.
std::optional<double> number_of(const TraceValue& value);

// The value as an argument of the whole operator, its tensors added to both
// lists.
Argument as_argument(const TraceValue& value, std::vector<TensorMeta>& inputs,
                     std::vector<LocalRef>& refs);
// The value as an argument of a step.
LocalOp::Value as_local(const TraceValue& value);

}  // namespace shardprop

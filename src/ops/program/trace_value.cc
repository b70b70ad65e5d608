#include "ops/program/trace_value.h"

#include "ops/op_call.h"

namespace shardprop {

bool is_none(const TraceValue& value) {
  const auto* argument = std::get_if<Argument>(&value);
  return argument != nullptr && std::holds_alternative<NoneArg>(*argument);
}

const TensorValue& tensor_of(const TraceValue& value) {
  const auto* found = std::get_if<TensorValue>(&value);
  if (found == nullptr) call_error("a program needs a tensor");
  return *found;
}

std::int64_t integer_of(const TraceValue& value) {
  if (const auto* argument = std::get_if<Argument>(&value)) {
    if (const auto* i = std::get_if<std::int64_t>(argument)) return *i;
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(argument);
        list != nullptr && list->size() == 1) {
      return list->front();
    }
  }
  call_error("a program needs an integer");
}

std::vector<std::int64_t> integers_of(const TraceValue& value) {
  if (const auto* argument = std::get_if<Argument>(&value)) {
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(argument)) {
      return *list;
    }
    if (const auto* i = std::get_if<std::int64_t>(argument)) return {*i};
  }
  call_error("a program needs a list of integers");
}

std::optional<double> number_of(const TraceValue& value) {
  const auto* argument = std::get_if<Argument>(&value);
  if (argument == nullptr) return std::nullopt;
  if (const auto* b = std::get_if<bool>(argument)) return *b ? 1 : 0;
  if (const auto* i = std::get_if<std::int64_t>(argument)) {
    return static_cast<double>(*i);
  }
  if (const auto* d = std::get_if<double>(argument)) return *d;
  return std::nullopt;
}

Argument as_argument(const TraceValue& value, std::vector<TensorMeta>& inputs,
                     std::vector<LocalRef>& refs) {
  const auto add = [&](const TensorValue& x) {
    const TensorArg arg{static_cast<std::int32_t>(inputs.size())};
    inputs.push_back(x.meta);
    refs.push_back(x.ref);
    return arg;
  };
  if (const auto* x = std::get_if<TensorValue>(&value)) return add(*x);
  if (const auto* list = std::get_if<TensorValues>(&value)) {
    std::vector<TensorArg> args;
    for (const auto& element : *list) {
      args.push_back(element ? add(*element) : TensorArg{});
    }
    return args;
  }
  // A rank scalar has a different value on each rank. The shapes of per-rank
  // programs are those of full tensors, so any int serves.
  if (std::holds_alternative<RankScalar>(value)) return std::int64_t{1};
  return std::get<Argument>(value);
}

LocalOp::Value as_local(const TraceValue& value) {
  if (const auto* x = std::get_if<TensorValue>(&value)) return x->ref;
  if (const auto* list = std::get_if<TensorValues>(&value)) {
    std::vector<LocalRef> refs;
    for (const auto& element : *list) {
      refs.push_back(element ? element->ref : LocalRef{-1, TensorArg::kNone});
    }
    return refs;
  }
  if (const auto* scalar = std::get_if<RankScalar>(&value)) return *scalar;
  return std::get<Argument>(value);
}

}  // namespace shardprop

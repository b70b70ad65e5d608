#include "ops/argument_reads.h"

#include <algorithm>
#include <cmath>

namespace shardprop {
namespace {

// An operator definition is a function of the call alone, many layers deep. A
// thread-local pointer records its reads, so no layer has to pass them on.
thread_local ArgumentReads* current_reads = nullptr;

}  // namespace

ArgumentReads::ArgumentReads(const FunctionSchema& function)
    : function_(function),
      looks_(function.arguments().size(), Look::kNothing),
      outer_(current_reads) {
  current_reads = this;
}

ArgumentReads::~ArgumentReads() { current_reads = outer_; }

void ArgumentReads::note(std::string_view argument, Look look) {
  for (ArgumentReads* reads = current_reads; reads != nullptr;
       reads = reads->outer_) {
    if (const auto i = reads->function_.argument_index(argument)) {
      reads->looks_[*i] = std::max(reads->looks_[*i], look);
    }
  }
}

const Argument& look_at(const OpSchema& op, std::string_view argument,
                        Look look) {
  const auto index = op.function->argument_index(argument);
  if (!index) {
    throw UndeclaredArgument(op.name() + " declares no argument `" +
                             std::string(argument) + "`");
  }
  ArgumentReads::note(argument, look);
  return op.args[*index];
}

std::optional<int> sign_of(const OpSchema& op, std::string_view argument) {
  const Argument& value = look_at(op, argument, Look::kSign);
  const auto sign = [](auto x) { return x == 0 ? 0 : x > 0 ? 1 : -1; };
  if (const auto* real = std::get_if<double>(&value)) {
    if (std::isnan(*real)) return std::nullopt;
    return sign(*real);
  }
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    return sign(*whole);
  }
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  return std::nullopt;
}

}  // namespace shardprop

// `CheckedCalls` is the set of the latest calls of each operator that fitted
// their declaration. A call that the layers of a model repeat is thus checked
// once.
#pragma once

#include <shardprop/ops/op_schema.h>

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <vector>

namespace shardprop {

class CheckedCalls {
 public:
  bool contains(const OpSchema& op) const {
    const auto found = latest_.find(op.function.get());
    if (found == latest_.end()) return false;
    const std::vector<OpSchema>& calls = found->second.calls;
    return std::any_of(calls.begin(), calls.end(), [&](const OpSchema& call) {
      return call.inputs == op.inputs && call.outputs == op.outputs &&
             call.output_slots == op.output_slots && call.args == op.args;
    });
  }

  void add(const OpSchema& op) {
    Latest& latest = latest_[op.function.get()];
    if (latest.calls.size() < kKept) {
      latest.calls.push_back(op);
      return;
    }
    latest.calls[latest.oldest] = op;
    latest.oldest = (latest.oldest + 1) % kKept;
  }

 private:
  // Calls kept per operator: more than one layer has of most operators, and few
  // enough for a linear search.
  static constexpr std::size_t kKept = 16;
  struct Latest {
    std::vector<OpSchema> calls;
    std::size_t oldest = 0;
  };
  // A kept call owns its function, so the address that is the key stays valid.
  std::unordered_map<const FunctionSchema*, Latest> latest_;
};

}  // namespace shardprop

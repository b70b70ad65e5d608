#include "graph/analysis/op_application.h"

#include <shardprop/base/hash.h>

#include <complex>
#include <type_traits>
#include <variant>

namespace shardprop {
namespace {

struct HashArgument {
  std::size_t operator()(const NoneArg&) const { return 1; }
  std::size_t operator()(const NamedArg& a) const {
    return std::hash<std::string>{}(a.name);
  }
  std::size_t operator()(const TensorArg& a) const {
    return std::hash<std::int32_t>{}(a.operand);
  }
  std::size_t operator()(const std::complex<double>& a) const {
    return hash_combine(std::hash<double>{}(a.real()), a.imag());
  }
  std::size_t operator()(const std::vector<TensorArg>& list) const {
    std::size_t seed = list.size();
    for (const TensorArg& a : list) seed = hash_combine(seed, a.operand);
    return seed;
  }
  std::size_t operator()(const std::vector<bool>& list) const {
    return std::hash<std::vector<bool>>{}(list);
  }
  template <class T>
  std::size_t operator()(const std::vector<T>& list) const {
    return hash_range(0, list);
  }
  template <class T>
  std::size_t operator()(const T& a) const {
    return std::hash<T>{}(a);
  }
};

}  // namespace

std::size_t hash_application(const OpSchema& op) {
  std::size_t seed = std::hash<std::string>{}(op.name());
  seed = hash_range(seed, op.inputs);
  seed = hash_range(seed, op.outputs);
  for (const Argument& argument : op.args) {
    seed = hash_mix(seed, argument.index());
    seed = hash_mix(seed, std::visit(HashArgument{}, argument));
  }
  return seed;
}

bool same_application(const OpSchema& a, const OpSchema& b) {
  return a.name() == b.name() && a.args == b.args && a.inputs == b.inputs &&
         a.outputs == b.outputs && a.output_slots == b.output_slots;
}

}  // namespace shardprop

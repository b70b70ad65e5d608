// `Kernels` is the table of the functions that evaluate operators: one kernel per
// overload.
//
//   kernels.add({"topk"}, topk);
//   kernels.add({"div.Tensor", "div.Tensor_mode", "prims::div"}, divide);
//
// A name is that of PyTorch's declaration, without "aten::". Overloads that follow from
// others (src/ops/schema/overload_kind.h) need no kernel.
#pragma once

#include "reference/call.h"

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardprop::reference {

// A kernel returns the results in the order of op.outputs.
using Kernel = std::function<std::vector<Tensor>(const Call&)>;

using Names = std::initializer_list<std::string_view>;

class Kernels {
 public:
  // Adds the kernel of these overloads. Throws InternalError if an overload is not
  // declared, writes an argument, or has a kernel already.
  void add(Names overloads, const Kernel& kernel);

  // Returns null if the overload has no kernel.
  const Kernel* find(const FunctionSchema& function) const;

 private:
  std::unordered_map<std::string, Kernel>
      kernels_;  // by FunctionSchema::name()
};

void add_pointwise(Kernels& kernels);
void add_elementary_functions(Kernels& kernels);
void add_comparisons(Kernels& kernels);
void add_special_functions(Kernels& kernels);
void add_gradients(Kernels& kernels);
void add_copies(Kernels& kernels);
void add_reductions(Kernels& kernels);
void add_products(Kernels& kernels);
void add_scaled_products(Kernels& kernels);
void add_views(Kernels& kernels);
void add_joins(Kernels& kernels);
void add_lookups(Kernels& kernels);
void add_indexing(Kernels& kernels);
void add_factories(Kernels& kernels);
void add_random(Kernels& kernels);
void add_scans(Kernels& kernels);
void add_convolutions(Kernels& kernels);
void add_pools(Kernels& kernels);
void add_norms(Kernels& kernels);
void add_losses(Kernels& kernels);
void add_attention(Kernels& kernels);
void add_linear_algebra(Kernels& kernels);

}  // namespace shardprop::reference

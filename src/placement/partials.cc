#include <shardprop/placement/partials.h>

namespace shardprop {
namespace {

ReduceOp kind_of(Placement partial) {
  return partial.reduce_op() == ReduceOp::kAvg ? ReduceOp::kSum
                                               : partial.reduce_op();
}

}  // namespace

bool partials_mix(Placement a, Placement b) {
  return kind_of(a) == kind_of(b) && a.reduce_dtype() == b.reduce_dtype();
}

Placement combined_partial(Placement a, Placement b) {
  return a.reduce_op() == ReduceOp::kAvg ? b : a;
}

}  // namespace shardprop

// Evaluates copies, casts, and choices between tensors.

#include "reference/kernels.h"
#include "reference/math/pointwise.h"

namespace shardprop::reference {
namespace {

std::vector<Tensor> copied(const Call& call) {
  return {cast(call.first_value(), call.out().dtype())};
}

// Returns the elements of an operand, broadcast to the result.
Tensor broadcast_of(const Call& call, const Tensor& from) {
  const Dims& shape = call.out().shape();
  switch (domain_of(from.dtype())) {
    case Domain::kReal:
      return call.made(broadcast_values<double>(from, shape));
    case Domain::kInteger:
      return call.made(broadcast_values<std::int64_t>(from, shape));
    case Domain::kComplex:
      break;
  }
  return call.made(broadcast_values<Complex>(from, shape));
}

// Returns a if the condition holds, else b.
std::vector<Tensor> choose(const Call& call, const Tensor& condition,
                           std::string_view a, std::string_view b) {
  const std::vector<std::int64_t> holds =
      broadcast_values<std::int64_t>(condition, call.out().shape());
  std::size_t p = 0;
  const auto pick = [&](const auto* x) {
    return holds[p++] != 0 ? x[0] : x[1];
  };
  return pointwise(call, {{a, b},
                          [&](const double* x) { return pick(x); },
                          [&](const std::int64_t* x) { return pick(x); },
                          [&](const Complex* x) { return pick(x); }});
}

}  // namespace

void add_copies(Kernels& k) {
  k.add({"clone", "prims::clone", "contiguous", "_to_copy", "to.device",
         "to.dtype", "to.dtype_layout", "to.other", "type_as",
         "prims::convert_element_type"},
        copied);
  k.add({"copy"}, [](const Call& call) {
    return std::vector<Tensor>{broadcast_of(call, call.value("src"))};
  });
  k.add({"fill.Scalar", "fill.Tensor", "prims::fill"}, [](const Call& call) {
    const auto same = [](const auto* x) { return x[0]; };
    return pointwise(call, {{"value"}, same, same, same});
  });
  k.add({"zero"}, [](const Call& call) {
    return std::vector<Tensor>{
        Tensor::zeros(call.out().shape(), call.out().dtype())};
  });
  // `where` without values is not here: the size of its result depends on data.
  k.add({"where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar"},
        [](const Call& call) {
          return choose(call, call.value("condition"), "self", "other");
        });
  k.add({"masked_fill.Scalar", "masked_fill.Tensor"}, [](const Call& call) {
    return choose(call, call.value("mask"), "value", "self");
  });
}

}  // namespace shardprop::reference

#include "verify/compare.h"

#include "base/index.h"
#include "base/try.h"
#include "execute/region_elements.h"
#include "reference/elements.h"
#include "verify/host_values.h"

#include <shardprop/collective/group.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

namespace shardprop::verification {
namespace {

using reference::Complex;

// The mesh dims whose terms must be reduced, and the reduction.
struct Terms {
  DimIndices dims;
  ReduceOp op = ReduceOp::kSum;
  double divisor = 1;  // of averages
};

Terms terms_of(const Layout& layout, const DeviceMesh& mesh) {
  Terms out;
  for (int d = 0; d < layout.mesh_ndim(); ++d) {
    if (!layout[d].is_partial() || mesh.size(d) == 1) continue;
    out.dims.push_back(d);
    const ReduceOp op = layout[d].reduce_op();
    if (op == ReduceOp::kAvg) {
      out.divisor *= static_cast<double>(mesh.size(d));
    } else {
      out.op = op;
    }
  }
  return out;
}

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>) return DType::kF64;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::kI64;
  return DType::kC128;
}

template <class T>
Result<std::vector<T>> reduced(const std::vector<T>& mine, const Terms& terms,
                               const DeviceMesh& mesh,
                               Communicator& communicator) {
  const Dims shape{static_cast<std::int64_t>(mine.size())};
  SP_ASSIGN(
      const Group group,
      Group::mesh_dims(mesh, std::span(terms.dims.data(), terms.dims.size())));
  CollectiveCall call;
  call.kind = CollectiveKind::kAllReduce;
  call.op = terms.op;
  call.where = "verification";
  call.inputs = {as_local(reference::tensor_of(shape, dtype_of<T>(), mine))};
  SP_ASSIGN(LocalTensor out, LocalTensor::empty(shape, dtype_of<T>()));
  call.outputs = {out};
  SP_CHECK(communicator.run(group, std::move(call)));
  std::vector<T> sums = reference::values<T>(as_reference(out));
  if constexpr (!std::is_same_v<T, std::int64_t>) {
    for (T& sum : sums) sum /= terms.divisor;
  }
  return sums;
}

template <class T>
double size_of(const T& x) {
  const double size = std::abs(std::complex<double>([&] {
    if constexpr (std::is_same_v<T, Complex>)
      return x;
    else
      return Complex(static_cast<double>(x), 0);
  }()));
  return size < kLargestScale ? size : 0;
}

template <class T>
double real_part(const T& x) {
  if constexpr (std::is_same_v<T, Complex>)
    return x.real();
  else
    return static_cast<double>(x);
}

// Returns the distance of two numbers. It is 0 for equal infinities and for two
// NaNs.
template <class T>
double distance(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return a == b ? 0
                  : std::max(1.0, std::fabs(static_cast<double>(a) -
                                            static_cast<double>(b)));
  } else {
    if (a == b || (a != a && b != b)) return 0;
    const double d = std::abs(a - b);
    return std::isfinite(d) ? d : INFINITY;
  }
}

template <class T>
Result<Difference> compared(const LocalTensor& held, const LocalTensor& whole,
                            const Layout& layout, const DeviceMesh& mesh,
                            Communicator& communicator, const Bound& bound) {
  const auto at = mesh.coordinate_of(communicator.rank());
  std::vector<T> found = reference::values<T>(as_reference(held));
  constexpr bool kExact = std::is_same_v<T, std::int64_t>;
  double scale = kExact ? 1 : bound.least_scale;
  for (const T& x : found) scale = std::max(scale, size_of(x));
  if (const Terms terms = terms_of(layout, mesh); !terms.dims.empty()) {
    SP_ASSIGN(found, reduced(found, terms, mesh, communicator));
    // Sums of narrow integers wrap at their own width.
    if (std::is_same_v<T, std::int64_t>) {
      const Dims shape{static_cast<std::int64_t>(found.size())};
      found = reference::values<T>(
          reference::tensor_of(shape, held.dtype(), found));
    }
  }
  const std::vector<std::int64_t> elements = execute::elements_of(
      local_region(layout, mesh, whole.sizes(), *at), whole.sizes());
  // `whole` is row-major, or broadcast.
  const std::vector<T> all = reference::values<T>(as_reference(whole));
  Difference out;
  for (const std::int64_t e : elements) {
    scale = std::max(scale, size_of(all[index(e)]));
  }
  const double most = kExact ? 0 : scale * bound.tolerance;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const T& wanted = all[index(elements[i])];
    const double apart = distance(found[i], wanted);
    if (apart == 0) continue;
    out.error = std::max(out.error, apart / scale);
    if (!(apart > most) || out.beyond) continue;
    out.beyond = true;
    out.element = elements[i];
    out.expected = real_part(wanted);
    out.found = real_part(found[i]);
  }
  return out;
}

}  // namespace

// In f64, rounding errors are far below real errors. In shorter floats they grow
// along a program: a measured value has a larger scale for them.
double tolerance_of(DType dtype, bool is_measured) {
  switch (dtype) {
    case DType::kF64:
    case DType::kC128:
      return 1e-8;
    case DType::kF32:
    case DType::kC64:
      return is_measured ? 1e-5 : 1e-3;
    case DType::kF16:
      return is_measured ? 0.01 : 0.1;
    default:
      return is_measured ? 0.05 : 0.1;
  }
}

std::string place_in(std::int64_t element, const Dims& shape) {
  std::string out;
  for (std::size_t d = shape.size(); d-- > 0;) {
    out = std::to_string(element % std::max<std::int64_t>(shape[d], 1)) +
          (out.empty() ? "" : ",") + out;
    element /= std::max<std::int64_t>(shape[d], 1);
  }
  return "[" + out + "]";
}

Result<Difference> compare(const LocalTensor& held, const LocalTensor& whole,
                           const Layout& layout, const DeviceMesh& mesh,
                           Communicator& communicator, const Bound& bound) {
  switch (reference::domain_of(held.dtype())) {
    case reference::Domain::kReal:
      return compared<double>(held, whole, layout, mesh, communicator, bound);
    case reference::Domain::kInteger:
      return compared<std::int64_t>(held, whole, layout, mesh, communicator,
                                    bound);
    case reference::Domain::kComplex:
      break;
  }
  return compared<reference::Complex>(held, whole, layout, mesh, communicator,
                                      bound);
}

}  // namespace shardprop::verification

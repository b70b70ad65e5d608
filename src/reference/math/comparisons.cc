// Evaluates comparisons, logic and tests of floats. The results are bools.

#include "reference/kernels.h"
#include "reference/math/pointwise.h"

#include <cmath>

namespace shardprop::reference {
namespace {

// Returns a function that is 1 if the relation holds between both operands,
// else 0.
template <class T, class Relation>
std::function<T(const T*)> truth(Relation holds) {
  return [holds](const T* x) { return holds(x[0], x[1]) ? T{1} : T{0}; };
}

// Complex numbers have no order.
template <class Less>
void ordered(Kernels& k, Names names, Less holds) {
  k.add(names, [holds](const Call& call) {
    return pointwise(
        call,
        {{"self", "other"}, truth<double>(holds), truth<std::int64_t>(holds)});
  });
}

template <class Equal>
void equal(Kernels& k, Names names, Equal holds) {
  k.add(names, [holds](const Call& call) {
    return pointwise(call, {{"self", "other"},
                            truth<double>(holds),
                            truth<std::int64_t>(holds),
                            truth<Complex>(holds)});
  });
}

// A logical operator tests each operand in its own dtype.
template <class F>
void logic(Kernels& k, Names names, F f) {
  k.add(names, [f](const Call& call) {
    const Dims& shape = call.out().shape();
    std::vector<std::vector<std::int64_t>> truths;
    for (const Tensor& input : call.inputs()) {
      truths.push_back(
          broadcast_values<std::int64_t>(cast(input, DType::kBool), shape));
    }
    std::vector<std::int64_t> out(truths[0].size());
    for (std::size_t p = 0; p < out.size(); ++p) {
      out[p] =
          f(truths[0][p] != 0, truths.size() > 1 && truths[1][p] != 0) ? 1 : 0;
    }
    return std::vector<Tensor>{call.made(out)};
  });
}

// Adds a test of one float; integers have the result `otherwise`.
void test(Kernels& k, Names names, bool (*holds)(double), bool otherwise,
          bool (*combine)(bool, bool) = nullptr) {
  k.add(names, [=](const Call& call) {
    PointFunctions row{{call.op().function->arguments().front().name}};
    row.real = [holds](const double* x) { return holds(x[0]) ? 1.0 : 0.0; };
    row.integer = [otherwise](const std::int64_t*) -> std::int64_t {
      return otherwise ? 1 : 0;
    };
    if (combine != nullptr) {
      row.complex = [=](const Complex* x) -> Complex {
        return combine(holds(x[0].real()), holds(x[0].imag())) ? 1.0 : 0.0;
      };
    }
    return pointwise(call, row);
  });
}

std::vector<Tensor> is_close(const Call& call) {
  const double relative = call.number("rtol", 1e-5);
  const double absolute = call.number("atol", 1e-8);
  const bool nan = call.boolean_or("equal_nan", false);
  const auto close = [=](double a, double b) {
    if (a == b) return true;
    if (nan && std::isnan(a) && std::isnan(b)) return true;
    return std::isfinite(a) && std::isfinite(b) &&
           std::fabs(a - b) <= absolute + std::fabs(relative * b);
  };
  return pointwise(
      call,
      {{"self", "other"},
       [=](const double* x) { return close(x[0], x[1]) ? 1.0 : 0.0; },
       [=](const std::int64_t* x) -> std::int64_t {
         return close(static_cast<double>(x[0]), static_cast<double>(x[1])) ? 1
                                                                            : 0;
       }});
}

}  // namespace

void add_comparisons(Kernels& k) {
  equal(k, {"eq.Scalar", "eq.Tensor", "prims::eq"},
        [](auto a, auto b) { return a == b; });
  equal(k, {"ne.Scalar", "ne.Tensor", "prims::ne"},
        [](auto a, auto b) { return a != b; });
  ordered(k, {"lt.Scalar", "lt.Tensor", "prims::lt"},
          [](auto a, auto b) { return a < b; });
  ordered(k, {"le.Scalar", "le.Tensor", "prims::le"},
          [](auto a, auto b) { return a <= b; });
  ordered(k, {"gt.Scalar", "gt.Tensor", "prims::gt"},
          [](auto a, auto b) { return a > b; });
  ordered(k, {"ge.Scalar", "ge.Tensor", "prims::ge"},
          [](auto a, auto b) { return a >= b; });
  logic(k, {"logical_and"}, [](bool a, bool b) { return a && b; });
  logic(k, {"logical_or"}, [](bool a, bool b) { return a || b; });
  logic(k, {"logical_xor"}, [](bool a, bool b) { return a != b; });
  logic(k, {"logical_not"}, [](bool a, bool) { return !a; });
  const auto either = [](bool a, bool b) { return a || b; };
  const auto both = [](bool a, bool b) { return a && b; };
  test(k, {"isnan"}, [](double x) { return std::isnan(x); }, false, either);
  test(k, {"isinf"}, [](double x) { return std::isinf(x); }, false, either);
  test(
      k, {"isfinite", "prims::isfinite"},
      [](double x) { return std::isfinite(x); }, true, both);
  test(k, {"isposinf"}, [](double x) { return std::isinf(x) && x > 0; }, false);
  test(k, {"isneginf"}, [](double x) { return std::isinf(x) && x < 0; }, false);
  k.add({"signbit", "prims::signbit"}, [](const Call& call) {
    const std::string_view self = call.op().function->arguments().front().name;
    return pointwise(
        call, {{self},
               [](const double* x) { return std::signbit(x[0]) ? 1.0 : 0.0; },
               [](const std::int64_t* x) -> std::int64_t { return x[0] < 0; }});
  });
  k.add({"isclose"}, is_close);
}

}  // namespace shardprop::reference

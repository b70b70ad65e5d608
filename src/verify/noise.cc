#include "verify/noise.h"

#include "base/index.h"
#include "base/try.h"
#include "program/step_values.h"
#include "reference/elements.h"
#include "verify/compare.h"
#include "verify/host_values.h"

#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/program_run.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

namespace shardprop::verification {
namespace {

// The ranks may have this many times the rounding error of one unsharded run:
// they add terms in another order.
constexpr double kErrorsOfRanks = 16;

// In f64 an operator may lose this many roundoffs (2^-53) of its largest
// operand. A value that cancels exactly in one order of its terms, such as
// (a + b) - (a + b), has no other scale.
constexpr double kRoundoffsOfOperands = 64;

constexpr double kF64Roundoff = 0x1p-53;
constexpr double kF32Roundoff = 0x1p-24;

bool is_float(const LocalTensor& tensor) {
  return reference::domain_of(tensor.dtype()) != reference::Domain::kInteger;
}

std::vector<std::complex<double>> numbers(const LocalTensor& tensor) {
  const reference::Tensor held = reference::contiguous(as_reference(tensor));
  if (reference::domain_of(tensor.dtype()) == reference::Domain::kComplex) {
    return reference::values<reference::Complex>(held);
  }
  const std::vector<double> reals = reference::values<double>(held);
  return {reals.begin(), reals.end()};
}

double largest(const LocalTensor& tensor) {
  double out = 0;
  for (const auto& x : numbers(tensor)) {
    const double size = std::abs(x);
    if (size < kLargestScale) out = std::max(out, size);
  }
  return out;
}

// Returns the largest distance of two elements; elements that are not finite
// have none.
double largest_distance(const LocalTensor& a, const LocalTensor& b) {
  const auto left = numbers(a);
  const auto right = numbers(b);
  double out = 0;
  for (std::size_t i = 0; i < left.size() && i < right.size(); ++i) {
    const double distance = std::abs(left[i] - right[i]);
    if (distance < kLargestScale) out = std::max(out, distance);
  }
  return out;
}

class Measurement {
 public:
  Measurement(const SpmdProgram& program, Expected::Body& body)
      : program_(program), body_(body), own_(body.options.own_dtypes) {}

  // `held` is the value of a step in the second run.
  void add(ProgramValueId id, std::size_t step, const LocalTensor& held) {
    const std::string& name = program_.value(id).name;
    const auto found = body_.values.find(name);
    if (found == body_.values.end() || !is_float(found->second)) return;
    const LocalTensor& value = found->second;
    const double tolerance =
        body_.options.tolerance.value_or(tolerance_of(value.dtype(), true));
    if (tolerance <= 0) return;
    // The second run of an f64 run mostly has f32 values, with larger errors.
    const double share = own_ ? 1 : kF64Roundoff / kF32Roundoff;
    double noise = kErrorsOfRanks * share * largest_distance(value, held);
    if (!own_ && step < program_.steps.size()) {
      noise = std::max(noise, kRoundoffsOfOperands * kF64Roundoff *
                                  largest_operand(program_.steps[step]));
    }
    body_.least_scales[name] = noise / tolerance;
  }

 private:
  double largest_operand(const ProgramStep& step) const {
    double out = 0;
    for_each_taken(step, [&](ProgramValueId id) {
      const auto found = body_.values.find(program_.value(id).name);
      if (found != body_.values.end() && is_float(found->second)) {
        out = std::max(out, largest(found->second));
      }
    });
    return out;
  }

  const SpmdProgram& program_;
  Expected::Body& body_;
  bool own_;
};

}  // namespace

Result<void> measure_noise(const SpmdProgram& program,
                           std::vector<LocalTensor> inputs,
                           Expected::Body& body) {
  Measurement measurement(program, body);
  ProgramRunOptions options;
  options.library = body.library;
  options.widen = body.options.own_dtypes;
  options.evaluate = reference_evaluator(body.library);
  options.made = [&](ProgramValueId id, std::size_t step,
                     const LocalTensor& held) -> Result<void> {
    measurement.add(id, step, held);
    return {};
  };
  auto ends = run_ranks(1, {}, [&](Communicator& rank) -> Result<void> {
    SP_CHECK(run(program, rank, inputs, options));
    return {};
  });
  return std::move(ends.front());
}

}  // namespace shardprop::verification

namespace shardprop {

verification::Bound Expected::Body::bound(const std::string& name,
                                          DType dtype) const {
  const double tolerance = options.tolerance.value_or(
      verification::tolerance_of(dtype, is_measured));
  const auto found = least_scales.find(name);
  const double known = found == least_scales.end() ? 0 : found->second;
  return {tolerance, is_measured ? known : 1};
}

}  // namespace shardprop

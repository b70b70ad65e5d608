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
#include <cstdint>
#include <random>
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

constexpr std::uint64_t kSeedOfMoves = 1;

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

// Returns the tensor with each float moved by at most two units in its last
// place. A value that cancels in f32, too, has rounding errors if its terms are
// moved.
LocalTensor moved(const LocalTensor& tensor, std::mt19937_64& draw) {
  if (!is_float(tensor)) return tensor;
  const reference::Tensor held = reference::contiguous(as_reference(tensor));
  const auto move = [&](auto elements) {
    for (auto& x : elements) {
      const double share = static_cast<double>(draw() >> 11) * kF64Roundoff;
      x *= 1 + (2 * share - 1) * 2 * kF64Roundoff;
    }
    return as_local(reference::tensor_of(held.shape(), held.dtype(), elements));
  };
  return reference::domain_of(held.dtype()) == reference::Domain::kComplex
             ? move(reference::values<reference::Complex>(held))
             : move(reference::values<double>(held));
}

class Measurement {
 public:
  Measurement(const SpmdProgram& program, Expected::Body& body)
      : program_(program), body_(body), own_(body.options.own_dtypes) {}

  // `held` is the value of a step in another run, whose distance counts by
  // `share`.
  void add(ProgramValueId id, std::size_t step, const LocalTensor& held,
           double share) {
    const std::string& name = program_.value(id).name;
    const auto found = body_.values.find(name);
    if (found == body_.values.end() || !is_float(found->second)) return;
    const LocalTensor& value = found->second;
    const double tolerance =
        body_.options.tolerance.value_or(tolerance_of(value.dtype(), true));
    if (tolerance <= 0) return;
    double noise = kErrorsOfRanks * share * largest_distance(value, held);
    if (!own_ && step < program_.steps.size()) {
      noise = std::max(noise, kRoundoffsOfOperands * kF64Roundoff *
                                  largest_operand(program_.steps[step]));
    }
    double& scale = body_.least_scales[name];
    scale = std::max(scale, noise / tolerance);
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
  const auto measure = [&](const std::vector<LocalTensor>& given, bool widen,
                           double share) -> Result<void> {
    ProgramRunOptions options;
    options.library = body.library;
    options.widen = widen;
    options.evaluate = reference_evaluator(body.library);
    options.made = [&](ProgramValueId id, std::size_t step,
                       const LocalTensor& held) -> Result<void> {
      measurement.add(id, step, held, share);
      return {};
    };
    auto ends = run_ranks(1, {}, [&](Communicator& rank) -> Result<void> {
      SP_CHECK(run(program, rank, given, options));
      return {};
    });
    return std::move(ends.front());
  };
  if (body.options.own_dtypes) return measure(inputs, /*widen=*/true, 1);
  // The second run of an f64 run mostly has f32 values, with larger errors.
  SP_CHECK(measure(inputs, /*widen=*/false, kF64Roundoff / kF32Roundoff));
  std::vector<LocalTensor> near;
  near.reserve(program.inputs.size());
  std::mt19937_64 draw(kSeedOfMoves);
  for (const ProgramInput& input : program.inputs) {
    near.push_back(
        moved(body.inputs.at(program.value(input.value).name), draw));
  }
  return measure(near, /*widen=*/true, 1);
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

#include "verify/expected.h"

#include "base/guard.h"
#include "base/index.h"
#include "base/memory_at_hand.h"
#include "base/try.h"
#include "reference/elements.h"
#include "verify/check_program.h"
#include "verify/host_values.h"
#include "verify/input_domains.h"
#include "verify/noise.h"

#include <shardprop/collective/thread_world.h>
#include <shardprop/lower/lower.h>
#include <shardprop/program/random_bits.h>

#include <cmath>
#include <numbers>
#include <utility>

namespace shardprop {
namespace {

using verification::InputDomain;

// The first random stream of inputs; nodes use the streams below it.
constexpr std::uint32_t kFirstInput = 0x80000000;

class InputDraw {
 public:
  InputDraw(std::uint64_t seed, std::uint32_t input)
      : seed_(seed), stream_(kFirstInput + input) {}

  double uniform(std::uint64_t element, std::uint32_t word) const {
    return (random_bits(seed_, stream_, element, word) + 0.5) * 0x1p-32;
  }
  double normal(std::uint64_t element) const {
    return std::sqrt(-2 * std::log(uniform(element, 0))) *
           std::cos(2 * std::numbers::pi * uniform(element, 1));
  }
  std::int64_t below(std::uint64_t element, std::int64_t most) const {
    return static_cast<std::int64_t>(uniform(element, 0) *
                                     static_cast<double>(most));
  }

 private:
  std::uint64_t seed_;
  std::uint32_t stream_;
};

std::int64_t integer_of(const InputDomain& domain, const InputDraw& draw,
                        std::uint64_t element) {
  // A table of one row has only the row 0.
  return domain.nonzero && domain.below > 1
             ? 1 + draw.below(element, domain.below - 1)
             : draw.below(element, domain.below);
}

// Returns an input value whose matrices preserve the size of activations and
// whose vectors scale and shift them.
double float_of(const ProgramInput& input, const TensorMeta& meta,
                const InputDomain& domain, double normal) {
  if (domain.positive) return std::exp(0.3 * normal);
  if (input.kind != InputKind::kParameter) return normal;
  if (meta.rank() < 2) return 1 + 0.2 * normal;
  const double width =
      static_cast<double>(meta.numel()) /
      static_cast<double>(std::max<std::int64_t>(meta.size(0), 1));
  return normal / std::sqrt(std::max(width, 1.0));
}

Result<LocalTensor> drawn(const ProgramInput& input, const TensorMeta& meta,
                          const InputDomain& domain, const InputDraw& draw,
                          const VerifyOptions& options) {
  const DType dtype = run_dtype(meta.dtype(), !options.own_dtypes);
  const auto count = static_cast<std::size_t>(meta.numel());
  std::vector<double> floats;
  std::vector<std::int64_t> integers;
  for (std::uint64_t e = 0; e < count; ++e) {
    switch (input.kind) {
      case InputKind::kSeed:
        integers.push_back(static_cast<std::int64_t>(options.seed));
        break;
      case InputKind::kOptimizerState:
        floats.push_back(0);
        break;
      case InputKind::kOptimizerStep:
        floats.push_back(1);
        break;
      case InputKind::kLearningRate:
        floats.push_back(1e-3);
        break;
      default:
        if (dtype == DType::kBool) {
          integers.push_back(domain.nonzero || draw.uniform(e, 0) < 0.75 ? 1
                                                                         : 0);
        } else if (is_integral(dtype)) {
          integers.push_back(integer_of(domain, draw, e));
        } else {
          floats.push_back(float_of(input, meta, domain, draw.normal(e)));
        }
    }
  }
  return verification::as_local(
      integers.empty() ? reference::tensor_of(meta.shape(), dtype, floats)
                       : reference::tensor_of(meta.shape(), dtype, integers));
}

// Returns the domains by name. Inputs that the graph does not have get no
// domain.
std::unordered_map<std::string, InputDomain> domains_by_name(
    const Graph& graph, const OpLibrary& library) {
  const std::vector<InputDomain> domains =
      verification::input_domains(graph, library);
  std::unordered_map<std::string, InputDomain> out;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    out.emplace(graph.value(graph.inputs()[i].value).display_name(),
                domains[i]);
  }
  return out;
}

Result<std::vector<LocalTensor>> drawn_inputs(
    const SpmdProgram& program,
    const std::unordered_map<std::string, InputDomain>& domains,
    const VerifyOptions& options) {
  std::vector<LocalTensor> out;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const ProgramInput& input = program.inputs[i];
    const ProgramValue& value = program.value(input.value);
    const auto domain = domains.find(value.name);
    SP_ASSIGN(
        LocalTensor tensor,
        drawn(
            input, value.meta,
            domain == domains.end() ? InputDomain{.below = 1} : domain->second,
            InputDraw(options.seed, static_cast<std::uint32_t>(i)), options));
    out.push_back(std::move(tensor));
  }
  return out;
}

Result<void> run_unsharded(const SpmdProgram& program, Expected::Body& body,
                           std::vector<LocalTensor> inputs) {
  ProgramRunOptions options;
  options.library = body.library;
  options.widen = !body.options.own_dtypes;
  options.evaluate = verification::reference_evaluator(body.library);
  options.made = [&](ProgramValueId id, std::size_t,
                     const LocalTensor& held) -> Result<void> {
    body.values[program.value(id).name] = verification::as_local(
        reference::contiguous(verification::as_reference(held)));
    return {};
  };
  auto ends = run_ranks(1, {}, [&](Communicator& rank) -> Result<void> {
    SP_CHECK(run(program, rank, inputs, options));
    return {};
  });
  return std::move(ends.front());
}

Result<std::shared_ptr<Expected::Body>> run_once(
    const Graph& graph, std::shared_ptr<const OpLibrary> library,
    Optimizer optimizer, const VerifyOptions& options) {
  SP_CHECK(verification::check_taken(graph, *library));
  SP_ASSIGN(const SpmdProgram program,
            lower_unsharded(graph, *library, optimizer));
  SP_CHECK(check_fits(verification::bytes_of(program, options.own_dtypes),
                      "the values of the unsharded program"));
  SP_CHECK(
      verification::check_declared(program, *library, options.own_dtypes,
                                   verification::CollectiveCalls::kRefused));
  auto body = std::make_shared<Expected::Body>();
  body->library = std::move(library);
  body->options = options;
  const auto domains = domains_by_name(graph, *body->library);
  SP_ASSIGN(std::vector<LocalTensor> inputs,
            drawn_inputs(program, domains, options));
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const std::string& name = program.value(program.inputs[i].value).name;
    body->inputs[name] = inputs[i];
    body->values[name] = inputs[i];
  }
  SP_CHECK(run_unsharded(program, *body, std::move(inputs)));
  // Some operators run in one precision only. Bounds are wider then.
  VerifyOptions other = options;
  other.own_dtypes = !options.own_dtypes;
  if (verification::check_declared(program, *body->library, other.own_dtypes,
                                   verification::CollectiveCalls::kRefused)) {
    SP_ASSIGN(std::vector<LocalTensor> again,
              drawn_inputs(program, domains, other));
    body->is_measured =
        verification::measure_noise(program, std::move(again), *body)
            .has_value();
  }
  return body;
}

}  // namespace

Expected::Expected(std::shared_ptr<const Body> body) : body_(std::move(body)) {}

Result<Expected> Expected::create(const Graph& graph,
                                  std::shared_ptr<const OpLibrary> library,
                                  Optimizer optimizer,
                                  const VerifyOptions& options) {
  return guarded([&]() -> Result<Expected> {
    SP_ASSIGN(auto body,
              run_once(graph, std::move(library), optimizer, options));
    return Expected(std::move(body));
  });
}

}  // namespace shardprop

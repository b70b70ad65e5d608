#include "strategy/program_kernels.h"

#include "base/index.h"
#include "base/saturating.h"
#include "strategy/derived_program.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

namespace shardprop {
namespace {

constexpr int kNoKernel = -1;

std::vector<LocalRef> operands_of(const LocalStep& step) {
  if (const auto* collective = std::get_if<LocalCollective>(&step)) {
    return {collective->value};
  }
  std::vector<LocalRef> out;
  for (const auto& [name, value] : std::get<LocalOp>(step).args) {
    if (const auto* ref = std::get_if<LocalRef>(&value)) {
      out.push_back(*ref);
    } else if (const auto* list = std::get_if<std::vector<LocalRef>>(&value)) {
      std::copy_if(list->begin(), list->end(), std::back_inserter(out),
                   [](LocalRef r) { return r.index != TensorArg::kNone; });
    }
  }
  return out;
}

class Kernels {
 public:
  Kernels(const LocalContext& context, StepFusion fusion)
      : context_(context),
        fusion_(fusion),
        derived_(derived_program(context)),
        kernel_of_(derived_.program.steps.size(), kNoKernel),
        stored_(derived_.program.steps.size(), false) {}

  std::vector<double> run() {
    number();
    bytes_.resize(static_cast<std::size_t>(count_));
    if (context_.space.program->per_rank) return bytes_;
    for (const LocalRef output : derived_.program.outputs) {
      if (const LocalRef made = shown_by(output); made.step >= 0) {
        stored_[index(made.step)] = true;
      }
    }
    for (std::size_t s = 0; s < kernel_of_.size(); ++s) {
      const bool exchanges =
          std::holds_alternative<LocalCollective>(derived_.program.steps[s]);
      if (kernel_of_[s] == kNoKernel && !exchanges) continue;
      for (const LocalRef operand : operands_of(derived_.program.steps[s])) {
        if (exchanges) {
          store(shown_by(operand));
        } else {
          read(operand, kernel_of_[s], kWhole);
        }
      }
    }
    for (const auto& [what, bytes] : reads_) {
      bytes_[index(what.first)] += bytes;
    }
    for (std::size_t s = 0; s < kernel_of_.size(); ++s) {
      if (stored_[s] && kernel_of_[s] != kNoKernel) {
        bytes_[index(kernel_of_[s])] +=
            static_cast<double>(derived_.work[s].bytes);
      }
    }
    return bytes_;
  }

 private:
  static constexpr double kWhole = 1e300;

  const StepWork& work(LocalRef ref) const {
    return derived_.work[index(ref.step)];
  }

  // A view does not start a kernel, and a collective ends one.
  void number() {
    bool open = false;
    for (std::size_t s = 0; s < kernel_of_.size(); ++s) {
      if (std::holds_alternative<LocalCollective>(derived_.program.steps[s])) {
        open = false;
      } else if (derived_.work[s].kind != StepWork::Kind::kView) {
        if (!open) ++count_;
        kernel_of_[s] = count_ - 1;
        open = fusion_ == StepFusion::kBetweenCollectives;
      }
    }
  }

  // Returns the value that a view, or a chain of views, shows.
  LocalRef shown_by(LocalRef ref) const {
    while (ref.step >= 0 && work(ref).kind == StepWork::Kind::kView) {
      ref = operands_of(derived_.program.steps[index(ref.step)])[0];
    }
    return ref;
  }

  void store(LocalRef made) {
    if (made.step >= 0) stored_[index(made.step)] = true;
  }

  double size_of(LocalRef ref) const {
    if (ref.step < 0) {
      return static_cast<double>(
          context_.max_local_input_elements(ref.index) *
          item_size(context_.op.inputs[index(ref.index)].dtype()));
    }
    const auto& step = derived_.program.steps[index(ref.step)];
    if (const auto* collective = std::get_if<LocalCollective>(&step)) {
      return static_cast<double>(collective->bytes);
    }
    return static_cast<double>(work(ref).bytes);
  }

  // Records that a kernel reads a value; views show at most `most` bytes of it.
  void read(LocalRef ref, int kernel, double most) {
    most = std::min(most, size_of(ref));
    if (ref.step >= 0 && work(ref).kind == StepWork::Kind::kView) {
      return read(shown_by(ref), kernel, most);
    }
    const int maker = ref.step < 0 ? kNoKernel : kernel_of_[index(ref.step)];
    if (maker != kNoKernel && maker == kernel) return;
    if (maker != kNoKernel) {
      const auto s = index(ref.step);
      if (fusion_ == StepFusion::kBetweenCollectives && !stored_[s] &&
          work(ref).kind == StepWork::Kind::kByPoint) {
        for (const LocalRef of : operands_of(derived_.program.steps[s])) {
          read(of, kernel, kWhole);
        }
        return;
      }
      stored_[s] = true;
    }
    double& known = reads_[{kernel, {ref.step, ref.index}}];
    known = std::max(known, most);
  }

  const LocalContext& context_;
  StepFusion fusion_;
  DerivedProgram derived_;
  std::vector<int> kernel_of_;  // by step
  std::vector<bool> stored_;    // by step: whether its result is written
  int count_ = 0;
  // The bytes that a kernel reads of a value.
  std::map<std::pair<int, std::pair<std::int32_t, std::int32_t>>, double>
      reads_;
  std::vector<double> bytes_;
};

}  // namespace

std::vector<double> program_kernels(const LocalContext& context,
                                    StepFusion fusion) {
  return Kernels(context, fusion).run();
}

std::int64_t kernels_nanoseconds(const Topology& topology,
                                 const std::vector<double>& bytes) {
  std::int64_t sum = 0;
  for (const double of_one : bytes) {
    const std::int64_t traffic = traffic_nanoseconds(topology, of_one);
    sum = sat_add(sum, std::max(launch_nanoseconds(topology),
                                sat_add(ramp_nanoseconds(topology), traffic)));
  }
  return sum;
}

}  // namespace shardprop

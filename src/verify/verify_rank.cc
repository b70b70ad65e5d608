#include "base/try.h"
#include "verify/compare.h"
#include "verify/expected.h"
#include "verify/host_values.h"

#include <shardprop/execute/program_run.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/program/rank_program.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace shardprop {
namespace {

using verification::Difference;

// Returns "S(0),R -> S(0)". If the mesh has several dims, blanks separate the
// operands.
std::string strategy_of(const SpmdProgram& program, const ProgramNode& node) {
  const auto list = [&](const std::vector<ProgramValueId>& ids) {
    std::string out;
    for (const ProgramValueId id : ids) {
      if (!id.valid()) continue;
      const std::string layout = to_string(program.value(id).layout);
      out += (out.empty()               ? ""
              : program.mesh.ndim() > 1 ? " "
                                        : ",") +
             (program.mesh.ndim() > 1 ? "[" + layout + "]" : layout);
    }
    return out;
  };
  return list(node.inputs) + " -> " + list(node.outputs);
}

class RankCheck {
 public:
  RankCheck(const SpmdProgram& program, const Expected::Body& expected,
            Communicator& communicator)
      : program_(program),
        expected_(expected),
        communicator_(communicator),
        copied_(program.values.size()) {
    for (const ProgramCopy& copy : program.copies) {
      if (copy.value.valid()) copied_[copy.value.index()] = copy.from;
    }
  }

  RankFindings run() {
    ProgramRunOptions options;
    options.library = expected_.library;
    options.widen = !expected_.options.own_dtypes;
    options.evaluate = verification::reference_evaluator(expected_.library);
    options.made = [this](ProgramValueId id, std::size_t step,
                          const LocalTensor& held) {
      return check(id, step, held);
    };
    ProgramRunReport report;
    auto inputs = parts_of_inputs();
    auto outputs = inputs ? shardprop::run(program_, communicator_, *inputs,
                                           options, &report)
                          : fail(std::move(inputs).error());
    if (!outputs) {
      note(outputs.error());
    } else if (auto ended = check_outputs(*outputs); !ended) {
      note(ended.error());
    }
    findings_.step_payload_bytes = std::move(report.step_payload_bytes);
    findings_.step_payload_bytes.resize(program_.steps.size(), 0);
    findings_.step_calls = std::move(report.step_calls);
    findings_.step_calls.resize(program_.steps.size(), 0);
    findings_.peak_bytes = report.peak_bytes;
    findings_.output_errors.resize(program_.outputs.size(), 0);
    return std::move(findings_);
  }

 private:
  Result<std::vector<LocalTensor>> parts_of_inputs() const {
    const auto at = program_.mesh.coordinate_of(communicator_.rank());
    if (!at)
      return fail(ErrorCode::kMeshCoordinate, "a rank is not on the mesh");
    std::vector<LocalTensor> out;
    for (const ProgramInput& input : program_.inputs) {
      const ProgramValue& value = program_.value(input.value);
      const auto whole = expected_.inputs.find(value.name);
      if (whole == expected_.inputs.end() ||
          whole->second.sizes() != value.meta.shape()) {
        return fail(ErrorCode::kProgramValue,
                    "the unsharded program has no input `" + value.name +
                        "` of that shape");
      }
      SP_ASSIGN(LocalTensor part,
                verification::part_of(whole->second,
                                      local_region(value.layout, program_.mesh,
                                                   value.meta.shape(), *at)));
      out.push_back(std::move(part));
    }
    return out;
  }

  const std::string& unsharded_name(ProgramValueId id) const {
    const std::string& copied = copied_[id.index()];
    return copied.empty() ? program_.value(id).name : copied;
  }

  // Returns the unsharded value of this one, in any layout. Returns null
  // if the unsharded program has no such value.
  const LocalTensor* whole_of(ProgramValueId id) const {
    const auto found = expected_.values.find(unsharded_name(id));
    if (found == expected_.values.end()) return nullptr;
    const bool fits = found->second.sizes() == program_.value(id).meta.shape();
    return fits ? &found->second : nullptr;
  }

  Result<std::optional<Difference>> difference(ProgramValueId id,
                                               const LocalTensor& held) {
    const LocalTensor* whole = whole_of(id);
    if (whole == nullptr) return std::nullopt;
    ++findings_.compared;
    SP_ASSIGN(const Difference found,
              verification::compare(
                  held, *whole, program_.value(id).layout, program_.mesh,
                  communicator_,
                  expected_.bound(unsharded_name(id), whole->dtype())));
    return found;
  }

  Result<void> check(ProgramValueId id, std::size_t step,
                     const LocalTensor& held) {
    SP_ASSIGN(const auto found, difference(id, held));
    if (found && found->beyond) note(id, step, *found);
    return {};
  }

  Result<void> check_outputs(const std::vector<LocalTensor>& outputs) {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const ProgramValueId id = program_.outputs[o].value;
      SP_ASSIGN(const auto found, difference(id, outputs[o]));
      findings_.output_errors.push_back(found ? found->error : 0);
      if (found && found->beyond) note(id, program_.steps.size(), *found);
    }
    return {};
  }

  VerifyMismatch mismatch_at(std::size_t step) const {
    VerifyMismatch out;
    out.rank = communicator_.rank();
    const std::size_t node = step < program_.steps.size()
                                 ? program_.steps[step].node
                                 : program_.nodes.size();
    if (node < program_.nodes.size()) {
      out.node = program_.nodes[node].name;
      out.op = program_.nodes[node].op;
      out.strategy = strategy_of(program_, program_.nodes[node]);
    }
    return out;
  }

  void note(ProgramValueId id, std::size_t step, const Difference& found) {
    if (findings_.mismatch) return;
    findings_.mismatch_step = step;
    VerifyMismatch out = mismatch_at(step);
    const ProgramValue& value = program_.value(id);
    out.value = value.name;
    if (!copied_[id.index()].empty()) {
      out.strategy =
          "copy of " + copied_[id.index()] + " as " + to_string(value.layout);
    }
    out.element = verification::place_in(found.element, value.meta.shape());
    out.expected = found.expected;
    out.found = found.found;
    findings_.mismatch = std::move(out);
  }

  // Records the error that ended the run. An error that another rank caused
  // adds no information.
  void note(const Error& error) {
    if (error.code == ErrorCode::kOutOfMemory) findings_.refused = error;
    if (findings_.mismatch) return;
    const bool follows = error.code == ErrorCode::kRankFailed ||
                         error.code == ErrorCode::kTimeout;
    findings_.mismatch_step =
        follows ? std::numeric_limits<std::size_t>::max() : 0;
    VerifyMismatch out;
    out.rank = communicator_.rank();
    out.error = error.message;
    // Returns the place that the run reports: "mm_1, rank 3".
    out.node = error.location.substr(0, error.location.find(", rank "));
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      const std::size_t node = program_.steps[s].node;
      if (node >= program_.nodes.size() ||
          program_.nodes[node].name != out.node) {
        continue;
      }
      out.op = program_.nodes[node].op;
      out.strategy = strategy_of(program_, program_.nodes[node]);
      if (!follows) findings_.mismatch_step = s;
      break;
    }
    findings_.mismatch = std::move(out);
  }

  const SpmdProgram& program_;
  const Expected::Body& expected_;
  Communicator& communicator_;
  std::vector<std::string> copied_;  // by value: what it is a copy of
  RankFindings findings_;
};

}  // namespace

RankFindings verify_rank(const SpmdProgram& program, const Expected& expected,
                         Communicator& communicator) {
  return RankCheck(program, expected.body(), communicator).run();
}

}  // namespace shardprop

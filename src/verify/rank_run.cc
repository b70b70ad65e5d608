#include "verify/rank_run.h"

#include "base/index.h"
#include "base/memory_at_hand.h"
#include "base/saturating.h"
#include "base/try.h"
#include "verify/check_program.h"
#include "verify/host_values.h"
#include "verify/rank_evaluator.h"

#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/program_run.h>
#include <shardprop/lower/lower.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/placement/tensor_spec.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace shardprop::verification {
namespace {

// A rank's program as the executor runs it.
struct RunnableProgram {
  SpmdProgram program;
  std::vector<const ShardedTensor*> inputs;  // by program input
  MatchedValues matched;
};

Result<std::vector<const ShardedTensor*>> layouts_of_inputs(
    const RankPrograms& programs, const RankProgram& program,
    const SpmdProgram& runnable) {
  std::unordered_map<std::string, const ShardedTensor*> stated;
  for (const ShardedTensor& tensor : programs.inputs) {
    const auto id = program.graph->find_value(tensor.argument);
    if (id) stated[program.graph->value(*id).display_name()] = &tensor;
  }
  std::vector<const ShardedTensor*> out;
  for (const ProgramInput& input : runnable.inputs) {
    const std::string& name = runnable.value(input.value).name;
    const auto found = stated.find(name);
    if (found == stated.end() || !found->second->layout) {
      return fail(
          Error{ErrorCode::kFieldMissing,
                "shardings.json has no layout of the input `" + name + "`",
                program.file,
                {},
                "add it to `inputs` with its `name` in the graph and "
                "its `placements`"});
    }
    if (found->second->layout->has_partial()) {
      return fail(Error{ErrorCode::kInvalidArgument,
                        "the input `" + name + "` has terms: its layout is " +
                            to_string(*found->second->layout),
                        program.file,
                        {},
                        "give inputs that are replicated or sharded"});
    }
    out.push_back(found->second);
  }
  return out;
}

Result<void> check_no_draws(const RankProgram& program,
                            const SpmdProgram& runnable) {
  for (const ProgramInput& input : runnable.inputs) {
    if (input.kind != InputKind::kSeed) continue;
    return fail(Error{ErrorCode::kNoReference,
                      "the program draws random numbers on each rank, which "
                      "have no counterpart on one device",
                      program.file,
                      {},
                      "export it without dropout (model.eval()), or draw the "
                      "numbers outside and pass them as inputs"});
  }
  return {};
}

Result<RunnableProgram> runnable(const RankPrograms& programs,
                                 const RankProgram& program,
                                 const SpmdProgram& model,
                                 const VerifyOptions& options) {
  const auto make = [&]() -> Result<RunnableProgram> {
    RunnableProgram out;
    SP_CHECK(check_taken(*program.graph, *programs.library));
    SP_ASSIGN(out.program, lower_unsharded(*program.graph, *programs.library));
    SP_CHECK(check_declared(out.program, *programs.library, options.own_dtypes,
                            CollectiveCalls::kAllowed));
    return out;
  };
  auto out = make();
  if (!out) return fail(std::move(out).error().at(program.file));
  SP_CHECK(check_no_draws(program, out->program));
  SP_ASSIGN(out->inputs, layouts_of_inputs(programs, program, out->program));
  out->matched = matched_values(program, model);
  return out;
}

// The run of one rank.
class OneRank {
 public:
  OneRank(const RankPrograms& programs, const RunnableProgram& runnable,
          const Expected::Body& expected, Communicator& communicator)
      : programs_(programs),
        runnable_(runnable),
        expected_(expected),
        communicator_(communicator) {}

  Result<RankRun> run(const RankGroups& groups) {
    SP_ASSIGN(const std::vector<LocalTensor> inputs, parts_of_inputs());
    // The program is that of a mesh with this rank alone.
    SpmdProgram program = runnable_.program;
    const MeshDim dim{"rank", 1};
    SP_ASSIGN(program.mesh,
              DeviceMesh::create({&dim, 1}, communicator_.rank()));
    RankEvaluator evaluator(groups, programs_.library, communicator_);
    RankRun out;
    ProgramRunOptions options;
    options.library = programs_.library;
    options.widen = !expected_.options.own_dtypes;
    options.evaluate = [&](const OpSchema& op,
                           std::span<const LocalTensor> operands) {
      return evaluator(op, operands);
    };
    options.made = [&](ProgramValueId id, std::size_t,
                       const LocalTensor& held) -> Result<void> {
      const auto found = runnable_.matched.names.find(program.value(id).name);
      if (found != runnable_.matched.names.end()) {
        out.values[found->second] = held;
      }
      return {};
    };
    SP_ASSIGN(out.outputs,
              shardprop::run(program, communicator_, inputs, options));
    SP_CHECK(evaluator.finish());
    return out;
  }

 private:
  Result<std::vector<LocalTensor>> parts_of_inputs() const {
    std::vector<LocalTensor> out;
    for (std::size_t i = 0; i < runnable_.inputs.size(); ++i) {
      const ProgramValue& own =
          runnable_.program.value(runnable_.program.inputs[i].value);
      SP_ASSIGN(LocalTensor part, part_of_input(*runnable_.inputs[i], own));
      out.push_back(std::move(part));
    }
    return out;
  }

  Result<LocalTensor> part_of_input(const ShardedTensor& stated,
                                    const ProgramValue& own) const {
    const auto whole = expected_.inputs.find(stated.name);
    if (whole == expected_.inputs.end()) {
      return fail(
          Error{ErrorCode::kDanglingName,
                "the single-device graph has no input `" + stated.name + "`",
                "shardings.json: $.inputs",
                {},
                "give the `name` that the input has in the graph"});
    }
    const Layout& layout = *stated.layout;
    const Dims& sizes = whole->second.sizes();
    SP_ASSIGN(const TensorMeta meta,
              TensorMeta::contiguous(sizes, whole->second.dtype()));
    if (auto fits = check_layout(layout, programs_.mesh, meta); !fits) {
      return fail(Error(fits.error())
                      .at("shardings.json: input `" + stated.name + "`"));
    }
    SP_ASSIGN(
        LocalTensor part,
        verification::part_of(
            whole->second,
            local_region(layout, programs_.mesh, sizes,
                         *programs_.mesh.coordinate_of(communicator_.rank()))));
    const DType dtype =
        run_dtype(own.meta.dtype(), !expected_.options.own_dtypes);
    const bool has_dtype = part.dtype() == dtype;
    if (part.sizes() == own.meta.shape() && has_dtype) return part;
    SP_ASSIGN(const TensorMeta given,
              TensorMeta::contiguous(
                  part.sizes(), has_dtype ? own.meta.dtype() : part.dtype()));
    return fail(Error{
        ErrorCode::kLocalTensor,
        "rank " + std::to_string(communicator_.rank()) + " takes `" + own.name +
            "` as " + to_string(own.meta) + ", and its layout gives " +
            to_string(given),
        "shardings.json: input `" + stated.name + "`",
        {"layout: " + to_string(layout) + " on " + to_string(programs_.mesh)},
        "give the layout for which the program was made"});
  }

  const RankPrograms& programs_;
  const RunnableProgram& runnable_;
  const Expected::Body& expected_;
  Communicator& communicator_;
};

// An error that another rank caused adds no information.
Result<void> first_error(const std::vector<Result<void>>& ends) {
  const Error* first = nullptr;
  for (const Result<void>& end : ends) {
    if (end) continue;
    const bool follows = end.error().code == ErrorCode::kRankFailed;
    if (!follows) return fail(end.error());
    if (first == nullptr) first = &end.error();
  }
  if (first != nullptr) return fail(*first);
  return {};
}

std::int64_t world_size(const DeviceMesh& mesh) {
  std::int64_t size = 0;
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    size = std::max(size, mesh.rank_at_index(i) + 1);
  }
  return size;
}

}  // namespace

Result<std::vector<RankRun>> run_rank_programs(const RankPrograms& programs,
                                               const RankGroups& groups,
                                               const SpmdProgram& model,
                                               const Expected::Body& expected) {
  std::unordered_map<const RankProgram*, RunnableProgram> made;
  std::int64_t bytes = 0;
  for (const auto& program : programs.ranks) {
    auto found = made.find(program.get());
    if (found == made.end()) {
      SP_ASSIGN(RunnableProgram one,
                runnable(programs, *program, model, expected.options));
      found = made.emplace(program.get(), std::move(one)).first;
    }
    bytes = sat_add(
        bytes, bytes_of(found->second.program, expected.options.own_dtypes));
  }
  SP_CHECK(check_fits(bytes, "the values of all ranks"));
  std::vector<RankRun> runs(programs.ranks.size());
  const auto ends = run_ranks(
      world_size(programs.mesh), {}, [&](Communicator& end) -> Result<void> {
        const auto at = programs.mesh.index_of(end.rank());
        if (!at) return {};
        const RunnableProgram& own = made.at(programs.ranks[index(*at)].get());
        SP_ASSIGN(runs[index(*at)],
                  OneRank(programs, own, expected, end).run(groups));
        return {};
      });
  SP_CHECK(first_error(ends));
  return runs;
}

}  // namespace shardprop::verification

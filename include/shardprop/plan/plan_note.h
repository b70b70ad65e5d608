// `PlanNote` is a fact about a plan that a user may not expect. Each kind of
// note is a type with its figures, and has a stable code:
//
//   SmallBatchNote{.batch = 4, .ranks = 8, .mesh_dim = "tp", .size = 2, ...}
//   has the code "small_batch"
//
// `note_in_words()` of report prints notes. Names of mesh dims are those of the
// plan's mesh.
#pragma once

#include <shardprop/base/error_code.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shardprop {

// A note of the graph (Graph::notes()), as text.
struct GraphNote {
  std::string text;
  friend bool operator==(const GraphNote&, const GraphNote&) = default;
};

// The batch is smaller than the number of ranks. The matmuls that have it run
// replicated over the mesh dim.
struct SmallBatchNote {
  std::int64_t batch = 0;
  std::int64_t ranks = 0;
  std::string mesh_dim;
  std::int64_t size = 0;              // of the mesh dim
  std::int64_t lost_nanoseconds = 0;  // compute beyond that of a sharded run
  friend bool operator==(const SmallBatchNote&,
                         const SmallBatchNote&) = default;
};

// The mesh dim does not divide the heads of attention, which runs replicated
// over it.
struct UnevenHeadsNote {
  std::vector<std::int64_t> heads;  // ascending
  std::string mesh_dim;
  std::int64_t size = 0;              // of the mesh dim
  std::int64_t lost_nanoseconds = 0;  // compute beyond that of a sharded run
  friend bool operator==(const UnevenHeadsNote&,
                         const UnevenHeadsNote&) = default;
};

// Layers of batch norm exchange their statistics, as synchronised batch norm
// does.
struct BatchNormNote {
  std::int64_t layers = 0;
  std::vector<std::string> mesh_dims;
  std::int64_t forward_nanoseconds = 0;
  std::int64_t backward_nanoseconds = 0;
  friend bool operator==(const BatchNormNote&, const BatchNormNote&) = default;
};

// Operators without a rule run replicated.
struct ReplicatedOpsNote {
  std::vector<std::string> ops;
  std::int64_t compute_nanoseconds = 0;
  std::int64_t communication_nanoseconds = 0;  // before them
  friend bool operator==(const ReplicatedOpsNote&,
                         const ReplicatedOpsNote&) = default;
};

// Parameters of equal layers have different layouts.
struct UnlikeLayersNote {
  // The extra cost of the best plan found in which they have the same layouts.
  std::int64_t alike_nanoseconds = 0;
  friend bool operator==(const UnlikeLayersNote&,
                         const UnlikeLayersNote&) = default;
};

// The memory limit is nearly reached by activations that eager execution keeps,
// but the times are those of a compiled program. Only plans of older files have
// this note.
struct EagerActivationsNote {
  friend bool operator==(const EagerActivationsNote&,
                         const EagerActivationsNote&) = default;
};

// A mesh dim has the name of a pipeline's stages, which are not planned.
struct PipelineDimNote {
  std::string mesh_dim;
  std::int64_t size = 0;
  friend bool operator==(const PipelineDimNote&,
                         const PipelineDimNote&) = default;
};

// The search went on without a part of the space.
struct LeftOutNote {
  std::string part;  // "the recipe fsdp=dp"
  ErrorCode code = ErrorCode::kOutOfMemory;
  std::string message;
  friend bool operator==(const LeftOutNote&, const LeftOutNote&) = default;
};

// A part of the search failed, and the plan is proven all the same.
struct FailedPartNote {
  ErrorCode code = ErrorCode::kOutOfMemory;
  std::string message;
  friend bool operator==(const FailedPartNote&,
                         const FailedPartNote&) = default;
};

// The search was to start from an earlier plan (RunControl::start_from).
struct EarlierPlanNote {
  std::string graph;  // name of the plan's graph
  bool has_same_mesh_ndim = true;
  // Operators and inputs of this graph. A matched one has the name and the kind
  // of an operator or input in the plan.
  std::int64_t operators = 0;
  std::int64_t matched_operators = 0;
  std::int64_t tensors = 0;
  std::int64_t matched_tensors = 0;
  bool led_to_plan = false;  // a plan with its layouts was found

  bool is_usable() const {
    return has_same_mesh_ndim && matched_operators + matched_tensors > 0;
  }
  friend bool operator==(const EarlierPlanNote&,
                         const EarlierPlanNote&) = default;
};

// The rule of recomputation was chosen by cost, because the memory limit excludes
// a cheaper plan in which nothing runs again.
struct RecomputeRulesNote {
  struct Tried {
    std::string rule;              // "full:20"
    std::int64_t nanoseconds = 0;  // cost of its plan; 0 without a plan
    // The least bytes a rank, if no plan fits; 0 if that is not known.
    std::int64_t needed_bytes = 0;
    friend bool operator==(const Tried&, const Tried&) = default;
  };
  std::vector<Tried> tried;
  friend bool operator==(const RecomputeRulesNote&,
                         const RecomputeRulesNote&) = default;
};

// A note of a file of schema 1 or 2, which has only a text.
struct ReportedNote {
  std::string text;
  friend bool operator==(const ReportedNote&, const ReportedNote&) = default;
};

using PlanNote =
    std::variant<GraphNote, SmallBatchNote, UnevenHeadsNote, BatchNormNote,
                 ReplicatedOpsNote, UnlikeLayersNote, EagerActivationsNote,
                 PipelineDimNote, LeftOutNote, FailedPartNote, EarlierPlanNote,
                 RecomputeRulesNote, ReportedNote>;

// Returns the code of the note: "graph", "small_batch", "uneven_heads",
// "batch_norm", "replicated_ops", "unlike_layers", "eager_activations",
// "pipeline_dim", "left_out", "failed_part", "earlier_plan", "recompute_rules",
// "reported".
std::string_view code_of(const PlanNote& note);

}  // namespace shardprop

// This header expresses a plan in PyTorch's notation as far as possible: styles
// of modules (parallelize_module, Hugging Face's tp_plan), and fully_shard.
//
//   q_proj.weight f32[64,32] R,S(0) on dp=2,tp=2
//     layers.*.q_proj   colwise          over tp
//
// These styles describe parameters on one mesh dim, while a plan assigns
// layouts to all values on all mesh dims. Layouts that are not expressible are
// listed. `pins` are the layouts of parameters that the styles define. The cost
// of a plan with these pins, compared with the first plan, is a lower bound on
// the cost of leaving the rest to PyTorch.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/pin.h>
#include <shardprop/plan/plan.h>
#include <shardprop/report/unsaid_layout.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {

// `ModuleStyle` is the style of a module in the terms of Hugging Face's
// tp_plan: colwise, rowwise, embedding_colwise, embedding_rowwise. For
// fully_shard it is "shard". Shards pass from colwise to rowwise layers only if
// all adjacent layers are sharded in this way. Other layers read and produce
// full activations: colwise_gather_output, rowwise_split_input. A linear layer
// or an embedding whose weight is read in full is "replicate".
struct ModuleStyle {
  std::string module;
  std::string style;
  friend bool operator==(const ModuleStyle&, const ModuleStyle&) = default;
};

// `TorchStyles` are the styles of a plan's modules and the layouts without one.
struct TorchStyles {
  std::int32_t mesh_dim = 0;
  std::vector<ModuleStyle> modules;
  // The styles with equal layers merged: layers.*.q_proj. For fully_shard they
  // are in call order. A layer is one entry if all its parameters are sharded.
  // The root, "", is last if all parameters are sharded.
  std::vector<ModuleStyle> folded;
  std::vector<UnsaidLayout> unsaid;
  std::vector<Pin> pins;  // for every parameter
  // Sentences on names that Hugging Face does not match.
  std::vector<std::string> notes;
};

// Uses the mesh dim named tp, or the last one. A linear layer is colwise if its
// matmul reads the weight sharded along the outputs, and rowwise if it is
// sharded along the inputs. An embedding that is read in shards of rows is
// rowwise, in shards of columns colwise. A weight that is only stored in shards
// has no style.
TorchStyles tensor_parallel_styles(const Plan& plan, const Graph& graph,
                                   const OpLibrary& library);

// Uses the mesh dim named dp or fsdp, or the first one. It lists modules whose
// parameters are all stored as shards of dim 0 over it between steps;
// fully_shard gathers them before use.
TorchStyles fully_shard_styles(const Plan& plan);

}  // namespace shardprop

// The nearest that PyTorch's own words for layouts can say of a plan: styles of
// modules (parallelize_module, Hugging Face's tp_plan), and fully_shard.
//
//   q_proj.weight f32[64,32] R,S(0) on dp=2,tp=2
//     layers.*.q_proj   colwise          over tp
//
// Those words know parameters and one mesh dim; a plan lays out every value on
// all of them. What is left unsaid is listed, and `pins` says where the
// parameters lie as far as the words go: a plan with these pins, priced beside
// the first, says what leaving the rest to PyTorch costs at least.
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

// ModuleStyle is the style of a module, as Hugging Face's tp_plan calls it:
// colwise, rowwise, embedding_colwise, embedding_rowwise; for fully_shard:
// "shard". Shards pass from colwise layers to rowwise ones only if all layers that
// meet there are sharded so. Other layers read and make full activations:
// colwise_gather_output, rowwise_split_input.
struct ModuleStyle {
  std::string module;
  std::string style;
  friend bool operator==(const ModuleStyle&, const ModuleStyle&) = default;
};

struct TorchStyles {
  std::int32_t mesh_dim = 0;
  std::vector<ModuleStyle> modules;
  // The same with layers that are alike as one: layers.*.q_proj. For
  // fully_shard in the order in which it is called: layers as a whole where all
  // their parameters are sharded, and the root, "", last where all of them are.
  std::vector<ModuleStyle> folded;
  std::vector<UnsaidLayout> unsaid;
  std::vector<Pin> pins;  // of every parameter
};

// The mesh dim is the one named tp, else the last. A linear layer whose matmul
// reads the weight in shards over it along the outputs is colwise, along the
// inputs rowwise. An embedding that is read in shards of rows is rowwise, of
// columns colwise. A weight that is only stored in shards has no style.
TorchStyles tensor_parallel_styles(const Plan& plan, const Graph& graph,
                                   const OpLibrary& library);

// The mesh dim is the one named dp or fsdp, else the first. Modules all of
// whose parameters lie sharded on dim 0 over it between steps; it gathers them
// before they are used.
TorchStyles fully_shard_styles(const Plan& plan);

}  // namespace shardprop

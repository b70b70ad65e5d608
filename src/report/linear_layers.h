#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace shardprop {

// `LinearLayers` is the set of linear layers of a plan. It has the layouts in
// which their matmuls read their weights. It also has the pairs of layers in
// which one reads the other's output without a linear layer between them.
class LinearLayers {
 public:
  LinearLayers(const Plan& plan, std::int32_t mesh_dim, const Graph& graph,
               const OpLibrary& library);

  // The style of a parameter, and the dim that its use shards. Empty if no
  // matmul or lookup reads it sharded over the mesh dim.
  struct Style {
    std::string name;
    int dim = 0;
  };
  std::optional<Style> style_of(const std::string& parameter) const;

  // Returns whether the parameter is the weight of a module that is one matmul
  // or one lookup.
  bool is_weight(const std::string& parameter) const;

  // The layout of the first result that is computed from the parameter, such as
  // the output of a norm. Null if there is none.
  const Layout* layout_after(const std::string& parameter) const;

 private:
  struct Layer {
    std::optional<NodeId> matmul;
    bool is_read_alone = false;  // by a matmul or a lookup
    std::string style;           // empty: read whole
    int dim = 0;
    // True if the layer exchanges shards with its neighbours: the layers whose
    // output it reads, or the layers that read its output.
    bool is_open = false;
    bool moves_between = false;     // a path to it redistributes
    std::set<std::string> feeders;  // of parameters
  };

  const PlannedNode* planned_node(const Node& node) const;

  // Finds the values that do not depend on a user input.
  void derive_from_inputs();

  void add(const PlannedValue& value);

  // Walks back from a value to the matmuls of other layers.
  std::set<std::string> feeders_of(ValueId from, bool& moves) const;

  // True if an operand depends on the user's inputs, is produced sharded or
  // partial over the mesh dim, and is read in another layout.
  bool redistributes(const Node& node, std::size_t operand) const;

  // A column-wise layer may leave its output sharded for row-wise layers only
  // if all layers that these activations connect are sharded accordingly.
  void open_pairs();

  const Graph& graph_;
  const OpLibrary& library_;
  std::int32_t mesh_dim_;
  std::map<std::string_view, const PlannedNode*> nodes_;
  std::set<ValueId> derived_;
  std::map<std::string, Layer> layers_;     // by parameter
  std::map<NodeId, std::string> layer_at_;  // by matmul
};

}  // namespace shardprop

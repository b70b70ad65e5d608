// ShardingSeeds finds the factor shardings, besides mesh order, that a graph
// demands. A plan uses no others.
//
// A demand is a layout of a value. It comes from
//   1. a pin of the value;
//   2. a view that merges two dims into dim 0, if some mesh dims cannot shard
//      the major one. They shard the minor one, so the merged dim is strided or
//      sharded in another order;
//   3. a split of the columns of a matmul into equal pieces, slices that are
//      these pieces, or a cat of equal pieces that a matmul reads. Each piece is sharded, as heads of queries,
//      keys and values are.
// A demand is followed through operators: the layout of one operand implies
// shardings of the factors, and these imply layouts of the other operands.
//
//   x f32[2,8,h] on cp=4: 4 ranks do not divide a batch of 2
//   view f32[16,h]     SS(0,2)  demanded by the view
//   mm -> f32[16,n]    factor m may have SS(0,2)
//   view f32[2,8,n]    S(1)     in mesh order, not followed
#pragma once

#include "graph/analysis/dim_trace.h"
#include "graph/analysis/op_application.h"
#include "strategy/carried_factors.h"

#include <shardprop/graph/graph.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/demanded_shardings.h>
#include <shardprop/strategy/op_strategy.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardprop {

// OfferedShardings are shardings of an operator's factors besides mesh order,
// in ascending order. Each factor may have any of its shardings.
using OfferedShardings = std::vector<std::pair<FactorId, FactorSharding>>;

// OperatorDemands are the shardings that a graph demands of one operator.
struct OperatorDemands {
  OfferedShardings offered;
  // The equal pieces of a split or a cat may be sharded.
  bool shards_pieces = false;
  friend bool operator==(const OperatorDemands&,
                         const OperatorDemands&) = default;
};

// Returns the factor of the equal pieces of a dim that is split or
// concatenated. It is empty for other dims, and for pieces of different sizes.
std::optional<FactorId> piece_factor(const IndexSpace& space,
                                     const DimFactors& dim);

class ShardingSeeds {
 public:
  // The arguments must outlive the object.
  ShardingSeeds(const Graph& graph, const DeviceMesh& mesh,
                const OpLibrary& library)
      : graph_(graph),
        mesh_(mesh),
        library_(library),
        demanded_(graph.values().size()) {}

  // Demands that operators produce and read the value in this layout. It is
  // followed even if it is in mesh order. Partials are ignored.
  void demand(ValueId value, const Layout& layout);
  // Demands a strategy of the node in which the operands have these layouts,
  // inputs first. Layouts in mesh order are not followed.
  void demand(const Node& node, std::span<const Layout> operands);
  // Adds the demands of the views.
  void demand_by_views();
  // Adds the demands of splits and cats: for each of `groups`, bit m says that
  // mesh dim m shards the pieces.
  void demand_by_pieces(std::span<const std::uint32_t> groups);
  // Offers the node the shardings that these layouts of its operands imply,
  // inputs first. This demands nothing.
  void offer(const Node& node, std::span<const Layout> operands);
  // Offers the views that lead from one value of a buffer to another one the
  // shardings that this layout of `from` implies. This demands nothing.
  void offer_views(ValueId from, ValueId to, const Layout& layout);
  // Follows all demands.
  void follow();

  // Returns the demanded shardings of the node. Most nodes have none.
  const OperatorDemands& of(NodeId node) const;
  // Returns the list of all of them, with the caps; empty if there are none.
  DemandedShardings list();

 private:
  // Application is an operator applied to certain arguments; `space` is empty
  // if it has no rule.
  struct Application {
    std::optional<IndexSpace> space;
    std::vector<Carried> carried;  // by factor
  };
  // Demand is a layout of a value; `in_mesh_order` says whether it is followed
  // even if it is in mesh order.
  struct Demand {
    ValueId value;
    LayoutId layout;
    bool in_mesh_order = false;
  };
  // Step holds the consequences of the layout of one operand. `operands` is
  // empty if no strategy has all these shardings.
  struct Step {
    OperatorDemands demands;
    std::vector<LayoutId> operands;  // inputs first
  };
  struct HashApplication {
    std::size_t operator()(const OpSchema* op) const {
      return hash_application(*op);
    }
  };
  struct SameApplication {
    bool operator()(const OpSchema* a, const OpSchema* b) const {
      return same_application(*a, *b);
    }
  };

  const Application& application(const Node& node);
  const Step& step(const Node& node, std::size_t operand, LayoutId layout);
  // Returns the part of the shardings that the factors accept.
  FactorShardings accepted(const Application& application,
                           const FactorShardings& shardings) const;
  OfferedShardings offered(const Application& application,
                           const FactorShardings& shardings) const;
  // Returns the layouts of the operands under these shardings; empty if no
  // strategy has the shardings.
  std::vector<LayoutId> operands(const Node& node, const IndexSpace& space,
                                 const FactorShardings& shardings);
  void demand_of_view(const Node& node, bool of_result);
  void demand_of_pieces(const Node& node, bool of_result,
                        std::span<const std::uint32_t> groups);
  // Returns whether the node is the first of the slices that together are all
  // equal pieces of a dim of its input.
  bool is_first_of_slices(const Node& node);
  // Returns whether the dim of the value consists of all columns of a matmul's
  // result, or is a view of them.
  bool is_produced_by_matmul(ValueId value, DimTrace at);
  // Returns whether a matmul reads the dim of the value, or a view of it, as one
  // of its factors.
  bool is_read_by_matmul(ValueId value, DimTrace at);
  void add(ValueId value, LayoutId layout, bool in_mesh_order);
  void follow(const Demand& demand, const Node& node, std::size_t operand);
  void offer(NodeId node, const OperatorDemands& demands);

  const Graph& graph_;
  const DeviceMesh& mesh_;
  const OpLibrary& library_;
  LayoutTable layouts_;
  std::unordered_map<const OpSchema*, Application, HashApplication,
                     SameApplication>
      applications_;
  std::map<std::tuple<const Application*, std::size_t, LayoutId>, Step> steps_;
  std::vector<Demand> demands_;                  // in order of discovery
  std::vector<std::vector<LayoutId>> demanded_;  // by value
  std::map<NodeId, OperatorDemands> offered_;
  // These are the demands that the space lacks because of the caps.
  std::set<std::pair<ValueId, LayoutId>> layouts_left_out_;
  std::set<std::tuple<NodeId, FactorId, FactorSharding>> shardings_left_out_;
};

}  // namespace shardprop

// BlockModel builds small models of repeated layers.
#pragma once

#include "graph/graph_fixture.h"

#include <string>
#include <vector>

namespace shardprop {

// BlockModel builds x -> layers -> head, with the gradients of all parameters.
// Each letter of the pattern is a layer: `d` is x + (x u)^2 v, `m` has a
// second branch, and `s` is another `d` whose dims differ.
class BlockModel {
 public:
  explicit BlockModel(bool trains) : trains_(trains) {}

  // With `reads_all`, an operator outside reads the results of all three layers.
  Graph build(const std::string& pattern, bool reads_all = false) {
    ValueId x = at_.input("tokens", "f32[64,8]");
    const ValueId shared = at_.input("shared", "f32[16]", InputKind::kBuffer);
    const ValueId tokens = x;
    const ValueId embed = parameter("f32[8,16]");
    x = at_.op("aten.mm.default", {x, embed});
    std::vector<ValueId> results;
    for (const char kind : pattern) {
      results.push_back(x = layer(kind, x, shared));
    }
    if (reads_all) at_.output(at_.op("aten.addcmul.default", results));
    const ValueId logits =
        at_.op("aten.mm.default", {x, parameter("f32[16,4]")});
    at_.output(logits);
    if (trains_) {
      ValueId g = at_.op("aten.mm.default",
                         {at_.input("gy", "f32[64,4]"), turned(head_)});
      for (std::size_t i = saved_.size(); i-- > 0;) g = backward(saved_[i], g);
      gradient(at_.op("aten.mm.default", {turned(tokens), g}), embed);
    }
    return at_.build();
  }

 private:
  struct Branch {
    ValueId x, u, v, h, a;
  };
  struct Layer {
    std::vector<Branch> branches;
  };

  ValueId parameter(const char* text) {
    head_ = at_.input(("w" + std::to_string(parameters_++)).c_str(), text,
                      InputKind::kParameter);
    return head_;
  }
  ValueId turned(ValueId value) {
    return at_.op("aten.permute.default", {value}, {{"dims", ints({1, 0})}});
  }
  Branch branch(ValueId x, const char* up, const char* down) {
    Branch out;
    out.x = x;
    out.u = parameter(up);
    out.v = parameter(down);
    out.h = at_.op("aten.mm.default", {x, out.u});
    out.a = at_.op("aten.mul.Tensor", {out.h, out.h});
    return out;
  }
  ValueId layer(char kind, ValueId x, ValueId shared) {
    Layer layer;
    const bool is_wide = kind == 's';
    layer.branches.push_back(branch(x, is_wide ? "f32[16,48]" : "f32[16,32]",
                                    is_wide ? "f32[48,16]" : "f32[32,16]"));
    if (kind == 'm') {
      layer.branches.push_back(branch(x, "f32[16,32]", "f32[32,16]"));
    }
    ValueId out = at_.op("aten.add.Tensor", {x, shared});
    for (const Branch& b : layer.branches) {
      out = at_.op("aten.add.Tensor",
                   {out, at_.op("aten.mm.default", {b.a, b.v})});
    }
    saved_.push_back(layer);
    return out;
  }
  ValueId backward(const Layer& layer, ValueId g) {
    ValueId out = g;
    for (const Branch& b : layer.branches) {
      gradient(at_.op("aten.mm.default", {turned(b.a), g}), b.v);
      const ValueId ga = at_.op("aten.mm.default", {g, turned(b.v)});
      const ValueId gh = at_.op("aten.mul.Tensor", {ga, b.h});
      gradient(at_.op("aten.mm.default", {turned(b.x), gh}), b.u);
      out = at_.op("aten.add.Tensor",
                   {out, at_.op("aten.mm.default", {gh, turned(b.u)})});
    }
    return out;
  }
  void gradient(ValueId value, ValueId of) {
    at_.builder.add_output({value, OutputKind::kGradient, of});
  }

  GraphFixture at_;
  bool trains_;
  int parameters_ = 0;
  ValueId head_;
  std::vector<Layer> saved_;
};

}  // namespace shardprop

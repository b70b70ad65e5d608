#include "lower/drawn_attention.h"

#include "base/index.h"
#include "base/try.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace shardprop::lowering {
namespace {

double number(const Node& node, const char* name, double fallback) {
  if (!node.op.has_arg(name)) return fallback;
  return node.op.float_arg(name).value_or(fallback);
}

Argument ints(std::vector<std::int64_t> values) {
  return Argument(std::move(values));
}

Argument integer(std::int64_t value) { return Argument(value); }

// Returns the layout with dims 2 and 3 swapped.
Layout with_sides_changed(const Layout& layout) {
  Placements placements;
  for (int m = 0; m < layout.mesh_ndim(); ++m) {
    Placement p = layout[m];
    if (p.is_shard() && p.dim() >= 2) p = Placement::shard(5 - p.dim());
    placements.push_back(p);
  }
  return *Layout::create(std::move(placements));
}

}  // namespace

DrawnAttention::DrawnAttention(ProgramBuilder& build, const Node& node,
                               const PlannedNode& planned,
                               const std::vector<ProgramValueId>& inputs,
                               Draws draws)
    : build_(build),
      node_(node),
      planned_(planned),
      inputs_(inputs),
      draws_(draws),
      dtype_(build[operand("query")].meta.dtype() == DType::kF64 ? DType::kF64
                                                                 : DType::kF32),
      drop_(number(node, "dropout_p", 0)) {
  const double width =
      static_cast<double>(build[operand("query")].meta.shape().back());
  scale_ = number(node, "scale", 1 / std::sqrt(width));
}

ProgramValueId DrawnAttention::operand(std::string_view name) const {
  if (!node_.op.has_arg(name)) return {};
  const auto operand = node_.op.tensor_arg(name);
  return operand ? inputs_[*operand] : ProgramValueId();
}

Result<void> DrawnAttention::check() const {
  const auto refuse = [&](const char* why) {
    return fail(Error{
        ErrorCode::kNotLowered,
        "`" + node_.op_name() + "` cannot be drawn element by element: " + why,
        node_.name,
        {},
        "decompose it before exporting, or turn dropout off"});
  };
  const Like query = like(operand("query"));
  const Like key = like(operand("key"));
  if (query.shape[0] != key.shape[0] || query.shape[1] != key.shape[1]) {
    return refuse("heads share their keys");
  }
  for (int m = 0; m < query.layout.mesh_ndim(); ++m) {
    const bool keys_are_whole =
        !key.layout[m].is_shard() || key.layout[m].dim() < 2;
    for (const Placement p : {query.layout[m], key.layout[m]}) {
      const bool is_plain = p.is_replicate() || (p.is_shard() && p.dim() < 3 &&
                                                 p.split_factor() == 1);
      if (!is_plain || !keys_are_whole) {
        return refuse("its operands lie in pieces");
      }
    }
  }
  return {};
}

Result<std::vector<ProgramValueId>> DrawnAttention::run(bool is_backward) {
  SP_CHECK(check());
  return is_backward ? backward() : forward();
}

std::vector<ProgramValueId> DrawnAttention::forward() {
  const Id scored = scores();
  const Id logs = log_sums(scored);
  const Id dropped = op("aten.mul.Tensor", points(),
                        {{"self", weights(scored, logs)}, {"other", kept()}});
  const Id out = product(dropped, in_full("value"), points().layout);
  std::vector<Id> results = {finish(out, 0)};
  for (std::size_t o = 1; o < node_.op.outputs.size(); ++o) {
    const bool is_log = o == 1 && is_floating(node_.op.outputs[o].dtype()) &&
                        node_.op.outputs[o].rank() >= 3 &&
                        node_.op.outputs[o].size(2) > 0;
    results.push_back(is_log ? log_output(logs, o) : zeros(o));
  }
  return results;
}

std::vector<ProgramValueId> DrawnAttention::backward() {
  const Like like_points = points();
  const auto times = [&](Id a, Id b) {
    return op("aten.mul.Tensor", like_points, {{"self", a}, {"other", b}});
  };
  const Id gradient =
      in_full(operand("grad_out").valid() ? "grad_out" : "grad_out_");
  const Id scored = scores();
  const Id weight = weights(scored, log_sums(scored));
  const Id keeps = kept();
  // The gradient of the weights; below, the gradient of the scores before they
  // are scaled.
  const Id of_weights =
      times(product(gradient, transposed(in_full("value")), like_points.layout),
            keeps);
  Like rows = like_points;
  rows.shape.back() = 1;
  const Id mean = summed(times(of_weights, weight), rows);
  const Id of_scores =
      times(weight, op("aten.sub.Tensor", like_points,
                       {{"self", of_weights}, {"other", mean}}));
  const Id scaled = op("aten.mul.Scalar", like_points,
                       {{"self", of_scores}, {"other", Argument(scale_)}});

  std::vector<Id> results;
  for (std::size_t r = 0; r < node_.op.output_slots.size(); ++r) {
    if (node_.op.output_slots[r] == OpSchema::kNotProduced) continue;
    const auto o = index(node_.op.output_slots[r]);
    const Layout& layout = planned_.outputs[o].tensor.layout;
    Id made;
    if (r == 0) {
      made = product(scaled, in_full("key"), layout);
    } else if (r == 1) {
      made = product(transposed(scaled), in_full("query"), layout);
    } else if (r == 2) {
      made = product(transposed(times(weight, keeps)), gradient, layout);
    } else {
      made = summed_to_bias(of_scores, o);
    }
    results.push_back(finish(made, o));
  }
  return results;
}

DrawnAttention::Like DrawnAttention::like(Id value) const {
  return {build_[value].meta.shape(), build_[value].layout};
}

DrawnAttention::Like DrawnAttention::points() const {
  Like out = like(operand("query"));
  out.shape.back() = build_[operand("key")].meta.size(2);
  return out;
}

ProgramValueId DrawnAttention::op(const char* name, const Like& like,
                                  ProgramArguments args) {
  return ElementOps(build_, node_.name + ".r", like.shape, like.layout)
      .op(name, dtype_, std::move(args));
}

ProgramValueId DrawnAttention::in_full(std::string_view name) {
  const Id value = operand(name);
  const Like as_it_is = like(value);
  return ElementOps(build_, node_.name + ".r", as_it_is.shape, as_it_is.layout)
      .cast(value, dtype_);
}

ProgramValueId DrawnAttention::transposed(Id value) {
  Like out = like(value);
  std::swap(out.shape[2], out.shape[3]);
  out.layout = with_sides_changed(out.layout);
  return op("aten.transpose.int", out,
            {{"self", value}, {"dim0", integer(2)}, {"dim1", integer(3)}});
}

ProgramValueId DrawnAttention::product(Id a, Id b, const Layout& layout) {
  Like out{build_[a].meta.shape(), layout};
  out.shape.back() = build_[b].meta.shape().back();
  return op("aten.matmul.default", out, {{"self", a}, {"other", b}});
}

ProgramValueId DrawnAttention::summed(Id value, const Like& like) {
  return op("aten.sum.dim_IntList", like,
            {{"self", value}, {"dim", ints({3})}, {"keepdim", Argument(true)}});
}

ProgramValueId DrawnAttention::scores() {
  const Like like_points = points();
  Id out = op("aten.mul.Scalar", like_points,
              {{"self", product(in_full("query"), transposed(in_full("key")),
                                like_points.layout)},
               {"other", Argument(scale_)}});
  if (const Id bias = operand("attn_bias"); bias.valid()) {
    out = op("aten.add.Tensor", like_points, {{"self", out}, {"other", bias}});
  }
  if (!node_.op.bool_arg("is_causal").value_or(false)) return out;
  // Causal attention requires that no rank shards the queries.
  const Layout whole = Layout::replicated(like_points.layout.mesh_ndim());
  const Dims square{like_points.shape[2], like_points.shape[3]};
  ElementOps mask(build_, node_.name + ".r", square, whole);
  const Id ones = mask.op("aten.full.default", DType::kBool,
                          {{"size", ints({square[0], square[1]})},
                           {"fill_value", Argument(true)},
                           {"dtype", Argument(DType::kBool)}});
  const Id behind = mask.op("aten.triu.default", DType::kBool,
                            {{"self", ones}, {"diagonal", integer(1)}});
  return op("aten.masked_fill.Scalar", like_points,
            {{"self", out},
             {"mask", behind},
             {"value", Argument(-std::numeric_limits<double>::infinity())}});
}

ProgramValueId DrawnAttention::log_sums(Id scores) {
  Like rows = points();
  rows.shape.back() = 1;
  return op(
      "aten.logsumexp.default", rows,
      {{"self", scores}, {"dim", ints({3})}, {"keepdim", Argument(true)}});
}

ProgramValueId DrawnAttention::weights(Id scores, Id logs) {
  const Id behind =
      op("aten.sub.Tensor", points(), {{"self", scores}, {"other", logs}});
  return op("aten.exp.default", points(), {{"self", behind}});
}

ProgramValueId DrawnAttention::kept() {
  const Like like_points = points();
  ElementOps draw(build_, node_.name + ".r", like_points.shape,
                  like_points.layout);
  const Id keeps = draw.op(
      "aten.ge.Scalar", DType::kBool,
      {{"self", draw.uniform(draws_, dtype_, 0)}, {"other", Argument(drop_)}});
  return draw.scalar_op("aten.mul.Scalar", draw.cast(keeps, dtype_),
                        drop_ < 1 ? 1 / (1 - drop_) : 0);
}

ProgramValueId DrawnAttention::summed_to_bias(Id gradient, std::size_t output) {
  const Like bias{node_.op.outputs[output].shape(),
                  planned_.outputs[output].tensor.layout};
  const Dims shape = points().shape;
  std::vector<std::int64_t> dims;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (bias.shape[d] != shape[d]) dims.push_back(static_cast<int>(d));
  }
  if (dims.empty()) return gradient;
  return op("aten.sum.dim_IntList", bias,
            {{"self", gradient},
             {"dim", ints(std::move(dims))},
             {"keepdim", Argument(true)}});
}

ProgramValueId DrawnAttention::finish(Id value, std::size_t output) {
  const PlannedResult& planned = planned_.outputs[output];
  return build_.renamed(value, planned.name, node_.op.outputs[output],
                        planned.tensor.layout);
}

// The rows of the output may be padded.
ProgramValueId DrawnAttention::log_output(Id logs, std::size_t output) {
  const TensorMeta& meta = node_.op.outputs[output];
  Like rows = like(logs);
  if (meta.rank() == 3) {
    rows.shape.pop_back();
    logs = op("aten.squeeze.dim", rows, {{"self", logs}, {"dim", integer(3)}});
    const std::int64_t more = meta.size(2) - rows.shape[2];
    if (more > 0) {
      rows.shape[2] += more;
      logs = op("aten.constant_pad_nd.default", rows,
                {{"self", logs}, {"pad", ints({0, more})}});
    }
  }
  return finish(logs, output);
}

ProgramValueId DrawnAttention::zeros(std::size_t output) {
  const TensorMeta& meta = node_.op.outputs[output];
  const PlannedResult& planned = planned_.outputs[output];
  const Id made = build_.value(planned.name, meta, planned.tensor.layout);
  build_.op("aten.full.default",
            {{"size", ints({meta.shape().begin(), meta.shape().end()})},
             {"fill_value", integer(0)},
             {"dtype", Argument(meta.dtype())}},
            {made});
  return made;
}

}  // namespace shardprop::lowering

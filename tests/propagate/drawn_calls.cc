#include "propagate/drawn_calls.h"

#include <shardprop/placement/tensor_spec.h>

#include <algorithm>
#include <map>
#include <utility>

namespace shardprop::testing {

CallDrawer::CallDrawer(const OpLibrary& library, DeviceMesh mesh,
                       std::uint64_t seed)
    : library_(library), mesh_(std::move(mesh)), random_(seed) {
  for (std::string& name : library.names()) {
    const auto function = library.find(name);
    if (library.row(*function) != nullptr && library.infers(*function)) {
      names_.push_back(std::move(name));
    }
  }
}

std::int64_t CallDrawer::below(std::int64_t n) {
  return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
}

std::int64_t CallDrawer::size() {
  static constexpr std::int64_t kSizes[] = {4, 8, 8, 16, 6, 12, 2, 1, 3, 5};
  return kSizes[below(10)];
}

Dims CallDrawer::shape() {
  // The shape equals the common one, broadcasts with it, or is different.
  const std::int64_t style = below(8);
  if (style < 4) return common_;
  Dims out;
  if (style < 6) {
    const auto skipped = static_cast<std::size_t>(
        below(static_cast<std::int64_t>(common_.size()) + 1));
    for (std::size_t d = skipped; d < common_.size(); ++d) {
      out.push_back(one_in(3) ? 1 : common_[d]);
    }
    return out;
  }
  const std::int64_t rank = below(5);
  for (std::int64_t d = 0; d < rank; ++d) {
    out.push_back(common_.empty() || one_in(4)
                      ? size()
                      : common_[static_cast<std::size_t>(
                            below(static_cast<std::int64_t>(common_.size())))]);
  }
  return out;
}

TensorArg CallDrawer::tensor(const ArgumentSchema& declared) {
  DType dtype = dtype_;
  const auto has = [&](std::string_view part) {
    return declared.name.find(part) != std::string::npos;
  };
  if (has("ind") || has("target") || has("offsets")) dtype = DType::kI64;
  if (has("mask") || has("cond")) dtype = DType::kBool;
  Dims shape = this->shape();
  auto meta = TensorMeta::contiguous(shape, dtype);
  if (one_in(6) && shape.size() >= 2) {
    Dims strides = contiguous_strides(shape);
    std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
    if (auto turned = TensorMeta::create(shape, strides, dtype)) meta = turned;
  }
  tensors_.push_back(meta.value());
  return {static_cast<std::int32_t>(tensors_.size() - 1)};
}

std::int64_t CallDrawer::integer(const ArgumentSchema& declared) {
  if (declared.name.starts_with("dim")) return below(4) - 1;
  static constexpr std::int64_t kIntegers[] = {0, 1, 2, 3, 4, 8, -1};
  return kIntegers[below(7)];
}

Argument CallDrawer::value_of(const ArgumentSchema& declared) {
  switch (declared.type) {
    case ArgumentType::kTensor: {
      if (!declared.is_list) return tensor(declared);
      std::vector<TensorArg> list;
      for (std::int64_t i = below(3); i >= 0; --i) {
        list.push_back(tensor(declared));
      }
      return list;
    }
    case ArgumentType::kInt: {
      if (!declared.is_list) return integer(declared);
      if (declared.name == "size" || declared.name == "shape" ||
          declared.name.ends_with("_shape")) {
        const Dims sizes = shape();
        return std::vector<std::int64_t>(sizes.begin(), sizes.end());
      }
      std::vector<std::int64_t> out;
      const std::int64_t count = declared.list_size.value_or(below(3) + 1);
      for (std::int64_t i = 0; i < count; ++i) {
        out.push_back(declared.name.starts_with("dim") ? i : integer(declared));
      }
      return out;
    }
    case ArgumentType::kFloat:
      if (declared.is_list) return std::vector<double>{0.5, 0.5};
      return std::vector<double>{0.5, 2.0, 0.0, -1.5}[random_() % 4];
    case ArgumentType::kBool:
      if (declared.is_list) return std::vector<bool>{true, true, one_in(2)};
      return one_in(2);
    case ArgumentType::kScalar:
      if (declared.is_list) return std::vector<double>{0.5, 0.5};
      if (one_in(3)) return below(5) - 2;
      return std::vector<double>{0.5, 2.0, 0.0, -1.5}[random_() % 4];
    case ArgumentType::kString:
      return std::string(one_in(2) ? "none" : one_in(2) ? "sum" : "floor");
    case ArgumentType::kDType:
      return one_in(2) ? DType::kF64 : DType::kF32;
    default:
      return NoneArg{};
  }
}

Layout CallDrawer::layout(const TensorMeta& meta) {
  Layout out = Layout::replicated(mesh_.ndim());
  for (int m = 0; m < mesh_.ndim(); ++m) {
    Placement placement;
    const std::int64_t kind = below(16);
    if (kind < 7 && meta.rank() > 0) {
      placement = Placement::shard(static_cast<int>(below(meta.rank())));
    } else if (kind == 7 && meta.rank() > 0) {
      placement =
          Placement::strided_shard(static_cast<int>(below(meta.rank())), 2);
    } else if (kind < 10) {
      static constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kSum,
                                          ReduceOp::kAvg, ReduceOp::kMax};
      placement = Placement::partial(kOps[below(4)]);
    }
    auto with = out.with(m, placement);
    if (with && check_layout(*with, mesh_, meta)) out = *with;
  }
  return out;
}

std::vector<Layout> CallDrawer::layouts(const OpSchema& op) {
  std::vector<Layout> out;
  // Often alike, so that some fit.
  const bool alike = one_in(2);
  for (const TensorMeta& meta : op.inputs) {
    if (alike && !out.empty() && check_layout(out[0], mesh_, meta)) {
      out.push_back(out[0]);
    } else {
      out.push_back(layout(meta));
    }
  }
  return out;
}

std::optional<DrawnCall> CallDrawer::call() {
  return call_of(names_[static_cast<std::size_t>(
      below(static_cast<std::int64_t>(names_.size())))]);
}

std::optional<DrawnCall> CallDrawer::call_of(const std::string& name) {
  const auto function = library_.find(name);
  for (int attempt = 0; attempt < 12; ++attempt) {
    tensors_.clear();
    common_.clear();
    for (std::int64_t d = below(4) + 1; d > 0; --d) common_.push_back(size());
    if (one_in(3) && common_.size() > 1) common_.back() = common_.front();
    dtype_ = one_in(5) ? DType::kI64 : one_in(5) ? DType::kBF16 : DType::kF32;
    // The program of batch norm does not hold for integers, which PyTorch
    // refuses and its row does not.
    if (name.find("batch_norm") != std::string::npos) dtype_ = DType::kF32;
    std::vector<GivenArgument> given;
    for (const ArgumentSchema& declared : function->arguments()) {
      if (declared.has_default && !one_in(2)) continue;
      if (declared.is_optional && one_in(3)) {
        given.push_back({declared.name, NoneArg{}});
      } else {
        given.push_back({declared.name, value_of(declared)});
      }
    }
    auto op = make_op_schema(function, std::move(given), tensors_);
    if (!op || !library_.infer_results(*op)) continue;
    DrawnCall call{*std::move(op), {}};
    call.layouts = layouts(call.op);
    return call;
  }
  return std::nullopt;
}

void CallDrawer::change_scalars(OpSchema& op) {
  for (std::size_t i = 0; i < op.args.size(); ++i) {
    const ArgumentSchema& declared = op.function->arguments()[i];
    if (declared.type == ArgumentType::kTensor || declared.is_list ||
        std::holds_alternative<NoneArg>(op.args[i]) || one_in(2)) {
      continue;
    }
    // The new value has the same type, so the declaration accepts it.
    if (std::holds_alternative<double>(op.args[i])) {
      op.args[i] = static_cast<double>(below(7) - 3) / 2;
    } else if (std::holds_alternative<std::int64_t>(op.args[i])) {
      op.args[i] = below(7) - 2;
    } else if (std::holds_alternative<bool>(op.args[i])) {
      op.args[i] = one_in(2);
    }
  }
}

void CallDrawer::change_sizes(DrawnCall& call) {
  std::map<std::int64_t, std::int64_t> now;
  for (TensorMeta& meta : call.op.inputs) {
    Dims shape = meta.shape();
    for (std::int64_t& size : shape) {
      const auto [known, added] = now.try_emplace(size, size);
      if (added && size > 1 && one_in(2)) {
        known->second = one_in(3) ? this->size() : size * (below(3) + 1);
      }
      // Equal sizes mostly stay equal.
      size = one_in(12) ? this->size() : known->second;
    }
    meta = TensorMeta::contiguous(shape, meta.dtype()).value();
  }
}

DrawnCall CallDrawer::sibling(const DrawnCall& call) {
  DrawnCall out = call;
  const std::int64_t what = below(8);
  if (what < 3) change_scalars(out.op);
  if (what >= 2 && what < 6) change_sizes(out);
  if (what == 6) out.layouts = layouts(out.op);
  for (std::size_t i = 0; i < out.layouts.size(); ++i) {
    if (!check_layout(out.layouts[i], mesh_, out.op.inputs[i])) {
      out.layouts[i] = Layout::replicated(mesh_.ndim());
    }
  }
  return out;
}

namespace {

bool alike(const RankArgument& a, const RankArgument& b,
           const DeviceMesh& mesh) {
  if (a.name() != b.name() || a.is_list() != b.is_list()) return false;
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    const Coordinate at = mesh.coordinate_at_index(i);
    if (a.at(at) != b.at(at)) return false;
  }
  return true;
}

}  // namespace

std::string difference(const OutputSharding& a, const OutputSharding& b,
                       const DeviceMesh& mesh) {
  if (a.inputs != b.inputs) return "inputs";
  if (a.outputs != b.outputs) return "outputs";
  if (a.output_slots != b.output_slots) return "output slots";
  if (a.inside != b.inside) return "collectives inside";
  if (a.assignments != b.assignments) return "assignments";
  if (a.shardings != b.shardings) return "factor shardings";
  if (a.redistribute_nanoseconds != b.redistribute_nanoseconds ||
      a.inside_nanoseconds != b.inside_nanoseconds) {
    return "cost";
  }
  if (a.moves.size() != b.moves.size()) return "moves";
  for (std::size_t i = 0; i < a.moves.size(); ++i) {
    if (a.moves[i].input != b.moves[i].input ||
        *a.moves[i].plan != *b.moves[i].plan) {
      return "plan of a move";
    }
  }
  if (a.rank_arguments.size() != b.rank_arguments.size()) {
    return "rank arguments";
  }
  for (std::size_t i = 0; i < a.rank_arguments.size(); ++i) {
    if (!alike(a.rank_arguments[i], b.rank_arguments[i], mesh)) {
      return "rank argument " + a.rank_arguments[i].name();
    }
  }
  return {};
}

std::string to_text(const DrawnCall& call) {
  std::string text = call.op.name();
  for (std::size_t i = 0; i < call.op.inputs.size(); ++i) {
    text +=
        " " + to_string(call.op.inputs[i]) + " " + to_string(call.layouts[i]);
  }
  for (std::size_t i = 0; i < call.op.args.size(); ++i) {
    const std::string& name = call.op.function->arguments()[i].name;
    if (const auto* x = std::get_if<std::int64_t>(&call.op.args[i])) {
      text += " " + name + "=" + std::to_string(*x);
    } else if (const auto* y = std::get_if<double>(&call.op.args[i])) {
      text += " " + name + "=" + std::to_string(*y);
    } else if (const auto* b = std::get_if<bool>(&call.op.args[i])) {
      text += " " + name + (*b ? "=true" : "=false");
    } else if (const auto* list =
                   std::get_if<std::vector<std::int64_t>>(&call.op.args[i])) {
      text += " " + name + "=[";
      for (const std::int64_t e : *list) text += std::to_string(e) + ",";
      text += "]";
    }
  }
  return text;
}

}  // namespace shardprop::testing

#include "report/local_run_read.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

constexpr std::int64_t kMostRefs = INT32_MAX;

using Rows = std::vector<std::vector<std::int64_t>>;

// Reads one row for each of `count` ranks or coordinates.
RankValues read_rows(const JsonCursor& at, const DeviceMesh& mesh,
                     const DimIndices& dims, std::int64_t count) {
  const std::vector<JsonCursor> elements = at.elements();
  if (static_cast<std::int64_t>(elements.size()) != count) {
    at.fail("not one value per rank");
    return {};
  }
  const bool is_list = elements.front().is_list();
  Rows rows;
  rows.reserve(elements.size());
  for (const JsonCursor& element : elements) {
    rows.push_back(is_list ? element.integers()
                           : std::vector{element.integer(INT64_MIN)});
  }
  return RankValues(mesh, dims, is_list, std::move(rows));
}

// Reads either form of RankForm.
RankValues read_rank_values(const JsonCursor& at, const DeviceMesh& mesh) {
  DimIndices dims;
  if (at.is_list()) {
    for (std::int32_t dim = 0; dim < mesh.ndim(); ++dim) dims.push_back(dim);
    return read_rows(at, mesh, dims, mesh.size());
  }
  dims = read_mesh_dims(at["mesh_dims"], mesh);
  std::int64_t count = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (d > 0 && dims[d] <= dims[d - 1]) {
      at["mesh_dims"].fail("not in the order of the mesh");
      return {};
    }
    count *= mesh.size(dims[d]);
  }
  return read_rows(at["values"], mesh, dims, count);
}

bool is_ref(const JsonCursor& at) { return at.has("input") || at.has("step"); }

LocalRef read_ref(const JsonCursor& at) {
  LocalRef ref;
  if (at.is_null()) {
    ref.index = TensorArg::kNone;
  } else if (at.has("step")) {
    ref.step = static_cast<std::int32_t>(at["step"].integer(0, kMostRefs));
    ref.index = static_cast<std::int32_t>(at["result"].integer(0, kMostRefs));
  } else {
    ref.index = static_cast<std::int32_t>(at["input"].integer(0, kMostRefs));
  }
  return ref;
}

LocalScalar read_scalar(const JsonCursor& at) {
  if (at.is_null()) return {};
  if (at.is_boolean()) return at.boolean();
  if (at.is_integer()) return at.integer(INT64_MIN);
  if (at.is_number()) return at.number();
  if (at.has("real")) {
    return std::pair(at["real"].number(), at["imag"].number());
  }
  return at.text();
}

LocalRunValue read_value(const JsonCursor& at, const DeviceMesh& mesh) {
  if (at.has("per_rank")) return read_rank_values(at["per_rank"], mesh);
  if (is_ref(at)) return read_ref(at);
  if (!at.is_list()) return read_scalar(at);
  const std::vector<JsonCursor> elements = at.elements();
  if (std::any_of(elements.begin(), elements.end(), is_ref)) {
    std::vector<LocalRef> refs;
    for (const JsonCursor& element : elements)
      refs.push_back(read_ref(element));
    return refs;
  }
  std::vector<LocalScalar> scalars;
  for (const JsonCursor& element : elements) {
    scalars.push_back(read_scalar(element));
  }
  return scalars;
}

}  // namespace

DimIndices read_mesh_dims(const JsonCursor& at, const DeviceMesh& mesh) {
  DimIndices out;
  for (const JsonCursor& name : at.elements()) {
    if (const auto dim = mesh.find_dim(name.text())) {
      out.push_back(*dim);
    } else {
      name.fail("not a dim of the mesh");
    }
  }
  return out;
}

CollectiveKind read_collective_kind(const JsonCursor& at) {
  if (const auto kind = parse_collective_kind(at.text())) return *kind;
  at.fail("unknown collective");
  return CollectiveKind::kSlice;
}

std::optional<ReduceOp> read_reduce_op(const JsonCursor& step) {
  if (!step.has("reduce_op")) return std::nullopt;
  const auto op = parse_reduce_op(step["reduce_op"].text());
  if (!op) step["reduce_op"].fail("unknown reduce op");
  return op;
}

std::vector<LocalRunArgument> read_local_args(const JsonCursor& at,
                                              const DeviceMesh& mesh) {
  std::vector<LocalRunArgument> out;
  for (const auto& [name, values] : at.members()) {
    out.push_back({name, read_rank_values(values, mesh)});
  }
  return out;
}

LocalRunProgram read_local_program(const JsonCursor& at,
                                   const DeviceMesh& mesh) {
  LocalRunProgram out;
  for (const JsonCursor& step : at["steps"].elements()) {
    if (step.has("op")) {
      LocalRunOp op{step["op"].text(), {}};
      for (const auto& [name, value] : step["args"].members()) {
        op.args.emplace_back(name, read_value(value, mesh));
      }
      out.steps.emplace_back(std::move(op));
      continue;
    }
    LocalRunCollective collective;
    collective.kind = read_collective_kind(step["collective"]);
    collective.reduce_op = read_reduce_op(step);
    collective.mesh_dims = read_mesh_dims(step["mesh_dims"], mesh);
    collective.value = read_ref(step["value"]);
    out.steps.emplace_back(std::move(collective));
  }
  for (const JsonCursor& ref : at["outputs"].elements()) {
    out.outputs.push_back(read_ref(ref));
  }
  return out;
}

}  // namespace shardprop

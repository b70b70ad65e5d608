// Bindings of layouts and of redistribution between them.
#include <shardprop/redistribute/redistribute_plan.h>

#include <shardprop/io/topology_file.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/redistribute/planner.h>

#include "bindings.h"
#include "raise.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace shardprop::python {
namespace {

DeviceMesh mesh_of(const std::string& text) {
  return value_of(DeviceMesh::parse(text));
}

TensorSpec spec_of(const DeviceMesh& mesh, const std::string& layout,
                   const std::vector<std::int64_t>& shape,
                   const std::string& dtype) {
  const TensorMeta meta = value_of(TensorMeta::contiguous(
      Dims(shape.begin(), shape.end()), value_of(parse_dtype(dtype))));
  return value_of(
      TensorSpec::create(mesh, value_of(Layout::parse(layout)), meta));
}

nb::list mesh_dims(const RedistributeStep& step, const DeviceMesh& mesh) {
  nb::list names;
  for (const std::int32_t dim : step.mesh_dims) names.append(mesh.name(dim));
  return names;
}

nb::dict step_row(const RedistributeStep& step, const DeviceMesh& mesh) {
  nb::dict row;
  row["collective"] = std::string(to_string(step.kind));
  row["mesh_dims"] = mesh_dims(step, mesh);
  row["src"] = to_string(step.src);
  row["dst"] = to_string(step.dst);
  row["reduce_op"] =
      step.reduce_op
          ? nb::object(nb::str(std::string(to_string(*step.reduce_op)).c_str()))
          : nb::none();
  row["bytes_per_rank"] = step.bytes_per_rank;
  row["us"] = static_cast<double>(step.nanoseconds) / 1e3;
  return row;
}

nb::dict redistribute(const std::string& mesh_text,
                      const std::vector<std::int64_t>& shape,
                      const std::string& dtype, const std::string& src_text,
                      const std::string& dst_text,
                      const std::string& topology_text,
                      std::optional<std::int64_t> memory_limit) {
  const DeviceMesh mesh = mesh_of(mesh_text);
  const TensorSpec src = spec_of(mesh, src_text, shape, dtype);
  const TensorSpec dst = spec_of(mesh, dst_text, shape, dtype);
  const Topology topology = value_of(load_topology(topology_text));
  RedistributeOptions options;
  options.memory_limit = memory_limit;
  const RedistributePlan plan =
      value_of(plan_redistribution(src, dst, topology, options));
  nb::dict out;
  nb::list steps;
  for (const RedistributeStep& step : plan.steps) {
    steps.append(step_row(step, mesh));
  }
  out["steps"] = steps;
  out["cost_us"] = static_cast<double>(plan.nanoseconds) / 1e3;
  out["bytes_per_rank"] = plan.bytes_per_rank;
  out["peak_bytes_per_rank"] = plan.peak_bytes;
  out["text"] = to_string(plan, mesh);
  return out;
}

}  // namespace

void bind_redistribute(nb::module_& module) {
  module.def("redistribute", &redistribute, nb::arg("mesh"), nb::arg("shape"),
             nb::arg("dtype"), nb::arg("src"), nb::arg("dst"),
             nb::arg("topology"), nb::arg("memory").none());
  module.def(
      "local_region",
      [](const std::string& mesh_text, const std::vector<std::int64_t>& shape,
         const std::string& dtype, const std::string& layout,
         std::int64_t index) {
        const DeviceMesh mesh = mesh_of(mesh_text);
        const TensorSpec spec = spec_of(mesh, layout, shape, dtype);
        std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> dims;
        for (const Intervals& held :
             local_region(spec, mesh.coordinate_at_index(index)).dims()) {
          auto& intervals = dims.emplace_back();
          for (const Interval& interval : held) {
            intervals.emplace_back(interval.begin, interval.end);
          }
        }
        return dims;
      },
      nb::arg("mesh"), nb::arg("shape"), nb::arg("dtype"), nb::arg("layout"),
      nb::arg("index"));
  module.def(
      "canonical",
      [](const std::string& mesh, const std::vector<std::int64_t>& shape,
         const std::string& layout) {
        return to_string(spec_of(mesh_of(mesh), layout, shape, "f32").layout());
      },
      nb::arg("mesh"), nb::arg("shape"), nb::arg("layout"));
}

}  // namespace shardprop::python

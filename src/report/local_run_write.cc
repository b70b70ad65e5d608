#include "report/local_run_json.h"

#include "base/index.h"
#include "report/mesh_json.h"

#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

// Writes {"input": 0}, {"step": 2, "result": 0}, or null if there is no tensor.
void write_ref(JsonText& json, const LocalRef& ref) {
  if (ref.step >= 0) {
    json.open('{').member("step", ref.step).member("result", ref.index);
    json.close('}');
  } else if (ref.index == TensorArg::kNone) {
    json.null();
  } else {
    json.open('{').member("input", ref.index).close('}');
  }
}

void write_scalar(JsonText& json, const LocalScalar& scalar) {
  std::visit(
      [&](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          json.null();
        } else if constexpr (std::is_same_v<T, std::pair<double, double>>) {
          json.open('{').member("real", held.first);
          json.member("imag", held.second).close('}');
        } else {
          json.value(held);
        }
      },
      scalar);
}

// {"mesh_dims":["dp"],"values":[[8,4],[7,4]]}
void write_by_dim(JsonText& json, const RankValues& values,
                  const DeviceMesh& mesh) {
  JsonText line;
  line.open('{').key("mesh_dims");
  write_dim_names(line, values.mesh_dims(), mesh);
  line.key("values").open('[');
  const DimIndices& dims = values.mesh_dims();
  Coordinate at(static_cast<std::size_t>(mesh.ndim()), 0);
  for (std::size_t d = 1; d > 0;) {
    const std::vector<std::int64_t>& row = values.at(at);
    values.is_list() ? line.value(row) : line.value(row.front());
    // Increments the coordinate on the dims; the last dim varies fastest.
    for (d = dims.size(); d > 0; --d) {
      std::int64_t& place = at[index(dims[d - 1])];
      if (++place < mesh.size(dims[d - 1])) break;
      place = 0;
    }
  }
  json.raw(line.close(']').close('}').take());
}

void write_ranks(JsonText& json, const RankValues& values,
                 const DeviceMesh& mesh, RankForm form) {
  if (form == RankForm::kByDim) {
    write_by_dim(json, values, mesh);
  } else {
    write_rank_values(json, values, mesh);
  }
}

// Values that differ between ranks are members of "per_rank".
void write_value(JsonText& json, const LocalRunValue& value,
                 const DeviceMesh& mesh, RankForm form) {
  std::visit(
      [&](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, LocalScalar>) {
          write_scalar(json, held);
        } else if constexpr (std::is_same_v<T, LocalRef>) {
          write_ref(json, held);
        } else if constexpr (std::is_same_v<T, RankValues>) {
          json.open('{').key("per_rank");
          write_ranks(json, held, mesh, form);
          json.close('}');
        } else if constexpr (std::is_same_v<T, std::vector<LocalRef>>) {
          json.list(held, [&](const LocalRef& ref) { write_ref(json, ref); });
        } else {
          json.list(held, [&](const LocalScalar& scalar) {
            write_scalar(json, scalar);
          });
        }
      },
      value);
}

}  // namespace

void write_local_args(JsonText& json, const LocalRun& run,
                      const DeviceMesh& mesh, RankForm form) {
  json.open('{');
  for (const LocalRunArgument& argument : run.arguments) {
    json.key(argument.name);
    write_ranks(json, argument.values, mesh, form);
  }
  json.close('}');
}

void write_local_program(JsonText& json, const LocalRunProgram& program,
                         const DeviceMesh& mesh, RankForm form) {
  const auto write_op = [&](const LocalRunOp& op) {
    json.open('{').member("op", op.name).key("args").open('{');
    for (const auto& [name, value] : op.args) {
      json.key(name);
      write_value(json, value, mesh, form);
    }
    json.close('}').close('}');
  };
  const auto write_collective = [&](const LocalRunCollective& collective) {
    json.open('{').member("collective", to_string(collective.kind));
    if (collective.reduce_op) {
      json.member("reduce_op", to_string(*collective.reduce_op));
    }
    json.key("mesh_dims");
    write_dim_names(json, collective.mesh_dims, mesh);
    json.key("value");
    write_ref(json, collective.value);
    json.close('}');
  };
  json.open('{').key("steps").list(program.steps, [&](const auto& step) {
    if (const auto* op = std::get_if<LocalRunOp>(&step)) {
      write_op(*op);
    } else {
      write_collective(std::get<LocalRunCollective>(step));
    }
  });
  json.key("outputs").list(program.outputs,
                           [&](const LocalRef& ref) { write_ref(json, ref); });
  json.close('}');
}

}  // namespace shardprop

// Bindings of the programs of ranks, in PyTorch's format.
#include <shardprop/program/spmd_program.h>

#include <shardprop/io/emit_program.h>
#include <shardprop/lower/lower.h>
#include <shardprop/request/graph_reading.h>
#include <shardprop/request/plan_request.h>

#include "bindings.h"
#include "raise.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace nb = nanobind;

namespace shardprop::python {
namespace {

struct LoweredProgram {
  SpmdProgram program;
  std::shared_ptr<const OpLibrary> library;
};

}  // namespace

void bind_program(nb::module_& module) {
  nb::class_<LoweredProgram>(module, "Program")
      .def("__str__",
           [](const LoweredProgram& p) { return to_string(p.program); })
      .def("shardings",
           [](const LoweredProgram& p) {
             return value_of(shardings_json(p.program, *p.library));
           })
      .def(
          "rank_program",
          [](const LoweredProgram& p, std::int64_t rank) {
            const std::string archive = value_of(
                emit_program(p.program, *p.library, rank, EmitFormat::kPt2));
            return nb::bytes(archive.data(), archive.size());
          },
          nb::arg("rank"));
  module.def(
      "lower",
      [](const Plan& plan, const LoadedGraph& loaded, bool optimizer_step) {
        GraphReading reading;
        value_of(add_reading_of(plan, "the plan", reading));
        auto library = value_of(library_with(reading.rules));
        const auto graph = value_of(graph_of(plan, loaded.graph, *library));
        SpmdProgram program = value_of(
            lower(plan, *graph, *library, {.optimizer_step = optimizer_step}));
        return LoweredProgram{std::move(program), std::move(library)};
      },
      nb::arg("plan"), nb::arg("graph"), nb::arg("optimizer_step") = true);
}

}  // namespace shardprop::python

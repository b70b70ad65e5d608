// Each bind_ function adds the bindings of one file to the module
// `shardprop._core`.
#pragma once

#include <nanobind/nanobind.h>

namespace shardprop::python {

void bind_cli(nanobind::module_& module);
void bind_graph(nanobind::module_& module);
void bind_plan(nanobind::module_& module);
void bind_propagator(nanobind::module_& module);
void bind_program(nanobind::module_& module);
void bind_redistribute(nanobind::module_& module);

}  // namespace shardprop::python

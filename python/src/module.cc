#include "bindings.h"

NB_MODULE(_core, module) {
  module.doc() = "The library behind the package; use `shardprop` itself.";
  module.attr("__version__") = SHARDPROP_VERSION;
  shardprop::python::bind_graph(module);
  shardprop::python::bind_redistribute(module);
  shardprop::python::bind_plan(module);
  shardprop::python::bind_program(module);
  shardprop::python::bind_propagator(module);
  shardprop::python::bind_cli(module);
}

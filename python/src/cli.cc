// The console script `shardprop` runs the command line in this process.
#include <commands.h>

#include "bindings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

namespace nb = nanobind;

namespace shardprop::python {

void bind_cli(nb::module_& module) {
  module.def(
      "run",
      [](const std::vector<std::string>& arguments) {
        std::vector<const char*> texts;
        for (const std::string& text : arguments) {
          texts.push_back(text.c_str());
        }
        const nb::gil_scoped_release released;
        return cli::run(static_cast<int>(texts.size()), texts.data());
      },
      nb::arg("arguments"));
}

}  // namespace shardprop::python

#include "raise.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace shardprop::python {

void raise(const Error& error) {
  const nb::object type =
      nb::module_::import_("shardprop._error").attr("Error");
  const nb::object value =
      type(nb::str(code_string(error.code).data()), error.message,
           error.location, error.notes, error.help);
  PyErr_SetObject(type.ptr(), value.ptr());
  throw nb::python_error();
}

}  // namespace shardprop::python

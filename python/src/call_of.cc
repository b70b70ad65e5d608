#include "call_of.h"

#include "raise.h"

#include <nanobind/stl/complex.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace nb = nanobind;

namespace shardprop::python {
namespace {

[[noreturn]] void refuse(const ArgumentSchema& declared, nb::handle value) {
  raise(Error{
      ErrorCode::kArgumentType,
      "`" + declared.name + "` is a " +
          nb::cast<std::string>(nb::str(nb::type_name(value.type()).ptr())),
      {},
      {"declared: " + declared.type_name},
      "pass tensors as Spec, and dtypes, devices and memory formats by "
      "name"});
}

Argument text_argument(const std::string& text,
                       const ArgumentSchema& declared) {
  switch (declared.type) {
    case ArgumentType::kDType:
      return value_of(parse_dtype(text));
    case ArgumentType::kLayout:
    case ArgumentType::kMemoryFormat:
    case ArgumentType::kDevice:
    case ArgumentType::kGenerator:
    case ArgumentType::kOther:
      return NamedArg{text};
    default:
      return text;
  }
}

// Reader collects the operands of a call in the order in which it reads them.
class Reader {
 public:
  Argument read(nb::handle value, const ArgumentSchema& declared) {
    PyObject* object = value.ptr();
    if (value.is_none()) return NoneArg{};
    if (nb::isinstance<TensorSpec>(value)) return operand(value);
    if (PyBool_Check(object)) return nb::cast<bool>(value);
    if (PyLong_Check(object)) return nb::cast<std::int64_t>(value);
    if (PyFloat_Check(object)) return nb::cast<double>(value);
    if (PyComplex_Check(object)) {
      return nb::cast<std::complex<double>>(value);
    }
    if (PyUnicode_Check(object)) {
      return text_argument(nb::cast<std::string>(value), declared);
    }
    if (PyList_Check(object) || PyTuple_Check(object)) {
      return read_list(nb::borrow<nb::sequence>(value), declared);
    }
    refuse(declared, value);
  }

  std::vector<TensorSpec> operands;

 private:
  TensorArg operand(nb::handle value) {
    operands.push_back(nb::cast<const TensorSpec&>(value));
    return TensorArg{static_cast<std::int32_t>(operands.size() - 1)};
  }

  Argument read_list(const nb::sequence& list, const ArgumentSchema& declared) {
    std::vector<nb::object> items;
    for (nb::handle item : list) items.push_back(nb::borrow(item));
    const auto all = [&](auto&& is) {
      return std::all_of(items.begin(), items.end(), is);
    };
    if (declared.type == ArgumentType::kTensor) {
      std::vector<TensorArg> tensors;
      for (const nb::object& item : items) {
        if (item.is_none()) {
          tensors.emplace_back();
        } else if (nb::isinstance<TensorSpec>(item)) {
          tensors.push_back(operand(item));
        } else {
          refuse(declared, item);
        }
      }
      return tensors;
    }
    try {
      if (!items.empty() &&
          all([](const nb::object& o) { return PyBool_Check(o.ptr()); })) {
        return nb::cast<std::vector<bool>>(list);
      }
      if (all([](const nb::object& o) { return PyLong_Check(o.ptr()); })) {
        return nb::cast<std::vector<std::int64_t>>(list);
      }
      if (all([](const nb::object& o) { return PyUnicode_Check(o.ptr()); })) {
        return nb::cast<std::vector<std::string>>(list);
      }
      return nb::cast<std::vector<double>>(list);
    } catch (const nb::cast_error&) {
      refuse(declared, list);
    }
  }
};

struct ToPython {
  nb::object operator()(const NoneArg&) const { return nb::none(); }
  nb::object operator()(bool value) const { return nb::bool_(value); }
  nb::object operator()(std::int64_t value) const { return nb::int_(value); }
  nb::object operator()(double value) const { return nb::float_(value); }
  nb::object operator()(DType value) const {
    return nb::make_tuple("dtype", std::string(to_string(value)));
  }
  nb::object operator()(const NamedArg& value) const {
    return nb::make_tuple("named", value.name);
  }
  nb::object operator()(const TensorArg&) const { return nb::none(); }
  nb::object operator()(const std::vector<TensorArg>& list) const {
    nb::list out;
    for (std::size_t i = 0; i < list.size(); ++i) out.append(nb::none());
    return out;
  }
  template <class T>
  nb::object operator()(const T& value) const {
    return nb::cast(value);
  }
};

}  // namespace

Call call_of(const OpLibrary& library, const std::string& name,
             const nb::sequence& args, const nb::dict& kwargs) {
  auto function = library.find(name);
  if (function == nullptr) {
    raise(Error{ErrorCode::kUnknownOperator,
                "`" + name + "` is not a declared operator",
                {},
                {},
                library.suggest(name)});
  }
  const std::vector<ArgumentSchema>& declared = function->arguments();
  // Arguments are read in declared order, so that operands keep their numbers.
  std::vector<nb::object> placed(declared.size());
  std::vector<GivenArgument> given;
  Reader reader;
  std::size_t positional = 0;
  while (positional < declared.size() && !declared[positional].keyword_only) {
    ++positional;
  }
  std::size_t next = 0;
  for (nb::handle value : args) {
    if (next == positional) {
      raise(Error{ErrorCode::kUnknownArgument,
                  "`" + name + "` is given " + std::to_string(nb::len(args)) +
                      " positional arguments and takes " +
                      std::to_string(positional),
                  {},
                  {},
                  to_string(*function)});
    }
    placed[next++] = nb::borrow(value);
  }
  for (const auto& [key, value] : kwargs) {
    std::string keyword = nb::cast<std::string>(key);
    const auto at = function->argument_index(keyword);
    if (!at) {
      given.push_back({std::move(keyword), NoneArg{}});
      continue;
    }
    if (*at < next) {
      raise(Error{ErrorCode::kUnknownArgument,
                  "`" + name + "` is given its argument `" + keyword +
                      "` by position and by name",
                  {},
                  {},
                  to_string(*function)});
    }
    placed[*at] = nb::borrow(value);
  }
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (!placed[i].is_valid()) continue;
    given.push_back({declared[i].name, reader.read(placed[i], declared[i])});
  }
  std::vector<TensorMeta> metas;
  for (const TensorSpec& spec : reader.operands) metas.push_back(spec.meta());
  return {value_of(make_op_schema(std::move(function), std::move(given),
                                  std::move(metas))),
          std::move(reader.operands)};
}

nb::object to_python(const Argument& argument) {
  return std::visit(ToPython{}, argument);
}

}  // namespace shardprop::python

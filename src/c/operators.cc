// Libraries of operators, and calls of them.

#include "c/boundary.h"

#include <shardprop/ops/rule_text.h>
#include <shardprop/placement/dtype.h>
#include <shardprop/request/operator_file.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace shardprop;     // NOLINT(google-build-using-namespace)
using namespace shardprop::c;  // NOLINT(google-build-using-namespace)

namespace {

// AddedTensors is the tensors that one argument adds to a call. It removes them
// again unless keep() is called.
class AddedTensors {
 public:
  explicit AddedTensors(CallObject& call)
      : call_(call), first_(call.specs.size()) {}
  ~AddedTensors() {
    if (is_kept_) return;
    call_.specs.erase(call_.specs.begin() + static_cast<std::ptrdiff_t>(first_),
                      call_.specs.end());
  }
  AddedTensors(const AddedTensors&) = delete;
  AddedTensors& operator=(const AddedTensors&) = delete;

  Result<TensorArg> add(const shardprop_spec* spec) {
    SP_ASSIGN(const SpecObject* given, get(spec));
    call_.specs.push_back(given->spec);
    return TensorArg{static_cast<std::int32_t>(call_.specs.size() - 1)};
  }
  void keep() { is_kept_ = true; }

 private:
  CallObject& call_;
  std::size_t first_;
  bool is_kept_ = false;
};

// Adds one argument after those given. After an error the call is as before.
template <class Make>
shardprop_error* add_argument(shardprop_call* call, const char* name,
                              const Make& make) {
  return barrier([&]() -> Result<void> {
    SP_ASSIGN(CallObject * to, get(call));
    AddedTensors tensors(*to);
    SP_ASSIGN(Argument value, make(tensors));
    to->given.push_back({name == nullptr ? "" : name, std::move(value)});
    to->made.reset();
    tensors.keep();
    return {};
  });
}

template <class T, class From>
Result<Argument> list_of(const From* values, int64_t count) {
  SP_ASSIGN(const std::size_t size, count_of(values, count, "values"));
  return Argument(std::vector<T>(values, values + size));
}

}  // namespace

shardprop_error* shardprop_library_standard(shardprop_library** library) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(library, "library"));
    return give(library, OpLibrary::standard());
  });
}

shardprop_error* shardprop_library_add(const shardprop_library* library,
                                       const char* declaration,
                                       const char* name, const char* form,
                                       shardprop_library** with) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(with, "with"));
    SP_ASSIGN(const auto* from, get(library));
    SP_ASSIGN(const char* row, text_of(form, "form"));
    OpLibrary::Addition addition;
    if (declaration != nullptr) addition.declaration = declaration;
    if (name != nullptr) addition.name = name;
    if (declaration == nullptr && name == nullptr) {
      return fail(ErrorCode::kInvalidArgument,
                  "a row has neither a declaration nor a name",
                  "give one of them");
    }
    SP_ASSIGN(addition.definition, parse_definition(row));
    std::vector<std::shared_ptr<const FunctionSchema>> overloads;
    if (declaration == nullptr) overloads = overloads_of_row(**from, name);
    if (declaration != nullptr) {
      SP_ASSIGN(FunctionSchema schema, FunctionSchema::parse(declaration));
      overloads.push_back(
          std::make_shared<const FunctionSchema>(std::move(schema)));
    }
    SP_CHECK(check_rule(row, overloads, **from));
    SP_ASSIGN(auto made, (*from)->with(std::move(addition)));
    return give(with, std::move(made));
  });
}

shardprop_error* shardprop_library_read(const shardprop_library* library,
                                        const char* file,
                                        shardprop_library** with) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(with, "with"));
    SP_ASSIGN(const auto* from, get(library));
    SP_ASSIGN(const char* path, text_of(file, "file"));
    SP_ASSIGN(auto made, library_with_file(**from, path));
    return give(with, std::move(made));
  });
}
void shardprop_library_free(shardprop_library* library) { release(library); }

shardprop_error* shardprop_call_create(const shardprop_library* library,
                                       const char* op, shardprop_call** call) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(call, "call"));
    SP_ASSIGN(const auto* in, get(library));
    SP_ASSIGN(const char* name, text_of(op, "op"));
    CallObject made;
    made.library = *in;
    made.function = made.library->find(name);
    if (made.function == nullptr) {
      return fail(
          Error{ErrorCode::kUnknownOperator,
                "`" + std::string(name).substr(0, 80) +
                    "` is not a declared operator",
                {},
                {},
                made.library->suggest(std::string(name).substr(0, 80))});
    }
    return give(call, std::move(made));
  });
}

shardprop_error* shardprop_call_clear(shardprop_call* call) {
  return barrier([&]() -> Result<void> {
    SP_ASSIGN(CallObject * of, get(call));
    of->given.clear();
    of->specs.clear();
    of->made.reset();
    of->operands.clear();
    return {};
  });
}

shardprop_error* shardprop_call_tensor(shardprop_call* call, const char* name,
                                       const shardprop_spec* spec) {
  return add_argument(call, name, [&](AddedTensors& to) -> Result<Argument> {
    SP_ASSIGN(const TensorArg tensor, to.add(spec));
    return Argument(tensor);
  });
}

shardprop_error* shardprop_call_tensors(shardprop_call* call, const char* name,
                                        const shardprop_spec* const* specs,
                                        int64_t count) {
  return add_argument(call, name, [&](AddedTensors& to) -> Result<Argument> {
    SP_ASSIGN(const std::size_t size, count_of(specs, count, "specs"));
    std::vector<TensorArg> list(size);
    for (std::size_t i = 0; i < size; ++i) {
      if (specs[i] == nullptr) continue;
      SP_ASSIGN(list[i], to.add(specs[i]));
    }
    return Argument(std::move(list));
  });
}

shardprop_error* shardprop_call_none(shardprop_call* call, const char* name) {
  return add_argument(call, name, [&](AddedTensors&) -> Result<Argument> {
    return Argument(NoneArg{});
  });
}
shardprop_error* shardprop_call_bool(shardprop_call* call, const char* name,
                                     int32_t value) {
  return add_argument(call, name, [&](AddedTensors&) -> Result<Argument> {
    return Argument(value != 0);
  });
}
shardprop_error* shardprop_call_int(shardprop_call* call, const char* name,
                                    int64_t value) {
  return add_argument(call, name, [&](AddedTensors&) -> Result<Argument> {
    return Argument(static_cast<std::int64_t>(value));
  });
}
shardprop_error* shardprop_call_float(shardprop_call* call, const char* name,
                                      double value) {
  return add_argument(call, name, [&](AddedTensors&) -> Result<Argument> {
    return Argument(value);
  });
}
shardprop_error* shardprop_call_string(shardprop_call* call, const char* name,
                                       const char* value) {
  return add_argument(call, name, [&](AddedTensors&) -> Result<Argument> {
    SP_ASSIGN(const char* text, text_of(value, "value"));
    return Argument(std::string(text));
  });
}
shardprop_error* shardprop_call_dtype(shardprop_call* call, const char* name,
                                      const char* dtype) {
  return add_argument(call, name, [&](AddedTensors&) -> Result<Argument> {
    SP_ASSIGN(const char* text, text_of(dtype, "dtype"));
    SP_ASSIGN(const DType parsed, parse_dtype(text));
    return Argument(parsed);
  });
}
shardprop_error* shardprop_call_ints(shardprop_call* call, const char* name,
                                     const int64_t* values, int64_t count) {
  return add_argument(call, name, [&](AddedTensors&) {
    return list_of<std::int64_t>(values, count);
  });
}
shardprop_error* shardprop_call_floats(shardprop_call* call, const char* name,
                                       const double* values, int64_t count) {
  return add_argument(call, name, [&](AddedTensors&) {
    return list_of<double>(values, count);
  });
}
void shardprop_call_free(shardprop_call* call) { release(call); }

#include "io/pt2_rebind.h"

#include "base/index.h"
#include "base/try.h"
#include "io/input_sizes.h"
#include "io/size_forms.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace shardprop::pt2 {
namespace {

// `Follows` states whether a number of the program may follow a size, if only one
// export is known.
enum class Follows : std::uint8_t {
  kSize,      // an argument that is a size: it does if a size divides it
  kShape,     // of a tensor, whose shape follows from arguments: the same
  kUnknown,   // a scalar: a size or a constant
  kConstant,  // a dim, a count
};

// Converts `others`, which hold the same alternative, to pointers.
template <class T>
std::optional<std::vector<const T*>> same_kind(
    const std::vector<const Argument*>& others) {
  std::vector<const T*> out;
  for (const Argument* other : others) {
    const T* one = std::get_if<T>(other);
    if (one == nullptr) return std::nullopt;
    out.push_back(one);
  }
  return out;
}

bool equal(const None&, const None&) { return true; }
bool equal(const TensorName& a, const TensorName& b) {
  return a.name == b.name;
}
bool equal(const TensorNames& a, const TensorNames& b) { return a == b; }
bool equal(const Text& a, const Text& b) { return a.text == b.text; }
bool equal(const TextList& a, const TextList& b) { return a.texts == b.texts; }
bool equal(bool a, bool b) { return a == b; }
bool equal(const std::vector<bool>& a, const std::vector<bool>& b) {
  return a == b;
}
bool equal(const std::complex<double>& a, const std::complex<double>& b) {
  return a == b;
}
bool equal(const ScalarType& a, const ScalarType& b) {
  return a.number == b.number;
}
bool equal(const MemoryFormat& a, const MemoryFormat& b) {
  return a.number == b.number;
}
bool equal(const Layout& a, const Layout& b) { return a.number == b.number; }
bool equal(const Device& a, const Device& b) {
  return a.type == b.type && a.index == b.index;
}
bool equal(const Foreign& a, const Foreign& b) {
  return a.kind == b.kind && a.name == b.name && a.tensors == b.tensors;
}

std::string shown(std::string_view name) {
  return '`' + std::string(name.substr(0, 80)) + '`';
}

class Rebinding {
 public:
  Rebinding(const SizeForms& forms, const OpLibrary& library)
      : forms_(forms), library_(library) {}

  // Rebinds a graph and its regions. `others` are the same graph at the other
  // exports.
  Result<void> run(GraphBody& body,
                   const std::vector<const GraphBody*>& others);

 private:
  Result<void> node(Node& node, const std::vector<const Node*>& others);
  Result<void> argument(Argument& value,
                        const std::vector<const Argument*>& others,
                        Follows follows);
  Result<void> tensor(Tensor& tensor, const std::vector<const Tensor*>& others);
  Result<void> value(SymValue& value,
                     const std::vector<const SymValue*>& others);

  template <class T>
  Result<void> convert(T& value, const std::vector<const T*>& others,
                       Follows follows);
  Result<void> number(std::int64_t& value, std::vector<std::int64_t> seen,
                      Follows follows) const;
  Result<void> real(double& value, std::vector<double> seen,
                    Follows follows) const;
  Follows follows(const Node& node, std::size_t argument) const;

  Error ambiguous(const std::string& number) const;
  static Error differ(std::string what) {
    return {ErrorCode::kInvalidArgument,
            "the exports are not one program: " + std::move(what),
            {},
            {},
            "export the same model at both sizes, with the same PyTorch; a "
            "model that branches on its sizes has no common graph"};
  }

  const SizeForms& forms_;
  const OpLibrary& library_;
};

Error Rebinding::ambiguous(const std::string& number) const {
  const FreeSize& size = forms_.sizes().front();
  return {ErrorCode::kInvalidArgument,
          "one export does not tell whether " + number + " follows the sizes",
          {},
          {},
          "export the program at other sizes too, and give both: --size " +
              size.name + "=" + std::to_string(size.wanted) +
              " --other-size GRAPH2"};
}

Result<void> Rebinding::number(std::int64_t& value,
                               std::vector<std::int64_t> seen,
                               Follows follows) const {
  const bool is_size = follows == Follows::kSize || follows == Follows::kShape;
  if (forms_.exports() == 1 && !is_size) {
    if (follows == Follows::kUnknown && forms_.may_follow(value)) {
      return fail(ambiguous(std::to_string(value)));
    }
    return {};
  }
  if (forms_.exports() == 1 && follows == Follows::kSize &&
      forms_.is_next_to_size(value)) {
    return fail(ambiguous(std::to_string(value)));
  }
  SP_ASSIGN(value, forms_.number(seen));
  return {};
}

Result<void> Rebinding::real(double& value, std::vector<double> seen,
                             Follows follows) const {
  if (forms_.exports() == 1 && follows != Follows::kConstant &&
      forms_.may_follow(value)) {
    return fail(ambiguous(std::to_string(value)));
  }
  SP_ASSIGN(value, forms_.real(seen));
  return {};
}

template <class T>
Result<void> Rebinding::convert(T& value, const std::vector<const T*>& others,
                                Follows follows) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    std::vector<T> seen{value};
    for (const T* other : others) seen.push_back(*other);
    return number(value, std::move(seen), follows);
  } else if constexpr (std::is_same_v<T, double>) {
    std::vector<T> seen{value};
    for (const T* other : others) seen.push_back(*other);
    return real(value, std::move(seen), follows);
  } else if constexpr (std::is_same_v<T, SymName>) {
    std::vector<std::int64_t> seen{value.value};
    for (const SymName* other : others) {
      if (other->is_name() != value.is_name() || other->name != value.name) {
        return fail(differ("a size has another name"));
      }
      seen.push_back(other->value);
    }
    if (value.is_name()) return {};
    return number(value.value, std::move(seen), follows);
  } else if constexpr (std::is_same_v<T, SymFloat>) {
    std::vector<double> seen{value.value};
    for (const SymFloat* other : others) {
      if (other->name != value.name) {
        return fail(differ("a number has another name"));
      }
      seen.push_back(other->value);
    }
    return real(value.value, std::move(seen), follows);
  } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>> ||
                       std::is_same_v<T, std::vector<double>> ||
                       std::is_same_v<T, std::vector<SymName>>) {
    for (const T* other : others) {
      if (other->size() != value.size()) {
        return fail(differ("a list has " + std::to_string(value.size()) +
                           " and " + std::to_string(other->size()) +
                           " elements"));
      }
    }
    for (std::size_t i = 0; i < value.size(); ++i) {
      std::vector<const typename T::value_type*> elements;
      for (const T* other : others) elements.push_back(&(*other)[i]);
      SP_CHECK(convert(value[i], elements, follows));
    }
    return {};
  } else if constexpr (std::is_same_v<T, Subgraph>) {
    std::vector<const GraphBody*> bodies;
    for (const Subgraph* other : others) {
      if ((other->body == nullptr) != (value.body == nullptr)) {
        return fail(differ("a region has no graph"));
      }
      bodies.push_back(other->body.get());
    }
    if (value.body == nullptr) return {};
    auto body = std::make_shared<GraphBody>(*value.body);
    SP_CHECK(run(*body, bodies));
    value.body = std::move(body);
    return {};
  } else {
    for (const T* other : others) {
      if (!equal(value, *other)) return fail(differ("an argument differs"));
    }
    return {};
  }
}

Result<void> Rebinding::argument(Argument& value,
                                 const std::vector<const Argument*>& others,
                                 Follows follows) {
  return std::visit(
      [&](auto& one) -> Result<void> {
        using T = std::remove_reference_t<decltype(one)>;
        const auto same = same_kind<T>(others);
        if (!same) return fail(differ("an argument is of another kind"));
        return convert(one, *same, follows);
      },
      value);
}

// A declaration marks the arguments that are sizes as SymInt. The ends of a range
// are scalars, and determine its size too.
Follows Rebinding::follows(const Node& node, std::size_t argument) const {
  const auto function = library_.find(node.target);
  if (function == nullptr) return Follows::kUnknown;
  const std::string_view name = node.inputs[argument].name;
  const auto at =
      name.empty() ? std::optional(argument) : function->argument_index(name);
  if (!at || *at >= function->arguments().size()) return Follows::kUnknown;
  const ArgumentSchema& declared = function->arguments()[*at];
  if (declared.type_name == "SymInt") return Follows::kSize;
  if (function->base_name() == "arange") return Follows::kSize;
  if (declared.type == ArgumentType::kScalar ||
      declared.type == ArgumentType::kFloat) {
    return Follows::kUnknown;
  }
  return Follows::kConstant;
}

Result<void> Rebinding::node(Node& node,
                             const std::vector<const Node*>& others) {
  const auto same_list = [&](auto list) -> Result<void> {
    for (const Node* other : others) {
      if ((other->*list).size() != (node.*list).size()) {
        return fail(differ("a call has more arguments or results"));
      }
    }
    return {};
  };
  for (const Node* other : others) {
    if (other->target == node.target && other->name == node.name) continue;
    return fail(differ(shown(node.name) + " (" + std::string(node.target) +
                       ") is " + shown(other->name) + " (" +
                       std::string(other->target) + ") there"));
  }
  SP_CHECK(same_list(&Node::inputs));
  SP_CHECK(same_list(&Node::outputs));
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    std::vector<const Argument*> arguments;
    for (const Node* other : others) {
      if (other->inputs[i].name != node.inputs[i].name) {
        return fail(differ("an argument has another name"));
      }
      arguments.push_back(&other->inputs[i].value);
    }
    auto done = argument(node.inputs[i].value, arguments, follows(node, i));
    if (!done) {
      const std::string_view name = node.inputs[i].name;
      return fail(std::move(done).error().at(
          name.empty() ? "argument " + std::to_string(i) : std::string(name)));
    }
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    std::vector<const Argument*> results;
    for (const Node* other : others) results.push_back(&other->outputs[i]);
    SP_CHECK(argument(node.outputs[i], results, Follows::kSize));
  }
  return {};
}

Result<void> Rebinding::value(SymValue& value,
                              const std::vector<const SymValue*>& others) {
  std::vector<std::int64_t> seen{value.value.value_or(0)};
  for (const SymValue* other : others) {
    if (other->is_symbolic() != value.is_symbolic() ||
        other->expression != value.expression ||
        other->value.has_value() != value.value.has_value()) {
      return fail(differ("a size is symbolic"));
    }
    seen.push_back(other->value.value_or(0));
  }
  if (!value.value) return {};
  return number(*value.value, std::move(seen), Follows::kShape);
}

Result<void> Rebinding::tensor(Tensor& tensor,
                               const std::vector<const Tensor*>& others) {
  for (const Tensor* other : others) {
    if (other->name != tensor.name || other->dtype != tensor.dtype ||
        other->sizes.size() != tensor.sizes.size() ||
        other->strides.size() != tensor.strides.size()) {
      return fail(differ(shown(tensor.name) + " is another tensor there"));
    }
  }
  for (auto list : {&Tensor::sizes, &Tensor::strides}) {
    for (std::size_t i = 0; i < (tensor.*list).size(); ++i) {
      std::vector<const SymValue*> values;
      for (const Tensor* other : others) values.push_back(&(other->*list)[i]);
      SP_CHECK(value((tensor.*list)[i], values));
    }
  }
  return {};
}

Result<void> Rebinding::run(GraphBody& body,
                            const std::vector<const GraphBody*>& others) {
  for (const GraphBody* other : others) {
    if (other->nodes.size() != body.nodes.size() ||
        other->tensors.size() != body.tensors.size() ||
        other->scalars.size() != body.scalars.size() ||
        other->inputs.size() != body.inputs.size() ||
        other->outputs.size() != body.outputs.size()) {
      return fail(differ("they have " + std::to_string(body.nodes.size()) +
                         " and " + std::to_string(other->nodes.size()) +
                         " nodes, or other inputs and results"));
    }
  }
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    std::vector<const Node*> nodes;
    for (const GraphBody* other : others) nodes.push_back(&other->nodes[i]);
    if (auto done = node(body.nodes[i], nodes); !done) {
      return fail(
          std::move(done).error().at("node " + shown(body.nodes[i].name)));
    }
  }
  for (std::size_t i = 0; i < body.tensors.size(); ++i) {
    std::vector<const Tensor*> tensors;
    for (const GraphBody* other : others) tensors.push_back(&other->tensors[i]);
    if (auto done = tensor(body.tensors[i], tensors); !done) {
      return fail(
          std::move(done).error().at("tensor " + shown(body.tensors[i].name)));
    }
  }
  for (std::size_t i = 0; i < body.scalars.size(); ++i) {
    std::vector<const SymValue*> values;
    for (const GraphBody* other : others) {
      if (other->scalars[i].name != body.scalars[i].name) {
        return fail(differ("a size has another name"));
      }
      values.push_back(&other->scalars[i].value);
    }
    SP_CHECK(value(body.scalars[i].value, values));
  }
  return {};
}

}  // namespace

bool has_symbolic_inputs(const Program& program) {
  return std::any_of(
      program.input_specs.begin(), program.input_specs.end(),
      [&](const InputSpec& spec) {
        if (spec.role != InputKind::kUser || spec.value.empty()) return false;
        const auto tensor =
            std::find_if(program.tensors.begin(), program.tensors.end(),
                         [&](const Tensor& t) { return t.name == spec.value; });
        return tensor != program.tensors.end() &&
               std::any_of(tensor->sizes.begin(), tensor->sizes.end(),
                           [](const SymValue& s) { return s.is_symbolic(); });
      });
}

Result<void> rebind_sizes(Program& program,
                          const std::vector<const Program*>& others,
                          const OpLibrary& library,
                          std::map<std::string, std::int64_t>& sizes) {
  std::vector<const Program*> exports{&program};
  std::vector<const GraphBody*> bodies;
  for (const Program* other : others) {
    exports.push_back(other);
    bodies.push_back(other);
  }
  SP_ASSIGN(std::vector<FreeSize> free, free_sizes(exports, sizes));
  if (free.empty()) return {};
  const SizeForms forms(std::move(free));
  return Rebinding(forms, library).run(program, bodies);
}

}  // namespace shardprop::pt2

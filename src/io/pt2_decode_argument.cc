#include "io/pt2_decode_argument.h"

#include <algorithm>
#include <string>

namespace shardprop::pt2 {
namespace {

// Lists of operators are far shorter. The limit bounds the memory of a list
// while it is read.
constexpr std::size_t kMostElements = 65536;

template <class List, class ReadElement>
List read_list(JsonReader& json, ReadElement read_element) {
  List list;
  json.array([&] {
    if (list.size() == kMostElements) {
      json.fail(ErrorCode::kListTooLong, "a list of more than " +
                                             std::to_string(kMostElements) +
                                             " elements stands as an argument");
      return;
    }
    list.push_back(read_element());
  });
  list.shrink_to_fit();
  return list;
}

std::optional<std::int64_t> read_optional_integer(JsonReader& json) {
  if (json.null()) return std::nullopt;
  return json.integer();
}

// Reads {"as_name": "s"} or {"as_int": 3} (also as_bool and as_float).
SymName read_sym_name(JsonReader& json) {
  SymName out;
  read_union(json, [&](std::string_view tag) {
    if (tag == "as_name") {
      out.name = json.string();
    } else if (tag == "as_int") {
      out.value = json.integer();
    } else if (tag == "as_bool") {
      out.value = json.boolean() ? 1 : 0;
    } else {
      unknown_variant(json, tag);
    }
  });
  return out;
}

SymFloat read_sym_float(JsonReader& json) {
  SymFloat out;
  read_union(json, [&](std::string_view tag) {
    if (tag == "as_name") {
      out.name = json.string();
    } else if (tag == "as_float") {
      out.value = json.number();
    } else {
      unknown_variant(json, tag);
    }
  });
  return out;
}

// {"as_tensor": {"name": "x"}} or {"as_none": true}.
std::string_view read_optional_tensor(JsonReader& json) {
  std::string_view name;
  read_union(json, [&](std::string_view tag) {
    if (tag == "as_tensor") {
      name = read_name(json);
    } else if (tag == "as_none") {
      json.skip();
    } else {
      unknown_variant(json, tag);
    }
  });
  return name;
}

std::complex<double> read_complex(JsonReader& json) {
  double real = 0;
  double imag = 0;
  json.object([&](std::string_view key) {
    if (key == "real") {
      real = json.number();
    } else if (key == "imag") {
      imag = json.number();
    } else {
      json.skip();
    }
  });
  return {real, imag};
}

std::vector<std::int64_t> read_integers(JsonReader& json) {
  return read_list<std::vector<std::int64_t>>(json,
                                              [&] { return json.integer(); });
}

Argument read_optional_tensor_argument(JsonReader& json) {
  const std::string_view name = read_optional_tensor(json);
  if (name.data() == nullptr) return None{};
  return TensorName{name};
}

struct Variant {
  std::string_view tag;
  Argument (*read)(JsonReader&);
};

Argument foreign(JsonReader& json, std::string_view kind) {
  json.skip();
  return Foreign{kind, {}, {}};
}

// {"name": "true_graph_0", "graph": {...}}
Argument read_subgraph(JsonReader& json) {
  Subgraph out;
  auto body = std::make_shared<GraphBody>();
  json.object([&](std::string_view key) {
    if (key == "name") {
      out.name = json.string();
    } else if (key == "graph") {
      read_graph(json, *body);
    } else {
      json.skip();
    }
  });
  out.body = std::move(body);
  return out;
}

Argument read_operator(JsonReader& json) {
  return Foreign{"as_operator", json.string(), {}};
}

Argument read_nested_tensors(JsonReader& json) {
  Foreign out{"as_nested_tensors", {}, {}};
  json.array(
      [&] { json.array([&] { out.tensors.push_back(read_name(json)); }); });
  return out;
}

// Reads a dict. Only its tensors are kept, because the graph needs only them.
Argument read_dict(JsonReader& json) {
  Foreign out{"as_string_to_argument", {}, {}};
  json.members([&](std::string_view) {
    const Argument value = read_argument(json);
    if (const auto* tensor = std::get_if<TensorName>(&value)) {
      out.tensors.push_back(tensor->name);
    }
    if (const auto* list = std::get_if<TensorNames>(&value)) {
      out.tensors.insert(out.tensors.end(), list->begin(), list->end());
    }
  });
  return out;
}

constexpr Variant kVariants[] = {
    {"as_tensor",
     [](JsonReader& j) -> Argument { return TensorName{read_name(j)}; }},
    {"as_int", [](JsonReader& j) -> Argument { return j.integer(); }},
    {"as_ints", [](JsonReader& j) -> Argument { return read_integers(j); }},
    {"as_none",
     [](JsonReader& j) -> Argument {
       j.skip();
       return None{};
     }},
    {"as_float", [](JsonReader& j) -> Argument { return j.number(); }},
    {"as_floats",
     [](JsonReader& j) -> Argument {
       return read_list<std::vector<double>>(j, [&] { return j.number(); });
     }},
    {"as_bool", [](JsonReader& j) -> Argument { return j.boolean(); }},
    {"as_bools",
     [](JsonReader& j) -> Argument {
       return read_list<std::vector<bool>>(j, [&] { return j.boolean(); });
     }},
    {"as_tensors",
     [](JsonReader& j) -> Argument {
       return read_list<TensorNames>(j, [&] { return read_name(j); });
     }},
    {"as_optional_tensors",
     [](JsonReader& j) -> Argument {
       return read_list<TensorNames>(j,
                                     [&] { return read_optional_tensor(j); });
     }},
    {"as_optional_tensor", read_optional_tensor_argument},
    {"as_string", [](JsonReader& j) -> Argument { return Text{j.string()}; }},
    {"as_strings",
     [](JsonReader& j) -> Argument {
       return TextList{read_list<std::vector<std::string_view>>(
           j, [&] { return j.string(); })};
     }},
    {"as_sym_int", [](JsonReader& j) -> Argument { return read_sym_name(j); }},
    {"as_sym_bool", [](JsonReader& j) -> Argument { return read_sym_name(j); }},
    {"as_sym_ints",
     [](JsonReader& j) -> Argument {
       return read_list<std::vector<SymName>>(j,
                                              [&] { return read_sym_name(j); });
     }},
    {"as_sym_bools",
     [](JsonReader& j) -> Argument {
       return read_list<std::vector<SymName>>(j,
                                              [&] { return read_sym_name(j); });
     }},
    {"as_sym_float",
     [](JsonReader& j) -> Argument { return read_sym_float(j); }},
    {"as_complex", [](JsonReader& j) -> Argument { return read_complex(j); }},
    {"as_scalar_type",
     [](JsonReader& j) -> Argument { return ScalarType{j.integer()}; }},
    {"as_memory_format",
     [](JsonReader& j) -> Argument { return MemoryFormat{j.integer()}; }},
    {"as_layout",
     [](JsonReader& j) -> Argument { return Layout{j.integer()}; }},
    {"as_device", [](JsonReader& j) -> Argument { return read_device(j); }},
    {"as_graph", read_subgraph},
    {"as_custom_obj",
     [](JsonReader& j) -> Argument { return foreign(j, "as_custom_obj"); }},
    {"as_operator", read_operator},
    {"as_sym_floats",
     [](JsonReader& j) -> Argument { return foreign(j, "as_sym_floats"); }},
    {"as_nested_tensors", read_nested_tensors},
    {"as_int_lists",
     [](JsonReader& j) -> Argument { return foreign(j, "as_int_lists"); }},
    {"as_string_to_argument", read_dict},
};

}  // namespace

Device read_device(JsonReader& json) {
  Device device;
  json.object([&](std::string_view key) {
    if (key == "type") {
      device.type = json.string();
    } else if (key == "index") {
      device.index = read_optional_integer(json);
    } else {
      json.skip();
    }
  });
  return device;
}

void unknown_variant(JsonReader& json, std::string_view tag) {
  constexpr std::size_t kMostShown = 40;
  json.fail(
      ErrorCode::kUnknownVariant,
      "`" + std::string(tag.substr(0, kMostShown)) + "` is not a known variant",
      "the file was changed by hand, or written by a newer release");
}

std::string_view read_name(JsonReader& json) {
  std::string_view name;
  json.object([&](std::string_view key) {
    if (key == "name") {
      name = json.string();
    } else {
      json.skip();
    }
  });
  if (json.ok() && name.empty()) {
    json.fail(ErrorCode::kFieldMissing, "a tensor has no `name`");
  }
  return name;
}

SymValue read_sym_value(JsonReader& json) {
  SymValue out;
  const auto read_hint = [&] {
    if (json.null()) return;
    read_union(json, [&](std::string_view tag) {
      if (tag == "as_int") {
        out.value = json.integer();
      } else if (tag == "as_bool") {
        out.value = json.boolean() ? 1 : 0;
      } else {
        json.skip();
      }
    });
  };
  read_union(json, [&](std::string_view tag) {
    if (tag == "as_int") {
      out.value = json.integer();
    } else if (tag == "as_bool") {
      out.value = json.boolean() ? 1 : 0;
    } else if (tag == "as_float") {
      json.number();
    } else if (tag == "as_expr") {
      json.object([&](std::string_view key) {
        if (key == "expr_str") {
          out.expression = json.string();
        } else if (key == "hint") {
          read_hint();
        } else {
          json.skip();
        }
      });
    } else {
      unknown_variant(json, tag);
    }
  });
  return out;
}

Argument read_argument(JsonReader& json) {
  Argument out = None{};
  read_union(json, [&](std::string_view tag) {
    const auto* const found = std::find_if(
        std::begin(kVariants), std::end(kVariants),
        [&](const Variant& variant) { return variant.tag == tag; });
    if (found == std::end(kVariants)) {
      unknown_variant(json, tag);
    } else {
      out = found->read(json);
    }
  });
  return out;
}

}  // namespace shardprop::pt2

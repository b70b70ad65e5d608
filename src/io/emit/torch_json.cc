#include "io/emit/torch_json.h"

#include "base/index.h"
#include "io/pt2_values.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <array>

namespace shardprop::emit {
namespace {

std::int64_t memory_format(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {
      "unknown", "contiguous_format", "channels_last", "channels_last_3d",
      "preserve_format"};
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? 0 : found - kNames.begin();
}

std::int64_t layout_number(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {
      "unknown",    "sparse_coo", "sparse_csr", "sparse_csc",
      "sparse_bsr", "sparse_bsc", "_mkldnn",    "strided"};
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? 0 : found - kNames.begin();
}

}  // namespace

std::int64_t scalar_type(DType dtype) {
  for (std::int64_t number = 1; number < 64; ++number) {
    if (pt2::dtype_of(number) == dtype) return number;
  }
  throw InternalError("a dtype that torch does not have");
}

void write_meta(JsonText& json, const TensorMeta& meta, bool requires_grad,
                std::string_view device, bool one_element) {
  const auto as_int = [&](std::int64_t value) {
    json.open('{').key("as_int").number(value).close('}');
  };
  json.open('{').key("dtype").number(scalar_type(meta.dtype()));
  json.key("sizes").open('[');
  for (const std::int64_t size : meta.shape()) as_int(size);
  json.close(']').key("requires_grad").boolean(requires_grad);
  json.key("device").open('{').key("type").text(device);
  json.key("index").null().close('}');
  json.key("strides").open('[');
  for (const std::int64_t stride : meta.strides()) {
    as_int(one_element ? 0 : stride);
  }
  json.close(']').key("storage_offset").raw("{\"as_int\":0}");
  json.key("layout").number(7).close('}');
}

void TorchJson::name_object(TorchId id) {
  json_.open('{').key("name").text(name(id)).close('}');
}
void TorchJson::tensor(TorchId id) {
  if (!id.valid()) {
    json_.raw("{\"as_none\":true}");
    return;
  }
  json_.open('{').key("as_tensor");
  name_object(id);
  json_.close('}');
}

void TorchJson::tensors(const std::vector<TorchId>& ids) {
  json_.open('{').key("as_tensors").open('[');
  for (const TorchId id : ids) name_object(id);
  json_.close(']').close('}');
}

void TorchJson::argument(const TorchArgument& argument,
                         const ArgumentSchema& declared) {
  if (const auto* id = std::get_if<TorchId>(&argument)) return tensor(*id);
  if (const auto* list = std::get_if<std::vector<TorchId>>(&argument)) {
    if (!declared.elements_optional) return tensors(*list);
    json_.open('{').key("as_optional_tensors").open('[');
    for (const TorchId id : *list) tensor(id);
    json_.close(']').close('}');
    return;
  }
  std::visit([&](const auto& own) { value(own, declared); },
             std::get<Argument>(argument));
}

void TorchJson::value(NoneArg, const ArgumentSchema&) {
  json_.raw("{\"as_none\":true}");
}

void TorchJson::value(bool held, const ArgumentSchema& declared) {
  if (declared.type == ArgumentType::kInt) {
    return value(std::int64_t{held}, declared);
  }
  tagged("as_bool", [&] { json_.boolean(held); });
}

void TorchJson::value(std::int64_t held, const ArgumentSchema& declared) {
  if (declared.is_list) {
    // A single number fills the list.
    const auto count = index(declared.list_size.value_or(1));
    return value(std::vector<std::int64_t>(count, held), declared);
  }
  if (declared.type == ArgumentType::kFloat) {
    return value(static_cast<double>(held), declared);
  }
  tagged("as_int", [&] { json_.number(held); });
}

void TorchJson::value(double held, const ArgumentSchema&) {
  tagged("as_float", [&] { json_.real(held); });
}

void TorchJson::value(std::complex<double> held, const ArgumentSchema&) {
  tagged("as_complex", [&] {
    json_.open('{').key("real").real(held.real());
    json_.key("imag").real(held.imag()).close('}');
  });
}

void TorchJson::value(const std::string& held, const ArgumentSchema&) {
  tagged("as_string", [&] { json_.text(held); });
}

void TorchJson::value(DType held, const ArgumentSchema&) {
  tagged("as_scalar_type", [&] { json_.number(scalar_type(held)); });
}

void TorchJson::value(const NamedArg& held, const ArgumentSchema& declared) {
  if (declared.type == ArgumentType::kMemoryFormat) {
    tagged("as_memory_format", [&] { json_.number(memory_format(held.name)); });
  } else if (declared.type == ArgumentType::kLayout) {
    tagged("as_layout", [&] { json_.number(layout_number(held.name)); });
  } else if (declared.type == ArgumentType::kDevice) {
    tagged("as_device", [&] {
      json_.open('{').key("type").text(held.name).key("index").null();
      json_.close('}');
    });
  } else {
    value(held.name, declared);
  }
}

void TorchJson::value(TensorArg, const ArgumentSchema& declared) {
  value(NoneArg{}, declared);
}

void TorchJson::value(const std::vector<TensorArg>&,
                      const ArgumentSchema& declared) {
  value(NoneArg{}, declared);
}

void TorchJson::value(const std::vector<std::int64_t>& held,
                      const ArgumentSchema& declared) {
  if (declared.type == ArgumentType::kFloat) {
    return value(std::vector<double>(held.begin(), held.end()), declared);
  }
  if (declared.is_tensor_list()) return tensors({});
  tagged_list("as_ints", held, [&](std::int64_t one) { json_.number(one); });
}

void TorchJson::value(const std::vector<double>& held, const ArgumentSchema&) {
  tagged_list("as_floats", held, [&](double one) { json_.real(one); });
}

void TorchJson::value(const std::vector<bool>& held, const ArgumentSchema&) {
  tagged_list("as_bools", held, [&](bool one) { json_.boolean(one); });
}

void TorchJson::value(const std::vector<std::string>& held,
                      const ArgumentSchema&) {
  tagged_list("as_strings", held,
              [&](const std::string& one) { json_.text(one); });
}

}  // namespace shardprop::emit

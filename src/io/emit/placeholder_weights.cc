#include "io/emit/placeholder_weights.h"

#include "io/emit/signature_order.h"
#include "io/emit/torch_json.h"

#include <set>

namespace shardprop::emit {

PlaceholderWeights placeholder_weights(const SpmdProgram& program,
                                       const TorchProgram& torch) {
  PlaceholderWeights out;
  std::set<std::pair<bool, DType>> written;
  const auto config = [&](bool constants) {
    JsonText json;
    json.open('{').key("config").open('{');
    for (const std::size_t i : input_order(program)) {
      const ProgramInput& input = program.inputs[i];
      const InputPlace place = place_of(input.kind);
      const bool constant = place == InputPlace::kConstant ||
                            (place == InputPlace::kBuffer && !input.persistent);
      if (place == InputPlace::kUser || constant != constants) continue;
      const TensorMeta& meta = torch.graph.meta(torch.inputs[i]);
      const std::string file = std::string(constant ? "tensor_" : "weight_") +
                               std::to_string(scalar_type(meta.dtype()));
      json.key(program.value(input.value).name).open('{');
      json.key("path_name").text(file);
      json.key("is_param").boolean(place == InputPlace::kParameter);
      json.key("use_pickle").boolean(false).key("tensor_meta");
      write_meta(json, meta,
                 place == InputPlace::kParameter && is_floating(meta.dtype()),
                 "cpu", true);
      json.close('}');
      if (!written.emplace(constant, meta.dtype()).second) continue;
      out.files.emplace_back(
          (constant ? "data/constants/" : "data/weights/") + file,
          std::string(static_cast<std::size_t>(item_size(meta.dtype())), '\0'));
    }
    json.close('}').close('}');
    return json.take();
  };
  out.weights_config = config(false);
  out.constants_config = config(true);
  return out;
}

}  // namespace shardprop::emit

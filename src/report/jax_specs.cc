#include <shardprop/report/jax_specs.h>

#include "report/unsaid.h"

#include <map>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

class SpecBuilder {
 public:
  explicit SpecBuilder(const Plan& plan) : plan_(plan) {}

  JaxSpecs run() {
    std::map<std::string_view, const PlannedTensor*> tensors;
    for (const PlannedValue& value : plan_.values) {
      tensors[value.name] = &value.tensor;
      if (say(value.name, value.tensor.shape, value.tensor.layout,
              out_.inputs)) {
        const auto pin = Pin::parse("stored:" + value.name + "=" +
                                    to_string(value.tensor.layout));
        if (pin) out_.pins.push_back(*pin);
      }
      if (value.state_layout) {
        say(value.name, value.tensor.shape, *value.state_layout,
            out_.optimizer);
      }
    }
    for (const PlannedNode& node : plan_.nodes) {
      for (const PlannedResult& result : node.outputs) {
        tensors[result.name] = &result.tensor;
      }
    }
    for (const PlannedOutput& output : plan_.outputs) {
      const auto tensor = tensors.find(output.value.from);
      if (tensor == tensors.end()) continue;
      say(output.value.from, tensor->second->shape, output.value.layout,
          out_.outputs);
    }
    return std::move(out_);
  }

 private:
  bool say(const std::string& name, const Dims& shape, const Layout& layout,
           std::vector<JaxSpec>& to) {
    if (const auto why = beyond_words(shape, layout)) {
      add_unsaid(out_.unsaid, name, layout, *why);
      return false;
    }
    JaxSpec spec{name, {}};
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::vector<std::string>& axes = spec.axes.emplace_back();
      for (const std::int32_t m : layout.cuts(static_cast<int>(d))) {
        axes.push_back(plan_.mesh.name(m));
      }
    }
    to.push_back(std::move(spec));
    return true;
  }

  std::optional<std::string> beyond_words(const Dims& shape,
                                          const Layout& layout) const {
    if (layout.has_partial())
      return "a sum still to be taken is not a layout there";
    if (layout.has_strided())
      return "its shards are not one run of elements each";
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int64_t parts = 1;
      for (const std::int32_t m : layout.cuts(static_cast<int>(d))) {
        parts *= plan_.mesh.size(m);
      }
      if (shape[d] % parts != 0) {
        return std::to_string(shape[d]) + " elements in " +
               std::to_string(parts) + " shards are not of one size";
      }
    }
    return std::nullopt;
  }

  const Plan& plan_;
  JaxSpecs out_;
};

}  // namespace

JaxSpecs jax_specs(const Plan& plan) { return SpecBuilder(plan).run(); }

}  // namespace shardprop

#include "verify/host_values.h"

#include "base/try.h"
#include "execute/region_elements.h"

#include <shardprop/reference/evaluate.h>

#include <cstring>
#include <utility>
#include <vector>

namespace shardprop::verification {

OperatorEvaluator reference_evaluator(
    std::shared_ptr<const OpLibrary> library) {
  return [library = std::move(library)](const OpSchema& op,
                                        std::span<const LocalTensor> inputs)
             -> Result<std::vector<LocalTensor>> {
    std::vector<reference::Tensor> operands;
    for (const LocalTensor& input : inputs) {
      operands.push_back(as_reference(input));
    }
    SP_ASSIGN(const std::vector<reference::Tensor> made,
              reference::evaluate(*library, op, operands));
    std::vector<LocalTensor> out;
    for (const reference::Tensor& tensor : made)
      out.push_back(as_local(tensor));
    return out;
  };
}

Result<LocalTensor> part_of(const LocalTensor& whole,
                            const LocalRegion& region) {
  SP_ASSIGN(LocalTensor out, LocalTensor::empty(region.shape(), whole.dtype()));
  const std::int64_t width = item_size(whole.dtype());
  const auto* from = whole.data_as<const std::byte>();
  auto* to = out.data_as<std::byte>();
  for (const std::int64_t i : execute::elements_of(region, whole.sizes())) {
    std::memcpy(to, from + i * width, static_cast<std::size_t>(width));
    to += width;
  }
  return out;
}

}  // namespace shardprop::verification

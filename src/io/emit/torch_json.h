// Writes tensors, names and arguments as the JSON of torch.export.
//
//   argument(3, dim: int)      {"as_int":3}
//   tensor(mm_1)               {"as_tensor":{"name":"mm_1"}}
#pragma once

#include "io/emit/torch_graph.h"
#include "io/json_text.h"

#include <shardprop/ops/function_schema.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop::emit {

// Returns torch.export's number of a dtype.
std::int64_t scalar_type(DType dtype);

// Writes a tensor's sizes, dtype and strides. If one stored element represents
// all elements, the strides are 0.
void write_meta(JsonText& json, const TensorMeta& meta, bool requires_grad,
                std::string_view device, bool one_element = false);

class TorchJson {
 public:
  // `graph` and `json` must outlive the writer.
  TorchJson(JsonText& json, const TorchGraph& graph)
      : json_(json), graph_(graph) {}

  const std::string& name(TorchId id) const { return graph_[id].name; }
  void name_object(TorchId id);  // {"name":"mm_1"}
  void tensor(TorchId id);       // None where it is invalid
  void tensors(const std::vector<TorchId>& ids);
  // Writes the argument with the type that the operator declares.
  void argument(const TorchArgument& argument, const ArgumentSchema& declared);

 private:
  void value(NoneArg, const ArgumentSchema&);
  void value(bool held, const ArgumentSchema& declared);
  void value(std::int64_t held, const ArgumentSchema& declared);
  void value(double held, const ArgumentSchema&);
  void value(std::complex<double> held, const ArgumentSchema&);
  void value(const std::string& held, const ArgumentSchema&);
  void value(DType held, const ArgumentSchema&);
  void value(const NamedArg& held, const ArgumentSchema& declared);
  void value(TensorArg, const ArgumentSchema& declared);
  void value(const std::vector<TensorArg>&, const ArgumentSchema& declared);
  void value(const std::vector<std::int64_t>& held,
             const ArgumentSchema& declared);
  void value(const std::vector<double>& held, const ArgumentSchema&);
  void value(const std::vector<bool>& held, const ArgumentSchema&);
  void value(const std::vector<std::string>& held, const ArgumentSchema&);

  template <class Write>
  void tagged(std::string_view tag, const Write& write) {
    json_.open('{').key(tag);
    write();
    json_.close('}');
  }
  template <class List, class Write>
  void tagged_list(std::string_view tag, const List& list, const Write& write) {
    tagged(tag, [&] {
      json_.open('[');
      for (const auto& element : list) write(element);
      json_.close(']');
    });
  }

  JsonText& json_;
  const TorchGraph& graph_;
};

}  // namespace shardprop::emit

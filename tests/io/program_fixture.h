// A small exported program as JSON, for tests to change.
//
//   w: parameter f32[8,4], n: buffer i64[], x: f32[s77=16,8]
//   sym_size(x, 0); mm(x, w); relu; sum (the loss); add(n, 1) (n's update);
//   ones_like(relu); permute(x); mm_1(permute, ones_like) (w's gradient)
#pragma once

#include <shardprop/io/load_graph.h>

#include "support/standard_library.h"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace shardprop {

using Json = nlohmann::ordered_json;

inline Json tensor_argument(const std::string& name) {
  return {{"as_tensor", {{"name", name}}}};
}

inline Json tensor_meta(int dtype, const std::vector<int>& sizes,
                        const std::vector<int>& strides) {
  Json meta = {{"dtype", dtype},
               {"sizes", Json::array()},
               {"requires_grad", false},
               {"device", {{"type", "cpu"}}},
               {"strides", Json::array()},
               {"storage_offset", {{"as_int", 0}}},
               {"layout", 7}};
  for (const int size : sizes) meta["sizes"].push_back({{"as_int", size}});
  for (const int stride : strides) {
    meta["strides"].push_back({{"as_int", stride}});
  }
  return meta;
}

inline Json node(const std::string& name, const std::string& target,
                 const std::vector<std::pair<std::string, Json>>& inputs) {
  Json out = {
      {"target", target},
      {"inputs", Json::array()},
      {"outputs", Json::array({tensor_argument(name)})},
      {"metadata",
       {{"nn_module_stack", "L__self__,,M;L__self___fc,fc,torch.nn.Linear"},
        {"stack_trace",
         "  File \"model.py\", line 53, in forward\n    return fc(x)"}}},
      {"is_hop_single_tensor_return", nullptr},
      {"name", name}};
  for (const auto& [argument, value] : inputs) {
    out["inputs"].push_back({{"name", argument}, {"arg", value}, {"kind", 1}});
  }
  return out;
}

inline Json program_nodes() {
  Json size = node("sym_size_int", "torch.ops.aten.sym_size.int",
                   {{"self", tensor_argument("x")}, {"dim", {{"as_int", 0}}}});
  size["outputs"] =
      Json::array({{{"as_sym_int", {{"as_name", "sym_size_int"}}}}});
  return Json::array(
      {size,
       node("mm", "torch.ops.aten.mm.default",
            {{"self", tensor_argument("x")}, {"mat2", tensor_argument("p_w")}}),
       node("relu", "torch.ops.aten.relu.default",
            {{"self", tensor_argument("mm")}}),
       node("sum_1", "torch.ops.aten.sum.default",
            {{"self", tensor_argument("relu")}}),
       node("add", "torch.ops.aten.add.Tensor",
            {{"self", tensor_argument("b_n")}, {"other", {{"as_int", 1}}}}),
       node("ones_like", "torch.ops.aten.ones_like.default",
            {{"self", tensor_argument("relu")}}),
       node("permute", "torch.ops.aten.permute.default",
            {{"self", tensor_argument("x")}, {"dims", {{"as_ints", {1, 0}}}}}),
       node("mm_1", "torch.ops.aten.mm.default",
            {{"self", tensor_argument("permute")},
             {"mat2", tensor_argument("ones_like")}})});
}

inline Json program() {
  constexpr int kF32 = 7;
  constexpr int kI64 = 5;
  const Json s77 = {
      {"as_expr",
       {{"expr_str", "Symbol('s77', positive=True, integer=True)"},
        {"hint", {{"as_int", 16}}}}}};
  Json tensors = {{"p_w", tensor_meta(kF32, {8, 4}, {4, 1})},
                  {"b_n", tensor_meta(kI64, {}, {})},
                  {"x", tensor_meta(kF32, {16, 8}, {8, 1})},
                  {"mm", tensor_meta(kF32, {16, 4}, {4, 1})},
                  {"relu", tensor_meta(kF32, {16, 4}, {4, 1})},
                  {"sum_1", tensor_meta(kF32, {}, {})},
                  {"add", tensor_meta(kI64, {}, {})},
                  {"ones_like", tensor_meta(kF32, {16, 4}, {4, 1})},
                  {"permute", tensor_meta(kF32, {8, 16}, {1, 8})},
                  {"mm_1", tensor_meta(kF32, {8, 4}, {4, 1})}};
  for (const char* dynamic : {"x", "mm", "relu", "ones_like"}) {
    tensors[dynamic]["sizes"][0] = s77;
  }
  tensors["permute"]["sizes"][1] = s77;
  return {
      {"graph_module",
       {{"graph",
         {{"inputs",
           Json::array({tensor_argument("p_w"), tensor_argument("b_n"),
                        tensor_argument("x")})},
          {"outputs",
           Json::array({tensor_argument("add"), tensor_argument("sum_1"),
                        tensor_argument("mm_1")})},
          {"nodes", program_nodes()},
          {"tensor_values", tensors},
          {"sym_int_values", {{"sym_size_int", s77}}},
          {"sym_bool_values", Json::object()},
          {"is_single_tensor_return", false}}},
        {"signature",
         {{"input_specs",
           Json::array({{{"parameter",
                          {{"arg", {{"name", "p_w"}}},
                           {"parameter_name", "fc.weight"}}}},
                        {{"buffer",
                          {{"arg", {{"name", "b_n"}}},
                           {"buffer_name", "count"},
                           {"persistent", false}}}},
                        {{"user_input", {{"arg", tensor_argument("x")}}}}})},
          {"output_specs",
           Json::array(
               {{{"buffer_mutation",
                  {{"arg", {{"name", "add"}}}, {"buffer_name", "count"}}}},
                {{"loss_output", {{"arg", {{"name", "sum_1"}}}}}},
                {{"gradient_to_parameter",
                  {{"arg", {{"name", "mm_1"}}},
                   {"parameter_name", "fc.weight"}}}}})}}},
        {"module_call_graph", Json::array()}}},
      {"opset_version", {{"aten", 10}}},
      {"range_constraints", {{"s77", {{"min_val", 2}, {"max_val", 64}}}}},
      {"schema_version", {{"major", 8}, {"minor", 20}}},
      {"verifiers", Json::array({"TRAINING"})},
      {"torch_version", "2.13.0"},
      {"guards_code", Json::array({"L['x'].size()[0] >= 2"})}};
}

inline const OpLibrary& test_library() { return testing::standard_library(); }

inline Result<Graph> read_json(const Json& json) {
  return read_graph(json.dump(), "test", test_library());
}

}  // namespace shardprop

// `Foreign` is a call of an operator of another library whose rule uses a word.
#pragma once

#include "ops/rules/word_needs.h"

#include <shardprop/ops/op_library.h>
#include <shardprop/placement/tensor_meta.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {

// `Foreign` is a call of an operator that declares the needs of a word, and no more.
struct Foreign {
  std::string declaration;
  std::string rule;
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> tensors;
};

inline Argument value_for(const ArgumentSchema& argument) {
  switch (argument.type) {
    case ArgumentType::kInt:
    case ArgumentType::kScalar:
      return argument.is_list ? Argument(std::vector<std::int64_t>{1, 2})
                              : Argument(std::int64_t{1});
    case ArgumentType::kFloat:
      return argument.is_list ? Argument(std::vector<double>{0.5})
                              : Argument(0.5);
    case ArgumentType::kBool:
      return argument.is_list ? Argument(std::vector<bool>{true})
                              : Argument(true);
    case ArgumentType::kDType:
      return Argument(DType::kF32);
    case ArgumentType::kString:
      return Argument(std::string("mean"));
    default:
      return Argument(NoneArg{});
  }
}

inline std::string rule_with(const WordNeeds& needs, std::size_t tensors) {
  const std::string form =
      "pointwise(" + std::to_string(std::max<std::size_t>(needs.results, 1)) +
      ")";
  if (needs.kind == "form") return needs.word;
  if (needs.kind == "dtype") return form + ".typed(" + needs.word + ")";
  if (needs.kind == "strides") return form + ".strided(" + needs.word + ")";
  if (needs.kind != "size") return form + "." + needs.word;
  std::string terms;
  for (std::size_t i = 0; i < tensors; ++i) terms += i == 0 ? "*" : ",*";
  std::string results;
  for (std::size_t i = 1; i < needs.results; ++i) results += ",_";
  return terms + "->{x:" + needs.word + "}" + results;
}

inline constexpr const char* kMetas[] = {
    "f32[]",    "f32[4]",        "i64[4]",       "i64[4,6]",
    "f32[4,6]", "f8e4m3fn[4,6]", "f32[2,4,6]",   "i64[2,4,6]",
    "f32[0,6]", "f32[4,4,4,4]",  "f32[2,3,4,6]", "f32[1,2,3,4,6]"};

}  // namespace shardprop

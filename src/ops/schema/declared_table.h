// The generated table of declarations of PyTorch: one line for each overload, sorted
// by qualified name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

struct DeclaredLine {
  std::string_view name;  // aten::add.Tensor
  std::string_view declaration;
  std::string_view tags;
};

const std::vector<DeclaredLine>& declared_table();

// Returns "aten.mm.default" for "torch.ops.aten.mm.default", "aten::mm" or
// "aten.mm".
std::string canonical(std::string_view name);
// Returns "aten::add.Tensor" for "aten.add.Tensor", "aten::mm" for
// "aten.mm.default".
std::string qualified(std::string_view name);

// Returns the line of an overload, or null.
const DeclaredLine* find_declared(std::string_view name);
// Returns whether the table has the overload "aten.sum.dim_IntList", or an overload
// of the operator "aten.sum".
bool is_in_table(std::string_view row);

}  // namespace shardprop

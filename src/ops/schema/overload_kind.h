// `OverloadKind` is the way in which an overload follows from another one. PyTorch
// declares several overloads for one computation; definitions and kernels exist for one
// of them.
//
//   add_.Tensor         kInPlace   from add.Tensor
//   add.out             kOut       from add.Tensor
//   _foreach_add.List   kForeach   from add.Tensor, for each element of the lists
//   expand_copy         kViewCopy  from expand
#pragma once

#include <shardprop/ops/op_library.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace shardprop {

enum class OverloadKind : std::uint8_t {
  kPlain,  // follows from no other overload
  kInPlace,
  kOut,
  kForeach,
  kViewCopy,
};

// Returns "in_place", for example.
std::string_view to_string(OverloadKind kind);

struct OverloadOrigin {
  OverloadKind kind = OverloadKind::kPlain;
  std::shared_ptr<const FunctionSchema> from;  // null if `kind` is kPlain
};

// Returns the overload from which `function` follows. An overload that writes an
// argument and has no functional overload is kPlain.
OverloadOrigin origin_of(const FunctionSchema& function,
                         const OpLibrary& library);

}  // namespace shardprop

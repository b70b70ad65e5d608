#include "program/torch_collectives.h"

#include "base/try.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace shardprop {
namespace {

constexpr const char* kTorchCollectives[] = {
    "_c10d_functional::all_reduce(Tensor input, str reduce_op, str group_name) "
    "-> Tensor",
    "_c10d_functional::all_reduce_coalesced(Tensor[] inputs, str reduce_op, "
    "str group_name) -> Tensor[]",
    "_c10d_functional::all_gather_into_tensor(Tensor input, int group_size, "
    "str group_name) -> Tensor",
    "_c10d_functional::all_gather_into_tensor_coalesced(Tensor[] inputs, int "
    "group_size, str group_name) -> Tensor[]",
    "_c10d_functional::reduce_scatter_tensor(Tensor input, str reduce_op, int "
    "group_size, str group_name) -> Tensor",
    "_c10d_functional::reduce_scatter_tensor_coalesced(Tensor[] inputs, str "
    "reduce_op, int group_size, str group_name) -> Tensor[]",
    "_c10d_functional::all_to_all_single(Tensor input, SymInt[] "
    "output_split_sizes, SymInt[] input_split_sizes, str group_name) -> Tensor",
    "_c10d_functional::broadcast(Tensor input, int src, str group_name) -> "
    "Tensor",
    "_c10d_functional::wait_tensor(Tensor tensor) -> Tensor",
    "_c10d_functional_autograd::all_gather_into_tensor(Tensor input, int "
    "group_size, str group_name) -> Tensor",
    "_c10d_functional_autograd::reduce_scatter_tensor(Tensor input, str "
    "reduce_op, int group_size, str group_name) -> Tensor",
    "_c10d_functional_autograd::all_to_all_single(Tensor input, SymInt[] "
    "output_split_sizes, SymInt[] input_split_sizes, str group_name) -> Tensor",
    "c10d_functional::all_reduce(Tensor self, str reduceOp, str tag, int[] "
    "ranks, int group_size) -> Tensor",
    "c10d_functional::all_reduce_coalesced(Tensor[] self, str reduceOp, str "
    "tag, int[] ranks, int group_size) -> Tensor[]",
    "c10d_functional::all_gather_into_tensor(Tensor shard, str tag, int[] "
    "ranks, int group_size) -> Tensor",
    "c10d_functional::all_gather_into_tensor_coalesced(Tensor[] input, str "
    "tag, int[] ranks, int group_size) -> Tensor[]",
    "c10d_functional::reduce_scatter_tensor(Tensor input, str reduceOp, str "
    "tag, int[] ranks, int group_size) -> Tensor",
    "c10d_functional::reduce_scatter_tensor_coalesced(Tensor[] inputs, str "
    "reduceOp, str tag, int[] ranks, int group_size) -> Tensor[]",
    "c10d_functional::all_to_all_single(Tensor input, SymInt[]? "
    "output_split_sizes, SymInt[]? input_split_sizes, str tag, int[] ranks, "
    "int group_size) -> Tensor",
    "c10d_functional::broadcast(Tensor self, int src, str tag, int[] ranks, "
    "int group_size) -> Tensor",
    "c10d_functional::wait_tensor(Tensor self) -> Tensor",
};

struct NamedCollective {
  std::string_view name;
  CollectiveKind kind;
};

constexpr NamedCollective kNamedCollectives[] = {
    {"all_reduce", CollectiveKind::kAllReduce},
    {"all_gather_into_tensor", CollectiveKind::kAllGather},
    {"reduce_scatter_tensor", CollectiveKind::kReduceScatter},
    {"all_to_all_single", CollectiveKind::kAllToAll},
    {"broadcast", CollectiveKind::kBroadcast},
};

std::optional<CollectiveKind> kind_of(const FunctionSchema& function) {
  constexpr std::string_view kSuffix = "_coalesced";
  std::string_view name = function.base_name();
  const bool is_functional = function.ns().ends_with("c10d_functional") ||
                             function.ns() == "_c10d_functional_autograd";
  if (!is_functional) return std::nullopt;
  if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  for (const NamedCollective& row : kNamedCollectives) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return out;
}

Result<ReduceOp> reduction(std::string_view text, const std::string& op) {
  if (const auto parsed = parse_reduce_op(lower_case(text))) return *parsed;
  return fail(Error{
      ErrorCode::kReduction,
      "the reduction `" + std::string(text) + "` of `" + op + "` is not known",
      {},
      {},
      "use sum, avg, product, min, max, band, bor or bxor"});
}

}  // namespace

std::span<const char* const> torch_collectives() { return kTorchCollectives; }

Result<std::shared_ptr<const OpLibrary>> with_collectives(
    std::shared_ptr<const OpLibrary> library) {
  for (const char* text : kTorchCollectives) {
    OpLibrary::Addition addition;
    addition.declaration = text;
    SP_ASSIGN(library, library->with(std::move(addition)));
  }
  return library;
}

bool is_collective(std::string_view op) {
  const std::string_view library = op.substr(0, op.find('.'));
  return library.find("c10d") != std::string_view::npos || library == "fsdp" ||
         library == "symm_mem" || library == "_dtensor";
}

bool is_wait(std::string_view op) {
  return is_collective(op) &&
         op.find(".wait_tensor.") != std::string_view::npos;
}

Result<TorchCollective> torch_collective(const OpSchema& op) {
  const auto kind = kind_of(*op.function);
  const auto text = [&](std::string_view a, std::string_view b) {
    const std::string_view name = op.has_arg(a) ? a : b;
    return op.has_arg(name) ? op.string_arg(name) : std::nullopt;
  };
  const auto group = text("group_name", "tag");
  if (!kind || !group) {
    return fail(
        Error{ErrorCode::kUnknownOperator,
              "the collective `" + op.name() + "` is not simulated",
              {},
              {"simulated: all_reduce, all_gather_into_tensor, "
               "reduce_scatter_tensor, all_to_all_single, broadcast and their "
               "coalesced forms"},
              "write the program with collectives of _c10d_functional"});
  }
  TorchCollective out;
  out.kind = *kind;
  out.group = *group;
  if (const auto name = text("reduce_op", "reduceOp")) {
    SP_ASSIGN(out.op, reduction(*name, op.name()));
  }
  if (op.has_arg("ranks")) out.ranks = op.ints_arg("ranks").value_or(out.ranks);
  if (op.has_arg("group_size")) out.group_size = op.int_arg("group_size");
  if (op.has_arg("src")) out.root = op.int_arg("src").value_or(0);
  if (op.has_arg("output_split_sizes")) {
    out.output_splits = op.ints_arg("output_split_sizes");
    out.input_splits = op.ints_arg("input_split_sizes");
  }
  return out;
}

}  // namespace shardprop

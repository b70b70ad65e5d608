#include <shardprop/placement/placement.h>

#include "base/index.h"
#include "base/parse_int.h"
#include "base/try.h"
#include "placement/split_factor.h"

#include <array>

namespace shardprop {
namespace {

constexpr std::array<std::string_view, 8> kReduceOpNames = {
    "sum", "avg", "product", "min", "max", "band", "bor", "bxor"};

constexpr std::string_view kHelp =
    "write S(0), SS(0,2), R or P(sum); partials are sum, avg, product, min, "
    "max, band, bor, bxor";

// tidied() removes blanks and normalises the case as placements are printed.
std::string tidied(std::string_view text) {
  std::string out;
  bool inside = false;
  for (const char c : text) {
    if (c == ' ' || c == '\t') continue;
    inside = inside || c == '(';
    const bool upper = !inside && c >= 'a' && c <= 'z';
    const bool lower = inside && c >= 'A' && c <= 'Z';
    out += static_cast<char>(upper ? c - 'a' + 'A' : lower ? c - 'A' + 'a' : c);
  }
  return out;
}

tl::unexpected<Error> wrong(std::string_view text) {
  constexpr std::size_t kMostShown = 80;
  std::string help(kHelp);
  const std::string tidy = tidied(text.substr(0, kMostShown));
  if (tidy != text && Placement::parse(tidy)) {
    help = "did you mean `" + tidy + "`? Blanks and case matter";
  } else if (text.find("(-") != std::string_view::npos) {
    help = "count dims from the front: 0 is the first";
  }
  return fail(
      ErrorCode::kPlacementSyntax,
      "`" + std::string(text.substr(0, kMostShown)) + "` is not a placement",
      std::move(help));
}

}  // namespace

std::string_view to_string(ReduceOp op) { return kReduceOpNames[index(op)]; }

std::optional<ReduceOp> parse_reduce_op(std::string_view text) {
  for (const ReduceOp op : kAllReduceOps) {
    if (to_string(op) == text) return op;
  }
  return std::nullopt;
}

bool is_defined(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kProduct:
      return true;
    case ReduceOp::kAvg:
      return is_floating(dtype) || is_complex(dtype);
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return !is_complex(dtype);
    case ReduceOp::kBand:
    case ReduceOp::kBor:
    case ReduceOp::kBxor:
      return is_integral(dtype) || dtype == DType::kBool;
  }
  throw InternalError("a reduce op outside its enumeration");
}

Result<Placement> Placement::parse(std::string_view text) {
  if (text == "R") return replicate();
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return wrong(text);
  const std::string_view name = text.substr(0, open);
  std::string_view first = text.substr(open + 1, text.size() - open - 2);
  std::optional<std::string_view> second;
  if (const std::size_t comma = first.find(',');
      comma != std::string_view::npos) {
    second = first.substr(comma + 1);
    first = first.substr(0, comma);
  }

  if (name == "P") {
    const auto op = parse_reduce_op(first);
    if (!op) return wrong(text);
    if (!second) return partial(*op);
    SP_ASSIGN(const DType dtype, parse_dtype(*second));
    return partial(*op, dtype);
  }
  const auto dim = parse_int(first);
  if (!dim || *dim < 0) return wrong(text);
  if (*dim > INT16_MAX) {
    return fail(ErrorCode::kShardDimOutOfRange,
                "no tensor has a dim " + std::string(first),
                "name a dim of the tensor, counted from 0");
  }
  if (name == "S" && !second) return shard(static_cast<int>(*dim));
  if (name != "SS" || !second) return wrong(text);
  const auto factor = parse_int(*second);
  if (!factor) return wrong(text);
  if (*factor < 1 || *factor > kMostPieces) {
    return fail(ErrorCode::kSplitFactor,
                "`" + std::string(text) + "` splits a dim into " +
                    std::string(*second) + " pieces",
                "the second number of SS(d,k) is between 1 and " +
                    std::to_string(kMostPieces));
  }
  return strided_shard(static_cast<int>(*dim), static_cast<int>(*factor));
}

std::string to_string(Placement placement) {
  switch (placement.kind()) {
    case Placement::Kind::kReplicate:
      return "R";
    case Placement::Kind::kShard:
      return "S(" + std::to_string(placement.dim()) + ")";
    case Placement::Kind::kStridedShard:
      return "SS(" + std::to_string(placement.dim()) + "," +
             std::to_string(placement.split_factor()) + ")";
    case Placement::Kind::kPartial: {
      std::string out = "P(" + std::string(to_string(placement.reduce_op()));
      if (const auto dtype = placement.reduce_dtype()) {
        out += ',';
        out += to_string(*dtype);
      }
      return out + ")";
    }
  }
  throw InternalError("a placement outside its kinds");
}

}  // namespace shardprop

#include <shardprop/ops/rule_text.h>

#include "base/quantities.h"
#include "base/try.h"
#include "ops/forms/forms.h"
#include "ops/forms/mapped.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

constexpr std::string_view kForms =
    "pointwise(), reduction(sum), along(dim), same_shape(), batch(0), or "
    "factor notation such as mk,kn->mn";
constexpr std::string_view kModifiers =
    "additive(), multilinear(), linear_in(x), nondecreasing(), "
    "nonincreasing(), lattice(max), passes(x,y), ignores_values(x), "
    "blocked(dim), random()";

// `Call` is one `name(a,b)` of a rule.
struct Call {
  std::string name;
  std::vector<std::string> arguments;
  std::size_t column = 0;
};

tl::unexpected<Error> wrong(std::string message, std::size_t column,
                            std::string_view help) {
  return fail(Error{ErrorCode::kInvalidArgument,
                    std::move(message),
                    "column " + std::to_string(column + 1),
                    {},
                    std::string(help)});
}

bool is_word(char c) {
  return c == '_' || c == '-' || (c >= '0' && c <= '9') ||
         (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Parses the calls after `at`, which are separated by dots.
Result<std::vector<Call>> parse_calls(std::string_view text, std::size_t at) {
  std::vector<Call> calls;
  while (true) {
    Call call;
    call.column = at;
    while (at < text.size() && is_word(text[at])) call.name += text[at++];
    if (call.name.empty() || at == text.size() || text[at] != '(') {
      return wrong("a rule needs `name(...)` here", at, kForms);
    }
    const std::size_t close = text.find(')', at);
    if (close == std::string_view::npos) {
      return wrong("a parenthesis is never closed", at, kForms);
    }
    std::string_view inside = text.substr(at + 1, close - at - 1);
    while (!inside.empty()) {
      const std::size_t comma = std::min(inside.find(','), inside.size());
      call.arguments.emplace_back(inside.substr(0, comma));
      inside.remove_prefix(std::min(comma + 1, inside.size()));
    }
    calls.push_back(std::move(call));
    at = close + 1;
    if (at == text.size()) return calls;
    if (text[at++] != '.') {
      return wrong("a dot is missing between two parts of a rule", at - 1,
                   kModifiers);
    }
  }
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::optional<ReduceOp> reduce_op(std::string_view text) {
  for (const ReduceOp op : kAllReduceOps) {
    if (to_string(op) == text) return op;
  }
  return std::nullopt;
}

// Removes and returns the number of results of a form: its last argument, if it
// is a number; else 1.
Result<int> take_results(Call& call) {
  if (call.arguments.empty()) return 1;
  const auto count = number(call.arguments.back());
  if (!count) return 1;
  if (*count < 1 || *count > 64) {
    return wrong("an operator has 1 to 64 results", call.column, kForms);
  }
  call.arguments.pop_back();
  return *count;
}

Result<OpDefinition> form_of(Call call) {
  const auto refuse = [&]() {
    return wrong(
        "`" + call.name + "` is not a form, or not with these arguments",
        call.column, kForms);
  };
  if (call.name == "batch") {
    std::vector<int> dims;
    for (const std::string& argument : call.arguments) {
      const auto dim = number(argument);
      if (!dim) return refuse();
      dims.push_back(*dim);
    }
    if (dims.empty()) return refuse();
    return batch(std::move(dims));
  }
  SP_ASSIGN(const int results, take_results(call));
  const std::size_t given = call.arguments.size();
  if (call.name == "pointwise" && given == 0) return pointwise(results);
  if (call.name == "same_shape" && given == 0) return same_shape(results);
  if (call.name == "along" && given == 1) {
    return along(call.arguments[0], results);
  }
  if (call.name == "reduction" && given == 0) {
    return reduction(std::nullopt, results);
  }
  if (call.name == "reduction" && given == 1) {
    if (const auto op = reduce_op(call.arguments[0])) {
      return reduction(*op, results);
    }
  }
  return refuse();
}

Result<OpDefinition> modified(OpDefinition rule, const Call& call) {
  const auto& given = call.arguments;
  if (call.name == "additive") {
    std::vector<int> signs;
    for (const std::string& argument : given) {
      const auto sign = argument == "+"   ? std::optional<int>(1)
                        : argument == "-" ? std::optional<int>(-1)
                                          : number(argument);
      if (!sign) return wrong("a sign is 1 or -1", call.column, kModifiers);
      signs.push_back(*sign);
    }
    return std::move(rule).additive(std::move(signs));
  }
  if (call.name == "passes") return std::move(rule).passes(given);
  if (call.name == "ignores_values") {
    return std::move(rule).ignores_values(given);
  }
  if (given.empty()) {
    if (call.name == "multilinear") return std::move(rule).multilinear();
    if (call.name == "nondecreasing") return std::move(rule).nondecreasing();
    if (call.name == "nonincreasing") return std::move(rule).nonincreasing();
    if (call.name == "random") return std::move(rule).random();
  }
  if (given.size() == 1) {
    if (call.name == "linear_in") return std::move(rule).linear_in(given[0]);
    if (call.name == "blocked") return std::move(rule).blocked(given[0]);
    const auto op = reduce_op(given[0]);
    if (call.name == "lattice" && op) return std::move(rule).lattice(*op);
  }
  return wrong("`" + call.name + "` says nothing of a form so", call.column,
               kModifiers);
}

// Returns the end of the factor notation, which has an arrow and no call before
// it.
std::size_t notation_end(std::string_view text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) return 0;
  std::size_t end = arrow + 2;
  while (end < text.size()) {
    // ".name(" begins a modifier; "..." does not.
    if (text[end] == '.' && text.substr(end, 3) != "...") break;
    end += text.substr(end, 3) == "..." ? 3 : 1;
  }
  return end;
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Checks one text of factor notation against the requirements of einsum() and
// mapped().
class NotationCheck {
 public:
  explicit NotationCheck(std::string_view text) : text_(text) {}

  Result<void> run() {
    const std::size_t arrow = text_.find("->");
    if (arrow == std::string_view::npos) {
      return refuse("it has no `->`", text_.size());
    }
    while (true) {
      SP_CHECK(term());
      if (at_ == text_.size()) break;
      if (at_ == arrow) {
        is_result_ = true;
        ++at_;
      }
      ++at_;
    }
    if (!is_result_) return refuse("it has no `->`", text_.size());
    return {};
  }

 private:
  tl::unexpected<Error> refuse(const std::string& why, std::size_t at) const {
    return wrong("`" + std::string(text_) + "` is not factor notation: " + why,
                 at, kForms);
  }

  // Parses one term, up to a comma, the arrow or the end.
  Result<void> term() {
    const std::size_t first = at_;
    std::string letters;
    bool has_leading = false;
    char open = 0;
    std::size_t opened = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const bool is_arrow = text_.substr(at_, 2) == "->";
      if (open != 0 && (c == ',' || is_arrow)) break;
      if (c == ',' || (is_arrow && !is_result_)) return {};
      if (text_.substr(at_, 3) == "...") {
        if (open != 0) return refuse("`...` is inside of a dim", at_);
        if (has_leading) return refuse("a term has two `...`", at_);
        has_leading = true;
        at_ += 2;
      } else if (c == '(' || c == '[') {
        if (open != 0) return refuse("brackets nest", at_);
        open = c;
        opened = at_;
      } else if (c == ')' || c == ']') {
        if (open != (c == ')' ? '(' : '[')) {
          return refuse("a bracket is not open", at_);
        }
        if (at_ == opened + 1) return refuse("a bracket is empty", opened);
        open = 0;
      } else if (c == '+') {
        if (at_ != first) return refuse("a `+` is not first in its term", at_);
        if (is_result_) return refuse("a result has a `+`", at_);
      } else if (is_letter(c)) {
        if (letters.find(c) != std::string::npos) {
          return refuse(std::string("a term has `") + c + "` twice", at_);
        }
        if (is_result_ && known_.find(c) == std::string::npos) {
          return refuse(std::string("no operand has `") + c + "`", at_);
        }
        letters += c;
        if (!is_result_) known_ += c;
      } else {
        return refuse(std::string("`") + c + "` has no meaning", at_);
      }
    }
    if (open != 0) return refuse("a bracket is never closed", opened);
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string known_;  // the letters of the operands
  bool is_result_ = false;
};

// Rejects calls with fewer results than the notation has terms. Calls with more
// results are rejected under every rule.
OpDefinition::Check results_of(std::string_view notation) {
  const std::string_view results = notation.substr(notation.find("->") + 2);
  const auto terms = static_cast<std::size_t>(
      1 + std::count(results.begin(), results.end(), ','));
  return [terms](const OpCall& call, const IndexSpace&) {
    const auto& returns = call.op().function->returns();
    const bool has_list =
        std::any_of(returns.begin(), returns.end(),
                    [](const ArgumentSchema& one) { return one.is_list; });
    require(has_list || terms <= returns.size(),
            "the rule has " + counted(terms, "result") + ", the call " +
                std::to_string(returns.size()));
  };
}

// Returns the rule with result dtypes from the graph, not inferred ones.
OpDefinition as_stated(OpDefinition rule) {
  return std::move(rule)
      .typed([](const OpCall& call, std::size_t result) {
        const auto& outputs = call.op().outputs;
        if (result < outputs.size()) return outputs[result].dtype();
        return call.op().inputs.empty() ? DType::kF32 : call.first().dtype();
      })
      .strided([](const OpCall& call, const Dims& shape, DType dtype) {
        for (const TensorMeta& output : call.op().outputs) {
          if (output.shape() == shape) return output.strides();
        }
        return make_meta(shape, dtype).strides();
      });
}

// Returns `dim` counted from the front; nullopt if the tensor lacks it.
std::optional<int> dim_of(const TensorMeta& meta, int dim) {
  if (dim >= meta.rank() || dim < -meta.rank()) return std::nullopt;
  return wrap_dim(dim, meta.rank());
}

// Returns the size of the batch dim. The first tensor that has the dim and
// shares its size with a result determines it. A predicate, a counter or a
// weight may come before that tensor.
std::int64_t batch_size(const OpSchema& op, int dim) {
  std::optional<std::int64_t> first;
  for (const TensorMeta& input : op.inputs) {
    const auto at = dim_of(input, dim);
    if (!at) continue;
    const std::int64_t size = input.size(*at);
    if (!first) first = size;
    for (const TensorMeta& output : op.outputs) {
      const auto there = dim_of(output, dim);
      if (there && output.size(*there) == size) return size;
    }
  }
  require(first.has_value(), "no tensor has a dim " + std::to_string(dim));
  return *first;
}

BoundForm bind_batch(const OpCall& call, const std::vector<int>& dims) {
  SpaceBuilder b;
  std::vector<std::pair<int, DimFactors>> shared;
  for (const int dim : dims) {
    shared.emplace_back(dim, b.dim(batch_size(call.op(), dim)));
  }
  const auto operand = [&](const TensorMeta& meta) {
    Operand out = SpaceBuilder::whole(meta.rank());
    for (const auto& [dim, factors] : shared) {
      const auto at = dim_of(meta, dim);
      if (at && meta.size(*at) == b.space.size(factors)) {
        out.dims[index(*at)] = factors;
      }
    }
    return out;
  };
  for (const TensorMeta& meta : call.op().inputs) b.input(operand(meta));
  for (const std::int32_t slot : call.op().output_slots) {
    if (slot == OpSchema::kNotProduced) {
      b.not_produced();
      continue;
    }
    const TensorMeta& meta = call.op().outputs[index(slot)];
    b.output(operand(meta), {.shape = meta.shape(),
                             .strides = meta.strides(),
                             .dtype = meta.dtype()});
  }
  return b.bound();
}

}  // namespace

Result<void> check_notation(std::string_view text) {
  return NotationCheck(text).run();
}

OpDefinition batch(std::vector<int> dims) {
  std::string name = "batch(";
  for (const int dim : dims) {
    if (name.back() != '(') name += ',';
    name += std::to_string(dim);
  }
  return custom(name + ")", [dims = std::move(dims)](const OpCall& call) {
    return bind_batch(call, dims);
  });
}

Result<OpDefinition> parse_rule(std::string_view given) {
  std::string text(given);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\t'; });
  const std::size_t end = notation_end(text);
  std::optional<OpDefinition> rule;
  std::vector<Call> calls;
  if (end > 0) {
    const std::string_view notation = std::string_view(text).substr(0, end);
    SP_CHECK(check_notation(notation));
    const bool holds_dims = notation.find('[') != std::string_view::npos;
    if (holds_dims && notation.find_first_of("(+") != std::string_view::npos) {
      return wrong("dims in brackets belong to no product", 0, kForms);
    }
    rule = (holds_dims ? mapped(notation) : einsum(notation))
               .checked(results_of(notation));
    if (end < text.size()) {
      SP_ASSIGN(calls, parse_calls(text, end + 1));
    }
  } else {
    SP_ASSIGN(calls, parse_calls(text, 0));
    SP_ASSIGN(rule, form_of(calls.front()));
    calls.erase(calls.begin());
  }
  for (const Call& call : calls) {
    SP_ASSIGN(rule, modified(*std::move(rule), call));
  }
  return as_stated(*std::move(rule));
}

}  // namespace shardprop

#include "report/demanded_shardings.h"

#include "base/quantities.h"
#include "report/explanation_json.h"
#include "report/text_lines.h"

#include <algorithm>
#include <cstddef>

namespace shardprop {

void write_demanded_shardings(JsonText& json, const DemandedShardings& all) {
  json.open('{').member("most_of_factor", all.most_of_factor);
  json.member("most_of_value", all.most_of_value);
  json.member("left_out_of_factors", all.left_out_of_factors);
  json.member("left_out_of_values", all.left_out_of_values);
  json.member("split_operators", all.split_operators);
  json.key("demanded").list(all.demanded, [&](const DemandedSharding& one) {
    json.open('{').member("op", one.op).member("rule", one.rule);
    json.member("factor", one.factor);
    json.member("sharding", to_strings(one.sharding));
    json.member("operators", one.operators).close('}');
  });
  json.close('}');
}

DemandedShardings read_demanded_shardings(const JsonCursor& at,
                                          const DeviceMesh& mesh) {
  DemandedShardings out;
  out.most_of_factor = at["most_of_factor"].integer();
  out.most_of_value = at["most_of_value"].integer();
  out.left_out_of_factors = at["left_out_of_factors"].integer();
  out.left_out_of_values = at["left_out_of_values"].integer();
  out.split_operators = at["split_operators"].integer();
  for (const JsonCursor& one : at["demanded"].elements()) {
    DemandedSharding sharding{
        one["op"].text(), one["rule"].text(), one["factor"].text(),
        read_layout(one["sharding"], mesh), one["operators"].integer(1)};
    if (sharding.sharding.has_partial() ||
        sharding.sharding.min_tensor_rank() > 1) {
      one["sharding"].fail("not a layout of one dim");
    }
    out.demanded.push_back(std::move(sharding));
  }
  return out;
}

std::string demanded_shardings_text(const DemandedShardings& all) {
  TextLines out;
  out.add(
      "factor shardings besides mesh order; at most {} of a factor of an "
      "operator, at most {} layouts of a value",
      all.most_of_factor, all.most_of_value);
  std::size_t op_width = 0;
  std::size_t rule_width = 0;
  std::size_t factor_width = 0;
  std::size_t sharding_width = 0;
  for (const DemandedSharding& one : all.demanded) {
    op_width = std::max(op_width, one.op.size());
    rule_width = std::max(rule_width, one.rule.size());
    factor_width = std::max(factor_width, one.factor.size());
    sharding_width = std::max(sharding_width, to_string(one.sharding).size());
  }
  for (const DemandedSharding& one : all.demanded) {
    out.add("  {:<{}}  {:<{}}  {:<{}}  {:<{}}  {}", one.op, op_width, one.rule,
            rule_width, one.factor, factor_width, to_string(one.sharding),
            sharding_width, counted(one.operators, "operator"));
  }
  if (all.split_operators > 0) {
    out.add("  {} (split, slice, cat) may shard each of their equal pieces",
            counted(all.split_operators, "operator"));
  }
  if (all.left_out_of_factors > 0) {
    out.add("  {} more of factors are left out",
            count_text(all.left_out_of_factors));
  }
  if (all.left_out_of_values > 0) {
    out.add("  {} more of values are left out",
            count_text(all.left_out_of_values));
  }
  return std::move(out.text);
}

}  // namespace shardprop

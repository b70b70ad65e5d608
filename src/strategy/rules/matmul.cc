#include "strategy/rules/families.h"

namespace shardprop {

void add_matmul_rules(RuleBook& book) {
  const auto add = [&](const char* name, ShardingRule rule) {
    book.add("matmul", name, std::move(rule));
  };
  add("aten.addmm.default", einsum("+mn,mk,kn->mn"));
  add("aten.bmm.default", einsum("bmk,bkn->bmn"));
  add("aten.linear.default", einsum("...k,nk,+n->...n"));
  add("aten.mm.default", einsum("mk,kn->mn"));
}

}  // namespace shardprop

// The families of sharding rules, one file each. Listed here and nowhere else.
#pragma once

#include <shardprop/strategy/local_context.h>
#include <shardprop/strategy/rule_book.h>

namespace shardprop {

void add_attention_rules(RuleBook& book);
void add_convolution_rules(RuleBook& book);
void add_factory_rules(RuleBook& book);
void add_index_rules(RuleBook& book);
void add_matmul_rules(RuleBook& book);
void add_norm_rules(RuleBook& book);
void add_pointwise_rules(RuleBook& book);
void add_reduction_rules(RuleBook& book);
void add_shape_rules(RuleBook& book);
void add_softmax_rules(RuleBook& book);

inline void add_all_families(RuleBook& book) {
  add_attention_rules(book);
  add_convolution_rules(book);
  add_factory_rules(book);
  add_index_rules(book);
  add_matmul_rules(book);
  add_norm_rules(book);
  add_pointwise_rules(book);
  add_reduction_rules(book);
  add_shape_rules(book);
  add_softmax_rules(book);
}

}  // namespace shardprop

// Each file of forms and definitions adds its words to the vocabulary of rules.
#pragma once

#include "ops/rules/rule_words.h"

namespace shardprop {

// Adds all words.
void add_words(RuleWords& words);

void words_of_along(RuleWords& words);
void words_of_attention(RuleWords& words);
void words_of_bags(RuleWords& words);
void words_of_composites(RuleWords& words);
void words_of_contractions(RuleWords& words);
void words_of_convolution(RuleWords& words);
void words_of_copies(RuleWords& words);
void words_of_dropout(RuleWords& words);
void words_of_embedding(RuleWords& words);
void words_of_encoder(RuleWords& words);
void words_of_factory(RuleWords& words);
void words_of_fft(RuleWords& words);
void words_of_flash(RuleWords& words);
void words_of_gradients(RuleWords& words);
void words_of_grids(RuleWords& words);
void words_of_group_norm(RuleWords& words);
void words_of_histogram(RuleWords& words);
void words_of_index(RuleWords& words);
void words_of_indexed(RuleWords& words);
void words_of_join(RuleWords& words);
void words_of_linalg(RuleWords& words);
void words_of_lookup(RuleWords& words);
void words_of_loss(RuleWords& words);
void words_of_losses(RuleWords& words);
void words_of_margin_loss(RuleWords& words);
void words_of_matmul(RuleWords& words);
void words_of_norm(RuleWords& words);
void words_of_norms(RuleWords& words);
void words_of_optimizer(RuleWords& words);
void words_of_parts(RuleWords& words);
void words_of_patches(RuleWords& words);
void words_of_pointwise(RuleWords& words);
void words_of_pointwise_forms(RuleWords& words);
void words_of_pointwise_functions(RuleWords& words);
void words_of_pool(RuleWords& words);
void words_of_positions(RuleWords& words);
void words_of_products(RuleWords& words);
void words_of_quantise(RuleWords& words);
void words_of_random(RuleWords& words);
void words_of_recurrent(RuleWords& words);
void words_of_reduction(RuleWords& words);
void words_of_resample(RuleWords& words);
void words_of_scalars(RuleWords& words);
void words_of_scaled(RuleWords& words);
void words_of_scan(RuleWords& words);
void words_of_scatter(RuleWords& words);
void words_of_segments(RuleWords& words);
void words_of_signal(RuleWords& words);
void words_of_similarity(RuleWords& words);
void words_of_softmax(RuleWords& words);
void words_of_solves(RuleWords& words);
void words_of_split(RuleWords& words);
void words_of_stretches(RuleWords& words);
void words_of_view(RuleWords& words);
void words_of_views(RuleWords& words);
void words_of_weight_norm(RuleWords& words);
void words_of_windowed(RuleWords& words);

}  // namespace shardprop

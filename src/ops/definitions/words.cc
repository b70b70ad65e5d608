#include "ops/definitions/words.h"

#include "ops/definitions/dtypes.h"
#include "ops/definitions/linalg/matrices.h"
#include "ops/space/windows.h"

namespace shardprop {

void add_words(RuleWords& words) {
  words.dtype("same_as_prim", same_dtype);
  words.strides("first", [](const OpCall& call, const Dims&, DType) {
    return call.first().strides();
  });
  words.strides("self", strides_like_self);
  words.strides("images", strides_as_images);
  words.strides("column_major", linear_algebra::column_major);
  words_of_along(words);
  words_of_attention(words);
  words_of_bags(words);
  words_of_composites(words);
  words_of_contractions(words);
  words_of_convolution(words);
  words_of_copies(words);
  words_of_dropout(words);
  words_of_embedding(words);
  words_of_encoder(words);
  words_of_factory(words);
  words_of_fft(words);
  words_of_flash(words);
  words_of_gradients(words);
  words_of_grids(words);
  words_of_group_norm(words);
  words_of_histogram(words);
  words_of_index(words);
  words_of_indexed(words);
  words_of_join(words);
  words_of_linalg(words);
  words_of_lookup(words);
  words_of_loss(words);
  words_of_losses(words);
  words_of_margin_loss(words);
  words_of_matmul(words);
  words_of_norm(words);
  words_of_norms(words);
  words_of_optimizer(words);
  words_of_parts(words);
  words_of_patches(words);
  words_of_pointwise(words);
  words_of_pointwise_forms(words);
  words_of_pointwise_functions(words);
  words_of_pool(words);
  words_of_positions(words);
  words_of_products(words);
  words_of_quantise(words);
  words_of_random(words);
  words_of_recurrent(words);
  words_of_reduction(words);
  words_of_resample(words);
  words_of_scalars(words);
  words_of_scaled(words);
  words_of_scan(words);
  words_of_scatter(words);
  words_of_segments(words);
  words_of_signal(words);
  words_of_similarity(words);
  words_of_softmax(words);
  words_of_solves(words);
  words_of_split(words);
  words_of_stretches(words);
  words_of_view(words);
  words_of_views(words);
  words_of_weight_norm(words);
  words_of_windowed(words);
}

}  // namespace shardprop

// This header lists the families of operator definitions, one file each. No
// other file lists them.
#pragma once

#include "ops/forms/forms.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

// `Family` appends the definitions of one family, in the order in which they
// are written.
class Family {
 public:
  Family(std::vector<OpRow>& rows, std::string_view family)
      : rows_(rows), family_(family) {}

  // Adds one definition for each name; the prefix "aten." is implicit.
  void add(std::initializer_list<std::string_view> names,
           const OpDefinition& definition, std::string_view note = {}) {
    for (const std::string_view name : names) add(name, definition, note);
  }
  void add(std::string_view name, OpDefinition definition,
           std::string_view note = {}) {
    std::string full(name);
    if (!name.starts_with("prims.") && !name.starts_with("transformers.")) {
      full.insert(0, "aten.");
    }
    rows_.push_back({std::move(full), std::move(definition),
                     std::string(family_), std::string(note)});
  }

 private:
  std::vector<OpRow>& rows_;
  std::string_view family_;
};

void define_attention(Family family);
void define_bags(Family family);
void define_composites(Family family);
void define_contractions(Family family);
void define_convolution(Family family);
void define_copies(Family family);
void define_dropout(Family family);
void define_embedding(Family family);
void define_encoder(Family family);
void define_factory(Family family);
void define_fft(Family family);
void define_flash(Family family);
void define_gradients(Family family);
void define_group_norm(Family family);
void define_histogram(Family family);
void define_index(Family family);
void define_join(Family family);
void define_linalg(Family family);
void define_lookup(Family family);
void define_loss(Family family);
void define_margin_loss(Family family);
void define_matmul(Family family);
void define_norm(Family family);
void define_optimizer(Family family);
void define_pointwise(Family family);
void define_pointwise_functions(Family family);
void define_parts(Family family);
void define_pool(Family family);
void define_positions(Family family);
void define_prims(Family family);
void define_products(Family family);
void define_quantise(Family family);
void define_random(Family family);
void define_recurrent(Family family);
void define_reduction(Family family);
void define_resample(Family family);
void define_scalars(Family family);
void define_scaled(Family family);
void define_scan(Family family);
void define_scatter(Family family);
void define_signal(Family family);
void define_similarity(Family family);
void define_softmax(Family family);
void define_solves(Family family);
void define_split(Family family);
void define_stretches(Family family);
void define_view(Family family);
void define_weight_norm(Family family);
// Adds definitions that are copies of others under other names.
void define_synonyms(std::vector<OpRow>& rows);

inline std::vector<OpRow> standard_rows() {
  std::vector<OpRow> rows;
  define_attention({rows, "attention"});
  define_bags({rows, "index"});
  define_composites({rows, "composite"});
  define_contractions({rows, "matmul"});
  define_convolution({rows, "convolution"});
  define_embedding({rows, "index"});
  define_encoder({rows, "attention"});
  define_factory({rows, "factory"});
  define_fft({rows, "fft"});
  define_flash({rows, "attention"});
  define_gradients({rows, "composite"});
  define_group_norm({rows, "norm"});
  define_histogram({rows, "lookup"});
  define_index({rows, "index"});
  define_join({rows, "join"});
  define_split({rows, "join"});
  define_linalg({rows, "linalg"});
  define_lookup({rows, "lookup"});
  define_positions({rows, "lookup"});
  define_stretches({rows, "lookup"});
  define_loss({rows, "loss"});
  define_margin_loss({rows, "loss"});
  define_matmul({rows, "matmul"});
  define_norm({rows, "norm"});
  define_optimizer({rows, "optimizer"});
  define_pointwise({rows, "pointwise"});
  define_pointwise_functions({rows, "pointwise"});
  define_copies({rows, "pointwise"});
  define_dropout({rows, "pointwise"});
  define_parts({rows, "view"});
  define_pool({rows, "pool"});
  define_prims({rows, "prims"});
  define_products({rows, "matmul"});
  define_scaled({rows, "matmul"});
  define_quantise({rows, "pointwise"});
  define_random({rows, "random"});
  define_recurrent({rows, "recurrent"});
  define_reduction({rows, "reduction"});
  define_resample({rows, "resample"});
  define_scalars({rows, "scalar"});
  define_scan({rows, "scan"});
  define_scatter({rows, "index"});
  define_signal({rows, "fft"});
  define_similarity({rows, "loss"});
  define_softmax({rows, "softmax"});
  define_solves({rows, "linalg"});
  define_view({rows, "view"});
  define_weight_norm({rows, "norm"});
  define_synonyms(rows);
  return rows;
}

}  // namespace shardprop

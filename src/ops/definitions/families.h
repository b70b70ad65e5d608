// The families of rows, one file each. Listed here and nowhere else.
#pragma once

#include "ops/forms/forms.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {

// Rows of one family, in the order in which they are written.
class Family {
 public:
  Family(std::vector<OpRow>& rows, std::string_view family)
      : rows_(rows), family_(family) {}

  // One row for each name; "aten." goes without saying.
  void add(std::initializer_list<std::string_view> names,
           const OpDefinition& definition, std::string_view note = {}) {
    for (const std::string_view name : names) add(name, definition, note);
  }
  void add(std::string_view name, OpDefinition definition,
           std::string_view note = {}) {
    std::string full(name);
    if (!name.starts_with("prims.")) full.insert(0, "aten.");
    rows_.push_back({std::move(full), std::move(definition),
                     std::string(family_), std::string(note)});
  }

 private:
  std::vector<OpRow>& rows_;
  std::string_view family_;
};

void define_attention(Family family);
void define_convolution(Family family);
void define_factory(Family family);
void define_index(Family family);
void define_join(Family family);
void define_loss(Family family);
void define_matmul(Family family);
void define_norm(Family family);
void define_pointwise(Family family);
void define_pool(Family family);
void define_reduction(Family family);
void define_scan(Family family);
void define_softmax(Family family);
void define_view(Family family);

inline std::vector<OpRow> standard_rows() {
  std::vector<OpRow> rows;
  define_attention({rows, "attention"});
  define_convolution({rows, "convolution"});
  define_factory({rows, "factory"});
  define_index({rows, "index"});
  define_join({rows, "join"});
  define_loss({rows, "loss"});
  define_matmul({rows, "matmul"});
  define_norm({rows, "norm"});
  define_pointwise({rows, "pointwise"});
  define_pool({rows, "pool"});
  define_reduction({rows, "reduction"});
  define_scan({rows, "scan"});
  define_softmax({rows, "softmax"});
  define_view({rows, "view"});
  return rows;
}

}  // namespace shardprop

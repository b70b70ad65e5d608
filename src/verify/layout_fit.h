// Finds the layout in which the values of all ranks equal a full tensor.
//
//   RankValues values(mesh, {rank0, rank1}, full, {});
//   values.fit()->layout;        // P(sum): each rank holds a term
//   values.multiple()->factor;   // 2: each rank holds twice the value
#pragma once

#include "verify/compare.h"
#include "verify/layout_candidates.h"

#include <shardprop/collective/local_tensor.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop::verification {

// Returns the distance of two elements. It is 0 for equal infinities and for
// two NaNs.
double apart(std::complex<double> a, std::complex<double> b);

struct LayoutFit {
  Layout layout;
  double factor = 1;  // the values are this multiple of the full tensor
  // In the layout, of the rank with the largest error.
  Difference difference;
  std::int64_t rank = 0;
};

class RankValues {
 public:
  using Elements = std::vector<std::complex<double>>;

  // `held` is by row-major index on the mesh. `whole` is row-major.
  RankValues(const DeviceMesh& mesh, const std::vector<LocalTensor>& held,
             const LocalTensor& whole, const Bound& bound);

  // Returns whether the ranks hold tensors of the sizes of this layout.
  bool has_sizes_of(const Layout& layout) const;
  // Compares the values with `factor` times the full tensor. Precondition:
  // has_sizes_of(layout).
  LayoutFit in(const Layout& layout, double factor = 1) const;

  // Returns the layout in which the values are right; the layout with the
  // fewest terms and shards if there are several.
  std::optional<LayoutFit> fit(TermOps ops = TermOps::kSums) const;
  // Returns a layout in which they are a multiple of the full tensor.
  std::optional<LayoutFit> multiple() const;
  // Returns the layout of the sizes with the least error.
  std::optional<LayoutFit> nearest() const;
  // Returns a sentence if the parts of a layout are in another order: each rank
  // holds the part of another rank, or a gathered dim has its shards in another
  // order. Returns an empty text otherwise.
  std::string wrong_order() const;

 private:
  bool agree(int mesh_dim) const;
  std::vector<Layout> candidates(bool strided,
                                 TermOps ops = TermOps::kSums) const;
  // The values of each rank, or their sums, which it then owns.
  struct Combined {
    const std::vector<Elements>* values = nullptr;
    std::shared_ptr<const std::vector<Elements>> owned;
  };
  Combined combined(const Layout& layout) const;
  Elements part(const Layout& layout, std::int64_t index) const;
  bool agrees(const Layout& layout, double factor) const;
  bool every_rank_counts(const Layout& layout) const;
  std::string swapped_ranks(const Layout& layout) const;
  std::string swapped_shards(const Layout& layout) const;
  bool is_block(const Elements& own, const Elements& wanted, const Dims& sizes,
                std::size_t dim, std::int64_t blocks, std::int64_t from,
                std::int64_t to) const;
  double best_factor(const Layout& layout) const;
  double bound(double factor) const;

  const DeviceMesh& mesh_;
  std::vector<Dims> sizes_;
  std::vector<Elements> held_;
  Dims whole_sizes_;
  Elements whole_;
  bool is_exact_ = false;  // integers and bools
  double tolerance_;
  double scale_;
};

// Returns the layout in words: "each rank holds a term of a sum over tp=2".
std::string words(const Layout& layout, const DeviceMesh& mesh);
// Returns "2" or "1/4" if the number is a ratio of small integers.
std::string ratio_text(double value);

}  // namespace shardprop::verification

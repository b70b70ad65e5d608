#include "verify/wrong_value.h"

#include <fmt/format.h>

#include <utility>

namespace shardprop::verification {
namespace {

void set_element(const LayoutFit& found, const Dims& sizes, WrongValue& wrong) {
  wrong.where.rank = found.rank;
  wrong.where.element = place_in(found.difference.element, sizes);
  wrong.where.expected = found.difference.expected;
  wrong.where.found = found.difference.found;
}

// "sum over tp" of the terms that one layout has and the other has not.
std::string missing_reduction(const Layout& right,
                              const std::optional<Layout>& stated,
                              const DeviceMesh& mesh) {
  std::string out;
  for (int d = 0; d < right.mesh_ndim(); ++d) {
    const bool is_missing = right[d].is_partial() && mesh.size(d) > 1 &&
                            !(stated && (*stated)[d].is_partial());
    if (!is_missing) continue;
    out += (out.empty() ? "" : " and a ") +
           fmt::format("{} over {}", to_string(right[d].reduce_op()),
                       mesh.name(d));
  }
  return out;
}

void say_sizes(const DeviceMesh& mesh, const std::vector<LocalTensor>& held,
               const LocalTensor& whole, WrongValue& wrong) {
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    const LocalTensor& own = held[static_cast<std::size_t>(i)];
    const Dims sizes = local_shape(*wrong.stated, mesh, whole.sizes(),
                                   mesh.coordinate_at_index(i));
    if (sizes == own.sizes()) continue;
    wrong.where.rank = mesh.rank_at_index(i);
    wrong.sentences.push_back(
        fmt::format("Rank {} holds {}, and the stated layout {} gives {}.",
                    wrong.where.rank, to_string(own), to_string(*wrong.stated),
                    to_string(LocalTensor::wrap(nullptr, sizes, own.dtype()))));
    return;
  }
}

void say_right_layout(const LayoutFit& right, const DeviceMesh& mesh,
                      WrongValue& wrong) {
  wrong.layout = right.layout;
  wrong.sentences.push_back(fmt::format("It is right in the layout {}: {}.",
                                        to_string(right.layout),
                                        words(right.layout, mesh)));
  const std::string missing =
      missing_reduction(right.layout, wrong.stated, mesh);
  if (!missing.empty()) {
    wrong.sentences.push_back(fmt::format("A {} is missing.", missing));
  }
}

}  // namespace

void explain(const RankValues& values, const DeviceMesh& mesh,
             const std::vector<LocalTensor>& held, const LocalTensor& whole,
             WrongValue& wrong) {
  const bool has_sizes = wrong.stated && values.has_sizes_of(*wrong.stated);
  if (has_sizes) {
    set_element(values.in(*wrong.stated), whole.sizes(), wrong);
  } else if (wrong.stated) {
    say_sizes(mesh, held, whole, wrong);
  }
  if (const auto right = values.fit()) {
    say_right_layout(*right, mesh, wrong);
    return;
  }
  const auto nearest = values.nearest();
  if (nearest && !has_sizes) set_element(*nearest, whole.sizes(), wrong);
  if (const auto multiple = values.multiple()) {
    wrong.layout = multiple->layout;
    wrong.factor = multiple->factor;
    wrong.sentences.push_back(
        fmt::format("It is {} times the value in the layout {}: {}.",
                    ratio_text(multiple->factor), to_string(multiple->layout),
                    words(multiple->layout, mesh)));
  } else if (std::string order = values.wrong_order(); !order.empty()) {
    wrong.sentences.push_back(std::move(order));
  } else if (nearest) {
    wrong.sentences.push_back(fmt::format(
        "No layout makes it right. The nearest is {}, with a relative error "
        "of {:.2g}.",
        to_string(nearest->layout), nearest->difference.error));
  } else {
    wrong.sentences.push_back(fmt::format(
        "No layout of {} gives the sizes that the ranks hold: rank {} holds "
        "{}.",
        to_string(whole), mesh.rank_at_index(0), to_string(held.front())));
  }
}

void explain_terms(const DeviceMesh& mesh, WrongValue& wrong) {
  if (wrong.layout) return;
  for (const LaidOutValue& read : wrong.reads) {
    const std::string missing =
        missing_reduction(read.layout, std::nullopt, mesh);
    if (missing.empty()) continue;
    wrong.sentences.push_back(fmt::format(
        "`{}`, on which it depends, has the layout {}: {}. A {} "
        "may be missing between them.",
        read.name, to_string(read.layout), words(read.layout, mesh), missing));
    return;
  }
}

}  // namespace shardprop::verification

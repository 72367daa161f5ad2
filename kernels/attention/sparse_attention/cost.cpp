#include "kernels/attention/sparse_attention/cost.hpp"

#include <algorithm>

namespace tilestep::sparse_attention {
namespace {

/// q · k over the whole row and P · V over its latent part, for all heads; a product and its addition are two.
constexpr double kFlopsOfRow = 2.0 * kModelHeads * (kLatent + kRope + kLatent);
constexpr double kFlopsOfIndex = 2.0 * kModelIndexHeads * kModelIndexDim;

}  // namespace

Cost flops_at(double context) {
  return {kFlopsOfRow * context, kFlopsOfIndex * context,
          kFlopsOfRow * std::min<double>(context, kModelTopK)};
}

Cost bytes_at(double context) {
  return {kRowBytes * context, kIndexBytes * context,
          kRowBytes * std::min<double>(context, kModelTopK)};
}

double break_even() {
  return kModelTopK * kFlopsOfRow / (kFlopsOfRow - kFlopsOfIndex);
}

}  // namespace tilestep::sparse_attention

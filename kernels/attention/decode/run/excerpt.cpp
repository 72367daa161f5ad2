#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "kernels/attention/decode/cost.hpp"
#include "kernels/attention/decode/latent/problem.hpp"
#include "kernels/attention/decode/run/run.hpp"
#include "kernels/base/lab/plural.hpp"

namespace tilestep::decode {
namespace {

/// The most that one run explains: floating-point operations of whole tiles, tiles that a block takes in sequence,
/// tiles of a request that can be drawn, and requests. Emulated wgmma does more of them than mma in the same time.
constexpr double kMostFlops = 4e7, kMostLatentFlops = 1.2e8;
constexpr int kMostTiles = 40;
constexpr int kMostShownTokens = 4608;
constexpr int kMostShownBatch = 8;

/// Lines of work that share nothing: K/V heads, or query heads where each reads its own copy.
std::int64_t lines_of(const Params& params) {
  return params.broken == Break::repeat_kv ? params.heads : params.of().cached_heads();
}

/// Tensor cores process sixteen queries at a time, with mla 64, however few there are.
double work_of(const Params& params) {
  constexpr std::int64_t kRows = 16, kBlockRows = latent::kHeadsOfBlock;
  const LayerShape layer = params.layer();
  const std::int64_t lines = lines_of(params), group = params.heads / lines;
  const std::int64_t rows = params.scheme == Scheme::mla
                                ? (group + kBlockRows - 1) / kBlockRows * kBlockRows
                                : std::max(group, kRows);
  return 1.5 * params.batch * params.context * 2 * (layer.row.key + layer.row.value) *
         static_cast<double>(lines * rows);
}

/// Tiles that a block takes of a long request.
std::int64_t tiles_of(const Params& params) {
  const std::int64_t tokens = params.context + params.context / 2;
  const std::int64_t pages = std::max<std::int64_t>(tokens / kPageSize, 1);
  const std::int64_t blocks =
      std::max<std::int64_t>(kMultiprocessors / (params.batch * lines_of(params)), 1);
  const std::int64_t parts = params.splits > 0 ? params.splits : blocks;
  constexpr int kTile = 16;
  return tokens / kTile / std::min(parts, pages);
}

bool fits(const Params& params) {
  const double most = params.scheme == Scheme::mla ? kMostLatentFlops : kMostFlops;
  if (work_of(params) > most || tiles_of(params) > kMostTiles) return false;
  return std::int64_t{params.batch} * params.context <= kMostShownTokens;
}

}  // namespace

Excerpt excerpt_of(const Params& params) {
  Excerpt excerpt{params, {}};
  Params& part = excerpt.params;
  part.batch = std::min(params.batch, kMostShownBatch);
  while (part.batch > 2 && !fits(part)) part.batch /= 2;
  if (!fits(part) && part.scheme != Scheme::mla) {
    part.heads = params.heads / params.of().cached_heads();
    part.kv_heads = 1;
  }
  if (!fits(part) && part.scheme == Scheme::mla) {
    part.heads = std::min(params.heads, latent::kHeadsOfBlock);
  }
  while (!fits(part) && part.context > 1) part.context /= 2;
  std::vector<std::string> parts;
  if (part.heads < params.heads) {
    parts.push_back(part.scheme == Scheme::mla
                        ? fmt::format("{} of {} query heads", part.heads, params.heads)
                        : fmt::format("K/V head 0 of {}", params.of().cached_heads()));
  }
  if (part.batch < params.batch) {
    parts.push_back(fmt::format("{} of {} requests together", part.batch, params.batch));
  }
  if (part.context < params.context) {
    parts.push_back(
        fmt::format("about {} of {} each", lab::plural(part.context, "token"), params.context));
  }
  if (!parts.empty())
    excerpt.cut = fmt::format("one run explains a part: {}", fmt::join(parts, ", "));
  return excerpt;
}

}  // namespace tilestep::decode

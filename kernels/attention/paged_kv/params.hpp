#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/attention/kv_cache/layer.hpp"
#include "kernels/lessons.hpp"

/// The lesson on a paged KV cache: a pool from which requests take pages as they arrive, grow and leave, and a kernel
/// that finds them through block tables. Kwon et al., "Efficient Memory Management for Large Language Model Serving
/// with PagedAttention", 2023 (arXiv:2309.06180).
namespace tilestep::paged_kv {

using namespace kv_cache;

/// A deliberate error of an explained run.
enum class Break {
  none,
  stale_page,  ///< a block table still names a page that was released and is now another's
};
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>({"none", "stale-page"});
}

/// Tokens per page.
enum class PageSize { p1, p4, p16, p64, p256 };
constexpr auto names_of(PageSize) {
  return std::to_array<std::string_view>({"1", "4", "16", "64", "256"});
}
constexpr int tokens_of(PageSize size) {
  return 1 << (2 * static_cast<int>(size));
}

inline constexpr int kMostContext = 131072;
inline constexpr int kMostBatch = 256;
inline constexpr int kMostRequests = 1024;
/// Steps of the engine before the kernel is shown.
inline constexpr int kServingSteps = 8;

struct Params {
  int context = 64;  ///< average tokens per request
  int batch = 4;     ///< requests that run together
  int requests = 6;  ///< that arrive, one by one
  PageSize page_size = PageSize::p16;
  int prefix = 0;  ///< first tokens that all of them share
  KvType kv_dtype = KvType::bf16;
  Break broken = Break::none;
  std::int64_t seed = 1;

  /// The kernel's case: eight query heads in two groups, a block per request and K/V head.
  Case of() const {
    return {.splits = 1,
            .page_size = tokens_of(page_size),
            .kv_dtype = kv_dtype,
            .prefix = prefix,
            .seed = seed};
  }
  LayerShape layer() const { return layer_shape(of()); }
};

/// The knobs, bound to Params.
const lab::KnobTable<Params>& knob_table();

}  // namespace tilestep::paged_kv

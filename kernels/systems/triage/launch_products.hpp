#pragma once

// The products' launches.

#include "kernels/systems/triage/products.cu"

namespace tilestep::triage::SIMT_BACKEND {

inline constexpr int kThreads = 128;

/// A kernel for 4 tokens, and one for 8: a launch takes the next one.
template <class Run>
void for_tokens(int tokens, Run run) {
  simt::require_within("triage: tokens of a product", tokens, 1, kMostRows);
  if (tokens <= 4) return run(std::integral_constant<int, 4>{});
  run(std::integral_constant<int, kMostRows>{});
}

inline void start_product(simt::Device& device, const char* name, Weights weights,
                          const Product& shape, const ProductArrays& arrays, const Watch& watch) {
  simt::require_within("triage: rows of a product", shape.rows, 1, 1 << 20);
  simt::require_within("triage: k of a product", shape.k, 1, 1 << 20);
  const bool many = weights != Weights::single && weights != Weights::columns;
  const int pack = weights == Weights::packs ? 8 : weights == Weights::floats ? 4 : 16;
  if (many) {
    simt::require_multiple("triage: k of a product", shape.k, pack);
    simt::require_multiple("triage: pitch of a product", shape.pitch, pack);
  }
  const int rows_of_warp = weights == Weights::bytes ? kRowsOfBytes : many ? kRowsOfWarp : 1;
  const int rows_of_block = kThreads / 32 * rows_of_warp;
  const simt::Launch launch =
      simt::row_of_blocks(name, simt::blocks_for(shape.rows, rows_of_block), kThreads);
  const auto x = simt::global(arrays.x, "x");
  const auto y = simt::global(arrays.y, "y");
  with_watch(watch, [&](auto its) {
    for_tokens(shape.tokens, [&](auto tokens) {
      using Its = decltype(its);
      constexpr int kTokens = decltype(tokens)::value;
      const auto w = simt::global(arrays.w, "w");
      switch (weights) {
        case Weights::packs:
          return start(device, watch, launch, product<kTokens, Its>, simt::as<const uint4>(w), x, y,
                       shape, its);
        case Weights::single:
          return start(device, watch, launch, product_single<kTokens, Its>, w, x, y, shape, its);
        case Weights::columns:
          return start(device, watch, launch, product_columns<kTokens, Its>, w, x, y, shape, its);
        case Weights::floats:
          return start(device, watch, launch, product_floats<kTokens, Its>,
                       simt::as<const float4>(simt::global(arrays.w_floats, "w")), x, y, shape,
                       its);
        case Weights::bytes:
          break;
      }
      start(device, watch, launch, product_bytes<kTokens, Its>,
            simt::as<const uint4>(simt::global(arrays.w_bytes, "w")),
            simt::global(arrays.scales, "scales"), x, y, shape, its);
    });
  });
}

inline void start_dequant(simt::Device& device, int rows, int k,
                          simt::Span<const unsigned char> from, simt::Span<const float> scales,
                          simt::Span<std::uint16_t> to, const Watch& watch) {
  simt::require_multiple("triage: k of a product", k, 16);
  const long long packs = static_cast<long long>(rows) * (k / 16);
  with_watch(watch, [&](auto its) {
    start(device, watch,
          simt::row_of_blocks("dequant", simt::blocks_for(packs, kThreads), kThreads),
          dequant<decltype(its)>, simt::as<const uint4>(simt::global(from, "from")),
          simt::global(scales, "scales"), simt::as<uint4>(simt::global(to, "to")), packs, k / 16,
          its);
  });
}

}  // namespace tilestep::triage::SIMT_BACKEND

// Sparse attention: the shapes that the explained kernels accept, and their launches.

#include "kernels/attention/sparse_attention/gather.cu"
#include "kernels/attention/sparse_attention/index.cu"
#include "kernels/attention/sparse_attention/timed/launches.hpp"

namespace tilestep::sparse_attention::SIMT_BACKEND {
namespace {

Mask mask_of(const MaskShape& shape, const MaskArrays& arrays) {
  simt::require_within("sparse-attention: length", shape.length, 1, 1 << 12);
  simt::require_within("sparse-attention: window", shape.window, 1, 1 << 12);
  if (shape.method == Method::dsa)
    throw Error("sparse-attention: dsa has no mask; allowed: the other methods");
  return {shape.method, shape.length, shape.window, simt::global(arrays.documents, "documents")};
}
void check_tile(int tile) {
  simt::with_constant<4, 8, 16, 32>("sparse-attention: tile", tile, [](auto) {});
}

class KernelsHere final : public Kernels {
 public:
  void pairs(simt::Device& device, const MaskShape& shape,
             const MaskArrays& arrays) const override {
    const Mask mask = mask_of(shape, arrays);
    const auto blocks = simt::blocks_for(std::int64_t{shape.length} * shape.length, 128);
    simt::launch(device, simt::row_of_blocks("pairs", blocks, 128), pairs_kernel, mask,
                 simt::global(arrays.pairs, "pairs"));
  }

  void tiles(simt::Device& device, const MaskShape& shape, Finding finding,
             const MaskArrays& arrays) const override {
    const Mask mask = mask_of(shape, arrays);
    check_tile(shape.tile);
    const auto tiles = static_cast<unsigned>(tiles_of(shape.length, shape.tile));
    const simt::Launch launch{.name = "tiles", .grid = dim3(tiles, tiles), .block = dim3(32)};
    simt::launch(device, launch, tiles_kernel, mask, shape.tile, finding,
                 simt::global(arrays.kinds, "kinds"));
  }

  void attend(simt::Device& device, const MaskShape& shape, const MaskArrays& arrays,
              const simt::Tape& tape) const override {
    const Mask mask = mask_of(shape, arrays);
    check_tile(shape.tile);
    const Attention attention{simt::global(arrays.q, "q"),
                              simt::global(arrays.k, "k"),
                              simt::global(arrays.v, "v"),
                              simt::global(simt::Span<const int>(arrays.kinds), "kinds"),
                              simt::global(arrays.o, "o"),
                              simt::global(arrays.lse, "lse"),
                              1 / std::sqrt(static_cast<float>(kKey))};
    const std::size_t shared = sizeof(float) * static_cast<std::size_t>(shape.tile) *
                               static_cast<std::size_t>(kKey + kValue);
    const simt::Launch launch =
        simt::row_of_blocks("attend", tiles_of(shape.length, shape.tile), kWarps * 32, shared);
    simt::with_tape(tape, [&](const auto& its) {
      simt::launch(device, launch, attend_kernel<std::decay_t<decltype(its)>>, attention, mask,
                   shape.tile, its);
    });
  }

  void choose(simt::Device& device, const IndexShape& shape, const IndexArrays& arrays,
              Break broken, const simt::Tape& tape) const override {
    simt::require_within("sparse-attention: length", shape.length, 1, 1 << 16);
    simt::require_within("sparse-attention: heads of the indexer", shape.heads, 1, 64);
    simt::require_within("sparse-attention: top_k", shape.top_k, 1, kMostTopK);
    simt::require_within("sparse-attention: tokens of a tile", shape.tile, 1, 32);
    simt::require_within("sparse-attention: room", shape.room, shape.top_k + shape.tile,
                         2 * kMostTopK);
    const Index index{simt::global(arrays.q, "q"), simt::global(arrays.keys, "keys"),
                      simt::global(arrays.weights, "weights"),
                      simt::global(arrays.scales, "scales"), simt::global(arrays.chosen, "chosen")};
    const std::size_t shared = sizeof(Entry) * static_cast<std::size_t>(shape.room) +
                               sizeof(int) * static_cast<std::size_t>(Best::kCounts);
    const simt::Launch launch = simt::row_of_blocks("choose", shape.length, 32, shared);
    simt::with_tape(tape, [&](const auto& its) {
      simt::launch(device, launch, choose_kernel<std::decay_t<decltype(its)>>, index, shape, broken,
                   its);
    });
  }

  void gather(simt::Device& device, const GatherShape& shape, const GatherArrays& arrays,
              Break broken, const simt::Tape& tape) const override {
    simt::require_within("sparse-attention: length", shape.length, 1, 1 << 16);
    simt::require_within("sparse-attention: heads", shape.heads, 1, 1 << 10);
    simt::require_within("sparse-attention: top_k", shape.top_k, 1, kMostTopK);
    simt::require_within("sparse-attention: page_size", shape.page_size, 1, 1 << 16);
    const Gather gather{simt::global(arrays.q, "q"), simt::global(arrays.cache, "cache"),
                        simt::global(arrays.table, "table"), simt::global(arrays.chosen, "chosen"),
                        simt::global(arrays.o, "o")};
    const simt::Launch launch{
        .name = "gather",
        .grid = dim3(static_cast<unsigned>(shape.length), static_cast<unsigned>(shape.heads)),
        .block = dim3(32),
        .shared_bytes = sizeof(float) * 32 * kValue};
    simt::with_tape(tape, [&](const auto& its) {
      simt::launch(device, launch, gather_kernel<std::decay_t<decltype(its)>>, gather, shape,
                   broken, its);
    });
  }

  void attend_listed(simt::Device& device, const timed::ListShape& shape,
                     const timed::ListArrays& arrays) const override {
    timed::SIMT_BACKEND::attend_here(device, shape, arrays);
  }
  void score(simt::Device& device, const timed::ScoreShape& shape,
             const timed::ScoreArrays& arrays) const override {
    timed::SIMT_BACKEND::score_here(device, shape, arrays);
  }
  void decode(simt::Device& device, const timed::DecodeShape& shape,
              const timed::DecodeArrays& arrays) const override {
    timed::SIMT_BACKEND::decode_here(device, shape, arrays);
  }
  simt::LibraryStatus library() const override { return simt::library_status(); }
  int library_algorithms(const simt::LibraryProduct& product,
                         const simt::LibraryArrays& arrays) const override {
    return simt::library_algorithms(product, arrays);
  }
  void library_multiply(const simt::LibraryProduct& product, int algorithm,
                        const simt::LibraryArrays& arrays) const override {
    simt::library_multiply(product, algorithm, arrays);
  }
};

}  // namespace
}  // namespace tilestep::sparse_attention::SIMT_BACKEND
SIMT_KERNEL_SET(sparse_attention, KernelsHere)

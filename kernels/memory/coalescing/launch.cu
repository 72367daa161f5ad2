// Coalescing: how the kernels of access.cu and ladders.cu are launched.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/memory/coalescing/access.cu"
#include "kernels/memory/coalescing/ladders.cu"
#include "kernels/memory/coalescing/launch.hpp"

namespace tilestep::coalescing::SIMT_BACKEND {

// ---- access.cu ----------------------------------------------------------------------------------

/// Starts gather or scatter on `blocks` blocks. `pattern` is a constant, or a value.
template <class Which, class In, class Out>
void launch_access(simt::Device& device, const PatternShape& shape, Index blocks, Which pattern,
                   const In& in, const Out& out) {
  const bool load = shape.access == Access::load;
  simt::launch(device, simt::row_of_blocks(load ? "gather" : "scatter", blocks, kThreadsPerBlock),
               load ? gather<Which, In, Out> : scatter<Which, In, Out>, in, out, shape, pattern);
}

// ---- ladders.cu ---------------------------------------------------------------------------------

/// One block for each tile, whose rows are `pitch` floats apart in shared memory.
simt::Launch transpose_launch(const TransposeShape& shape, const char* name, int pitch) {
  const auto tiles = [&](int size) {
    return static_cast<unsigned>(simt::blocks_for(size, shape.tile));
  };
  const unsigned across = tiles(shape.columns);
  const unsigned down = tiles(shape.rows);
  return {
      .name = name,
      .grid = shape.down_columns ? dim3(down, across) : dim3(across, down),
      .block = dim3(static_cast<unsigned>(shape.tile), static_cast<unsigned>(shape.thread_rows)),
      .shared_bytes = static_cast<std::size_t>(shape.tile) * pitch * sizeof(float)};
}

template <int kTile, int kRows>
void launch_transpose(simt::Device& device, TransposeRung rung, const TransposeShape& shape,
                      simt::Span<const float> in, simt::Span<float> out) {
  const auto from = simt::global(in, "in");
  const auto to = simt::global(out, "out");
  switch (rung) {
    case TransposeRung::naive:
      return simt::launch(device, transpose_launch(shape, "transpose_naive", 0),
                          transpose_naive<kTile, kRows>, from, to, shape.rows, shape.columns,
                          shape.down_columns);
    case TransposeRung::shared_tile:
      return simt::launch(device, transpose_launch(shape, "transpose_tile", kTile),
                          transpose_tile<kTile, kTile, kRows, simt::NoTape>, from, to, shape.rows,
                          shape.columns, shape.down_columns, simt::NoTape{});
    case TransposeRung::shared_tile_padded:
      return simt::launch(device, transpose_launch(shape, "transpose_tile_padded", kTile + 1),
                          transpose_tile<kTile, kTile + 1, kRows, simt::NoTape>, from, to,
                          shape.rows, shape.columns, shape.down_columns, simt::NoTape{});
  }
}

// ---- the kernel set -----------------------------------------------------------------------------

class KernelsHere final : public Kernels {
 public:
  void access(simt::Device& device, const PatternShape& shape, simt::Span<const unsigned char> in,
              simt::Span<unsigned char> out, const simt::Tape& tape,
              std::int64_t blocks) const override {
    check_access(shape, in.count, out.count);
    const bool load = shape.access == Access::load;
    with_element(shape.element_bytes, [&](auto element) {
      using E = decltype(element);
      const auto from = elements_of<const E>(in);
      const auto to = elements_of<E>(out);
      if (tape) {
        return launch_access(device, shape, blocks, shape.pattern,
                             simt::traced(from, "in", tape, load ? kPatternSite : kPlainSite),
                             simt::traced(to, "out", tape, load ? kPlainSite : kPatternSite));
      }
      with_pattern(shape.pattern, [&](auto pattern) {
        launch_access(device, shape, simt::blocks_for(shape.elements, kThreadsPerBlock), pattern,
                      simt::global(from, "in"), simt::global(to, "out"));
      });
    });
  }

  void sweep(simt::Device& device, const PatternShape& shape, const SweepConfig& config,
             simt::Span<const unsigned char> in, simt::Span<unsigned char> out) const override {
    check_access(shape, in.count, out.count);
    if (config.loads != 4 && (config.loads != 1 || shape.pattern != Pattern::strided)) {
      throw Error("sweep: 4 loads a thread are compiled, and 1 of the pattern strided");
    }
    start_sweep(device, shape, config, in, out);
  }

  void fill_random(simt::Device& device, simt::Span<unsigned> words, unsigned seed) const override {
    const auto count = static_cast<Index>(words.count);
    simt::launch(device, simt::row_of_blocks("fill_random", simt::blocks_for(count, 256), 256),
                 SIMT_BACKEND::fill_random, simt::global(words, "words"), count, seed);
  }

  void copy(simt::Device& device, CopyRung rung, const CopyConfig& config,
            simt::Span<const float> in, simt::Span<float> out) const override {
    assert(in.count == out.count && config.threads >= 32);
    const auto count = static_cast<Index>(in.count);
    const auto start = [&](const char* name, Index blocks, auto kernel) {
      simt::launch(device, simt::row_of_blocks(name, blocks, config.threads), kernel,
                   simt::global(in, "in"), simt::global(out, "out"), count);
    };
    if (rung == CopyRung::strided) {
      const Index threads = (count + kStridedCopyFloats - 1) / kStridedCopyFloats;
      return start("copy_strided", simt::blocks_for(threads, config.threads), copy_strided);
    }
    if (rung == CopyRung::coalesced) {
      return start("copy_coalesced", simt::blocks_for(count, config.threads), copy_coalesced);
    }
    simt::with_constant<1, 2, 4, 8>("copy: packs a thread", config.packs, [&](auto packs) {
      constexpr int kPacks = decltype(packs)::value;
      const Index all = simt::blocks_for((count + 3) / 4, config.threads * kPacks);
      start("copy_vectorized", config.blocks > 0 && config.blocks < all ? config.blocks : all,
            config.streaming ? copy_vectorized<kPacks, true> : copy_vectorized<kPacks, false>);
    });
  }

  void transpose(simt::Device& device, TransposeRung rung, const TransposeShape& shape,
                 simt::Span<const float> in, simt::Span<float> out) const override {
    simt::with_constant<32, 64>("transpose: edge of a tile", shape.tile, [&](auto tile) {
      simt::with_constant<4, 8, 16>("transpose: thread rows", shape.thread_rows, [&](auto rows) {
        launch_transpose<decltype(tile)::value, decltype(rows)::value>(device, rung, shape, in,
                                                                       out);
      });
    });
  }

  void transpose_traced(simt::Device& device, TransposeRung rung, int rows, int columns,
                        simt::Span<const float> in, simt::Span<float> out,
                        const simt::Tape& tape) const override {
    if (rung == TransposeRung::naive) throw Error("the naive transpose uses no shared memory");
    const bool padded = rung == TransposeRung::shared_tile_padded;
    simt::Launch launch =
        transpose_launch(TransposeShape{rows, columns}, "transpose_tile_traced", padded ? 33 : 32);
    launch.grid = dim3(1);
    simt::launch(
        device, launch,
        padded ? transpose_tile<32, 33, 8, simt::Tape> : transpose_tile<32, 32, 8, simt::Tape>,
        simt::global(in, "in"), simt::global(out, "out"), rows, columns, false, tape);
  }

  void count_wrong(simt::Device& device, std::int64_t rows, std::int64_t columns, unsigned seed,
                   simt::Span<const unsigned> out,
                   simt::Span<unsigned long long> wrong) const override {
    assert(out.count == static_cast<std::size_t>(rows * columns));
    simt::launch(device,
                 simt::row_of_blocks("count_wrong", simt::blocks_for(rows * columns, 256), 256),
                 SIMT_BACKEND::count_wrong, simt::global(out, "out"), rows, columns, seed,
                 simt::global(wrong, "wrong"));
  }

 private:
  static void check_access(const PatternShape& shape, std::size_t in_bytes, std::size_t out_bytes) {
    const bool load = shape.access == Access::load;
    [[maybe_unused]] const auto room = [&](std::int64_t elements) {
      return static_cast<std::size_t>(elements) * static_cast<std::size_t>(shape.element_bytes);
    };
    assert(in_bytes >= room(load ? shape.array_elements : shape.elements));
    assert(out_bytes >= room(load ? shape.elements : shape.array_elements));
    (void)load, (void)in_bytes, (void)out_bytes;
  }
};

}  // namespace tilestep::coalescing::SIMT_BACKEND
SIMT_KERNEL_SET(coalescing, KernelsHere)

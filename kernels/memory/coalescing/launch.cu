// Coalescing: how the kernels of access.cu, sweep.cu and ladders.cu are launched.

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/memory/coalescing/kernels.hpp"
#include "kernels/memory/coalescing/ladders.cu"
#include "kernels/memory/coalescing/sweep.cu"

namespace tilestep::coalescing::SIMT_BACKEND {

// ---- access.cu ----------------------------------------------------------------------------------

/// `bytes` as elements of type E.
template <class E, class Byte>
simt::Span<E> elements_of(simt::Span<Byte> bytes) {
  assert(reinterpret_cast<std::uintptr_t>(bytes.data) % sizeof(E) == 0);
  return {reinterpret_cast<E*>(bytes.data), bytes.count / sizeof(E)};
}

/// Calls `run` with the pattern as a constant, of which nvcc leaves one line. Emulated, where nothing is optimized away,
/// it stays a value: that is sixty kernels fewer of each to compile.
template <class Run>
void with_pattern(Pattern pattern, Run run) {
#if defined(__CUDACC__)
  const auto choose = [&]<std::size_t... kAt>(std::index_sequence<kAt...>) {
    return ((pattern == kPatterns[kAt] &&
             (run(std::integral_constant<Pattern, kPatterns[kAt]>{}), true)) ||
            ...);
  };
  [[maybe_unused]] const bool known = choose(std::make_index_sequence<kPatterns.size()>{});
  assert(known);
#else
  run(pattern);
#endif
}

/// Calls `run` with a value of an element type of `bytes`.
template <class Run>
void with_element(int bytes, Run run) {
  using Elements = std::tuple<unsigned char, unsigned short, unsigned, uint2, uint4>;
  simt::with_constant<1, 2, 4, 8, 16>("element_bytes", bytes, [&](auto size) {
    run(std::tuple_element_t<std::countr_zero(unsigned{size}), Elements>{});
  });
}

/// Starts gather or scatter on `blocks` blocks. `pattern` is a constant, or a value.
template <class Which, class In, class Out>
void launch_access(simt::Device& device, const PatternShape& shape, Index blocks, Which pattern,
                   const In& in, const Out& out) {
  const bool load = shape.access == Access::load;
  simt::launch(device, simt::row_of_blocks(load ? "gather" : "scatter", blocks, kThreadsPerBlock),
               load ? gather<Which, In, Out> : scatter<Which, In, Out>, in, out, shape, pattern);
}

/// Starts their sweeps.
template <int kLoads, class E, class Which, class In, class Out>
void launch_sweep(simt::Device& device, const PatternShape& shape, Index blocks, Which pattern,
                  const In& in, const Out& out) {
  const bool load = shape.access == Access::load;
  const Index all = simt::blocks_for(shape.elements, kThreadsPerBlock * kLoads);
  if (blocks <= 0 || blocks > all) blocks = all;
  simt::launch(
      device,
      simt::row_of_blocks(load ? "gather_sweep" : "scatter_sweep", blocks, kThreadsPerBlock),
      load ? gather_sweep<kLoads, E, Which, In, Out> : scatter_sweep<kLoads, E, Which, In, Out>, in,
      out, shape, pattern);
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
    with_element(shape.element_bytes, [&](auto element) {
      using E = decltype(element);
      const auto from = simt::global(elements_of<const E>(in), "in");
      const auto to = simt::global(elements_of<E>(out), "out");
      if (config.loads == 1) {
        using Strided = std::integral_constant<Pattern, Pattern::strided>;
        return launch_sweep<1, E>(device, shape, config.blocks, Strided{}, from, to);
      }
      with_pattern(shape.pattern, [&](auto pattern) {
        launch_sweep<4, E>(device, shape, config.blocks, pattern, from, to);
      });
    });
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

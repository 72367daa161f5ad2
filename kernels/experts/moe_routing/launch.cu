// MoE routing: the shapes that the kernels accept, and their launches.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/cuda/cublas.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/experts/moe_routing/grouped_mma.cu"
#include "kernels/experts/moe_routing/kernels.hpp"
#include "kernels/experts/moe_routing/routing.cu"
#include "kernels/experts/moe_routing/wgmma/launches.hpp"

namespace tilestep::moe_routing::SIMT_BACKEND {

// ---- routing.cu ---------------------------------------------------------------------------------

simt::Launch launch_of(const char* name, std::int64_t threads, std::size_t shared_ints = 0) {
  return simt::row_of_blocks(name, simt::blocks_for(threads, kThreads), kThreads,
                             shared_ints * sizeof(int));
}

void check_route(const RouteShape& shape) {
  simt::require_within("moe-routing: tokens", shape.tokens, 1, 1 << 24);
  simt::require_within("moe-routing: experts", shape.experts, 1, kThreads);
  simt::require_within("moe-routing: top_k", shape.top_k, 1, shape.experts);
  simt::require_within("moe-routing: tile", shape.tile, 1, 1 << 16);
}

// ---- grouped_mma.cu, grouped_wgmma.cu -----------------------------------------------------------

using MmaWide = grouped_mma::GroupedTiling<256, 128, 64, 64, 3, 1>;
using MmaDeep = grouped_mma::GroupedTiling<128, 256, 64, 64, 3, 1>;
using MmaSquare = grouped_mma::GroupedTiling<128, 128, 64, 64, 3, 2>;
using MmaSmall = grouped_mma::GroupedTiling<64, 64, 32, 32, 3, 3>;

/// Those that need Hopper come last.
constexpr Configuration kConfigurations[] = {
    {"128 tokens x 256, 8 warps of 64x64, 3 stages", 128, 256, grouped_mma::kDepth, false},
    {"256 tokens x 128, 8 warps of 64x64, 3 stages", 256, 128, grouped_mma::kDepth, false},
    {"128 tokens x 128, 4 warps of 64x64, 3 stages", 128, 128, grouped_mma::kDepth, false},
    {"64 tokens x 64, 4 warps of 32x32, 3 stages", 64, 64, grouped_mma::kDepth, false},
    {"256 tokens x 128, TMA and wgmma 64x256, 4 stages", 256, 128, 64, true},
    {"128 tokens x 256, TMA and wgmma 64x128, 4 stages", 128, 256, 64, true},
    {"256 tokens x 256 by two blocks, TMA and wgmma 64x256, 4 stages", 256, 256, 64, true},
    {"128 tokens x 512 by two blocks, TMA and wgmma 64x128, 4 stages", 128, 512, 64, true},
};

/// Throws Error for a shape that the configuration does not accept.
void check_grouped(const simt::Device& device, const Configuration& tile,
                   const GroupedShape& shape) {
  simt::require_multiple("moe-routing: hidden", shape.hidden, tile.tile_hidden);
  simt::require_multiple("moe-routing: width", shape.width, tile.tile_width);
  simt::require_within("moe-routing: experts", shape.experts, 1);
  simt::require_within("moe-routing: slots", shape.slots, 0);
  simt::require_within("moe-routing: blocks", shape.blocks, 0);
  if (!tile.hopper) {
    simt::require_capability(device.info(), "moe-routing: a product on BF16 tensor cores",
                             simt::kMmaCapability);
  } else if (!runs_wgmma(device.info())) {
    simt::refuse_device(device.info(), "moe-routing: tiles of " + std::string(tile.name),
                        "wgmma, which compute capability 9.0 alone has");
  }
}

template <class T, class Tape>
void launch_mma(simt::Device& device, const Configuration& tile, const GroupedShape& shape,
                const GroupedOperands& operands, const Tape& tape) {
  simt::Launch launch{.name = "grouped_gemm",
                      .grid = dim3(1),
                      .block = dim3(T::kThreads),
                      .shared_bytes = T::kSharedBytes};
  const auto kernel = grouped_mma::grouped_gemm<T, Tape>;
  int persistent = device.info().multiprocessors;
  static const simt::Resources takes = simt::resources_of(launch, kernel);  // queried once
  if (takes.compiled) persistent *= takes.blocks_per_multiprocessor;
  launch.grid = grid_of(shape, tile, persistent);
  simt::launch(device, launch, kernel, operands, shape, tape);
}

template <class Tape>
void launch_grouped(simt::Device& device, int configuration, const GroupedShape& shape,
                    const GroupedArrays& arrays, const Tape& tape) {
  const GroupedOperands operands = operands_of(arrays);
  const Configuration& tile = kConfigurations[configuration];
  switch (configuration) {
    case 0:
      return launch_mma<MmaWide>(device, tile, shape, operands, tape);
    case 1:
      return launch_mma<MmaDeep>(device, tile, shape, operands, tape);
    case 2:
      return launch_mma<MmaSquare>(device, tile, shape, operands, tape);
    case 3:
      return launch_mma<MmaSmall>(device, tile, shape, operands, tape);
    default:
      return launch_wgmma(device, tile, shape, arrays, tape);
  }
}

// ---- the kernel set -----------------------------------------------------------------------------

class KernelsHere final : public Kernels {
 public:
  void route(simt::Device& device, const RouteShape& shape,
             const RouteArrays& arrays) const override {
    check_route(shape);
    const std::int64_t assignments = std::int64_t{shape.tokens} * shape.top_k;
    const int chunks = static_cast<int>(simt::blocks_for(assignments, kThreads));
    assert(arrays.chunk_counts.count >= numeric::elements_of(chunks, shape.experts));
    const auto expert = simt::global(arrays.expert, "expert");
    const auto rank = simt::global(arrays.rank, "rank");
    const LaidOut out{simt::global(arrays.chunk_counts, "chunk_counts"),
                      simt::global(arrays.wanted, "wanted"), simt::global(arrays.kept, "kept"),
                      simt::global(arrays.first_slot, "first_slot"),
                      simt::global(arrays.first_tile, "first_tile")};
    simt::launch(device, launch_of("score_and_choose", shape.tokens), score_and_choose,
                 simt::global(arrays.logits, "logits"),
                 Chosen{expert, simt::global(arrays.probability, "probability"),
                        simt::global(arrays.gate, "gate")},
                 shape);
    simt::launch(
        device,
        launch_of("count_chunk", assignments,
                  static_cast<std::size_t>(kChunk) + static_cast<std::size_t>(shape.experts)),
        count_chunk, expert, rank, out.chunk_counts, shape);
    simt::launch(device, launch_of("lay_out", kThreads, kThreads + 1), lay_out, out, shape, chunks);
    simt::launch(device, launch_of("place", assignments), place, expert, out, rank,
                 simt::global(arrays.slot, "slot"), shape);
  }

  void permute(simt::Device& device, const RouteShape& shape, int hidden,
               simt::Span<const std::uint16_t> tokens, simt::Span<const int> slot,
               simt::Span<std::uint16_t> x) const override {
    if (x.count == 0) return;
    device.fill(x.data, 0, x.count * sizeof(std::uint16_t));
    simt::launch(device,
                 launch_of("permute_rows", std::int64_t{shape.tokens} * shape.top_k * hidden),
                 permute_rows, simt::global(tokens, "tokens"), simt::global(slot, "slot"),
                 simt::global(x, "x"), shape, hidden);
  }

  int multiply(simt::Device& device, const GroupedShape& shape, const GroupedArrays& arrays,
               const simt::Tape& tape) const override {
    simt::require_multiple("moe-routing: hidden", shape.hidden, kMmaDepth);
    simt::require_multiple("moe-routing: width", shape.width, kMmaRows);
    simt::require_multiple("moe-routing: tile", shape.tile, kMmaColumns);
    simt::require_capability(device.info(), "moe-routing: a product on BF16 tensor cores",
                             simt::kMmaCapability);
    const bool packed = shape.scheme == Scheme::packed;
    const dim3 grid =
        packed ? dim3(static_cast<unsigned>(shape.blocks > 0 ? shape.blocks : kProcessors))
               : dim3(static_cast<unsigned>(shape.most_tiles > 0 ? shape.most_tiles : 1),
                      static_cast<unsigned>(shape.experts));
    simt::with_tape(tape, [&]<class Tape>(const Tape& chosen) {
      simt::launch(device, {.name = "multiply_tiles", .grid = grid, .block = dim3(32)},
                   multiply_tiles<Tape>, operands_of(arrays), shape, chosen);
    });
    return static_cast<int>(grid.x * grid.y);
  }

  void combine(simt::Device& device, const RouteShape& shape, int width,
               simt::Span<const float> gate, simt::Span<const int> slot, simt::Span<const float> y,
               simt::Span<float> out) const override {
    simt::launch(device, launch_of("combine_choices", std::int64_t{shape.tokens} * width),
                 combine_choices, simt::global(gate, "gate"), simt::global(slot, "slot"),
                 simt::global(y, "y"), simt::global(out, "out"), shape, width);
  }

  std::span<const Configuration> configurations() const override { return kConfigurations; }

  void grouped_gemm(simt::Device& device, int configuration, const GroupedShape& shape,
                    const GroupedArrays& arrays, const simt::Tape& tape) const override {
    assert(configuration >= 0 && configuration < static_cast<int>(std::size(kConfigurations)));
    const Configuration& tile = kConfigurations[configuration];
    check_grouped(device, tile, shape);
    assert(arrays.x.count == numeric::elements_of(shape.slots, shape.hidden));
    assert(arrays.y.count == numeric::elements_of(shape.slots, shape.width));
    assert(arrays.weights.count == numeric::elements_of(shape.experts * shape.width, shape.hidden));
    assert(arrays.first_slot.count == numeric::elements_of(shape.experts + 1, 1));
    assert(arrays.first_tile.count == arrays.first_slot.count);
    if (shape.slots == 0) return;
    simt::with_tape(tape, [&](const auto& chosen) {
      launch_grouped(device, configuration, shape, arrays, chosen);
    });
  }

  LibraryStatus library(simt::Device&) const override { return simt::library_status(); }

  // Plain calls on the default stream, one after another: the host's share of a call overlaps with
  // the preceding products.
  void library_loop(simt::Device&, [[maybe_unused]] const GroupedShape& shape,
                    [[maybe_unused]] const GroupedArrays& arrays,
                    [[maybe_unused]] std::span<const int> first_slot,
                    [[maybe_unused]] std::span<const int> kept) const override {
    const LibraryStatus status = simt::library_status();
    if (!status.available) throw Error(status.reason, ExitCode::unavailable);
#if defined(__CUDACC__)
    const simt::cuda::Cublas& cublas = simt::cuda::Cublas::loaded();
    const auto hidden = static_cast<std::size_t>(shape.hidden);
    const auto width = static_cast<std::size_t>(shape.width);
    for (std::size_t expert = 0; expert < kept.size(); ++expert) {
      if (kept[expert] == 0) continue;
      const auto slot = static_cast<std::size_t>(first_slot[expert]);
      cublas.gemm_bf16_transposed(
          kept[expert], shape.width, shape.hidden, arrays.x.data + slot * hidden,
          arrays.weights.data + expert * width * hidden, arrays.y.data + slot * width);
    }
#endif
  }
};

}  // namespace tilestep::moe_routing::SIMT_BACKEND
SIMT_KERNEL_SET(moe_routing, KernelsHere)

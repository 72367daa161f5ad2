#pragma once

/// \file
/// Shared by the files that launch the large grouped product.

#include "kernels/experts/moe_routing/kernels.hpp"
#include "kernels/experts/moe_routing/tiles.hpp"

namespace tilestep::moe_routing::SIMT_BACKEND {

inline GroupedOperands operands_of(const GroupedArrays& arrays) {
  return {simt::global(arrays.x, "x"),
          simt::global(arrays.weights, "weights"),
          simt::global(arrays.y, "y"),
          simt::global(arrays.first_slot, "first_slot"),
          simt::global(arrays.first_tile, "first_tile"),
          simt::global(arrays.order, "order")};
}

/// Blocks of the launch: `persistent` for `packed` (fewer if the shape says so), otherwise as many
/// as an expert may have tiles, for each expert. The counts are only on the device, so for
/// `tile_padded` an expert may have every slot.
inline dim3 grid_of(const GroupedShape& shape, const Configuration& tile, int persistent) {
  const auto tiles_of = [](int size, int of) { return (size + of - 1) / of; };
  const int across = shape.width / tile.tile_width;
  switch (shape.scheme) {
    case Scheme::packed:
      break;
    case Scheme::tile_padded:
      return {static_cast<unsigned>(tiles_of(shape.slots, tile.tile_tokens) * across),
              static_cast<unsigned>(shape.experts)};
    case Scheme::padded_to_capacity:
      return {
          static_cast<unsigned>(tiles_of(shape.slots / shape.experts, tile.tile_tokens) * across),
          static_cast<unsigned>(shape.experts)};
  }
  const int blocks = shape.blocks > 0 ? shape.blocks : persistent;
  return {static_cast<unsigned>(blocks)};
}

/// A configuration of grouped_wgmma.cu, in launch_grouped.cu; for both tapes, the empty one records nothing.
void launch_wgmma(simt::Device& device, const Configuration& tile, const GroupedShape& shape,
                  const GroupedArrays& arrays, const simt::Tape& tape);
void launch_wgmma(simt::Device& device, const Configuration& tile, const GroupedShape& shape,
                  const GroupedArrays& arrays, const simt::NoTape& tape);

}  // namespace tilestep::moe_routing::SIMT_BACKEND

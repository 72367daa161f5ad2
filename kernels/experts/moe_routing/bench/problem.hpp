#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "kernels/experts/moe_routing/grouped.hpp"

/// The bench's products, their comparison with double, and the evaluation of a recorded run:
/// when its blocks ran which tiles.
namespace tilestep::moe_routing {

/// BF16 bit patterns, random in (−1, 1).
using RandomArray = lab::Repeated<std::uint16_t>;

/// The experts' weights, and tokens in the order of their experts.
struct GroupedProblem {
  GroupedProblem(simt::Device& device, int tokens, int experts, int hidden, int width);

  int tokens, experts, hidden, width;
  RandomArray x;        ///< [tokens × hidden]
  RandomArray weights;  ///< [experts × width × hidden]
};

/// The problem's tokens in a layout, with room for the result.
class LaidOut {
 public:
  /// `tile_width`: of the configuration that will run; 0: none, only the library.
  LaidOut(simt::Device& device, const GroupedProblem& problem, GroupedLayout layout,
          int tile_width);

  const GroupedLayout& layout() const { return layout_; }
  GroupedShape shape() const;
  GroupedArrays arrays();
  simt::Buffer<float>& y() { return y_; }
  /// Device memory of a layout beyond the problem's own.
  static double bytes_of(const GroupedProblem& problem, const GroupedLayout& layout);

 private:
  const GroupedProblem& problem_;
  GroupedLayout layout_;
  simt::Buffer<std::uint16_t> x_;  ///< empty for `packed`, which takes the tokens as they lie
  simt::Buffer<int> first_slot_, first_tile_, kept_;
  simt::Buffer<int> order_;  ///< empty unless `packed`
  simt::Buffer<float> y_;
};

/// The launch, and its comparison: of every expert that has tokens some rows, the first and
/// the last among them, of which no element may be NaN, and some elements of each with double.
lab::Runnable runnable(simt::Device& device, const GroupedProblem& problem,
                       std::shared_ptr<LaidOut> laid_out, numeric::Adding adding,
                       std::function<void()> launch);

/// A tile of a recorded run; times in µs since the first tile began.
struct RanTile {
  int lane = 0;  ///< the persistent block, or the place of blocks that ran one after another
  int expert = 0;
  double begin_us = 0, end_us = 0;
};
/// One recorded run of a configuration, by lane and begin.
std::vector<RanTile> record_tiles(simt::Device& device, const Kernels& kernels, int configuration,
                                  LaidOut& laid_out);
/// The share of the time from the first tile's begin to the last one's end in which the lanes have a tile.
double busy_share(const std::vector<RanTile>& tiles);
/// Merges neighbours of one expert in a lane, and keeps every n-th lane, so that at most `most`
/// are left.
std::vector<RanTile> runs_of_experts(const std::vector<RanTile>& tiles, std::size_t most);

}  // namespace tilestep::moe_routing

#pragma once

#include <functional>
#include <vector>

#include "kernels/base/lab/ladder.hpp"
#include "kernels/experts/moe_routing/grouped.hpp"

/// What the bench multiplies, how it compares the result with double, and what it makes of a
/// recorded run.
namespace tilestep::moe_routing {

/// Numbers as BF16 bit patterns on the device: random in (−1, 1), the same again after `kPeriod`
/// of them, so that the host knows each without holding all.
class RandomArray {
 public:
  RandomArray(simt::Device& device, std::size_t count, unsigned seed);

  simt::Span<const std::uint16_t> span() const { return array_.span(); }
  std::size_t bytes() const { return array_.bytes(); }
  /// `count` numbers from `first` on.
  std::vector<std::uint16_t> values(std::size_t first, std::size_t count) const;

 private:
  /// A prime, so that rows and experts differ.
  static constexpr std::size_t kPeriod = 4194301;
  std::vector<std::uint16_t> period_;
  simt::Buffer<std::uint16_t> array_;
};

/// The experts' weights, and tokens in the order of their experts.
struct GroupedProblem {
  GroupedProblem(simt::Device& device, int tokens, int experts, int hidden, int width);

  int tokens, experts, hidden, width;
  RandomArray x;        ///< [tokens × hidden]
  RandomArray weights;  ///< [experts × width × hidden]
};

/// The problem's tokens as a layout wants them, with room for the result.
class LaidOut {
 public:
  /// `tile_width`: of the configuration that will run; 0: none, the library alone.
  LaidOut(simt::Device& device, const GroupedProblem& problem, GroupedLayout layout,
          int tile_width);

  const GroupedLayout& layout() const { return layout_; }
  GroupedShape shape() const;
  GroupedArrays arrays();
  simt::Buffer<float>& y() { return y_; }
  /// Device memory that a layout takes besides the problem's own.
  static double bytes_of(const GroupedProblem& problem, const GroupedLayout& layout);

 private:
  const GroupedProblem& problem_;
  GroupedLayout layout_;
  simt::Buffer<std::uint16_t> x_;  ///< empty for `packed`, which takes the tokens as they lie
  simt::Buffer<int> first_slot_, first_tile_, kept_;
  simt::Buffer<int> order_;  ///< empty unless `packed`
  simt::Buffer<float> y_;
};

/// Runs `launch` once on a result full of NaN. Of every expert that has tokens it takes some rows,
/// the first and the last among them, of which no element may be NaN, and compares some elements of
/// each with double.
lab::Closest error_of(simt::Device& device, const GroupedProblem& problem, LaidOut& laid_out,
                      bool library, const std::function<void()>& launch);

/// A tile of a recorded run; times in µs since the first tile began.
struct RanTile {
  int lane = 0;  ///< the persistent block, or where blocks that ran one after the other ran
  int expert = 0;
  double begin_us = 0, end_us = 0;
};
/// One recorded run of a configuration, by lane and begin.
std::vector<RanTile> record_tiles(simt::Device& device, const Kernels& kernels, int configuration,
                                  LaidOut& laid_out);
/// How much of the time from the first tile's begin to the last one's end the lanes have a tile.
double busy_share(const std::vector<RanTile>& tiles);
/// Neighbours in a lane that are of one expert become one, and of the lanes every n-th is kept, so
/// that `most` are left at most.
std::vector<RanTile> runs_of_experts(const std::vector<RanTile>& tiles, std::size_t most);

}  // namespace tilestep::moe_routing

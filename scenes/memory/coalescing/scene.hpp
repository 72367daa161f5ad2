#pragma once

#include <string>
#include <vector>

#include "kernels/memory/coalescing/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// Memory coalescing: the 32 lanes of a warp above, the sectors of memory that their request
/// touches below, a connector from each lane to its bytes, all from the addresses that the kernel
/// recorded.
class CoalescingScene final : public SceneOf<coalescing::Trace> {
 public:
  StepAxis loaded(const coalescing::Trace& before) override;
  void draw_picture(Cursor cursor) override;
  void draw_readouts(Cursor cursor) override;
  measured::Spec measured_spec() const override;
  SourceMark source(Cursor cursor) const override;
  std::optional<Question> question(Cursor cursor) const override;

  picture::Extent extent() const;
  picture::Picture picture(const picture::Extent& extent, const View& view) const;
  std::string explain(const View& view, const picture::Key& key) const;
  std::vector<Readout> readouts(const View& view) const;

  /// What happens at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  struct Strip;  ///< where the touched 128-byte lines stand

  /// The request that is on screen: the cursor's, or the hovered row's; null before the first.
  const coalescing::WarpRequest* request(Cursor cursor) const;
  Strip strip(const std::vector<coalescing::Sector>& sectors, ImVec2 min, ImVec2 max) const;
  void draw_lanes(const coalescing::WarpRequest* request, ImVec2 min, ImVec2 max);
  void draw_memory(const Strip& strip, const std::vector<coalescing::Sector>& sectors);
  void draw_connectors(const coalescing::WarpRequest& request, const Strip& strip, ImVec2 lanes_min,
                       ImVec2 lanes_max) const;
  void draw_share(const coalescing::RequestStats& stats, ImVec2 min, ImVec2 max) const;
  void draw_banks(ImVec2 size) const;

  coalescing::Params params_;
  std::uint32_t lit_lanes_ = 0;   ///< hovered, as a mask
  std::int64_t lit_sector_ = -1;  ///< hovered
};

}  // namespace tilestep::scenes

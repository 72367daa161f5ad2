#pragma once

#include <string>
#include <vector>

#include "kernels/memory/coalescing/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// Memory coalescing: the 32 lanes of a warp above, the sectors of memory that their request
/// touches below, a link from each lane to its bytes, all from the addresses that the kernel recorded.
class CoalescingScene final : public SceneOf<coalescing::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(coalescing)

  Cursor known(const lab::Table& table, int row, int column) const override;

  /// What happens at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  /// The request that is on screen; null before the first.
  const coalescing::WarpRequest* request(Cursor cursor) const;

  coalescing::Params params_;
};

}  // namespace tilestep::scenes

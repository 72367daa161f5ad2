#pragma once

#include <optional>
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
  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;

  /// What happens at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  /// The request that is on screen; null before the first.
  const coalescing::WarpRequest* request(Cursor cursor) const;

  // Questions and events, in questions.cpp.
  Question sectors_question(const coalescing::WarpRequest& next) const;
  Question share_question(const coalescing::WarpRequest& next) const;
  std::optional<Question> next_sector_question(const coalescing::WarpRequest& next) const;
  Question shared_question(const coalescing::WarpRequest& before,
                           const coalescing::WarpRequest& next) const;
  int shared_sectors(const coalescing::WarpRequest& a, const coalescing::WarpRequest& b) const;
  void find_events();

  coalescing::Params params_;
};

}  // namespace tilestep::scenes

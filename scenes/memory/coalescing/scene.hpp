#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kernels/memory/coalescing/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// Memory coalescing: the 32 lanes of a warp, the lines of memory that their request touches, one below the
/// other, and the train of sectors that move for it, on a scale that never changes; all from the addresses
/// recorded by the kernel.
class CoalescingScene final : public SceneOf<coalescing::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(coalescing)

  Cursor known(const lab::Table& table, int row, int column) const override;
  int table_row(std::string_view table_id, const View& view) const override;
  /// In requests.
  double progress(Cursor cursor) const override;
  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  /// A lane is dropped on a sector, or on another lane to take that lane's element; the pattern becomes custom.
  std::optional<lab::Settings> dropped(const View& view, const picture::Key& item,
                                       const picture::Key& onto) const override;
  std::optional<picture::Subject> subject_of_column(std::string_view table_id,
                                                    std::string_view column_id) const override;

  /// What happens at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  /// The part of a request on screen.
  enum class Part : std::uint8_t { addresses, sectors, moved };
  Part part(Cursor cursor) const;
  /// The number of the request on screen; −1 before the first. After the first warp it is each warp's
  /// request to the pattern's array.
  int shown(Cursor cursor) const;
  /// When a request is on screen as a whole, or the one of its warp that is.
  Cursor after(std::size_t request) const;
  /// The request that is on screen; null before the first.
  const coalescing::WarpRequest* request(Cursor cursor) const;
  /// Bytes stored in each sector that the request writes only partly; none for a load.
  std::vector<int> partly_stored(const coalescing::WarpRequest& request) const;
  picture::Box moved(Cursor cursor) const;

  /// Which of its warp's elements each lane takes in `request`, and the byte where they begin; nothing if they
  /// are too far apart for the pattern custom.
  struct Lanes {
    std::array<int, coalescing::kLanes> element{};
    std::int64_t first_byte = 0;
  };
  std::optional<Lanes> lane_places(const coalescing::WarpRequest& request) const;

  // Questions and events, in questions.cpp.
  Question length_question(const coalescing::WarpRequest& next) const;
  std::optional<Question> next_sector_question(const coalescing::WarpRequest& next) const;
  Question shared_question(const coalescing::WarpRequest& before,
                           const coalescing::WarpRequest& next) const;
  int shared_sectors(const coalescing::WarpRequest& a, const coalescing::WarpRequest& b) const;
  void find_events();

  coalescing::Params params_;
  int in_full_ = 0;  ///< requests of the first warp, a step each
};

}  // namespace tilestep::scenes

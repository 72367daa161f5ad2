#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/machine/latency_hiding/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// A probed load (block, chain, arm …) from its issue to its first use.
struct Probe {
  int row = 0, number = 0;
  std::int64_t issue = 0, use = 0;
  int issue_step = 0, use_step = 0;  ///< from which steps on these clocks are known
};

/// What a bench says of the kernel on show: a curve, and where the knobs stand on it.
struct BenchCurve {
  std::vector<double> x = {}, y = {};
  double here = 0;  ///< the knobs' place along x
  const char *x_title = "", *y_title = "";
  bool x_log = false, y_log = false;

  /// What it says at a place between its ends; nothing beyond them.
  std::optional<double> at(double place) const;
};

/// Latency hiding: at the top the loads of one warp, below it the warps of one multiprocessor on its four schedulers,
/// each a lane over time, and what all of them have in flight; beside it what decides how many warps there are, what
/// Little's law asks for, and what the hardware counted.
class LatencyHidingScene final : public SceneOf<latency_hiding::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(latency_hiding)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  std::vector<picture::Subject> subjects_of_row(std::string_view table_id, int row) const override;

  /// What happens at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;
  /// The probes, by row and number.
  const std::vector<Probe>& probes() const { return probes_; }

 private:
  // Where the cursor is.
  int step(Cursor cursor) const;
  bool at_end(Cursor cursor) const { return step(cursor) == trace_.steps(); }
  /// The step on show; nullptr before the first.
  const latency_hiding::Moment* moment(Cursor cursor) const;
  std::int64_t now(Cursor cursor) const;
  /// Of row 0 or of another one; nullptr: none of that number.
  const Probe* probe(int row, int number) const;
  int followed(const View& view) const;
  bool in_flight(const Probe& probe, Cursor cursor) const;

  // What the kernel is.
  bool is(latency_hiding::Kernel kernel) const { return trace_.kernel == kernel; }
  bool copies() const { return latency_hiding::is_copy(trace_.kernel); }
  bool tails() const { return is(latency_hiding::Kernel::tail); }
  bool clocked() const { return trace_.machine.has_clocks(); }
  /// Lanes that a warp has in the zoom, and in the lanes of all.
  int zoom_lanes() const;
  int lanes_a_warp() const;
  int zoom_lane(int number) const;
  /// What one probe stands for, in the unit of the curve below the lanes: KiB of copies, 1 of others.
  double weight() const;
  /// What all have in flight at most, by the knobs.
  double most_in_flight() const;
  int wave_of(int block) const;
  std::uint8_t tone_of(int number) const;
  /// What probes of one tone have in common, and which of it a probe is.
  picture::Name tone_kind() const;
  int tone_number(int number) const;
  /// Cycles (ns) that a load took, less the probe's own.
  double latency(const Probe& probe) const;

  // Words, in scene.cpp.
  picture::Name probe_name() const;
  const char* noun() const;
  std::string unit() const;
  std::string where() const;
  std::string warp_name(int row) const;
  std::string issue_sentence(const latency_hiding::Moment& at) const;
  std::string tail_sentence(Cursor cursor) const;
  double waiting_share(Cursor cursor) const;
  void find_probes();
  void find_events();

  // The parts of the picture, in picture.cpp.
  void add_lane_axes(picture::Extent& extent) const;
  picture::Box over_time(const View& view) const;
  picture::Box zoom(const View& view) const;
  picture::Box schedulers(const View& view) const;
  picture::Box scheduler(const View& view, int which) const;
  picture::Box flight(Cursor cursor) const;
  std::string explain_probe(Cursor cursor, int row, int number) const;

  // In picture_side.cpp.
  void add_side_axes(picture::Extent& extent) const;
  picture::Box side(Cursor cursor) const;
  picture::Box occupancy() const;
  picture::Box arms(Cursor cursor) const;
  picture::Box law(Cursor cursor) const;
  picture::Box counters(Cursor cursor) const;
  std::vector<picture::Text> formulas(Cursor cursor) const;
  std::string explain_side(Cursor cursor, const picture::Key& key) const;
  std::optional<BenchCurve> bench_curve() const;
  /// Arms that have begun by then.
  int arms_shown(Cursor cursor) const;
  /// ns from issue to use of a load from HBM on an idle memory, and GB/s of a plain copy, as recorded.
  std::optional<double> idle_latency() const;
  std::optional<double> copy_bandwidth() const;

  // In questions.cpp.
  std::optional<Question> question_before(int next) const;
  Question bytes_question() const;
  std::optional<Question> use_question(int next) const;
  std::optional<Question> next_latency_question(int next) const;
  Question block_limit_question() const;
  std::optional<Question> registers_question() const;
  std::optional<Question> eligible_question() const;
  Question lanes_question(int arm) const;
  Question waves_question() const;
  std::optional<Question> last_wave_question() const;
  /// The followed row's probe that is used, or issued, at the step after `next`; nullptr: none.
  const Probe* used_next(int next) const;
  const Probe* issued_next(int next) const;

  std::vector<Probe> probes_;
  int a_row_ = 0;  ///< probes that a row has at most; numbers of a key are row · a_row_ + number
  latency_hiding::Params params_;
};

/// Warps that one limit alone lets in, of the 64 that there is room for.
inline int warps_let_in(const latency_hiding::Occupancy& occupancy, latency_hiding::Limit limit) {
  const int blocks =
      std::min(occupancy.blocks[static_cast<std::size_t>(limit)], latency_hiding::kMostWarps);
  return std::min(blocks * occupancy.warps_allocated, latency_hiding::kMostWarps);
}

}  // namespace tilestep::scenes

#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/matmul/hopper_gemm/lesson.hpp"
#include "scenes/matmul/hopper_gemm/tile_layout.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// What has become of a k-tile: clocks, −1 for what has not happened.
struct KTileLife {
  static constexpr std::int64_t kNever = -1;
  using Both = std::array<std::int64_t, 2>;  ///< of each consumer

  int stage = 0;
  int announced = 0, arrived = 0;  ///< bytes
  std::int64_t waits_empty = kNever, expects = kNever, copies = kNever, lands = kNever,
               flips = kNever;
  Both waits_full = {kNever, kNever}, issues = {kNever, kNever}, commits = {kNever, kNever},
       waited = {kNever, kNever}, releases = {kNever, kNever};
};

inline constexpr auto kNever = KTileLife::kNever;

/// A stage of the ring.
struct StageNow {
  enum State : std::uint8_t { empty, filling, full, in_use, released };
  State state = empty;
  int k_tile = -1;           ///< what it holds; −1: nothing yet
  int before = -1;           ///< what it held before that
  int full_phases = 0;       ///< of its full barrier that have ended
  int empty_phases = 0;      ///< of its empty barrier
  int released_by = 0;       ///< consumers that have given this k-tile back
  bool read_early = false;   ///< products were issued before all bytes had come
  bool overwritten = false;  ///< copies were issued before all had given back what was there
};

/// A warpgroup that multiplies.
struct ConsumerNow {
  enum Doing : std::uint8_t { nothing, waits, issues, goes_on, stores, is_done };
  Doing doing = nothing;
  int tile = 0;                ///< of the block's tiles of C
  int added = 0;               ///< k-tiles of it whose products are done
  std::vector<int> under_way;  ///< k-tiles whose products are issued and not waited for
};

/// Of a lane: clocks spent waiting, and from the first to the last thing that it did.
struct LaneClock {
  double waited = 0, ran = 0;
};

/// What is on screen at one cursor, read off the events until then.
struct HopperMoment {
  int events = 0;
  const hopper_gemm::Event* last = nullptr;  ///< null: nothing has happened
  std::int64_t now = 0;                      ///< its clock
  int k_tile = 0;                            ///< the one that it is about
  int tile = 0;                              ///< that of the block's tiles of C
  std::map<int, KTileLife> lives;            ///< of the k-tiles that something has happened to
  std::vector<StageNow> stages;
  std::vector<ConsumerNow> consumers;
  /// When a consumer began to store a tile of C, and when it was through; by tile.
  std::map<int, KTileLife::Both> stores, stored;
  int copied = 0, released = 0;  ///< k-tiles that were asked for, that all have given back
  LaneClock producer, consumer;  ///< the thread that copies, and the first consumer
};

/// Hopper's GEMM: over time the thread that copies, the stages of the ring and the warpgroups that
/// multiply; below them the ring as it is now; beside them the matrices with the boxes that TMA takes,
/// the sums in registers, and where the swizzle puts the rows of a stage.
class HopperGemmScene final : public SceneOf<hopper_gemm::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(hopper_gemm)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  std::vector<picture::Subject> subjects_of_row(std::string_view table_id, int row) const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  /// In k-tiles that were multiplied.
  double progress(Cursor cursor) const override;

  /// The state at `cursor`; public so that a test holds the picture to the trace.
  HopperMoment moment(Cursor cursor) const;
  /// What happens at `cursor` in one plain sentence.
  std::string sentence(const HopperMoment& now) const;
  /// The k-tile that is followed: the picked one, if it is on its way by then, or that of the event.
  int followed(const View& view, const HopperMoment& now) const;

 private:
  // Words, in scene.cpp.
  std::string brief(const HopperMoment& now) const;
  std::string sentence_of_copies(const HopperMoment& now) const;
  std::string sentence_of_products(const HopperMoment& now) const;
  std::string outcome() const;
  std::string copier() const;
  std::string consumer(int number) const;
  void find_events();

  // The state, in moment.cpp.
  void take(HopperMoment& now, const hopper_gemm::Event& event) const;
  void take_of_consumer(HopperMoment& now, const hopper_gemm::Event& event) const;
  void count_waits(HopperMoment& now) const;
  bool all_released(const KTileLife& life) const;
  bool released_before(const KTileLife& life, std::int64_t at) const;

  // Lanes and ring, in picture.cpp.
  picture::Axis time_axis(const HopperMoment& now) const;
  picture::State lit(const HopperMoment& now, int k_tile,
                     std::initializer_list<hopper_gemm::What> whats, int lane,
                     picture::State otherwise) const;
  std::vector<picture::Mark> copies_over_time(const HopperMoment& now, int followed) const;
  std::vector<picture::Mark> products_over_time(const HopperMoment& now, int followed) const;
  picture::Box lanes(const HopperMoment& now, int followed) const;
  picture::Items of_stages(const HopperMoment& now, picture::Name name, int parts = 1) const;
  bool at_stage(const HopperMoment& now, int stage,
                std::initializer_list<hopper_gemm::What> whats) const;
  picture::Items stage_parts(const HopperMoment& now) const;
  picture::Items stage_states(const HopperMoment& now, const View& view) const;
  picture::Items phases(const HopperMoment& now, bool of_full) const;
  picture::Box stage_bytes(const HopperMoment& now) const;
  picture::Box ring(const HopperMoment& now, const View& view) const;
  std::string explain_k_tile(const HopperMoment& now, int number) const;
  std::string explain_stage(const HopperMoment& now, int stage) const;
  // Matrices, sums and swizzle, in picture_tiles.cpp.
  picture::Box matrices(const HopperMoment& now, int followed) const;
  picture::Box operand(const HopperMoment& now, int followed, bool is_a) const;
  picture::Box tiles_of_c(const HopperMoment& now) const;
  std::vector<std::string> box_lines(int k_tile) const;
  picture::Box sums(const HopperMoment& now) const;
  picture::Box swizzle(const View& view) const;
  picture::Box turns(int chunk, bool swizzled) const;
  TileLayout layout_of(bool is_a) const;
  picture::Box fragments() const;
  std::string explain_tiles(const HopperMoment& now, const picture::Key& key) const;
  std::string chunk_line(int place) const;
  std::string explain_chunk(int place) const;
  std::string explain_turns(const View& view, int group, bool swizzled) const;

  // Questions, in questions.cpp.
  std::optional<Question> ahead_question() const;
  Question threads_question() const;
  Question announced_question() const;
  Question swizzle_question() const;
  Question empty_question() const;
  Question consumer_question() const;
  Question outcome_question() const;

  bool has_tma() const { return hopper_gemm::has_tma(trace_.variant); }
  bool has_producer() const { return hopper_gemm::has_producer(trace_.variant); }
  bool has_wgmma() const { return trace_.variant != hopper_gemm::Variant::mma_sync; }
  bool emulated() const { return trace_.clock_unit == "words"; }
  bool broken() const { return params_.broken != hopper_gemm::Break::none; }
  bool at_end(const HopperMoment& now) const {
    return now.events > 0 && now.events == trace_.steps();
  }
  /// The last event is through, and the kernel was broken on purpose.
  bool judged(const HopperMoment& now) const { return broken() && at_end(now); }
  int k_tiles() const { return trace_.k_tiles(); }
  int all_k_tiles() const;
  int a_bytes() const { return trace_.rows * 128; }
  int box_bytes() const { return trace_.swizzle == 0 ? 16 : trace_.swizzle; }
  const hopper_gemm::BlockTile& tile(int number) const;

  hopper_gemm::Params params_;
  bool clocked_ = true;  ///< the events have clocks
};

/// A k-tile's tone. Five take turns: the number beside it tells them apart. Orange is too near to what is
/// current, vermillion to what is wrong.
constexpr std::uint8_t k_tile_tone(int number) {
  constexpr std::uint8_t kTones[] = {5, 1, 3, 7, 4};
  return kTones[static_cast<std::size_t>(number < 0 ? 0 : number) % std::size(kTones)];
}

}  // namespace tilestep::scenes

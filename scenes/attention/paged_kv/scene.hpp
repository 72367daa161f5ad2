#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/paged_kv/lesson.hpp"
#include "scenes/picture/role.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// A paged KV cache: the pool of pages and the block tables of running requests; below them the engine's requests over
/// its steps and the wasted part of the pool. Then the pages that blocks of one launch read through the tables, and
/// their sectors in memory.
class PagedKvScene final : public SceneOf<paged_kv::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(paged_kv)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;

  /// What happens at `cursor`, in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  // Where the cursor is.
  int engine_steps() const { return trace_.engine_steps(); }
  bool reading(Cursor cursor) const { return cursor.tile > engine_steps(); }
  bool gathered(Cursor cursor) const { return cursor.tile >= trace_.step_of(trace_.traced_item); }
  /// The engine's shown step: its last one while the kernel reads; nullptr before the first.
  const paged_kv::Served* moment(Cursor cursor) const;
  /// The item that the current step reads; nullptr: none.
  const paged_kv::ItemTrace* item_now(Cursor cursor) const;
  const paged_kv::ItemTrace& traced() const {
    return trace_.items[static_cast<std::size_t>(trace_.traced_item)];
  }
  std::uint8_t tone_of(int request) const { return picture::category_tone(request, trace_.coming); }
  /// "R3", or "R3 +2" for pages that two others share with it.
  std::string requests_of(const paged_kv::ItemTrace& item) const;

  /// Whether a row's table names there a page, read by now, that the allocator has not given to its request.
  bool stale(int row, int place, Cursor cursor) const;
  /// The row that owns a page by the allocator; −1: no running request.
  int row_with(int page, Cursor cursor) const;

  // The parts of the picture.
  picture::State page_state(int row, int place, Cursor cursor) const;
  picture::Box pool(Cursor cursor) const;
  picture::Box tables(Cursor cursor) const;
  picture::Box timeline(Cursor cursor) const;
  picture::Box waste(Cursor cursor) const;
  picture::Strip sectors() const;
  picture::Box gather(Cursor cursor) const;
  picture::Box page_sizes() const;
  std::string explain_entry(Cursor cursor, int row, int place) const;

  // Questions and events, in questions.cpp.
  std::optional<Question> question_before(int next) const;
  std::optional<Question> serving_question(int step) const;
  std::optional<Question> stored_question(int step) const;
  Question paging_question() const;
  std::optional<Question> reading_question(int item) const;
  void find_events();

  paged_kv::Params params_;
};

}  // namespace tilestep::scenes

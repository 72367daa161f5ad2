#include "scenes/shared/picture_scene.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenes/ui/context.hpp"

namespace tilestep::scenes {
namespace {

constexpr double kSecondsAPhase = 0.35, kMostSeconds = 1;
constexpr std::size_t kStills = 12;

std::optional<int> whole_number(const lab::Table& table, std::size_t row) {
  if (row >= table.rows.size() || table.rows[row].empty()) return std::nullopt;
  const double* number = std::get_if<double>(&table.rows[row][0]);
  const bool whole = number != nullptr && *number == std::floor(*number) && std::abs(*number) < 1e9;
  return whole ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

// ---- time ----------------------------------------------------------------------------------------

void Player::cut(int goal) {
  position_ = goal_ = goal;
}

void Player::aim(int goal, int phases) {
  if (goal == goal_) return;
  const double way = std::abs(goal - position_);
  // A second step before the first has ended goes on from where the picture is.
  const bool far = std::abs(goal - goal_) > phases || way > 2 * phases;
  goal_ = goal;
  if (far) position_ = goal;
  speed_ = std::max(1 / kSecondsAPhase, way / kMostSeconds);
}

void Player::advance(float seconds) {
  if (seconds <= 0) position_ = goal_;
  const double way = goal_ - position_, most = speed_ * static_cast<double>(seconds);
  position_ = std::abs(way) <= most ? goal_ : position_ + std::copysign(most, way);
}

int PictureScene::place_of(Cursor cursor) const {
  return cursor.tile <= 0 ? 0 : (cursor.tile - 1) * std::max(steps().phases, 1) + cursor.phase + 1;
}

Cursor PictureScene::cursor_at(int place) const {
  const int phases = std::max(steps().phases, 1);
  if (place <= 0) return {0, phases - 1};
  return {(place - 1) / phases + 1, (place - 1) % phases};
}

// ---- pictures ------------------------------------------------------------------------------------

void PictureScene::renewed() {
  extent_.reset();
  stills_.clear();
  from_ = to_ = nullptr;
  pointed_at_.reset();
  dragged_.reset();
  pointed_subjects_.clear();
  row_subjects_.clear();
  cut_ = true;
}

void PictureScene::use_room(picture::Area area) {
  const float scale = ui::Context::current().scale();
  if (area == area_ && scale == scale_) return;
  area_ = area;
  scale_ = scale;
  stills_.clear();
}

PictureScene::Shown PictureScene::still(const View& view) {
  const auto found = std::find_if(stills_.begin(), stills_.end(),
                                  [&](const Still& each) { return each.view == view; });
  if (found != stills_.end()) {
    std::rotate(found, found + 1, stills_.end());
    return stills_.back().shown;
  }
  if (!extent_) extent_ = extent();
  auto made = std::make_shared<ui::ShownPicture>();
  made->picture = picture(*extent_, view);
  made->marks = picture::marks_of(made->picture);
  made->placed = picture::place(made->picture, area_, ui::PictureMetrics());
  if (stills_.size() == kStills) stills_.erase(stills_.begin());
  stills_.push_back({view, std::move(made)});
  return stills_.back().shown;
}

void PictureScene::draw_picture(Cursor cursor) {
  const ImVec2 min = ImGui::GetCursorScreenPos(), size = ImGui::GetContentRegionAvail();
  use_room({min.x, min.y, min.x + std::max(size.x, 1.0f), min.y + std::max(size.y, 1.0f)});
  const View now = view(cursor);
  if (std::exchange(cut_, false)) player_.cut(place_of(cursor));
  player_.aim(place_of(cursor), std::max(steps().phases, 1));
  player_.advance(ui::animation_seconds());
  if (player_.rests()) {
    draw_resting(still(now), now);
  } else {
    draw_moving(now);
  }
}

void PictureScene::draw_moving(const View& view) {
  const int before = static_cast<int>(std::floor(player_.position()));
  const Shown from = still({cursor_at(before), view.picks});
  const Shown to = still({cursor_at(before + 1), view.picks});
  if (from != from_ || to != to_) {
    from_ = from;
    to_ = to;
    join_.emplace(from->placed, to->placed);
  }
  picture::mix(from->placed, to->placed, *join_, static_cast<float>(player_.position() - before),
               mixed_);
  pointed_at_.reset();
  pointed_subjects_.clear();
  dragged_.reset();
  ui::draw(mixed_);
  ui::map(still(view));
  ui::request_redraw();
}

void PictureScene::draw_resting(const Shown& shown, const View& view) {
  follow_pointer(*shown, view);
  std::vector<picture::Subject> subjects = pointed_subjects_;
  if (!pointed_at_) subjects = row_subjects_;
  const picture::Lighting lit(shown->marks, subjects,
                              pointed_at_ ? std::optional(pointed_at_->key) : std::nullopt);
  ui::draw(shown->placed, &lit);
  ui::map(shown);
}

std::string PictureScene::svg(Cursor cursor) {
  const View now = view(cursor);
  const Shown shown = still(now);
  return picture::svg(shown->placed, shown->marks, ui::picture_palette(), ui::PictureMetrics(),
                      [&](const picture::Key& key) { return explain(now, key); });
}

// ---- the pointer ---------------------------------------------------------------------------------

void PictureScene::follow_pointer(const ui::ShownPicture& shown, const View& view) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const bool here = ImGui::IsWindowHovered() || dragged_;
  const picture::Identity* found =
      here ? picture::hit(shown.placed, {mouse.x, mouse.y}, ui::px(4)) : nullptr;
  pointed_at_ = found != nullptr ? std::optional(*found) : std::nullopt;
  pointed_subjects_.clear();
  if (found != nullptr) {
    pointed_subjects_ = picture::subjects_of(shown.marks, *found);
    act(shown, view, *found);
  }
  if (!dragged_) return;
  if (ImGui::IsMouseDown(ImGuiMouseButton_Left)) {
    ImGui::GetForegroundDrawList()->AddCircle(mouse, ui::px(7), ui::color(ui::Role::text), 0,
                                              ui::px(1.5f));
    return;
  }
  if (found != nullptr) request_ = dropped(view, dragged_->key, found->key);
  dragged_.reset();
  ui::request_redraw();
}

/// The sentence about what is pointed at, and what a press on it does.
void PictureScene::act(const ui::ShownPicture& shown, const View& view,
                       const picture::Identity& of) {
  const std::string sentence = dragged_ ? std::string() : explain(view, of.key);
  if (!sentence.empty()) ui::show_tooltip(sentence);
  const picture::Act act = picture::act_of(shown.marks, of);
  if (act.kind == picture::Act::none || dragged_) return;
  ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  if (!ImGui::IsMouseClicked(ImGuiMouseButton_Left)) return;
  const int item =
      of.item < 0
          ? -1
          : picture::item_of(*shown.marks.at(static_cast<std::size_t>(of.mark)), of.item).second;
  const auto index_of = [&](std::string_view kind) {
    for (const picture::Subject& subject : pointed_subjects_) {
      if (subject.kind == kind) return subject.index;
    }
    return item;
  };
  const StepAxis axis = steps();
  switch (act.kind) {
    case picture::Act::go:
      step_ = Cursor{std::clamp(index_of(axis.noun) + 1, 0, axis.tiles), axis.phases - 1};
      break;
    case picture::Act::pick:
      pick(act.what, index_of(act.what.text()));
      break;
    default:
      dragged_ = of;
  }
  ui::request_redraw();
}

std::optional<lab::Settings> PictureScene::take_request() {
  return std::exchange(request_, std::nullopt);
}

std::optional<Cursor> PictureScene::take_step() {
  return std::exchange(step_, std::nullopt);
}

// ---- what stands beside the picture --------------------------------------------------------------

void PictureScene::draw_readouts(Cursor cursor) {
  constexpr ui::Role kRoles[] = {ui::Role::text, ui::Role::accent, ui::Role::good, ui::Role::wrong};
  for (const Readout& each : readouts(view(cursor))) {
    ui::readout({each.id, each.label, each.value, each.unit, each.provenance, each.detail,
                 kRoles[each.look]});
  }
}

std::vector<picture::Subject> PictureScene::subjects_of_row(std::string_view table_id,
                                                            int row) const {
  std::vector<picture::Subject> subjects;
  const StepAxis axis = steps();
  if (row < 0) return subjects;
  if (table_id == axis.table && row < axis.tiles) {
    subjects = {{axis.noun, row}, {"step", row}};
  }
  const lab::Table* table = report() != nullptr ? report()->table(table_id) : nullptr;
  if (table == nullptr || table->columns.empty()) return subjects;
  if (const auto number = whole_number(*table, static_cast<std::size_t>(row))) {
    const picture::Subject named{table->columns[0].id, *number};
    if (std::find(subjects.begin(), subjects.end(), named) == subjects.end()) {
      subjects.push_back(named);
    }
  }
  return subjects;
}

void PictureScene::hover_row(std::string_view table_id, int row) {
  row_subjects_ = subjects_of_row(table_id, row);
}

int PictureScene::lit_row(std::string_view table_id) const {
  const lab::Table* table = report() != nullptr ? report()->table(table_id) : nullptr;
  if (table == nullptr || pointed_subjects_.empty()) return -1;
  const auto is_meant = [&](const picture::Subject& subject) {
    return std::find(pointed_subjects_.begin(), pointed_subjects_.end(), subject) !=
           pointed_subjects_.end();
  };
  for (int row = 0; row < static_cast<int>(table->rows.size()); ++row) {
    const auto subjects = subjects_of_row(table_id, row);
    if (std::any_of(subjects.begin(), subjects.end(), is_meant)) return row;
  }
  return -1;
}

}  // namespace tilestep::scenes

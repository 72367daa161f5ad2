#include "scenes/stage/scene_player.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenes/ui/context.hpp"

namespace tilestep::scenes {
namespace {

/// The rooms of A and B.
std::pair<picture::Area, picture::Area> halves_of(const picture::Area& area, bool below) {
  const float gap = ui::px(16);
  const float x = (area.x0 + area.x1) / 2, y = (area.y0 + area.y1) / 2;
  if (below) {
    return {{area.x0, area.y0, area.x1, std::max(y - gap / 2, area.y0 + 1)},
            {area.x0, std::min(y + gap / 2, area.y1 - 1), area.x1, area.y1}};
  }
  return {{area.x0, area.y0, std::max(x - gap / 2, area.x0 + 1), area.y1},
          {std::min(x + gap / 2, area.x1 - 1), area.y0, area.x1, area.y1}};
}

/// What is left of a half below its line of words.
picture::Area below_label(picture::Area half) {
  const float label = ui::text_size("x", ui::Font::body_bold).y + ui::px(4);
  half.y0 = std::min(half.y0 + label, half.y1);
  return half;
}

}  // namespace

// ---- one run, or two -----------------------------------------------------------------------------

void ScenePlayer::load(const lab::Report& report) {
  run_.scene().load(report);
  symbols_ = scene().symbols(view({}));
  symbols_at_.reset();
  run_.renew();
  if (pinned_) pinned_->renew();
  left_.reset();
  rests_.reset();
  guess_.reset();
  compared_.reset();
  arrangement_.reset();
  forget_pointer();
}

void ScenePlayer::forget_pointer() {
  pointed_at_.reset();
  dragged_.reset();
  pointed_subjects_.clear();
}

void ScenePlayer::pin() {
  const lab::Report* report = scene().report();
  if (report != nullptr) pin(*report);
}

void ScenePlayer::pin(const lab::Report& report) {
  Reel kept(scene().blank());
  kept.scene().load(report);
  pinned_.emplace(std::move(kept));
  run_.renew();
  compared_.reset();
  arrangement_.reset();
  forget_pointer();
}

void ScenePlayer::unpin() {
  pinned_.reset();
  run_.show_earlier(earlier_, "before");
}

void ScenePlayer::keep_earlier(Cursor cursor) {
  if (scene().report() == nullptr) return;
  earlier_ = std::make_shared<picture::Picture>(scene().picture(run_.extent(), view(cursor)));
  run_.show_earlier(earlier_, "before");
}

Cursor ScenePlayer::pinned_cursor(Cursor cursor) const {
  const auto share = [](const Reel& reel, Cursor at) {
    const StepAxis axis = reel.scene().steps();
    const double all = reel.scene().progress({axis.tiles, axis.last_phase(axis.tiles)});
    return all > 0 ? reel.scene().progress(at) / all : 1.0;
  };
  constexpr double kRounding = 1e-9;
  const double reached = share(run_, cursor) + kRounding;
  const StepAxis axis = pinned_->scene().steps();
  int low = 0, high = axis.places();
  while (low < high) {  // the last place that is no further
    const int middle = (low + high + 1) / 2;
    if (share(*pinned_, axis.at_place(middle)) <= reached) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return axis.at_place(low);
}

/// On the way between two places of this run the other goes evenly between the two that are as far.
Moment ScenePlayer::pinned_moment(const Moment& now) const {
  const StepAxis axis = scene().steps(), theirs = pinned()->steps();
  const int from = theirs.place_of(pinned_cursor(now.cursor));
  const int next = std::min(axis.place_of(now.cursor) + 1, axis.places());
  const int to = theirs.place_of(pinned_cursor(axis.at_place(next)));
  const double at = from + (to - from) * now.fraction;
  const int place = static_cast<int>(std::floor(at));
  return {theirs.at_place(place), at - place};
}

void ScenePlayer::draw_picture(const Moment& now) {
  if (const View here = view(now.cursor); symbols_at_ != here) {
    symbols_ = scene().symbols(here);
    symbols_at_ = here;
  }
  const ImVec2 min = ImGui::GetCursorScreenPos(), size = ImGui::GetContentRegionAvail();
  const picture::Area area{min.x, min.y, min.x + std::max(size.x, 1.0f),
                           min.y + std::max(size.y, 1.0f)};
  if (pinned_) {
    draw_compared(now, area);
  } else {
    draw_alone(now, area);
  }
}

void ScenePlayer::shoot(Shot shot) {
  if (shot != shot_) brought_in_.clear();
  shot_ = shot;
  if (shot.of != Shot::all)
    shot.names.insert(shot.names.end(), brought_in_.begin(), brought_in_.end());
  if (shot != shown_) {
    left_ = rests_;
    ++shots_;
    arrangement_.reset();
  }
  run_.shoot(shot);
  if (pinned_) pinned_->shoot(shot);
  shown_ = std::move(shot);
}

/// What stands aside: a strip of small drawings.
void ScenePlayer::draw_aside(const View& view, const picture::Area& area) {
  const auto& aside = run_.aside(view, area);
  for (std::size_t i = 0; i < aside.size(); ++i) {
    const Reel::Aside& each = aside[i];
    if (!ui::thumbnail(fmt::format("aside_{}", i), each.name, each.drawn, each.area)) continue;
    brought_in_.push_back(picture::to_text(each.key));
    ui::request_redraw();
  }
}

/// Boxes and marks go to their places in another shot. Returns whether they are on the way.
bool ScenePlayer::draw_turning(const Shown& shown) {
  constexpr float kSeconds = 0.35f;
  const float gone = ui::animate("shot", static_cast<float>(shots_), kSeconds);
  const float fraction = 1 - (static_cast<float>(shots_) - gone);
  if (fraction >= 1 || !left_ || left_ == shown) {
    left_.reset();
    turn_.reset();
    return false;
  }
  if (!turn_ || turn_->from != left_ || turn_->to != shown)
    turn_.emplace(Turn{left_, shown, picture::Join(left_->placed, shown->placed)});
  ui::draw(picture::mix(left_->placed, shown->placed, turn_->join, std::max(fraction, 0.0f)));
  ui::map(shown);
  return true;
}

void ScenePlayer::draw_alone(const Moment& now, picture::Area area) {
  const View here = view(now.cursor);
  run_.use(area, ui::Context::current().scale(), nullptr);
  const Shown shown = run_.still(here);
  draw_aside(here, area);
  if (now.fraction <= 0) {
    if (draw_turning(shown)) return;
    follow_pointer(run_, *shown, here);
    draw_at_rest(shown, nullptr, "");
    // The frame that came to rest had enough to do. Where nothing moves there is nothing to prepare for.
    if (rests_ == shown && !ui::Context::current().look().still) run_.prepare(here);
    rests_ = shown;
    return;
  }
  forget_pointer();
  ui::draw(run_.moving(here, now.fraction));
  ui::map(shown);
}

void ScenePlayer::draw_compared(const Moment& now, picture::Area area) {
  const float scale = ui::Context::current().scale();
  const Arrangement how = arrangement(area, now.cursor);
  if (how == Arrangement::alone) {
    draw_alone(now, area);
    return;
  }
  const Moment theirs = pinned_moment(now);
  const View here = view(now.cursor), there{theirs.cursor, picks_};
  const picture::Area all = run_.chooses(here) ? ui::strip_of(area, 1).left : area;
  const auto [upper, lower] = halves_of(all, how == Arrangement::below);
  pinned_->use(below_label(upper), scale, &run_);
  run_.use(below_label(lower), scale, &*pinned_);
  const Shown a = pinned_->still(there);
  run_.show_earlier({a, &a->picture}, "A");
  const Shown b = run_.still(here);
  draw_aside(here, area);
  if (now.fraction <= 0) {
    if (!compared_ || compared_->pinned != a || compared_->run != b) {
      compared_.emplace(Compared{b, a, {b->marks, a->marks}, {a->marks, b->marks}});
    }
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    if (upper.holds({mouse.x, mouse.y})) {
      follow_pointer(*pinned_, *a, there);
    } else {
      follow_pointer(run_, *b, here);
    }
    draw_at_rest(a, &compared_->in_pinned, "a.");
    draw_at_rest(b, &compared_->in_run, "");
  } else {
    forget_pointer();
    ui::draw(pinned_->moving(there, theirs.fraction));
    ui::draw(run_.moving(here, now.fraction));
    ui::map(a, "a.");
    ui::map(b);
  }
  draw_label(upper, true);
  draw_label(lower, false);
}

/// The arrangement in which the least is too small, folded or left out. It stays over a run.
ScenePlayer::Arrangement ScenePlayer::arrangement(const picture::Area& area, Cursor cursor) {
  if (arrangement_ && compared_in_ == area) return *arrangement_;
  compared_in_ = area;
  const Crowding beside = crowding(cursor, below_label(halves_of(area, false).second)),
                 below = crowding(cursor, below_label(halves_of(area, true).second));
  arrangement_ = below < beside ? Arrangement::below : Arrangement::beside;
  if (std::min(beside, below).too_small > 0) arrangement_ = Arrangement::alone;
  return *arrangement_;
}

ScenePlayer::Crowding ScenePlayer::crowding(Cursor cursor, const picture::Area& half) {
  const picture::Placed placed = run_.placed(view(cursor), half);
  const auto too_small =
      std::count_if(placed.rooms.begin(), placed.rooms.end(), [](const picture::Room& room) {
        return room.area.width() < room.least.x || room.area.height() < room.least.y;
      });
  return {static_cast<int>(too_small),
          static_cast<int>(4 * placed.folded.size() + placed.short_of.size())};
}

/// "A" and the knobs that it has otherwise than the other run.
void ScenePlayer::draw_label(const picture::Area& half, bool of_pinned) const {
  const lab::Report &mine = *(of_pinned ? pinned()->report() : scene().report()),
                    &other = *(of_pinned ? scene().report() : pinned()->report());
  std::string knobs;
  for (const auto& [id, value] : mine.params) {
    const auto found = other.params.find(id);
    if (found != other.params.end() && found->second == value) continue;
    std::string name = id;
    std::replace(name.begin(), name.end(), '_', ' ');
    knobs += fmt::format("{}{} {}", knobs.empty() ? "" : ", ", name, lab::to_text(value));
  }
  const auto hash_of = [](const lab::Report& report) {
    return report.kernel ? report.kernel->hash : std::string();
  };
  if (hash_of(mine) != hash_of(other)) {
    knobs = (mine.kernel ? "the edited kernel" : "the built-in kernel") +
            (knobs.empty() ? "" : ", " + knobs);
  }
  if (knobs.empty()) knobs = of_pinned ? "the pinned run" : "the same run: change a knob";
  const char* letter = of_pinned ? "A" : "B";
  const ImVec2 at(half.x0, half.y0);
  const ImVec2 size = ui::draw_text(at, letter, ui::Font::body_bold, ui::Role::text);
  const float left = at.x + size.x + ui::px(8);
  ui::draw_text({left, at.y}, ui::fitted(knobs, ui::Font::body, half.x1 - left), ui::Font::body,
                ui::Role::muted);
  ui::map(of_pinned ? "run_a" : "run_b", letter, knobs, at, {half.x1, at.y + size.y});
}

void ScenePlayer::draw_at_rest(const Shown& shown, const picture::Differences* differences,
                               const char* prefix) const {
  picture::Lit named;
  const bool fades = !pointed_at_ && !lit_keys_.empty();
  if (fades) named = picture::lit_by(lit_keys_, shown->picture, shown->marks, shown->placed);
  if (pointed_at_) named.keys.push_back(pointed_at_->key);
  const auto& besides = pointed_at_ ? pointed_subjects_ : beside_;
  named.subjects.insert(named.subjects.end(), besides.begin(), besides.end());
  const picture::Lighting lit(shown->marks, named.subjects, std::move(named.keys));
  ui::draw(shown->placed, {&lit, differences, fades ? &named.boxes : nullptr});
  ui::map(shown, prefix);
}

std::string ScenePlayer::svg(Cursor cursor) {
  const View now = view(cursor);
  const Shown shown = run_.still(now);
  return picture::svg(shown->placed, shown->marks, ui::picture_palette(), ui::PictureMetrics(),
                      [&](const picture::Key& key) { return scene().explain(now, key); });
}

// ---- the pointer ---------------------------------------------------------------------------------

void ScenePlayer::follow_pointer(const Reel& reel, const ui::ShownPicture& shown,
                                 const View& view) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const bool here = ImGui::IsWindowHovered() || dragged_;
  const picture::Identity* found =
      here ? picture::hit(shown.placed, {mouse.x, mouse.y}, ui::px(4)) : nullptr;
  pointed_at_ = found != nullptr ? std::optional(*found) : std::nullopt;
  pointed_subjects_.clear();
  if (found != nullptr) {
    pointed_subjects_ = picture::subjects_of(shown.marks, *found);
    std::string sentence = dragged_ ? std::string() : reel.scene().explain(view, found->key);
    const picture::Place place =
        picture::place_of(shown.placed, shown.marks, *found, {mouse.x, mouse.y});
    if (place != picture::Place::nowhere && !dragged_) {
      sentence += (sentence.empty() ? "" : "\nin ") + std::string(picture::name_of(place));
    }
    if (!sentence.empty()) ui::show_tooltip(sentence);
    if (&reel == &run_) act(shown, *found, view);
  }
  const picture::Words* symbol =
      here && !dragged_ ? picture::symbol_at(shown.placed, {mouse.x, mouse.y}) : nullptr;
  if (symbol != nullptr && found == nullptr) {
    const picture::Subject subject = picture::subject_of(symbol->about);
    pointed_at_ = symbol->of;
    pointed_subjects_ = {subject};
    const picture::Symbol* known = symbol_of(subject);
    if (known != nullptr && !known->meaning.empty()) {
      ui::show_tooltip(known->meaning);
      ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
      if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) clicked_symbol_ = subject;
    }
  }
  if (drag_ && &reel == &run_) follow_drag(view);
  if (!dragged_) return;
  if (ImGui::IsMouseDown(ImGuiMouseButton_Left)) {
    ImGui::GetForegroundDrawList()->AddCircle(mouse, ui::px(7), ui::color(ui::Role::text), 0,
                                              ui::px(1.5f));
    return;
  }
  const picture::Act act = picture::act_of(shown.marks, *dragged_);
  const bool is_click = found != nullptr && found->key == dragged_->key;
  if (is_click && act.kind == picture::Act::set) {  // whom to follow
    pick(act.what, index_of(shown, *found, act.what.text()));
  }
  if (found != nullptr) request_ = scene().dropped(view, dragged_->key, found->key);
  dragged_.reset();
  ui::request_redraw();
}

/// A thing goes along its axis as far as the pointer did. The run that its new place asks for may come
/// while it is still dragged: the scale stays that of the press.
void ScenePlayer::follow_drag(const View& view) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const double value = drag_->value + drag_->scale.value_at({mouse.x, mouse.y}) -
                       drag_->scale.value_at(drag_->pressed);
  const float way = std::hypot(mouse.x - drag_->pressed.x, mouse.y - drag_->pressed.y);
  drag_->moved = drag_->moved || way >= ui::px(3);
  if (drag_->moved) {
    std::optional<lab::Settings> asked = scene().dragged(view, drag_->key, value);
    if (asked && asked != drag_->asked) request_ = drag_->asked = std::move(asked);
    ImGui::GetForegroundDrawList()->AddCircle(mouse, ui::px(7), ui::color(ui::Role::text), 0,
                                              ui::px(1.5f));
  }
  if (ImGui::IsMouseDown(ImGuiMouseButton_Left)) return;
  if (!drag_->moved) {
    if (const auto to = scene().leads_to(view, drag_->key)) step_ = to;
  }
  drag_.reset();
  ui::request_redraw();
}

/// The number of the thing that an item is about, or of the item itself.
int ScenePlayer::index_of(const ui::ShownPicture& shown, const picture::Identity& of,
                          std::string_view kind) {
  for (const picture::Subject& subject : picture::subjects_of(shown.marks, of)) {
    if (subject.kind == kind) return subject.index;
  }
  if (of.item < 0) return -1;
  return picture::item_of(*shown.marks.at(static_cast<std::size_t>(of.mark)), of.item).second;
}

void ScenePlayer::take_hold(const ui::ShownPicture& shown, const picture::Identity& of,
                            picture::Name axis) {
  const auto scale = std::find_if(shown.placed.scales.begin(), shown.placed.scales.end(),
                                  [&](const picture::Scale& each) { return each.axis == axis; });
  if (scale == shown.placed.scales.end() || of.item < 0) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto [items, item] =
      picture::item_of(*shown.marks.at(static_cast<std::size_t>(of.mark)), of.item);
  const auto value = static_cast<double>(items->value[static_cast<std::size_t>(item)]);
  const picture::Point at{mouse.x, mouse.y};
  drag_ = Drag{of.key, *scale, at, std::isfinite(value) ? value : scale->value_at(at)};
}

/// What a press on a thing does.
void ScenePlayer::act(const ui::ShownPicture& shown, const picture::Identity& of,
                      const View& view) {
  const picture::Act act = picture::act_of(shown.marks, of);
  if (act.kind == picture::Act::none || dragged_ || drag_) return;
  ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
  if (!ImGui::IsMouseClicked(ImGuiMouseButton_Left)) return;
  const StepAxis axis = scene().steps();
  switch (act.kind) {
    case picture::Act::go: {
      const int index = index_of(shown, of, axis.noun);
      step_ = scene().leads_to(view, of.key);
      const int tile = std::min(index + 1, axis.tiles);
      if (!step_ && index >= 0) step_ = Cursor{tile, axis.last_phase(tile)};
      break;
    }
    case picture::Act::pick:
      pick(act.what, index_of(shown, of, act.what.text()));
      break;
    case picture::Act::drag:
      take_hold(shown, of, act.what);
      break;
    default:
      dragged_ = of;
  }
  ui::request_redraw();
}

// ---- what stands beside the picture --------------------------------------------------------------

std::vector<ui::Readout> ScenePlayer::readouts(Cursor cursor) const {
  constexpr ui::Role kRoles[] = {ui::Role::text, ui::Role::accent, ui::Role::good, ui::Role::wrong};
  std::vector<Readout> others;
  if (pinned_) others = readouts_of(*pinned(), {pinned_cursor(cursor), picks_});
  std::vector<ui::Readout> all;
  for (const Readout& each : readouts_of(scene(), view(cursor))) {
    const auto other = std::find_if(others.begin(), others.end(),
                                    [&](const Readout& one) { return one.id == each.id; });
    const bool differs = other != others.end() && other->value != each.value;
    const picture::Subject subject = picture::subject_of(each.about);
    const picture::Symbol* symbol = symbol_of(subject);
    const bool toned = symbol != nullptr && symbol->tone > 0;
    all.push_back({each.id, each.label, each.value, each.unit, each.provenance, each.detail,
                   kRoles[each.look], differs ? "A " + other->value : "",
                   toned ? picture::tone_role(symbol->tone) : ui::Role::muted, is_lit(subject)});
  }
  return all;
}

bool ScenePlayer::is_lit(const picture::Subject& subject) const {
  const auto& pointed = pointed_at_ ? pointed_subjects_ : beside_;
  return !subject.kind.empty() &&
         std::find(pointed.begin(), pointed.end(), subject) != pointed.end();
}

const picture::Symbol* ScenePlayer::symbol_of(const picture::Subject& subject) const {
  const auto found = std::find_if(symbols_.begin(), symbols_.end(), [&](const auto& each) {
    return picture::subject_of(each.about) == subject;
  });
  return found == symbols_.end() ? nullptr : &*found;
}

void ScenePlayer::draw_measured(const lab::Report& report, const measured::Mask& mask) {
  measured_.draw(scene().measured_spec(), report, scene().lesson(), mask);
}

std::optional<std::pair<double, double>> ScenePlayer::axis_ends(Cursor cursor, picture::Name axis) {
  const Shown shown = run_.still(view(cursor));
  for (const picture::Axis& one : shown->picture.axes) {
    if (one.name == axis) return std::pair(one.low, one.high);
  }
  return std::nullopt;
}

std::optional<picture::Area> ScenePlayer::area_of(Cursor cursor, const picture::Key& key) {
  const Shown shown = run_.still(view(cursor));
  for (const picture::Piece& piece : shown->placed.pieces) {
    if (piece.of.key == key) return piece.area;
  }
  for (const picture::Room& room : shown->placed.rooms) {
    if (room.key == key) return room.area;
  }
  return std::nullopt;
}

int ScenePlayer::lit_row(std::string_view table_id) const {
  const lab::Table* table =
      scene().report() != nullptr ? scene().report()->table(table_id) : nullptr;
  if (table == nullptr || pointed_subjects_.empty()) return -1;
  const auto is_meant = [&](const picture::Subject& subject) {
    return std::find(pointed_subjects_.begin(), pointed_subjects_.end(), subject) !=
           pointed_subjects_.end();
  };
  for (int row = 0; row < static_cast<int>(table->rows.size()); ++row) {
    const auto subjects = scene().subjects_of_row(table_id, row);
    if (std::any_of(subjects.begin(), subjects.end(), is_meant)) return row;
  }
  return -1;
}

}  // namespace tilestep::scenes

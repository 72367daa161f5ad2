#include "scenes/stage/reel.hpp"

#include <algorithm>
#include <cmath>

#include "scenes/shared/questions.hpp"

namespace tilestep::scenes {
namespace {

constexpr double kSecondsAPhase = 0.35, kMostSeconds = 1;
constexpr std::size_t kStills = 12;

}  // namespace

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

// ---- the pictures of a run -----------------------------------------------------------------------

int Reel::place_of(Cursor cursor) const {
  const int phases = std::max(scene_->steps().phases, 1);
  return cursor.tile <= 0 ? 0 : (cursor.tile - 1) * phases + cursor.phase + 1;
}

Cursor Reel::cursor_at(int place) const {
  const int phases = std::max(scene_->steps().phases, 1);
  if (place <= 0) return {0, phases - 1};
  return {(place - 1) / phases + 1, (place - 1) % phases};
}

void Reel::renew() {
  extent_.reset();
  stills_.clear();
  from_ = to_ = nullptr;
  cut_ = true;
}

void Reel::use(picture::Area area, float scale, const Reel* other) {
  const bool shares = other != nullptr;
  if (!extent_ || shares != shares_) {
    extent_ =
        shares ? picture::united(scene_->extent(), other->scene_->extent()) : scene_->extent();
    stills_.clear();
  }
  if (area != area_ || scale != scale_) stills_.clear();
  shares_ = shares;
  area_ = area;
  scale_ = scale;
}

Reel::Shown Reel::still(const View& view) {
  const auto found = std::find_if(stills_.begin(), stills_.end(),
                                  [&](const Still& each) { return each.view == view; });
  if (found != stills_.end()) {
    std::rotate(found, found + 1, stills_.end());
    return stills_.back().shown;
  }
  auto made = std::make_shared<ui::ShownPicture>();
  made->picture = scene_->picture(*extent_, view);
  if (view.guess) {
    const auto question = scene_->question({view.guess->asked, view.picks});
    if (question) add_guess(made->picture, *question, *view.guess);
  }
  made->marks = picture::marks_of(made->picture);
  made->placed = picture::place(made->picture, area_, ui::PictureMetrics());
  if (stills_.size() == kStills) stills_.erase(stills_.begin());
  stills_.push_back({view, std::move(made)});
  return stills_.back().shown;
}

bool Reel::go_on(Cursor cursor, float seconds) {
  const int goal = place_of(cursor);
  if (std::exchange(cut_, false)) player_.cut(goal);
  player_.aim(goal, std::max(scene_->steps().phases, 1));
  player_.advance(seconds);
  return player_.rests();
}

const picture::Placed& Reel::moving(const View& view) {
  const int before = static_cast<int>(std::floor(player_.position()));
  View at = view;
  at.cursor = cursor_at(before);
  const Shown from = still(at);
  if (player_.rests()) return from->placed;
  at.cursor = cursor_at(before + 1);
  const Shown to = still(at);
  if (from != from_ || to != to_) {
    from_ = from;
    to_ = to;
    join_.emplace(from->placed, to->placed);
  }
  picture::mix(from->placed, to->placed, *join_, static_cast<float>(player_.position() - before),
               mixed_);
  return mixed_;
}

}  // namespace tilestep::scenes

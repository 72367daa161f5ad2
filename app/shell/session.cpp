#include "app/shell/session.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "app/shell/steps.hpp"

namespace tilestep::app {
namespace {

constexpr double kSecondsAStep = 1.2, kMostSecondsAPhase = 0.45, kLeastSecondsAPhase = 0.06;
/// A trace of more steps than this is played faster.
constexpr int kLongTrace = 16;
constexpr double kBeatSeconds =
    1.2;  // time to see what an event changed, before the rest of the step follows
constexpr double kSecondsOfLong = 0.4, kMostSecondsAUnit = 3;
/// While it plays: at a place, to read what is there.
constexpr double kRestSeconds = 0.35, kStillRestSeconds = 0.6;

/// A step, with all its phases.
double seconds_of(const scenes::StepAxis& axis, int tile) {
  const int phases = axis.phases_in(std::clamp(tile, 1, std::max(axis.tiles, 1)));
  return std::max(std::min(kSecondsAStep, kMostSecondsAPhase * phases),
                  kLeastSecondsAPhase * phases);
}
/// How long the way to a place takes, an ordinary one being 1.
double lasts(const scenes::StepAxis& axis, int place) {
  const auto phase = static_cast<std::size_t>(axis.at_place(place).phase);
  return phase < axis.lasts.size() ? axis.lasts[phase] : 1;
}
double seconds_of_phase(const scenes::StepAxis& axis) {
  return seconds_of(axis, 1) / axis.phases_in(std::min(axis.tiles, 1));
}
/// A step, or the steps of a unit, each as short as it may be where they are many.
double seconds_of_way(const scenes::StepAxis& axis, scenes::Cursor from, scenes::Cursor to) {
  const int steps = to.tile - from.tile;
  return axis.unit_ends.empty() ? seconds_of(axis, to.tile)
                                : std::min(seconds_of(axis, to.tile) * steps, kMostSecondsAUnit);
}

}  // namespace

Session::Session(LabClient& lab, std::vector<LessonState> lessons, std::vector<LabOffer> offers,
                 std::size_t first)
    : lab_(lab), lessons_(std::move(lessons)), offers_(std::move(offers)) {
  assert(!lessons_.empty() && first < offers_.size());
  for (LessonState& each : lessons_) {
    each.settings = each.knobs.completed(each.settings);
    each.lab = first;
  }
}

void Session::choose(std::size_t index) {
  assert(index < lessons_.size());
  if (index != chosen_) {
    playing_ = false;
    stop_trials();
  }
  chosen_ = index;
  take_updates();  // among them that this lesson's run was given up for another's
  if (lesson().stale() && !lesson().run) submit_run();
}

void Session::show(std::size_t index, const lab::Report& report, std::string_view day,
                   std::optional<OwnedKernel> kernel) {
  assert(index < lessons_.size());
  LessonState& shown = lessons_[index];
  shown.player->load(report);
  playing_ = false;
  chosen_ = index;
  if (shown.run) lab_.cancel(*shown.run);
  shown.run.reset();  // whatever it still says is about a ticket that nobody holds
  shown.due_s.reset();
  shown.then.reset();
  shown.settings = shown.asked = shown.knobs.completed(report.params);
  shown.kernel = shown.asked_kernel = std::move(kernel);
  take_report(shown, report);
  shown.answered = shown.settings;
  shown.answered_lab = shown.lab;
  shown.capsule_day = day.empty() ? "an unknown day" : day;
}

// ---- where in the trace -------------------------------------------------------------------------

scenes::StepAxis Session::axis() const {
  return lesson().report ? lesson().scene().steps() : scenes::StepAxis{};
}

int Session::step() const {
  return completed_steps(axis(), lesson().cursor);
}

void Session::go(scenes::Cursor cursor) {
  LessonState& now = lesson();
  if (!now.report) return;
  now.playhead.cut(axis().place_of(inside(axis(), cursor)));
  arrive();
}

/// The cursor follows the playhead.
void Session::arrive() {
  LessonState& now = lesson();
  now.cursor = inside(axis(), axis().at_place(now.playhead.place()));
  now.gate.reveal(now.scene(), now.player->view({}).picks, axis(), step());
}

void Session::travel(scenes::Cursor cursor, double seconds) {
  LessonState& now = lesson();
  if (!now.report) return;
  if (!moves_) return go(cursor);
  beat_s_ = 0;
  now.playhead.aim(axis().place_of(inside(axis(), cursor)), seconds);
}

/// The place between two, both left out, where an event has happened; an event where the way ends needs no rest.
std::optional<int> Session::beat_between(double from, double to) const {
  const scenes::StepAxis steps = axis();
  if (steps.tiles > kLongTrace) return std::nullopt;
  for (const scenes::Event& event : lesson().events) {
    const int place = steps.place_of(inside(steps, event.at));
    if (from < place && place <= to && place < lesson().playhead.goal()) return place;
  }
  return std::nullopt;
}

/// Ends the way that it is on. False if it goes nowhere, or the other way.
bool Session::finish(bool on) {
  Playhead& playhead = lesson().playhead;
  if (playhead.rests() || playhead.goes_on() != on) return false;
  playhead.finish();
  arrive();
  return true;
}

// A hand on the controls ends the playback.
void Session::step_on() {
  stop();
  if (std::exchange(beat_s_, 0) > 0) return;  // goes on
  if (finish(true) || ask()) return;
  const scenes::Cursor to = next_rest();
  travel(to, seconds_of_way(axis(), lesson().cursor, to));
}
void Session::step_back() {
  stop();
  if (finish(false)) return;
  const bool inside_one = lesson().playhead.fraction() > 0;
  const scenes::Cursor from = lesson().cursor;
  const auto ends = axis().unit_ends;
  const bool ends_step = at_step(axis(), completed_steps(axis(), from)) == from &&
                         (ends.empty() || std::binary_search(ends.begin(), ends.end(), from.tile));
  travel(inside_one && ends_step ? from : app::step_back(axis(), from),
         seconds_of(axis(), from.tile) / 2);
}
/// Where → goes: a step or a unit on, but to no place behind a question.
scenes::Cursor Session::next_rest() const {
  const LessonState& now = lesson();
  const scenes::StepAxis steps = axis();
  const int step = completed_steps(steps, now.cursor);
  const auto& card = now.gate.card();
  if (card && !card->revealed) return at_step(steps, step + 1);  // what was asked about
  const scenes::Cursor to = app::step_on(steps, now.cursor);
  scenes::View view = now.view();
  for (int between = step + 1; predicts_ && between < to.tile; ++between) {
    view.cursor = at_step(steps, between);
    if (now.gate.asks(now.scene(), view)) return view.cursor;
  }
  return to;
}
void Session::line_on() {
  stop();
  if (finish(true) || ask()) return;
  travel(app::line_on(axis(), lesson().cursor), seconds_of_phase(axis()));
}
void Session::line_back() {
  stop();
  if (finish(false)) return;
  const scenes::Cursor from = lesson().cursor;
  travel(lesson().playhead.fraction() > 0 ? from : app::line_back(axis(), from),
         seconds_of_phase(axis()) / 2);
}
void Session::first() {
  stop();
  go(at_step(axis(), 0));
}
void Session::last() {
  stop();
  go(at_step(axis(), axis().tiles));
}

void Session::next_event() {
  stop();
  for (const scenes::Event& event : lesson().events) {
    if (lesson().cursor < event.at) return go(event.at);
  }
  last();
}

void Session::scrub(double place) {
  stop();
  if (!lesson().report) return;
  lesson().playhead.cut(std::clamp(place, 0.0, static_cast<double>(axis().places())));
  arrive();
}

void Session::end_scrub() {
  LessonState& now = lesson();
  const double position = now.playhead.position();
  const auto nearest = static_cast<int>(std::lround(position));
  if (nearest == position) return;
  travel(axis().at_place(nearest), std::abs(nearest - position) * seconds_of_phase(axis()));
}

// ---- time ----------------------------------------------------------------------------------------

void Session::set_moves(bool moves) {
  if (moves_ == moves) return;
  moves_ = moves;
  if (moves_ || lesson().playhead.rests()) return;
  lesson().playhead.finish();
  arrive();
}

void Session::toggle_play() {
  if (!lesson().report) return;
  playing_ = !playing_;
  rested_s_ = 0;
  if (playing_ && at_end(axis(), lesson().cursor)) go(at_step(axis(), 0));
}

void Session::advance(double seconds) {
  LessonState& now = lesson();
  if (!now.report) return;
  seconds *= speed_;
  if (!now.playhead.rests()) {
    const double held = std::min(beat_s_, seconds);
    beat_s_ -= held;
    seconds -= held;
    if (seconds <= 0) return;
    const double from = now.playhead.position();
    now.playhead.advance(seconds / lasts(axis(), now.playhead.place() + 1));
    if (const auto beat = beat_between(from, now.playhead.position())) {
      now.playhead.stand(*beat);
      beat_s_ = kBeatSeconds;
    }
    arrive();
    return;
  }
  if (!playing_) return;
  const scenes::StepAxis steps = axis();
  if (at_end(steps, now.cursor)) return stop();
  rested_s_ += seconds;
  if (rested_s_ < (moves_ ? kRestSeconds : kStillRestSeconds)) return;
  rested_s_ = 0;
  if (ask()) return stop();
  const bool is_long = steps.tiles > kLongTrace;
  const scenes::Cursor to = is_long || moves_ ? next_rest() : app::line_on(steps, now.cursor);
  travel(to, is_long && steps.unit_ends.empty() ? kSecondsOfLong
                                                : seconds_of_way(steps, now.cursor, to));
}

// ---- prediction ----------------------------------------------------------------------------------

void Session::set_predicts(bool predicts) {
  predicts_ = predicts;
  if (!predicts) lesson().gate.close();
}

bool Session::ask() {
  LessonState& now = lesson();
  if (!predicts_ || !now.report || now.outdated()) return false;
  return now.gate.open(now.scene(), now.view());
}

void Session::answer(const scenes::Guess& guess) {
  if (lesson().playhead.rests()) lesson().gate.answer(guess);
}

void Session::skip() {
  lesson().gate.skip();
}

// ---- knobs and the lab --------------------------------------------------------------------------

void Session::set_knob(const std::string& id, lab::KnobValue value, double now_s) {
  LessonState& now = lesson();
  stop_trials();
  now.settings[id] = now.knobs.at(id).checked(value);
  ask_knob(id);
  now.due_s = now_s + rest_s_;
  playing_ = false;
}

void Session::ask_knob(const std::string& id) {
  auto& asked = lesson().asked_knobs;
  if (std::find(asked.begin(), asked.end(), id) == asked.end()) asked.push_back(id);
}

void Session::stand(const lab::Settings& settings, const PlaceIn& place, double now_s, bool asks) {
  LessonState& now = lesson();
  stop();
  now.wants_question = false;
  now.asked_knobs.clear();
  lab::Settings wanted = now.knobs.completed(settings);
  if (wanted == now.settings && !now.outdated() && now.report) {
    go(place(axis()));
    if (asks) ask();
    return;
  }
  now.wants_question = asks && predicts_;
  now.settings = std::move(wanted);
  now.wanted = place;
  now.due_s = now_s;
}

void Session::reset(double now_s) {
  LessonState& now = lesson();
  const bool changed = now.settings != now.knobs.defaults();
  now.settings = now.knobs.defaults();
  now.asked_knobs.clear();
  now.gate.forget();
  now.wanted_step = 0;
  first();
  if (changed || now.failure) now.due_s = now_s;
}

void Session::run_again(double now_s) {
  lesson().due_s = now_s;
}

void Session::run_kernel(std::optional<OwnedKernel> kernel, double now_s) {
  LessonState& now = lesson();
  stop();
  now.kernel = std::move(kernel);
  now.due_s = now_s;
}

void Session::trust_kernel() {
  LessonState& now = lesson();
  for (auto* kernel : {&now.kernel, &now.asked_kernel, &now.answered_kernel}) {
    if (*kernel && (*kernel)->from_capsule()) (*kernel)->owner = KernelOwner::trusted;
  }
}

}  // namespace tilestep::app

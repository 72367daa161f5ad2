#include "app/shell/session.hpp"

#include <cassert>
#include <utility>

#include "app/shell/steps.hpp"

namespace tilestep::app {
namespace {

/// A trace of more steps than this is played step by step, a shorter one line by line.
constexpr int kLongTrace = 16;
constexpr double kSecondsALine = 0.6;

}  // namespace

Session::Session(LabClient& lab, std::vector<LessonState> lessons, std::string backend)
    : lab_(lab), lessons_(std::move(lessons)), backend_(std::move(backend)) {
  assert(!lessons_.empty());
  for (LessonState& each : lessons_) each.settings = each.knobs.completed(each.settings);
}

void Session::choose(std::size_t index) {
  assert(index < lessons_.size());
  if (index != chosen_) playing_ = false;
  chosen_ = index;
  const LessonState& now = lesson();
  if (!now.report && !now.run && !now.failure) submit_run();
}

// ---- where in the trace -------------------------------------------------------------------------

scenes::StepAxis Session::axis() const {
  return lesson().report ? lesson().scene->steps() : scenes::StepAxis{};
}

int Session::step() const {
  return completed_steps(axis(), lesson().cursor);
}

void Session::go(scenes::Cursor cursor) {
  LessonState& now = lesson();
  if (now.report) now.cursor = inside(axis(), cursor);
}

// A hand on the controls ends the playback.
void Session::step_on() {
  stop();
  go(app::step_on(axis(), lesson().cursor));
}
void Session::step_back() {
  stop();
  go(app::step_back(axis(), lesson().cursor));
}
void Session::line_on() {
  stop();
  go(app::line_on(axis(), lesson().cursor));
}
void Session::line_back() {
  stop();
  go(app::line_back(axis(), lesson().cursor));
}
void Session::first() {
  stop();
  go(at_step(axis(), 0));
}
void Session::last() {
  stop();
  go(at_step(axis(), axis().tiles));
}

// ---- playback -----------------------------------------------------------------------------------

void Session::toggle_play() {
  if (!lesson().report) return;
  playing_ = !playing_;
  played_s_ = 0;
  if (playing_ && at_end(axis(), lesson().cursor)) go(at_step(axis(), 0));
}

void Session::advance(double seconds) {
  if (!playing_ || !lesson().report) return;
  played_s_ += seconds * speed_;
  const scenes::StepAxis steps = axis();
  while (playing_ && played_s_ >= kSecondsALine) {
    played_s_ -= kSecondsALine;
    const scenes::Cursor from = lesson().cursor;
    go(steps.tiles > kLongTrace ? app::step_on(steps, from) : app::line_on(steps, from));
    if (at_end(steps, lesson().cursor)) playing_ = false;
  }
}

// ---- knobs and the lab --------------------------------------------------------------------------

void Session::set_knob(const std::string& id, lab::KnobValue value, double now_s) {
  LessonState& now = lesson();
  now.settings[id] = now.knobs.at(id).checked(value);
  now.due_s = now_s + rest_s_;
  playing_ = false;
}

void Session::reset(double now_s) {
  LessonState& now = lesson();
  const bool changed = now.settings != now.knobs.defaults();
  now.settings = now.knobs.defaults();
  now.guesses.clear();
  now.wanted_step = 0;
  first();
  if (changed || now.failure) now.due_s = now_s;
}

void Session::run_again(double now_s) {
  lesson().due_s = now_s;
}

void Session::submit_run() {
  // The lab keeps the newest run only: those of other lessons are not coming any more.
  for (LessonState& each : lessons_) each.run.reset();
  LessonState& now = lesson();
  now.due_s.reset();
  now.progress = {};
  lab::Request request;
  request.lesson = now.info.id;
  request.params = now.settings;
  request.action = lab::Request::Action::run;
  request.backend = backend_;
  now.run = lab_.submit(request);
}

void Session::start_bench() {
  LessonState& now = lesson();
  now.bench_failure.reset();
  now.bench_progress = {};
  for (LessonState& each : lessons_) each.bench_run.reset();
  lab::Request request;
  request.lesson = now.info.id;
  request.params = now.settings;
  request.action = lab::Request::Action::bench;
  request.backend = backend_;
  now.bench_run = lab_.submit(request);
}

bool Session::update(double now_s) {
  bool changed = false;
  if (const auto request = lesson().scene->take_request()) {
    for (const auto& [id, value] : *request) set_knob(id, value, now_s);
    changed = true;
  }
  if (lesson().due_s && now_s >= *lesson().due_s) {
    submit_run();
    changed = true;
  }
  while (const auto update = lab_.poll()) changed = take(*update) || changed;
  return changed;
}

bool Session::take(const LabUpdate& update) {
  for (LessonState& each : lessons_) {
    const bool run = each.run == update.ticket;
    if (!run && each.bench_run != update.ticket) continue;
    if (const auto* progress = std::get_if<LabProgress>(&update.what)) {
      (run ? each.progress : each.bench_progress) = *progress;
      return true;
    }
    (run ? each.run : each.bench_run).reset();
    if (const auto* failure = std::get_if<LabFailure>(&update.what)) {
      (run ? each.failure : each.bench_failure) = *failure;
    } else if (run) {
      take_report(each, std::get<lab::Report>(update.what));
    } else {
      each.bench = std::get<lab::Report>(update.what);
      each.bench_failure.reset();
    }
    return true;
  }
  return false;  // an answer that nobody waits for any more
}

void Session::take_report(LessonState& lesson, const lab::Report& report) {
  try {
    lesson.scene->load(report);
  } catch (const Error& error) {
    lesson.failure = LabFailure{error.what(), error.code(), false};
    return;
  }
  const bool first_report = !lesson.report.has_value();
  lesson.report = report;
  lesson.failure.reset();
  lesson.guesses.clear();
  const scenes::StepAxis steps = lesson.scene->steps();
  lesson.cursor = first_report ? at_step(steps, lesson.wanted_step) : inside(steps, lesson.cursor);
}

}  // namespace tilestep::app

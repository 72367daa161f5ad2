#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "app/shell/session.hpp"
#include "app/shell/steps.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/workbench/orders.hpp"
#include "kernels/catalog.hpp"

// What a session asks of the lab, and what it makes of the answers.
namespace tilestep::app {
namespace {

/// What was asked last has come to this.
void take_failure(LessonState& lesson, LabFailure failure) {
  lesson.failure = std::move(failure);
  lesson.answered = lesson.asked;
  lesson.answered_lab = lesson.asked_lab;
  lesson.answered_kernel = lesson.asked_kernel;
}

bool ran_in_orders(const lab::Report& report) {
  return std::any_of(report.checks.begin(), report.checks.end(),
                     [](const lab::Check& check) { return check.id == workbench::kOrderCheck; });
}

/// Where a lesson is to stand at first. What is no phase of it is a complaint.
scenes::Cursor wanted_place(LessonState& lesson, const scenes::StepAxis& steps) {
  try {
    if (!lesson.wanted_phase.empty()) {
      return at_phase(steps, lesson.wanted_step, lesson.wanted_phase);
    }
  } catch (const Error& error) {
    lesson.complaint = error.what();
  }
  return at_step(steps, lesson.wanted_step);
}

}  // namespace

std::vector<LabOffer> lab_offers(const std::string& backend,
                                 const std::vector<LabAddress>& elsewhere) {
  std::vector<LabOffer> offers = {
      {"auto", "This machine", "its GPU, or emulation if it has none", "auto", 0},
      {"emulated", "CPU emulation", "the same kernels, without times", "emulated", 0},
      {"recorded", "Recordings", "recorded earlier on a GPU", "recorded", 0}};
  if (backend == "cuda") {
    offers.front() = {"cuda", "This machine's GPU", "and no emulation", "cuda", 0};
  }
  for (std::size_t i = 0; i < elsewhere.size(); ++i) {
    const std::string& text = elsewhere[i].text;
    const bool ssh = elsewhere[i].kind == LabAddress::Kind::ssh;
    offers.push_back({text, ssh ? elsewhere[i].host : text.substr(text.find(':') + 1),
                      ssh ? "over ssh" : "started by this command", backend, i + 1});
  }
  return offers;
}

lab::Request Session::request(lab::Request::Action action) const {
  lab::Request request;
  request.lesson = lesson().info.id;
  request.params = lesson().settings;
  request.action = action;
  request.backend = offers_[lesson().lab].backend;
  request.kernel = lesson().kernel;
  return request;
}

Ticket Session::submit(const lab::Request& request) {
  const LessonState& now = lesson();
  const LabOffer& offer = offers_[now.lab];
  if (!now.kernel || !now.kernel->for_sandbox()) return lab_.submit_to(offer.lab, request);
  if (offer.lab != 0) {
    throw Error(
        fmt::format("A capsule's kernel runs only in a sandbox on this machine, not at {}: choose "
                    "this machine, or trust the kernel.",
                    offer.name),
        ExitCode::unavailable);
  }
  return lab_.submit_others(request);
}

void Session::submit_run() {
  stop_trials();
  LessonState& now = lesson();
  now.due_s.reset();
  now.progress = {};
  const auto boxed = [](const auto& kernel) { return kernel && kernel->for_sandbox(); };
  // Another lab does not know that it is replaced.
  const bool elsewhere = now.asked_lab != now.lab || boxed(now.asked_kernel) != boxed(now.kernel);
  if (now.run && (elsewhere || boxed(now.kernel))) lab_.cancel(*now.run);
  now.run.reset();
  now.asked = now.settings;
  now.asked_lab = now.lab;
  now.asked_kernel = now.kernel;
  try {
    lab::Request run = request(lab::Request::Action::run);
    // The picture does not wait for what the trials can say as well.
    run.orders = !(now.kernel && lab_.beside() && now.trials.of != now.kernel);
    now.run = submit(run);
  } catch (const Error& error) {
    take_failure(now, {error.what(), error.code()});
  }
}

void Session::stop_run() {
  if (lesson().run) lab_.cancel(*lesson().run);
}

void Session::choose_lab(std::size_t offer, double now_s) {
  assert(offer < offers_.size());
  LessonState& now = lesson();
  if (now.lab == offer) return;
  stop();
  now.lab = offer;
  now.due_s = now_s;
}

void Session::start_bench() {
  stop_trials();
  LessonState& now = lesson();
  now.bench_failure.reset();
  now.bench_given_up.reset();
  now.bench_progress = {};
  try {
    lab::Request bench = request(lab::Request::Action::bench);
    if (!now.bench) bench.params[lab::kQuickParam] = true;  // asked again it has all
    now.bench_run = submit(bench);
  } catch (const Error& error) {
    now.bench_failure = LabFailure{error.what(), error.code()};
  }
}

void Session::stop_bench() {
  if (const LessonState* lesson = benched()) lab_.cancel(*lesson->bench_run);
}

void Session::ask_assembly(const workbench::AssemblyRequest& request) {
  stop_trials();
  const std::size_t lab = lab_of_lesson();
  lesson().assembly.begin(request, lab, lab_.submit_assembly(lab, request));
}

void Session::stop_assembly() {
  if (const auto ticket = lesson().assembly.ticket()) lab_.cancel(*ticket);
}

// ---- trials ---------------------------------------------------------------------------------------

bool Session::trying() const {
  return std::any_of(lessons_.begin(), lessons_.end(),
                     [](const LessonState& each) { return each.trials.ticket.has_value(); });
}

/// Once the user's kernel is right here and the lab has nothing else to do. True if it did.
bool Session::start_trials() {
  LessonState& now = lesson();
  const bool right = now.report && now.report->kernel && now.report->ok() && !now.failure;
  if (!right || now.outdated() || now.holds_trials || !now.capsule_day.empty()) return false;
  if (now.trials.of == now.answered_kernel || !lab_.beside() || lab_.busy()) return false;
  now.trials = {};
  now.trials.of = now.answered_kernel;
  try {
    lab::Request trials = request(lab::Request::Action::trials);
    trials.orders = now.report->device.backend == "emulated" && !ran_in_orders(*now.report);
    now.trials.ticket = submit(trials);
  } catch (const Error& error) {
    now.trials.sentence = error.what();
  }
  return true;
}

/// What was not answered begins anew when there is time again.
void Session::stop_trials() {
  for (LessonState& each : lessons_) {
    if (!each.trials.ticket) continue;
    lab_.cancel(*each.trials.ticket);
    each.trials = {};
  }
}

void Session::hold_trials() {
  stop_trials();
  lesson().holds_trials = true;
}

std::vector<lab::Settings> Session::wrong_trials() const {
  std::vector<lab::Settings> wrong;
  const TrialRecord* record = lesson().trials_of_report();
  if (record == nullptr || workbench::first_wrong(record->all) == nullptr) return wrong;
  for (const lab::Settings& settings : tilestep::lesson(lesson().info.id).trials()) {
    const bool is_wrong =
        std::any_of(record->all.begin(), record->all.end(), [&](const workbench::Trial& each) {
          return each.result == workbench::Trial::Result::wrong &&
                 each.knobs == workbench::words_of(settings);
        });
    if (is_wrong) wrong.push_back(lesson().knobs.completed(settings));
  }
  return wrong;
}

/// Returns false if what is shown of it stays the same.
bool Session::take_of_trials(LessonState& lesson, const LabUpdate& update) {
  TrialRecord& record = lesson.trials;
  if (const auto* progress = std::get_if<LabProgress>(&update.what)) {
    return std::exchange(record.progress, *progress).note != progress->note;
  }
  record.ticket.reset();
  if (const auto* report = std::get_if<lab::Report>(&update.what)) {
    for (const lab::Check& check : report->checks) {
      if (check.id == workbench::kOrderCheck) lesson.report->add(check);
    }
    record.all = workbench::trials_of(*report);
    record.sentence = workbench::sentence_of(record.all);
  } else if (const auto* failure = std::get_if<LabFailure>(&update.what)) {
    record.sentence = "Other settings were not tried: " + failure->sentence;
  } else {
    record = {};
  }
  return true;
}

const LessonState* Session::benched() const {
  const LessonState* newest = nullptr;  // one that it replaced may not have heard of that yet
  for (const LessonState& each : lessons_) {
    if (each.bench_run && (newest == nullptr || each.bench_run > newest->bench_run)) newest = &each;
  }
  return newest;
}

bool Session::timing() const {
  const LessonState* lesson = benched();
  if (lesson == nullptr || lesson->bench_progress.waiting) return false;
  const LabOffer& offer = offers_[lesson->lab];
  return offer.lab == 0 && (offer.backend == "auto" || offer.backend == "cuda");
}

bool Session::update(double now_s) {
  bool changed = false;
  if (const auto request = lesson().player->take_request()) {
    for (const auto& [id, value] : *request) set_knob(id, value, now_s);
    changed = true;
  }
  if (const auto cursor = lesson().player->take_step()) {
    stop();
    go(*cursor);
    changed = true;
  }
  if (lesson().due_s && now_s >= *lesson().due_s) {
    submit_run();
    changed = true;
  }
  changed = take_updates() || changed;
  return start_trials() || changed;
}

bool Session::take_updates() {
  bool changed = false;
  while (const auto update = lab_.poll()) changed = take(*update) || changed;
  return changed;
}

bool Session::take(const LabUpdate& update) {
  if (const auto* failure = std::get_if<LabFailure>(&update.what); failure && update.ticket == 0) {
    remark_ = *failure;
    return true;
  }
  for (LessonState& each : lessons_) {
    if (each.assembly.ticket() == update.ticket) {
      each.assembly.take(update);
      return true;
    }
    if (each.bench_run == update.ticket) return take_of_bench(each, update);
    if (each.trials.ticket == update.ticket) return take_of_trials(each, update);
    if (each.run != update.ticket) continue;
    take_of_run(each, update);
    return true;
  }
  return false;  // an answer that nobody waits for any more
}

void Session::take_of_run(LessonState& lesson, const LabUpdate& update) {
  if (const auto* progress = std::get_if<LabProgress>(&update.what)) {
    lesson.progress = *progress;
    return;
  }
  lesson.run.reset();
  // One that was given up leaves what is on show as stale as it was.
  if (std::holds_alternative<LabGivenUp>(update.what)) return;
  if (const auto* failure = std::get_if<LabFailure>(&update.what)) {
    take_failure(lesson, *failure);
  } else {
    take_report(lesson, std::get<lab::Report>(update.what));
  }
}

/// Returns false if what is shown of it stays the same.
bool Session::take_of_bench(LessonState& lesson, const LabUpdate& update) {
  if (const auto* progress = std::get_if<LabProgress>(&update.what)) {
    const auto percent = [](double fraction) { return static_cast<int>(100 * fraction); };
    const LabProgress before = std::exchange(lesson.bench_progress, *progress);
    return before.waiting != progress->waiting || before.note != progress->note ||
           percent(before.fraction) != percent(progress->fraction);
  }
  lesson.bench_run.reset();
  if (const auto* failure = std::get_if<LabFailure>(&update.what)) {
    lesson.bench_failure = *failure;
  } else if (const auto* given_up = std::get_if<LabGivenUp>(&update.what)) {
    lesson.bench_given_up = *given_up;
  } else {
    lesson.bench = std::get<lab::Report>(update.what);
    lesson.measured_gate.renew(lesson.scene(), *lesson.bench);
  }
  return true;
}

void Session::take_report(LessonState& lesson, const lab::Report& report) {
  const scenes::StepAxis before = lesson.scene().steps();
  try {
    lesson.player->load(report);
  } catch (const Error& error) {
    return take_failure(lesson, {error.what(), error.code()});
  }
  const bool first_report = !lesson.report.has_value();
  lesson.report = report;
  lesson.answered = report.params;
  lesson.answered_lab = lesson.asked_lab;
  lesson.answered_kernel = lesson.asked_kernel;
  lesson.capsule_day.clear();
  lesson.holds_trials = false;
  if (!report.kernel) lesson.original = report;
  const lab::Report* original = lesson.original_of_report();
  lesson.difference =
      original != nullptr ? first_difference(lesson.scene(), *original) : std::nullopt;
  lesson.failure.reset();
  lesson.gate.forget();
  lesson.events = lesson.scene().events();
  lesson.measured_gate.renew(lesson.scene(), report);
  const scenes::StepAxis steps = lesson.scene().steps();
  if (first_report) {  // the table that fills while one steps, not one that waits for the end
    const auto of_steps =
        std::find_if(report.tables.begin(), report.tables.end(),
                     [&](const lab::Table& table) { return table.id == steps.table; });
    if (of_steps != report.tables.end()) {
      lesson.table = static_cast<int>(of_steps - report.tables.begin());
    }
  }
  if (lesson.then) {
    lesson.player->pin();
    lesson.settings = lesson.knobs.completed(*std::exchange(lesson.then, std::nullopt));
    lesson.due_s = 0;
  }
  if (first_report) {
    lesson.cursor = wanted_place(lesson, steps);
  } else if (steps.phases != before.phases ||
             steps.folded != before.folded) {  // a phase of the one is none of the other
    lesson.cursor = at_step(steps, completed_steps(before, lesson.cursor));
  } else {
    lesson.cursor = inside(steps, lesson.cursor);
  }
  if (lesson.wanted) lesson.cursor = inside(steps, std::exchange(lesson.wanted, {})(steps));
  lesson.playhead.cut(steps.place_of(lesson.cursor));
  if (std::exchange(lesson.wants_question, false)) lesson.gate.open(lesson.scene(), lesson.view());
}

}  // namespace tilestep::app

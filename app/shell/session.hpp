#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/shell/assembly_record.hpp"
#include "app/shell/difference.hpp"
#include "app/shell/gate.hpp"
#include "app/shell/owned_kernel.hpp"
#include "app/shell/playhead.hpp"
#include "app/shell/trial_record.hpp"
#include "app/worker/lab_client.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "scenes/stage/scene_player.hpp"

namespace tilestep::app {

/// A place among steps that are not known yet: a run for other knobs may have more of them.
using PlaceIn = std::function<scenes::Cursor(const scenes::StepAxis&)>;

/// Where a lesson may be run: one of the labs, by a backend.
struct LabOffer {
  std::string id;      ///< "emulated", "ssh:ada@gpu1"
  std::string name;    ///< "CPU emulation"
  std::string detail;  ///< what that means, in a few words
  std::string backend = "auto";
  std::size_t lab = 0;  ///< as LabClient::submit_to counts
};
/// This machine as `backend` says, its emulation, its recordings, and each lab that is elsewhere.
std::vector<LabOffer> lab_offers(const std::string& backend,
                                 const std::vector<LabAddress>& elsewhere);

/// One lesson as the user left it.
struct LessonState {
  lab::LessonInfo info;
  lab::Knobs knobs;
  std::unique_ptr<scenes::ScenePlayer> player;

  lab::Settings settings;                ///< complete
  std::vector<std::string> asked_knobs;  ///< turned or looked for here: they stay in sight
  bool all_knobs = false;                ///< the others were unfolded
  Playhead playhead;
  scenes::Cursor cursor;              ///< the place that the playhead reached last
  std::optional<lab::Settings> then;  ///< once the first run is there: keep it, and run with these
  int wanted_step = 0;                ///< where to stand once the first report is there
  bool wants_question = false;        ///< and to be asked there
  PlaceIn wanted;                     ///< where to stand once the run for new knobs is there
  std::string wanted_phase;           ///< inside it, by name or number; empty: its last
  std::string complaint;              ///< why there is no such place; empty: there is
  std::string capsule_day;            ///< of the capsule that is shown; empty: it was run here
  std::string notes;                  ///< of the capsule: the user's own words
  std::optional<lab::Report> report;
  std::optional<LabFailure> failure;
  lab::Settings answered;        ///< the settings that report or failure belong to
  std::optional<Ticket> run;     ///< waits or is under way
  lab::Settings asked;           ///< its settings
  std::size_t lab = 0;           ///< the offer that it is asked of
  std::size_t asked_lab = 0;     ///< the offer that the last run was asked of
  std::size_t answered_lab = 0;  ///< that what is on show, report or failure, came from
  /// The source that the user runs in place of the built-in one; nothing: the built-in one.
  std::optional<OwnedKernel> kernel;
  std::optional<OwnedKernel> asked_kernel;     ///< of the last run
  std::optional<OwnedKernel> answered_kernel;  ///< of what is on show
  std::optional<lab::Report> original;  ///< the newest report of the kernels that are built in
  std::optional<FirstDifference> difference;  ///< of the report on show from `original_of_report`
  LabProgress progress;
  std::optional<double> due_s;  ///< when the changed knobs are sent

  std::optional<lab::Report> bench;
  std::optional<LabFailure> bench_failure;
  std::optional<LabGivenUp> bench_given_up;
  std::optional<Ticket> bench_run;  ///< waits or is under way
  LabProgress bench_progress;

  AssemblyRecord assembly;  ///< what compilers made of its sources
  TrialRecord trials;
  bool holds_trials = false;  ///< the source has changed since it ran

  Gate gate;                          ///< what is asked before the next step
  MeasuredGate measured_gate;         ///< what is asked before measurements are shown
  std::vector<scenes::Event> events;  ///< of the report on show, also those to come
  int table = 0;                      ///< chosen under Data

  scenes::Moment moment() const { return {cursor, playhead.fraction()}; }
  const scenes::Scene& scene() const { return player->scene(); }
  scenes::View view() const { return player->view(cursor); }
  /// What is on show belongs to other settings than the knobs', to another lab or another source.
  bool stale() const {
    return answered != settings || answered_lab != lab || answered_kernel != kernel;
  }
  /// A run of the built-in kernels with the knobs of the report on show, which is of the user's own; else nullptr.
  const lab::Report* original_of_report() const {
    const bool own = report && report->kernel && original && original->params == report->params;
    return own ? &*original : nullptr;
  }
  /// What became of the kernel on show at the trial settings; nullptr: nothing yet.
  const TrialRecord* trials_of_report() const {
    const bool own = trials.of && trials.of == answered_kernel && report && report->kernel;
    return own ? &trials : nullptr;
  }
  /// It is not what the knobs say, or another answer is on its way.
  bool outdated() const { return coming() || stale(); }
  bool coming() const { return due_s.has_value() || run.has_value(); }
};

/// What the shell does without a window: which lesson, where in its trace, and the talk with the
/// lab. Times are seconds of a clock that the caller keeps.
class Session {
 public:
  /// The knobs of `lessons` that are not set stand at their defaults.
  /// All lessons begin at the offer `first`.
  Session(LabClient& lab, std::vector<LessonState> lessons, std::vector<LabOffer> offers,
          std::size_t first = 0);

  std::vector<LessonState>& lessons() { return lessons_; }
  const std::vector<LessonState>& lessons() const { return lessons_; }
  const LessonState& lesson() const { return lessons_[chosen_]; }
  LessonState& lesson() { return lessons_[chosen_]; }
  std::size_t chosen() const { return chosen_; }
  /// Goes to a lesson; asks for the report of its knobs if it has none. A run of another lesson is
  /// then given up, and asked for again when the user is back.
  void choose(std::size_t index);

  /// Goes to a lesson and shows a report that was kept, as if it had been answered; nothing runs. Throws
  /// Error as Scene::load does, and is where it was then. `kernel`: what it is a report of, and runs when a knob is turned.
  void show(std::size_t index, const lab::Report& report, std::string_view day,
            std::optional<OwnedKernel> kernel = {});

  // ---- where in the trace ----
  scenes::StepAxis axis() const;
  int step() const;
  /// Is there at once.
  void go(scenes::Cursor cursor);
  /// The next question, if one is asked here; else a step on, its phases one after another. On the
  /// way: to its end at once.
  void step_on();
  void step_back();
  void line_on();
  void line_back();
  void first();
  void last();
  /// To the next event of the trace; at the end if there is none.
  void next_event();
  /// A hand on the scrubber: somewhere between two places of the axis, counted in places.
  void scrub(double place);
  /// The hand has gone: to the nearest place.
  void end_scrub();

  // ---- time ----
  /// Whether steps take time; else they are there at once.
  void set_moves(bool moves);
  /// Between two places, or on the way.
  bool moving() const { return !lesson().playhead.rests(); }
  bool playing() const { return playing_; }
  void toggle_play();
  void stop() { playing_ = false; }
  double speed() const { return speed_; }
  void set_speed(double speed) { speed_ = speed; }
  /// Lets `seconds` pass.
  void advance(double seconds);

  // ---- prediction ----
  /// Whether steps are asked about before they are shown.
  bool predicts() const { return predicts_; }
  void set_predicts(bool predicts);
  /// Asks what there is to ask here, as the first press of → does. False: nothing.
  bool ask();
  void answer(const scenes::Guess& guess);
  /// Goes without an answer.
  void skip();

  // ---- knobs and the lab ----
  /// A changed knob is sent after a short rest, so that a dragged slider makes one run, not fifty.
  void set_knob(const std::string& id, lab::KnobValue value, double now_s);
  /// Keeps it among the knobs in sight until they are set for something else.
  void ask_knob(const std::string& id);
  /// Stands at `place` of a run with these knobs, the others at their defaults; asks for it if it is
  /// another than the one on show. `asks`: and is asked there what there is to ask.
  void stand(const lab::Settings& settings, const PlaceIn& place, double now_s, bool asks = false);
  /// Default knobs, first step.
  void reset(double now_s);
  void run_again(double now_s);
  /// Runs the lesson with this source, now and whenever a knob is turned; nothing: with its own.
  void run_kernel(std::optional<OwnedKernel> kernel, double now_s);
  /// From now on the capsule's kernel of this lesson runs as the user's own does; nothing runs by that.
  void trust_kernel();
  /// Why others' kernels are not run here, as the end of a sentence; empty: they are, in a sandbox.
  std::string why_no_sandbox() const { return lab_.why_no_sandbox(); }
  const std::vector<LabOffer>& offers() const { return offers_; }
  /// Runs the lesson there from now on.
  void choose_lab(std::size_t offer, double now_s);
  /// What a lab said that is about no run: that a worker died between two. Once.
  std::optional<LabFailure> take_remark() { return std::exchange(remark_, std::nullopt); }
  /// Times this lesson's kernels, in place of another lesson's. Runs wait until it has ended.
  void start_bench();
  /// Gives up the bench under way, of whichever lesson.
  void stop_bench();
  /// Gives up the run under way; what is on show stays.
  void stop_run();
  /// Asks the lesson's lab what compilers make of a source, in place of what was asked before.
  void ask_assembly(const workbench::AssemblyRequest& request);
  /// Gives it up.
  void stop_assembly();
  /// The source in the editor is no longer the one that ran: what runs at the trial settings is given up until the next run.
  void hold_trials();
  /// The trial settings, complete, at which the kernel on show was wrong.
  std::vector<lab::Settings> wrong_trials() const;
  /// The lab that the lesson on show is asked of, as LabClient counts.
  std::size_t lab_of_lesson() const { return offers_[lesson().lab].lab; }
  /// The lesson whose bench waits or is under way.
  const LessonState* benched() const;
  void set_rest_s(double rest_s) { rest_s_ = rest_s; }
  /// Sends what is due, takes in what the lab says. Returns true if something changed.
  bool update(double now_s);
  /// When changed knobs are to be sent: call `update` then.
  std::optional<double> due_s() const { return lesson().due_s; }
  /// True while the lab has something to do that is waited for.
  bool working() const { return lab_.busy() && !trying(); }
  /// True while a bench is under way at this machine, and no longer waits for others.
  bool timing() const;

 private:
  bool trying() const;
  bool start_trials();
  void stop_trials();
  static bool take_of_trials(LessonState& lesson, const LabUpdate& update);
  std::optional<int> beat_between(double from, double to) const;
  scenes::Cursor next_rest() const;
  void travel(scenes::Cursor cursor, double seconds);
  bool finish(bool on);
  void arrive();
  lab::Request request(lab::Request::Action action) const;
  /// The one way to the lab: a capsule's kernel goes to the sandbox, or nowhere. Throws Error that says why.
  Ticket submit(const lab::Request& request);
  void submit_run();
  bool take_updates();
  bool take(const LabUpdate& update);
  void take_of_run(LessonState& lesson, const LabUpdate& update);
  bool take_of_bench(LessonState& lesson, const LabUpdate& update);
  void take_report(LessonState& lesson, const lab::Report& report);

  LabClient& lab_;
  std::vector<LessonState> lessons_;
  std::vector<LabOffer> offers_;
  std::optional<LabFailure> remark_;
  std::size_t chosen_ = 0;
  bool playing_ = false, moves_ = false, predicts_ = false;
  double speed_ = 1;
  double rested_s_ = 0;  ///< at a place, while it plays
  double beat_s_ = 0;    ///< that the playhead still stands on its way, where something has changed
  double rest_s_ = 0.08;
};

}  // namespace tilestep::app

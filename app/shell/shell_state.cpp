#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/file.hpp"
#include "app/keep/place.hpp"
#include "app/shell/panes.hpp"
#include "app/shell/steps.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

std::vector<LessonState> all_lessons() {
  std::vector<LessonState> all;
  for (auto& scene : scenes::make_scenes()) {
    const lab::Lesson& lesson = tilestep::lesson(scene->lesson());
    LessonState state;
    state.info = lesson.info();
    state.knobs = lesson.knobs();
    state.player = std::make_unique<scenes::ScenePlayer>(std::move(scene));
    all.push_back(std::move(state));
  }
  return all;
}

std::size_t index_of(const std::vector<LessonState>& lessons, std::string_view id) {
  for (std::size_t i = 0; i < lessons.size(); ++i) {
    if (lessons[i].info.id == id) return i;
  }
  tilestep::lesson(id);  // throws, naming the lessons
  throw Error(fmt::format("the lesson '{}' has no picture yet", id));
}

std::size_t first_offer(const ShellOptions& options) {
  const auto offers = lab_offers(options.backend, options.labs);
  if (!options.labs.empty()) return offers.size() - options.labs.size();
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].backend == options.backend) return i;
  }
  return 0;
}

}  // namespace

ShellState::ShellState(LabClient& lab, const ShellOptions& options)
    : session(lab, all_lessons(), lab_offers(options.backend, options.labs), first_offer(options)),
      tab(options.tab),
      drafts(options.drafts),
      exercise_check(options.run_exercise ? options.run_exercise
                                          : run_exercise_by(options.program)),
      home(options.first_start || options.home),
      has_place(!options.first_start),
      inspection(options.program),
      progress_file(options.progress),
      progress(progress_file.load()) {
  reader = options.reader;
  overlay = options.overlay;
  session.set_predicts(options.predict || options.asked);
  ui.look() = {.theme = options.theme,
               .presenter = options.presenter,
               .text_scale = std::clamp(options.text_scale, 1.0f, 2.0f),
               .still = options.still,
               .calm = options.calm};
  if (options.still) session.set_rest_s(0);
  kept = options.kept;
  first_theme = ui.look().theme;
  first_text_scale = ui.look().text_scale;
  session.set_speed(kept.speed);
  if (!options.inspects.empty()) {
    inspect(options.inspects, options.inspect_words);
    if (options.trust) inspection.trust();
  }
  if (options.inspect_page) choose_inspected();
  if (options.inspected) {
    inspection.show(*options.inspected);
    inspect_tab = options.inspect_tab;
    show_inspection();
  }
  if (!options.profiles.empty()) profile(options.profiles);
  if (options.profile_page) choose_profile();
  if (options.profiled) {
    profiling.show(options.profiled);
    profiling.ask(options.profile_question);
    show_profile();
  }
  if (options.capsule) {
    show(*options.capsule, options.trust);
    desk().edits = desk().edits || options.edits;
    return;
  }
  const std::size_t chosen =
      index_of(session.lessons(),
               options.lesson.empty() ? kOpeningLesson : std::string_view(options.lesson));
  LessonState& lesson = session.lessons()[chosen];
  lesson.settings = lesson.knobs.completed(options.compared.value_or(options.settings));
  if (options.compared) lesson.then = options.settings;
  lesson.wanted_step = options.step;
  lesson.wants_question = options.asked;
  if (!options.view.empty()) lesson.player->show_view(options.view);
  if (!options.filter.empty()) lesson.player->choose_filter(options.filter, options.filtered);
  lesson.wanted_phase = options.phase;
  readings[chosen].stop = options.stop;
  readings[chosen].asks = options.stop_asks;
  readings[chosen].shot = options.stop >= 0;
  desks[chosen].edits = options.edits;
  desks[chosen].assembly.form = options.assembly;
  desks[chosen].assembly.asks = options.assembly.has_value();
  if (options.kernel) lesson.kernel.emplace(*options.kernel, KernelOwner::user);
  session.choose(chosen);
  if (!options.kernel) return;
  desk().path = options.kernel->path;
  start_kernel_over(options.kernel->text);
}

double ShellState::now_s() const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

void ShellState::set_presenter(bool presenter) {
  ui.look().presenter = presenter;
}

void ShellState::toggle_theme() {
  ui::ThemeKind& theme = ui.look().theme;
  theme = theme == ui::ThemeKind::dark ? ui::ThemeKind::light : ui::ThemeKind::dark;
}

void ShellState::toggle_compare() {
  scenes::ScenePlayer& player = *session.lesson().player;
  if (player.compares()) {
    player.unpin();
  } else if (const lab::Report* original = session.lesson().original_of_report()) {
    player.pin(*original);
  } else {
    player.pin();
  }
}

void ShellState::show_tab(Tab wanted) {
  overlay = staged() && !(overlay && tab == wanted);
  tab = wanted;
  tab_before.reset();
}

void ShellState::toggle_motion() {
  ui.look().calm = !ui.look().calm;
}

void ShellState::show_term(const std::string& id) {
  glossary.term = id;
  glossary.query.fill('\0');
  glossary.scrolls = true;
  if (tab != Tab::glossary || (staged() && !overlay)) show_tab(Tab::glossary);
}

bool ShellState::shows_table() const {
  const LessonState& lesson = session.lesson();
  return tab == Tab::data && (!staged() || overlay) && lesson.report &&
         !lesson.report->tables.empty();
}

std::string ShellState::layer() const {
  return palette.is_open() ? "palette" : key_list ? "keys" : "";
}

LayoutMode ShellState::layout_mode() const {
  const auto desk = desks.find(session.chosen());
  const bool edits = tab == Tab::kernel && desk != desks.end() &&
                     (desk->second.edits || desk->second.assembly.form);
  const bool plots =
      !staged() ? tab == Tab::measured : overlay && (tab == Tab::measured || tab == Tab::glossary);
  const bool card = session.lesson().gate.card().has_value();
  return {ui.look().presenter,
          reader,
          plots,
          card || shows_stop() ? std::max(card_height, 1.0f) : 0,
          edits,
          shows_assembly(),
          !card};
}

bool ShellState::shows_stop() const {
  const auto reading = readings.find(session.chosen());
  return ui.look().presenter && !reader && reading != readings.end() && reading->second.guide &&
         reading->second.stop >= 0;
}

void ShellState::click(bool on) {
  const auto& card = session.lesson().gate.card();
  const Reading& here = reading();
  const int stop = here.stop + (on ? 1 : -1);
  const bool on_path = ui.look().presenter && here.guide && here.stop >= 0 && stop >= 0 &&
                       stop < std::ssize(here.guide->stops);
  const bool asked = measured_item >= 0 ? answered() : card && !card->revealed;
  if (on_path && !(on && asked)) return go_to_stop(stop);
  on ? go_on() : session.step_back();
}

void ShellState::set_reader(bool wanted) {
  reader = wanted;
  if (!wanted) reading().shot = false;
  overlay = false;
}

bool ShellState::answered() const {
  const LessonState& lesson = session.lesson();
  const auto& card = lesson.gate.card();
  if (measured_item < 0) return card && card->guess;
  return !lesson.measured_gate.items()[static_cast<std::size_t>(measured_item)].waits();
}

void ShellState::go_on() {
  LessonState& lesson = session.lesson();
  if (measured_item >= 0 && answered()) return lesson.measured_gate.see(measured_item);
  if (recall && lesson.gate.card() && lesson.gate.card()->revealed) return go_on_recalling();
  const bool ended = lesson.report && at_end(session.axis(), lesson.cursor) && !session.moving();
  if (ended && session.predicts() && lesson.measured_gate.waiting() >= 0) {
    session.stop();
    overlay = staged();
    tab = Tab::measured;
    return;
  }
  session.step_on();
}

void ShellState::go_to_stop(int stop) {
  Reading& reading = this->reading();
  if (!reading.guide || stop < 0 || stop >= std::ssize(reading.guide->stops)) return;
  const scenes::GuideStop& there = reading.guide->stops[static_cast<std::size_t>(stop)];
  if (reading.stop != stop) session.lesson().player->keep_earlier(session.lesson().cursor);
  reading.stop = stop;
  reading.shot = true;
  reading.whole = false;
  has_done({{{session.lesson().info.id, {.stops = {there.title}}}}});
  reading.tries = false;
  reading.scrolls = true;
  reading.asks = !there.ask.empty() && session.predicts() && reading.asked.count(stop) == 0;
  session.stand(
      there.settings,
      [there, asks = reading.asks](const scenes::StepAxis& steps) {
        return asks ? scenes::asked_at(there, steps) : scenes::cursor_at(there, steps);
      },
      now_s(), reading.asks);
  scenes::ScenePlayer& player = *session.lesson().player;
  player.light(reading.asks ? std::vector<std::string>() : there.light);
  if (!there.view.empty()) player.show_view(there.view);
  if (!there.filter.empty()) player.choose_filter(there.filter, there.filtered);
  overlay = false;
  for (const auto& [name, wanted] :
       {std::pair("data", Tab::data), std::pair("measured", Tab::measured),
        std::pair("kernel", Tab::kernel)}) {
    if (there.tab == name) show_tab(wanted);
  }
}

void ShellState::show_home(bool wanted) {
  if (wanted) {
    session.stop();
    progress.add(progress_file.load());  // another window may have added to it
  }
  has_place = has_place || !wanted;
  home = wanted;
  inspect_page.on_show = profile_page.on_show = false;
}

void ShellState::show_inspection() {
  session.stop();
  has_place = has_place || !home;
  home = profile_page.on_show = false;
  inspect_page.on_show = true;
}

void ShellState::show_profile() {
  show_inspection();
  inspect_page.on_show = false;
  profile_page.on_show = true;
}

void ShellState::profile(const std::filesystem::path& file) {
  profiling.open(file);
  show_profile();
}

void ShellState::choose_profile() {
  profiling.close();
  profile_page.types = true;
  show_profile();
}

void ShellState::inspect(const std::filesystem::path& file, std::vector<std::string> words) {
  inspection.open(file, std::move(words));
  inspect_tab = 0;
  show_inspection();
}

void ShellState::open_step(const lab::Exercise& exercise) {
  inspect_refused.clear();
  const std::filesystem::path file =
      documents_folder() / lab::kFirstSteps / (exercise.name + ".cu");
  try {
    std::error_code error;
    if (!std::filesystem::exists(file, error)) write_file(file, lab::starter(exercise));
  } catch (const Error& why) {
    inspect_refused = why.what();
    return;
  }
  inspect(file);
}

void ShellState::choose_inspected() {
  inspection.close();
  inspect_page.types = true;
  show_inspection();
}

void ShellState::begin_lesson(std::size_t index) {
  if (!start_recall(index)) open_lesson(index);
}

void ShellState::open_lesson(std::size_t index) {
  session.choose(index);
  set_reader(true);
  show_home(false);
  Reading& reading = this->reading();
  const LessonState& lesson = session.lesson();
  read_guide(lesson, reading);
  if (!reading.guide) return;
  const auto& stops = reading.guide->stops;
  const auto& read = progress.lessons[lesson.info.id].stops;
  const auto next = std::find_if(stops.begin(), stops.end(), [&](const scenes::GuideStop& stop) {
    return read.count(stop.title) == 0;
  });
  go_to_stop(next == stops.end() ? 0 : static_cast<int>(next - stops.begin()));
}

/// The fix that a run has tried on a case, with its points; empty: none.
static std::string tried_in(const lab::Report& report) {
  for (const lab::Measurement& one : report.measurements) {
    if (one.id == "case_points") return fmt::format("{} = {:.0f}", one.variant, one.value);
  }
  return {};
}

void ShellState::follow_progress() {
  Progress news;
  for (std::size_t i = 0; i < session.lessons().size(); ++i) {
    LessonState& lesson = session.lessons()[i];
    auto judged = lesson.gate.take_judged();
    for (Judged& one : lesson.measured_gate.take_judged()) judged.push_back(std::move(one));
    const auto led = [&] {  // what a path shows is not the learner's
      const auto& guide = readings[i].guide;
      return guide && std::any_of(guide->stops.begin(), guide->stops.end(), [&](const auto& stop) {
               return lesson.knobs.completed(stop.settings) == lesson.report->params;
             });
    };
    const std::string tried = lesson.report ? tried_in(*lesson.report) : std::string();
    if (!tried.empty() && !led()) news.lessons[lesson.info.id].cases.insert(tried);
    for (const Judged& one : judged) {
      Progress::Lesson& mine = news.lessons[lesson.info.id];
      mine.asked.insert(one.kind);
      if (one.right) mine.right.insert(one.kind);
    }
  }
  has_done(news);
}

void ShellState::has_done(const Progress& news) {
  Progress all = progress;
  all.add(news);
  if (all == progress) return;
  progress = progress_file.add(all);
  progress.add(all);
  if (const std::string remark = progress_file.take_remark(); !remark.empty()) say(remark);
}

void ShellState::try_out(const lab::Settings& settings) {
  Reading& reading = this->reading();
  lab::Settings all;
  if (reading.guide && reading.stop >= 0) {
    all = reading.guide->stops[static_cast<std::size_t>(reading.stop)].settings;
  }
  for (const auto& [id, value] : settings) all[id] = value;
  reading.tries = true;
  session.lesson().player->light({});
  session.stand(
      all, [now = session.lesson().cursor](const scenes::StepAxis&) { return now; }, now_s());
}

/// What lies over the rest goes, one after the other; then the question, unanswered.
void ShellState::escape() {
  if (definition) {
    definition.reset();
  } else if (lab_card) {
    lab_card.reset();
  } else if (note) {
    note.reset();
  } else if (overlay && staged()) {
    overlay = false;
  } else if (reader && reading().tries) {
    go_to_stop(reading().stop);
  } else {
    session.skip();
  }
}

void ShellState::follow_asking() {
  Reading& reading = this->reading();
  const LessonState& lesson = session.lesson();
  if (!reading.asks || !lesson.report || lesson.outdated() || session.moving()) return;
  const auto& card = lesson.gate.card();
  if (card && !card->revealed) return;
  reading.asks = false;
  reading.asked.insert(reading.stop);
  reading.scrolls = true;
  const scenes::GuideStop& there = reading.guide->stops[static_cast<std::size_t>(reading.stop)];
  if (!card && !reading.tries) session.go(scenes::cursor_at(there, session.axis()));
}

void ShellState::follow_question() {
  const bool open = session.lesson().gate.card().has_value();
  if (staged()) return;
  if (open && !question_open) {
    if (tab != Tab::predict) tab_before = tab;
    tab = Tab::predict;
  } else if (!open && question_open && tab == Tab::predict && tab_before) {
    tab = *std::exchange(tab_before, std::nullopt);
  }
  question_open = open;
}

bool ShellState::answer_by_key(int choice, bool shift) {
  LessonState& lesson = session.lesson();
  const auto& card = lesson.gate.card();
  if (card && !card->revealed && !session.moving()) {
    if (choice >= static_cast<int>(card->question.choices.size())) return true;
    if (ui.look().presenter) {
      lesson.gate.count_hand(choice, shift ? -1 : 1, lesson.cursor);
    } else {
      session.answer({lesson.cursor, choice, 0});
    }
    return true;
  }
  if (measured_item < 0) return false;
  const auto& item = lesson.measured_gate.items()[static_cast<std::size_t>(measured_item)];
  if (!item.waits()) return false;
  if (choice < static_cast<int>(item.question.choices.size())) {
    lesson.measured_gate.answer(measured_item, {{}, choice, 0});
  }
  return true;
}

void ShellState::set_text_scale(float text_scale) {
  ui.look().text_scale = std::clamp(text_scale, 1.0f, 2.0f);
}

PanelScope::PanelScope(const char* id, const Rect& place, ImGuiWindowFlags flags, float padding) {
  ImGui::SetCursorScreenPos({place.min.x, place.min.y - ImGui::GetScrollY()});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui::px(padding), ui::px(padding)});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, ui::color(ui::Role::panel));
  // Tab is the window's own walk, not ImGui's from field to field.
  ImGui::BeginChild(id, place.size(), true, flags | ImGuiWindowFlags_NoNavInputs);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}
void PanelScope::name(const char* id, const char* label) const {
  const ImRect& inside = ImGui::GetCurrentWindowRead()->InnerRect;  // beside its scrollbar
  ui::map(id, label, "", inside.Min, inside.Max);
}
PanelScope::~PanelScope() {
  ImGui::EndChild();
}

CardScope::CardScope(const char* id, ImVec2 place, ImVec2 size) {
  ImGui::SetNextWindowPos(place);
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui::px(16), ui::px(12)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, ui::px(ui::kCorner));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ui::color(ui::Role::raised));
  ImGui::PushStyleColor(ImGuiCol_Border, ui::color(ui::Role::muted));
  ImGui::Begin(id, nullptr,
               ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav);
}
CardScope::~CardScope() {
  ImGui::End();
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar(3);
}

}  // namespace tilestep::app

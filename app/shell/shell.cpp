#include "app/shell/shell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/shell/shell_state.hpp"
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

}  // namespace

ShellState::ShellState(LabClient& lab, const ShellOptions& options)
    : session(lab, all_lessons(), options.backend), tab(options.tab) {
  reader = options.reader;
  if (options.first_start) coach.begin();
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
  if (options.capsule) {
    show(*options.capsule);
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
  lesson.wanted_phase = options.phase;
  readings[chosen].stop = options.stop;
  session.choose(chosen);
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
  glossary_term = id;
  glossary_query.fill('\0');
  glossary_scrolls = true;
  if (tab != Tab::glossary || (staged() && !overlay)) show_tab(Tab::glossary);
}

bool ShellState::shows_table() const {
  const LessonState& lesson = session.lesson();
  return tab == Tab::data && (!staged() || overlay) && lesson.report &&
         !lesson.report->tables.empty();
}

LayoutMode ShellState::layout_mode() const {
  const bool plots = tab == Tab::measured || (staged() && tab == Tab::glossary);
  const bool card = session.lesson().gate.card().has_value();
  return {ui.look().presenter, reader, plots, card ? std::max(card_height, 1.0f) : 0};
}

void ShellState::set_reader(bool wanted) {
  reader = wanted;
  overlay = false;
}

void ShellState::go_on() {
  const LessonState& lesson = session.lesson();
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
  const scenes::StepAxis axis = session.axis();
  reading.stop = stop;
  reading.tries = false;
  reading.scrolls = true;
  const int phase = there.phase < 0 ? std::max(axis.phases, 1) - 1 : there.phase;
  session.stand(there.settings, {there.step, there.step == 0 ? axis.phases - 1 : phase}, now_s());
  session.lesson().player->light(there.light);
  overlay = false;
  for (const auto& [name, wanted] :
       {std::pair("data", Tab::data), std::pair("measured", Tab::measured),
        std::pair("kernel", Tab::kernel)}) {
    if (there.tab == name) show_tab(wanted);
  }
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
  session.stand(all, session.lesson().cursor, now_s());
}

/// What lies over the rest goes, one after the other; then the question, unanswered.
void ShellState::escape() {
  if (key_list) {
    key_list = false;
  } else if (overlay && staged()) {
    overlay = false;
  } else if (reader && reading().tries) {
    go_to_stop(reading().stop);
  } else {
    session.skip();
  }
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
  ImGui::BeginChild(id, place.size(), true, flags);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}
PanelScope::~PanelScope() {
  ImGui::EndChild();
}

Shell::Shell(LabClient& lab, ShellOptions options)
    : state_(std::make_unique<State>(lab, options)) {}
Shell::~Shell() = default;

bool Shell::prepare_fonts(float display_scale, ImVec2 size) {
  ui::Look& look = state_->ui.look();
  look.display_scale = display_scale;
  look.most_scale = std::max(1.0f, most_scale(size, display_scale));
  return state_->ui.prepare_fonts(*ImGui::GetIO().Fonts);
}

void Shell::draw(ImVec2 size) {
  const ui::Context::Current current(state_->ui);
  state_->ui.begin_frame();
  state_->ui.set_few_frames(working());
  state_->session.set_moves(!state_->ui.look().still && !state_->ui.look().calm);
  state_->session.advance(static_cast<double>(ui::animation_seconds()));
  state_->follow_question();
  const Layout layout = make_layout(size, state_->ui.scale(), state_->layout_mode());
  state_->ui.set_dense(layout.dense);
  const ui::FontScope body(ui::Font::body);

  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::Begin("tilestep", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
                   ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleVar();
  draw_rail(*state_, layout);
  draw_header(*state_, layout);

  ImGui::SetCursorScreenPos(layout.content.min);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  ImGui::BeginChild(
      "column", layout.content.size(), false,
      layout.stacked ? 0 : ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleColor();
  draw_stage(*state_, layout);
  if (layout.staged && state_->layout_mode().card > 0) draw_card(*state_, layout);
  draw_transport(*state_, layout);
  if (layout.staged) {
    draw_bar(*state_, layout);
  } else {
    draw_side_panel(*state_, layout);
  }
  if (state_->reader) draw_reader(*state_, layout);
  if (!layout.staged || state_->overlay) draw_tabs(*state_, layout);
  ImGui::EndChild();
  ImGui::End();
  if (state_->key_list) draw_key_list(*state_, size);
  if (state_->palette.is_open()) state_->palette.draw(*state_, finds_of(*state_));
  state_->coach.draw(*state_);
  if (state_->message) draw_message(*state_, size);
  state_->drawn = true;
}

bool Shell::update() {
  const double now_s = state_->now_s();
  const bool said_enough = state_->message && state_->message->until_s <= now_s;
  if (said_enough) state_->message.reset();
  return state_->session.update(now_s) || said_enough;
}

bool Shell::animating() const {
  const LessonState& lesson = state_->session.lesson();
  if (state_->ui.look().still) return false;
  const bool copied = state_->copied_s && state_->now_s() - *state_->copied_s < 2;
  // Until a run says how far it is, its progress line wanders.
  const bool wanders = lesson.run && !lesson.progress.waiting && lesson.progress.fraction <= 0;
  return state_->session.playing() || state_->session.moving() || state_->ui.redraw_requested() ||
         copied || wanders;
}

bool Shell::working() const {
  return state_->session.working();
}

std::optional<double> Shell::update_due_s() const {
  auto due_s = state_->session.due_s();
  if (state_->message) due_s = std::min(due_s.value_or(1e300), state_->message->until_s);
  if (!due_s) return std::nullopt;
  return std::max(0.0, *due_s - state_->now_s());
}

bool Shell::take_full_screen_toggle() {
  return std::exchange(state_->full_screen_toggle, false);
}

bool Shell::has_report() const {
  return state_->session.lesson().report.has_value();
}

int Shell::step() const {
  return state_->session.step();
}

std::string Shell::window_title() const {
  return fmt::format("{} – tilestep", state_->session.lesson().info.title);
}

namespace {

nlohmann::json rectangle(ImVec2 min, ImVec2 max) {
  return {std::lround(min.x), std::lround(min.y), std::lround(max.x - min.x),
          std::lround(max.y - min.y)};
}

nlohmann::json parts_json(const std::vector<ui::MapEntry>& parts) {
  nlohmann::json list = nlohmann::json::array();
  for (const ui::MapEntry& part : parts) {
    list.push_back({{"id", part.id},
                    {"label", part.label},
                    {"value", part.value},
                    {"rect", rectangle(part.min, part.max)},
                    {"raw", rectangle(part.raw_min, part.raw_max)},
                    {"least", {std::lround(part.least.x), std::lround(part.least.y)}},
                    {"cut", part.cut}});
  }
  return list;
}

}  // namespace

std::string Shell::ui_map_json() const {
  nlohmann::json lost = parts_json(state_->ui.lost());
  for (nlohmann::json& part : lost) part.erase("rect");
  const nlohmann::json map = {{"lesson", state_->session.lesson().info.id},
                              {"step", state_->session.step()},
                              {"parts", parts_json(state_->ui.map())},
                              {"lost", std::move(lost)}};
  return map.dump(1);
}

std::string Shell::picture_svg() {
  const ui::Context::Current current(state_->ui);
  LessonState& lesson = state_->session.lesson();
  std::string svg = lesson.report ? lesson.player->svg(lesson.cursor) : std::string();
  if (svg.empty()) {
    throw Error(fmt::format("there is no SVG of the picture of '{}'", lesson.info.id),
                ExitCode::unavailable);
  }
  return svg;
}

ui::Context& Shell::context() {
  return state_->ui;
}

void Shell::set_knobs(const lab::Settings& settings) {
  for (const auto& [id, value] : settings) {
    state_->session.set_knob(id, value, state_->now_s());
  }
}

void Shell::pick(picture::Name what, int index) {
  state_->session.lesson().player->pick(what, index);
}

// ---- keys ---------------------------------------------------------------------------------------

namespace {

/// Keys that move along the trace. Returns false if `key` is none.
bool trace_key(ShellState& state, Key key, bool shift) {
  Session& session = state.session;
  switch (key) {
    case Key::right:
      shift ? session.line_on() : state.go_on();
      return true;
    case Key::left:
      shift ? session.line_back() : session.step_back();
      return true;
    case Key::page_down:
      state.go_on();
      return true;
    case Key::page_up:
      session.step_back();
      return true;
    case Key::period:
      session.line_on();
      return true;
    case Key::comma:
      session.line_back();
      return true;
    case Key::home:
      session.first();
      return true;
    case Key::end:
      session.last();
      return true;
    case Key::space:
      session.toggle_play();
      return true;
    case Key::n:
      session.next_event();
      return true;
    default:
      return false;
  }
}

/// Keys that choose a lesson. Returns false if `key` is none.
bool lesson_key(Session& session, Key key) {
  const std::size_t count = session.lessons().size(), now = session.chosen();
  if (key == Key::up || key == Key::down) {
    if (key == Key::up && now > 0) session.choose(now - 1);
    if (key == Key::down && now + 1 < count) session.choose(now + 1);
    return true;
  }
  if (key < Key::digit_1 || key > Key::digit_9) return false;
  const auto wanted =
      static_cast<std::size_t>(static_cast<int>(key) - static_cast<int>(Key::digit_1));
  if (wanted < count) session.choose(wanted);
  return true;
}

std::optional<Tab> tab_key(Key key) {
  switch (key) {
    case Key::d:
      return Tab::data;
    case Key::m:
      return Tab::measured;
    case Key::k:
      return Tab::kernel;
    case Key::g:
      return Tab::glossary;
    default:
      return std::nullopt;
  }
}

}  // namespace

void Shell::key(Key key, bool shift) {
  ShellState& state = *state_;
  if (key == Key::f11) {
    state.full_screen_toggle = true;
    return;
  }
  if (key == Key::find) return state.palette.open();
  if (key == Key::save) return keep(shift ? Keep::picture_png : Keep::capsule);
  if (state.palette.is_open()) {
    if (key == Key::up || key == Key::down) state.palette.move(key == Key::up ? -1 : 1);
    if (key == Key::enter) state.palette.choose();
    if (key == Key::escape) state.palette.close();
    return;
  }
  if (state.coach.is_on()) {
    if (key == Key::escape) state.coach.end();
    if (key == Key::enter || key == Key::right || key == Key::space) state.coach.go_on();
    return;
  }
  // What is typed into a field is not for us.
  if (ImGui::GetCurrentContext() != nullptr && ImGui::GetIO().WantTextInput) return;
  if (key == Key::copy) return keep(state.shows_table() ? Keep::table_copy : Keep::link);
  if (key == Key::question) state.key_list = !state.key_list;
  if (key == Key::escape) return state.escape();
  if (state.key_list) return;  // the list is about keys, not for them
  if (key >= Key::a && key <= Key::d &&
      state.answer_by_key(static_cast<int>(key) - static_cast<int>(Key::a), shift)) {
    return;
  }
  if (trace_key(state, key, shift) || lesson_key(state.session, key)) return;
  if (const auto tab = tab_key(key)) state.show_tab(*tab);
  if (key == Key::l) state.set_reader(!state.reader);
  if (key == Key::bracket_left) state.go_to_stop(state.reading().stop - 1);
  if (key == Key::bracket_right) state.go_to_stop(state.reading().stop + 1);
  if (key == Key::t) state.toggle_theme();
  if (key == Key::p) state.set_presenter(!state.ui.look().presenter);
  if (key == Key::b) state.toggle_compare();
  if (key == Key::r) state.session.reset(state.now_s());
}

}  // namespace tilestep::app

#include "app/shell/shell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>

#include "app/shell/panes.hpp"

namespace tilestep::app {
namespace {

/// Dear ImGui survives no exception in the middle of a frame: it finds begun what nobody ends. While one is
/// drawn, memory that is not there ends the program where it is asked for, with the sentence for that.
class InFrame {
 public:
  InFrame() {
    std::set_new_handler(give_up);
    drawing_ = true;
  }
  ~InFrame() { drawing_ = false; }
  InFrame(const InFrame&) = delete;
  InFrame& operator=(const InFrame&) = delete;

 private:
  static void give_up() {
    try {
      throw std::bad_alloc();
    } catch (const std::bad_alloc&) {
      if (!drawing_) throw;
      std::terminate();
    }
  }
  static thread_local bool drawing_;
};
thread_local bool InFrame::drawing_ = false;

void draw_lesson(ShellState& state, const Layout& layout) {
  draw_header(state, layout);
  ImGui::SetCursorScreenPos(layout.content.min);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  ImGui::BeginChild(
      "column", layout.content.size(), false,
      layout.stacked ? 0 : ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleColor();
  if (layout.stacked) ui::scroll_stop("column");
  draw_stage(state, layout);
  if (layout.staged && state.layout_mode().card > 0) draw_card(state, layout);
  draw_transport(state, layout);
  if (layout.staged && layout.bar.height() > 0) {
    draw_bar(state, layout);
  } else if (!layout.staged) {
    draw_side_panel(state, layout);
  }
  if (state.reader) draw_reader(state, layout);
  if (!layout.staged || state.overlay) draw_tabs(state, layout);
  ImGui::EndChild();
}

}  // namespace

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
  const InFrame in_frame;
  const ui::Context::Current current(state_->ui);
  state_->ui.begin_frame();
  ui::Focus& focus = state_->ui.focus();
  focus.begin_frame(state_->layer());
  state_->ui.set_few_frames(working());
  state_->session.set_moves(!state_->ui.look().still && !state_->ui.look().calm);
  state_->session.advance(static_cast<double>(ui::animation_seconds()));
  state_->follow_asking();
  state_->follow_recall();
  state_->follow_question();
  Reading& reading = state_->reading();
  if (state_->ui.look().presenter && reading.stop >= 0 && has_report()) {
    read_guide(state_->session.lesson(), reading);
  }
  const Layout layout = make_layout(size, state_->ui.scale(), state_->layout_mode());
  state_->ui.set_dense(layout.dense);
  const ui::FontScope body(ui::Font::body);
  state_->measured_item = -1;

  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::Begin("tilestep", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
                   ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleVar();
  draw_rail(*state_, layout);
  if (state_->home) {
    draw_home(*state_, layout, size);
  } else if (state_->inspect_page.on_show) {
    draw_inspection(*state_, layout, size);
  } else if (state_->profile_page.on_show) {
    draw_profile(*state_, layout, size);
  } else {
    draw_lesson(*state_, layout);
  }
  ImGui::End();
  if (state_->shows_lesson()) {
    follow_pointer(*state_);
    draw_note(*state_, layout);
    draw_definition(*state_, size);
    draw_lab_card(*state_, size);
  }
  focus.draws("keys");
  if (state_->key_list) draw_key_list(*state_, size);
  focus.draws("palette");
  if (!state_->palette.is_open()) state_->finds.reset();
  if (state_->palette.is_open()) {
    const std::size_t chosen = state_->session.chosen();
    if (!state_->finds || state_->finds->first != chosen) {
      state_->finds.emplace(chosen, finds_of(*state_));
    }
    state_->palette.draw(*state_, state_->finds->second);
  }
  focus.draws("");
  state_->coach.draw(*state_);
  focus.end_frame();
  // An editor that is out of sight does not take the keys when it comes back.
  for (auto& [lesson, desk] : state_->desks) {
    for (auto& [path, sheet] : desk.sheets) {
      if (&sheet != state_->sheet_on_show()) sheet.editor.leave();
    }
    if (desk.guest && &desk.guest->sheet != state_->sheet_on_show()) {
      desk.guest->sheet.editor.leave();
    }
  }
  if (state_->message) draw_message(*state_, size);
  state_->drawn = true;
}

bool Shell::update() {
  const double now_s = state_->now_s();
  const bool said_enough = state_->message && state_->message->until_s <= now_s;
  if (said_enough) state_->message.reset();
  const bool changed = state_->session.update(now_s);
  if (const auto remark = state_->session.take_remark()) state_->say(failure_sentence(*remark));
  const bool asked = state_->follow_assembly();
  state_->follow_progress();
  const bool checks = state_->follow_exercise();
  const bool inspected = state_->inspection.update(now_s);
  const bool profiled = state_->profiling.update();
  return state_->follow_drafts() || inspected || profiled || changed || said_enough || asked ||
         checks;
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

bool Shell::timing() const {
  return state_->session.timing();
}

std::optional<double> Shell::update_due_s() const {
  auto due_s = state_->session.due_s();
  if (state_->message) due_s = std::min(due_s.value_or(1e300), state_->message->until_s);
  if (const auto look = state_->inspection.due_s(state_->now_s()))
    due_s = std::min(due_s.value_or(1e300), *look);
  if (state_->profiling.reading()) due_s = std::min(due_s.value_or(1e300), state_->now_s() + 0.05);
  if (const auto drafts = state_->drafts_due_s()) due_s = std::min(due_s.value_or(1e300), *drafts);
  constexpr double kLook_s = 0.25;
  if (state_->exercise_check.running()) {
    due_s = std::min(due_s.value_or(1e300), state_->now_s() + kLook_s);
  }
  if (!due_s) return std::nullopt;
  return std::max(0.0, *due_s - state_->now_s());
}

bool Shell::take_full_screen_toggle() {
  return std::exchange(state_->full_screen_toggle, false);
}

bool Shell::has_report() const {
  return state_->session.lesson().report.has_value();
}

bool Shell::follows_stop() {
  const LessonState& lesson = state_->session.lesson();
  Reading& reading = state_->reading();
  if (lesson.report) read_guide(lesson, reading);
  if (!lesson.report || !reading.guide || reading.stop < 1 || reading.asks) return false;
  const auto& stop = reading.guide->stops[static_cast<std::size_t>(reading.stop)];
  const auto axes = lesson.scene().extent().axes;
  return lesson.settings == lesson.knobs.completed(stop.settings) &&
         std::any_of(axes.begin(), axes.end(), [](const auto& axis) { return axis.fixed; });
}

int Shell::step() const {
  return state_->session.step();
}

void Shell::inspect(const std::filesystem::path& file) {
  state_->inspect(file);
}

bool Shell::inspecting() const {
  return state_->inspect_page.on_show && state_->inspection.running();
}

void Shell::profile(const std::filesystem::path& file) {
  state_->profile(file);
}

std::string Shell::window_title() const {
  if (state_->profile_page.on_show && !state_->profiling.file().empty()) {
    return fmt::format("{} – tilestep", state_->profiling.file().filename().string());
  }
  if (state_->inspect_page.on_show && !state_->inspection.file().empty()) {
    return fmt::format("{} – tilestep", state_->inspection.file().filename().string());
  }
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

std::string Shell::ui_map_json(int frame, bool idle) const {
  nlohmann::json lost = parts_json(state_->ui.lost());
  for (nlohmann::json& part : lost) part.erase("rect");
  const nlohmann::json map = {{"lesson", state_->session.lesson().info.id},
                              {"step", state_->session.step()},
                              {"frame", frame},
                              {"idle", idle},
                              {"parts", parts_json(state_->ui.map())},
                              {"lost", std::move(lost)}};
  // The map is of what is on screen, where ImGui stands something in for what is no UTF-8, too.
  return map.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
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

void Shell::shoot(std::vector<std::string> subject) {
  state_->shot_of = std::move(subject);
}

}  // namespace tilestep::app

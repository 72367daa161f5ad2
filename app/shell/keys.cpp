#include "app/shell/shell_state.hpp"

namespace tilestep::app {
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
      state.click(true);
      return true;
    case Key::page_up:
      state.click(false);
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

/// Keys of the page of a trace. Returns false if `key` is none.
bool profile_key(Profiling& profiling, Key key) {
  if (profiling.shown() == nullptr) return false;
  const auto range = profiling.shown()->timeline.range_us();
  ui::TimelineView& view = profiling.view;
  const double middle = (view.from_us + view.to_us) / 2;
  switch (key) {
    case Key::left:
    case Key::right:
      view.pan(key == Key::left ? -0.2 : 0.2, range);
      return true;
    case Key::comma:
    case Key::period:
      view.zoom(middle, key == Key::comma ? 2 : 0.5, range);
      return true;
    case Key::home:
      profiling.show_all();
      return true;
    case Key::n:
      profiling.next_gap();
      return true;
    case Key::bracket_left:
      profiling.ask(std::max(profiling.question - 1, 0));
      return true;
    case Key::bracket_right:
      profiling.ask(profiling.question + 1);
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

std::optional<ui::FocusKey> focus_key(Key key) {
  switch (key) {
    case Key::enter:
    case Key::space:
      return ui::FocusKey::press;
    case Key::left:
      return ui::FocusKey::left;
    case Key::right:
      return ui::FocusKey::right;
    case Key::up:
      return ui::FocusKey::up;
    case Key::down:
      return ui::FocusKey::down;
    case Key::home:
      return ui::FocusKey::home;
    case Key::end:
      return ui::FocusKey::end;
    case Key::escape:
      return ui::FocusKey::escape;
    default:
      return std::nullopt;
  }
}

/// Keys while something lies over the window, which is closed to them. Returns false if nothing does.
bool layer_key(ShellState& state, Key key, bool shift) {
  if (state.palette.is_open()) {
    const bool back = key == Key::up || (key == Key::tab && shift);
    if (key == Key::up || key == Key::down || key == Key::tab) state.palette.move(back ? -1 : 1);
    if (key == Key::enter) state.palette.choose();
    if (key == Key::escape) state.palette.close();
    return true;
  }
  if (!state.key_list) return false;
  if (key == Key::question || key == Key::escape) state.key_list = false;
  if (key == Key::up || key == Key::down) state.key_list_scrolls += key == Key::up ? -1 : 1;
  return true;
}

/// Keys of the control that has the focus. Returns false if `key` is not for it.
bool control_key(ShellState& state, Key key, bool shift) {
  ui::Focus& focus = state.ui.focus();
  if (key == Key::tab && !state.palette.is_open()) {
    focus.move(shift ? -1 : 1);
    return true;
  }
  const auto meant = focus_key(key);
  if (focus.holds()) {  // an open list has the keys to itself
    if (meant) focus.key(*meant);
    return true;
  }
  const bool typing = ImGui::GetCurrentContext() != nullptr && ImGui::GetIO().WantTextInput;
  return !typing && meant && focus.key(*meant);
}

/// Keys while the kernel's editor is on screen. Returns false if `key` is not for it.
bool editor_key(ShellState& state, Key key, bool shift) {
  if (key == Key::run) {
    shift ? state.ask_assembly_again() : state.run_kernel();
    return true;
  }
  if (key == Key::find_text) {
    state.sheet_on_show()->editor.open_find();
    return true;
  }
  if (state.editor_with_keys() == nullptr) return false;
  if (key == Key::save && state.desk().guest_in_editor) return false;  // a capsule with it
  if (key == Key::save) {  // the habit of everyone who edits; all is kept anyway
    state.drafts.write();
    const std::string remark = state.drafts.take_remark();
    state.say(remark.empty() ? "The draft is kept as you type" : remark);
  }
  return true;
}

}  // namespace

bool Shell::type(char32_t character) {
  ui::CodeEditor* editor = state_->editor_with_keys();
  if (editor == nullptr) return false;
  editor->type(character);
  state_->follow_drafts();
  return true;
}

bool Shell::press(const ui::EditorPress& press) {
  ui::CodeEditor* editor = state_->editor_with_keys();
  if (editor == nullptr) return false;
  editor->press(press);
  state_->follow_drafts();
  return true;
}

void Shell::key(Key key, bool shift) {
  ShellState& state = *state_;
  if (key == Key::f11) {
    state.full_screen_toggle = true;
    return;
  }
  if (key == Key::find) {
    state.key_list = false;
    return state.palette.open();
  }
  if (key == Key::f8 && state.layer().empty()) return state.go_to_trial();
  if (state.layer().empty() && state.sheet_on_show() != nullptr && editor_key(state, key, shift))
    return;
  if (control_key(state, key, shift) || layer_key(state, key, shift)) return;
  if (key == Key::save) return keep(shift ? Keep::picture_png : Keep::capsule);
  // What is typed into a field is not for us.
  if (ImGui::GetCurrentContext() != nullptr && ImGui::GetIO().WantTextInput) return;
  if (key == Key::open)
    return state.profile_page.on_show ? state.choose_profile() : state.choose_inspected();
  if (state.profile_page.on_show && profile_key(state.profiling, key)) return;
  if (state.inspect_page.on_show && (key == Key::left || key == Key::right)) {
    return state.inspection.choose(state.inspection.chosen() + (key == Key::right ? 1 : -1));
  }
  if (key == Key::copy) return keep(state.shows_table() ? Keep::table_copy : Keep::link);
  if (key == Key::question) {
    state.key_list = true;
    return;
  }
  if (state.coach.is_on() && state.shows_lesson()) {
    if (key == Key::escape) return state.coach.end();
    if (key == Key::enter) return state.coach.skip();
  }
  if (key == Key::escape) {
    return state.shows_lesson() ? state.escape() : state.show_home(false);
  }
  if (key >= Key::a && key <= Key::d &&
      state.answer_by_key(static_cast<int>(key) - static_cast<int>(Key::a), shift)) {
    return;
  }
  if (key == Key::h) return state.show_home(!state.home);
  if (!state.shows_lesson()) {
    if (lesson_key(state.session, key)) state.show_home(false);
    if (key == Key::t) state.toggle_theme();
    if (key == Key::p) state.set_presenter(!state.ui.look().presenter);
    return;
  }
  if (key == Key::enter && state.answered()) return state.go_on();
  if (trace_key(state, key, shift) || lesson_key(state.session, key)) return;
  if (const auto tab = tab_key(key)) state.show_tab(*tab);
  if (key == Key::l) state.set_reader(!state.reader);
  if (key == Key::bracket_left) state.go_to_stop(state.reading().stop - 1);
  if (key == Key::bracket_right) state.go_to_stop(state.reading().stop + 1);
  if (key == Key::v) state.reading().whole = !state.reading().whole;
  if (key == Key::s) state.turn_assembly(shift);
  if (key == Key::run && shift) state.ask_assembly_again();
  if (key == Key::t) state.toggle_theme();
  if (key == Key::p) state.set_presenter(!state.ui.look().presenter);
  if (key == Key::b) state.toggle_compare();
  if (key == Key::r) state.session.reset(state.now_s());
}

}  // namespace tilestep::app

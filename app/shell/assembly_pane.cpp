#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "app/shell/panes.hpp"
#include "kernels/base/workbench/assembly_lines.hpp"
#include "kernels/base/workbench/sources.hpp"
#include "scenes/ui/assembly_view.hpp"

namespace tilestep::app {
namespace {

using ui::Font;
using ui::px;
using ui::Role;
using workbench::Assembly;
using workbench::AssemblyForm;
using workbench::AssemblyKernel;
using Stand = AssemblyRecord::Stand;

/// What is on show: the answer to what is wanted, or one about another text of the same source, which it says.
struct Shown {
  workbench::AssemblyRequest wanted;
  Stand stand = Stand::none;
  const Assembly* assembly = nullptr;  ///< nullptr: there is none
  const std::string* text =
      nullptr;  ///< that it is of, where that is another one; nullptr: of what stands beside it
};

std::optional<Shown> shown_of(ShellState& state) {
  auto wanted = state.assembly_wanted();
  if (!wanted) return std::nullopt;
  const AssemblyRecord& record = state.session.lesson().assembly;
  const std::size_t lab = state.session.lab_of_lesson();
  Shown shown{std::move(*wanted)};
  shown.stand = record.stand(shown.wanted, lab);
  shown.assembly = record.answer(shown.wanted, lab);
  if (shown.assembly != nullptr) return shown;
  if (const AssemblyRecord::Kept* other = record.of_other_text(shown.wanted, lab)) {
    shown.assembly = other->assembly.get();
    shown.text = &other->request.kernel.text;
  }
  return shown;
}

/// The kernel that was chosen, or the one that has instructions of the line.
int kernel_on_show(const Assembly& assembly, const AssemblyDesk& desk, int line) {
  const int chosen = workbench::place_of(assembly.kernels, desk.symbol);
  return chosen >= 0 ? chosen : workbench::kernel_of_line(assembly.kernels, line, 0);
}

const AssemblyKernel& kernel_at(const Assembly& assembly, int place) {
  return assembly.kernels[static_cast<std::size_t>(place)];
}

std::string_view form_words(AssemblyForm form) {
  return form == AssemblyForm::ptx ? "PTX" : "SASS";
}

std::string resources_said(const AssemblyKernel& kernel, bool brief) {
  const std::string words = workbench::resources_of(kernel, brief);
  return words.empty() ? "Install ptxas to see registers and spills" : words;
}

// ---- the head --------------------------------------------------------------------------------------

float list_width(const std::vector<std::string>& choices) {
  float width = 0;
  for (const std::string& each : choices) width = std::max(width, ui::text_size(each).x);
  return std::ceil(width) + px(52);
}

/// The GPUs to choose from, the lab's own first where it is none of them.
void draw_gpu_choice(ShellState& state, int now, ImVec2 at, float width,
                     const std::vector<int>& all) {
  std::vector<std::string> names;
  for (const int each : all) names.push_back(workbench::architecture_of(each));
  const auto found = std::find(all.begin(), all.end(), now);
  ImGui::SetCursorScreenPos(at);
  const auto chosen = ui::dropdown("assembly_gpu", "Compute capability", names,
                                   static_cast<int>(found - all.begin()), width);
  ui::tooltip("Target GPU; it need not be in this machine");
  if (!chosen) return;
  state.desk().assembly.capability = all[static_cast<std::size_t>(*chosen)];
  state.ask_assembly_again();
}

std::vector<int> gpus_of(int now, int lab) {
  std::vector<int> all(std::begin(workbench::kCapabilities), std::end(workbench::kCapabilities));
  for (const int each : {lab, now}) {
    if (each > 0 && std::find(all.begin(), all.end(), each) == all.end()) {
      all.insert(all.begin(), each);
    }
  }
  return all;
}

void draw_kernel_choice(ShellState& state, const Assembly& assembly, int now, float width) {
  std::vector<std::string> names;
  for (const AssemblyKernel& kernel : assembly.kernels) names.push_back(kernel.name);
  const auto chosen = ui::dropdown("assembly_kernel", "Kernel", names, now, width);
  ui::tooltip(workbench::full_name_of(kernel_at(assembly, now).symbol));
  if (!chosen) return;
  state.desk().assembly.symbol = kernel_at(assembly, *chosen).symbol;
  state.desk().assembly.listing_goes = 0;
}

/// What the kernel takes, beside the choices, as long as there is room for it. False: there is none.
bool draw_resources(const AssemblyKernel& kernel, ImVec2 at, float room) {
  for (const bool brief : {false, true}) {
    const std::string words = resources_said(kernel, brief);
    const ImVec2 size = ui::text_size(words, Font::note);
    if (size.x > room) continue;
    at.y += std::round((px(ui::kControlHeight) - size.y) / 2);
    ui::draw_text(at, words, Font::note, Role::text);
    ui::map("assembly_resources", words, "", at, {at.x + size.x, at.y + size.y});
    return true;
  }
  return false;
}

// ---- the listing -----------------------------------------------------------------------------------

/// Lines of the text that the listing is of, as they stand in the one beside it, and the other way round.
class Lines {
 public:
  Lines(const std::string* listed, std::string_view beside) {
    if (listed == nullptr) return;
    to_source_.emplace(*listed, beside);
    to_listing_.emplace(beside, *listed);
  }
  int in_source(int line) const { return of(to_source_, line); }
  int in_listing(int line) const { return of(to_listing_, line); }

 private:
  static int of(const std::optional<ui::LineMap>& map, int line) {
    return map && line > 0 ? map->now(line).value_or(0) : line;
  }
  std::optional<ui::LineMap> to_source_, to_listing_;
};

/// What one may do about it, and how it stands: a sentence below the listing.
struct Foot {
  std::string sentence;
  Role role = Role::muted;
  const char* link = nullptr;
  bool stops = false;  ///< the link gives up what is under way
};

std::string target_of(const ShellState& state, const Shown& shown) {
  const int lab = state.lab_capability();
  const std::string name = workbench::architecture_of(shown.wanted.capability);
  if (shown.wanted.capability != lab) {
    return fmt::format("{}, {}", name,
                       lab > 0 ? "not the GPU of this lab" : "chosen: no GPU ran this");
  }
  return fmt::format("{}, the {} of this lab", name, state.session.lesson().report->device.name);
}

constexpr std::string_view kStale = "Out of date: compiled before your change";
constexpr const char* kAgain = "Compile again";

/// `says_stale`: nothing over the listing says that it is of another text.
Foot foot_of(const ShellState& state, const Shown& shown, bool says_stale) {
  const AssemblyRecord& record = state.session.lesson().assembly;
  switch (shown.stand) {
    case Stand::under_way: {
      std::string note = record.progress().note;
      if (note.empty()) note = "waiting for the lab";
      note[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(note[0])));
      return {note + " …", Role::text, "Stop", true};
    }
    case Stand::failed:
      if (shown.assembly == nullptr) return {"It was not compiled.", Role::muted, "Try again"};
      // Over a listing that is out of date there is a button for it.
      return {failure_sentence(*record.failure()), Role::wrong,
              shown.text != nullptr && !says_stale ? nullptr : "Try again"};
    case Stand::given_up:
      return {"It was stopped.", Role::muted, "Compile it"};
    default:
      break;
  }
  if (says_stale) return {std::string(kStale), Role::text, kAgain};
  if (shown.assembly == nullptr) return {"Not compiled yet.", Role::muted, "Compile it"};
  std::string sentence =
      fmt::format("{} for {} · {} · compiled, not measured", form_words(shown.wanted.form),
                  target_of(state, shown), shown.assembly->info.compiler);
  const auto desk = state.desks.find(state.session.chosen());
  const AssemblyDesk& now = desk->second.assembly;
  const int kernel = workbench::place_of(shown.assembly->kernels, now.symbol);
  if (!now.resources_fit && kernel >= 0) {
    sentence = resources_said(kernel_at(*shown.assembly, kernel), true) + " · " + sentence;
  }
  return {sentence};
}

void draw_foot(ShellState& state, const Shown& shown, float height, bool says_stale) {
  const Foot foot = foot_of(state, shown, says_stale);
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float y = min.y + std::round(height - ui::text_size("x", Font::note).y - px(1));
  const float link = foot.link != nullptr ? ui::text_size(foot.link, Font::note).x + px(12) : 0;
  const std::string words = ui::fitted(foot.sentence, Font::note, width - link);
  ImGui::SetCursorScreenPos({min.x, y});
  const ImVec2 size = ui::draw_text({min.x, y}, words, Font::note, foot.role);
  ImGui::Dummy(size);
  ui::map("assembly_status", foot.sentence, "", {min.x, y}, {min.x + size.x, y + size.y});
  if (words != foot.sentence) ui::tooltip(foot.sentence);
  if (foot.link == nullptr) return;
  if (!note_link("assembly_do", foot.link, {min.x + size.x + px(12), y})) return;
  foot.stops ? state.session.stop_assembly() : state.ask_assembly_again();
}

/// That the listing is of another text, over it, with what makes it of this one.
void draw_stale(ShellState& state, const Shown& shown) {
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, high = std::round(px(ui::kControlHeight));
  const bool busy = shown.stand == Stand::under_way;
  const float button = busy ? 0 : std::ceil(ui::text_size(kAgain).x) + 2 * px(12) + px(8);
  const std::string words = ui::fitted(kStale, Font::body, width - button - px(20));
  const float y = min.y + (high - ui::text_size("x").y) / 2;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled(min, {min.x + px(3), min.y + high}, ui::color(Role::vermillion), px(1));
  const ImVec2 size = ui::draw_text({min.x + px(12), y}, words);
  ui::map("assembly_stale", kStale, "", {min.x + px(12), y}, {min.x + px(12) + size.x, y + size.y});
  if (!busy) {
    ImGui::SetCursorScreenPos({min.x + width - button + px(8), min.y});
    if (ui::button("assembly_again", kAgain)) state.ask_assembly_again();
    ui::tooltip("Compile the current text  (Ctrl+Shift+Enter)");
  }
  ImGui::SetCursorScreenPos({min.x, min.y + high + px(6)});
}

void draw_nothing(const ShellState& state, const Shown& shown, float below) {
  const ImVec2 min = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const float high = std::max(room.y - below, px(40));
  ImGui::BeginChild("nothing", {room.x, high}, false, ImGuiWindowFlags_NoNavInputs);
  const std::string_view form = form_words(shown.wanted.form);
  const std::string file(workbench::name_of_file(shown.wanted.kernel.path));
  if (shown.stand == Stand::under_way) {
    ui::empty_state(fmt::format("Compiling {}", file), fmt::format("Compiling to {} …", form));
  } else if (shown.stand == Stand::failed) {
    const std::string why = failure_sentence(*state.session.lesson().assembly.failure());
    ui::text(fmt::format("No {}", form), Font::section);
    ui::space(4);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ui::paragraph(why);
    ui::map("assembly_failure", why, "", at, ImGui::GetItemRectMax());
  } else {
    ui::empty_state(fmt::format("No {} yet", form), "This text has not been compiled for a GPU.");
  }
  ImGui::EndChild();
  ImGui::SetCursorScreenPos({min.x, min.y + high});
}

void draw_listing(ShellState& state, const Shown& shown, const SourceSpot& spot, float below) {
  AssemblyDesk& desk = state.desk().assembly;
  const Assembly& assembly = *shown.assembly;
  const Lines lines(shown.text, spot.text);
  int now = kernel_on_show(assembly, desk, lines.in_listing(spot.line));
  int row = -1;
  if (const int to = lines.in_listing(std::exchange(desk.listing_goes, 0)); to > 0) {
    now = workbench::kernel_of_line(assembly.kernels, to, now);
    row = workbench::row_of_line(kernel_at(assembly, now), to);
  }
  const AssemblyKernel& kernel = kernel_at(assembly, now);
  desk.symbol = kernel.symbol;
  const int lit = lines.in_listing(spot.hovered > 0        ? spot.hovered
                                   : !desk.hovered.empty() ? desk.hovered.front()
                                   : desk.line > 0         ? desk.line
                                                           : spot.line);
  std::vector<ui::AssemblyRow> rows;
  rows.reserve(kernel.lines.size());
  for (const auto& each : kernel.lines) {
    rows.push_back({each.text, lines.in_source(each.line), workbench::is_of(each, lit)});
  }
  const std::string id = fmt::format("{} {}", form_words(shown.wanted.form), kernel.symbol);
  const auto pointed = ui::assembly_view(id, rows,
                                         {.label = kernel.name,
                                          .stale = shown.text != nullptr,
                                          .go_to = row,
                                          .shown = workbench::readable_instruction},
                                         below);
  const auto lines_at = [&](int at) {
    std::vector<int> all;
    if (at < 0) return all;
    const auto& instruction = kernel.lines[static_cast<std::size_t>(at)];
    all = instruction.callers;
    all.insert(all.begin(), instruction.line);
    for (int& line : all) line = lines.in_source(line);
    std::erase(all, 0);
    return all;
  };
  if (auto over = lines_at(pointed.hovered); over != desk.hovered) {
    desk.hovered = std::move(over);
    ui::request_redraw();  // the source beside it was drawn before
  }
  if (const auto to = lines_at(pointed.clicked); !to.empty()) {
    desk.line = desk.source_goes = to.front();
    ui::request_redraw();
  }
}

}  // namespace

void draw_assembly_head(ShellState& state) {
  const auto shown = shown_of(state);
  if (!shown) {
    if (!state.form_choice_fits) draw_form_choice(state, false);
    return;
  }
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, row = std::round(px(ui::kControlHeight));
  ImGui::SetCursorScreenPos({start.x, start.y + px(4)});
  const float top = start.y + px(4);
  float x = start.x;
  if (!state.form_choice_fits) {
    draw_form_choice(state, false);
    x += form_choice_width(false) + px(8);
  }
  const std::vector<int> gpus = gpus_of(shown->wanted.capability, state.lab_capability());
  const float gpu = std::ceil(ui::text_size("sm_100a").x) + px(52);
  draw_gpu_choice(state, shown->wanted.capability, {start.x + width - gpu, top}, gpu, gpus);
  state.desk().assembly.resources_fit = true;
  if (shown->assembly != nullptr && !shown->assembly->kernels.empty()) {
    const Assembly& assembly = *shown->assembly;
    const int now =
        kernel_on_show(assembly, state.desk().assembly, state.desk().assembly.seen_line);
    std::vector<std::string> names;
    for (const AssemblyKernel& kernel : assembly.kernels) names.push_back(kernel.name);
    const float room = start.x + width - gpu - px(8) - x;
    const float list = std::min({list_width(names), px(360), room});
    ImGui::SetCursorScreenPos({x, top});
    draw_kernel_choice(state, assembly, now, list);
    state.desk().assembly.resources_fit =
        draw_resources(kernel_at(assembly, now), {x + list + px(16), top}, room - list - px(16));
  }
  ImGui::SetCursorScreenPos({start.x, top + row + px(6)});
}

void draw_assembly_pane(ShellState& state, const SourceSpot& spot) {
  AssemblyDesk& desk = state.desk().assembly;
  if (spot.line != desk.seen_line) {  // the step or the caret has gone on
    desk.seen_line = desk.listing_goes = spot.line;
    desk.line = 0;
  }
  if (state.assembly_needs_trust()) {
    return ui::empty_state("Not compiled", "Trust the capsule's kernel to compile it for a GPU.");
  }
  const auto shown = shown_of(state);
  if (!shown) return;
  ui::space(4);
  const float below = std::ceil(px(4) + ui::text_size("x", Font::note).y);
  // Where it would leave no room for the listing, the line below says it.
  constexpr float kRoomForBoth = 120;
  const bool stale = shown->text != nullptr,
             low = ImGui::GetContentRegionAvail().y < px(kRoomForBoth);
  if (stale && !low) draw_stale(state, *shown);
  if (shown->assembly != nullptr && !shown->assembly->kernels.empty()) {
    draw_listing(state, *shown, spot, below);
  } else {
    draw_nothing(state, *shown, below);
  }
  draw_foot(state, *shown, below, stale && low);
}

}  // namespace tilestep::app

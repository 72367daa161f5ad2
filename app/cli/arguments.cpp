#include "app/cli/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>

#include "app/cli/output.hpp"
#include "app/keep/capsule.hpp"
#include "app/keep/guided.hpp"
#include "app/keep/place.hpp"
#include "app/shell/steps.hpp"
#include "kernels/base/workbench/sources.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/glossary_words.hpp"
#include "scenes/shared/scene.hpp"

namespace tilestep::app {
namespace {

constexpr Size kSmallest{640, 400}, kLargest{7680, 4320};
constexpr int kMostSteps = 1'000'000;
constexpr std::array<std::string_view, 2> kThemes = {"dark", "light"};
constexpr std::array<std::string_view, 6> kTabs = {"predict", "data",     "measured",
                                                   "kernel",  "glossary", "lesson"};
constexpr std::array<std::string_view, 4> kBackends = {"auto", "cuda", "emulated", "recorded"};

template <class Number>
std::optional<Number> parsed(std::string_view text) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The place of `text` among `names`.
std::size_t parse_choice(std::string_view option, std::string_view text,
                         std::span<const std::string_view> names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    throw Error(
        fmt::format("{} cannot be '{}'; allowed: {}", option, text, fmt::join(names, ", ")));
  }
  return static_cast<std::size_t>(found - names.begin());
}

std::string lesson_ids() {
  std::vector<std::string> ids;
  for (const lab::Lesson* lesson : lessons()) ids.push_back(lesson->info().id);
  return joined(ids);
}

}  // namespace

std::string joined(std::span<const std::string> words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words.begin(), words.end(), separator));
}

void LessonArguments::sort_out() {
  if (!lesson.empty()) return;
  const auto name = std::find_if(
      assignments.begin(), assignments.end(),
      [](const std::string& text) { return !text.empty() && text.find('=') == std::string::npos; });
  if (name == assignments.end()) return;
  lesson = *name;
  assignments.erase(name);
}

std::string LessonArguments::capsule_file() {
  sort_out();
  return names_capsule(lesson) ? lesson : std::string();
}

const lab::Lesson& LessonArguments::chosen(bool needed) {
  sort_out();
  if (!lesson.empty()) return tilestep::lesson(lesson);
  if (needed) throw Error(fmt::format("name a lesson; the lessons are: {}", lesson_ids()));
  return tilestep::lesson(kOpeningLesson);
}

lab::Settings LessonArguments::settings() {
  const lab::Knobs& knobs = chosen(false).knobs();
  lab::Settings settings;
  for (const std::string& assignment : assignments) knobs.set(settings, assignment);
  return settings;
}

void add_lesson(CLI::App& command, LessonArguments& lesson) {
  command.add_option("LESSON", lesson.lesson, "Lesson, as named by `tilestep list`");
  command
      .add_option("--set", lesson.assignments,
                  "Set a knob, as named by `tilestep list`; may be repeated")
      ->type_name("KNOB=VALUE");
}

namespace {

constexpr const char* kAboutLab =
    "Where kernels run: here, ssh:[USER@]HOST[:/PATH/OF/tilestep], or run:COMMAND ARGUMENTS, a "
    "program that speaks the protocol of `tilestep worker`";

}  // namespace

void add_lab(CLI::App& command, std::string& lab) {
  command.add_option("--lab", lab, kAboutLab)->type_name("LAB");
}

void add_labs(CLI::App& command, std::vector<std::string>& labs, bool several) {
  command
      .add_option("--lab", labs,
                  std::string(kAboutLab) +
                      (several ? "; may be repeated, to choose from in the window" : ""))
      ->type_name("LAB")
      ->allow_extra_args(false)
      ->expected(1, several ? 8 : 1);
}

std::vector<LabAddress> parse_labs(const std::vector<std::string>& labs) {
  std::vector<LabAddress> elsewhere;
  for (const std::string& lab : labs) {
    LabAddress address = parse_lab(lab);
    if (address.elsewhere()) elsewhere.push_back(std::move(address));
  }
  return elsewhere;
}

void add_kernel(CLI::App& command, std::string& kernel) {
  command
      .add_option(
          "--kernel", kernel,
          "Edited kernel source of the lesson, compiled and run instead of the built-in one")
      ->type_name("FILE");
}

void add_force(CLI::App& command, bool& force) {
  command.add_flag("--force", force, "Write through a link, or overwrite a file of another kind");
}

lab::KernelEdit read_kernel_edit(std::string_view lesson, const std::string& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw Error(fmt::format("--kernel cannot be '{}', a folder; allowed: a CUDA C++ source", file));
  }
  std::string text = read_source(file);
  return {workbench::source_meant(lesson, file, text), std::move(text)};
}

void add_look(CLI::App& command, LookArguments& look) {
  add_lesson(command, look.lesson);
  command.add_option("--size", look.size, "Size in pixels, 640x400–7680x4320 (default 1440x900)")
      ->type_name("WxH");
  command.add_option("--step", look.step, "Steps done, from 0; clamped to the last")
      ->each([&look](const std::string&) { look.step_given = true; })
      ->type_name("N");
  command.add_option("--phase", look.phase, "Phase within step N, by name or by number from 0")
      ->type_name("P");
  command.add_option("--stop", look.stop, "Stop of the lesson's guided path, from 1")
      ->each([&look](const std::string&) { look.stop_given = true; })
      ->type_name("N");
  command.add_option("--theme", look.theme, "dark or light")->type_name("THEME");
  command
      .add_option_function<std::string>(
          "--tab",
          [&look](const std::string& tab) {
            look.tab = tab;
            look.tab_given = true;
          },
          "Open this tab: predict, data, measured, kernel, glossary or lesson (its text)")
      ->type_name("TAB");
  command
      .add_option("--view", look.view, "Open the Measured tab at this view, by its button's label")
      ->type_name("NAME");
  command.add_option("--text-scale", look.text_scale, "Text size, 1–2")->type_name("X");
  command.add_option("--backend", look.backend, "auto, cuda, emulated or recorded")
      ->type_name("BACKEND");
  command
      .add_option("--compare", look.compared,
                  "Compare with a second run (A) that differs in this knob")
      ->type_name("KNOB=VALUE")
      ->allow_extra_args(false);
  command.add_flag("--home", look.home, "Show the course and your progress, not the lesson");
  command.add_flag("--presenter", look.presenter, "Presenter mode (large type)");
  command.add_flag("--reader", look.reader, "Show the lesson's text beside the picture");
  add_kernel(command, look.kernel);
  command.add_flag("--edit", look.edit, "Open the kernel editor");
  command
      .add_option("--assembly", look.assembly,
                  "Show the kernel's assembly beside its source: ptx or sass")
      ->type_name("FORM");
  command.add_flag("--ask", look.ask, "Ask the lesson's question at this step");
}

void LookArguments::set_look(ShellOptions& options) const {
  options.backend = parse_backend(backend);
  options.labs = parse_labs(labs);
  options.theme = parse_theme(theme);
  const TabChoice front = parse_tab(tab);
  options.tab = front.tab;
  options.reader = reader || front.reader;
  if (!assembly.empty()) {
    options.assembly = static_cast<workbench::AssemblyForm>(
        parse_choice("--assembly", assembly, names_of(workbench::AssemblyForm())));
  }
  options.overlay = tab_given || edit || options.assembly;
  options.asked = ask;
  options.edits = edit;
  if (edit || options.assembly) options.tab = Tab::kernel;
  options.presenter = presenter;
  options.home = home;
  options.text_scale = parse_text_scale(text_scale);
}

ShellOptions LookArguments::shell(bool lesson_needed) {
  if (const std::string file = lesson.capsule_file(); !file.empty()) return of_capsule(file);
  if (trust) {
    throw Error("--trust applies to a capsule's kernel: tilestep open CAPSULE --trust");
  }
  if (!phase.empty() && !step_given && !stop_given) {
    throw Error("--phase is inside a step: name the step too, with --step N");
  }
  ShellOptions options;
  options.lesson = lesson.chosen(lesson_needed).info().id;
  options.settings = lesson.settings();
  // The lesson says which combinations of knobs it takes only when it runs; each value is known
  // now. So are the names of its phases.
  set_look(options);
  if (!kernel.empty()) {
    options.kernel = read_kernel_edit(options.lesson, kernel);
    options.edits = options.overlay = true;
    if (!tab_given) options.tab = Tab::kernel;
  }
  options.step = parse_step(step);
  options.phase = phase;
  if (stop_given) go_to_stop(options);
  if (!view.empty()) {
    options.view = parse_view(options.lesson, view);
    options.tab = Tab::measured;
  }
  if (!compared.empty()) {
    options.compared = options.settings;
    const lab::Knobs& knobs = lesson.chosen(false).knobs();
    for (const std::string& assignment : compared) knobs.set(*options.compared, assignment);
  }
  return options;
}

/// The stop's knobs hold unless --set says otherwise.
void LookArguments::go_to_stop(ShellOptions& options) {
  if (step_given || !phase.empty()) {
    throw Error("--stop sets the place; it cannot be combined with --step or --phase");
  }
  const int number = parse_stop(stop);
  const scenes::GuideStop there = stop_of(options.lesson, number);
  options.stop = number - 1;
  for (const auto& [id, value] : there.settings) options.settings.try_emplace(id, value);
  options.step = there.step;
  options.phase = there.phase;
  if (options.asked && !there.ask.empty()) {
    --options.step;
    options.stop_asks = true;
  }
  if (!there.tab.empty()) {
    options.tab = parse_tab(there.tab).tab;
    options.overlay = true;
  }
  if (options.view.empty()) options.view = there.view;
  options.filter = there.filter;
  options.filtered = there.filtered;
}

/// A capsule says what is shown and where one stands; --step and --phase go elsewhere in it.
ShellOptions LookArguments::of_capsule(const std::string& file) {
  const char* too_much = !lesson.assignments.empty() ? "--set"
                         : !compared.empty()         ? "--compare"
                         : stop_given                ? "--stop"
                         : !kernel.empty()           ? "--kernel"
                                                     : nullptr;
  if (too_much != nullptr) {
    throw Error(
        fmt::format("{} does not work with a capsule, which holds one saved run; open the lesson "
                    "instead, or turn its knobs in the window",
                    too_much));
  }
  ShellOptions options;
  set_look(options);
  options.trust = trust;
  Capsule capsule = read_capsule(file);
  if (!capsule.kernel_refused.empty()) remark(capsule.kernel_refused);
  if (step_given) {
    capsule.step = parse_step(step);
    capsule.phase = -1;
  }
  if (!phase.empty()) {
    capsule.phase = at_phase(scene_of(capsule.report)->steps(), capsule.step, phase).phase;
  }
  options.lesson = capsule.lesson();
  options.capsule = std::make_shared<const Capsule>(std::move(capsule));
  return options;
}

Size parse_size(std::string_view text) {
  const std::size_t cross = text.find('x');
  if (cross != std::string_view::npos) {
    const auto width = parsed<int>(text.substr(0, cross));
    const auto height = parsed<int>(text.substr(cross + 1));
    if (width && height && *width >= kSmallest.width && *width <= kLargest.width &&
        *height >= kSmallest.height && *height <= kLargest.height) {
      return {*width, *height};
    }
  }
  throw Error(fmt::format("--size cannot be '{}'; allowed: WIDTHxHEIGHT in pixels, {}x{}–{}x{}",
                          text, kSmallest.width, kSmallest.height, kLargest.width,
                          kLargest.height));
}

int parse_step(std::string_view text) {
  const auto step = parsed<int>(text);
  if (!step || *step < 0 || *step > kMostSteps) {
    throw Error(
        fmt::format("--step cannot be '{}'; allowed: a whole number 0–{}", text, kMostSteps));
  }
  return *step;
}

int parse_stop(std::string_view text) {
  constexpr int kMostStops = 99;
  const auto stop = parsed<int>(text);
  if (!stop || *stop < 1 || *stop > kMostStops) {
    throw Error(
        fmt::format("--stop cannot be '{}'; allowed: a stop of the guided path, from 1", text));
  }
  return *stop;
}

float parse_text_scale(std::string_view text) {
  const auto scale = parsed<float>(text);
  if (!scale || !(*scale >= 1.0f && *scale <= 2.0f)) {
    throw Error(fmt::format("--text-scale cannot be '{}'; allowed: 1–2", text));
  }
  return *scale;
}

ui::ThemeKind parse_theme(std::string_view text) {
  return parse_choice("--theme", text, kThemes) == 0 ? ui::ThemeKind::dark : ui::ThemeKind::light;
}

TabChoice parse_tab(std::string_view text) {
  constexpr std::array kKinds = {Tab::predict, Tab::data, Tab::measured, Tab::kernel,
                                 Tab::glossary};
  const std::size_t place = parse_choice("--tab", text, kTabs);
  if (place == kKinds.size()) return {Tab::data, true};
  return {kKinds.at(place), false};
}

std::string parse_view(std::string_view lesson, std::string_view text) {
  const std::string wanted = scenes::glossary_words::folded(text);
  std::vector<std::string> names;
  for (const auto& scene : scenes::make_scenes()) {
    if (scene->lesson() != lesson) continue;
    for (const auto& view : scene->measured_spec().views) {
      if (scenes::glossary_words::folded(view.name) == wanted) return view.name;
      names.push_back(view.name);
    }
  }
  throw Error(fmt::format("--view cannot be '{}'; allowed: {}", text, joined(names)));
}

std::string parse_backend(std::string_view text) {
  return std::string(kBackends.at(parse_choice("--backend", text, kBackends)));
}

void FormatArguments::check() const {
  if (json + csv + markdown > 1) {
    throw Error("only one of --json, --csv and --markdown can be given at once");
  }
}

std::vector<const lab::Lesson*> parse_lessons(const std::vector<std::string>& names) {
  std::vector<const lab::Lesson*> chosen;
  for (const std::string& name : names) chosen.push_back(&lesson(name));
  if (names.empty()) chosen.assign(lessons().begin(), lessons().end());
  return chosen;
}

}  // namespace tilestep::app

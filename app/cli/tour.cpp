#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "app/cli/arguments.hpp"
#include "app/cli/chart_svg.hpp"
#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "app/cli/tour_page.hpp"
#include "app/cli/tour_sheet.hpp"
#include "app/file.hpp"
#include "app/keep/capsule.hpp"
#include "app/keep/guided.hpp"
#include "app/window/window.hpp"
#include "app/worker/ask.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/scene.hpp"
#include "scenes/stage/measured_plots.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

/// A gallery of more than this is no longer stepped through.
constexpr int kMostPictures = 6;

struct TourArguments {
  std::string out;
  std::string lab = "here";
  bool force = false;
  bool sheet = false;
  std::vector<std::string> lessons;  ///< of sheets
  LookArguments look;
};

class Tour {
 public:
  Tour(fs::path folder, bool force, const LabAddress& address, const std::string& program)
      : folder_(std::move(folder)),
        force_(force),
        program_(program),
        elsewhere_(address.elsewhere() ? std::vector{address} : std::vector<LabAddress>()),
        lab_(address.elsewhere() ? make_lab(address, program) : nullptr) {}
  int make();

 private:
  TourStop stop(const lab::Lesson& lesson);
  void draw(TourStop& stop);
  void draw_steps(TourStop& stop);
  std::optional<Chart> pictured(const scenes::Scene& scene, const PathView& view,
                                ui::ThemeKind theme);
  void draw_chart(PathView& view, const scenes::Scene& scene, std::size_t number);
  void walk(TourStop& stop);
  PathView view_of(const TourStop& stop, const scenes::GuideStop& where, std::size_t number);
  const lab::Report& report_of(const TourStop& stop, const lab::Settings& settings);
  void draw_one(const TourStop& stop, int step, ui::ThemeKind theme, const std::string& file);
  void write(const fs::path& relative, std::string_view text);

  lab::Report answered(const lab::Request& request);

  fs::path folder_;
  bool force_;
  std::string program_;
  std::vector<LabAddress> elsewhere_;           ///< where kernels run; empty: here
  std::unique_ptr<LabClient> lab_;              ///< there; null: in this process
  std::unique_ptr<SvgPress> press_;             ///< made with the first stop
  std::unique_ptr<Offscreen> canvas_;           ///< made with the first picture
  std::map<std::string, lab::Report> reports_;  ///< of one lesson's stops, by their knobs
  std::map<std::string, std::string> drawn_;    ///< files of one lesson's stops, by their bytes
  std::string missing_;                         ///< why pictures cannot be drawn; empty if they can
  bool checks_ok_ = true;
};

void Tour::write(const fs::path& relative, std::string_view text) {
  write_output(folder_ / relative, text, force_);
  print_line((folder_ / relative).string());
}

lab::Report Tour::answered(const lab::Request& request) {
  TerminalProgress progress;
  return ask(lab_.get(), request, progress);
}

/// The steps that get a picture: all of a short trace, else evenly spread ones with first and last.
std::set<int> pictured_steps(int tiles) {
  std::set<int> steps;
  const int count = std::min(tiles + 1, kMostPictures);
  for (int i = 0; i < count; ++i) steps.insert(count == 1 ? 0 : tiles * i / (count - 1));
  return steps;
}

void Tour::draw_one(const TourStop& stop, int step, ui::ThemeKind theme, const std::string& file) {
  ShotOptions options;
  options.shell.lesson = stop.info.id;
  options.shell.step = step;
  options.shell.theme = theme;
  options.shell.still = true;
  options.shell.program = program_;
  options.shell.labs = elsewhere_;
  options.out = (folder_ / stop.info.id / file).string();
  options.force = force_;
  if (!canvas_) canvas_ = std::make_unique<Offscreen>();
  canvas_->shoot(options);
  print_line(options.out);
}

/// The window itself, step by step: of a lesson without a guided path.
void Tour::draw_steps(TourStop& stop) {
  const scenes::StepAxis axis = scene_of(stop.report)->steps();
  for (const int step : pictured_steps(axis.tiles)) {
    const std::string file = fmt::format("step-{}.png", step);
    draw_one(stop, step, ui::ThemeKind::dark, file);
    // Tiles are counted from 0, as in the tables: after step 1, tile 0 is done.
    stop.pictures.push_back(
        {file, step == 0 ? std::string("start") : fmt::format("{} {}", axis.noun, step - 1),
         fmt::format("{}, {} of {} {}s done", stop.info.title, step, axis.tiles, axis.noun)});
  }
}

void Tour::draw(TourStop& stop) {
  try {
    const int last = scene_of(stop.report)->steps().tiles;
    if (stop.path.empty()) {
      draw_steps(stop);
    } else {
      draw_one(stop, last, ui::ThemeKind::dark, "dark.png");
      stop.pictures.push_back({"dark.png", "all", stop.info.title + " in the window"});
    }
    draw_one(stop, last, ui::ThemeKind::light, "light.png");
    stop.light_file = "light.png";
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable) throw;
    stop.missing = error.what();
    if (missing_.empty()) missing_ = fmt::format("{}: {}", stop.info.id, error.what());
  }
}

const lab::Report& Tour::report_of(const TourStop& stop, const lab::Settings& settings) {
  const std::string key = lab::to_json(lesson(stop.info.id).knobs().completed(settings)).dump();
  const auto found = reports_.find(key);
  if (found != reports_.end()) return found->second;
  lab::Request request;
  request.lesson = stop.info.id;
  request.params = settings;
  return reports_.emplace(key, answered(request)).first->second;
}

/// What a picture shows, in words: its headline and the numbers beside it.
std::string alt_of(const scenes::Scene& scene, const scenes::View& view) {
  std::string words = picture::plain(scene.picture(scene.extent(), view).headline.full);
  for (const scenes::Readout& one : scene.readouts(view)) {
    if (one.value.empty() || one.value == "–" || one.value == "—") continue;
    words += fmt::format("{}{}: {}{}{}", words.empty() ? "" : "; ", one.label, one.value,
                         one.unit.empty() ? "" : " ", one.unit);
  }
  return words;
}

PathView Tour::view_of(const TourStop& stop, const scenes::GuideStop& where, std::size_t number) {
  PathView view;
  view.stop = where;
  view.lesson = stop.info.id;
  view.link = fmt::format("tilestep open {} --stop {} --reader", stop.info.id, number);
  try {
    Capsule capsule = capsule_of(report_of(stop, where.settings));
    capsule.step = where.step;
    if (!press_) press_ = std::make_unique<SvgPress>(1280, 800);
    const auto scene = scene_of(capsule.report);
    if (!where.phase.empty()) {
      capsule.phase = scenes::cursor_at(where, scene->steps()).phase;
    }
    const scenes::View seen{cursor_of(capsule, scene->steps())};
    view.question = scene->question(
        where.ask.empty() ? seen : scenes::View{scenes::asked_at(where, scene->steps())});
    view.source = scene->source(seen);
    view.alt = alt_of(*scene, seen);
    for (const auto& [theme, file] : {std::pair{ui::ThemeKind::dark, &view.dark_file},
                                      {ui::ThemeKind::light, &view.light_file}}) {
      const bool dark = theme == ui::ThemeKind::dark;
      *file = fmt::format("stop-{}-{}.svg", number, dark ? "dark" : "light");
      std::string svg = press_->draw(capsule, theme, where.subject());
      const auto [same, is_new] = drawn_.try_emplace(std::move(svg), *file);
      if (is_new) {
        write(fs::path(stop.info.id) / *file, same->first);
      } else {
        *file = same->second;  // stops that stand at one place share its picture
      }
    }
    draw_chart(view, *scene, number);
  } catch (const Error& error) {  // a run that cannot be here is no reason to leave out the others
    if (error.code() == ExitCode::unavailable) throw;
    view.missing = error.what();
  }
  return view;
}

/// A view that is a picture.
std::optional<Chart> Tour::pictured(const scenes::Scene& scene, const PathView& view,
                                    ui::ThemeKind theme) {
  using namespace scenes::measured;
  const Spec spec = scene.measured_spec();
  for (const View& each : spec.views) {
    if (each.name != view.stop.view) continue;
    const lab::Report* of = bench_of(*scene.report(), view.lesson, each.needs, each.computed);
    for (const Plot& plot : each.plots) {
      const auto* drawn = std::get_if<Pictured>(&plot);
      if (of == nullptr || drawn == nullptr) continue;
      const picture::Picture picture = drawn->picture(rows_of(drawn->rows, *of));
      return Chart{
          press_->draw(picture, theme),
          fmt::format("{}: {}; {}.", picture::plain(picture.headline.full), each.how,
                      each.computed ? "computed on " + of->device.name : where_measured(*of))};
    }
  }
  return std::nullopt;
}

/// The chart that the text of a stop speaks of.
void Tour::draw_chart(PathView& view, const scenes::Scene& scene, std::size_t number) {
  for (const auto& [theme, file] : {std::pair{ui::ThemeKind::dark, &view.chart_dark},
                                    {ui::ThemeKind::light, &view.chart_light}}) {
    auto chart = chart_of(scene.measured_spec(), *scene.report(), view.lesson, view.stop, theme);
    if (!chart) chart = pictured(scene, view, theme);
    if (!chart) return;
    *file = fmt::format("chart-{}-{}.svg", number, theme == ui::ThemeKind::dark ? "dark" : "light");
    view.chart_alt = chart->alt;
    write(fs::path(view.lesson) / *file, chart->svg);
  }
}

/// The guided path, if the lesson has one.
void Tour::walk(TourStop& stop) {
  const scenes::Guide guide = guide_of(stop.info.id);
  if (guide.stops.empty()) return;
  reports_.clear();
  drawn_.clear();
  reports_.emplace(lab::to_json(stop.report.params).dump(), stop.report);
  std::size_t number = 0;
  for (const scenes::GuideStop& where : guide.stops) {
    stop.path.push_back(view_of(stop, where, ++number));
  }
  // Each question once on a path: where the path asks it, if it does.
  std::set<std::string> asked;
  for (const bool by_path : {true, false}) {
    for (PathView& view : stop.path) {
      if (!view.question || view.stop.ask.empty() == by_path) continue;
      if (!asked.insert(view.question->text).second) view.question.reset();
    }
  }
  stop.intro = guide.intro;
  if (stop.intro.starts_with("# ")) stop.intro.erase(0, stop.intro.find('\n'));  // the page has it
  stop.more = guide.more;
}

TourStop Tour::stop(const lab::Lesson& lesson) {
  TourStop stop;
  stop.info = lesson.info();
  lab::Request request;
  request.lesson = stop.info.id;
  stop.report = answered(request);
  checks_ok_ = checks_ok_ && stop.report.ok();
  const fs::path folder = stop.info.id;
  write(folder / "report.json", json_text(lab::to_json(stop.report)));
  for (const lab::Table& table : stop.report.tables) {
    write(folder / (table.id + ".csv"), table.to_csv());
    write(folder / (table.id + ".md"), table.to_markdown());
  }
  walk(stop);
  draw(stop);
  write(page_path(stop.info), lesson_page(stop));
  return stop;
}

int Tour::make() {
  make_folder(folder_);
  if (!lab_) remark_refused_cuda("auto");
  std::vector<TourStop> stops;
  for (const lab::Lesson* lesson : lessons()) stops.push_back(stop(*lesson));
  write("index.html", index_page(stops));
  print_line(fmt::format("\nThe tour is ready: open {} in a browser.",
                         fs::absolute(folder_ / "index.html").lexically_normal().string()));
  if (!missing_.empty()) {
    throw Error(fmt::format("pictures are missing from the tour: {}", missing_),
                ExitCode::unavailable);
  }
  return static_cast<int>(checks_ok_ ? ExitCode::good : ExitCode::check_failed);
}

}  // namespace

void add_tour(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<TourArguments>();
  CLI::App* command = app.add_subcommand(
      "tour", "Write pages, pictures and tables of every lesson; needs no display");
  command->add_option("--out", arguments->out, "Folder for the tour")->type_name("DIR");
  add_force(*command, arguments->force);
  add_lab(*command, arguments->lab);
  CLI::Option* sheet = command->add_flag(
      "--sheet", arguments->sheet, "Write LESSON.png instead, all stops of a lesson on one sheet");
  LookArguments& look = arguments->look;
  look.size = "1280x720";
  command->add_option("--lesson", arguments->lessons, "A sheet of this lesson alone")
      ->type_name("LESSON")
      ->allow_extra_args(false)
      ->needs(sheet);
  command
      ->add_option("--size", look.size, "Size of the window on a sheet, shown at half (1280x720)")
      ->type_name("WxH")
      ->needs(sheet);
  command->add_option("--theme", look.theme, "dark or light")->type_name("THEME")->needs(sheet);
  command->add_option("--text-scale", look.text_scale, "Text size, 1–2")
      ->type_name("X")
      ->needs(sheet);
  command->add_flag("--reader", look.reader, "Show the lesson's text beside the picture")
      ->needs(sheet);
  command->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] {
      if (arguments->out.empty()) throw Error("name the folder for the tour: --out DIR");
      if (arguments->sheet) {
        arguments->look.presenter = !arguments->look.reader;
        arguments->look.labs = {arguments->lab};
        write_sheets(arguments->out, parse_lessons(arguments->lessons), arguments->look,
                     invocation.program, arguments->force);
        return static_cast<int>(ExitCode::good);
      }
      return Tour(arguments->out, arguments->force, parse_lab(arguments->lab), invocation.program)
          .make();
    };
  });
}

}  // namespace tilestep::app

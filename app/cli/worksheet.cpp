#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "app/cli/report_text.hpp"
#include "app/cli/worksheet_page.hpp"
#include "app/file.hpp"
#include "app/keep/link.hpp"
#include "app/keep/quiz.hpp"
#include "app/window/window.hpp"
#include "kernels/base/lab/number.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostQuestions = 8;
constexpr std::int64_t kMostSeed = 2147483647;

constexpr std::int64_t kMostSheets = 200;

struct WorksheetArguments {
  std::string lesson, out;
  std::optional<std::string> seed, seeds;
  bool force = false, gift = false;
};

std::int64_t parse_seed(const std::string& text) {
  const auto seed = lab::number_of<std::int64_t>(text);
  if (!seed || *seed < 0 || *seed > kMostSeed) {
    throw Error(
        fmt::format("--seed cannot be '{}'; allowed: a whole number 0–{}", text, kMostSeed));
  }
  return *seed;
}

/// "1-30": the first and the last.
std::pair<std::int64_t, std::int64_t> parse_seeds(const std::string& text) {
  const std::size_t dash = text.find('-');
  const auto first = lab::number_of<std::int64_t>(text.substr(0, dash));
  const auto last =
      dash == text.npos ? std::nullopt : lab::number_of<std::int64_t>(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last > kMostSeed ||
      *last - *first >= kMostSheets) {
    throw Error(fmt::format(
        "--seeds cannot be '{}'; allowed: FIRST-LAST, whole numbers 0–{}, at most {} of them", text,
        kMostSeed, kMostSheets));
  }
  return {*first, *last};
}

/// The run that a question is about: "Preset: random · Seed: 3", the defaults left out.
std::string run_words(const lab::Report& report) {
  std::string words;
  for (const lab::Knob& knob : lesson(report.lesson).knobs()) {
    const auto found = report.params.find(knob.id);
    if (found == report.params.end() || found->second == knob.checked(knob.initial)) continue;
    words +=
        fmt::format("{}{}: {}", words.empty() ? "" : " · ", knob.label, knob.text(found->second));
  }
  return words.empty() ? "All knobs at their defaults" : words;
}

std::string answer_words(const scenes::Question& question) {
  if (!question.choices.empty()) return std::string(1, static_cast<char>('A' + question.answer));
  if (question.values.empty()) return "–";
  const std::string value = number_words(question.values[0]);
  // Half of a count is no count: it is to be right.
  if (question.tolerance < 1 && question.values[0] == std::round(question.values[0])) return value;
  return fmt::format("{} ± {}", value, scenes::words::significant(question.tolerance, 2));
}

class WorksheetMaker {
 public:
  explicit WorksheetMaker(bool force) : force_(force) {}

  void make(const lab::LessonInfo& info, std::int64_t seed, fs::path folder) {
    folder_ = std::move(folder);
    number_ = 0;
    Worksheet worksheet{info, seed, {}};
    const auto quiz = make_quiz(info.id, seed, kMostQuestions);
    if (quiz.empty()) {
      throw Error(fmt::format("the lesson '{}' has no questions", info.id), ExitCode::unavailable);
    }
    make_folder(folder_);
    for (const QuizItem& item : quiz) worksheet.items.push_back(on_paper(item));
    for (const auto& [page, name] : {std::pair{SheetPage::sheet, "sheet"},
                                     {SheetPage::key, "key"},
                                     {SheetPage::evidence, "evidence"}}) {
      write(fmt::format("{}.md", name), sheet_markdown(worksheet, page));
      write(fmt::format("{}.html", name), sheet_html(worksheet, page));
    }
    // A bank need not have a question twice.
    std::erase_if(worksheet.items,
                  [&](const SheetItem& item) { return !banked_.insert(item.text).second; });
    gift_ += sheet_gift(worksheet, [&](const std::string& name) { return svgs_.at(name); });
  }

  /// All questions so far, for a category of Moodle's bank.
  std::string gift(const lab::LessonInfo& info) const {
    return fmt::format("$CATEGORY: tilestep/{}\n\n{}", info.title, gift_);
  }

 private:
  SheetItem on_paper(const QuizItem& item) {
    ++number_;
    SheetItem sheet;
    sheet.about = item.measured ? fmt::format("Measurements: {}", device_words(*item.report))
                                : run_words(*item.report);
    sheet.text = item.question.text;
    sheet.choices = item.question.choices;
    sheet.answer = answer_words(item.question);
    sheet.scale = item.scale;
    if (!item.question.values.empty()) sheet.value = item.question.values[0];
    sheet.tolerance = item.question.tolerance;
    sheet.because = item.question.because;
    sheet.evidence = item.evidence;
    sheet.link = item.measured ? link_of(item.report->lesson, {}, 0) + " --tab measured"
                               : link_of(item.report->lesson, item.report->params, item.asked.tile);
    if (item.measured) return sheet;
    sheet.before = picture(item, item.asked, "before");
    sheet.after = picture(item, item.told, "after");
    return sheet;
  }

  std::string picture(const QuizItem& item, scenes::Cursor cursor, const char* when) {
    Capsule capsule = capsule_of(*item.report);
    capsule.step = cursor.tile;
    const std::string file = fmt::format("q{}-{}.svg", number_, when);
    svgs_[file] = press_.draw(capsule, ui::ThemeKind::light);
    write(file, svgs_[file]);
    return file;
  }

  void write(const std::string& name, std::string_view text) {
    write_output(folder_ / name, text, force_);
    print_line((folder_ / name).string());
  }

  fs::path folder_;
  bool force_;
  SvgPress press_{1280, 800};
  int number_ = 0;
  std::map<std::string, std::string> svgs_;  ///< of the sheet that is made, by name
  std::set<std::string> banked_;
  std::string gift_;
};

int worksheet(WorksheetArguments& arguments) {
  LessonArguments named;
  named.lesson = arguments.lesson;
  const lab::Lesson& lesson = named.chosen();
  if (arguments.seed && arguments.seeds) {
    throw Error("only one of --seed and --seeds can be given at once");
  }
  if (!arguments.seed && !arguments.seeds) {
    throw Error(
        "choose the questions: --seed S, or --seeds FIRST-LAST for a class; the same seed gives "
        "the "
        "same sheet");
  }
  const auto [first, last] =
      arguments.seeds ? parse_seeds(*arguments.seeds)
                      : std::pair(parse_seed(*arguments.seed), parse_seed(*arguments.seed));
  if (arguments.out.empty()) throw Error("name the folder for the worksheet: --out DIR");
  const fs::path out = arguments.out;
  const fs::path bank = out / (lesson.info().id + ".gift");
  if (arguments.gift) require_output(bank, arguments.force);
  WorksheetMaker maker(arguments.force);
  TerminalProgress progress;
  for (std::int64_t seed = first; seed <= last; ++seed) {
    progress.report(static_cast<double>(seed - first) / static_cast<double>(last - first + 1),
                    fmt::format("the sheet of seed {}", seed));
    progress.check();
    maker.make(lesson.info(), seed, arguments.seeds ? out / fmt::format("seed-{}", seed) : out);
  }
  if (arguments.gift) {
    write_output(bank, maker.gift(lesson.info()), arguments.force);
    print_line(bank.string());
  }
  return static_cast<int>(ExitCode::good);
}

}  // namespace

void add_worksheet(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<WorksheetArguments>();
  CLI::App* command = app.add_subcommand(
      "worksheet",
      "Write a printable sheet of questions with its key and evidence; needs no display");
  command->add_option("LESSON", arguments->lesson, "Lesson, as named by `tilestep list`");
  command
      ->add_option("--seed", arguments->seed,
                   "Chooses the questions; the same seed gives the same sheet")
      ->type_name("S");
  command->add_option("--seeds", arguments->seeds, "A sheet per seed, in folders DIR/seed-N: 1-30")
      ->type_name("FIRST-LAST");
  command->add_flag("--gift", arguments->gift,
                    "Also write DIR/LESSON.gift, the questions for Moodle's question bank");
  command->add_option("--out", arguments->out, "Folder for the pages and their pictures")
      ->type_name("DIR");
  add_force(*command, arguments->force);
  command->callback([arguments, &invocation] {
    invocation.action = [arguments] { return worksheet(*arguments); };
  });
}

}  // namespace tilestep::app

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

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

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostQuestions = 8;
constexpr std::int64_t kMostSeed = 2147483647;

struct WorksheetArguments {
  std::string lesson, out;
  std::optional<std::string> seed;
  bool force = false;
};

std::int64_t parse_seed(const std::string& text) {
  const auto seed = lab::number_of<std::int64_t>(text);
  if (!seed || *seed < 0 || *seed > kMostSeed) {
    throw Error(
        fmt::format("--seed cannot be '{}'; allowed: a whole number 0–{}", text, kMostSeed));
  }
  return *seed;
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
  const std::string value =
      question.values.empty() ? std::string("–") : number_words(question.values[0]);
  return question.tolerance > 0 ? fmt::format("{} ± {}", value, number_words(question.tolerance))
                                : value;
}

class WorksheetMaker {
 public:
  WorksheetMaker(fs::path folder, bool force) : folder_(std::move(folder)), force_(force) {}

  void make(const lab::LessonInfo& info, std::int64_t seed) {
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
    write(file, press_.draw(capsule, ui::ThemeKind::light));
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
};

int worksheet(WorksheetArguments& arguments) {
  LessonArguments named;
  named.lesson = arguments.lesson;
  const lab::Lesson& lesson = named.chosen();
  if (!arguments.seed) {
    throw Error("choose the questions: --seed S; the same seed gives the same sheet");
  }
  const std::int64_t seed = parse_seed(*arguments.seed);
  if (arguments.out.empty()) throw Error("name the folder for the worksheet: --out DIR");
  WorksheetMaker(arguments.out, arguments.force).make(lesson.info(), seed);
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
  command->add_option("--out", arguments->out, "Folder for the pages and their pictures")
      ->type_name("DIR");
  add_force(*command, arguments->force);
  command->callback([arguments, &invocation] {
    invocation.action = [arguments] { return worksheet(*arguments); };
  });
}

}  // namespace tilestep::app

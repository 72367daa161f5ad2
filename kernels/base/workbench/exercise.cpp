#include "kernels/base/workbench/exercise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/number.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/simt/error.hpp"
#include "kernels/base/workbench/finding_kind.hpp"

namespace tilestep::lab {
namespace {

constexpr std::string_view kFolder = "assets/exercises/";
constexpr std::string_view kMark = "// tilestep exercise ";
constexpr std::size_t kFewestWrong = 3;
constexpr std::size_t kCommentColumns = 90;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

/// "put-back-the-rescale"
bool is_kebab(std::string_view name) {
  return !name.empty() && name.front() != '-' && name.back() != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-';
         });
}

/// A name, a colon and the rest of a list's item; the rest may be empty.
struct Item {
  std::string key, value;
};

/// Reads the file line by line.
class Reader {
 public:
  Reader(std::string_view path, std::string_view text) : path_(path), rest_(text) { next(); }

  bool at_end() const { return end_; }
  std::string_view line() const { return line_; }
  void next() {
    if (rest_.empty()) {
      end_ = true;
      line_ = {};
      return;
    }
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++number_;
  }
  void skip_empty() {
    while (!at_end() && trimmed(line_).empty()) next();
  }

  /// The items of a list up to the next heading. An item goes on in lines that are indented.
  void items(const std::function<void(const std::string& item)>& take) {
    for (skip_empty(); !at_end() && !line_.starts_with("#"); skip_empty()) {
      if (!line_.starts_with("- ")) fail("is no item of a list; allowed here: '- …'");
      std::string item(trimmed(line_.substr(2)));
      const int first = number_;
      for (next(); !at_end() && line_.starts_with("  "); next()) {
        item += fmt::format(" {}", trimmed(line_));
      }
      const int after = std::exchange(number_, first);
      take(item);
      number_ = after;
    }
  }

  /// A fenced block, whole lines.
  std::string block() {
    skip_empty();
    if (at_end() || !line_.starts_with("```")) fail("is no fenced block; allowed here: ```cuda");
    const int first = number_;
    std::string code;
    for (next(); !line_.starts_with("```"); next()) {
      if (at_end()) {
        number_ = first;
        fail("begins a block that never ends");
      }
      code += fmt::format("{}\n", line_);
    }
    next();
    return code;
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(fmt::format("{}: line {} {}", path_, number_, what));
  }
  /// About the whole file.
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(fmt::format("{} {}", path_, what));
  }

 private:
  std::string path_;
  std::string_view rest_, line_;
  int number_ = 0;
  bool end_ = false;
};

Item split(const Reader& reader, const std::string& item) {
  // A colon in `code` is none of ours.
  bool code = false;
  for (std::size_t i = 0; i < item.size(); ++i) {
    if (item[i] == '`') code = !code;
    if (item[i] != ':' || code) continue;
    return {std::string(trimmed(std::string_view(item).substr(0, i))),
            std::string(trimmed(std::string_view(item).substr(i + 1)))};
  }
  reader.fail("has no colon; allowed: '- KEY: TEXT'");
}

/// One section after another; each may come once, but for the wrong attempts.
class Parser {
 public:
  Parser(std::string_view path, std::string_view text) : reader_(path, text) {
    name_from(path);
    head();
    while (!reader_.at_end()) section();
    check();
  }
  Exercise take() { return std::move(exercise_); }

 private:
  void name_from(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    const std::size_t before = slash == std::string_view::npos || slash == 0
                                   ? std::string_view::npos
                                   : path.rfind('/', slash - 1);
    if (slash == std::string_view::npos || !path.ends_with(".md")) {
      reader_.refuse("is no path of an exercise; allowed: …/<lesson>/<exercise>.md");
    }
    folder_ = path.substr(0, slash + 1);
    const std::size_t first = before == std::string_view::npos ? 0 : before + 1;
    exercise_.lesson = path.substr(first, slash - first);
    exercise_.name = path.substr(slash + 1, path.size() - slash - 1 - 3);
    if (!is_kebab(exercise_.lesson) || !is_kebab(exercise_.name)) {
      reader_.refuse("is named otherwise than in kebab case: put-back-the-rescale.md");
    }
  }

  void head() {
    reader_.skip_empty();
    if (!reader_.line().starts_with("# ")) reader_.fail("is no title; allowed first: '# …'");
    exercise_.title = trimmed(reader_.line().substr(2));
    reader_.next();
    reader_.skip_empty();
    file();
    reader_.next();
    reader_.skip_empty();
    if (reader_.line().starts_with(kSource) || reader_.line().starts_with(kProgram)) {
      reader_.fail("names a second file; an exercise has either a source or a program");
    }
    for (; !reader_.at_end() && !reader_.line().starts_with("## "); reader_.next()) {
      exercise_.task += fmt::format("{}\n", reader_.line());
    }
    exercise_.task = trimmed(exercise_.task);
    if (exercise_.task.empty()) reader_.fail("comes where the task should stand");
  }

  void file() {
    if (reader_.line().starts_with(kSource)) {
      exercise_.source = trimmed(reader_.line().substr(kSource.size()));
    } else if (reader_.line().starts_with(kProgram)) {
      const std::string_view name = trimmed(reader_.line().substr(kProgram.size()));
      if (!name.ends_with(".cu") || !is_kebab(name.substr(0, name.size() - 3))) {
        reader_.fail("names no program beside this file; allowed: '- program: NAME.cu'");
      }
      exercise_.program = fmt::format("{}{}", folder_, name);
    } else {
      reader_.fail(
          "does not say which source; allowed after the title: '- source: kernels/….cu' or "
          "'- program: NAME.cu'");
    }
  }

  void section() {
    const std::string heading(trimmed(reader_.line().substr(3)));
    constexpr std::string_view kWrong = "Wrong: ";
    if (heading.starts_with(kWrong)) return attempt(heading.substr(kWrong.size()), exercise_.wrong);
    constexpr std::string_view kSlow = "Slow: ";
    if (heading.starts_with(kSlow)) return attempt(heading.substr(kSlow.size()), exercise_.slow);
    const std::pair<std::string_view, void (Parser::*)()> kinds[] = {
        {"Cases", &Parser::cases},       {"Goal", &Parser::goals}, {"Speed", &Parser::speeds},
        {"Solution", &Parser::solution}, {"Hole", &Parser::hole},  {"Hints", &Parser::hints}};
    for (const auto& [name, read] : kinds) {
      if (heading != name) continue;
      if (std::find(seen_.begin(), seen_.end(), name) != seen_.end()) {
        reader_.fail(fmt::format("begins a second section '{}'", name));
      }
      seen_.push_back(name);
      reader_.next();
      (this->*read)();
      return need_heading();
    }
    reader_.fail(
        fmt::format("begins a section '{}'; allowed: Cases, Goal, Speed, Solution, Hole, "
                    "Wrong: …, Slow: …, Hints",
                    heading));
  }

  void need_heading() {
    reader_.skip_empty();
    if (!reader_.at_end() && !reader_.line().starts_with("## ")) {
      reader_.fail("stands after the end of its section");
    }
  }

  void cases() {
    reader_.items([&](const std::string& item) {
      const Item parts = split(reader_, item);
      if (!is_kebab(parts.key)) reader_.fail("names a case otherwise than in kebab case");
      for (const ExerciseCase& other : exercise_.cases) {
        if (other.name == parts.key) reader_.fail("names a case for the second time");
      }
      exercise_.cases.push_back({parts.key, words_of(parts.value)});
    });
  }

  /// "ID [of VARIANT] [in CASE] <= N", ID being a measurement's or TABLE.COLUMN.
  void goals() {
    if (exercise_.is_program()) return program_goals();
    reader_.items([&](const std::string& item) {
      std::vector<std::string> words = words_of(item);
      const auto wrong_form = [&] {
        reader_.fail("is no goal; allowed: '- ID [of VARIANT] [in CASE] <= N', or >=");
      };
      if (words.size() < 3) wrong_form();
      ExerciseGoal goal;
      const auto bound = number_of<double>(words.back());
      const std::string relation = words[words.size() - 2];
      if (!bound || (relation != "<=" && relation != ">=")) wrong_form();
      goal.bound = *bound;
      goal.at_most = relation == "<=";
      goal.id = words.front();
      goal.text = goal.id;
      for (std::size_t i = 1; i + 2 < words.size(); i += 2) {
        if (words[i] == "of" && i + 3 < words.size() && goal.variant.empty()) {
          goal.variant = words[i + 1];
          goal.text += fmt::format(" of {}", goal.variant);
        } else if (words[i] == "in" && i + 3 < words.size() && goal.in_case.empty()) {
          goal.in_case = words[i + 1];
        } else {
          wrong_form();
        }
      }
      if (const std::size_t dot = goal.id.find('.'); dot != std::string::npos) {
        goal.column = goal.id.substr(dot + 1);
        goal.id.resize(dot);
      }
      goal.text += fmt::format(" {} {}", relation, words.back());
      exercise_.goals.push_back(std::move(goal));
    });
  }

  /// "no KIND"
  void program_goals() {
    reader_.items([&](const std::string& item) {
      const std::vector<std::string> words = words_of(item);
      const auto kind =
          words.size() == 2 && words[0] == "no" ? named<FindingKind>(words[1]) : std::nullopt;
      if (!kind || is_mistake(*kind)) {
        reader_.fail(
            "is no goal of a program; allowed: '- no KIND' with KIND one of coalescing, "
            "bank_conflict, divergence");
      }
      ExerciseGoal goal;
      goal.text = fmt::format("no {}", words[1]);
      goal.id = words[1];
      exercise_.goals.push_back(std::move(goal));
    });
  }

  /// "ID of VARIANT >= FACTOR [x RUNG]"
  void speeds() {
    reader_.items([&](const std::string& item) {
      const std::vector<std::string> words = words_of(item);
      const bool form = (words.size() == 5 || (words.size() == 7 && words[5] == "x")) &&
                        words[1] == "of" && words[3] == ">=";
      const auto factor = form ? number_of<double>(words[4]) : std::nullopt;
      if (!factor || *factor <= 0) {
        reader_.fail("is no speed; allowed: '- ID of VARIANT >= FACTOR [x RUNG]'");
      }
      exercise_.speeds.push_back(
          {item, words[0], words[2], *factor, words.size() == 7 ? words[6] : words[2]});
    });
  }

  void solution() { exercise_.solution = reader_.block(); }
  void hole() { exercise_.hole = reader_.block(); }

  void attempt(const std::string& name, std::vector<WrongAttempt>& to) {
    reader_.next();
    WrongAttempt attempt{name, reader_.block(), ""};
    reader_.items([&](const std::string& item) {
      const Item parts = split(reader_, item);
      if (parts.key != "says" || parts.value.empty() || !attempt.says.empty()) {
        reader_.fail("is not what the verdict says; allowed, once: '- says: …'");
      }
      attempt.says = parts.value;
    });
    if (attempt.says.empty()) {
      reader_.fail(fmt::format("comes before what is said of '{}': '- says: …'", name));
    }
    to.push_back(std::move(attempt));
    need_heading();
  }

  void hints() {
    reader_.items([&](const std::string& item) {
      const Item parts = split(reader_, item);
      const std::size_t space = parts.key.find(' ');
      const std::string word = parts.key.substr(0, space);
      const auto key = named<HintKey>(word);
      std::string about = space == std::string::npos ? "" : parts.key.substr(space + 1);
      const bool needs = key == HintKey::check || key == HintKey::case_ ||
                         key == HintKey::mistake || key == HintKey::wrote;
      if (!key || !belongs(*key) || needs == about.empty() || parts.value.empty()) {
        reader_.fail(fmt::format("is no hint; allowed: '- KEY: TEXT' with KEY one of {}",
                                 exercise_.is_program() ? kKeysOfPrograms : kKeysOfKernels));
      }
      if (key == HintKey::mistake) {
        const auto kind = named<FindingKind>(about);
        if (!kind || !is_mistake(*kind) || kind == FindingKind::crash) {
          reader_.fail(
              fmt::format("names '{}', which is no kind of mistake; see tilestep inspect", about));
        }
      }
      if (key == HintKey::wrote) {
        if (about.size() < 3 || !about.starts_with('`') || !about.ends_with('`')) {
          reader_.fail("names code otherwise than in `…`");
        }
        about = about.substr(1, about.size() - 2);
      }
      exercise_.hints.push_back({*key, about, parts.value});
    });
  }

  /// Programs have some keys of their own, and lack others.
  bool belongs(HintKey key) const {
    constexpr HintKey kBoth[] = {HintKey::compile, HintKey::crash, HintKey::goal, HintKey::wrote,
                                 HintKey::otherwise};
    if (std::find(std::begin(kBoth), std::end(kBoth), key) != std::end(kBoth)) return true;
    const bool of_program = key == HintKey::mistake || key == HintKey::prints;
    return of_program == exercise_.is_program();
  }

  bool has_case(std::string_view name) const {
    return std::any_of(exercise_.cases.begin(), exercise_.cases.end(),
                       [&](const ExerciseCase& one) { return one.name == name; });
  }

  void check() {
    const std::pair<bool, std::string_view> needed[] = {
        {exercise_.is_program() || !exercise_.cases.empty(), "Cases"},
        {!exercise_.solution.empty(), "Solution"},
        {!exercise_.hole.empty(), "Hole"},
        {exercise_.wrong.size() >= kFewestWrong, "Wrong: … (three or more)"},
        {!exercise_.hints.empty(), "Hints"}};
    for (const auto& [there, name] : needed) {
      if (!there) reader_.refuse(fmt::format("has no section '{}'", name));
    }
    const std::pair<bool, std::string_view> of_kernels[] = {{!exercise_.cases.empty(), "Cases"},
                                                            {!exercise_.speeds.empty(), "Speed"},
                                                            {!exercise_.slow.empty(), "Slow: …"}};
    for (const auto& [there, name] : of_kernels) {
      if (there && exercise_.is_program()) {
        reader_.refuse(fmt::format("has a section '{}', which no program has", name));
      }
    }
    if (exercise_.hints.back().key != HintKey::otherwise) {
      reader_.refuse("has hints that do not end with '- otherwise: …'");
    }
    for (const Hint& hint : exercise_.hints) {
      if (hint.key == HintKey::case_ && !has_case(hint.about)) {
        reader_.refuse(fmt::format("has a hint on a case '{}' that it has not", hint.about));
      }
    }
    for (const ExerciseGoal& goal : exercise_.goals) {
      if (!goal.in_case.empty() && !has_case(goal.in_case)) {
        reader_.refuse(fmt::format("has a goal in a case '{}' that it has not", goal.in_case));
      }
    }
  }

  static constexpr std::string_view kSource = "- source: ", kProgram = "- program: ";
  static constexpr std::string_view kKeysOfKernels =
      "compile, bounds, barrier, order, unsafe, deadline, crash, check ID, case NAME, goal, speed, "
      "wrote `CODE`, otherwise";
  static constexpr std::string_view kKeysOfPrograms =
      "compile, mistake KIND, crash, prints, goal, wrote `CODE`, otherwise";

  Reader reader_;
  std::string folder_;  ///< of the file, up to its slash
  Exercise exercise_;
  std::vector<std::string_view> seen_;
};

/// How often `block` stands in `text` in whole lines, and where last.
struct Places {
  int count = 0;
  std::size_t last = 0;
};
Places places_of(std::string_view text, std::string_view block) {
  Places places;
  for (std::size_t at = text.find(block); at != std::string_view::npos;
       at = text.find(block, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    ++places.count;
    places.last = at;
  }
  return places;
}

/// Paragraphs as lines of a comment.
std::string as_comment(std::string_view text) {
  std::string lines;
  std::string line = "//";
  const auto end_line = [&] { lines += std::exchange(line, "//") + "\n"; };
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::vector<std::string> words = words_of(text.substr(0, end));
    if (words.empty()) {  // between paragraphs
      if (line != "//") end_line();
      end_line();
    }
    for (const std::string& word : words) {
      if (line.size() + 1 + word.size() > kCommentColumns && line != "//") end_line();
      line += " " + word;
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (line != "//") end_line();
  return lines;
}

}  // namespace

Exercise parse_exercise(std::string_view path, std::string_view text) {
  return Parser(path, text).take();
}

const std::vector<Exercise>& exercises() {
  static const std::vector<Exercise> all = [] {
    std::vector<Exercise> found;
    for (const Asset& asset : assets()) {
      if (asset.path.starts_with(kFolder) && asset.path.ends_with(".md")) {
        found.push_back(parse_exercise(asset.path, asset.text));
      }
    }
    std::sort(found.begin(), found.end(),
              [](const Exercise& a, const Exercise& b) { return a.id() < b.id(); });
    return found;
  }();
  return all;
}

const Exercise& exercise(std::string_view id) {
  const std::string_view lesson = id.substr(0, id.find('/'));
  std::string of_lesson, of_all;
  for (const Exercise& one : exercises()) {
    if (one.id() == id) return one;
    of_all += (of_all.empty() ? "" : ", ") + one.id();
    if (one.lesson == lesson) of_lesson += (of_lesson.empty() ? "" : ", ") + one.name;
  }
  if (of_lesson.empty()) {
    throw Error(fmt::format("there is no exercise '{}'; the exercises are: {}", id, of_all));
  }
  throw Error(fmt::format("there is no exercise '{}'; those of {} are: {}", id, lesson, of_lesson));
}

std::string with_code(const Exercise& exercise, std::string_view source, std::string_view code) {
  const Places places = places_of(source, exercise.solution);
  if (places.count != 1) {
    throw Error(fmt::format("the solution of {} occurs {} times in {}; it must occur there once",
                            exercise.id(), places.count, exercise.file()));
  }
  std::string text(source.substr(0, places.last));
  text += code;
  text += source.substr(places.last + exercise.solution.size());
  return text;
}

std::string with_code(const Exercise& exercise, std::string_view code) {
  return with_code(exercise, asset(exercise.file()), code);
}

std::string starter(const Exercise& exercise) {
  return fmt::format("{}{}\n//\n// {}\n//\n{}\n{}", kMark, exercise.id(), exercise.title,
                     as_comment(exercise.task), with_code(exercise, exercise.hole));
}

std::string exercise_id_of(std::string_view file_text) {
  const std::string_view first = trimmed(file_text.substr(0, file_text.find('\n')));
  if (!first.starts_with(kMark)) return {};
  return std::string(trimmed(first.substr(kMark.size())));
}

}  // namespace tilestep::lab

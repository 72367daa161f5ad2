#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "app/cli/exercise_check.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

std::string student_of(const fs::path& folder, const fs::path& file) {
  const fs::path below = file.lexically_relative(folder);
  const bool alone = std::next(below.begin()) == below.end();
  return alone ? file.stem().string() : below.begin()->string();
}

std::string without_spaces(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  return text;
}

/// Who has handed in what: students by exercise and text, of which nobody's is the exercise as it was given.
class Texts {
 public:
  explicit Texts(const fs::path& folder) : folder_(folder) {}
  void add(const CheckedFile& one) {
    const std::string text = without_spaces(one.text);
    const lab::Exercise* exercise = known_exercise(one.exercise);
    if (exercise == nullptr || text == without_spaces(lab::starter(*exercise))) return;
    students_[{one.exercise, text}].insert(student_of(folder_, one.file));
  }
  std::string same_as(const std::string& student, const std::string& exercise) const {
    std::set<std::string> others;
    for (const auto& [what, who] : students_) {
      if (what.first == exercise && who.contains(student)) others.insert(who.begin(), who.end());
    }
    others.erase(student);
    return fmt::format("{}", fmt::join(others, ", "));
  }

 private:
  const fs::path& folder_;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> students_;
};

}  // namespace

const lab::Exercise* known_exercise(const std::string& id) {
  const auto& all = lab::exercises();
  const auto one = std::find_if(all.begin(), all.end(),
                                [&](const lab::Exercise& each) { return each.id() == id; });
  return one == all.end() ? nullptr : &*one;
}

lab::Table class_table(const fs::path& folder, const std::vector<CheckedFile>& checked,
                       bool timed) {
  const auto points = [&](const CheckedFile& one) {
    const lab::Exercise* exercise = known_exercise(one.exercise);
    return exercise == nullptr ? 0 : lab::points_of(*exercise, one.verdict, timed).got;
  };
  std::map<std::string, std::map<std::string, const CheckedFile*>> best;
  std::set<std::string> exercises;
  Texts texts(folder);
  for (const CheckedFile& one : checked) {
    texts.add(one);
    const CheckedFile*& counts = best[student_of(folder, one.file)][one.exercise];
    if (counts == nullptr || points(one) > points(*counts)) counts = &one;
    if (known_exercise(one.exercise) != nullptr) exercises.insert(one.exercise);
  }
  lab::Table table{
      "class",
      "Exercises of a class",
      {lab::column("student", "student"), lab::column("exercise", "exercise"),
       lab::whole("points", "points"), lab::whole("of", "of"),
       lab::real("seconds", "seconds", "", 1), lab::column("same_text", "same text as")},
      {}};
  for (auto& [student, files] : best) {
    for (const std::string& id : exercises) files.try_emplace(id, nullptr);
    for (const auto& [id, file] : files) {
      std::vector<lab::Cell> row = {student, id, {}, {}, {}, {}};
      if (const lab::Exercise* one = known_exercise(id))
        row[3] = lab::points_of(*one, {}, timed).most;
      if (file != nullptr) {
        row[2] = points(*file);
        row[4] = file->seconds;
        row[5] = texts.same_as(student, id);
      }
      table.add(std::move(row));
    }
  }
  return table;
}

}  // namespace tilestep::app

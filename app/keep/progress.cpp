#include "app/keep/progress.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/file.hpp"
#include "app/keep/place.hpp"
#include "kernels/base/lab/json.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;
using lab::Place;
using nlohmann::json;

constexpr int kProgressVersion = 1;
constexpr std::size_t kMostProgressBytes = 1 << 20;
constexpr const char* kProgressMark = "tilestep_progress";

using Lesson = Progress::Lesson;
constexpr std::pair<const char*, std::set<std::string> Lesson::*> kMembers[] = {
    {"stops", &Lesson::stops},
    {"right", &Lesson::right},
    {"asked", &Lesson::asked},
    {"exercises", &Lesson::exercises},
    {"cases", &Lesson::cases}};

constexpr int kTry = 15;

/// Of the file at `path` for this process alone, as long as it lives.
class Lock {
 public:
  explicit Lock(const fs::path& path)
      : file_(::open((path.string() + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    if (file_ >= 0) ::flock(file_, LOCK_EX);
  }
  ~Lock() {
    if (file_ >= 0) ::close(file_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int file_;
};

int version_of(const Place& root) {
  return static_cast<int>(root.at(kProgressMark).whole<std::int64_t>(1));
}

}  // namespace

void Progress::add(const Progress& more) {
  for (const auto& [id, news] : more.lessons) {
    Lesson& mine = lessons[id];
    for (const auto& [name, member] : kMembers) {
      (mine.*member).insert((news.*member).begin(), (news.*member).end());
    }
  }
}

CasePoints points_of_cases(const std::set<std::string>& cases) {
  std::map<std::string, std::pair<int, int>> best;  // tries and points, by case
  CasePoints all;
  for (const std::string& one : cases) {
    const std::size_t colon = one.find(':'), equals = one.rfind(" = ");
    if (colon == std::string::npos || equals == std::string::npos) continue;
    auto& [tries, points] = best[one.substr(0, colon)];
    ++tries;
    ++all.tries;
    points = std::max(points, std::clamp(std::atoi(one.c_str() + equals + 3), 0, 100));
  }
  all.cases = static_cast<int>(best.size());
  for (const auto& [name, its] : best) {
    all.points += std::max(0, its.second - kTry * (its.first - 1));
  }
  return all;
}

std::string progress_text(const Progress& progress) {
  json all = json::object();
  for (const auto& [id, lesson] : progress.lessons) {
    for (const auto& [name, member] : kMembers) {
      // Few lessons have cases.
      if (member != &Lesson::cases || !lesson.cases.empty()) all[id][name] = lesson.*member;
    }
  }
  return json{{kProgressMark, kProgressVersion}, {"lessons", all}}.dump(
             1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

Progress progress_from(std::string_view text) {
  const json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) throw Error("it is not complete JSON");
  const Place root(parsed, "the progress");
  version_of(root);
  Progress progress;
  const Place lessons = root.at("lessons");
  if (!lessons.json().is_object()) lessons.refuse("an object with one member per lesson");
  for (const auto& [id, value] : lessons.json().items()) {
    const Place lesson = lessons.at(id);
    for (const auto& [name, member] : kMembers) {
      const auto list = lesson.find(name);
      for (std::size_t i = 0; list && i < list->size(); ++i) {
        (progress.lessons[id].*member).insert(list->at(i).text());
      }
    }
  }
  return progress;
}

std::optional<fs::path> progress_path() {
  const auto folder = state_folder();
  return folder ? std::optional(*folder / "progress.json") : std::nullopt;
}

Progress ProgressFile::load() {
  std::error_code failed;
  if (!path_ || !fs::exists(*path_, failed)) return {};
  try {
    const std::string text = read_file(*path_, kMostProgressBytes);
    const json parsed = json::parse(text, nullptr, false);
    if (!parsed.is_discarded() && version_of(Place(parsed, "the progress")) > kProgressVersion) {
      writable_ = false;
      remark_ = fmt::format(
          "the progress in '{}' is from a newer tilestep; it is left alone, and nothing is added",
          path_->string());
      return {};
    }
    return progress_from(text);
  } catch (const Error& error) {
    writable_ = false;
    if (error.code() == ExitCode::unavailable) {
      remark_ = fmt::format("{}; no progress is saved", error.what());
      return {};
    }
    const fs::path aside = aside_name(*path_);
    fs::rename(*path_, aside, failed);
    writable_ = !failed;
    remark_ = failed
                  ? fmt::format("the progress in '{}' is damaged ({}) and cannot be set aside: {}",
                                path_->string(), error.what(), failed.message())
                  : fmt::format("the progress was damaged ({}) and is set aside as '{}'",
                                error.what(), aside.string());
  }
  return {};
}

Progress ProgressFile::add(const Progress& more) {
  if (!path_ || !writable_) return more;
  try {
    make_folder(path_->parent_path());
    const Lock lock(*path_);
    const Progress before = load();
    Progress all = before;
    all.add(more);
    if (writable_ && all != before) write_file(*path_, progress_text(all));
    return all;
  } catch (const Error& error) {
    writable_ = false;
    remark_ = fmt::format("the progress was not saved: {}", error.what());
    return more;
  }
}

void ProgressFile::reset() {
  std::error_code failed;
  if (path_) fs::remove(*path_, failed);
  if (failed) {
    throw Error(fmt::format("'{}' cannot be removed: {}", path_->string(), failed.message()),
                ExitCode::unavailable);
  }
}

}  // namespace tilestep::app

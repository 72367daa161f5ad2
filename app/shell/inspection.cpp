#include "app/shell/inspection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "app/keep/place.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/workbench/exercise.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

constexpr double kLook_s = 0.25;
constexpr std::chrono::minutes kLongest{4};

/// Of `tilestep exercise check FILE --json`; nothing: it was not judged.
std::optional<StepVerdict> verdict_in(const std::string& output) {
  const auto json = nlohmann::json::parse(output, nullptr, false);
  const auto& one = json.is_array() && !json.empty() ? json.front() : json;
  if (!one.is_object() || !one.contains("ok") || !one.at("ok").is_boolean()) return std::nullopt;
  const auto text = [&](const char* name) {
    const auto found = one.find(name);
    return found != one.end() && found->is_string() ? lab::shown(found->get<std::string>())
                                                    : std::string();
  };
  return StepVerdict{one.at("ok"), text("sentence"), text("hint")};
}

/// "first-steps/6-count-dice" where the text is that exercise's.
std::string step_of(const std::string& source) {
  const std::string id = lab::exercise_id_of(source);
  if (!id.starts_with(std::string(lab::kFirstSteps) + "/")) return {};
  const auto& all = lab::exercises();
  const bool known =
      std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.id() == id; });
  return known ? id : std::string();
}

}  // namespace

void Inspection::stop() {
  if (stops_) *stops_ = true;
  if (ran_.valid()) ran_.wait();
  ran_ = {};
}

void Inspection::open(fs::path file, std::vector<std::string> words) {
  close();
  words_ = std::move(words);
  now_.file = std::move(file);
  run();
}

void Inspection::close() {
  stop();
  now_ = {};
  has_report_ = trusted_ = false;
  failure_.clear();
  exercise_.clear();
  verdict_.reset();
  requests_.clear();
  paths_.clear();
  timeline_ = {};
  chosen_ = -1;
  line_ = 0;
}

void Inspection::show(Inspected inspected) {
  stop();
  now_ = std::move(inspected);
  take(std::move(now_.report));
}

void Inspection::trust() {
  trusted_ = true;
  run();
}

bool Inspection::needs_trust() const {
  return !trusted_ && failure_.find("--trust") != std::string::npos;
}

void Inspection::run() {
  stop();
  failure_.clear();
  std::error_code error;
  saved_ = fs::last_write_time(now_.file, error);
  try {
    now_.source = read_source(now_.file);
  } catch (const Error& why) {
    failure_ = why.what();
    return;
  }
  stops_ = std::make_shared<std::atomic<bool>>(false);
  std::vector<std::string> words = {program_, "inspect", now_.file.string(), "--json"};
  if (trusted_) words.emplace_back("--trust");
  words.insert(words.end(), words_.begin(), words_.end());
  exercise_ = step_of(now_.source);
  std::vector<std::string> check;
  if (!exercise_.empty()) {
    check = {program_, "exercise", "check", now_.file.string(), "--json"};
    if (trusted_) check.emplace_back("--trust");
  }
  ran_ = std::async(std::launch::async, [words, check, stops = stops_] {
    const auto stop = [&] { return stops->load(); };
    Answers answers{workbench::run_program(words, kLongest, 0, stop), {}};
    if (!check.empty()) answers.checked = workbench::run_program(check, kLongest, 0, stop);
    return answers;
  });
}

void Inspection::take(lab::Report report) {
  now_.report = std::move(report);
  exercise_ = step_of(now_.source);
  // A main that was added stands behind the file's text.
  if (const auto main = now_.report.trace->find("main");
      main != now_.report.trace->end() && main->is_string())
    now_.source += lab::printable(main->get<std::string>());
  std::map<std::tuple<int, bool, std::string>, scenes::InspectedRequest> worst;
  for (scenes::InspectedRequest& each : scenes::inspected_requests(now_.report)) {
    const auto [kept, fresh] = worst.try_emplace({each.line, each.shared, each.use}, each);
    const auto spare = [](const auto& of) { return of.moved - of.least; };
    if (!fresh && spare(each) > spare(kept->second)) kept->second = std::move(each);
  }
  has_report_ = true;
  failure_.clear();
  requests_.clear();
  for (auto& [place, request] : worst) requests_.push_back(std::move(request));
  paths_.clear();
  for (scenes::InspectedPaths& each : scenes::inspected_paths(now_.report)) {
    const bool again = std::any_of(paths_.begin(), paths_.end(),
                                   [&](const auto& other) { return other.kernel == each.kernel; });
    if (!again) paths_.push_back(std::move(each));
  }
  timeline_ = scenes::inspected_timeline(now_.report);
  // What was on show stays; at first it is the first thing that was found.
  const lab::Table* findings = now_.report.table("findings");
  int first = 0;
  for (std::size_t row = 0; findings != nullptr && row < findings->rows.size() && first == 0;
       ++row) {
    if (findings->columns.size() < 3) break;
    if (const auto* line = std::get_if<double>(&findings->rows[row][2]))
      first = static_cast<int>(*line);
  }
  chosen_ = -1;
  choose_line(line_ > 0 ? line_ : first > 0 ? first : requests_.empty() ? 0 : requests_[0].line);
  if (chosen_ < 0 && pictures() > 0) chosen_ = 0;
}

const scenes::InspectedRequest* Inspection::chosen_request() const {
  const auto at = static_cast<std::size_t>(chosen_);
  return chosen_ >= 0 && at < requests_.size() ? &requests_[at] : nullptr;
}

const scenes::InspectedPaths* Inspection::chosen_paths() const {
  if (chosen_ < 0 || chosen_request() != nullptr) return nullptr;
  const std::size_t at = static_cast<std::size_t>(chosen_) - requests_.size();
  return at < paths_.size() ? &paths_[at] : nullptr;
}

void Inspection::choose(int picture) {
  if (picture < 0 || picture >= pictures()) return;
  chosen_ = picture;
  if (const auto* request = chosen_request()) line_ = request->line;
  if (const auto* paths = chosen_paths()) {
    const auto first = std::find_if(paths->lines.begin(), paths->lines.end(),
                                    [](const auto& line) { return line.idle() > 0; });
    line_ = first->line;
  }
}

void Inspection::choose_line(int line) {
  line_ = line;
  // Of several of a line the one with the most to spare.
  int best = -1;
  for (int i = 0; i < static_cast<int>(requests_.size()); ++i) {
    const auto& each = requests_[static_cast<std::size_t>(i)];
    if (each.line != line) continue;
    const auto spare = [&](int of) {
      return requests_[static_cast<std::size_t>(of)].moved -
             requests_[static_cast<std::size_t>(of)].least;
    };
    if (best < 0 || spare(i) > spare(best)) best = i;
  }
  for (std::size_t i = 0; i < paths_.size() && best < 0; ++i) {
    const auto& lines = paths_[i].lines;
    const bool has = std::any_of(lines.begin(), lines.end(),
                                 [&](const auto& each) { return each.line == line; });
    if (has) best = static_cast<int>(requests_.size() + i);
  }
  if (best >= 0) chosen_ = best;
}

bool Inspection::update(double now_s) {
  if (now_.file.empty()) return false;
  bool changed = false;
  if (ran_.valid() && ran_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    changed = true;
    has_report_ = false;
    verdict_.reset();
    try {
      const Answers answers = ran_.get();
      const workbench::Ran& ran = answers.inspected;
      if (!exercise_.empty()) verdict_ = verdict_in(answers.checked.output);
      const auto json = nlohmann::json::parse(ran.output, nullptr, false);
      if (!json.is_discarded() && json.is_object()) {
        take(lab::report_from_json(json));
      } else {
        std::string said = ran.output.substr(0, 4000);
        if (said.starts_with("tilestep: ")) said.erase(0, 10);
        failure_ = ran.timed_out ? "the program took too long" : lab::printable(said);
        if (failure_.empty()) failure_ = "the program left no report";
      }
    } catch (const std::exception& error) {
      failure_ = error.what();
    }
  }
  if (ran_.valid() || now_s < looked_s_ + kLook_s) return changed;
  looked_s_ = now_s;
  std::error_code error;
  const auto saved = fs::last_write_time(now_.file, error);
  if (error || saved == saved_ || saved_ == fs::file_time_type{}) return changed;
  run();
  return true;
}

std::optional<double> Inspection::due_s(double now_s) const {
  if (now_.file.empty()) return std::nullopt;
  return now_s + kLook_s;
}

}  // namespace tilestep::app

#include "app/keep/capsule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "app/file.hpp"
#include "app/keep/guided.hpp"
#include "app/keep/place.hpp"
#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/nesting.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/workbench/sources.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

using nlohmann::json;

constexpr const char* kCapsuleMark = "tilestep_capsule";
constexpr std::int64_t kCapsuleVersion = 1;
constexpr int kMostCursor = 1'000'000;
constexpr std::size_t kMostNotes = std::size_t{1} << 20;

json guesses_json(const std::vector<scenes::Guess>& guesses) {
  json list = json::array();
  for (const scenes::Guess& guess : guesses) {
    list.push_back({{"step", guess.asked.tile},
                    {"phase", guess.asked.phase},
                    {"choice", guess.choice},
                    {"value", lab::number_to_json(guess.value)}});
  }
  return list;
}

scenes::Guess guess_from(const lab::Place& at) {
  const lab::Place step = at.at("step"), phase = at.at("phase"), choice = at.at("choice");
  scenes::Guess guess;
  guess.asked = {step.whole<int>(0, kMostCursor), phase.whole<int>(0, kMostCursor)};
  guess.choice = choice.whole<int>(-1, 3);
  if (const auto value = at.find("value")) guess.value = value->real<double>();
  return guess;
}

std::string text_of(const lab::Place& root, std::string_view member) {
  const auto at = root.find(member);
  if (!at) return {};
  std::string text = at->text();
  if (text.size() > kMostNotes) at->fail(fmt::format("is longer than {} bytes", kMostNotes));
  return text;
}

/// What is not JSON: cut off, or no capsule at all.
json parsed_capsule(std::string_view text, std::string_view where) {
  if (lab::nested_too_deep(text)) {
    throw Error(fmt::format("{} is not a capsule: it nests more than {} objects and lists", where,
                            lab::kMostNesting));
  }
  try {
    return json::parse(text);
  } catch (const json::exception& error) {  // also of a number that no double holds
    const auto* broken = dynamic_cast<const json::parse_error*>(&error);
    // Nothing is wrong but that it ends.
    const bool cut = broken != nullptr && broken->byte >= text.size();
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (cut && first != text.npos && text[first] == '{') {
      throw Error(
          fmt::format("{} is cut off after {} bytes: save the capsule again", where, text.size()));
    }
    throw Error(
        fmt::format("{} is not a capsule: it is not JSON (a capsule is a file that tilestep "
                    "saved, *{})",
                    where, kCapsuleEnding));
  }
}

/// Throws Error unless this is a capsule of this version.
void check_version(const json& capsule, std::string_view where) {
  if (!capsule.is_object() || !capsule.contains(kCapsuleMark)) {
    throw Error(
        fmt::format("{} is not a capsule: it has no member '{}' (a capsule is a file that "
                    "tilestep saved, *{})",
                    where, kCapsuleMark, kCapsuleEnding));
  }
  const lab::Place root(capsule, where);
  const lab::Place mark = root.at(kCapsuleMark);
  const auto version = mark.whole<std::int64_t>(1);
  if (version > kCapsuleVersion) {
    throw Error(
        fmt::format("{} was made by a newer tilestep{}: its version is {}, and this one "
                    "reads {}",
                    where,
                    capsule.contains("program") && capsule["program"].is_string()
                        ? " (" + capsule["program"].get<std::string>() + ")"
                        : "",
                    version, kCapsuleVersion));
  }
}

[[noreturn]] void refuse_capsule(std::string_view where, const Error& error) {
  throw Error(fmt::format("{} cannot be opened: {}", where, error.what()));
}

lab::Report report_of(const lab::Place& at, std::string_view where) {
  try {
    return lab::report_from_json(at.json());
  } catch (const Error& error) {
    refuse_capsule(where, error);
  }
}

/// Today's path of a source of `lesson`, whose files may have moved to another folder of it since. Throws Error for
/// what is none.
std::string source_at(const std::string& path, std::string_view lesson) {
  namespace fs = std::filesystem;
  const std::vector<std::string> sources = workbench::editable_sources(lesson);
  const auto folder = [](const fs::path& source) {  // kernels/chapter/lesson
    fs::path first;
    int depth = 0;
    for (const fs::path& part : source) {
      if (depth++ < 3) first /= part;
    }
    return first;
  };
  const auto found = std::find_if(sources.begin(), sources.end(), [&](const fs::path& source) {
    return source.filename() == fs::path(path).filename() && folder(source) == folder(path);
  });
  if (found != sources.end()) return *found;
  throw Error(fmt::format("its path '{}' is not a source of '{}'; allowed: {}",
                          lab::shown_value(path), lesson, fmt::join(sources, ", ")));
}

/// Throws Error for what is not the source that `report` is of. Both get its path of today.
lab::KernelEdit kernel_from(const lab::Place& at, lab::Report& report) {
  lab::KernelEdit kernel;
  const std::string path = at.at("path").text();
  kernel.path = source_at(path, report.lesson);
  kernel.text = at.at("text").text();
  if (const std::string why = lab::why_no_source(kernel.text); !why.empty()) {
    throw Error("it " + why);
  }
  const std::string hash = at.at("hash").text();
  if (hash != lab::hash_of(kernel.text)) throw Error("its hash does not match its text");
  if (!report.kernel || report.kernel->path != path || report.kernel->hash != hash) {
    throw Error("the report beside it is of another kernel");
  }
  report.kernel->path = kernel.path;
  return kernel;
}

/// The picture is good without it: what is wrong with a kernel is said, and nothing of it is opened.
void read_kernel(const lab::Place& root, std::string_view where, Capsule& capsule) {
  try {
    if (const auto at = root.find("kernel")) capsule.kernel = kernel_from(*at, capsule.report);
  } catch (const Error& error) {
    capsule.kernel_refused = fmt::format("the kernel in {} is not opened: {}", where, error.what());
  }
}

/// Throws Error unless lesson, settings, report and trace belong together. The report's settings are then those of today's
/// knobs.
void check_whole(Capsule& capsule, const lab::Place& root, std::string_view where) {
  const lab::Place lesson = root.at("lesson"), settings = root.at("settings");
  const std::string named = lesson.text();
  try {
    const lab::Knobs& knobs = tilestep::lesson(named).knobs();
    if (capsule.report.lesson != named) {
      throw Error(
          fmt::format("its report is of the lesson '{}', not '{}'", capsule.report.lesson, named));
    }
    const lab::Settings wanted = knobs.completed(lab::settings_from_json(settings));
    capsule.report.params = knobs.completed(capsule.report.params);
    if (capsule.report.params != wanted) {
      throw Error("its report has other settings than it names");
    }
    if (capsule.bench && capsule.bench->lesson != named) {
      throw Error(
          fmt::format("its bench is of the lesson '{}', not '{}'", capsule.bench->lesson, named));
    }
    scene_of(capsule.report);
  } catch (const Error& error) {
    refuse_capsule(where, error);
  }
}

void find_picks(const picture::Box& box, const std::map<std::string, int>& wanted,
                std::map<picture::Name, int>& found) {
  for (const picture::Mark& mark : box.marks) {
    const picture::Items* items = picture::items_of(mark);
    const auto* curve = std::get_if<picture::Curve>(&mark);
    for (const picture::Act& act : {items == nullptr ? picture::Act{} : items->act,
                                    curve == nullptr ? picture::Act{} : curve->act}) {
      if (act.kind != picture::Act::pick && act.kind != picture::Act::set) continue;
      const auto at = wanted.find(std::string(act.what.text()));
      if (at != wanted.end()) found[act.what] = at->second;
    }
  }
  for (const picture::Box& inner : box.boxes) find_picks(inner, wanted, found);
}

}  // namespace

Capsule capsule_of(const lab::Report& report, const std::optional<lab::KernelEdit>& kernel) {
  Capsule capsule;
  capsule.report = report;
  if (kernel && report.kernel && report.kernel->hash == lab::hash_of(kernel->text)) {
    capsule.kernel = kernel;
  }
  capsule.made_at = day_of_today();
  capsule.program = TILESTEP_VERSION;
  return capsule;
}

std::string capsule_text(const Capsule& capsule) {
  json text = {{kCapsuleMark, kCapsuleVersion},
               {"lesson", capsule.report.lesson},
               {"settings", lab::to_json(capsule.report.params)},
               {"step", capsule.step},
               {"phase", capsule.phase < 0 ? json() : json(capsule.phase)},
               {"picks", capsule.picks},
               {"guesses", guesses_json(capsule.guesses)},
               {"report", lab::to_json(capsule.report)},
               {"notes", capsule.notes},
               {"made_at", capsule.made_at},
               {"program", capsule.program}};
  if (capsule.bench) text["bench"] = lab::to_json(*capsule.bench);
  if (capsule.kernel) {
    text["kernel"] = {{"path", capsule.kernel->path},
                      {"text", capsule.kernel->text},
                      {"hash", lab::hash_of(capsule.kernel->text)}};
  }
  return text.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Capsule capsule_from_text(std::string_view text, std::string_view where) {
  const json parsed = parsed_capsule(text, where);
  check_version(parsed, where);
  const lab::Place root(parsed, where);
  Capsule capsule;
  const lab::Place report = root.at("report");
  capsule.report = report_of(report, where);
  if (const auto bench = root.find("bench")) capsule.bench = report_of(*bench, where);
  const lab::Place step = root.at("step");
  capsule.step = step.whole<int>(0, kMostCursor);
  if (const auto phase = root.find("phase")) capsule.phase = phase->whole<int>(-1, kMostCursor);
  if (const auto picks = root.find("picks")) {
    if (!picks->json().is_object()) picks->refuse("a JSON object of names and numbers");
    for (const auto& [name, value] : picks->json().items()) {
      const lab::Place index = picks->at(name);
      capsule.picks[name] = index.whole<int>(-1, kMostCursor);
    }
  }
  if (const auto guesses = root.find("guesses")) {
    for (std::size_t i = 0; i < guesses->size(); ++i) {
      const lab::Place guess = guesses->at(i);
      capsule.guesses.push_back(guess_from(guess));
    }
  }
  capsule.notes = text_of(root, "notes");
  capsule.made_at = text_of(root, "made_at");
  capsule.program = text_of(root, "program");
  check_whole(capsule, root, where);
  read_kernel(root, where, capsule);
  return capsule;
}

Capsule read_capsule(const std::filesystem::path& path) {
  return capsule_from_text(read_file(path, kMostCapsuleBytes),
                           fmt::format("the file '{}'", path.string()));
}

void require_capsule_output(const std::filesystem::path& path, bool force) {
  const std::string mark = fmt::format("\"{}\"", kCapsuleMark);
  std::error_code failed;
  std::string there;
  if (std::filesystem::is_regular_file(path, failed) &&
      std::filesystem::file_size(path, failed) <= kMostCapsuleBytes) {
    there = read_file(path, kMostCapsuleBytes);
  }
  require_output(path, force, there.find(mark) == there.npos ? mark : there);
}

void write_capsule(const std::filesystem::path& path, const Capsule& capsule, bool force) {
  require_capsule_output(path, force);
  write_file(path, capsule_text(capsule));
}

bool names_capsule(std::string_view argument) {
  return argument.ends_with(".json") || argument.find('/') != argument.npos;
}

scenes::Cursor cursor_of(const Capsule& capsule, const scenes::StepAxis& axis) {
  const int step = std::clamp(capsule.step, 0, axis.tiles);
  const int last = axis.last_phase(step);
  const bool inside = step > 0 && capsule.phase >= 0 && capsule.phase < last;
  return {step, inside ? capsule.phase : last};
}

std::map<picture::Name, int> picks_of(const Capsule& capsule, const scenes::Scene& scene,
                                      scenes::Cursor cursor) {
  std::map<picture::Name, int> found;
  if (capsule.picks.empty()) return found;
  find_picks(scene.picture(scene.extent(), {cursor}).root, capsule.picks, found);
  return found;
}

}  // namespace tilestep::app

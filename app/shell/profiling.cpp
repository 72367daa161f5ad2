#include "app/shell/profiling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>

#include "app/file.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::app {
namespace {

using picture::TimelineLane;
using picture::TimelineSpan;
using profile::Event;
using profile::Kind;

constexpr int kMostThreads = 3, kMostLanes = 20, kMostTones = 6;
constexpr std::string_view kExamples = "assets/profiles/";

double us_of(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-3;
}

/// Makes the lanes, and notes where each event went.
class Lanes {
 public:
  explicit Lanes(Profiled& profiled) : profiled_(profiled), trace_(profiled.trace) {
    profiled_.places.assign(trace_.events.size(), {-1, -1});
    for (const std::string& name : trace_.names)
      profiled_.timeline.names.push_back(profile::short_name(name));
    std::map<int, int> calls;  // by thread
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      by_track_[event.track].push_back(static_cast<int>(i));
      if (!profile::is_work(event.kind)) calls[event.track] += event.kind == Kind::call ? 1000 : 1;
    }
    for (const auto& [track, count] : calls) threads_.emplace_back(track, count);
    std::stable_sort(threads_.begin(), threads_.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
  }

  void make() {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const int track = threads_[i].first;
      const std::string& name = trace_.tracks[static_cast<std::size_t>(track)].name;
      if (i >= kMostThreads) {
        ++profiled_.lanes_left_out;
        continue;
      }
      add(
          track, name + ", ranges", [](const Event& each) { return each.kind == Kind::range; },
          true);
      add(
          track, name + ", operators", [](const Event& each) { return each.kind == Kind::op; },
          true);
      add(
          track, name + ", CUDA calls", [](const Event& each) { return each.kind == Kind::call; },
          false);
    }
    for (std::size_t track = 0; track < trace_.tracks.size(); ++track) {
      if (trace_.tracks[track].of_device)
        add(
            static_cast<int>(track), trace_.tracks[track].name, [](const Event&) { return true; },
            false);
    }
  }

 private:
  /// `outermost`: only those that no other one encloses.
  template <class Takes>
  void add(int track, const std::string& name, const Takes& takes, bool outermost) {
    std::vector<TimelineSpan> spans;
    std::int64_t until_ns = -1;
    for (const int index : by_track_[track]) {
      const Event& event = trace_.events[static_cast<std::size_t>(index)];
      if (!takes(event) || (outermost && event.begin_ns < until_ns)) continue;
      until_ns = event.end_ns;
      constexpr std::uint8_t kCopies = 4;
      const bool copies = event.kind == Kind::copy || event.kind == Kind::fill;
      spans.push_back({us_of(event.begin_ns), us_of(event.end_ns), event.name, index,
                       copies ? kCopies : profiled_.tone_of(event.name)});
    }
    if (spans.empty()) return;
    if (std::ssize(profiled_.timeline.lanes) >= kMostLanes) {
      ++profiled_.lanes_left_out;
      return;
    }
    const int lane = static_cast<int>(profiled_.timeline.lanes.size());
    // Work of a device that has no tone of its own has this one; what a host does stands back.
    constexpr std::uint8_t kWork = 5;
    const bool device = trace_.tracks[static_cast<std::size_t>(track)].of_device;
    profiled_.timeline.lanes.emplace_back(name, std::move(spans), device ? kWork : std::uint8_t{0});
    int place = 0;
    for (const TimelineSpan& span : profiled_.timeline.lanes.back().spans())
      profiled_.places[static_cast<std::size_t>(span.id)] = {lane, place++};
  }

  Profiled& profiled_;
  const profile::Trace& trace_;
  std::map<int, std::vector<int>> by_track_;
  std::vector<std::pair<int, int>> threads_;
};

std::shared_ptr<const Profiled> made_of(const std::filesystem::path& file, profile::Trace trace,
                                        std::optional<profile::Stretch> stretch) {
  auto made = std::make_shared<Profiled>();
  made->file = file;
  made->trace = std::move(trace);
  made->numbers = profile::numbers_of(made->trace, stretch);
  made->answers = profile::answers_of(made->trace, made->numbers);
  made->summary = profile::report_of(made->trace, made->numbers, 0).summary;
  Lanes(*made).make();
  return made;
}

}  // namespace

std::uint8_t Profiled::tone_of(int name) const {
  constexpr std::uint8_t kWaits = 6;  // vermillion: what stops a host is seen
  for (const profile::WaitUse& wait : numbers.waits) {
    if (wait.name == name) return kWaits;
  }
  for (int i = 0; i < kMostTones && i < static_cast<int>(numbers.kernels.size()); ++i) {
    if (numbers.kernels[static_cast<std::size_t>(i)].name == name) return picture::category_tone(i);
  }
  return 0;
}

std::string Profiled::said_of(int index) const {
  const Event& event = trace.events[static_cast<std::size_t>(index)];
  std::string said = fmt::format(
      "{}: {} from {} on, {}", timeline.names[static_cast<std::size_t>(event.name)],
      profile::time_of(event.ns()), profile::time_of(event.begin_ns), trace.track_of(event).name);
  std::string more;
  const auto add = [&](const std::string& words) { more += (more.empty() ? "" : "; ") + words; };
  if (event.bytes >= 0) add(fmt::format("{} bytes", event.bytes));
  if (event.op >= 0) {
    const Event& op = trace.events[static_cast<std::size_t>(event.op)];
    const std::string dims =
        op.shape < 0 ? std::string() : " " + trace.shapes[static_cast<std::size_t>(op.shape)].dims;
    add("in " + trace.name_of(op) + dims);
  }
  if (event.call >= 0) {
    const Event& call = trace.events[static_cast<std::size_t>(event.call)];
    add(fmt::format("{} began {} before", trace.name_of(call),
                    profile::time_of(event.begin_ns - call.begin_ns)));
  }
  if (event.launch >= 0) {
    const profile::Launch& launch = trace.launches[static_cast<std::size_t>(event.launch)];
    if (launch.grid[0] > 0) {
      add(fmt::format("grid {}×{}×{} of {}×{}×{} threads", launch.grid[0],
                      std::max<std::int64_t>(launch.grid[1], 1),
                      std::max<std::int64_t>(launch.grid[2], 1), launch.block[0],
                      std::max<std::int64_t>(launch.block[1], 1),
                      std::max<std::int64_t>(launch.block[2], 1)));
    }
    if (launch.registers >= 0) add(fmt::format("{} registers", launch.registers));
  }
  if (event.shape >= 0) add(trace.shapes[static_cast<std::size_t>(event.shape)].dims);
  return more.empty() ? said : said + "\n" + more;
}

std::shared_ptr<const Profiled> open_profile(const std::filesystem::path& file,
                                             std::optional<profile::Stretch> stretch) {
  return made_of(file, profile::read_trace(file), stretch);
}

std::vector<std::string> profile_examples() {
  std::vector<std::string> names;
  for (const lab::Asset& asset : lab::assets()) {
    if (!asset.path.starts_with(kExamples) || !asset.path.ends_with(".json")) continue;
    const auto name = asset.path.substr(kExamples.size());
    names.emplace_back(name.substr(0, name.size() - 5));
  }
  return names;
}

std::string_view profile_example_text(const std::string& name) {
  std::string all;
  for (const std::string& each : profile_examples()) {
    if (each == name) return lab::asset(std::string(kExamples) + name + ".json");
    all += (all.empty() ? "" : ", ") + each;
  }
  throw Error(fmt::format("there is no example '{}'; allowed: {}", name, all));
}

std::shared_ptr<const Profiled> open_profile_example(const std::string& name) {
  const std::string_view text = profile_example_text(name);
  const ScratchFolder folder;
  const std::filesystem::path file = folder.path() / (name + ".json");
  write_file(file, text);
  return made_of(name + ".json", profile::read_trace(file), {});
}

bool holds_trace(const std::filesystem::path& file) {
  if (!profile::names_trace(file.string())) return false;
  if (file.extension() != ".json") return true;
  std::string begin(1 << 16, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  const auto first = begin.find_first_not_of(" \t\r\n");
  return first != begin.npos &&
         (begin[first] == '[' || begin.find("\"traceEvents\"") != begin.npos);
}

void Profiling::open(const std::filesystem::path& file) {
  close();
  file_ = file;
  read_ = std::async(std::launch::async, [file] { return open_profile(file); });
}

void Profiling::open_example(const std::string& name) {
  close();
  file_ = name + ".json";
  read_ = std::async(std::launch::async, [name] { return open_profile_example(name); });
}

void Profiling::show(std::shared_ptr<const Profiled> profiled) {
  close();
  shown_ = std::move(profiled);
  file_ = shown_->file;
  show_all();
}

void Profiling::close() {
  if (read_.valid()) read_.wait();
  *this = Profiling();
}

bool Profiling::update() {
  if (!read_.valid() || read_.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return false;
  try {
    shown_ = read_.get();
    show_all();
  } catch (const std::bad_alloc&) {
    failure_ = "there is not enough memory for this trace; record fewer steps of the program";
  } catch (const std::exception& error) {
    failure_ = error.what();
  }
  return true;
}

void Profiling::ask(int which) {
  if (!shown_ || which < 0 || which >= std::ssize(shown_->answers)) return;
  question = which;
  kernels = false;
  scrolls = 3;
  const profile::Answer& answer = shown_->answers[static_cast<std::size_t>(which)];
  // With neighbours on both sides, so that one sees where it stands.
  const bool whole = answer.shown == shown_->numbers.stretch;
  const std::int64_t room = whole ? 0 : std::max<std::int64_t>(2 * answer.shown.ns(), 2000);
  view.show(us_of(answer.shown.from_ns - room), us_of(answer.shown.to_ns + room),
            shown_->timeline.range_us());
  view.lane = view.span = -1;
  lit = answer.kernel;
  if (answer.event < 0) return;
  const auto [lane, span] = shown_->places[static_cast<std::size_t>(answer.event)];
  if (lane >= 0) pin(lane, span);
}

void Profiling::show_all() {
  if (!shown_) return;
  const profile::Stretch& all = shown_->numbers.stretch;
  view.show(us_of(all.from_ns), us_of(all.to_ns), shown_->timeline.range_us());
  question = -1;
}

void Profiling::next_gap() {
  if (!shown_) return;
  const auto& gaps = shown_->numbers.gaps;
  const profile::Gap *next = nullptr, *first = nullptr;
  const double middle = (view.from_us + view.to_us) / 2;
  for (const profile::Gap& gap : gaps) {
    if (!gap.late && shown_->numbers.late_gaps.count > 0) continue;
    if (first == nullptr) first = &gap;
    if (next == nullptr && us_of(gap.idle.from_ns + gap.idle.to_ns) / 2 > middle + 1e-3)
      next = &gap;
  }
  if (next == nullptr) next = first;
  if (next == nullptr) return;
  const double from = us_of(next->idle.from_ns), to = us_of(next->idle.to_ns),
               room = 2 * std::max(to - from, 1.0);
  const double before = us_of(next->idle.from_ns + next->idle.to_ns) / 2;
  view.from_us = before - room;
  view.to_us = before + room;
  view.pan(0, shown_->timeline.range_us());
}

void Profiling::light(int name) {
  lit = lit == name ? -1 : name;
  view.lane = view.span = -1;
}

void Profiling::pin(int lane, int span) {
  view.lane = lane;
  view.span = span;
  lit = lane < 0 ? -1
                 : shown_->timeline.lanes[static_cast<std::size_t>(lane)]
                       .spans()[static_cast<std::size_t>(span)]
                       .name;
}

}  // namespace tilestep::app

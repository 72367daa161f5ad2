#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "kernels/base/inspect/run.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/names.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/simt/call_sites.hpp"
#include "kernels/base/simt/device.hpp"
#include "kernels/base/workbench/fault_lines.hpp"

namespace tilestep::inspect {
namespace {

/// Requests that move at least this much of what they need, and so much more in all, are worth a word.
constexpr double kMuch = 2;
constexpr std::uint64_t kEnough = 64;

struct Lesson {
  Kind kind;
  const char* lesson;
};
/// Which lesson shows it. Its exercises have the mistake to mend.
constexpr Lesson kLessons[] = {
    {Kind::bounds, "coalescing"},           {Kind::coverage, "coalescing"},
    {Kind::coalescing, "coalescing"},       {Kind::bank_conflict, "coalescing"},
    {Kind::shared_race, "tiling"},          {Kind::barrier, "tiling"},
    {Kind::uninitialized, "tiling"},        {Kind::global_race, "moe-routing"},
    {Kind::order, "accumulator-precision"},
};

std::string_view lesson_of(Kind kind) {
  for (const Lesson& each : kLessons) {
    if (each.kind == kind) return each.lesson;
  }
  return {};
}

/// Lines of places, looked up all at once: that takes a program.
class Lines {
 public:
  void ask(const std::vector<const void*>& callers) {
    for (const void* each : callers) line_[each] = 0;
  }
  void look_up(const workbench::EditedModule& module) {
    std::vector<const void*> all;
    for (const auto& [address, line] : line_) all.push_back(address);
    const std::vector<int> lines = workbench::lines_of(all, module);
    for (std::size_t i = 0; i < all.size(); ++i) line_[all[i]] = lines[i];
  }
  /// The innermost that is of the source.
  unsigned of(const std::vector<const void*>& callers) const {
    for (const void* each : callers) {
      if (const auto found = line_.find(each); found != line_.end() && found->second > 0)
        return static_cast<unsigned>(found->second);
    }
    return 0;
  }

 private:
  std::map<const void*, int> line_;
};

/// All that a line does to a space of memory in a launch.
using Place = std::tuple<int, unsigned, Space, Use,
                         std::uint32_t>;  // launch, line, space, use, bytes of a lane

void join(Traffic& to, const Traffic& more) {
  const bool worse =
      to.requests == 0 || more.worst_moved - more.worst_least > to.worst_moved - to.worst_least;
  const Traffic before = to;
  if (worse) to = more;
  to.requests = before.requests + more.requests;
  to.lanes = before.lanes + more.lanes;
  to.moved = before.moved + more.moved;
  to.least = before.least + more.least;
  to.wanted = before.wanted + more.wanted;
}

constexpr const char* name_of_space(Space space) {
  return space == Space::shared ? "shared" : "global";
}
constexpr const char* name_of_use(Use use) {
  return use == Use::read ? "load" : use == Use::write ? "store" : "atomic";
}

class Writer {
 public:
  Writer(const Session& session, const std::string& module, int status, std::string printed)
      : session_(session),
        module_{module, session.options().source},
        status_(status),
        printed_(std::move(printed)) {}

  lab::Report report() {
    look_up();
    gather();
    findings_ = session_.findings();
    for (Finding& each : findings_) {
      if (each.line == 0) each.line = lines_.of(each.here);
      if (each.other_line == 0) each.other_line = lines_.of(each.there);
    }
    slow();
    drop_doubles();
    lab::Report report;
    report.lesson = "inspect";
    report.device.backend = "emulated";
    report.device.name = "CPU";
    report.add(findings());
    report.add(launches());
    report.add(accesses());
    report.add(events());
    const auto mistakes = std::count_if(findings_.begin(), findings_.end(),
                                        [](const Finding& each) { return is_mistake(each.kind); });
    report.add(lab::none_wrong("mistakes", mistakes,
                               "what the program does wrong, whether its results show it or not"));
    report.add(lab::equal("exit status", status_, 0, "of its main"));
    report.summary = fmt::format(
        "{} {}: {}, {}.",
        lab::plural(static_cast<std::int64_t>(session_.launches().size()), "launch", "launches"),
        status_ == 0 ? "ran" : "ran, and the program did not end well",
        mistakes == 0 ? "no mistake found" : lab::plural(mistakes, "mistake"),
        lab::plural(static_cast<std::int64_t>(findings_.size()) - mistakes, "thing that is slow",
                    "things that are slow"));
    nlohmann::json worst = nlohmann::json::array();
    for (const auto& [place, traffic] : traffic_) worst.push_back(worst_of(place, traffic));
    report.trace = nlohmann::json{{"source", session_.options().source},
                                  {"status", status_},
                                  {"printed", lab::printable(printed_)},
                                  {"timed", session_.timed_by_events},
                                  {"worst", worst}};
    return report;
  }

 private:
  void look_up() {
    for (const Finding& each : session_.findings()) {
      lines_.ask(each.here);
      lines_.ask(each.there);
    }
    for (const LaunchRecord& launch : session_.launches()) {
      for (const auto& [site, traffic] : launch.traffic)
        lines_.ask(simt::emulated::callers_of(site));
    }
    lines_.look_up(module_);
  }
  void gather() {
    for (std::size_t i = 0; i < session_.launches().size(); ++i) {
      for (const auto& [site, traffic] : session_.launches()[i].traffic) {
        const unsigned line = lines_.of(simt::emulated::callers_of(site));
        if (line == 0) continue;
        join(traffic_[{static_cast<int>(i) + 1, line, traffic.space, traffic.use, traffic.bytes}],
             traffic);
      }
    }
  }
  const std::string& kernel(int launch) const {
    return session_.launches()[static_cast<std::size_t>(launch) - 1].kernel;
  }

  /// One word for each kernel and line, of its launch with the most to spare.
  void slow() {
    std::map<std::tuple<std::string, unsigned, Space>, std::pair<Place, const Traffic*>> worst;
    for (const auto& [place, traffic] : traffic_) {
      const auto& [launch, line, space, use, bytes] = place;
      if (static_cast<double>(traffic.moved) < kMuch * static_cast<double>(traffic.least) ||
          traffic.moved - traffic.least < kEnough)
        continue;
      auto& kept = worst[{kernel(launch), line, space}];
      if (kept.second == nullptr ||
          traffic.moved - traffic.least > kept.second->moved - kept.second->least)
        kept = {place, &traffic};
    }
    for (const auto& [key, kept] : worst) {
      const auto& [place, traffic] = kept;
      const auto& [launch, line, space, use, bytes] = place;
      const auto per = [requests = static_cast<double>(traffic->requests)](std::uint64_t count) {
        return static_cast<double>(count) / requests;
      };
      Finding finding{space == Space::shared ? Kind::bank_conflict : Kind::coalescing,
                      line,
                      0,
                      {},
                      {},
                      launch,
                      ""};
      finding.text =
          space == Space::shared
              ? fmt::format(
                    "{}: a warp's {} takes {:.3g} turns of the banks on average where {:.3g} would "
                    "do",
                    kernel(launch), name_of_use(use), per(traffic->moved), per(traffic->least))
              : fmt::format(
                    "{}: a warp's {} moves {:.3g} sectors of 32 bytes on average where {:.3g} "
                    "would hold what "
                    "it uses: {:.0f} % of the bytes are used",
                    kernel(launch), name_of_use(use), per(traffic->moved), per(traffic->least),
                    100 * static_cast<double>(traffic->wanted) /
                        (32 * static_cast<double>(traffic->moved)));
      findings_.push_back(std::move(finding));
    }
  }
  /// The same thing is said once: of a kind the first at a line.
  void drop_doubles() {
    std::vector<Finding> kept;
    for (Finding& each : findings_) {
      const bool again = std::any_of(kept.begin(), kept.end(), [&](const Finding& other) {
        return other.kind == each.kind && other.line == each.line;
      });
      if (!again) kept.push_back(std::move(each));
    }
    std::stable_sort(kept.begin(), kept.end(), [](const Finding& a, const Finding& b) {
      return is_mistake(a.kind) > is_mistake(b.kind);
    });
    findings_ = std::move(kept);
  }

  lab::Table findings() const {
    lab::Table table{"findings",
                     "What was found",
                     {"kind", lab::column("mistake", "mistake"), lab::whole("line"),
                      lab::whole("other_line", "other line"), lab::whole("launch"),
                      lab::column("text", "what"), lab::column("lesson", "lesson")}};
    for (const Finding& each : findings_) {
      table.add({name_of(each.kind), is_mistake(each.kind) ? "yes" : "no",
                 each.line == 0 ? lab::Cell() : lab::Cell(each.line),
                 each.other_line == 0 ? lab::Cell() : lab::Cell(each.other_line),
                 each.launch == 0 ? lab::Cell() : lab::Cell(each.launch), lab::shown(each.text),
                 lesson_of(each.kind)});
    }
    return table;
  }
  lab::Table launches() const {
    lab::Table table{"launches",
                     "Launches",
                     {lab::whole("launch"), lab::column("kernel", "kernel"), lab::whole("line"),
                      lab::column("grid", "grid"), lab::column("block", "block"),
                      lab::whole("shared", "dynamic shared", "B"), lab::whole("stream"),
                      lab::whole("wanted", "bytes used", "B"),
                      lab::whole("moved", "bytes moved", "B"), lab::column("traced", "traced")}};
    for (std::size_t i = 0; i < session_.launches().size(); ++i) {
      const LaunchRecord& launch = session_.launches()[i];
      std::uint64_t wanted = 0, moved = 0;
      for (const auto& [place, traffic] : traffic_) {
        if (std::get<0>(place) != static_cast<int>(i) + 1 || std::get<2>(place) != Space::global)
          continue;
        wanted += traffic.wanted;
        moved += 32 * traffic.moved;
      }
      const auto size = [](const dim3& d) { return fmt::format("{},{},{}", d.x, d.y, d.z); };
      const bool traced = launch.traced;
      table.add({i + 1, lab::shown(launch.kernel), launch.line, size(launch.shape.grid),
                 size(launch.shape.block), launch.shape.shared_bytes, launch.shape.stream,
                 traced ? lab::Cell(wanted) : lab::Cell(), traced ? lab::Cell(moved) : lab::Cell(),
                 traced ? (launch.left_out > 0 ? "in part" : "yes") : "no"});
    }
    return table;
  }
  lab::Table accesses() const {
    lab::Table table{"accesses",
                     "Accesses by line",
                     {lab::whole("launch"), lab::column("kernel", "kernel"), lab::whole("line"),
                      lab::column("space", "space"), lab::column("use", "use"),
                      lab::whole("bytes", "per thread", "B"), lab::whole("requests"),
                      lab::real("lanes", "lanes", "", 1),
                      lab::real("per_request", "sectors or turns per request", "", 2),
                      lab::real("least", "least", "", 2), lab::whole("wanted", "bytes used", "B"),
                      lab::whole("moved", "bytes moved", "B")}};
    for (const auto& [place, traffic] : traffic_) {
      const auto& [launch, line, space, use, bytes] = place;
      const auto per = [requests = static_cast<double>(traffic.requests)](std::uint64_t count) {
        return static_cast<double>(count) / requests;
      };
      table.add({launch, lab::shown(kernel(launch)), line, name_of_space(space), name_of_use(use),
                 bytes, traffic.requests, per(traffic.lanes), per(traffic.moved),
                 per(traffic.least), traffic.wanted,
                 space == Space::global ? lab::Cell(32 * traffic.moved) : lab::Cell()});
    }
    return table;
  }
  lab::Table events() const {
    lab::Table table{
        "events",
        "Program",
        {lab::whole("event"), lab::column("what", "what"), lab::whole("line"),
         lab::column("name", "name"), lab::column("detail", "detail"),
         lab::whole("bytes", "bytes", "B"), lab::whole("stream"), lab::whole("launch")}};
    int number = 0;
    for (const Event& each : session_.events()) {
      table.add({++number, name_of(each.what), each.line == 0 ? lab::Cell() : lab::Cell(each.line),
                 lab::shown(each.name), each.detail, each.bytes, each.stream,
                 each.launch == 0 ? lab::Cell() : lab::Cell(each.launch)});
    }
    return table;
  }
  nlohmann::json worst_of(const Place& place, const Traffic& traffic) const {
    const auto& [launch, line, space, use, bytes] = place;
    nlohmann::json addresses = nlohmann::json::array();
    std::uintptr_t low = ~std::uintptr_t{0};
    for (std::size_t lane = 0; lane < 32; ++lane) {
      if ((traffic.worst.lanes >> lane & 1u) != 0) low = std::min(low, traffic.worst.address[lane]);
    }
    const std::uintptr_t base = low / 128 * 128;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      if ((traffic.worst.lanes >> lane & 1u) == 0) {
        addresses.push_back(nullptr);
      } else {
        addresses.push_back(traffic.worst.address[lane] - base);
      }
    }
    return {{"launch", launch},
            {"line", line},
            {"space", name_of_space(space)},
            {"use", name_of_use(use)},
            {"bytes", bytes},
            {"block", traffic.worst_block},
            {"warp", traffic.worst_warp},
            {"moved", traffic.worst_moved},
            {"least", traffic.worst_least},
            {"offsets", addresses}};
  }

  const Session& session_;
  workbench::EditedModule module_;
  int status_;
  std::string printed_;
  Lines lines_;
  std::vector<Finding> findings_;
  std::map<Place, Traffic> traffic_;
};

}  // namespace

lab::Report report_of(const Session& session, const std::string& module, int status,
                      std::string printed) {
  return Writer(session, module, status, std::move(printed)).report();
}

}  // namespace tilestep::inspect

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "kernels/base/inspect/operations.hpp"
#include "kernels/base/inspect/run.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/names.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/simt/device.hpp"
#include "kernels/base/simt/emulator/call_sites.hpp"
#include "kernels/base/workbench/fault_lines.hpp"

namespace tilestep::inspect {
namespace {

/// Requests that move at least this much of what they need, and so much more in all, are worth a word.
constexpr double kMuch = 2;
constexpr std::uint64_t kEnough = 64;
/// Code behind a branch that runs with at most so many lanes, and takes at least so much of the launch, is too.
constexpr double kFewLanes = 16, kShareOfLaunch = 0.1;
/// Launches of which the report has the paths of a warp.
constexpr std::size_t kMostPaths = 32;

constexpr Taught kTaught[] = {
    {Kind::bounds, "tiling", 8, "first-steps/1-scale-a-vector"},
    {Kind::coverage, "tiling", 8, "first-steps/4-brighten-a-picture"},
    {Kind::uninitialized, "tiling", 4, "first-steps/2-add-two-vectors"},
    {Kind::host_pointer, "", 0, "first-steps/5-square-numbers"},
    {Kind::copy_direction, "", 0, "first-steps/2-add-two-vectors"},
    {Kind::copy_bytes, "", 0, "first-steps/3-shift-a-signal"},
    {Kind::shared_race, "tiling", 4, "first-steps/7-sum-an-array"},
    {Kind::barrier, "tiling", 4, "tiling/find-the-missing-barrier"},
    {Kind::global_race, "moe-routing", 5, "first-steps/6-count-dice"},
    {Kind::order, "accumulator-precision", 8, "accumulator-precision/add-equals-to-equals"},
    {Kind::coalescing, "coalescing", 9, "first-steps/8-add-a-bias"},
    {Kind::bank_conflict, "tiling", 10, "coalescing/pad-the-tile"},
    {Kind::divergence, "latency-hiding", 12, "latency-hiding/vote-before-you-part"},
};

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
    split();
    drop_doubles();
    lab::Report report;
    report.lesson = "inspect";
    report.device.backend = "emulated";
    report.device.name = "CPU";
    report.add(findings());
    report.add(launches());
    report.add(accesses());
    report.add(branches());
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
                                  {"worst", worst},
                                  {"paths", paths()}};
    return report;
  }

 private:
  void look_up() {
    for (const Finding& each : session_.findings()) {
      lines_.ask(each.here);
      lines_.ask(each.there);
    }
    for (const LaunchRecord& launch : session_.launches()) {
      for (const auto& [site, traffic] : launch.trace.traffic)
        lines_.ask(simt::emulated::callers_of(site));
      for (const auto& [code, block] : launch.trace.blocks) lines_.ask({before(code)});
      for (const auto& [code, branch] : launch.trace.branches) lines_.ask({before(code)});
    }
    lines_.look_up(module_);
  }
  /// The call that returns there: the line of what follows may be another.
  static Code before(Code code) { return static_cast<const char*>(code) - 1; }
  unsigned line_of(Code code) const { return lines_.of({before(code)}); }

  void gather() {
    for (std::size_t i = 0; i < session_.launches().size(); ++i) {
      for (const auto& [site, traffic] : session_.launches()[i].trace.traffic) {
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
  /// A word for each kernel and branch behind which much of a launch runs with few lanes.
  void split() {
    std::map<std::pair<std::string, unsigned>, std::pair<double, Finding>> worst;
    for (std::size_t i = 0; i < session_.launches().size(); ++i) {
      const LaunchTrace& paths = session_.launches()[i].trace;
      std::uint64_t all = 0;
      for (const auto& [code, block] : paths.blocks)
        all += line_of(code) > 0 ? 32 * block.warps : 0;
      for (const auto& [code, branch] : paths.branches) {
        const unsigned line = line_of(code);
        if (branch.split == 0 || line == 0) continue;
        for (const Code to : {branch.one, branch.other}) {
          const auto found = paths.blocks.find(to);
          if (found == paths.blocks.end() || found->second.warps < kEnough) continue;
          const auto warps = static_cast<double>(found->second.warps),
                     lanes = static_cast<double>(found->second.threads) / warps,
                     lost = (32 - lanes) * warps;
          if (lanes > kFewLanes || 32 * warps < kShareOfLaunch * static_cast<double>(all)) continue;
          auto& [most, finding] = worst[{kernel(static_cast<int>(i) + 1), line}];
          if (lost <= most) continue;
          most = lost;
          const unsigned there = line_of(to);
          finding = {
              Kind::divergence,
              line,
              there == line ? 0 : there,
              {},
              {},
              static_cast<int>(i) + 1,
              fmt::format("{}: the branch diverges in {} of {} warp executions; {} runs with "
                          "{:.3g} of 32 lanes on average",
                          kernel(static_cast<int>(i) + 1), branch.split, branch.warps,
                          there == line || there == 0 ? std::string("the code behind it")
                                                      : fmt::format("line {}", there),
                          lanes)};
        }
      }
    }
    for (auto& [place, kept] : worst) findings_.push_back(std::move(kept.second));
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
    lab::Table table{
        "findings",
        "What was found",
        {"kind", lab::column("mistake", "mistake"), lab::whole("line"),
         lab::whole("other_line", "other line"), lab::whole("launch"), lab::column("text", "what"),
         lab::column("lesson", "lesson"), lab::whole("stop"), lab::column("exercise", "exercise")}};
    for (const Finding& each : findings_) {
      const Taught* taught = taught_by(each.kind);
      table.add({name_of(each.kind), is_mistake(each.kind) ? "yes" : "no",
                 each.line == 0 ? lab::Cell() : lab::Cell(each.line),
                 each.other_line == 0 ? lab::Cell() : lab::Cell(each.other_line),
                 each.launch == 0 ? lab::Cell() : lab::Cell(each.launch), lab::shown(each.text),
                 taught == nullptr ? "" : taught->lesson,
                 taught == nullptr || taught->stop == 0 ? lab::Cell() : lab::Cell(taught->stop),
                 taught == nullptr ? "" : taught->exercise});
    }
    return table;
  }
  lab::Table launches() const {
    lab::Table table{
        "launches",
        "Launches",
        {lab::whole("launch"), lab::column("kernel", "kernel"), lab::whole("line"),
         lab::column("grid", "grid"), lab::column("block", "block"),
         lab::whole("shared", "dynamic shared", "B"), lab::whole("stream"),
         lab::whole("wanted", "bytes used", "B"), lab::whole("moved", "bytes moved", "B"),
         lab::column("traced", "traced"), lab::whole("static", "static shared", "B"),
         lab::whole("once", "unique bytes", "B"), lab::whole("fp32", "FP32 operations", "FLOP"),
         lab::whole("fp64", "FP64 operations", "FLOP"), lab::real("lanes", "active lanes", "", 1)}};
    const std::map<std::uint64_t, Operations> operations = operations_of(module_.file);
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
      std::uint64_t threads = 0, warps = 0, fp32 = 0, fp64 = 0;
      for (const auto& [code, block] : launch.trace.blocks) {
        if (line_of(code) > 0) {
          threads += block.threads;
          warps += block.warps;
        }
        const auto found = operations.find(offset_of(code));
        if (found == operations.end()) continue;
        fp32 += block.threads * found->second.fp32;
        fp64 += block.threads * found->second.fp64;
      }
      const auto counted = [&](std::uint64_t number) {
        return traced && !operations.empty() ? lab::Cell(number) : lab::Cell();
      };
      table.add({i + 1, lab::shown(launch.kernel), launch.line, size(launch.shape.grid),
                 size(launch.shape.block), launch.shape.shared_bytes, launch.shape.stream,
                 traced ? lab::Cell(wanted) : lab::Cell(), traced ? lab::Cell(moved) : lab::Cell(),
                 traced ? (launch.trace.left_out > 0 ? "in part" : "yes") : "no",
                 traced ? lab::Cell(launch.static_shared_bytes) : lab::Cell(),
                 traced ? lab::Cell(launch.once) : lab::Cell(), counted(fp32), counted(fp64),
                 warps > 0 ? lab::Cell(static_cast<double>(threads) / static_cast<double>(warps))
                           : lab::Cell()});
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
  /// From where the module begins.
  static std::uint64_t offset_of(Code code) {
    Dl_info info{};
    return ::dladdr(code, &info) == 0 ? 0
                                      : reinterpret_cast<std::uintptr_t>(code) -
                                            reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  }
  /// Branches whose threads went more than one way, those of a line together.
  lab::Table branches() const {
    lab::Table table{"branches",
                     "Branches",
                     {lab::whole("launch"), lab::column("kernel", "kernel"), lab::whole("line"),
                      lab::whole("warps", "warp executions"), lab::whole("split", "divergent"),
                      lab::real("share", "divergent", "%", 1)}};
    for (std::size_t i = 0; i < session_.launches().size(); ++i) {
      std::map<unsigned, Branch> of_line;
      for (const auto& [code, branch] : session_.launches()[i].trace.branches) {
        of_line[line_of(code)].warps += branch.warps;
        of_line[line_of(code)].split += branch.split;
      }
      for (const auto& [line, branch] : of_line) {
        if (line == 0) continue;
        table.add({i + 1, lab::shown(session_.launches()[i].kernel), line, branch.warps,
                   branch.split,
                   100 * static_cast<double>(branch.split) / static_cast<double>(branch.warps)});
      }
    }
    return table;
  }
  /// For each launch the warp that split most: how often each of its lanes ran each line.
  nlohmann::json paths() const {
    nlohmann::json all = nlohmann::json::array();
    for (std::size_t i = 0; i < session_.launches().size() && all.size() < kMostPaths; ++i) {
      const WarpPath& warp = session_.launches()[i].trace.warp;
      // Of the basic blocks of a line the one with the most idle lanes.
      std::map<unsigned, const LaneTimes*> of_line;
      for (const auto& [code, times] : warp.times) {
        const LaneTimes*& kept = of_line[line_of(code)];
        if (kept == nullptr || times.idle() > kept->idle()) kept = &times;
      }
      of_line.erase(0);
      if (of_line.empty()) continue;
      nlohmann::json lines = nlohmann::json::array();
      for (const auto& [line, times] : of_line)
        lines.push_back({{"line", line}, {"warp", times->warp}, {"lanes", times->lane}});
      all.push_back({{"launch", i + 1},
                     {"kernel", lab::shown(session_.launches()[i].kernel)},
                     {"block", warp.block},
                     {"warp", warp.warp},
                     {"splits", warp.splits},
                     {"lines", lines}});
    }
    return all;
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

const Taught* taught_by(Kind kind) {
  const auto found = std::find_if(std::begin(kTaught), std::end(kTaught),
                                  [&](const Taught& each) { return each.kind == kind; });
  return found == std::end(kTaught) ? nullptr : found;
}

lab::Report report_of(const Session& session, const std::string& module, int status,
                      std::string printed) {
  return Writer(session, module, status, std::move(printed)).report();
}

}  // namespace tilestep::inspect

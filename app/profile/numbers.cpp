#include "app/profile/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "kernels/base/simt/error.hpp"

namespace tilestep::profile {
namespace {

/// Calls in which the host waits for a device.
bool synchronizes(std::string_view call) {
  if (call.starts_with("cuda") || call.starts_with("hip"))
    call.remove_prefix(call[0] == 'c' ? 4 : 3);
  else if (call.starts_with("cu"))
    call.remove_prefix(2);
  else
    return false;
  constexpr std::array<std::string_view, 7> kNames = {
      "DeviceSynchronize", "StreamSynchronize", "EventSynchronize", "CtxSynchronize", "Memcpy",
      "MemcpyDtoH",        "MemcpyHtoD"};
  return std::find(kNames.begin(), kNames.end(), call) != kNames.end();
}

bool communicates(std::string_view kernel) {
  return kernel.find("nccl") != kernel.npos || kernel.find("all_reduce") != kernel.npos;
}

/// "HtoD" of "Memcpy HtoD (Pageable -> Device)".
std::string direction_of(const Trace& trace, const Event& event) {
  if (event.kind == Kind::fill) return "fill";
  const std::string& name = trace.name_of(event);
  for (const char* each : {"HtoD", "DtoH", "DtoD", "PtoP", "HtoH"}) {
    if (name.find(each) != name.npos) return each;
  }
  return "copy";
}

/// A file may say so much that it does not fit.
void grow(std::int64_t& sum, std::int64_t by) {
  if (__builtin_add_overflow(sum, by, &sum)) sum = std::numeric_limits<std::int64_t>::max();
}

class Counter {
 public:
  Counter(const Trace& trace, std::optional<Stretch> stretch) : trace_(trace) {
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (is_work(event.kind)) {
        first_ = first_ < 0 ? event.begin_ns : std::min(first_, event.begin_ns);
        last_ = std::max(last_, event.end_ns);
      }
      if (event.kind == Kind::call) calls_[event.track].push_back(static_cast<int>(i));
      numbers_.has_calls = numbers_.has_calls || event.kind == Kind::call;
      numbers_.has_ops = numbers_.has_ops || event.kind == Kind::op;
      numbers_.has_shapes = numbers_.has_shapes || event.shape >= 0;
    }
    numbers_.stretch = stretch.value_or(Stretch{first_, std::max(last_, first_ + 1)});
  }

  Numbers count() {
    count_works();
    if (works_.empty())
      throw Error(
          fmt::format("nothing ran on a GPU from {} to {}; the trace's work lies from {} to {}",
                      time_of(numbers_.stretch.from_ns), time_of(numbers_.stretch.to_ns),
                      time_of(first_), time_of(last_)));
    count_devices();
    count_kernels();
    count_host();
    count_steps();
    return std::move(numbers_);
  }

 private:
  const Event& event(int index) const { return trace_.events[static_cast<std::size_t>(index)]; }
  /// Cut at the ends of the stretch; nothing: it lies outside.
  std::optional<Stretch> inside(const Event& event) const {
    const Stretch cut{std::max(event.begin_ns, numbers_.stretch.from_ns),
                      std::min(event.end_ns, numbers_.stretch.to_ns)};
    if (event.begin_ns >= numbers_.stretch.to_ns || event.end_ns < numbers_.stretch.from_ns ||
        cut.ns() < 0)
      return std::nullopt;
    return cut;
  }

  void count_works() {
    std::map<std::string, CopyUse> copies;
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      const auto cut = is_work(event.kind) ? inside(event) : std::nullopt;
      if (!cut) continue;
      works_[trace_.track_of(event).device].emplace_back(*cut, static_cast<int>(i));
      if (event.kind == Kind::kernel) {
        ++numbers_.kernel_count;
        numbers_.graph_kernels += event.of_graph;
        continue;
      }
      CopyUse& copy = copies[direction_of(trace_, event)];
      ++copy.count;
      grow(copy.ns, cut->ns());
      if (event.bytes < 0)
        copy.all_sized = false;
      else
        grow(copy.bytes, event.bytes);
    }
    for (auto& [direction, copy] : copies) {
      copy.direction = direction;
      numbers_.copies.push_back(copy);
    }
    std::sort(numbers_.copies.begin(), numbers_.copies.end(),
              [](const CopyUse& a, const CopyUse& b) { return a.ns > b.ns; });
  }

  void count_devices() {
    for (const auto& [device, works] : works_) {
      DeviceUse use;
      use.device = device;
      std::vector<Stretch> all, kernels, others, talks;
      std::map<int, std::vector<Stretch>> streams;
      for (const auto& [cut, index] : works) {
        const Event& each = event(index);
        all.push_back(cut);
        streams[each.track].push_back(cut);
        if (each.kind == Kind::kernel) kernels.push_back(cut);
        const bool talk = each.kind == Kind::kernel && communicates(trace_.name_of(each));
        (talk ? talks : others).push_back(cut);
      }
      const auto busy = joined(all);
      use.busy_ns = covered_ns(busy);
      use.kernel_ns = covered_ns(joined(kernels));
      if (!talks.empty()) use.communication_ns = use.busy_ns - covered_ns(joined(others));
      for (auto& [track, cuts] : streams) {
        const auto count = static_cast<std::int64_t>(cuts.size());
        use.streams.push_back({track, covered_ns(joined(std::move(cuts))), count});
      }
      numbers_.devices.push_back(std::move(use));
      find_gaps(device, works, busy);
    }
    std::sort(numbers_.gaps.begin(), numbers_.gaps.end(), [](const Gap& a, const Gap& b) {
      return std::tie(a.idle.from_ns, a.device) < std::tie(b.idle.from_ns, b.device);
    });
    for (std::size_t i = 0; i < numbers_.gaps.size(); ++i) {
      const Gap& gap = numbers_.gaps[i];
      const auto add = [&](GapSum& sum) {
        ++sum.count;
        grow(sum.ns, gap.idle.ns());
        if (sum.longest < 0 ||
            gap.idle.ns() > numbers_.gaps[static_cast<std::size_t>(sum.longest)].idle.ns())
          sum.longest = static_cast<int>(i);
      };
      add(numbers_.all_gaps);
      if (!gap.late) continue;
      add(numbers_.late_gaps);
      add(numbers_.gaps_after[gap.before < 0 ? -1 : event(gap.before).name]);
    }
  }

  void find_gaps(int device, const std::vector<std::pair<Stretch, int>>& works,
                 const std::vector<Stretch>& busy) {
    std::size_t work = 0;
    int last = -1;  // the work before the gap that ended last
    for (std::size_t i = 1; i < busy.size(); ++i) {
      for (; work < works.size() && works[work].first.from_ns < busy[i].from_ns; ++work) {
        if (last < 0 || event(works[work].second).end_ns >= event(last).end_ns)
          last = works[work].second;
      }
      Gap gap{{busy[i - 1].to_ns, busy[i].from_ns}, device};
      if (work < works.size()) gap.next = works[work].second;
      const int call = gap.next < 0 ? -1 : event(gap.next).call;
      if (call >= 0) {
        // What one call launched, a graph's kernels, the host has launched together.
        gap.late = event(call).end_ns > gap.idle.from_ns && (last < 0 || event(last).call != call);
        const auto& calls = calls_[event(call).track];
        const auto here = std::lower_bound(calls.begin(), calls.end(), call);
        if (here != calls.begin()) gap.before = *(here - 1);
      }
      numbers_.gaps.push_back(gap);
    }
  }

  void count_kernels() {
    struct Found {
      KernelUse use;
      std::map<int, std::vector<Stretch>> cuts;  // by device
      std::set<int> launches;
      std::int64_t longest_ns = -1;
    };
    std::map<int, Found> found;
    for (const auto& [device, works] : works_) {
      for (const auto& [cut, index] : works) {
        const Event& each = event(index);
        if (each.kind != Kind::kernel) continue;
        Found& one = found[each.name];
        ++one.use.launches;
        one.use.of_graph += each.of_graph;
        grow(one.use.ns, cut.ns());
        one.cuts[device].push_back(cut);
        if (each.launch >= 0) one.launches.insert(each.launch);
        if (cut.ns() <= one.longest_ns) continue;
        one.longest_ns = cut.ns();
        one.use.longest = index;
        one.use.launch = each.launch;
      }
    }
    for (auto& [name, one] : found) {
      one.use.name = name;
      one.use.launch_kinds = static_cast<int>(one.launches.size());
      for (auto& [device, cuts] : one.cuts)
        grow(one.use.wall_ns, covered_ns(joined(std::move(cuts))));
      one.use.wall_ns /= static_cast<std::int64_t>(one.cuts.size());
      one.use.share = static_cast<double>(one.use.wall_ns) /
                      static_cast<double>(std::max<std::int64_t>(numbers_.stretch.ns(), 1));
      numbers_.kernels.push_back(one.use);
    }
    std::stable_sort(numbers_.kernels.begin(), numbers_.kernels.end(),
                     [](const KernelUse& a, const KernelUse& b) { return a.ns > b.ns; });
  }

  void count_host() {
    std::map<int, WaitUse> waits;
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& each = trace_.events[i];
      if (each.kind != Kind::call) continue;
      const auto cut = inside(each);
      if (!cut) continue;
      ++numbers_.calls;
      const std::string& name = trace_.name_of(each);
      numbers_.graph_launches += name.find("GraphLaunch") != name.npos;
      if (!synchronizes(name)) continue;
      WaitUse& wait = waits[each.name];
      wait.name = each.name;
      ++wait.count;
      grow(wait.ns, cut->ns());
      if (wait.longest < 0 || cut->ns() > event(wait.longest).ns())
        wait.longest = static_cast<int>(i);
    }
    for (const auto& [name, wait] : waits) numbers_.waits.push_back(wait);
    std::stable_sort(numbers_.waits.begin(), numbers_.waits.end(),
                     [](const WaitUse& a, const WaitUse& b) { return a.ns > b.ns; });
  }

  /// Ranges of one name, but for the number at its end, that come again: PyTorch's own steps, else those that are called
  /// steps or iterations, else those that lasted longest.
  void count_steps() {
    std::map<std::string, std::vector<Stretch>> by_name;
    for (const Event& each : trace_.events) {
      if (each.kind != Kind::range || !inside(each)) continue;
      std::string name = trace_.name_of(each);
      while (!name.empty() &&
             std::string_view("0123456789 #_:-").find(name.back()) != std::string_view::npos)
        name.pop_back();
      by_name[name].push_back({each.begin_ns, each.end_ns});
    }
    std::pair<int, std::int64_t> best = {-1, 0};
    for (auto& [name, each] : by_name) {
      if (each.size() < 2 && name != "ProfilerStep") continue;
      const bool said = name.find("step") != name.npos || name.find("Step") != name.npos ||
                        name.find("iter") != name.npos;
      const std::pair<int, std::int64_t> rank = {name == "ProfilerStep" ? 2
                                                 : said                 ? 1
                                                                        : 0,
                                                 covered_ns(joined(each))};
      if (rank <= best) continue;
      best = rank;
      numbers_.steps = {name, each};
    }
    Steps& steps = numbers_.steps;
    if (steps.each.empty()) return;
    std::vector<std::int64_t> launched;  // when each kernel was submitted
    for (const Event& each : trace_.events) {
      if (each.kind == Kind::kernel)
        launched.push_back(each.call < 0 ? each.begin_ns : event(each.call).begin_ns);
    }
    std::sort(launched.begin(), launched.end());
    std::vector<std::int64_t> lasted, kernels;
    for (const Stretch& step : steps.each) {
      lasted.push_back(step.ns());
      kernels.push_back(std::lower_bound(launched.begin(), launched.end(), step.to_ns) -
                        std::lower_bound(launched.begin(), launched.end(), step.from_ns));
    }
    const auto middle = [](std::vector<std::int64_t>& all) {
      const auto at = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
      std::nth_element(all.begin(), at, all.end());
      return *at;
    };
    steps.median_ns = middle(lasted);
    steps.kernels = middle(kernels);
  }

  const Trace& trace_;
  Numbers numbers_;
  std::map<int, std::vector<std::pair<Stretch, int>>> works_;  ///< by device, each by its begin
  std::map<int, std::vector<int>> calls_;                      ///< by thread, each by its begin
  std::int64_t first_ = -1, last_ = 0;
};

}  // namespace

std::vector<Stretch> joined(std::vector<Stretch> stretches) {
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.from_ns < b.from_ns; });
  std::vector<Stretch> made;
  for (const Stretch& each : stretches) {
    if (!made.empty() && each.from_ns <= made.back().to_ns) {
      made.back().to_ns = std::max(made.back().to_ns, each.to_ns);
    } else {
      made.push_back(each);
    }
  }
  return made;
}

std::int64_t covered_ns(const std::vector<Stretch>& joined) {
  std::int64_t sum = 0;
  for (const Stretch& each : joined) sum += each.ns();
  return sum;
}

const DeviceUse& Numbers::busiest() const {
  return *std::max_element(
      devices.begin(), devices.end(),
      [](const DeviceUse& a, const DeviceUse& b) { return a.busy_ns < b.busy_ns; });
}

Numbers numbers_of(const Trace& trace, std::optional<Stretch> stretch) {
  return Counter(trace, stretch).count();
}

std::string time_of(std::int64_t ns) {
  return time_of(static_cast<double>(ns));
}

std::string time_of(double value) {
  const auto said = [](double number, const char* unit) {
    const double size = std::abs(number);
    return fmt::format("{:.{}f} {}", number, size >= 100 ? 0 : size >= 10 ? 1 : 2, unit);
  };
  if (std::abs(value) >= 1e9) return said(value * 1e-9, "s");
  if (std::abs(value) >= 1e6) return said(value * 1e-6, "ms");
  if (std::abs(value) >= 1e3) return said(value * 1e-3, "µs");
  return fmt::format("{:.0f} ns", value);
}

std::string percent_of(double share) {
  const double percent = 100 * share;
  if (share == 0) return "0 %";
  return fmt::format("{:.{}f} %", percent, percent < 9.95 ? 1 : 0);
}

}  // namespace tilestep::profile

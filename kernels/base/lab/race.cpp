#include "kernels/base/lab/race.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "kernels/base/lab/quick.hpp"

namespace tilestep::lab {
namespace {

thread_local const Race* race_under_way = nullptr;

/// Units of a GPU, each as a share of its peak (Nsight Compute, "GPU Speed Of Light Throughput").
struct Unit {
  const char* id;
  const char* name;
  const char* metric;
};
constexpr Unit kUnits[] = {
    {"dram_busy", "DRAM", "dram__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"l2_busy", "L2", "lts__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"l1_busy", "L1 and shared memory", "l1tex__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"sm_busy", "the multiprocessors' instruction pipes",
     "sm__throughput.avg.pct_of_peak_sustained_elapsed"}};
/// The path between host and device counts too.
constexpr int kCountedLaunches = 4;

const Rung* rung_in(const LadderPlan& plan, const std::string& name) {
  const auto found = std::find_if(plan.rungs.begin(), plan.rungs.end(),
                                  [&](const Rung& rung) { return rung.name == name; });
  return found == plan.rungs.end() ? nullptr : &*found;
}

std::string limit_of(const Report& report, const std::string& variant, simt::Device& device) {
  const simt::CounterStatus counters = device.counters();
  if (!counters.available) {
    return fmt::format("what limits it was not counted: {}", counters.reason);
  }
  const Unit* busiest = nullptr;
  double most = 0;
  for (const Unit& unit : kUnits) {
    const Measurement* busy = report.measurement(unit.id, variant);
    if (busy == nullptr || busy->value <= most) continue;
    busiest = &unit;
    most = busy->value;
  }
  if (busiest == nullptr)
    return "what limits it was not counted: this GPU has none of the counters";
  return fmt::format("busiest is {}, at {:.0f} % of its peak (counted)", busiest->name, most);
}

}  // namespace

std::string text_of(const RacePlan& plan) {
  return fmt::format("{} {} {}", plan.rate_id, plan.edited, plan.built_in);
}

std::optional<RacePlan> race_of(const Request& request) {
  const auto found = request.params.find(kRaceParam);
  if (request.action != Request::Action::bench || found == request.params.end()) return {};
  const auto* text = std::get_if<std::string>(&found->second);
  std::istringstream words(text == nullptr ? "" : *text);
  RacePlan plan;
  std::string more;
  if (!(words >> plan.rate_id >> plan.edited >> plan.built_in) || words >> more) {
    throw Error("a race is 'ID RUNG RUNG': the rate, the user's rung and the lesson's own");
  }
  if (!request.kernel) throw Error("a race needs an edited kernel, and there is none");
  return plan;
}

Settings params_of(const Request& request) {
  Settings params = request.params;
  if (request.action == Request::Action::bench) {
    params.erase(kRaceParam);
    params.erase(kQuickParam);
  }
  return params;
}

Race::Race(RacePlan plan, std::function<void(bool)> choose)
    : plan_(std::move(plan)), choose_(std::move(choose)) {
  race_under_way = this;
}

Race::~Race() {
  race_under_way = nullptr;
  choose_(true);
}

const Race* Race::under_way() {
  return race_under_way;
}

bool Race::is_of(const LadderPlan& plan) const {
  return plan.rate_id == plan_.rate_id && rung_in(plan, plan_.edited) != nullptr &&
         rung_in(plan, plan_.built_in) != nullptr;
}

Rung Race::with(Rung rung, bool edited) const {
  rung.peer.clear();
  rung.counted = true;
  rung.variant = edited ? rung.name : kBuiltIn + rung.name;
  rung.check = rung.variant;
  for (Configuration& each : rung.configurations) {
    each.check.clear();
    each.make = [make = std::move(each.make), choose = choose_, edited] {
      choose(edited);
      Runnable made = make();
      made.launch = [launch = std::move(made.launch), choose, edited] {
        choose(edited);
        launch();
      };
      if (made.verify) {
        made.verify = [verify = std::move(made.verify), choose, edited] {
          choose(edited);
          return verify();
        };
      }
      return made;
    };
  }
  return rung;
}

LadderPlan Race::plan_of(const LadderPlan& plan) const {
  LadderPlan two = plan;
  two.peers.clear();
  two.fraction_id.clear();
  two.time_id.clear();
  two.rungs = {with(*rung_in(plan, plan_.edited), true),
               with(*rung_in(plan, plan_.built_in), false)};
  for (const Unit& unit : kUnits) {
    two.counters.push_back({unit.id, "%", {{unit.metric}}, 1, kCountedLaunches});
  }
  return two;
}

Report race(const RacePlan& plan, const std::function<void(bool)>& choose, simt::Device& device,
            const std::function<Report()>& bench) {
  const Race race(plan, choose);
  try {
    (void)bench();
  } catch (const RaceOver& over) {
    Report report;
    report.device = device.info();
    report.measurements = over.climb.measurements;
    report.checks = over.checks;
    report.summary = limit_of(report, plan.edited, device);
    return report;
  }
  throw Error(fmt::format("no ladder has the rate {} of both {} and {}", plan.rate_id, plan.edited,
                          plan.built_in),
              ExitCode::bad_input);
}

}  // namespace tilestep::lab

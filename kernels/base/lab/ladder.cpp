#include "kernels/base/lab/ladder.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <memory>
#include <utility>

#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/race.hpp"
#include "kernels/base/simt/counters.hpp"

namespace tilestep::lab {
namespace {

/// Cost of a turn relative to a comparison or a brief timing, for the progress.
constexpr double kTurnWeight = 8;

std::string launches_of(const Counter& counter) {
  return counter.launches == 1 ? "one launch" : plural(counter.launches, "launch", "launches");
}

std::string joined(std::string text, std::string_view between, std::string_view more) {
  if (!text.empty() && !more.empty()) text += between;
  return text += more;
}

/// A rung or peer while it is climbed.
struct Entrant {
  const Rung* rung;
  bool peer;
  std::vector<std::size_t> right = {};  ///< configurations with a correct result
  std::optional<std::size_t> best = {};
  std::vector<double> samples = {};

  const Configuration& configuration() const { return rung->configurations[*best]; }
};

class Climber {
 public:
  Climber(simt::Device& device, const LadderPlan& plan, Progress& progress, Ladder& ladder)
      : device_(device),
        plan_(plan),
        progress_(progress),
        ladder_(ladder),
        flush_(plan.flush_l2.value_or(fits_l2(device.info(), plan.work.bytes()))) {
    for (const Rung& peer : plan.peers) entrants_.push_back({&peer, true});
    for (const Rung& rung : plan.rungs) entrants_.push_back({&rung, false});
    for (const Entrant& entrant : entrants_) {
      const auto ways = static_cast<double>(entrant.rung->configurations.size());
      all_ += 2 * ways + plan_.rounds * kTurnWeight;
    }
  }

  /// Its rows, without numbers.
  Climb untimed() {
    finish();
    return std::move(climb_);
  }

  Climb run() {
    for (Entrant& entrant : entrants_) verify(entrant);
    for (Entrant& entrant : entrants_) choose(entrant);
    for (int round = 0; round < plan_.rounds; ++round) {
      for (Entrant& entrant : entrants_) take_turn(entrant, round);
    }
    finish();
    count_all();
    return std::move(climb_);
  }

 private:
  void tell(double weight, const std::string& note) {
    progress_.report(std::min(1.0, done_ / all_), note);
    progress_.check();
    done_ += weight;
  }

  std::vector<double> times_of(const Runnable& runnable, const Pace& pace) {
    if (!runnable.times) {
      return settled_times(device_, progress_, runnable.launch, pace, flush_);
    }
    device_.synchronize();  // the other process has the GPU to itself
    return runnable.times(pace);
  }

  void verify(Entrant& entrant) {
    const Rung& rung = *entrant.rung;
    for (std::size_t i = 0; i < rung.configurations.size(); ++i) {
      const Configuration& configuration = rung.configurations[i];
      tell(1, "checking " + rung.name);
      const Runnable runnable = configuration.make();
      if (!runnable.verify) {
        entrant.right.push_back(i);
        continue;
      }
      const Closest closest = runnable.verify();
      ladder_.judge(configuration.check.empty() ? rung.check : configuration.check,
                    rung.check_detail, closest);
      if (closest.ok()) entrant.right.push_back(i);
    }
  }

  void choose(Entrant& entrant) {
    if (entrant.right.size() == 1) entrant.best = entrant.right.front();
    if (entrant.right.size() < 2) return;
    const bool brief = plan_.turn.settle_ms <= kQuickTurn.settle_ms;
    const Pace choosing = brief ? kQuickChoosing : kChoosing;
    double best_ms = INFINITY;
    for (const std::size_t i : entrant.right) {
      const Configuration& configuration = entrant.rung->configurations[i];
      tell(1, fmt::format("trying {}, {}", entrant.rung->name, configuration.name));
      const Runnable runnable = configuration.make();
      const std::vector<double> times = times_of(runnable, choosing);
      if (times.empty()) continue;
      const Spread time_ms = spread_of(times);
      if (!entrant.peer) tried_.push_back({&entrant, i, time_ms});
      if (time_ms.median >= best_ms) continue;
      best_ms = time_ms.median;
      entrant.best = i;
    }
  }

  void take_turn(Entrant& entrant, int round) {
    if (!entrant.best) return;
    tell(kTurnWeight,
         fmt::format("timing {}, round {} of {}", entrant.rung->name, round + 1, plan_.rounds));
    const Runnable runnable = entrant.configuration().make();
    const std::vector<double> times = times_of(runnable, plan_.turn);
    if (times.empty()) entrant.best.reset();
    entrant.samples.insert(entrant.samples.end(), times.begin(), times.end());
  }

  const Entrant* peer_of(const Rung& rung) const {
    for (const Entrant& entrant : entrants_) {
      const bool meant = rung.peer.empty() || rung.peer == entrant.rung->name;
      if (entrant.peer && entrant.best && meant) return &entrant;
    }
    return nullptr;
  }

  Timed timed(const Entrant& entrant, std::optional<std::size_t> chosen, const Spread& time_ms) {
    const Rung& rung = *entrant.rung;
    Timed timed{rung.name, rung.variant.empty() ? rung.name : rung.variant, "", -1, {}, {}, {}};
    timed.cells = plan_.cells;
    timed.cells.insert(rung.cells.begin(), rung.cells.end());
    timed.cells.insert({{"rung", Cell(rung.name)}, {"why", Cell(rung.why)}});
    // A peer is, in effect, its own peer.
    const Entrant* peer = entrant.peer ? &entrant : peer_of(rung);
    std::optional<Spread> beside;
    if (peer != nullptr && peer->best) {
      beside = rate_of(spread_of(peer->samples), plan_.work, plan_.rate);
      timed.cells["peer"] = beside->median;
    }
    if (!chosen) return timed;
    const Configuration& configuration = rung.configurations[*chosen];
    timed.chosen = static_cast<int>(*chosen);
    timed.configuration = configuration.name;
    timed.time_ms = time_ms;
    timed.rate = rate_of(time_ms, plan_.work, plan_.rate);
    timed.cells.insert(configuration.cells.begin(), configuration.cells.end());
    timed.cells["configuration"] = configuration.name;
    timed.cells["time"] = time_ms.median;
    timed.cells["rate"] = timed.rate.median;
    timed.cells[plan_.rate == Rate::gb_per_s ? "bandwidth" : "tflops"] = timed.rate.median;
    timed.cells["p10"] = timed.rate.p10;
    timed.cells["p90"] = timed.rate.p90;
    if (beside && beside->stable() && timed.rate.stable()) {
      timed.cells["fraction"] = timed.rate.median / beside->median;
    }
    return timed;
  }

  std::string detail_of(const Timed& timed) const {
    return joined(joined(plan_.shape, ", ", timed.configuration), "; ", plan_.note);
  }

  void finish() {
    for (const auto& [entrant, configuration, time_ms] : tried_) {
      climb_.configurations.push_back(timed(*entrant, configuration, time_ms));
    }
    for (const Entrant& entrant : entrants_) {
      const Spread time_ms = entrant.best ? spread_of(entrant.samples) : Spread{};
      const Timed row = timed(entrant, entrant.best, time_ms);
      if (row.timed()) measure(row, entrant);
      (entrant.peer ? climb_.peers : climb_.rungs).push_back(row);
    }
  }

  void measure(const Timed& row, const Entrant& entrant) {
    const std::string& rate_id = entrant.peer ? entrant.rung->rate_id : plan_.rate_id;
    const std::string unit(unit_of(plan_.rate));
    auto& out = climb_.measurements;
    if (!rate_id.empty()) {
      out.push_back(measured(rate_id, row.variant, row.rate, unit, detail_of(row)));
    }
    if (entrant.peer) return;
    if (!plan_.time_id.empty()) {
      out.push_back(measured(plan_.time_id, row.variant, row.time_ms, "ms", detail_of(row)));
    }
    const auto fraction = row.cells.find("fraction");
    if (plan_.fraction_id.empty() || fraction == row.cells.end()) return;
    out.push_back(
        derived(plan_.fraction_id, row.variant, std::get<double>(fraction->second), "",
                joined(plan_.shape, ": ",
                       fmt::format("{:.4g} / {:.4g} {} of {}, timed in turn", row.rate.median,
                                   std::get<double>(row.cells.at("peer")), unit,
                                   peer_of(*entrant.rung)->rung->name))));
  }

  void count_all() {
    if (plan_.counters.empty() || !device_.counters().available) return;
    std::size_t row = 0;
    for (const Entrant& entrant : entrants_) {
      if (entrant.peer) continue;
      Timed& timed = climb_.rungs[row++];
      if (!entrant.best || !entrant.rung->counted) continue;
      tell(0, "counting " + entrant.rung->name);
      const Runnable runnable = entrant.configuration().make();
      for (const Counter& counter : plan_.counters) {
        const std::optional<double> value = count(device_, counter, runnable.launch);
        if (!value) continue;
        timed.cells[counter.id] = *value;
        climb_.measurements.push_back(
            counted(counter.id, timed.variant, *value, counter.unit,
                    joined(detail_of(timed), "; ", launches_of(counter))));
      }
    }
  }

  struct Tried {
    const Entrant* entrant;
    std::size_t configuration;
    Spread time_ms;
  };

  simt::Device& device_;
  const LadderPlan& plan_;
  Progress& progress_;
  Ladder& ladder_;
  bool flush_;
  double done_ = 0, all_ = 0;
  std::vector<Entrant> entrants_;
  std::vector<Tried> tried_;
  Climb climb_;
};

}  // namespace

std::string_view unit_of(Rate rate) {
  return rate == Rate::gb_per_s ? "GB/s" : "TFLOP/s";
}

Spread rate_of(const Spread& time_ms, const Work& work, Rate rate) {
  return rate == Rate::gb_per_s ? rate_of(time_ms, work.bytes())
                                : rate_of(time_ms, work.flops * 1e-3);
}

Rung device_copy(simt::Device& device, std::string name, void* to, const void* from,
                 std::size_t bytes) {
  const auto make = [&device, to, from, bytes]() -> Runnable {
    return {[&device, to, from, bytes] { device.copy_on_device(to, from, bytes); }, {}};
  };
  return {.name = std::move(name),
          .why = "the peer",
          .configurations = {{.name = "cudaMemcpyAsync", .make = make}}};
}

std::optional<double> count(simt::Device& device, const Counter& counter,
                            const std::function<void()>& launch) {
  const auto launches = [&] {
    for (int i = 0; i < counter.launches; ++i) launch();
  };
  for (const std::vector<std::string>& metrics : counter.metrics) {
    try {
      double sum = 0;
      for (const auto& [name, value] : simt::count(device, metrics, launches)) sum += value;
      return sum * counter.scale;
    } catch (const Cancelled&) {
      throw;
    } catch (const Error&) {
      continue;  // a counter that this chip does not have
    }
  }
  return std::nullopt;
}

std::optional<double> Timed::number(std::string_view id) const {
  const auto cell = cells.find(id);
  const double* value = cell == cells.end() ? nullptr : std::get_if<double>(&cell->second);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

void Climb::add(Climb other) {
  append(rungs, std::move(other.rungs));
  append(peers, std::move(other.peers));
  append(configurations, std::move(other.configurations));
  append(measurements, std::move(other.measurements));
}

Climb Ladder::climb(const LadderPlan& plan, Progress& progress) {
  const Race* race = Race::under_way();
  if (race == nullptr) return Climber(device_, plan, progress, *this).run();
  if (!race->is_of(plan)) return Climber(device_, plan, progress, *this).untimed();
  const LadderPlan two = race->plan_of(plan);
  Ladder own(device_);  // earlier comparisons are not about these two
  Climb climb = Climber(device_, two, progress, own).run();
  throw RaceOver{std::move(climb), own.checks()};
}

void Ladder::judge(const std::string& id, const std::string& detail, const Closest& closest) {
  for (Verdict& verdict : verdicts_) {
    if (verdict.id != id) continue;
    verdict.closest.add(closest);
    return;
  }
  verdicts_.push_back({id, detail, closest});
}

std::vector<Check> Ladder::checks() const {
  std::vector<Check> checks;
  for (const Verdict& verdict : verdicts_) {
    checks.push_back(verdict.closest.check(verdict.id, verdict.detail));
  }
  return checks;
}

Table table_of(std::string id, std::string title, std::vector<Column> columns,
               std::span<const Timed> rows) {
  Table table{std::move(id), std::move(title), std::move(columns)};
  for (const Timed& timed : rows) {
    auto& row = table.rows.emplace_back();
    for (const Column& column : table.columns) {
      const auto cell = timed.cells.find(column.id);
      row.push_back(cell == timed.cells.end() ? Cell() : cell->second);
    }
  }
  return table;
}

std::string headline(const Measurement* rate, int decimals) {
  if (rate == nullptr) return "not timed";
  if (rate->stable()) return fmt::format("{:.{}f} {}", rate->value, decimals, rate->unit);
  return fmt::format("unstable: {:.{}f}–{:.{}f} {}", *rate->p10, decimals, *rate->p90, decimals,
                     rate->unit);
}

}  // namespace tilestep::lab

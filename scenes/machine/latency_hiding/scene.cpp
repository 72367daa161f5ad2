#include "scenes/machine/latency_hiding/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using latency_hiding::Break, latency_hiding::Kernel, latency_hiding::What;
using words::counted, words::number, words::significant;

StepAxis LatencyHidingScene::loaded(const latency_hiding::Trace&) {
  params_ = latency_hiding::knob_table().params(report_.params);
  probes_ = probes_of(trace_.machine);
  a_row_ = 1;
  for (const Probe& probe : probes_) a_row_ = std::max(a_row_, probe.number + 1);
  find_events();
  one_at_a_time_ = one_at_a_time();
  counted_ = counts();
  rates_ = rates();
  results_ = copies() || is(Kernel::diverge) ? Results{} : results();
  slots_ = is(Kernel::fma) ? chains(true) : Results{};
  return {trace_.steps(), 1, "step", {""}, "steps"};
}

// ---- where the cursor is --------------------------------------------------------------------------------

int LatencyHidingScene::step(Cursor cursor) const {
  return std::clamp(cursor.tile, 0, trace_.steps());
}

const latency_hiding::Moment* LatencyHidingScene::moment(Cursor cursor) const {
  const int at = step(cursor);
  return at == 0 ? nullptr : &trace_.machine.moments[static_cast<std::size_t>(at) - 1];
}

std::int64_t LatencyHidingScene::now(Cursor cursor) const {
  const latency_hiding::Moment* at = moment(cursor);
  return at == nullptr ? 0 : at->clock;
}

const Probe* LatencyHidingScene::probe(int row, int number) const {
  const auto found = std::find_if(probes_.begin(), probes_.end(), [&](const Probe& each) {
    return each.row == row && each.number == number;
  });
  return found == probes_.end() ? nullptr : &*found;
}

int LatencyHidingScene::followed(const View& view) const {
  const int rows = static_cast<int>(trace_.machine.rows.size());
  return std::clamp(view.pick("warp", 0), 0, std::max(rows - 1, 0));
}

bool LatencyHidingScene::in_flight(const Probe& probe, Cursor cursor) const {
  const int at = step(cursor);
  return probe.issue_step > 0 && probe.issue_step <= at && probe.use_step > at;
}

// ---- what the kernel is ---------------------------------------------------------------------------------

/// At least four loads of a warp, or all that are in flight together; all arms of a branch.
int LatencyHidingScene::group() const {
  constexpr int kLeast = 4;
  const bool arms = trace_.broken == Break::divergent_branch;
  if (is(Kernel::diverge)) return std::max(trace_.divergence, 1);
  if (!copies()) return kLeast;
  return std::max(trace_.loads_in_flight * (arms ? trace_.divergence : 1), kLeast);
}

int LatencyHidingScene::zoom_lanes() const {
  switch (trace_.kernel) {
    case Kernel::copy:
    case Kernel::bulk_copy:
      return trace_.broken == Break::divergent_branch ? std::max(trace_.loads_in_flight, 1)
                                                      : group();
    case Kernel::chase:
      return static_cast<int>(latency_hiding::names_of(latency_hiding::Level{}).size());
    case Kernel::diverge:
      return group();
    default:
      return 1;
  }
}

int LatencyHidingScene::zoom_lane(int number) const {
  if (is(Kernel::chase)) return number / latency_hiding::kHops % zoom_lanes();
  return number % zoom_lanes();
}

/// A warp's loads are drawn below each other if they are few enough.
int LatencyHidingScene::lanes_a_warp() const {
  constexpr int kMostLanes = 96;
  if (!copies()) return 1;
  const int rows = static_cast<int>(trace_.machine.rows.size());
  return rows * trace_.loads_in_flight <= kMostLanes ? std::max(trace_.loads_in_flight, 1) : 1;
}

std::int64_t LatencyHidingScene::origin(Cursor cursor) const {
  if (tails()) return 0;
  std::int64_t begin = 0;
  for (const Probe& each : probes_) {
    if (each.row > 0 || each.issue_step == 0 || each.issue_step > step(cursor)) break;
    if (each.number % group() == 0) begin = each.issue;
  }
  return begin;
}

std::optional<Stretch> LatencyHidingScene::stretch(const Probe& each, Cursor cursor,
                                                   std::int64_t zero) const {
  if (each.issue_step == 0 || each.issue_step > step(cursor)) return std::nullopt;
  if (is(Kernel::chase)) {
    const int first = each.number / latency_hiding::kHops * latency_hiding::kHops;
    const Probe* of_level = probe(each.row, first);
    if (of_level == nullptr) return std::nullopt;
    zero = of_level->issue;
  }
  const bool used = each.use_step <= step(cursor);
  const auto from = static_cast<double>(each.issue - zero);
  const auto to = static_cast<double>((used ? each.use : now(cursor)) - zero);
  if ((used && to <= 0) || from >= time_high()) return std::nullopt;
  return Stretch{std::max(from, 0.0), std::clamp(to, std::max(from, 0.0), time_high()), used};
}

/// Quantities that must not be compared have separate axes.
picture::Name LatencyHidingScene::time_axis() const {
  if (!clocked()) return "turns";
  return tails()    ? picture::Name("elapsed")
         : copies() ? picture::Name("time")
                    : picture::Name("clock");
}

double LatencyHidingScene::time_high() const {
  // Cycles: no recorded round of four loads takes longer, with one warp or with 64.
  constexpr double kRound = 7500;
  constexpr int kRounds = 4;  // about as many as a warp's probes cover
  const double span = std::max<double>(1, static_cast<double>(trace_.machine.span));
  if (!clocked()) return tails() ? span + 1 : 2.0 * group() + 2;
  if (tails()) return picture::rounded(0, span).second;
  if (copies() && span <= 2 * kRounds * kRound) return kRound;
  return picture::rounded(0, span / (is(Kernel::chase) ? kRounds - 1 : kRounds)).second;
}

std::vector<Stretch> LatencyHidingScene::one_at_a_time() const {
  if (!is(Kernel::copy) || !clocked() || trace_.broken != Break::none || group() < 2) return {};
  latency_hiding::Params other = params_;
  other.broken = Break::serialize_loads;
  const auto machine = latency_hiding::known_machine(other);
  if (!machine || machine->device != trace_.machine.device) return {};
  std::vector<Stretch> bars;
  const std::vector<Probe> probes = probes_of(*machine);
  for (const Probe& each : probes) {
    if (each.row > 0 || each.number >= group()) break;
    const std::int64_t zero = probes.front().issue;
    bars.push_back({static_cast<double>(each.issue - zero), static_cast<double>(each.use - zero)});
  }
  return bars;
}

double LatencyHidingScene::weight() const {
  if (is(Kernel::bulk_copy)) return trace_.stage_bytes / 1024.0;
  // With a branch by lane each arm's load fetches its lanes' share.
  const bool arms = trace_.broken == Break::divergent_branch;
  const int lanes = latency_hiding::kLanes / (arms ? std::max(trace_.divergence, 1) : 1);
  return is(Kernel::copy) ? lanes * trace_.bytes_per_load / 1024.0 : 1;
}

int LatencyHidingScene::wave_of(int block) const {
  return block / std::max(trace_.multiprocessors * std::max(trace_.blocks_per_sm, 1), 1);
}

/// Loads have one tone; levels of memory, arms and waves have one each.
picture::Name LatencyHidingScene::tone_kind() const {
  if (is(Kernel::chase)) return "level";
  if (is(Kernel::diverge)) return "arm";
  return tails() ? picture::Name("wave") : picture::Name();
}

int LatencyHidingScene::tone_number(int number) const {
  return tails() ? wave_of(number) : zoom_lane(number);
}

std::uint8_t LatencyHidingScene::tone_of(int number) const {
  constexpr std::uint8_t kLoad = 5;
  if (tone_kind().empty()) return kLoad;
  return picture::category_tone(
      tone_number(number), tails() ? static_cast<int>(std::ceil(trace_.waves())) : zoom_lanes());
}

double LatencyHidingScene::latency(const Probe& probe) const {
  const auto taken = static_cast<double>(probe.use - probe.issue);
  return std::max(0.0, taken - trace_.machine.probe_cost);
}

// ---- words ----------------------------------------------------------------------------------------------

/// The name of a probe, as a mark and in words, by kernel.
struct Called {
  picture::Name mark;
  const char* noun;
};
constexpr Called called(Kernel kernel) {
  constexpr auto kCalled = std::to_array<Called>({{"load", "load"},
                                                  {"stage", "stage"},
                                                  {"hop", "hop"},
                                                  {"chains", "segment"},
                                                  {"round", "round"},
                                                  {"arm", "arm"},
                                                  {"block", "block"}});
  static_assert(kCalled.size() == latency_hiding::names_of(Kernel{}).size());
  return kCalled[static_cast<std::size_t>(kernel)];
}

picture::Name LatencyHidingScene::probe_name() const {
  return called(trace_.kernel).mark;
}

const char* LatencyHidingScene::noun() const {
  return called(trace_.kernel).noun;
}

std::string LatencyHidingScene::unit() const {
  return trace_.machine.unit;
}

/// The origin of the clocks.
std::string LatencyHidingScene::where() const {
  const latency_hiding::Machine& machine = trace_.machine;
  if (!clocked()) {
    return tails() ? "no clocks: blocks in sequence" : "no clocks: order within each warp";
  }
  if (machine.recorded_at.empty()) return "clocks of " + machine.device;
  return fmt::format("{} {}, {}", machine.derived ? "derived from rates of" : "recorded on",
                     machine.device, machine.recorded_at);
}

std::string LatencyHidingScene::warp_name(int row) const {
  const latency_hiding::Row& warp = trace_.machine.rows.at(static_cast<std::size_t>(row));
  return tails() ? fmt::format("SM {}", warp.sm) : fmt::format("w{}", warp.slot);
}

/// The followed warp's action at a step.
std::string LatencyHidingScene::issue_sentence(const latency_hiding::Moment& at) const {
  const std::string who = fmt::format("Warp {}", trace_.machine.rows.front().slot);
  const int in_words = is(Kernel::diverge) || copies() ? zoom_lane(at.number) : at.number;
  const std::string what = fmt::format("{} {}", noun(), in_words);
  const bool issues = at.what == What::issue;
  if (is(Kernel::fma) || is(Kernel::spill) || is(Kernel::diverge)) {
    if (issues) return fmt::format("{} begins {}.", who, what);
  } else if (issues) {
    return fmt::format("{} issues {} and does not wait for it.", who, what);
  }
  const Probe* done = probe(0, at.number);
  const bool computes = is(Kernel::fma) || is(Kernel::diverge);
  const char* verb = computes ? "finishes" : "uses";
  // The last use of a round tells how long the whole round took.
  const Probe* first = probe(0, at.number - group() + 1);
  if (is(Kernel::copy) && clocked() && done != nullptr && first != nullptr &&
      (at.number + 1) % group() == 0) {
    return fmt::format("{} uses {}: {} in {} {}.", who, what, counted(group(), noun()),
                       done->use - first->issue, unit());
  }
  if (!clocked() || done == nullptr) return fmt::format("{} {} {}.", who, verb, what);
  return fmt::format("{} {} {}, {:.0f} {} after it {}.", who, verb, what, latency(*done), unit(),
                     computes || is(Kernel::spill) ? "began" : "was issued");
}

std::string LatencyHidingScene::tail_sentence(Cursor cursor) const {
  int busy = 0, over = 0;
  for (const Probe& each : probes_) {
    busy += in_flight(each, cursor) ? 1 : 0;
    over += each.use_step <= step(cursor) ? 1 : 0;
  }
  if (at_end(cursor)) {
    return fmt::format("All {} have finished: {} waves.", counted(trace_.blocks, "block"),
                       significant(trace_.waves(), 3));
  }
  return fmt::format("{} running, {} finished, {} to come.", counted(busy, "block"), over,
                     trace_.blocks - busy - over);
}

std::string LatencyHidingScene::sentence(Cursor cursor) const {
  const latency_hiding::Moment* at = moment(cursor);
  const std::string warps = counted(trace_.warps_per_sm, "warp");
  if (at == nullptr) {
    if (tails()) {
      return fmt::format("{} will run on {}.", counted(trace_.blocks, "block"),
                         counted(trace_.multiprocessors, "multiprocessor"));
    }
    return fmt::format("{} {} resident on one multiprocessor, in the middle of the kernel.", warps,
                       trace_.warps_per_sm == 1 ? "is" : "are");
  }
  if (tails()) return tail_sentence(cursor);
  if (at->number < 0) {
    if (!clocked()) return "The probed part has ended. Only the order is known, not the time.";
    return fmt::format("The probed part has ended, {} {} after it began.", at->clock, unit());
  }
  return issue_sentence(*at);
}

std::vector<picture::Symbol> LatencyHidingScene::symbols(const View&) const {
  if (!copies()) return {};
  return {{"in flight",
           {"flight", 0},
           5,
           "Issued but not yet used. For loads: bytes requested that have not arrived.",
           {}}};
}

std::vector<std::string> LatencyHidingScene::stage_knobs() const {
  return {"warps_per_sm", "loads_in_flight", "bytes_per_load"};
}

// ---- tables ---------------------------------------------------------------------------------------------

Cursor LatencyHidingScene::known(const lab::Table& table, int row, int column) const {
  const std::string& id = table.columns[static_cast<std::size_t>(column)].id;
  const Cursor end{trace_.steps(), 0};
  if (table.id == "occupancy") return {};
  if (table.id == "rows") return id == "mean_latency" ? end : Cursor{};
  if (table.id == "probes") {
    const Probe* one = probe(0, row);
    if (id == "number" || id == "what") return {};
    if (one == nullptr) return end;
    const bool used = id == "use" || id == "latency";
    return {std::min(used ? one->use_step : one->issue_step, trace_.steps()), 0};
  }
  return Scene::known(table, row, column);
}

int LatencyHidingScene::table_row(std::string_view table_id, const View& view) const {
  const latency_hiding::Moment* at = moment(view.cursor);
  if (table_id == "probes") return at == nullptr || tails() ? -1 : at->number;
  if (table_id == "rows") return -1;
  return Scene::table_row(table_id, view);
}

std::vector<picture::Subject> LatencyHidingScene::subjects_of_row(std::string_view table_id,
                                                                  int row) const {
  if (row < 0) return {};
  if (table_id == "probes" && !trace_.arms.empty())
    return {{"probe", row}, {"arm", trace_.arm_of(row)}};
  if (table_id == "probes") return {{"probe", row}};
  if (table_id == "rows") return {{"warp", row}};
  if (table_id == "occupancy") return {{"limit", row}};
  return Scene::subjects_of_row(table_id, row);
}

// ---- numbers beside the picture -------------------------------------------------------------------------

std::vector<Readout> LatencyHidingScene::readouts(const View& view) const {
  const Cursor cursor = view.cursor;
  const latency_hiding::Machine& machine = trace_.machine;
  constexpr auto kTraced = lab::Provenance::traced;
  std::vector<Readout> all;
  double busy = 0, sum = 0;
  int used = 0;
  const Probe* last = nullptr;
  for (const Probe& each : probes_) {
    if (in_flight(each, cursor) && (clocked() || each.row == 0)) busy += weight();
    if (each.row != followed(view) || each.use_step > step(cursor)) continue;
    sum += latency(each);
    ++used;
    if (last == nullptr || each.use_step >= last->use_step) last = &each;
  }
  all.push_back({"in_flight", tails() ? "blocks running" : "in flight",
                 copies() ? significant(busy, 4) : fmt::format("{:.0f}", busy),
                 copies() ? "KiB" : "", kTraced,
                 clocked() ? "issued but not yet used, of all probes; " + where()
                           : "issued but not yet used, by one warp"});
  if (copies()) all.back().about = {"flight", 0};
  // A number without a clock keeps its place, so that knobs do not move while they are turned.
  const std::string detail =
      clocked() ? fmt::format("from issue to first use, less the {:.0f} {} of an empty probe; {}",
                              machine.probe_cost, unit(), where())
                : std::string("no clock was read, and none was recorded for these knobs");
  const auto cycles = [&](const char* id, std::string label, bool known, double value) {
    all.push_back({id, std::move(label), known ? number(value, 0) : "–", clocked() ? unit() : "",
                   kTraced, detail});
  };
  cycles("latency", fmt::format("last {}", noun()), clocked() && last != nullptr,
         last == nullptr ? 0 : latency(*last));
  all.back().look = Readout::accent;
  cycles("mean", "mean so far", clocked() && used > 0, used == 0 ? 0 : sum / used);
  if (copies()) {
    all.push_back(
        {"asked", "requested at once",
         step(cursor) == 0 ? "–" : significant(static_cast<double>(trace_.asked_bytes()) / 1024, 4),
         "KiB", lab::Provenance::derived, "warps × lanes × loads × bytes per load"});
  }
  const latency_hiding::Occupancy occupancy = trace_.occupancy();
  all.push_back(
      {"occupancy", "occupancy", words::percent(occupancy.share()), "", lab::Provenance::derived,
       fmt::format("{} of {} warps: {}/block, {}", occupancy.warps, latency_hiding::kMostWarps,
                   occupancy.warps_allocated, counted(occupancy.resident, "block"))});
  const bool compiled = machine.compiled.registers > 0;
  all.push_back({"registers", "registers",
                 trace_.registers() > 0 ? std::to_string(trace_.registers()) : "–", "/thread",
                 compiled ? kTraced : lab::Provenance::derived,
                 compiled                 ? "as compiled"
                 : trace_.registers() > 0 ? "at most, by its compile-time limit"
                                          : "known only for kernels run on a GPU"});
  if (trace_.kernel == latency_hiding::Kernel::spill) {
    all.push_back({"local", "spilled",
                   compiled ? std::to_string(machine.compiled.local_bytes) : "–", "B/thread",
                   kTraced, "local memory of the compiled kernel"});
  }
  return all;
}

// ---- the kernel -----------------------------------------------------------------------------------------

SourceMark LatencyHidingScene::source(const View& view) const {
  const latency_hiding::Moment* at = moment(view.cursor);
  const int current = at == nullptr ? -1 : at->what == What::issue ? 0 : 1;
  SourceMark mark = source_mark(latency_hiding::source_path(trace_.kernel), trace_.lines, current);
  if (at == nullptr || at->number < 0) return mark;
  const Probe* one = probe(0, at->number);
  if (one == nullptr) return mark;
  mark.values[trace_.lines[0]] =
      fmt::format("{} {}: {} {}", noun(), at->number, unit(), one->issue);
  if (at->what == What::use) {
    mark.values[trace_.lines[1]] =
        fmt::format("{} {}: {} {}", noun(), at->number, unit(), one->use);
  }
  return mark;
}

// ---- what happens ---------------------------------------------------------------------------------------

/// Rounds of the followed row; for the tail, its waves.
void LatencyHidingScene::find_events() {
  std::map<int, std::string> at;
  for (const Probe& each : probes_) {
    if (tails()) {
      at.try_emplace(std::max(each.issue_step, 1), fmt::format("wave {}", wave_of(each.number)));
    } else if (each.row == 0 && (each.number + 1) % group() == 0 &&
               each.use_step <= trace_.steps()) {
      at[each.use_step] = fmt::format("round {} is done", each.number / group());
    }
  }
  for (const auto& [step, said] : at) {
    if (events_.empty() || events_.back().text != said) events_.push_back({{step, 0}, said});
  }
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(latency_hiding, LatencyHidingScene)

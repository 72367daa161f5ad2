// Which fault is where, and what names it.

#include "kernels/systems/triage/run/plan.hpp"

#include <algorithm>

namespace tilestep::triage {
namespace {

/// In the order of cases; the order of the enum would give them away.
constexpr Fault kHidden[kCases] = {Fault::unfused,   Fault::straggler, Fault::anew,
                                   Fault::unaligned, Fault::rare,      Fault::twice,
                                   Fault::sync,      Fault::strided,   Fault::padding,
                                   Fault::fp32,      Fault::apart,     Fault::occupancy};

/// One of these per fault, in their order.
struct Known {
  Bottleneck bottleneck;
  Suspect suspect;
};
constexpr Known kKnown[kFaults] = {
    {Bottleneck::memory, Suspect::out},    {Bottleneck::latency, Suspect::qkv},
    {Bottleneck::host, Suspect::norm},     {Bottleneck::host, Suspect::route},
    {Bottleneck::work, Suspect::step},     {Bottleneck::memory, Suspect::qkv},
    {Bottleneck::memory, Suspect::attend}, {Bottleneck::latency, Suspect::attend},
    {Bottleneck::work, Suspect::experts},  {Bottleneck::host, Suspect::step},
    {Bottleneck::memory, Suspect::head},   {Bottleneck::work, Suspect::move}};

const Known& known(Fault fault) {
  return kKnown[static_cast<std::size_t>(fault)];
}

/// SplitMix64's finisher: neighbouring seeds choose unlike pairs.
std::uint64_t mixed_bits(std::int64_t seed) {
  auto z = static_cast<std::uint64_t>(seed) + 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

}  // namespace

std::string key_of(const Plan& plan) {
  std::string key;
  const auto add = [&](std::string_view word) {
    key += (key.empty() ? "" : "+") + std::string(word);
  };
  for (const Fault fault : all_of<Fault>()) {
    if (plan.has(fault)) add(name_of(fault));
  }
  if (plan.quick_norm) add("quick-norm");
  return key.empty() ? "sound" : key;
}

Submission submission_of(const Plan& plan) {
  if (plan.has(Fault::sync)) return Submission::waiting;
  if (plan.has(Fault::apart)) return Submission::eager;
  return plan.has(Fault::anew) ? Submission::anew : Submission::graph;
}

bool covers(Suspect suspect, Op op) {
  switch (suspect) {
    case Suspect::open:
      return false;
    case Suspect::step:
      return true;
    case Suspect::norm:
      return op == Op::norm;
    case Suspect::qkv:
      return op == Op::qkv;
    case Suspect::attend:
      return op == Op::attend || op == Op::merge;
    case Suspect::out:
      return op == Op::out;
    case Suspect::route:
      return op == Op::route;
    case Suspect::experts:
      return op == Op::up || op == Op::down || op == Op::combine;
    case Suspect::head:
      return op == Op::head || op == Op::dequant;
    case Suspect::move:
      break;
  }
  return op == Op::move;
}

std::optional<Fault> fault_of(Fix fix) {
  if (fix == Fix::none || fix == Fix::faster_norm) return std::nullopt;
  return static_cast<Fault>(static_cast<int>(fix) - 1);
}
Fix fix_of(Fault fault) {
  return static_cast<Fix>(static_cast<int>(fault) + 1);
}

Plan fixed(const Plan& plan, Fix fix) {
  Plan after = plan;
  if (fix == Fix::faster_norm) after.quick_norm = true;
  const std::optional<Fault> fault = fault_of(fix);
  return fault ? after.without(*fault) : after;
}

Bottleneck bottleneck_of(Fault fault) {
  return known(fault).bottleneck;
}
Suspect suspect_of(Fault fault) {
  return known(fault).suspect;
}
bool names_operator(Fault fault, Suspect suspect) {
  if (suspect == known(fault).suspect) return true;
  // What is wrong with how the host submits is as much the step's as that of the kernel where it begins.
  return known(fault).bottleneck == Bottleneck::host && suspect == Suspect::step;
}

std::string_view complaint_of(Case which) {
  constexpr std::array<std::string_view, kCases + 1> kSaid = {
      "Since the weights were made smaller, a step takes longer than before.",
      "Some prompts decode at half the speed of others, at the same batch size.",
      "The trace shows a CUDA graph, and yet the host is busy all the time.",
      "A model that differs by one column per row is slower, and nothing fails.",
      "The median step is fine. The mean is not.",
      "Twice the context costs more than twice the attention.",
      "The GPU is never busy for long, though one step follows the other.",
      "The weights were converted for another framework. Results are the same, times are not.",
      "Four users wait as long as eight.",
      "A checkpoint was converted, and a layer was left out of the conversion.",
      "The model was ported operator by operator, and each operator is fast on its own.",
      "A new version of a kernel is tiled better, says its author. It is slower.",
      "Two things are wrong at once."};
  return kSaid[static_cast<std::size_t>(which)];
}

const std::vector<Plan>& mixtures() {
  // Two faults that show in different instruments, and of which neither hides the other's fix.
  static const std::vector<Plan> all = [] {
    constexpr std::pair<Fault, Fault> kPairs[] = {
        {Fault::strided, Fault::twice},     {Fault::unaligned, Fault::padding},
        {Fault::apart, Fault::unfused},     {Fault::sync, Fault::occupancy},
        {Fault::fp32, Fault::anew},         {Fault::straggler, Fault::unfused},
        {Fault::rare, Fault::unaligned},    {Fault::strided, Fault::anew},
        {Fault::occupancy, Fault::fp32},    {Fault::apart, Fault::twice},
        {Fault::straggler, Fault::strided}, {Fault::rare, Fault::padding}};
    std::vector<Plan> made;
    for (const auto& [first, second] : kPairs) made.push_back(Plan{}.with(first).with(second));
    return made;
  }();
  return all;
}

Plan plan_of(Case which, std::int64_t seed) {
  if (which == Case::mixed) return mixtures()[mixed_bits(seed) % mixtures().size()];
  return Plan{}.with(kHidden[static_cast<std::size_t>(which)]);
}

std::optional<std::vector<Probe>> probes_of(std::string_view text) {
  std::vector<Probe> all;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view one = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (comma != std::string_view::npos && text.empty()) return std::nullopt;
    Probe probe;
    if (const std::size_t colon = one.find(':'); colon != std::string_view::npos) {
      const std::string_view step = one.substr(colon + 1);
      if (step.size() != 1 || step[0] < '1' || step[0] > '0' + kLoop) return std::nullopt;
      probe.step = step[0] - '0';
      one = one.substr(0, colon);
    }
    constexpr auto kNames = names_of(Instrument());
    const auto* const found = std::find(kNames.begin(), kNames.end(), one);
    if (found == kNames.end()) return std::nullopt;
    probe.instrument = static_cast<Instrument>(found - kNames.begin());
    if (std::find(all.begin(), all.end(), probe) != all.end()) return std::nullopt;
    all.push_back(probe);
  }
  if (all.size() > kProbes) return std::nullopt;
  return all;
}

std::string text_of(const std::vector<Probe>& probes) {
  std::string text;
  for (const Probe& probe : probes) {
    text += (text.empty() ? "" : ",") + std::string(name_of(probe.instrument));
    if (probe.step != kUsualStep) text += ":" + std::to_string(probe.step);
  }
  return text;
}

}  // namespace tilestep::triage

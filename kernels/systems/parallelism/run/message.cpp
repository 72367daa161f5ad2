// An all-reduce chunk by chunk: run by the timed kernel and by the explained one, once with random numbers and once with
// marks that say whose numbers are in a sum.

#include "kernels/systems/parallelism/run/message.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/base/lab/random.hpp"

namespace tilestep::parallelism {
namespace {

constexpr int kMostEvents = 64;  ///< of a rank

int marks_of(float value) {
  return std::isfinite(value) && value >= 0 && value < 0x1p24f ? static_cast<int>(value) : -1;
}
int first_of(const Trace& trace, int chunk) {
  return part_begin(trace.message / (4 * kPack), trace.ranks, chunk) * kPack;
}

/// What each rank holds after each beat, and who sends what, from the notes of the marked run.
void take_events(const Team& team, int call, Trace& trace) {
  const int n = trace.ranks;
  trace.held.assign(at((trace.beats() + 1) * n * n), 0);
  for (int rank = 0; rank < n; ++rank) {
    for (int chunk = 0; chunk < n; ++chunk) trace.held[at(rank * n + chunk)] = 1 << (3 * rank);
  }
  std::vector<std::vector<Event>> events;
  for (int rank = 0; rank < n; ++rank) {
    const Event none{.beat = -1};
    events.push_back(team.log(call, rank).notes<Event>(kEvent, kMostEvents, none));
  }
  for (int beat = 0; beat < trace.beats(); ++beat) {
    for (int rank = 0; rank < n; ++rank) {
      for (int chunk = 0; chunk < n; ++chunk)
        trace.held[at(((beat + 1) * n + rank) * n + chunk)] = trace.held_at(beat, rank, chunk);
      for (const Event& event : events[at(rank)]) {
        if (event.beat != beat) continue;
        if (event.sent == 1) {
          trace.sent.push_back({beat, rank, event.peer, event.chunk});
          continue;
        }
        for (int chunk = 0; chunk < n; ++chunk) {
          if (event.chunk < 0 || event.chunk == chunk)
            trace.held[at(((beat + 1) * n + rank) * n + chunk)] = marks_of(event.value);
        }
      }
    }
  }
}

std::vector<Waits> waits_of(const std::vector<simt::Stuck>& stuck) {
  std::vector<Waits> all;
  for (const simt::Stuck& one : stuck) {
    Waits waits{one.rank, one.call, one.from};
    for (const simt::Stuck& other : stuck) {
      if (other.rank == one.from) waits.other_call = other.call;
    }
    all.push_back(waits);
  }
  return all;
}

}  // namespace

Message reduced(simt::Device& device, const Params& params, Break broken, bool marks, Trace* trace,
                simt::ThreadOrder order) {
  const int n = params.ranks, packs = params.message / (4 * kPack);
  const auto numbers = at(packs * kPack);
  Team team(device, n, static_cast<std::uint64_t>(params.seed), order);
  const CallShape shape{.op = Op::all_reduce,
                        .algorithm = params.algorithm,
                        .ranks = n,
                        .units = packs,
                        .threads = 32,
                        .broken = broken};
  // A rank loads and stores each pack a few times for each other rank.
  const std::size_t notes =
      trace == nullptr ? 0 : at(4 * packs * (n + 2)) + kMostEvents * simt::kNoteEntries<Event>;
  const int calls = broken == Break::wrong_order ? 2 : 1;
  std::vector<simt::Span<float>> in, out, used;
  Message message;
  std::mt19937 generator = lab::generator_of(params.seed);
  for (int call = 0; call < calls; ++call) team.add(shape, notes);
  for (int rank = 0; rank < n; ++rank) {
    message.in.push_back(marks ? std::vector<float>(numbers, static_cast<float>(1 << (3 * rank)))
                               : lab::uniform_floats(generator, numbers));
    in.push_back(team.uploaded(rank, message.in.back()));
    used.push_back(team.unwritten<float>(rank, numbers));
    for (int call = 0; call < calls; ++call) {
      // A gather that comes too early finds the sums of the step before.
      out.push_back(broken == Break::stale_gather
                        ? team.uploaded(rank, std::vector<float>(numbers, 0.0f))
                        : team.unwritten<float>(rank, numbers));
    }
  }
  for (int rank = 0; rank < n; ++rank) {
    for (int call = 0; call < calls; ++call)
      team.join(call, rank, in[at(rank)], out[at(rank * calls + call)]);
  }
  const bool missing = broken == Break::missing_all_reduce;
  team.ranks().run([&](int rank) {
    if (!missing && calls == 1) team.make(0, rank);
    if (calls == 2) {
      team.make(rank == 0 ? 1 : 0, rank);
      team.make(rank == 0 ? 0 : 1, rank);
    }
    team.kernels().each(team.ranks(), rank, Each::copy, used[at(rank)],
                        missing ? in[at(rank)] : out[at(rank * calls)], 0);
  });
  for (int rank = 0; rank < n; ++rank) message.out.push_back(team.download(used[at(rank)]));
  message.waits = waits_of(team.ranks().stuck());
  if (trace == nullptr || !marks) return message;
  take_events(team, 0, *trace);
  trace->links = link_bytes(team, 0);
  trace->waits = message.waits;
  for (int rank = 0; rank < n; ++rank) {
    for (int chunk = 0; chunk < n; ++chunk) {
      trace->used.push_back(marks_of(message.out[at(rank)][at(first_of(*trace, chunk))]));
    }
  }
  return message;
}

lab::Closest compared(const Message& message, int& wrong) {
  lab::Closest closest;
  wrong = 0;
  for (std::size_t i = 0; i < message.in.front().size(); ++i) {
    double sum = 0, size = 0;
    for (const std::vector<float>& one : message.in) {
      sum += static_cast<double>(one[i]);
      size += std::abs(static_cast<double>(one[i]));
    }
    // n − 1 additions in FP32, in any order.
    const double bound = size * static_cast<double>(message.in.size() - 1) * 0x1p-24;
    for (std::size_t rank = 0; rank < message.out.size(); ++rank) {
      const double got = static_cast<double>(message.out[rank][i]);
      closest.add(got, sum, bound, [&] { return fmt::format("rank {}, number {}", rank, i); });
      wrong += std::abs(got - sum) <= bound ? 0 : 1;
    }
  }
  return closest;
}

}  // namespace tilestep::parallelism

// Runs the explained kernels, and says in the lesson's words what they noted: whose tile each clock and each
// row is of follows from the schedule, which is fixed beforehand.

#include <algorithm>
#include <cmath>
#include <tuple>

#include "kernels/attention/flash_attention_3/run/run.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::flash_attention_3 {
namespace {

using numeric::index_of, numeric::elements_of;

/// A tile of queries of a block: which turn it is, and how many tiles of keys the block had before.
struct Turn {
  int turn, head, q_tile, before;
  KeyTiles keys;

  /// The tile of keys that comes as number `i` of this turn: from the last to the first.
  int k_tile(int i) const { return keys.last - i; }
};

TileSizes sizes_of(const TilePlan& plan) {
  return explained_sizes(plan.head_dim, plan.block_k);
}
Schedule schedule_of(const Problem& problem, const TilePlan& plan) {
  return schedule_of(problem, sizes_of(plan), 1);  // how many blocks there are is said
}

std::vector<Turn> turns_of(const Problem& problem, const TilePlan& plan, int block) {
  const Schedule schedule = schedule_of(problem, plan);
  std::vector<Turn> turns;
  int before = 0;
  for (int turn = 0; turn * schedule.blocks < schedule.order.count(); ++turn) {
    const int number = schedule.order.number_of(block, turn, schedule.blocks);
    if (number >= schedule.order.count()) continue;
    const QueryTile tile = schedule.order.place(number);
    const int row = tile.tile * plan.block_q;
    const int last = std::min(row + plan.block_q, problem.rule.length) - 1;
    turns.push_back(
        {turn, tile.head, tile.tile, before, tiles_seen(problem.rule, row, last, plan.block_k)});
    before += turns.back().keys.count();
  }
  return turns;
}

/// The block that has a tile of queries.
int block_with(const Problem& problem, const TilePlan& plan, int head, int q_tile) {
  for (int block = 0; block < schedule_of(problem, plan).blocks; ++block) {
    for (const Turn& turn : turns_of(problem, plan, block)) {
      if (turn.head == head && turn.q_tile == q_tile) return block;
    }
  }
  throw Error("flash-3: no block has the chosen tile of queries");
}

// ---- events -----------------------------------------------------------------------------------------

/// What a site's numbers count: tiles of queries, turns, or else tiles of keys.
bool by_query_tiles(What what) {
  return what <= What::copies_q || what >= What::stores;
}
bool by_turns(What what) {
  return what >= What::waits_turn && what <= What::passes_turn;
}

/// Every site's events of one turn. There is a turn more than tiles of keys: the last has a product with V alone.
std::vector<Event> events_of(const std::vector<long long>& clocks, const std::vector<Turn>& turns) {
  const int numbers = static_cast<int>(clocks.size()) / kSites;
  std::vector<Event> events;
  for (int i = 0; i < std::ssize(turns); ++i) {
    const Turn& turn = turns[static_cast<std::size_t>(i)];
    for (int site = 0; site < kSites; ++site) {
      const int of_consumers = site - site_of(What::waits_k);
      const int consumer = of_consumers >= 0 ? of_consumers / kConsumerSites : 0;
      Event event;
      event.what = static_cast<What>(site - consumer * kConsumerSites);
      event.lane = of_consumers >= 0 ? 1 + consumer : event.what < What::full_k ? 0 : -1;
      event.turn = i;
      event.q_tile = turn.q_tile;
      event.head = turn.head;
      const auto add = [&](int number, int k_tile) {
        event.clock = clocks[index_of(site, number, numbers)];
        event.k_tile = k_tile;
        if (event.clock >= 0) events.push_back(event);
      };
      if (by_query_tiles(event.what)) {
        add(turn.turn, -1);
        continue;
      }
      const int extra = by_turns(event.what) ? 1 : 0, count = turn.keys.count();
      for (int k = 0; k < count + extra; ++k) {
        add(turn.before + extra * i + k, turn.k_tile(std::min(k, count - 1)));
      }
    }
  }
  const auto key = [](const Event& e) {
    return std::tuple(e.clock, e.turn, -e.k_tile, e.what, e.lane);
  };
  std::sort(events.begin(), events.end(),
            [&key](const Event& a, const Event& b) { return key(a) < key(b); });
  const std::int64_t first = events.empty() ? 0 : events.front().clock;
  for (Event& event : events) event.clock -= first;
  return events;
}

// ---- visits, steps ------------------------------------------------------------------------------------

/// What the mask leaves of tile number `i` of a turn.
TileKind kind_of(const Problem& problem, const TilePlan& plan, const Turn& turn, int i) {
  const int length = problem.length();
  const int row = turn.q_tile * plan.block_q, key = turn.k_tile(i) * plan.block_k;
  return problem.rule.kind(row, std::min(row + plan.block_q, length) - 1, key,
                           std::min(key + plan.block_k, length) - 1, NoDocuments{});
}

std::vector<Visit> visits_of(const Problem& problem, const TilePlan& plan) {
  std::vector<Visit> visits(elements_of(problem.heads * plan.q_tiles, plan.k_tiles),
                            Visit{-1, -1, 0, -1, 0, 0, -1, -1});
  for (int block = 0; block < schedule_of(problem, plan).blocks; ++block) {
    for (const Turn& turn : turns_of(problem, plan, block)) {
      const int row = turn.q_tile * plan.block_q;
      const int last = std::min(row + plan.block_q, problem.rule.length) - 1;
      for (int i = 0; i < turn.keys.count(); ++i) {
        Visit& visit =
            visits[index_of(turn.head * plan.q_tiles + turn.q_tile, turn.k_tile(i), plan.k_tiles)];
        visit.block = block;
        visit.order = turn.before + i;
        visit.kind = static_cast<int>(kind_of(problem, plan, turn, i));
        if (i + 1 == turn.keys.count()) visit.o_writes = last - row + 1;
      }
    }
  }
  return visits;
}

/// From the first consumer's first product to the last one's last.
void add_clocks(std::vector<Visit>& visits, const std::vector<Event>& events,
                const TilePlan& plan) {
  for (const Event& event : events) {
    if (event.what != What::issues_s && event.what != What::done_o) continue;
    Visit& visit =
        visits[index_of(event.head * plan.q_tiles + event.q_tile, event.k_tile, plan.k_tiles)];
    if (event.what == What::issues_s && visit.begin < 0) visit.begin = event.clock;
    if (event.what == What::done_o) visit.end = event.clock;
  }
}

/// Those of a turn, as far as the kernel recorded them.
std::vector<Step> steps_of(const std::vector<Step>& recorded, const Turn& turn,
                           const Problem& problem, const TilePlan& plan) {
  std::vector<Step> steps;
  for (int i = 0; i < turn.keys.count(); ++i) {
    const Step& step = recorded[static_cast<std::size_t>(turn.before + i)];
    if (step.order != turn.before + i || step.k_tile != turn.k_tile(i)) continue;
    steps.push_back(step);
    steps.back().kind = kind_of(problem, plan, turn, i);
  }
  return steps;
}

// ---- bytes --------------------------------------------------------------------------------------------

/// Rows of a tile that are there: TMA fills with zeros what lies past the end.
unsigned long long rows_of(int tile, int size, int length) {
  return static_cast<unsigned long long>(std::min(size, length - tile * size));
}

/// What the block asked for, by the copies that it issued and the stores that were done, and the log-sum-exps
/// that it wrote.
Ledger asked_by(const Outcome& outcome, const Problem& problem) {
  Ledger asked{};
  const TilePlan& plan = outcome.plan;
  const int length = problem.rule.length;
  const auto row_bytes = static_cast<unsigned long long>(problem.head_dim) * 2;
  const auto at = [&](Tensor tensor) -> Asked& { return asked[static_cast<std::size_t>(tensor)]; };
  for (const Event& event : outcome.events) {
    const unsigned long long queries = rows_of(event.q_tile, plan.block_q, length);
    if (event.what == What::copies_q) {
      at(Tensor::q).loaded += queries * row_bytes;
      const auto first =
          outcome.lse.begin() +
          static_cast<std::ptrdiff_t>(event.head * length + event.q_tile * plan.block_q);
      const auto written = std::count_if(first, first + static_cast<std::ptrdiff_t>(queries),
                                         [](float lse) { return !std::isnan(lse); });
      at(Tensor::lse).stored += static_cast<unsigned long long>(written) * sizeof(float);
    }
    if (event.what == What::copies_k || event.what == What::copies_v) {
      at(event.what == What::copies_k ? Tensor::k : Tensor::v).loaded +=
          rows_of(event.k_tile, plan.block_k, length) * row_bytes;
    }
    if (event.what == What::stored) {
      const int first = (event.lane - 1) * kRowsOfGroup;
      const int rows = std::clamp(static_cast<int>(queries) - first, 0, kRowsOfGroup);
      at(Tensor::o).stored += static_cast<unsigned long long>(rows) * row_bytes * 2;  // FP32
    }
  }
  return asked;
}

}  // namespace

Outcome run_explained(simt::Device& device, const Params& params, const Inputs& inputs,
                      const Chosen& chosen) {
  Outcome outcome;
  outcome.plan = plan_of(params);
  const TilePlan& plan = outcome.plan;
  const Problem problem = problem_of(params, plan);
  const int q_tile = chosen.query / plan.block_q;
  outcome.blocks = schedule_of(problem, plan).blocks;
  outcome.block = block_with(problem, plan, chosen.head, q_tile);
  const int numbers = most_numbers(problem, sizes_of(plan), 1);
  const simt::Buffer<std::uint16_t> q(device, words_of(inputs.q));
  const simt::Buffer<std::uint16_t> k(device, words_of(inputs.k));
  const simt::Buffer<std::uint16_t> v(device, words_of(inputs.v));
  auto o = lab::unwritten<float>(device, inputs.q.size());
  auto lse = lab::unwritten<float>(device, elements_of(problem.heads, problem.rule.length));
  auto clocks = lab::unwritten<long long>(device, elements_of(kSites, numbers));
  auto steps = lab::unwritten<Step>(device, static_cast<std::size_t>(numbers));
  simt::Tape tape{.chosen_thread = chosen.query % plan.block_q,
                  .clocks = clocks.span(),
                  .numbers = numbers,
                  .chosen_block = outcome.block,
                  .fault = static_cast<int>(params.omits)};
  kernels_of(device).explain(device, problem, {q.span(), k.span(), v.span(), o.span(), lse.span()},
                             plan.block_k, tape.keep(kSteps, steps.span()));
  device.synchronize();
  outcome.o = o.download();
  outcome.lse = lse.download();
  const std::vector<Turn> turns = turns_of(problem, plan, outcome.block);
  outcome.events = events_of(clocks.download(), turns);
  outcome.visits = visits_of(problem, plan);
  add_clocks(outcome.visits, outcome.events, plan);
  for (const Turn& turn : turns) {
    if (turn.head == chosen.head && turn.q_tile == q_tile) {
      outcome.steps = steps_of(steps.download(), turn, problem, plan);
    }
    add_tile(outcome.formula, plan, task_of(params), turn.q_tile, sizeof(float));
  }
  outcome.asked = asked_by(outcome, problem);
  return outcome;
}

}  // namespace tilestep::flash_attention_3

// Runs the explained kernels, and says in the lesson's words what they noted: whose tile each clock and each
// row is of follows from the schedule, which is fixed beforehand.

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
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

  int count() const { return keys.last - keys.first + 1; }
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
    before += turns.back().count();
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

/// What the chosen block noted.
struct Notes {
  int numbers = 0;
  std::vector<long long> clocks;  ///< −1: it did not happen
  std::vector<float> rows;

  long long clock(int site, int number) const { return clocks[index_of(site, number, numbers)]; }
  long long clock(Site site, int consumer, int number) const {
    return clock(site + consumer * kConsumerSites, number);
  }
  float row(int number, RowField field) const { return rows[index_of(number, field, kRowFields)]; }
};

// ---- events -----------------------------------------------------------------------------------------

/// What a site's numbers count.
enum class CountedBy { query_tiles, key_tiles, turns };
CountedBy counted_by(What what) {
  switch (what) {
    case What::waits_empty_q:
    case What::copies_q:
    case What::stores:
    case What::stored:
      return CountedBy::query_tiles;
    case What::waits_turn:
    case What::takes_turn:
    case What::passes_turn:
      return CountedBy::turns;
    default:
      return CountedBy::key_tiles;
  }
}

static_assert(static_cast<int>(What::waits_k) == kWaitsK &&
              static_cast<int>(What::stored) == kStored);

/// All of one turn at one site. There is a turn more than tiles of keys: the last has a product with V alone.
void add_events(std::vector<Event>& events, const Notes& notes, const Turn& turn, int turn_number,
                int site) {
  const int of_consumers = site - kWaitsK;
  const bool consumer = of_consumers >= 0;
  Event event;
  event.what = static_cast<What>(consumer ? kWaitsK + of_consumers % kConsumerSites : site);
  event.lane = consumer ? 1 + of_consumers / kConsumerSites : (site < kFullK ? 0 : -1);
  event.turn = turn_number;
  event.q_tile = turn.q_tile;
  event.head = turn.head;
  const auto add = [&](int number, int k_tile) {
    event.clock = notes.clock(site, number);
    event.k_tile = k_tile;
    if (event.clock >= 0) events.push_back(event);
  };
  switch (counted_by(event.what)) {
    case CountedBy::query_tiles:
      return add(turn.turn, -1);
    case CountedBy::key_tiles:
      for (int i = 0; i < turn.count(); ++i) add(turn.before + i, turn.k_tile(i));
      return;
    case CountedBy::turns:
      for (int i = 0; i <= turn.count(); ++i) {
        add(turn.before + turn_number + i, turn.k_tile(std::min(i, turn.count() - 1)));
      }
  }
}

std::vector<Event> events_of(const Notes& notes, const std::vector<Turn>& turns) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    for (int site = 0; site < kSites; ++site) {
      add_events(events, notes, turns[i], static_cast<int>(i), site);
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

std::vector<Visit> visits_of(const Problem& problem, const TilePlan& plan) {
  std::vector<Visit> visits(elements_of(problem.heads * plan.q_tiles, plan.k_tiles),
                            Visit{-1, -1, 0, -1, 0, 0, -1, -1});
  for (int block = 0; block < schedule_of(problem, plan).blocks; ++block) {
    for (const Turn& turn : turns_of(problem, plan, block)) {
      const int row = turn.q_tile * plan.block_q;
      const int last = std::min(row + plan.block_q, problem.rule.length) - 1;
      for (int i = 0; i < turn.count(); ++i) {
        const int key = turn.k_tile(i) * plan.block_k;
        const int end = std::min(key + plan.block_k, problem.rule.length) - 1;
        Visit& visit =
            visits[index_of(turn.head * plan.q_tiles + turn.q_tile, turn.k_tile(i), plan.k_tiles)];
        visit.block = block;
        visit.order = turn.before + i;
        visit.kind = static_cast<int>(problem.rule.kind(row, last, key, end, NoDocuments{}));
        if (i + 1 == turn.count()) visit.o_writes = last - row + 1;
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

std::vector<StepRecord> steps_of(const Notes& notes, const Turn& turn, const TilePlan& plan) {
  std::vector<StepRecord> steps(static_cast<std::size_t>(plan.k_tiles),
                                StepRecord{{.order = -1}, 0});
  float maximum = -std::numeric_limits<float>::infinity();
  float sum = 0;
  for (int i = 0; i < turn.count(); ++i) {
    const int number = turn.before + i;
    StepRecord& step = steps[static_cast<std::size_t>(turn.k_tile(i))];
    step.tile_max = notes.row(number, kRowHighest);
    step.m_before = maximum;
    step.m_after = maximum = notes.row(number, kRowMaximum);
    step.rescale = notes.row(number, kRowRescale);
    step.l = notes.row(number, kRowSum);
    step.tile_sum = step.l - sum * step.rescale;
    sum = step.l;
    step.order = number;
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
  Notes notes;
  notes.numbers = most_numbers(problem, sizes_of(plan), 1);
  const simt::Buffer<std::uint16_t> q(device, words_of(inputs.q));
  const simt::Buffer<std::uint16_t> k(device, words_of(inputs.k));
  const simt::Buffer<std::uint16_t> v(device, words_of(inputs.v));
  auto o = lab::unwritten<float>(device, inputs.q.size());
  auto lse = lab::unwritten<float>(device, elements_of(problem.heads, problem.rule.length));
  auto clocks = lab::unwritten<long long>(device, elements_of(kSites, notes.numbers));
  auto rows = lab::unwritten<float>(device, elements_of(notes.numbers, kRowFields));
  constexpr Fault kFaults[] = {Fault::none, Fault::skip_rescale, Fault::mask_off_by_one};
  const Fault fault = kFaults[static_cast<int>(params.omits)];
  kernels_of(device).explain(device, problem, {q.span(), k.span(), v.span(), o.span(), lse.span()},
                             {plan.block_k, outcome.block, chosen.query % plan.block_q, fault,
                              notes.numbers, clocks.span(), rows.span()});
  device.synchronize();
  outcome.o = o.download();
  outcome.lse = lse.download();
  notes.clocks = clocks.download();
  notes.rows = rows.download();
  const std::vector<Turn> turns = turns_of(problem, plan, outcome.block);
  outcome.events = events_of(notes, turns);
  outcome.visits = visits_of(problem, plan);
  add_clocks(outcome.visits, outcome.events, plan);
  for (const Turn& turn : turns) {
    if (turn.head == chosen.head && turn.q_tile == q_tile) {
      outcome.steps = steps_of(notes, turn, plan);
    }
    add_tile(outcome.formula, plan, task_of(params), turn.q_tile, sizeof(float));
  }
  outcome.asked = asked_by(outcome, problem);
  return outcome;
}

}  // namespace tilestep::flash_attention_3

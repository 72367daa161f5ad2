#include "kernels/systems/parallelism/plan.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tilestep::parallelism {
namespace {

std::int64_t part(std::int64_t units, int ranks, int rank) {
  const auto begin = [&](int of) { return units * of / ranks; };
  return begin(rank + 1) - begin(rank);
}
std::int64_t largest_part(std::int64_t units, int ranks) {
  std::int64_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) most = std::max(most, part(units, ranks, rank));
  return most;
}
/// Puts a plan together, in FP32 numbers.
class Planner {
 public:
  Planner(const ModelShape& model, int ranks) : model_(model), ranks_(ranks) {
    plan_.memory.assign(at(kKinds * ranks), 0.0);
  }

  void add(Kind kind, int rank, double numbers) {
    plan_.memory[at(static_cast<int>(kind) * ranks_ + rank)] += 4 * numbers;
  }
  /// Parameters, and what training keeps of each: a gradient and Adam's two moments.
  void parameters(int rank, double numbers) {
    add(Kind::parameters, rank, numbers);
    add(Kind::gradients, rank, numbers);
    add(Kind::optimizer, rank, 2 * numbers);
  }
  /// What attention leaves for its backward pass: q, k, v, o, and two numbers of each row.
  static double of_attention(std::int64_t tokens, std::int64_t heads, std::int64_t dim) {
    return static_cast<double>(tokens * heads * (4 * dim + 2));
  }
  void call(std::string name, Op op, bool backward,
            const std::function<double(int rank)>& numbers) {
    PlannedCall& made = plan_.calls.emplace_back();
    made = {std::move(name), op, backward, {}};
    for (int rank = 0; rank < ranks_; ++rank) made.bytes.push_back(4 * numbers(rank));
  }
  /// Each rank sends all parts but its own up to its sum, and then all but its neighbour's.
  void in_parts(std::string name, Op op, bool backward, std::int64_t units, std::int64_t unit) {
    call(std::move(name), op, backward, [&, this](int rank) {
      const std::int64_t own = part(units, ranks_, rank),
                         next = part(units, ranks_, (rank + 1) % ranks_);
      const std::int64_t sent =
          (op != Op::all_gather ? units - own : 0) + (op != Op::reduce_scatter ? units - next : 0);
      return static_cast<double>(sent * unit);
    });
  }
  CutPlan take() { return std::move(plan_); }

 private:
  const ModelShape& model_;
  int ranks_;
  CutPlan plan_;
};

}  // namespace

ModelShape small_model(Cut cut, int ranks, Schedule schedule) {
  ModelShape model;
  if (cut == Cut::pipeline) model.layers = stages_of(schedule, ranks);
  if (cut == Cut::expert) model.experts = 8;
  return model;
}
ModelShape large_model(Cut cut, int ranks, int tokens) {
  ModelShape model{.layers = 32,
                   .sequences = std::max(8, ranks),
                   .length = tokens / 8,
                   .heads = 32,
                   .dim = 128,
                   .inner = 16384,
                   .experts = 0};
  if (cut == Cut::expert) {
    model.inner = 4096;
    model.experts = 8;
  }
  return model;
}

CutPlan plan_of(Cut cut, const ModelShape& model, int ranks, Schedule schedule, int microbatches,
                const Counts& routed) {
  Planner plan(model, ranks);
  const std::int64_t width = model.width(), tokens = model.tokens(), layers = model.layers;
  const auto of_mlp = [&](std::int64_t rows, std::int64_t inner) {
    return static_cast<double>(rows * inner);
  };
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t own = part(model.sequences, ranks, rank) * model.length;
    // x and y of each layer, what attention keeps, and the MLP's numbers.
    const auto local = [&](std::int64_t rows) {
      return static_cast<double>(2 * rows * width) +
             Planner::of_attention(rows, model.heads, model.dim) + of_mlp(rows, model.inner);
    };
    const auto all = static_cast<double>(layers);
    const auto layer = static_cast<double>(model.layer());
    switch (cut) {
      case Cut::data:
        plan.parameters(rank, all * layer);
        plan.add(Kind::activations, rank, all * local(own));
        break;
      case Cut::fsdp: {
        const auto mine = static_cast<double>(part(model.layer() / kPack, ranks, rank) * kPack);
        plan.parameters(rank, all * mine);
        plan.add(Kind::activations, rank, all * local(own));
        plan.add(Kind::gathered, rank, 2 * layer);  // a layer's weights and its gradients
        break;
      }
      case Cut::tensor:
      case Cut::sequence: {
        const std::int64_t heads = part(model.heads, ranks, rank),
                           inner = part(model.inner, ranks, rank);
        const std::int64_t rows = cut == Cut::tensor ? tokens : part(tokens, ranks, rank);
        plan.parameters(
            rank, all * static_cast<double>(4 * width * heads * model.dim + 2 * width * inner));
        plan.add(Kind::activations, rank,
                 all * (static_cast<double>(2 * rows * width) +
                        Planner::of_attention(tokens, heads, model.dim) + of_mlp(tokens, inner)));
        if (cut == Cut::sequence)
          plan.add(Kind::gathered, rank, 2 * static_cast<double>(tokens * width));
        break;
      }
      case Cut::pipeline: {
        const int stages = stages_of(schedule, ranks);
        const std::vector<Slot> slots = pipeline_of(schedule, ranks, microbatches);
        const double here = static_cast<double>(layers) / stages * (stages / ranks);
        plan.parameters(rank, here * layer);
        plan.add(Kind::activations, rank,
                 static_cast<double>(layers) / stages * in_flight(slots, rank) *
                     local(largest_part(model.sequences, microbatches) * model.length));
        break;
      }
      case Cut::expert: {
        std::int64_t got = 0;
        for (int from = 0; from < ranks; ++from) got += routed[at(from)][at(rank)];
        plan.parameters(rank,
                        all * static_cast<double>(model.attention() +
                                                  part(model.experts, ranks, rank) * model.mlp()));
        plan.add(
            Kind::activations, rank,
            all * (static_cast<double>(2 * own * width + got * width) +
                   Planner::of_attention(own, model.heads, model.dim) + of_mlp(got, model.inner)));
        break;
      }
      case Cut::context: {
        const std::int64_t rows =
            model.sequences * (part(model.length, 2 * ranks, rank) +
                               part(model.length, 2 * ranks, 2 * ranks - 1 - rank));
        plan.parameters(rank, all * layer);
        plan.add(Kind::activations, rank, all * local(rows));
        break;
      }
    }
  }

  const auto layer_name = [](int layer) { return ", layer " + std::to_string(layer + 1); };
  const std::int64_t packs = model.layer() / kPack;
  const auto to_others = [&](bool turned) {
    return [&, turned](int rank) {
      std::int64_t sent = 0;
      for (int to = 0; to < ranks; ++to) {
        if (to != rank) sent += turned ? routed[at(to)][at(rank)] : routed[at(rank)][at(to)];
      }
      return static_cast<double>(sent * width);
    };
  };
  const auto forward = [&](int layer) {
    const std::string of = layer_name(layer);
    if (cut == Cut::fsdp) plan.in_parts("weights" + of, Op::all_gather, false, packs, kPack);
    if (cut == Cut::tensor) {
      plan.in_parts("attention" + of, Op::all_reduce, false, tokens, width);
      plan.in_parts("MLP" + of, Op::all_reduce, false, tokens, width);
    }
    if (cut == Cut::sequence) {
      plan.in_parts("x" + of, Op::all_gather, false, tokens, width);
      plan.in_parts("attention" + of, Op::reduce_scatter, false, tokens, width);
      plan.in_parts("y" + of, Op::all_gather, false, tokens, width);
      plan.in_parts("MLP" + of, Op::reduce_scatter, false, tokens, width);
    }
    if (cut == Cut::expert) {
      plan.call("dispatch" + of, Op::all_to_all, false, to_others(false));
      plan.call("combine" + of, Op::all_to_all, false, to_others(true));
    }
  };
  // The most tokens that a rank has: blocks that go round all have room for them.
  std::int64_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    most = std::max(most, model.sequences * (part(model.length, 2 * ranks, rank) +
                                             part(model.length, 2 * ranks, 2 * ranks - 1 - rank)));
  }
  const auto round = [&](int layer, bool backward) {
    for (int hop = 1; hop < ranks + (backward ? 1 : 0); ++hop) {
      plan.call((backward ? "K, V and gradients" : "K and V") + layer_name(layer) + ", hop " +
                    std::to_string(hop),
                Op::pass, backward,
                [&](int) { return static_cast<double>((backward ? 4 : 2) * most * width); });
    }
  };
  if (cut == Cut::pipeline) {
    // A microbatch goes from stage to stage, and its gradient back; a rank may have both stages.
    for (const bool backward : {false, true}) {
      for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
        const std::int64_t rows = part(model.sequences, microbatches, microbatch) * model.length;
        for (int hop = 1; hop < stages_of(schedule, ranks); ++hop) {
          const int stage = backward ? stages_of(schedule, ranks) - hop : hop - 1;
          plan.call((backward ? "gradient " : "microbatch ") + std::to_string(microbatch + 1) +
                        " from stage " + std::to_string(stage + 1),
                    Op::pass, backward, [&](int rank) {
                      return rank == stage % ranks ? static_cast<double>(rows * width) : 0.0;
                    });
        }
      }
    }
    return plan.take();
  }
  for (int layer = 0; layer < layers; ++layer) {
    forward(layer);
    if (cut == Cut::context) round(layer, false);
  }
  for (int layer = model.layers - 1; layer >= 0; --layer) {
    const std::string of = layer_name(layer);
    switch (cut) {
      case Cut::data:
        plan.in_parts("gradients" + of, Op::all_reduce, true, packs, kPack);
        break;
      case Cut::fsdp:
        plan.in_parts("weights again" + of, Op::all_gather, true, packs, kPack);
        plan.in_parts("gradients" + of, Op::reduce_scatter, true, packs, kPack);
        break;
      case Cut::tensor:
        plan.in_parts("MLP's dy" + of, Op::all_reduce, true, tokens, width);
        plan.in_parts("attention's dx" + of, Op::all_reduce, true, tokens, width);
        break;
      case Cut::sequence:
        plan.in_parts("dz" + of, Op::all_gather, true, tokens, width);
        plan.in_parts("y again" + of, Op::all_gather, true, tokens, width);
        plan.in_parts("MLP's dy" + of, Op::reduce_scatter, true, tokens, width);
        plan.in_parts("dy" + of, Op::all_gather, true, tokens, width);
        plan.in_parts("x again" + of, Op::all_gather, true, tokens, width);
        plan.in_parts("attention's dx" + of, Op::reduce_scatter, true, tokens, width);
        break;
      case Cut::expert:
        plan.call("dispatch of dz" + of, Op::all_to_all, true, to_others(false));
        plan.call("combine of dy" + of, Op::all_to_all, true, to_others(true));
        plan.in_parts("attention's gradients" + of, Op::all_reduce, true, model.attention() / kPack,
                      kPack);
        break;
      case Cut::context:
        round(layer, true);
        plan.in_parts("gradients" + of, Op::all_reduce, true, packs, kPack);
        break;
      case Cut::pipeline:
        break;
    }
  }
  return plan.take();
}

// ---- pipelines ----------------------------------------------------------------------------------------

std::vector<Slot> pipeline_of(Schedule schedule, int ranks, int microbatches) {
  const int stages = stages_of(schedule, ranks), each = stages / ranks;
  const int total = each * microbatches;
  const auto index = [&](int stage, int microbatch) {
    return at(stage * microbatches + microbatch);
  };
  // When a microbatch has left a stage, forward and backward; −1: not yet.
  std::vector<int> forward(at(stages * microbatches), -1), backward = forward;
  struct Rank {
    std::vector<Slot> order;
    std::size_t done = 0;
    int free_at = 0;
  };
  std::vector<Rank> all(at(ranks));
  for (int r = 0; r < ranks; ++r) {
    // With two stages a rank, as many microbatches as there are ranks go through one and then through the other.
    const int group = each > 1 ? ranks : microbatches;
    std::vector<Slot> ahead, back;
    for (int first = 0; first < microbatches; first += group) {
      const int last = std::min(first + group, microbatches);
      for (int turn = 0; turn < each; ++turn) {
        for (int m = first; m < last; ++m) {
          ahead.push_back({r, turn * ranks + r, m, false});
          back.push_back({r, (each - 1 - turn) * ranks + r, m, true});
        }
      }
    }
    // So many are under way before the first comes back (Narayanan et al., 2021); where groups are not whole, all.
    int warm = total;
    if (schedule == Schedule::one_f_one_b) warm = ranks - r - 1;
    if (each > 1 && microbatches % ranks == 0) warm = 2 * (ranks - r - 1) + (each - 1) * ranks;
    warm = std::min(warm, total);
    std::vector<Slot>& order = all[at(r)].order;
    order.assign(ahead.begin(), ahead.begin() + warm);
    for (int i = 0; i < total; ++i) {
      if (warm + i < total) order.push_back(ahead[at(warm + i)]);
      order.push_back(back[at(i)]);
    }
  }
  const int takes = 2 / each;
  std::vector<Slot> slots;
  for (int now = 0; slots.size() < at(2 * stages * microbatches) && now < 1 << 12; ++now) {
    for (Rank& rank : all) {
      if (rank.free_at > now || rank.done == rank.order.size()) continue;
      Slot slot = rank.order[rank.done];
      const auto there = [now](int when) { return when >= 0 && when <= now; };
      const int s = slot.stage, m = slot.microbatch;
      const bool ready = slot.backward ? there(forward[index(s, m)]) &&
                                             (s + 1 == stages || there(backward[index(s + 1, m)]))
                                       : s == 0 || there(forward[index(s - 1, m)]);
      if (!ready) continue;
      slot.begin = now;
      slot.end = rank.free_at = now + (slot.backward ? 2 : 1) * takes;
      (slot.backward ? backward : forward)[index(s, m)] = slot.end;
      ++rank.done;
      slots.push_back(slot);
    }
  }
  return slots;
}

double bubble_of(const std::vector<Slot>& slots, int ranks) {
  int end = 0, busy = 0;
  for (const Slot& slot : slots) {
    end = std::max(end, slot.end);
    busy += slot.end - slot.begin;
  }
  return end > 0 ? 1 - static_cast<double>(busy) / (static_cast<double>(end) * ranks) : 0;
}

int in_flight(const std::vector<Slot>& slots, int rank) {
  int now = 0, most = 0;
  for (const Slot& slot : slots) {
    if (slot.rank != rank) continue;
    now += slot.backward ? -1 : 1;
    most = std::max(most, now);
  }
  return most;
}

// ---- a large step -------------------------------------------------------------------------------------

double PlannedStep::memory() const {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

PlannedStep planned(Cut cut, int ranks, int tokens, Schedule schedule, int microbatches,
                    Link link) {
  return planned_with(cut, large_model(cut, ranks, tokens), ranks, schedule, microbatches,
                      kTeraflops * 1e12, gb_per_s(link) * 1e9);
}
PlannedStep planned_with(Cut cut, const ModelShape& model, int ranks, Schedule schedule,
                         int microbatches, double flops_per_s, double bytes_per_s) {
  Counts even{};
  for (int from = 0; from < ranks && cut == Cut::expert; ++from) {
    for (int to = 0; to < ranks; ++to)
      even[at(from)][at(to)] = static_cast<int>(model.tokens() / ranks / ranks);
  }
  const CutPlan plan = plan_of(cut, model, ranks, schedule, microbatches, even);
  PlannedStep step;
  step.cut = cut;
  for (int kind = 0; kind < kKinds; ++kind) {
    double most = 0;
    for (int rank = 0; rank < ranks; ++rank)
      most = std::max(most, plan.memory_at(static_cast<Kind>(kind), ranks, rank));
    // BF16, but for Adam's moments.
    step.bytes[at(kind)] = static_cast<Kind>(kind) == Kind::optimizer ? most : most / 2;
  }
  double sent = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    double its = 0;
    for (const PlannedCall& call : plan.calls) its += call.bytes[at(rank)] / 2;
    sent = std::max(sent, its);
  }
  // A token meets one MLP, whatever their number; a product is two operations a number, backward twice as many.
  const auto used = static_cast<double>((model.attention() + model.mlp()) * model.layers);
  const double flops = 6 * used * static_cast<double>(model.tokens());
  step.compute = flops / ranks / flops_per_s;
  if (cut == Cut::pipeline) {
    const double bubble = bubble_of(pipeline_of(schedule, ranks, microbatches), ranks);
    step.idle = step.compute * bubble / (1 - bubble);
  }
  step.wire = sent / bytes_per_s;
  return step;
}

}  // namespace tilestep::parallelism

// A step of the small model on ranks, in each of the cuts. What each rank's host does is written down first, with all its
// memory, and then run; whatever is the same in all cuts is here once.

#include "kernels/systems/parallelism/run/cuts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

namespace tilestep::parallelism {
namespace {

/// A matrix in a rank's memory.
struct Tensor {
  simt::Span<float> span;
  int rows = 0, columns = 0;

  Tensor part(int first, int count) const {
    return {{span.data + at(std::int64_t{first} * columns), at(std::int64_t{count} * columns)},
            count,
            columns};
  }
};
/// Matrices one after another.
Tensor next_of(simt::Span<float>& all, std::int64_t rows, std::int64_t columns) {
  const Tensor made{
      {all.data, at(rows * columns)}, static_cast<int>(rows), static_cast<int>(columns)};
  all = {all.data + rows * columns, all.count - at(rows * columns)};
  return made;
}

/// A rank's part of a layer.
struct Part {
  int head = 0, heads = 0;  ///< the first, and how many
  int from = 0, inner = 0;
  int expert = 0, experts = 1;
};
/// Its weights, or their gradients.
struct Weights {
  simt::Span<float> all;
  Tensor q, k, v, o;
  std::vector<Tensor> up, down;
};
/// What a layer's forward pass leaves for its backward pass.
struct Saved {
  Tensor x, q, k, v, o, m, l, y, a;
  Tensor rows;  ///< of experts: the tokens that came
};

/// A layer's numbers that belong to a part, in the order of the whole.
template <class Vector>
Vector part_of(const ModelShape& model, const Vector& layer, const Part& part) {
  Vector made;
  std::int64_t first = 0;
  const auto take = [&](std::int64_t rows, std::int64_t columns, std::int64_t row,
                        std::int64_t row_count, std::int64_t column, std::int64_t column_count) {
    for (std::int64_t i = row; i < row + row_count; ++i) {
      for (std::int64_t j = column; j < column + column_count; ++j)
        made.push_back(layer[at(first + i * columns + j)]);
    }
    first += rows * columns;
  };
  const std::int64_t width = model.width(), begin = part.head * model.dim,
                     count = part.heads * model.dim;
  for (int i = 0; i < 3; ++i) take(width, width, 0, width, begin, count);
  take(width, width, begin, count, 0, width);
  for (int expert = 0; expert < std::max(model.experts, 1); ++expert) {
    const bool its = expert >= part.expert && expert < part.expert + part.experts;
    take(width, model.inner, 0, its ? width : 0, part.from, part.inner);
    take(model.inner, width, part.from, its ? part.inner : 0, 0, width);
  }
  return made;
}

class Builder {
 public:
  Builder(simt::Device& device, Cut cut, int ranks, Schedule schedule, int microbatches,
          std::int64_t seed, simt::ThreadOrder order)
      : team_(device, ranks, static_cast<std::uint64_t>(seed), order),
        cut_(cut),
        model_(small_model(cut, ranks, schedule)),
        inputs_(make_inputs(model_, seed)),
        want_(reference_model(model_, inputs_)),
        routed_(routed_of(model_, inputs_, ranks)),
        schedule_(schedule),
        microbatches_(microbatches),
        programs_(at(ranks)) {
    run_.memory.assign(at(kKinds * ranks), 0.0);
    run_.z.assign(at(model_.tokens() * model_.width()), NAN);
  }

  CutRun run() {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (cut_ == Cut::pipeline) {
        build_stages(rank);
      } else {
        build(rank);
      }
    }
    team_.ranks().run([&](int rank) {
      for (const std::function<void()>& step : programs_[at(rank)]) step();
    });
    run_.stuck = team_.ranks().stuck();
    for (const Expected& one : expected_) compare(one);
    for (std::size_t call = 0; call < names_.size(); ++call) {
      CutCall& made = run_.calls.emplace_back();
      made = {names_[call].name, names_[call].op, names_[call].backward, {}};
      const std::vector<double> links = link_bytes(team_, static_cast<int>(call));
      for (int rank = 0; rank < ranks(); ++rank) {
        const auto row = links.begin() + rank * ranks();
        made.bytes.push_back(std::accumulate(row, row + ranks(), 0.0));
      }
    }
    return std::move(run_);
  }

 private:
  using MaybeKind = std::optional<Kind>;
  static constexpr MaybeKind kScratch = std::nullopt;

  int ranks() const { return team_.count(); }
  int width() const { return static_cast<int>(model_.width()); }
  int begin_of(int units, int rank) const { return part_begin(units, ranks(), rank); }
  int part_size(int units, int rank) const {
    return begin_of(units, rank + 1) - begin_of(units, rank);
  }

  // ---- memory and steps of a rank -----------------------------------------------------------------------

  void count(int rank, MaybeKind kind, std::size_t numbers) {
    if (!kind) return;
    run_.memory[at(static_cast<int>(*kind) * ranks() + rank)] +=
        static_cast<double>(numbers * sizeof(float));
  }
  Tensor make(int rank, MaybeKind kind, int rows, int columns) {
    const std::size_t numbers = at(std::int64_t{rows} * columns);
    count(rank, kind, numbers);
    return {team_.unwritten<float>(rank, numbers), rows, columns};
  }
  Tensor put(int rank, MaybeKind kind, const Numbers& host, int columns) {
    count(rank, kind, host.size());
    return {team_.uploaded(rank, host), static_cast<int>(host.size()) / columns, columns};
  }
  simt::Span<const int> indices(int rank, const std::vector<int>& host) {
    return team_.uploaded(rank, host);
  }
  void then(int rank, std::function<void()> step) {
    programs_[at(rank)].push_back(std::move(step));
  }

  enum Turn { kNone = 0, kTurnA = 1, kTurnB = 2, kAdds = 4 };
  void multiply(int rank, const Tensor& c, const Tensor& a, const Tensor& b, int how = kNone) {
    const bool turn_a = (how & kTurnA) != 0, turn_b = (how & kTurnB) != 0;
    const Product shape{.m = c.rows,
                        .n = c.columns,
                        .k = turn_a ? a.rows : a.columns,
                        .lda = a.columns,
                        .ldb = b.columns,
                        .ldc = c.columns,
                        .turn_a = turn_a,
                        .turn_b = turn_b,
                        .adds = (how & kAdds) != 0};
    if (shape.m == 0 || shape.n == 0) return;
    then(rank, [this, rank, shape, a = a.span, b = b.span, c = c.span] {
      team_.kernels().multiply(team_.ranks(), rank, shape, a, b, c);
    });
  }
  void each(int rank, Each what, const Tensor& a, const Tensor& b = {}, float value = 0) {
    then(rank, [this, rank, what, a = a.span, b = b.span, value] {
      team_.kernels().each(team_.ranks(), rank, what, a, b, value);
    });
  }
  Tensor zeros(int rank, MaybeKind kind, int rows, int columns) {
    const Tensor made = make(rank, kind, rows, columns);
    each(rank, Each::fill, made);
    return made;
  }
  void take_rows(int rank, simt::Span<const int> rows, bool back, const Tensor& from,
                 const Tensor& to) {
    then(rank, [this, rank, rows, back, from, to] {
      team_.kernels().take_rows(team_.ranks(), rank, from.columns, rows, back, from.span, to.span);
    });
  }

  // ---- what ranks do together ---------------------------------------------------------------------------

  struct Named {
    std::string name;
    Op op;
    bool backward;
  };
  /// A call that all ranks join under one name.
  int join(int rank, const std::string& name, bool backward, const CallShape& shape,
           const Tensor& in, const Tensor& out) {
    const auto [found, is_new] = numbers_.try_emplace(name, static_cast<int>(names_.size()));
    if (is_new) {
      names_.push_back({name, shape.op, backward});
      const std::int64_t packs =
          std::max<std::int64_t>(shape.packs(), std::int64_t{shape.slot} * shape.unit * ranks());
      team_.add(shape, at(6 * packs) + 512);
    }
    const int call = found->second;
    team_.join(call, rank, in.span, out.span);
    then(rank, [this, call, rank] { team_.make(call, rank); });
    return call;
  }
  CallShape in_rows(Op op, int rows) const {
    return {.op = op, .ranks = ranks(), .units = rows, .unit = width() / kPack};
  }
  std::string of_layer(const char* what, int layer) const {
    return fmt::format("{}, layer {}", what, layer + 1);
  }
  /// Before a part that needs all tokens.
  Tensor spread(int rank, const char* what, int layer, bool backward, const Tensor& local,
                int into) {
    if (cut_ != Cut::sequence) return local;
    const Tensor& all = gathered_[at(into)];
    join(rank, of_layer(what, layer), backward,
         in_rows(Op::all_gather, static_cast<int>(model_.tokens())), local, all);
    return all;
  }
  /// After a part of which each rank has a share of every sum.
  Tensor summed(int rank, const char* what, int layer, bool backward, const Tensor& share) {
    if (cut_ != Cut::sequence && cut_ != Cut::tensor) return share;
    const auto tokens = static_cast<int>(model_.tokens());
    const bool all = cut_ == Cut::tensor;
    const Tensor sum = make(rank, kScratch, tokens, width());
    join(rank, of_layer(what, layer), backward,
         in_rows(all ? Op::all_reduce : Op::reduce_scatter, tokens), share, sum);
    return all ? sum : sum.part(begin_of(tokens, rank), part_size(tokens, rank));
  }

  // ---- a layer ------------------------------------------------------------------------------------------

  Part part_of_rank(int rank) const {
    Part part{.heads = model_.heads, .inner = model_.inner};
    if (cut_ == Cut::tensor || cut_ == Cut::sequence) {
      part.head = begin_of(model_.heads, rank);
      part.heads = part_size(model_.heads, rank);
      part.from = begin_of(model_.inner, rank);
      part.inner = part_size(model_.inner, rank);
    }
    if (cut_ == Cut::expert) {
      part.expert = begin_of(model_.experts, rank);
      part.experts = part_size(model_.experts, rank);
    }
    return part;
  }
  Weights weights_in(simt::Span<float> all, const Part& part) const {
    Weights made;
    made.all = all;
    const std::int64_t columns = part.heads * model_.dim;
    for (Tensor* one : {&made.q, &made.k, &made.v}) *one = next_of(all, width(), columns);
    made.o = next_of(all, columns, width());
    for (int expert = 0; expert < part.experts; ++expert) {
      made.up.push_back(next_of(all, width(), part.inner));
      made.down.push_back(next_of(all, part.inner, width()));
    }
    return made;
  }
  Saved saved_for(int rank, int rows, int attended, const Part& part, int expert_rows) {
    Saved made;
    const auto make_it = [&](int count, int columns) {
      return make(rank, Kind::activations, count, columns);
    };
    made.x = make_it(rows, width());
    for (Tensor* one : {&made.q, &made.k, &made.v, &made.o})
      *one = make_it(attended, part.heads * model_.dim);
    made.m = make_it(attended, part.heads);
    made.l = make_it(attended, part.heads);
    made.y = make_it(rows, width());
    if (cut_ == Cut::expert) made.rows = make_it(expert_rows, width());
    made.a = make_it(cut_ == Cut::expert ? expert_rows : attended, part.inner);
    return made;
  }

  AttendArrays arrays_of(const Saved& s, const Tensor& k, const Tensor& v,
                         simt::Span<const int> q_at, simt::Span<const int> k_at) const {
    AttendArrays arrays;
    arrays.q = s.q.span;
    arrays.k = k.span;
    arrays.v = v.span;
    arrays.q_at = q_at;
    arrays.k_at = k_at;
    arrays.o = s.o.span;
    arrays.m = s.m.span;
    arrays.l = s.l.span;
    return arrays;
  }
  AttendShape shape_of(const Saved& s, int keys) const {
    return {s.q.rows, keys, s.q.columns / model_.dim, model_.dim};
  }
  void project(int rank, const Weights& w, const Saved& s, const Tensor& x) {
    multiply(rank, s.q, x, w.q);
    multiply(rank, s.k, x, w.k);
    multiply(rank, s.v, x, w.v);
    each(rank, Each::fill, s.m, {}, -INFINITY);
    each(rank, Each::fill, s.l);
    each(rank, Each::fill, s.o);
  }
  void attend(int rank, const Saved& s, const Tensor& k, const Tensor& v,
              simt::Span<const int> q_at, simt::Span<const int> k_at) {
    then(rank, [this, rank, shape = shape_of(s, static_cast<int>(k_at.count)),
                arrays = arrays_of(s, k, v, q_at, k_at)] {
      team_.kernels().attend(team_.ranks(), rank, shape, arrays);
    });
  }
  void finish(int rank, const Saved& s) {
    then(rank, [this, rank, shape = shape_of(s, 0), arrays = arrays_of(s, s.k, s.v, {}, {})] {
      team_.kernels().finish(team_.ranks(), rank, shape, arrays);
    });
  }
  struct Back {
    Tensor d_o, delta, d_q, d_k, d_v;
  };
  Back begin_back(int rank, const Weights& w, const Weights& g, const Saved& s, const Tensor& d_y) {
    Back back;
    back.d_o = make(rank, kScratch, s.o.rows, s.o.columns);
    back.delta = make(rank, kScratch, s.o.rows, s.o.columns / model_.dim);
    multiply(rank, g.o, s.o, d_y, kTurnA | kAdds);
    multiply(rank, back.d_o, d_y, w.o, kTurnB);
    then(rank, [this, rank, shape = shape_of(s, 0), d_o = back.d_o.span, o = s.o.span,
                delta = back.delta.span] {
      team_.kernels().products_of_rows(team_.ranks(), rank, shape, d_o, o, delta);
    });
    for (Tensor* one : {&back.d_q, &back.d_k, &back.d_v})
      *one = zeros(rank, kScratch, s.q.rows, s.q.columns);
    return back;
  }
  void attend_back(int rank, const Saved& s, const Back& back, const Tensor& k, const Tensor& v,
                   const Tensor& d_k, const Tensor& d_v, simt::Span<const int> q_at,
                   simt::Span<const int> k_at) {
    AttendArrays arrays = arrays_of(s, k, v, q_at, k_at);
    arrays.d_o = back.d_o.span;
    arrays.delta = back.delta.span;
    arrays.d_q = back.d_q.span;
    arrays.d_k = d_k.span;
    arrays.d_v = d_v.span;
    then(rank, [this, rank, shape = shape_of(s, static_cast<int>(k_at.count)), arrays] {
      team_.kernels().attend_back(team_.ranks(), rank, shape, arrays);
    });
  }
  /// The gradient of x, but for the residual's.
  Tensor end_back(int rank, const Weights& w, const Weights& g, const Back& back, const Tensor& x) {
    const Tensor d_x = make(rank, kScratch, x.rows, width());
    multiply(rank, g.q, x, back.d_q, kTurnA | kAdds);
    multiply(rank, g.k, x, back.d_k, kTurnA | kAdds);
    multiply(rank, g.v, x, back.d_v, kTurnA | kAdds);
    multiply(rank, d_x, back.d_q, w.q, kTurnB);
    multiply(rank, d_x, back.d_k, w.k, kTurnB | kAdds);
    multiply(rank, d_x, back.d_v, w.v, kTurnB | kAdds);
    return d_x;
  }
  Tensor mlp(int rank, const Weights& w, int expert, const Tensor& y, const Tensor& a) {
    const Tensor out = make(rank, kScratch, y.rows, width());
    multiply(rank, a, y, w.up[at(expert)]);
    each(rank, Each::relu, a, a);
    multiply(rank, out, a, w.down[at(expert)]);
    return out;
  }
  Tensor mlp_back(int rank, const Weights& w, const Weights& g, int expert, const Tensor& y,
                  const Tensor& a, const Tensor& d_z) {
    const Tensor d_a = make(rank, kScratch, a.rows, a.columns);
    const Tensor d_y = make(rank, kScratch, y.rows, width());
    multiply(rank, g.down[at(expert)], a, d_z, kTurnA | kAdds);
    multiply(rank, d_a, d_z, w.down[at(expert)], kTurnB);
    each(rank, Each::relu_back, d_a, a);
    multiply(rank, g.up[at(expert)], y, d_a, kTurnA | kAdds);
    multiply(rank, d_y, d_a, w.up[at(expert)], kTurnB);
    return d_y;
  }
  /// a + b, in `to`.
  void add_to(int rank, const Tensor& to, const Tensor& a, const Tensor& b) {
    each(rank, Each::copy, to, a);
    each(rank, Each::add, to, b);
  }

  // ---- ring attention -----------------------------------------------------------------------------------

  int most_tokens() const {
    std::size_t most = 0;
    for (int rank = 0; rank < ranks(); ++rank) most = std::max(most, tokens_of(rank).size());
    return static_cast<int>(most);
  }
  /// Keys and values go round, `parts` matrices together; `use` is called with each rank's.
  Tensor go_round(int rank, int layer, bool backward, const std::vector<Tensor>& own, int parts,
                  const std::function<void(const std::vector<Tensor>&, int owner)>& use) {
    const int most = most_tokens();
    const Tensor turns[2] = {make(rank, kScratch, parts * most, width()),
                             make(rank, kScratch, parts * most, width())};
    each(rank, Each::fill, turns[0]);
    for (std::size_t i = 0; i < own.size(); ++i) {
      each(rank, Each::copy, turns[0].part(static_cast<int>(i) * most, own[i].rows), own[i]);
    }
    const int hops = backward ? ranks() : ranks() - 1;
    for (int hop = 0; hop <= hops; ++hop) {
      const Tensor& now = turns[hop % 2];
      const int owner = (rank - hop + 2 * ranks()) % ranks();
      if (hop < ranks()) {
        const auto rows = static_cast<int>(tokens_of(owner).size());
        std::vector<Tensor> all;
        for (int i = 0; i < parts; ++i) all.push_back(now.part(i * most, rows));
        use(all, owner);
      }
      if (hop == hops) return now;
      const std::string name = fmt::format(
          "{}, layer {}, hop {}", backward ? "K, V and gradients" : "K and V", layer + 1, hop + 1);
      const int call =
          join(rank, name, backward, in_rows(Op::pass, parts * most), now, turns[(hop + 1) % 2]);
      team_.neighbours(call, rank, (rank + 1) % ranks(), (rank + ranks() - 1) % ranks());
    }
    return turns[0];
  }

  // ---- experts ------------------------------------------------------------------------------------------

  /// Where a rank's tokens go, and where those of its experts lie when they have come.
  struct Routes {
    int slot = 0;
    simt::Span<const int> sent, got;  ///< places in blocks of `slot` rows per rank
    std::vector<int> first;           ///< row of each of its experts' first token; and the end
  };
  Routes routes_of(int rank) {
    Routes routes;
    for (const auto& row : routed_) {
      for (const int one : row) routes.slot = std::max(routes.slot, one);
    }
    const auto place_of = [&](int from, int to, int number) {
      return (from == rank ? to : from) * routes.slot + number;
    };
    std::vector<std::vector<int>> by_expert(at(model_.experts));
    std::vector<int> sent;
    for (int from = 0; from < ranks(); ++from) {
      std::array<int, kMostRanks> next{};
      for (const int token : tokens_of(from)) {
        const int expert = inputs_.expert[at(token)];
        const int to = owner_of(expert), number = next[at(to)]++;
        if (from == rank) sent.push_back(place_of(from, to, number));
        if (to == rank) by_expert[at(expert)].push_back(from * routes.slot + number);
      }
    }
    std::vector<int> got;
    for (int expert = begin_of(model_.experts, rank); expert < begin_of(model_.experts, rank + 1);
         ++expert) {
      routes.first.push_back(static_cast<int>(got.size()));
      got.insert(got.end(), by_expert[at(expert)].begin(), by_expert[at(expert)].end());
    }
    routes.first.push_back(static_cast<int>(got.size()));
    routes.sent = indices(rank, sent);
    routes.got = indices(rank, got);
    return routes;
  }
  int owner_of(int expert) const {
    int rank = 0;
    while (begin_of(model_.experts, rank + 1) <= expert) ++rank;
    return rank;
  }
  /// Rows in blocks, to all ranks; `turned`: back to where they came from.
  Tensor to_all(int rank, const char* what, int layer, bool backward, bool turned,
                const Routes& routes, const Tensor& blocks) {
    CallShape shape = in_rows(Op::all_to_all, 0);
    shape.slot = routes.slot;
    for (int from = 0; from < ranks(); ++from) {
      for (int to = 0; to < ranks(); ++to)
        shape.counts[at(from)][at(to)] =
            turned ? routed_[at(to)][at(from)] : routed_[at(from)][at(to)];
    }
    const Tensor got = make(rank, kScratch, ranks() * routes.slot, width());
    join(rank, of_layer(what, layer), backward, shape, blocks, got);
    return got;
  }
  /// Rows of tokens to the experts that they are for.
  void dispatch(int rank, const char* what, int layer, bool backward, const Routes& routes,
                const Tensor& tokens, const Tensor& rows) {
    const Tensor blocks = make(rank, kScratch, ranks() * routes.slot, width());
    take_rows(rank, routes.sent, true, tokens, blocks);
    const Tensor got = to_all(rank, what, layer, backward, false, routes, blocks);
    take_rows(rank, routes.got, false, got, rows);
  }
  Tensor combine(int rank, const char* what, int layer, bool backward, const Routes& routes,
                 const Tensor& rows, int tokens) {
    const Tensor blocks = make(rank, kScratch, ranks() * routes.slot, width());
    take_rows(rank, routes.got, true, rows, blocks);
    const Tensor back = to_all(rank, what, layer, backward, true, routes, blocks);
    const Tensor made = make(rank, kScratch, tokens, width());
    take_rows(rank, routes.sent, false, back, made);
    return made;
  }

  // ---- whole ranks --------------------------------------------------------------------------------------

  std::vector<int> tokens_of(int rank) const {
    std::vector<int> all;
    const auto add = [&](int sequence, int from, int to) {
      for (int position = from; position < to; ++position)
        all.push_back(sequence * model_.length + position);
    };
    if (cut_ == Cut::sequence) {
      const auto tokens = static_cast<int>(model_.tokens());
      add(0, begin_of(tokens, rank), begin_of(tokens, rank + 1));
      return all;
    }
    const bool whole = cut_ == Cut::tensor;
    const bool zigzag = cut_ == Cut::context;
    const int first = whole || zigzag ? 0 : begin_of(model_.sequences, rank);
    const int last = whole || zigzag ? model_.sequences : begin_of(model_.sequences, rank + 1);
    for (int sequence = first; sequence < last; ++sequence) {
      if (!zigzag) {
        add(sequence, 0, model_.length);
        continue;
      }
      // An early block and a late one: all ranks see as many keys.
      for (const int block : {rank, 2 * ranks() - 1 - rank})
        add(sequence, part_begin(model_.length, 2 * ranks(), block),
            part_begin(model_.length, 2 * ranks(), block + 1));
    }
    return all;
  }
  /// Where tokens stand, for attention.
  simt::Span<const int> places(int rank, const std::vector<int>& tokens) {
    std::vector<int> made;
    for (const int token : tokens)
      made.push_back(token / model_.length * kLongest + token % model_.length);
    return indices(rank, made);
  }
  template <class Vector>
  Vector rows_of(const Vector& all, const std::vector<int>& tokens) const {
    Vector made;
    for (const int token : tokens) {
      const auto row = all.begin() + token * width();
      made.insert(made.end(), row, row + width());
    }
    return made;
  }
  std::vector<int> all_tokens() const {
    std::vector<int> all(at(model_.tokens()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  /// A rank's weights of a layer with their gradients, and Adam's step once those are there.
  struct Held {
    simt::Span<float> weights, gradients;
  };
  Held hold(int rank, const Numbers& weights) {
    const auto numbers = static_cast<int>(weights.size());
    return {put(rank, Kind::parameters, weights, 1).span,
            zeros(rank, Kind::gradients, numbers, 1).span};
  }
  void step(int rank, const Held& held, const Numbers& weights, std::vector<double> gradients) {
    const Tensor moments = make(rank, Kind::optimizer, 2 * static_cast<int>(held.weights.count), 1);
    then(rank, [this, rank, held, moments = moments.span] {
      team_.kernels().adam(team_.ranks(), rank, held.weights, held.gradients, moments);
    });
    std::vector<double> stepped;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double change = static_cast<double>(kRate) * gradients[i] /
                            (std::abs(gradients[i]) + static_cast<double>(kAdamEpsilon));
      stepped.push_back(static_cast<double>(weights[i]) - change);
    }
    expect(&CutRun::gradients, held.gradients, std::move(gradients));
    expect(&CutRun::weights, held.weights, std::move(stepped));
  }

  void build(int rank) {
    const std::vector<int> tokens = tokens_of(rank);
    const std::vector<int> attended = cut_ == Cut::sequence ? all_tokens() : tokens;
    const auto rows = static_cast<int>(tokens.size());
    const Part part = part_of_rank(rank);
    const simt::Span<const int> places_here = places(rank, attended);
    std::vector<simt::Span<const int>> places_of;
    for (int other = 0; other < ranks() && cut_ == Cut::context; ++other)
      places_of.push_back(places(rank, tokens_of(other)));
    gathered_.clear();
    for (int i = 0; i < 2 && cut_ == Cut::sequence; ++i)
      gathered_.push_back(make(rank, Kind::gathered, static_cast<int>(model_.tokens()), width()));
    Routes routes;
    if (cut_ == Cut::expert) routes = routes_of(rank);
    const int expert_rows = routes.first.empty() ? 0 : routes.first.back();

    // Weights: of FSDP only a stretch of each layer's.
    const auto packs = static_cast<int>(model_.layer() / kPack);
    const auto stretch = [&](const auto& all) {
      using Vector = std::decay_t<decltype(all)>;
      if (cut_ != Cut::fsdp) return part_of(model_, all, part);
      return Vector(all.begin() + begin_of(packs, rank) * kPack,
                    all.begin() + begin_of(packs, rank + 1) * kPack);
    };
    std::vector<Held> held;
    for (const Numbers& layer : inputs_.layers) held.push_back(hold(rank, stretch(layer)));
    Tensor whole, whole_gradients;
    if (cut_ == Cut::fsdp) {
      whole = make(rank, Kind::gathered, packs * kPack, 1);
      whole_gradients = make(rank, Kind::gathered, packs * kPack, 1);
    }
    const CallShape weights_shape{.op = Op::all_gather, .ranks = ranks(), .units = packs};
    const auto weights_of = [&](int layer, bool backward) {
      if (cut_ != Cut::fsdp) return weights_in(held[at(layer)].weights, part);
      const Tensor mine{held[at(layer)].weights, static_cast<int>(held[at(layer)].weights.count),
                        1};
      join(rank, of_layer(backward ? "weights again" : "weights", layer), backward, weights_shape,
           mine, whole);
      return weights_in(whole.span, part);
    };

    std::vector<Saved> saved;
    Tensor x = put(rank, kScratch, rows_of(inputs_.x, tokens), width());
    for (int layer = 0; layer < model_.layers; ++layer) {
      const Weights w = weights_of(layer, false);
      saved.push_back(saved_for(rank, rows, static_cast<int>(attended.size()), part, expert_rows));
      const Saved& s = saved.back();
      each(rank, Each::copy, s.x, x);
      project(rank, w, s, spread(rank, "x", layer, false, s.x, 0));
      if (cut_ == Cut::context) {
        go_round(rank, layer, false, {s.k, s.v}, 2, [&](const std::vector<Tensor>& kv, int owner) {
          attend(rank, s, kv[0], kv[1], places_here, places_of[at(owner)]);
        });
      } else {
        attend(rank, s, s.k, s.v, places_here, places_here);
      }
      finish(rank, s);
      const Tensor share = make(rank, kScratch, s.o.rows, width());
      multiply(rank, share, s.o, w.o);
      add_to(rank, s.y, s.x, summed(rank, "attention", layer, false, share));
      Tensor made;
      if (cut_ == Cut::expert) {
        dispatch(rank, "dispatch", layer, false, routes, s.y, s.rows);
        const Tensor out = make(rank, kScratch, expert_rows, width());
        for (int expert = 0; expert < part.experts; ++expert) {
          const int first = routes.first[at(expert)], count = routes.first[at(expert + 1)] - first;
          each(rank, Each::copy, out.part(first, count),
               mlp(rank, w, expert, s.rows.part(first, count), s.a.part(first, count)));
        }
        made = combine(rank, "combine", layer, false, routes, out, rows);
      } else {
        made = summed(rank, "MLP", layer, false,
                      mlp(rank, w, 0, spread(rank, "y", layer, false, s.y, 0), s.a));
      }
      x = make(rank, kScratch, rows, width());
      add_to(rank, x, s.y, made);
    }
    expect(&CutRun::outputs, x.span, rows_of(want_.z, tokens));
    outputs_.push_back({x.span, tokens});

    Tensor d_z = put(rank, kScratch, rows_of(inputs_.d_z, tokens), width());
    for (int layer = model_.layers - 1; layer >= 0; --layer) {
      const Saved& s = saved[at(layer)];
      const Held& its = held[at(layer)];
      const Weights w = weights_of(layer, true);
      // Where gradients gather before ranks add them up.
      simt::Span<float> local = its.gradients;
      if (cut_ == Cut::fsdp) {
        local = whole_gradients.span;
        each(rank, Each::fill, whole_gradients);
      } else if (cut_ == Cut::data || cut_ == Cut::context) {
        local = zeros(rank, kScratch, packs * kPack, 1).span;
      }
      Weights g = weights_in(local, part);
      if (cut_ == Cut::expert) {
        const Weights apart =
            weights_in(zeros(rank, kScratch, static_cast<int>(its.gradients.count), 1).span, part);
        g.q = apart.q, g.k = apart.k, g.v = apart.v, g.o = apart.o;
        g.all = apart.all;
      }
      const Tensor all_d_z = spread(rank, "dz", layer, true, d_z, 0);
      Tensor d_y = make(rank, kScratch, rows, width()), from_mlp;
      if (cut_ == Cut::expert) {
        const Tensor d_rows = make(rank, kScratch, expert_rows, width()),
                     out = make(rank, kScratch, expert_rows, width());
        dispatch(rank, "dispatch of dz", layer, true, routes, d_z, d_rows);
        for (int expert = 0; expert < part.experts; ++expert) {
          const int first = routes.first[at(expert)], count = routes.first[at(expert + 1)] - first;
          each(rank, Each::copy, out.part(first, count),
               mlp_back(rank, w, g, expert, s.rows.part(first, count), s.a.part(first, count),
                        d_rows.part(first, count)));
        }
        from_mlp = combine(rank, "combine of dy", layer, true, routes, out, rows);
      } else {
        const Tensor y = spread(rank, "y again", layer, true, s.y, 1);
        from_mlp = summed(rank, "MLP's dy", layer, true, mlp_back(rank, w, g, 0, y, s.a, all_d_z));
      }
      add_to(rank, d_y, d_z, from_mlp);
      Back back = begin_back(rank, w, g, s, spread(rank, "dy", layer, true, d_y, 0));
      if (cut_ == Cut::context) {
        const Tensor home = go_round(rank, layer, true, {s.k, s.v}, 4,
                                     [&](const std::vector<Tensor>& kv, int owner) {
                                       attend_back(rank, s, back, kv[0], kv[1], kv[2], kv[3],
                                                   places_here, places_of[at(owner)]);
                                     });
        back.d_k = home.part(2 * most_tokens(), rows);
        back.d_v = home.part(3 * most_tokens(), rows);
      } else {
        attend_back(rank, s, back, s.k, s.v, back.d_k, back.d_v, places_here, places_here);
      }
      const Tensor all_x = spread(rank, "x again", layer, true, s.x, 1);
      const Tensor d_x = make(rank, kScratch, rows, width());
      add_to(rank, d_x, d_y,
             summed(rank, "attention's dx", layer, true, end_back(rank, w, g, back, all_x)));
      d_z = d_x;
      reduce_gradients(rank, layer, its, g);
      step(rank, its, stretch(inputs_.layers[at(layer)]), stretch(want_.gradients[at(layer)]));
    }
    expect(&CutRun::inputs, d_z.span, rows_of(want_.d_x, tokens));
  }
  void reduce_gradients(int rank, int layer, const Held& held, const Weights& local) {
    const auto packs = static_cast<int>(model_.layer() / kPack);
    CallShape shape{.op = Op::all_reduce, .ranks = ranks(), .units = packs};
    const char* name = "gradients";
    Tensor in{local.all, static_cast<int>(local.all.count), 1},
        out{held.gradients, static_cast<int>(held.gradients.count), 1};
    if (cut_ == Cut::fsdp) {
      shape.op = Op::reduce_scatter;
      const Tensor sum = make(rank, kScratch, packs * kPack, 1);
      join(rank, of_layer(name, layer), true, shape, in, sum);
      const int first = begin_of(packs, rank) * kPack;
      each(rank, Each::copy, out, sum.part(first, out.rows));
      return;
    }
    if (cut_ == Cut::expert) {
      name = "attention's gradients";
      shape.units = static_cast<int>(model_.attention() / kPack);
      in = in.part(0, shape.units * kPack);
      out = out.part(0, shape.units * kPack);
    } else if (cut_ != Cut::data && cut_ != Cut::context) {
      return;
    }
    join(rank, of_layer(name, layer), true, shape, in, out);
  }

  // ---- stages -------------------------------------------------------------------------------------------

  void build_stages(int rank) {
    const int stages = stages_of(schedule_, ranks());
    const std::vector<Slot> slots = pipeline_of(schedule_, ranks(), microbatches_);
    const Part part = part_of_rank(rank);
    std::map<int, Held> held;
    for (int stage = rank; stage < stages; stage += ranks())
      held[stage] = hold(rank, inputs_.layers[at(stage)]);
    const auto microbatch_tokens = [&](int microbatch) {
      std::vector<int> all;
      const int first = part_begin(model_.sequences, microbatches_, microbatch) * model_.length;
      const int last = part_begin(model_.sequences, microbatches_, microbatch + 1) * model_.length;
      for (int token = first; token < last; ++token) all.push_back(token);
      return all;
    };
    std::size_t most = 0;
    for (int m = 0; m < microbatches_; ++m) most = std::max(most, microbatch_tokens(m).size());
    // As many sets of activations as there are microbatches under way.
    std::vector<Saved> room;
    for (int i = 0; i < in_flight(slots, rank); ++i)
      room.push_back(saved_for(rank, static_cast<int>(most), static_cast<int>(most), part, 0));
    std::map<std::pair<int, int>, std::size_t> in_room;  // by stage and microbatch
    const auto pass = [&](bool backward, int microbatch, int stage, int to, int from,
                          const Tensor& in, const Tensor& out) {
      CallShape shape = in_rows(Op::pass, static_cast<int>(microbatch_tokens(microbatch).size()));
      shape.eager = true;  // each has a place of its own
      const int call = join(rank,
                            fmt::format("{} {} from stage {}", backward ? "gradient" : "microbatch",
                                        microbatch + 1, stage + 1),
                            backward, shape, in, out);
      team_.neighbours(call, rank, to, from);
    };
    const auto rank_of = [&](int stage) { return stage % ranks(); };
    for (const Slot& slot : slots) {
      if (slot.rank != rank) continue;
      const std::vector<int> tokens = microbatch_tokens(slot.microbatch);
      const auto rows = static_cast<int>(tokens.size());
      const simt::Span<const int> where = places(rank, tokens);
      const Weights w = weights_in(held[slot.stage].weights, part),
                    g = weights_in(held[slot.stage].gradients, part);
      const bool is_last = slot.stage + 1 == stages;
      if (!slot.backward) {
        std::size_t place = 0;
        const auto is_taken = [&](std::size_t one) {
          return std::any_of(in_room.begin(), in_room.end(),
                             [&](const auto& entry) { return entry.second == one; });
        };
        while (is_taken(place)) ++place;
        in_room[{slot.stage, slot.microbatch}] = place;
      }
      const auto found = in_room.find({slot.stage, slot.microbatch});
      const Saved s = first_rows(room[found->second], rows);
      if (!slot.backward) {
        if (slot.stage == 0) {
          each(rank, Each::copy, s.x, put(rank, kScratch, rows_of(inputs_.x, tokens), width()));
        } else {
          const Tensor came = make(rank, kScratch, rows, width());
          pass(false, slot.microbatch, slot.stage - 1, -1, rank_of(slot.stage - 1), {}, came);
          each(rank, Each::copy, s.x, came);
        }
        project(rank, w, s, s.x);
        attend(rank, s, s.k, s.v, where, where);
        finish(rank, s);
        const Tensor share = make(rank, kScratch, rows, width());
        multiply(rank, share, s.o, w.o);
        add_to(rank, s.y, s.x, share);
        const Tensor z = make(rank, kScratch, rows, width());
        add_to(rank, z, s.y, mlp(rank, w, 0, s.y, s.a));
        if (!is_last) {
          pass(false, slot.microbatch, slot.stage, rank_of(slot.stage + 1), -1, z, {});
        } else {
          expect(&CutRun::outputs, z.span, rows_of(want_.z, tokens));
          outputs_.push_back({z.span, tokens});
        }
        continue;
      }
      Tensor d_z = make(rank, kScratch, rows, width());
      if (is_last) {
        d_z = put(rank, kScratch, rows_of(inputs_.d_z, tokens), width());
      } else {
        pass(true, slot.microbatch, slot.stage + 1, -1, rank_of(slot.stage + 1), {}, d_z);
      }
      const Tensor d_y = make(rank, kScratch, rows, width()),
                   d_x = make(rank, kScratch, rows, width());
      add_to(rank, d_y, d_z, mlp_back(rank, w, g, 0, s.y, s.a, d_z));
      const Back back = begin_back(rank, w, g, s, d_y);
      attend_back(rank, s, back, s.k, s.v, back.d_k, back.d_v, where, where);
      add_to(rank, d_x, d_y, end_back(rank, w, g, back, s.x));
      if (slot.stage > 0) {
        pass(true, slot.microbatch, slot.stage, rank_of(slot.stage - 1), -1, d_x, {});
      } else {
        expect(&CutRun::inputs, d_x.span, rows_of(want_.d_x, tokens));
      }
      in_room.erase(found);
    }
    for (const auto& [stage, its] : held)
      step(rank, its, inputs_.layers[at(stage)], want_.gradients[at(stage)]);
  }
  static Saved first_rows(Saved saved, int rows) {
    for (Tensor* one :
         {&saved.x, &saved.q, &saved.k, &saved.v, &saved.o, &saved.m, &saved.l, &saved.y, &saved.a})
      *one = one->part(0, rows);
    return saved;
  }

  // ---- results ------------------------------------------------------------------------------------------

  struct Expected {
    lab::Closest CutRun::*what;
    simt::Span<float> got;
    std::vector<double> want;
  };
  void expect(lab::Closest CutRun::*what, simt::Span<float> got, std::vector<double> want) {
    expected_.push_back({what, got, std::move(want)});
  }
  void compare(const Expected& one) {
    double largest = 0;
    for (const double number : one.want) largest = std::max(largest, std::abs(number));
    // Sums of as many products in FP32 as there are tokens, through the layers and back.
    const double each = static_cast<double>(model_.tokens()) * 0x1p-24 * std::max(largest, 1.0);
    const Numbers got = team_.download(one.got);
    const bool stepped = one.what == &CutRun::weights;
    for (std::size_t i = 0; i < got.size(); ++i) {
      // A step divides by a gradient, and by no less than ε.
      const double bound =
          stepped ? each * static_cast<double>(kRate / kAdamEpsilon) + 0x1p-23 : each;
      (run_.*one.what).add(got[i], one.want[i], bound);
    }
    for (const auto& [span, tokens] : outputs_) {
      if (span.data != one.got.data) continue;
      for (std::size_t i = 0; i < got.size(); ++i)
        run_.z[at(tokens[i / at(width())] * width()) + i % at(width())] = got[i];
    }
  }

  Team team_;
  const Cut cut_;
  const ModelShape model_;
  const ModelInputs inputs_;
  const ModelResult want_;
  const Counts routed_;
  const Schedule schedule_;
  const int microbatches_;
  std::vector<std::vector<std::function<void()>>> programs_;
  std::vector<Tensor> gathered_;  ///< of the rank that is being built
  std::vector<Named> names_;
  std::map<std::string, int> numbers_;
  std::vector<Expected> expected_;
  std::vector<std::pair<simt::Span<float>, std::vector<int>>> outputs_;
  CutRun run_;
};

}  // namespace

Counts routed_of(const ModelShape& model, const ModelInputs& inputs, int ranks) {
  Counts counts{};
  if (model.experts == 0) return counts;
  for (std::int64_t token = 0; token < model.tokens(); ++token) {
    int from = 0, to = 0;
    while (part_begin(model.sequences, ranks, from + 1) * model.length <= token) ++from;
    while (part_begin(model.experts, ranks, to + 1) <= inputs.expert[at(token)]) ++to;
    ++counts[at(from)][at(to)];
  }
  return counts;
}

CutRun run_cut(simt::Device& device, Cut cut, int ranks, Schedule schedule, int microbatches,
               std::int64_t seed, simt::ThreadOrder order) {
  return Builder(device, cut, ranks, schedule, microbatches, seed, order).run();
}

}  // namespace tilestep::parallelism

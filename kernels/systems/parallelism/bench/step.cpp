#include "kernels/systems/parallelism/bench/step.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/systems/parallelism/bench/timed.hpp"

namespace tilestep::parallelism {
namespace {

using numeric::Bf16;

using Bf16s = simt::Span<std::uint16_t>;

/// Rows of a matrix, or some columns of one.
struct Matrix {
  Bf16s data;
  int rows = 0, columns = 0, pitch = 0;

  Matrix columns_from(int first, int some) const {
    return {{data.data + first, data.count - at(first)}, rows, some, pitch};
  }
  Matrix rows_from(int first, int some) const {
    return {{data.data + at(first) * at(pitch), at(some) * at(pitch)}, some, columns, pitch};
  }
};
/// What a matrix's numbers are in one rank's step; a gradient has the name of its weights.
enum class What { x, d_output, d_kv, q, o, up, down, output, d_input };
struct Piece {
  Matrix matrix;
  What what = What::x;
  int layer = 0, expert = 0, row = 0, column = 0;  ///< where it begins there
};

/// A number that the host chooses; products keep their size.
double chosen(What what, int layer, int expert, int row, int column, int fan_in) {
  std::uint64_t bits = static_cast<std::uint64_t>(what);
  for (const int each : {layer, expert, row, column}) {
    bits = (bits + static_cast<std::uint64_t>(each) + 1) * 0x9E3779B97F4A7C15u;
    bits ^= bits >> 29;
  }
  const double uniform = static_cast<double>(bits >> 40) * 0x1p-23 - 1.0;
  return static_cast<double>(Bf16::round(static_cast<float>(uniform * std::sqrt(3.0 / fan_in))));
}

/// A step by one rank, in double.
class OneRank {
 public:
  OneRank(const ModelShape& model, int ranks, bool routes)
      : model_(model), ranks_(ranks), routes_(routes) {
    const int layers = model.layers, width = this->width();
    const auto tokens = static_cast<int>(model.tokens());
    std::vector<Array> x(at(layers + 1)), q(at(layers)), y(at(layers)), h(at(layers));
    x[0] = made(What::x, 0, 0, tokens, width, 3);
    for (int l = 0; l < layers; ++l) {
      q[at(l)] = times(x[at(l)], weights(What::q, l, 0));
      y[at(l)] = times(left(q[at(l)]), weights(What::o, l, 0));
      h[at(l)] = {tokens, model.inner, Numbers(at(tokens * model.inner))};
      x[at(l + 1)] = {tokens, width, Numbers(at(tokens * width))};
      for (int e = 0; e < experts(); ++e) {
        put(h[at(l)], e, times(rows(y[at(l)], e), weights(What::up, l, e)));
        put(x[at(l + 1)], e, times(rows(h[at(l)], e), weights(What::down, l, e)));
      }
    }
    output_ = x[at(layers)];
    Array d_z = made(What::d_output, 0, 0, tokens, width, 3);
    gradients_.resize(at(layers));
    for (int l = layers - 1; l >= 0; --l) {
      auto& g = gradients_[at(l)];
      Array d_y{tokens, width, Numbers(at(tokens * width))};
      for (int e = 0; e < experts(); ++e) {
        const Array d_z_e = rows(d_z, e);
        g[1].push_back(times(turned(rows(h[at(l)], e)), d_z_e));
        const Array d_h = times(d_z_e, turned(weights(What::down, l, e)));
        g[0].push_back(times(turned(rows(y[at(l)], e)), d_h));
        put(d_y, e, times(d_h, turned(weights(What::up, l, e))));
      }
      g[2].push_back(times(turned(left(q[at(l)])), d_y));
      const Array d_o = times(d_y, turned(weights(What::o, l, 0)));
      Array d_q = made(What::d_kv, 0, 0, tokens, 3 * width, 3);
      for (int row = 0; row < tokens; ++row) {
        for (int i = 0; i < width; ++i) d_q(row, i) = d_o.get(row, i);
      }
      g[3].push_back(times(turned(x[at(l)]), d_q));
      d_z = times(d_q, turned(weights(What::q, l, 0)));
    }
    d_input_ = d_z;
  }

  double at_place(const Piece& piece, int row, int column) const {
    return of(piece).get(piece.row + row, piece.column + column);
  }
  /// Root mean square of the matrix that a piece is of.
  double size(const Piece& piece) const {
    double sum = 0;
    const Array& all = of(piece);
    for (const double each : all.numbers) sum += each * each;
    return std::sqrt(sum / static_cast<double>(all.numbers.size()));
  }

 private:
  using Numbers = std::vector<double>;
  struct Array {
    int rows = 0, columns = 0;
    Numbers numbers;
    double& operator()(int row, int column) { return numbers[at(row * columns + column)]; }
    double get(int row, int column) const { return numbers[at(row * columns + column)]; }
  };

  int width() const { return static_cast<int>(model_.width()); }
  int experts() const { return std::max(1, model_.experts); }
  /// Tokens go to experts by their places: each rank has as many for each other one.
  int expert_of(int token) const {
    if (!routes_) return 0;
    const auto tokens = static_cast<int>(model_.tokens());
    const int own = tokens / ranks_, block = own / ranks_, from = token / own, place = token % own;
    const int got = from * block + place % block;
    return place / block * (experts() / ranks_) + got / (tokens / experts());
  }
  static Array made(What what, int layer, int expert, int rows, int columns, int fan_in) {
    Array all{rows, columns, {}};
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column)
        all.numbers.push_back(chosen(what, layer, expert, row, column, fan_in));
    }
    return all;
  }
  Array weights(What what, int layer, int expert) const {
    const int inner = model_.inner;
    if (what == What::q) return made(what, layer, expert, width(), 3 * width(), width());
    if (what == What::o) return made(what, layer, expert, width(), width(), width());
    if (what == What::up) return made(what, layer, expert, width(), inner, width());
    return made(what, layer, expert, inner, width(), inner);
  }
  static Array times(const Array& a, const Array& b) {
    Array c{a.rows, b.columns, Numbers(at(a.rows * b.columns))};
    for (int row = 0; row < a.rows; ++row) {
      for (int i = 0; i < a.columns; ++i) {
        for (int column = 0; column < b.columns; ++column)
          c(row, column) += a.get(row, i) * b.get(i, column);
      }
    }
    return c;
  }
  static Array turned(const Array& a) {
    Array c{a.columns, a.rows, {}};
    for (int row = 0; row < a.columns; ++row) {
      for (int column = 0; column < a.rows; ++column) c.numbers.push_back(a.get(column, row));
    }
    return c;
  }
  Array left(const Array& a) const {
    Array c{a.rows, width(), {}};
    for (int row = 0; row < a.rows; ++row) {
      for (int column = 0; column < width(); ++column) c.numbers.push_back(a.get(row, column));
    }
    return c;
  }
  /// The tokens of an expert, and back.
  Array rows(const Array& a, int expert) const {
    Array c{0, a.columns, {}};
    for (int row = 0; row < a.rows; ++row) {
      if (expert_of(row) != expert) continue;
      ++c.rows;
      for (int column = 0; column < a.columns; ++column) c.numbers.push_back(a.get(row, column));
    }
    return c;
  }
  void put(Array& to, int expert, const Array& from) const {
    int next = 0;
    for (int row = 0; row < to.rows; ++row) {
      if (expert_of(row) != expert) continue;
      for (int column = 0; column < to.columns; ++column) to(row, column) = from.get(next, column);
      ++next;
    }
  }
  const Array& of(const Piece& piece) const {
    const auto& g = gradients_[at(piece.layer)];
    switch (piece.what) {
      case What::up:
        return g[0][at(piece.expert)];
      case What::down:
        return g[1][at(piece.expert)];
      case What::o:
        return g[2][0];
      case What::q:
        return g[3][0];
      case What::output:
        return output_;
      default:
        return d_input_;
    }
  }

  const ModelShape model_;
  const int ranks_;
  const bool routes_;
  Array output_, d_input_;
  std::vector<std::array<std::vector<Array>, 4>> gradients_;  ///< by layer: up, down, o, q
};

class CutStep final : public Step {
 public:
  CutStep(simt::Device& device, Cut cut, const ModelShape& model, int ranks, const How& how)
      : cut_(cut),
        model_(model),
        how_(how),
        team_(device, ranks),
        width_(static_cast<int>(model.width())),
        tokens_(static_cast<int>(model.tokens())),
        program_(at(ranks)) {
    const bool columns = cut == Cut::tensor || cut == Cut::sequence;
    heads_ = columns ? width_ / ranks : width_;
    inner_ = columns ? model.inner / ranks : model.inner;
    experts_ = cut == Cut::expert ? model.experts / ranks : 1;
    std::mt19937 generator = lab::generator_of(46);
    std::vector<float> some = lab::uniform_floats(generator, how.numbers ? 1 : kRepeated);
    for (const float each : some)
      filler_.push_back(Bf16::bits(each * std::sqrt(3.0f / static_cast<float>(width_))));
    switch (cut) {
      case Cut::tensor:
      case Cut::sequence:
        by_columns();
        break;
      case Cut::pipeline:
        by_stages();
        break;
      case Cut::expert:
        by_experts();
        break;
      default:
        by_rows();
    }
  }

  bool apart() override { return team_.ranks().apart(); }
  void warm() override {
    if (team_.ranks().stream(0) == nullptr) return;
    team_.ranks().run([&](int rank) {
      for (const Do& one : program_[at(rank)]) {
        if (one.call < 0) run(rank, one);
      }
    });
  }
  lab::Closest compared() override {
    team_.ranks().run([&](int rank) { run(rank); });
    team_.require_met();
    const OneRank one(model_, team_.count(), cut_ == Cut::expert);
    lab::Closest closest;
    for (const auto& [piece, valid] : results_) {
      // Of BF16's 8 bits some are lost in each of the products that follow each other.
      const double bound = 0x1p-4 * model_.layers * one.size(piece);
      for (int row = 0; row < piece.matrix.rows; ++row) {
        const Matrix its = piece.matrix.rows_from(row, 1);
        const std::vector<std::uint16_t> got =
            team_.download(Bf16s{its.data.data, at(its.columns)});
        for (int column = 0; column < its.columns; ++column) {
          const std::uint16_t* place = its.data.data + column;
          if (place < valid.data || place >= valid.data + valid.count) continue;
          closest.add(Bf16::value(got[at(column)]), one.at_place(piece, row, column), bound);
        }
      }
    }
    return closest;
  }
  std::vector<double> times(int samples) override {
    return team_.ranks().time_ms(
        [&] {
          for (int rank = 0; rank < team_.count(); ++rank) run(rank);
        },
        1, samples);
  }
  std::vector<double> product_times(int samples) override {
    return team_.ranks().time_ms(
        [&] {
          for (int rank = 0; rank < team_.count(); ++rank) run(rank, program_[at(rank)][first_up_]);
        },
        8, samples);
  }
  double product_flops() const override {
    const Product& p = program_[0][first_up_].product;
    return 2.0 * p.m * p.n * p.k;
  }

 private:
  /// What a rank has of a layer, or the gradients of that.
  struct Weights {
    Bf16s all;
    Matrix q, o;
    std::vector<Matrix> up, down;  ///< by expert
  };
  /// What forward leaves for backward; `h` by expert.
  struct Kept {
    Matrix x, q, y, z;
    std::vector<Matrix> h;
  };
  /// One thing that a rank does.
  struct Do {
    int call = -1;  ///< of the team; −1: a product
    Product product = {};
    Bf16s a = {}, b = {}, c = {};
  };
  struct Result {
    Piece piece;
    Bf16s valid;
  };

  int ranks() const { return team_.count(); }
  void run(int rank, const Do& one) {
    if (one.call >= 0) return team_.make(one.call, rank);
    team_.kernels().multiply_bf16(team_.ranks(), rank, one.product, one.a, one.b, one.c);
  }
  void run(int rank) {
    for (const Do& one : program_[at(rank)]) run(rank, one);
  }

  // ---- memory -----------------------------------------------------------------------------------------

  Matrix unwritten(int rank, int rows, int columns) {
    return {team_.unwritten<std::uint16_t>(rank, at(rows) * at(columns)), rows, columns, columns};
  }
  std::vector<Matrix> unwritten_by_rank(int rows, int columns) {
    std::vector<Matrix> all;
    for (int rank = 0; rank < ranks(); ++rank) all.push_back(unwritten(rank, rows, columns));
    return all;
  }
  void upload(int rank, const Piece& piece) {
    const int fan_in = piece.what < What::q ? 3 : piece.what == What::down ? model_.inner : width_;
    for (int row = 0; row < piece.matrix.rows; ++row) {
      std::vector<std::uint16_t> numbers;
      for (int column = 0; column < piece.matrix.columns; ++column) {
        numbers.push_back(
            Bf16::bits(static_cast<float>(chosen(piece.what, piece.layer, piece.expert,
                                                 piece.row + row, piece.column + column, fan_in))));
      }
      team_.ranks().at(rank).copy_in(piece.matrix.rows_from(row, 1).data.data, numbers.data(),
                                     2 * numbers.size());
    }
  }
  /// A matrix of numbers that are given: rows of the whole from `row` on.
  Matrix given(int rank, What what, int row, int rows, int columns) {
    const Matrix made = unwritten(rank, rows, columns);
    if (how_.numbers) {
      upload(rank, {made, what, 0, 0, row, 0});
    } else {
      fill_repeated(team_, rank, made.data, filler_);
    }
    return made;
  }
  /// Gradients of q, k and v: those of the rank's heads.
  Matrix given_of_q(int rank, int row, int rows) {
    const Matrix made = unwritten(rank, rows, 3 * heads_);
    const int first = heads_ < width_ ? rank * heads_ : 0;
    if (!how_.numbers) fill_repeated(team_, rank, made.data, filler_);
    for (int of = 0; of < 3 && how_.numbers; ++of)
      upload(rank,
             {made.columns_from(of * heads_, heads_), What::d_kv, 0, 0, row, of * width_ + first});
    return made;
  }
  std::size_t numbers_of_layer() const {
    return 4 * at(width_) * at(heads_) + at(experts_) * 2 * at(width_) * at(inner_);
  }
  Weights laid_out(Bf16s all) const {
    Weights made;
    made.all = all;
    std::uint16_t* next = all.data;
    const auto take = [&](int rows, int columns) {
      const Matrix matrix{{next, at(rows) * at(columns)}, rows, columns, columns};
      next += matrix.data.count;
      return matrix;
    };
    made.q = take(width_, 3 * heads_);
    made.o = take(heads_, width_);
    for (int expert = 0; expert < experts_; ++expert) {
      made.up.push_back(take(width_, inner_));
      made.down.push_back(take(inner_, width_));
    }
    return made;
  }
  Weights unwritten_layer(int rank) {
    return laid_out(team_.unwritten<std::uint16_t>(rank, numbers_of_layer()));
  }
  /// Where the parts of a rank's layer are in the whole.
  std::vector<Piece> pieces_of(int rank, int layer, const Weights& its) const {
    const int head = heads_ < width_ ? rank * heads_ : 0;
    const int column = inner_ < model_.inner ? rank * inner_ : 0;
    std::vector<Piece> all;
    for (int of = 0; of < 3; ++of)
      all.push_back(
          {its.q.columns_from(of * heads_, heads_), What::q, layer, 0, 0, of * width_ + head});
    all.push_back({its.o, What::o, layer, 0, head, 0});
    for (int e = 0; e < experts_; ++e) {
      const int expert = cut_ == Cut::expert ? rank * experts_ + e : 0;
      all.push_back({its.up[at(e)], What::up, layer, expert, 0, column});
      all.push_back({its.down[at(e)], What::down, layer, expert, column, 0});
    }
    return all;
  }
  Weights given_layer(int rank, int layer) {
    const Weights made = unwritten_layer(rank);
    if (!how_.numbers) fill_repeated(team_, rank, made.all, filler_);
    for (const Piece& piece : pieces_of(rank, layer, made)) {
      if (how_.numbers) upload(rank, piece);
    }
    return made;
  }
  void expect(const Piece& piece) { results_.push_back({piece, piece.matrix.data}); }
  /// The gradients of a layer, or those between the ends of `valid`.
  void expect_layer(int rank, int layer, const Weights& gradients, Bf16s valid) {
    for (const Piece& piece : pieces_of(rank, layer, gradients)) results_.push_back({piece, valid});
  }

  // ---- what is done -----------------------------------------------------------------------------------

  struct Factor {
    const Matrix& matrix;
    bool turned = false;
  };
  static Factor turned(const Matrix& matrix) { return {matrix, true}; }
  void multiply(int rank, const Matrix& c, Factor a, Factor b, bool adds = false) {
    Do& one = program_[at(rank)].emplace_back();
    one.product = {.m = c.rows,
                   .n = c.columns,
                   .k = a.turned ? a.matrix.rows : a.matrix.columns,
                   .lda = a.matrix.pitch,
                   .ldb = b.matrix.pitch,
                   .ldc = c.pitch,
                   .turn_a = a.turned,
                   .turn_b = b.turned,
                   .adds = adds};
    one.a = a.matrix.data;
    one.b = b.matrix.data;
    one.c = c.data;
  }
  static simt::Span<float> as_packs(Bf16s numbers) {
    return {reinterpret_cast<float*>(numbers.data), numbers.count / 2};
  }
  int add_call(Op op, int units, int unit) {
    CallShape shape{.op = op, .ranks = ranks(), .units = units, .unit = unit};
    shape.blocks = how_.blocks;
    shape.threads = how_.threads;
    shape.bf16 = op == Op::all_reduce || op == Op::reduce_scatter;
    shape.eager = op == Op::pass && cut_ == Cut::pipeline;
    if (op == Op::all_to_all) {
      shape.slot = units / ranks();
      for (int from = 0; from < ranks(); ++from) shape.counts[at(from)].fill(shape.slot);
    }
    return team_.add(shape);
  }
  /// A call of all ranks: numbers in units of rows, or of packs.
  void call(Op op, int units, int unit, const std::vector<Bf16s>& in,
            const std::vector<Bf16s>& out) {
    const int made = add_call(op, units, unit);
    for (int rank = 0; rank < ranks(); ++rank) {
      team_.join(made, rank, as_packs(in[at(rank)]), as_packs(out[at(rank)]));
      program_[at(rank)].emplace_back().call = made;
    }
  }
  /// Of rows as wide as the model.
  void call_rows(Op op, const std::vector<Matrix>& in, const std::vector<Matrix>& out) {
    call(op, tokens_of(op), width_ / kBf16Pack, spans(in), spans(out));
  }
  int tokens_of(Op op) const { return op == Op::all_to_all ? tokens_ / ranks() : tokens_; }
  static std::vector<Bf16s> spans(const std::vector<Matrix>& matrices) {
    std::vector<Bf16s> all;
    for (const Matrix& each : matrices) all.push_back(each.data);
    return all;
  }
  static std::vector<Bf16s> spans(const std::vector<Weights>& layers) {
    std::vector<Bf16s> all;
    for (const Weights& each : layers) all.push_back(each.all);
    return all;
  }
  /// Of all of a layer's numbers, or the first of them.
  void call_layer(Op op, std::vector<Bf16s> in, std::vector<Bf16s> out, std::size_t numbers) {
    for (Bf16s& each : in) each.count = std::min(each.count, numbers);
    for (Bf16s& each : out) each.count = std::min(each.count, numbers);
    call(op, static_cast<int>(numbers / kBf16Pack), 1, in, out);
  }

  void attention(int rank, const Weights& w, const Kept& kept, const Matrix& y) {
    multiply(rank, kept.q, {kept.x}, {w.q});
    const Matrix o = kept.q.columns_from(0, heads_);
    multiply(rank, y, {o}, {w.o});
  }
  void attention_back(int rank, const Weights& w, const Weights& g, const Kept& kept,
                      const Matrix& d_y, const Matrix& d_q, const Matrix& d_x, bool adds = false) {
    const Matrix o = kept.q.columns_from(0, heads_), d_o = d_q.columns_from(0, heads_);
    multiply(rank, g.o, turned(o), {d_y}, adds);
    multiply(rank, d_o, {d_y}, turned(w.o));
    multiply(rank, g.q, turned(kept.x), {d_q}, adds);
    multiply(rank, d_x, {d_q}, turned(w.q));
  }
  void mlp(int rank, const Weights& w, const Matrix& y, const Matrix& h, const Matrix& z,
           int expert = 0) {
    if (rank == 0 && first_up_ == 0) first_up_ = program_[0].size();
    multiply(rank, h, {y}, {w.up[at(expert)]});
    multiply(rank, z, {h}, {w.down[at(expert)]});
  }
  void mlp_back(int rank, const Weights& w, const Weights& g, const Matrix& y, const Matrix& h,
                const Matrix& d_z, const Matrix& d_h, const Matrix& d_y, int expert = 0,
                bool adds = false) {
    multiply(rank, g.down[at(expert)], turned(h), {d_z}, adds);
    multiply(rank, d_h, {d_z}, turned(w.down[at(expert)]));
    multiply(rank, g.up[at(expert)], turned(y), {d_h}, adds);
    multiply(rank, d_y, {d_h}, turned(w.up[at(expert)]));
  }

  // ---- the cuts ---------------------------------------------------------------------------------------

  /// Blocks of keys and values, or of these and their gradients, go from rank to rank as often as there are hops. What is
  /// in them is no matter here: attention is not computed.
  void go_round(int widths, int hops, const std::array<std::vector<Matrix>, 2>& rooms) {
    for (int hop = 0; hop < hops; ++hop) {
      const std::vector<Matrix>&from = rooms[at(hop % 2)], &to = rooms[at((hop + 1) % 2)];
      const int made = add_call(Op::pass, tokens_ / ranks(), widths * width_ / kBf16Pack);
      for (int rank = 0; rank < ranks(); ++rank) {
        team_.join(made, rank, as_packs(from[at(rank)].data), as_packs(to[at(rank)].data));
        team_.neighbours(made, rank, (rank + 1) % ranks(), (rank + ranks() - 1) % ranks());
        program_[at(rank)].emplace_back().call = made;
      }
    }
  }
  /// data, fsdp, context: each rank has some of the tokens.
  void by_rows() {
    const int rows = tokens_ / ranks(), layers = model_.layers;
    const bool shards = cut_ == Cut::fsdp;
    const std::size_t numbers = numbers_of_layer();
    std::vector<std::vector<Weights>> own(at(layers)), g(at(layers)), sums(at(layers));
    std::vector<Weights> gathered;
    std::vector<std::vector<Kept>> kept(at(ranks()));
    std::vector<Matrix> d_h, d_y, d_q;
    std::array<std::vector<Matrix>, 2> rooms;
    for (int which = 0; which < 2 && cut_ == Cut::context; ++which) {
      for (int rank = 0; rank < ranks(); ++rank)
        rooms[at(which)].push_back(given(rank, What::d_output, rank * rows, rows, 4 * width_));
    }
    std::vector<std::array<Matrix, 2>> d_x;
    // What a rank keeps of a layer when layers are sharded: its packs.
    const auto shard = [&](int rank, Bf16s all) {
      const int packs = static_cast<int>(numbers / kBf16Pack);
      const std::size_t begin = at(part_begin(packs, ranks(), rank) * kBf16Pack),
                        end = at(part_begin(packs, ranks(), rank + 1) * kBf16Pack);
      return Bf16s{all.data + begin, end - begin};
    };
    for (int rank = 0; rank < ranks(); ++rank) {
      Matrix x = given(rank, What::x, rank * rows, rows, width_);
      for (int l = 0; l < layers; ++l) {
        own[at(l)].push_back(given_layer(rank, l));
        g[at(l)].push_back(unwritten_layer(rank));
        sums[at(l)].push_back(unwritten_layer(rank));
        const Matrix y = unwritten(rank, rows, width_), z = unwritten(rank, rows, width_);
        kept[at(rank)].push_back(
            {x, unwritten(rank, rows, 3 * width_), y, z, {unwritten(rank, rows, inner_)}});
        x = z;
        expect_layer(rank, l, sums[at(l)].back(),
                     shards ? shard(rank, sums[at(l)].back().all) : sums[at(l)].back().all);
      }
      if (shards) gathered.push_back(unwritten_layer(rank));
      d_h.push_back(unwritten(rank, rows, inner_));
      d_y.push_back(unwritten(rank, rows, width_));
      d_q.push_back(given_of_q(rank, rank * rows, rows));
      d_x.push_back({unwritten(rank, rows, width_), unwritten(rank, rows, width_)});
      expect({x, What::output, 0, 0, rank * rows, 0});
      expect({d_x.back()[0], What::d_input, 0, 0, rank * rows, 0});
    }
    const auto gather = [&](int l) {
      std::vector<Bf16s> parts;
      for (int rank = 0; rank < ranks(); ++rank)
        parts.push_back(shard(rank, own[at(l)][at(rank)].all));
      call_layer(Op::all_gather, parts, spans(gathered), numbers);
    };
    for (int l = 0; l < layers; ++l) {
      if (shards) gather(l);
      for (int rank = 0; rank < ranks(); ++rank) {
        const Weights& w = shards ? gathered[at(rank)] : own[at(l)][at(rank)];
        const Kept& k = kept[at(rank)][at(l)];
        attention(rank, w, k, k.y);
        mlp(rank, w, k.y, k.h[0], k.z);
      }
      if (cut_ == Cut::context) go_round(2, ranks() - 1, rooms);
    }
    std::vector<Matrix> d_z;
    for (int rank = 0; rank < ranks(); ++rank)
      d_z.push_back(given(rank, What::d_output, rank * rows, rows, width_));
    for (int l = layers - 1; l >= 0; --l) {
      if (shards) gather(l);
      for (int rank = 0; rank < ranks(); ++rank) {
        const Weights& w = shards ? gathered[at(rank)] : own[at(l)][at(rank)];
        const Weights& its = g[at(l)][at(rank)];
        const Kept& k = kept[at(rank)][at(l)];
        const Matrix& back = d_x[at(rank)][at(l % 2)];
        mlp_back(rank, w, its, k.y, k.h[0], d_z[at(rank)], d_h[at(rank)], d_y[at(rank)]);
        attention_back(rank, w, its, k, d_y[at(rank)], d_q[at(rank)], back);
        d_z[at(rank)] = back;
      }
      if (cut_ == Cut::context) go_round(4, ranks(), rooms);
      call_layer(shards ? Op::reduce_scatter : Op::all_reduce, spans(g[at(l)]), spans(sums[at(l)]),
                 numbers);
    }
  }

  /// tensor, sequence: each rank has some heads and some columns of the MLP.
  void by_columns() {
    const bool in_parts = cut_ == Cut::sequence;
    const int layers = model_.layers, own = in_parts ? tokens_ / ranks() : tokens_;
    std::vector<std::vector<Weights>> w(at(layers)), g(at(layers));
    std::vector<std::vector<Kept>> kept(at(layers));
    const auto first = [&](int rank) { return in_parts ? rank * own : 0; };
    // What a rank has of tokens that lie where all have room: all of them, or its part.
    const auto own_of = [&](const std::vector<Matrix>& all) {
      std::vector<Matrix> parts;
      for (int rank = 0; rank < ranks(); ++rank)
        parts.push_back(all[at(rank)].rows_from(first(rank), own));
      return parts;
    };
    std::vector<Matrix> x;
    for (int rank = 0; rank < ranks(); ++rank)
      x.push_back(given(rank, What::x, first(rank), own, width_));
    // In parts: tokens are gathered here before they are multiplied.
    std::vector<Matrix> room, other_room;
    if (in_parts) {
      room = unwritten_by_rank(tokens_, width_);
      other_room = unwritten_by_rank(tokens_, width_);
    }
    const auto whole = [&](const std::vector<Matrix>& parts, std::vector<Matrix>& to) {
      if (!in_parts) return parts;
      call_rows(Op::all_gather, parts, to);
      return to;
    };
    // Each rank's share of a sum becomes the sum: all of it, or the rank's part.
    const auto summed = [&](const std::vector<Matrix>& shares) {
      const std::vector<Matrix> to = unwritten_by_rank(tokens_, width_);
      call_rows(in_parts ? Op::reduce_scatter : Op::all_reduce, shares, to);
      return own_of(to);
    };
    const std::vector<Matrix> shares = unwritten_by_rank(tokens_, width_);
    for (int l = 0; l < layers; ++l) {
      const std::vector<Matrix> all_x = whole(x, room);
      for (int rank = 0; rank < ranks(); ++rank) {
        w[at(l)].push_back(given_layer(rank, l));
        g[at(l)].push_back(unwritten_layer(rank));
        expect_layer(rank, l, g[at(l)].back(), g[at(l)].back().all);
        Kept k;
        k.x = all_x[at(rank)];
        k.q = unwritten(rank, tokens_, 3 * heads_);
        k.h = {unwritten(rank, tokens_, inner_)};
        attention(rank, w[at(l)].back(), k, shares[at(rank)]);
        k.x = x[at(rank)];
        kept[at(l)].push_back(k);
      }
      const std::vector<Matrix> y = summed(shares), all_y = whole(y, room);
      for (int rank = 0; rank < ranks(); ++rank) {
        kept[at(l)][at(rank)].y = y[at(rank)];
        mlp(rank, w[at(l)][at(rank)], all_y[at(rank)], kept[at(l)][at(rank)].h[0],
            shares[at(rank)]);
      }
      x = summed(shares);
    }
    std::vector<Matrix> d_z, d_h = unwritten_by_rank(tokens_, inner_), d_q;
    for (int rank = 0; rank < ranks(); ++rank) {
      expect({x[at(rank)], What::output, 0, 0, first(rank), 0});
      d_z.push_back(given(rank, What::d_output, first(rank), own, width_));
      d_q.push_back(given_of_q(rank, 0, tokens_));
    }
    const auto kept_of = [&](int l, Matrix Kept::*which) {
      std::vector<Matrix> all;
      for (const Kept& each : kept[at(l)]) all.push_back(each.*which);
      return all;
    };
    for (int l = layers - 1; l >= 0; --l) {
      const std::vector<Matrix> all_dz = whole(d_z, room),
                                all_y = whole(kept_of(l, &Kept::y), other_room);
      for (int rank = 0; rank < ranks(); ++rank)
        mlp_back(rank, w[at(l)][at(rank)], g[at(l)][at(rank)], all_y[at(rank)],
                 kept[at(l)][at(rank)].h[0], all_dz[at(rank)], d_h[at(rank)], shares[at(rank)]);
      const std::vector<Matrix> all_dy = whole(summed(shares), room),
                                all_x = whole(kept_of(l, &Kept::x), other_room);
      for (int rank = 0; rank < ranks(); ++rank) {
        Kept k = kept[at(l)][at(rank)];
        k.x = all_x[at(rank)];
        attention_back(rank, w[at(l)][at(rank)], g[at(l)][at(rank)], k, all_dy[at(rank)],
                       d_q[at(rank)], shares[at(rank)]);
      }
      d_z = summed(shares);
    }
    for (int rank = 0; rank < ranks(); ++rank)
      expect({d_z[at(rank)], What::d_input, 0, 0, first(rank), 0});
  }

  /// expert: each rank has some of the tokens and some of the experts.
  void by_experts() {
    const int rows = tokens_ / ranks(), layers = model_.layers, its = rows / experts_;
    const std::size_t shared = 4 * at(width_) * at(width_);
    std::vector<std::vector<Weights>> w(at(layers)), g(at(layers)), sums(at(layers));
    std::vector<std::vector<Kept>> kept(at(layers));
    std::vector<std::vector<Matrix>> got(at(layers));
    std::vector<Matrix> x, d_z, d_q;
    for (int rank = 0; rank < ranks(); ++rank) {
      x.push_back(given(rank, What::x, rank * rows, rows, width_));
      d_z.push_back(given(rank, What::d_output, rank * rows, rows, width_));
      d_q.push_back(given_of_q(rank, rank * rows, rows));
    }
    const std::vector<Matrix> back = unwritten_by_rank(rows, width_);
    for (int l = 0; l < layers; ++l) {
      std::vector<Matrix> y;
      for (int rank = 0; rank < ranks(); ++rank) {
        w[at(l)].push_back(given_layer(rank, l));
        g[at(l)].push_back(unwritten_layer(rank));
        sums[at(l)].push_back(unwritten_layer(rank));
        y.push_back(unwritten(rank, rows, width_));
        kept[at(l)].push_back({x[at(rank)], unwritten(rank, rows, 3 * width_), y.back(), {}, {}});
        attention(rank, w[at(l)].back(), kept[at(l)].back(), y.back());
        const std::vector<Piece> pieces = pieces_of(rank, l, g[at(l)].back()),
                                 of_all = pieces_of(rank, l, sums[at(l)].back());
        for (std::size_t i = 0; i < pieces.size(); ++i) expect(i < 4 ? of_all[i] : pieces[i]);
      }
      got[at(l)] = unwritten_by_rank(rows, width_);
      call_rows(Op::all_to_all, y, got[at(l)]);
      for (int rank = 0; rank < ranks(); ++rank) {
        for (int e = 0; e < experts_; ++e) {
          kept[at(l)][at(rank)].h.push_back(unwritten(rank, its, inner_));
          mlp(rank, w[at(l)][at(rank)], got[at(l)][at(rank)].rows_from(e * its, its),
              kept[at(l)][at(rank)].h.back(), back[at(rank)].rows_from(e * its, its), e);
        }
      }
      x = unwritten_by_rank(rows, width_);
      call_rows(Op::all_to_all, back, x);
    }
    const std::vector<Matrix> got_back = unwritten_by_rank(rows, width_),
                              d_y = unwritten_by_rank(rows, width_),
                              d_h = unwritten_by_rank(its, inner_);
    for (int l = layers - 1; l >= 0; --l) {
      call_rows(Op::all_to_all, d_z, got_back);
      for (int rank = 0; rank < ranks(); ++rank) {
        for (int e = 0; e < experts_; ++e)
          mlp_back(rank, w[at(l)][at(rank)], g[at(l)][at(rank)],
                   got[at(l)][at(rank)].rows_from(e * its, its), kept[at(l)][at(rank)].h[at(e)],
                   got_back[at(rank)].rows_from(e * its, its), d_h[at(rank)],
                   back[at(rank)].rows_from(e * its, its), e);
      }
      call_rows(Op::all_to_all, back, d_y);
      d_z = unwritten_by_rank(rows, width_);
      for (int rank = 0; rank < ranks(); ++rank)
        attention_back(rank, w[at(l)][at(rank)], g[at(l)][at(rank)], kept[at(l)][at(rank)],
                       d_y[at(rank)], d_q[at(rank)], d_z[at(rank)]);
      call_layer(Op::all_reduce, spans(g[at(l)]), spans(sums[at(l)]), shared);
    }
    for (int rank = 0; rank < ranks(); ++rank) {
      expect({x[at(rank)], What::output, 0, 0, rank * rows, 0});
      expect({d_z[at(rank)], What::d_input, 0, 0, rank * rows, 0});
    }
  }

  /// pipeline: each rank has some layers; microbatches follow each other, one forward and one backward in turn.
  void by_stages() {
    const int each = model_.layers / ranks(), rows = tokens_ / how_.microbatches;
    struct Stage {
      std::vector<Weights> w, g;
      Matrix d_h, d_y, d_q;
      std::array<Matrix, 2> between;
      std::vector<std::vector<Kept>> kept;  ///< by microbatch and layer
      std::vector<Matrix> d_in, d_out;      ///< by microbatch: gradients that come and go
    };
    std::vector<Stage> stages(at(ranks()));
    for (int rank = 0; rank < ranks(); ++rank) {
      Stage& s = stages[at(rank)];
      for (int l = 0; l < each; ++l) {
        s.w.push_back(given_layer(rank, rank * each + l));
        s.g.push_back(unwritten_layer(rank));
        expect_layer(rank, rank * each + l, s.g.back(), s.g.back().all);
      }
      s.d_h = unwritten(rank, rows, inner_);
      s.d_y = unwritten(rank, rows, width_);
      s.between = {unwritten(rank, rows, width_), unwritten(rank, rows, width_)};
      for (int m = 0; m < how_.microbatches; ++m) {
        Matrix x = rank == 0 ? given(rank, What::x, m * rows, rows, width_)
                             : unwritten(rank, rows, width_);
        std::vector<Kept>& kept = s.kept.emplace_back();
        for (int l = 0; l < each; ++l) {
          const Matrix y = unwritten(rank, rows, width_), z = unwritten(rank, rows, width_);
          kept.push_back(
              {x, unwritten(rank, rows, 3 * width_), y, z, {unwritten(rank, rows, inner_)}});
          x = z;
        }
        const bool last = rank == ranks() - 1;
        s.d_in.push_back(last ? given(rank, What::d_output, m * rows, rows, width_)
                              : unwritten(rank, rows, width_));
        s.d_out.push_back(unwritten(rank, rows, width_));
        if (last) expect({x, What::output, 0, 0, m * rows, 0});
        if (rank == 0) expect({s.d_out.back(), What::d_input, 0, 0, m * rows, 0});
      }
    }
    // The calls between two stages, by microbatch: activations up and gradients down.
    std::vector<std::vector<int>> up(at(ranks())), down(at(ranks()));
    const auto send = [&](int from, int to, const Matrix& in, const Matrix& out) {
      const int made = add_call(Op::pass, rows, width_ / kBf16Pack);
      for (int rank = 0; rank < ranks(); ++rank) {
        team_.join(made, rank, as_packs(rank == from ? in.data : stages[at(rank)].d_y.data),
                   as_packs(rank == to ? out.data : stages[at(rank)].d_y.data));
      }
      team_.neighbours(made, from, to, -1);
      team_.neighbours(made, to, -1, from);
      return made;
    };
    for (int rank = 0; rank + 1 < ranks(); ++rank) {
      Stage &here = stages[at(rank)], &next = stages[at(rank + 1)];
      for (int m = 0; m < how_.microbatches; ++m) {
        up[at(rank)].push_back(
            send(rank, rank + 1, here.kept[at(m)].back().z, next.kept[at(m)].front().x));
        down[at(rank)].push_back(send(rank + 1, rank, next.d_out[at(m)], here.d_in[at(m)]));
      }
    }
    std::vector<std::vector<Matrix>> d_q(at(ranks()));
    for (int rank = 0; rank < ranks(); ++rank) {
      for (int m = 0; m < how_.microbatches; ++m)
        d_q[at(rank)].push_back(given_of_q(rank, m * rows, rows));
    }
    for (const Slot& slot : pipeline_of(Schedule::one_f_one_b, ranks(), how_.microbatches)) {
      const int rank = slot.rank, m = slot.microbatch;
      Stage& s = stages[at(rank)];
      const auto calls = [&](int made) { program_[at(rank)].emplace_back().call = made; };
      std::vector<Kept>& kept = s.kept[at(m)];
      if (!slot.backward) {
        if (rank > 0) calls(up[at(rank - 1)][at(m)]);
        for (int l = 0; l < each; ++l) {
          const Kept& k = kept[at(l)];
          attention(rank, s.w[at(l)], k, k.y);
          mlp(rank, s.w[at(l)], k.y, k.h[0], k.z);
        }
        if (rank + 1 < ranks()) calls(up[at(rank)][at(m)]);
        continue;
      }
      if (rank + 1 < ranks()) calls(down[at(rank)][at(m)]);
      Matrix d_z = s.d_in[at(m)];
      for (int l = each - 1; l >= 0; --l) {
        const Kept& k = kept[at(l)];
        const Matrix back = l == 0 ? s.d_out[at(m)] : s.between[at(l % 2)];
        mlp_back(rank, s.w[at(l)], s.g[at(l)], k.y, k.h[0], d_z, s.d_h, s.d_y, 0, m > 0);
        attention_back(rank, s.w[at(l)], s.g[at(l)], k, s.d_y, d_q[at(rank)][at(m)], back, m > 0);
        d_z = back;
      }
      if (rank > 0) calls(down[at(rank - 1)][at(m)]);
    }
  }

  const Cut cut_;
  const ModelShape model_;
  const How how_;
  Team team_;
  const int width_, tokens_;   ///< of all ranks
  int heads_ = 0, inner_ = 0;  ///< columns of q, and of an MLP, that a rank has
  int experts_ = 1;            ///< that a rank has
  std::vector<std::vector<Do>> program_;
  std::size_t first_up_ = 0;  ///< the first MLP's first product, in rank 0's program
  std::vector<Result> results_;
  std::vector<std::uint16_t> filler_;  ///< a period, where the host need not know
};

}  // namespace

bool Step::has(Cut cut, const ModelShape& model, int ranks, int microbatches) {
  const auto divides = [ranks](std::int64_t whole) { return whole % ranks == 0; };
  switch (cut) {
    case Cut::data:
    case Cut::fsdp:
    case Cut::context:
      return divides(model.tokens());
    case Cut::tensor:
    case Cut::sequence:
      return divides(model.heads) && divides(model.inner) && divides(model.tokens());
    case Cut::expert:
      return divides(model.experts) && divides(model.tokens() / ranks) &&
             model.tokens() % model.experts == 0;
    case Cut::pipeline:
      return divides(model.layers) && model.tokens() % microbatches == 0;
  }
  return false;
}

std::unique_ptr<Step> Step::make(simt::Device& device, Cut cut, const ModelShape& model, int ranks,
                                 const How& how) {
  return std::make_unique<CutStep>(device, cut, model, ranks, how);
}

}  // namespace tilestep::parallelism

#include "kernels/systems/triage/run/program.hpp"

#include <algorithm>

#include "kernels/base/lab/bench.hpp"
#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::triage {
namespace {

std::size_t times(int a, int b, int c = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

template <class T>
simt::Buffer<T> filled(simt::Device& device, std::size_t count, const std::vector<T>& period) {
  simt::Buffer<T> made(device, count);
  lab::fill_with<T>(device, made, period);
  return made;
}

/// Forms of a matrix beside the usual one.
enum Form { kOddQkv, kColumnsOut, kExpanded, kSpare };

/// An expert's matrix, as often as there are experts, layer by layer.
simt::Buffer<std::uint16_t> repeated(simt::Device& device, int layers, std::size_t count,
                                     const Repeating<std::uint16_t>& from) {
  simt::Buffer<std::uint16_t> made(device, static_cast<std::size_t>(layers) * kExperts * count);
  std::vector<std::uint16_t> one(count);
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(layers); ++layer) {
    for (std::size_t i = 0; i < count; ++i) one[i] = from[layer * count + i];
    for (std::size_t expert = 0; expert < kExperts; ++expert) {
      device.copy_in(made.span().data + (layer * kExperts + expert) * count, one.data(),
                     count * sizeof(one[0]));
    }
  }
  return made;
}

constexpr float kManyScores = 1e9f;  // more than any score

/// Shared memory that leaves room for one block of a multiprocessor.
constexpr int kRoom = 200 * 1024;

}  // namespace

const std::vector<int>& Arrays::tokens_of() {
  static const std::vector<int> kTokens = {7, 3, 11, 2, 0, 0, 0, 0};  // padding is token 0
  return kTokens;
}

Arrays::Arrays(simt::Device& device, const Shape& shape, Numbers numbers)
    : tokens(device, tokens_of()),
      chosen(device, kMostRows),
      sampled(device, kMostRows),
      table(device, numbers.table),
      h(device, times(kMostRows, shape.width)),
      n(device, h.count()),
      qkv_rows(device, times(kMostRows, shape.qkv())),
      parts(device, times(kMostRows * shape.heads, shape.splits, shape.dim + 2)),
      attended(device, times(kMostRows, shape.queries())),
      d(device, h.count()),
      a(device, times(kMostRows, shape.inner)),
      logits(device, times(kMostRows, shape.vocabulary)),
      inverse(device, kMostRows),
      no_bias(device, std::vector<float>(kExperts)),
      one_bias(device, std::vector<float>{kManyScores, 0, 0, 0}),
      device_(device),
      shape_(shape),
      numbers_(std::move(numbers)),
      gains_(device, numbers_.gains),
      router_(device, numbers_.router),
      qkv_(filled(device, times(shape.layers, shape.qkv(), shape.width), numbers_.qkv.period)),
      out_(filled(device, times(shape.layers, shape.width, shape.queries()), numbers_.out.period)),
      gate_(repeated(device, shape.layers, times(shape.inner, shape.width), numbers_.gate)),
      up_(repeated(device, shape.layers, times(shape.inner, shape.width), numbers_.up)),
      down_(repeated(device, shape.layers, times(shape.width, shape.inner), numbers_.down)),
      keys_(filled(device, times(shape.layers * kMostRows, shape.context, shape.cached()),
                   numbers_.keys.period)),
      values_(filled(device, keys_.count(), numbers_.values.period)),
      head_(filled(device, times(shape.vocabulary, shape.width), numbers_.head.period)),
      scales_(device, numbers_.scales) {}

template <class T>
simt::Span<T> Arrays::part(simt::Buffer<T>& all, int layer, std::size_t count) {
  return {all.span().data + static_cast<std::size_t>(layer) * count, count};
}

simt::Span<const std::uint16_t> Arrays::qkv(int layer, Weights weights) {
  const std::size_t rows = static_cast<std::size_t>(shape_.qkv()),
                    k = static_cast<std::size_t>(shape_.width);
  if (weights != Weights::single) return part(qkv_, layer, rows * k);
  const auto pitch = static_cast<std::size_t>(odd_pitch(shape_.width));
  if (other_.count(kOddQkv) == 0) {
    std::vector<std::uint16_t> all(static_cast<std::size_t>(shape_.layers) * rows * pitch);
    for (std::size_t row = 0; row < all.size() / pitch; ++row) {
      for (std::size_t i = 0; i < k; ++i) all[row * pitch + i] = numbers_.qkv[row * k + i];
    }
    other_.emplace(kOddQkv, simt::Buffer<std::uint16_t>(device_, all));
  }
  return part(other_.at(kOddQkv), layer, rows * pitch);
}
simt::Span<const float> Arrays::qkv_floats(int layer) {
  if (floats_.empty()) {
    std::vector<float> all(qkv_.count());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = numeric::Bf16::value(numbers_.qkv[i]);
    floats_.emplace(0, simt::Buffer<float>(device_, all));
  }
  return part(floats_.at(0), layer, times(shape_.qkv(), shape_.width));
}
simt::Span<const std::uint16_t> Arrays::out(int layer, Weights weights) {
  const std::size_t rows = static_cast<std::size_t>(shape_.width),
                    k = static_cast<std::size_t>(shape_.queries());
  if (weights == Weights::packs) return part(out_, layer, rows * k);
  if (other_.count(kColumnsOut) == 0) {
    std::vector<std::uint16_t> all(out_.count());
    for (std::size_t of = 0; of < static_cast<std::size_t>(shape_.layers); ++of) {
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t i = 0; i < k; ++i) {
          all[(of * k + i) * rows + row] = numbers_.out[(of * rows + row) * k + i];
        }
      }
    }
    other_.emplace(kColumnsOut, simt::Buffer<std::uint16_t>(device_, all));
  }
  return part(other_.at(kColumnsOut), layer, rows * k);
}
simt::Span<const float> Arrays::gains(int layer, int which) {
  return part(gains_, 2 * layer + which, static_cast<std::size_t>(shape_.width));
}
simt::Span<const float> Arrays::router(int layer) {
  return part(router_, layer, times(kExperts, shape_.width));
}
simt::Span<const std::uint16_t> Arrays::experts(int layer, int which) {
  return part(which == 0   ? gate_
              : which == 1 ? up_
                           : down_,
              layer, times(kExperts, shape_.inner, shape_.width));
}
simt::Span<std::uint16_t> Arrays::cache(int layer, int which) {
  return part(which == 0 ? keys_ : values_, layer,
              times(kMostRows, shape_.context, shape_.cached()));
}
simt::Span<std::uint16_t> Arrays::expanded() {
  if (other_.count(kExpanded) == 0) {
    other_.emplace(kExpanded, simt::Buffer<std::uint16_t>(device_, head_.count()));
  }
  return other_.at(kExpanded).span();
}
simt::Span<std::uint16_t> Arrays::spare() {
  if (other_.count(kSpare) == 0) {
    other_.emplace(kSpare, simt::Buffer<std::uint16_t>(
                               device_, times(kMostRows, shape_.context, shape_.cached())));
  }
  return other_.at(kSpare).span();
}

std::string Work::label() const {
  std::string text(name_of(op));
  if (layer >= 0) text += " " + std::to_string(layer + 1);
  if (row >= 0) text += "." + std::to_string(row + 1);
  return text;
}

// ---- the launches -----------------------------------------------------------------------------------------

namespace {

std::string size_text(int rows, int k, int tokens) {
  return std::to_string(rows) + " x " + std::to_string(k) + ", " + std::to_string(tokens) +
         (tokens == 1 ? " row" : " rows");
}

}  // namespace

Program::Program(Arrays& arrays, const Plan& plan)
    : arrays_(arrays),
      plan_(plan),
      kernels_(triage::kernels_of(arrays.device())),
      shape_(arrays.shape()) {
  if (plan.has(Fault::padding)) shape_.rows = kMostRows;
}

void Program::norm(std::vector<Work>& works, int layer, int which) const {
  const simt::Span<const float> gains = arrays_.gains(layer, which);
  Work work{.op = Op::norm, .layer = layer, .dtype = "FP32"};
  work.layout = "contiguous";
  if (!plan_.has(Fault::apart)) {
    work.shape = std::to_string(shape_.rows) + " x " + std::to_string(shape_.width);
    work.flops = 4.0 * shape_.rows * shape_.width;
    work.launch = [this, gains](const Watch& watch) {
      kernels_.norm(arrays_.device(), shape_, plan_.quick_norm, arrays_.h.span(), gains,
                    arrays_.n.span(), watch);
    };
    works.push_back(std::move(work));
    return;
  }
  work.shape = "1 x " + std::to_string(shape_.width);
  work.flops = 2.0 * shape_.width;
  for (int row = 0; row < shape_.rows; ++row) {
    work.row = row;
    work.launch = [this, row](const Watch& watch) {
      kernels_.squares(arrays_.device(), shape_, row, arrays_.h.span(), arrays_.inverse.span(),
                       watch);
    };
    works.push_back(work);
    work.launch = [this, row, gains](const Watch& watch) {
      kernels_.scale(arrays_.device(), shape_, row, arrays_.h.span(), gains, arrays_.inverse.span(),
                     arrays_.n.span(), watch);
    };
    works.push_back(work);
  }
}

/// h += d, as `op`'s second half.
void Program::residual(std::vector<Work>& works, int layer, Op op) const {
  const int count = plan_.has(Fault::apart) ? shape_.rows : 1;
  for (int i = 0; i < count; ++i) {
    const int row = plan_.has(Fault::apart) ? i : -1;
    Work work{.op = op, .layer = layer, .row = row, .dtype = "FP32"};
    work.shape = std::to_string(row < 0 ? shape_.rows : 1) + " x " + std::to_string(shape_.width);
    work.layout = "contiguous";
    work.flops = static_cast<double>((row < 0 ? shape_.rows : 1)) * shape_.width;
    work.launch = [this, row](const Watch& watch) {
      kernels_.add(arrays_.device(), shape_, row, arrays_.d.span(), arrays_.h.span(), watch);
    };
    works.push_back(std::move(work));
  }
}

void Program::attention(std::vector<Work>& works, int layer) const {
  const Shape shape = shape_;
  const Weights of_qkv = plan_.has(Fault::unaligned) ? Weights::single
                         : plan_.has(Fault::fp32)    ? Weights::floats
                                                     : Weights::packs;
  const int pitch = of_qkv == Weights::single ? Arrays::odd_pitch(shape.width) : shape.width;
  Work qkv{.op = Op::qkv, .layer = layer};
  qkv.dtype = of_qkv == Weights::floats ? "FP32" : "BF16";
  qkv.shape = size_text(shape.qkv(), shape.width, shape.rows);
  qkv.layout = "rows " + std::to_string(pitch) + " numbers apart";
  qkv.load_bytes = of_qkv == Weights::single ? 2 : 16;
  qkv.flops = 2.0 * shape.rows * shape.qkv() * shape.width;
  ProductArrays arrays;
  if (of_qkv == Weights::floats) {
    arrays.w_floats = arrays_.qkv_floats(layer);
  } else {
    arrays.w = arrays_.qkv(layer, of_qkv);
  }
  arrays.x = arrays_.n.span();
  arrays.y = arrays_.qkv_rows.span();
  qkv.launch = [this, of_qkv, pitch, arrays](const Watch& watch) {
    // As a profile names them.
    const char* const name = of_qkv == Weights::single   ? "product_single"
                             : of_qkv == Weights::floats ? "product_floats"
                                                         : "product";
    kernels_.product(arrays_.device(), name, of_qkv,
                     {shape_.qkv(), shape_.width, pitch, shape_.rows, false}, arrays, watch);
  };
  works.push_back(std::move(qkv));

  const simt::Span<std::uint16_t> keys = arrays_.cache(layer, 0), values = arrays_.cache(layer, 1);
  Work store{.op = Op::store, .layer = layer, .dtype = "BF16"};
  store.shape = std::to_string(shape.rows) + " x 2 x " + std::to_string(shape.cached());
  store.layout = "contiguous";
  store.launch = [this, keys, values](const Watch& watch) {
    kernels_.store(arrays_.device(), shape_, arrays_.qkv_rows.span(), keys, values, watch);
  };
  works.push_back(std::move(store));

  Work attend{.op = Op::attend, .layer = layer, .dtype = "BF16"};
  attend.shape = std::to_string(shape.rows) + " rows, " + std::to_string(shape.context) +
                 " keys, " + std::to_string(shape.heads) + ":" +
                 std::to_string(shape.cache_heads()) + " heads of " + std::to_string(shape.dim);
  attend.layout = "keys contiguous";
  attend.load_bytes = 16;
  attend.flops = 4.0 * shape.rows * shape.heads * shape.context * shape.dim;
  const int reads = plan_.has(Fault::twice) ? 2 : 1, room = plan_.has(Fault::occupancy) ? kRoom : 0;
  attend.launch = [this, keys, values, reads, room](const Watch& watch) {
    kernels_.attend(arrays_.device(), shape_, reads, room,
                    {arrays_.qkv_rows.span(), keys, values, arrays_.parts.span()}, watch);
  };
  works.push_back(std::move(attend));

  Work merge{.op = Op::merge, .layer = layer, .dtype = "FP32"};
  merge.shape = std::to_string(shape.rows * shape.heads) + " x " + std::to_string(shape.splits) +
                " x " + std::to_string(shape.dim);
  merge.layout = "contiguous";
  merge.flops = 3.0 * shape.rows * shape.heads * shape.splits * shape.dim;
  merge.launch = [this](const Watch& watch) {
    kernels_.merge(arrays_.device(), shape_, arrays_.parts.span(), arrays_.attended.span(), watch);
  };
  works.push_back(std::move(merge));

  const Weights of_out = plan_.has(Fault::strided) ? Weights::columns : Weights::packs;
  const bool apart = plan_.has(Fault::apart);
  Work out{.op = Op::out, .layer = layer, .dtype = "BF16"};
  out.shape = size_text(shape.width, shape.queries(), shape.rows);
  out.layout = of_out == Weights::columns
                   ? "columns " + std::to_string(shape.width) + " numbers apart"
                   : "rows " + std::to_string(shape.queries()) + " numbers apart";
  out.load_bytes = of_out == Weights::columns ? 2 : 16;
  out.flops = 2.0 * shape.rows * shape.width * shape.queries();
  const simt::Span<const std::uint16_t> w = arrays_.out(layer, of_out);
  out.launch = [this, of_out, apart, w](const Watch& watch) {
    kernels_.product(
        arrays_.device(), of_out == Weights::columns ? "product_columns" : "product", of_out,
        {shape_.width, shape_.queries(), shape_.queries(), shape_.rows, !apart},
        {.w = w, .x = arrays_.attended.span(), .y = apart ? arrays_.d.span() : arrays_.h.span()},
        watch);
  };
  works.push_back(std::move(out));
  if (apart) residual(works, layer, Op::out);
}

void Program::experts(std::vector<Work>& works, int layer) const {
  const Shape shape = shape_;
  const bool one = plan_.has(Fault::straggler);
  const int capacity = one ? shape.rows : (shape.rows + kExperts - 1) / kExperts;
  const simt::Span<const float> router = arrays_.router(layer),
                                bias = one ? arrays_.one_bias.span() : arrays_.no_bias.span();
  Work route{.op = Op::route, .layer = layer, .dtype = "FP32"};
  route.shape = size_text(kExperts, shape.width, shape.rows);
  route.layout = "contiguous";
  route.load_bytes = 4;
  route.flops = 2.0 * shape.rows * kExperts * shape.width;
  route.waits = plan_.has(Fault::sync);
  route.launch = [this, capacity, router, bias](const Watch& watch) {
    kernels_.route(arrays_.device(), shape_, capacity, arrays_.n.span(), router, bias,
                   arrays_.chosen.span(), watch);
  };
  works.push_back(std::move(route));

  const ExpertArrays arrays{arrays_.experts(layer, 0), arrays_.experts(layer, 1),
                            arrays_.experts(layer, 2), arrays_.chosen.span(),
                            arrays_.n.span(),          arrays_.a.span(),
                            arrays_.d.span()};
  Work up{.op = Op::up, .layer = layer, .dtype = "BF16"};
  up.shape = "2 x " + size_text(shape.inner, shape.width, shape.rows);
  up.layout = "rows " + std::to_string(shape.width) + " numbers apart";
  up.load_bytes = 16;
  up.flops = 4.0 * shape.rows * shape.inner * shape.width;
  up.launch = [this, arrays](const Watch& watch) {
    kernels_.up(arrays_.device(), shape_, arrays, watch);
  };
  works.push_back(std::move(up));
  Work down{.op = Op::down, .layer = layer, .dtype = "BF16"};
  down.shape = size_text(shape.width, shape.inner, shape.rows);
  down.layout = "rows " + std::to_string(shape.inner) + " numbers apart";
  down.load_bytes = 16;
  down.flops = 2.0 * shape.rows * shape.inner * shape.width;
  down.launch = [this, arrays](const Watch& watch) {
    kernels_.down(arrays_.device(), shape_, arrays, watch);
  };
  works.push_back(std::move(down));
  residual(works, layer, Op::combine);
  works.back().waits = plan_.has(Fault::sync);
}

void Program::head(std::vector<Work>& works) const {
  const bool unfused = plan_.has(Fault::unfused);
  simt::Span<std::uint16_t> expanded;
  if (unfused) {
    expanded = arrays_.expanded();
    Work dequant{.op = Op::dequant, .dtype = "INT8"};
    dequant.shape = std::to_string(shape_.vocabulary) + " x " + std::to_string(shape_.width);
    dequant.layout = "INT8 to BF16";
    dequant.load_bytes = 16;
    dequant.flops = static_cast<double>(shape_.vocabulary) * shape_.width;
    dequant.launch = [this, expanded](const Watch& watch) {
      kernels_.dequant(arrays_.device(), shape_.vocabulary, shape_.width, arrays_.head(),
                       arrays_.scales(), expanded, watch);
    };
    works.push_back(std::move(dequant));
  }
  Work head{.op = Op::head};
  head.dtype = unfused ? "BF16" : "INT8";
  head.shape = size_text(shape_.vocabulary, shape_.width, shape_.rows);
  head.layout = "rows " + std::to_string(shape_.width) + " numbers apart";
  head.load_bytes = 16;
  head.flops = 2.0 * shape_.rows * shape_.vocabulary * shape_.width;
  head.launch = [this, unfused, expanded](const Watch& watch) {
    kernels_.product(arrays_.device(), unfused ? "product" : "product_bytes",
                     unfused ? Weights::packs : Weights::bytes,
                     {shape_.vocabulary, shape_.width, shape_.width, shape_.rows, false},
                     {.w = expanded,
                      .w_bytes = arrays_.head(),
                      .scales = arrays_.scales(),
                      .x = arrays_.h.span(),
                      .y = arrays_.logits.span()},
                     watch);
  };
  works.push_back(std::move(head));
  Work sample{.op = Op::sample, .dtype = "FP32"};
  sample.shape = std::to_string(shape_.rows) + " x " + std::to_string(shape_.vocabulary);
  sample.layout = "contiguous";
  sample.load_bytes = 4;
  sample.launch = [this](const Watch& watch) {
    kernels_.sample(arrays_.device(), shape_, arrays_.logits.span(), arrays_.sampled.span(), watch);
  };
  works.push_back(std::move(sample));
}

std::vector<Work> Program::step(int number) const {
  std::vector<Work> works;
  Work embed{.op = Op::embed, .dtype = "FP32"};
  embed.shape = std::to_string(shape_.rows) + " x " + std::to_string(shape_.width);
  embed.layout = "rows of a table";
  embed.load_bytes = 4;
  embed.launch = [this](const Watch& watch) {
    kernels_.embed(arrays_.device(), shape_, arrays_.tokens.span(), arrays_.table.span(),
                   arrays_.h.span(), watch);
  };
  works.push_back(std::move(embed));
  for (int layer = 0; layer < shape_.layers; ++layer) {
    norm(works, layer, 0);
    attention(works, layer);
    norm(works, layer, 1);
    experts(works, layer);
  }
  head(works);
  if (!plan_.has(Fault::rare) || number % kLoop != 0) return works;
  for (int layer = 0; layer < shape_.layers; ++layer) {
    for (const int which : {0, 1}) {
      // To other pages and back: what a cache is spared that never frees pages in between.
      const simt::Span<std::uint16_t> from = arrays_.cache(layer, which), to = arrays_.spare();
      for (const bool back : {false, true}) {
        Work move{.op = Op::move, .layer = layer, .dtype = "BF16"};
        move.shape = std::to_string(kMostRows) + " x " + std::to_string(shape_.context) + " x " +
                     std::to_string(shape_.cached());
        move.layout = "contiguous";
        move.load_bytes = 16;
        move.outside = true;
        move.launch = [this, from, to, back](const Watch& watch) {
          kernels_.move(arrays_.device(), back ? to : from, back ? from : to, watch);
        };
        works.push_back(std::move(move));
      }
    }
  }
  return works;
}

void Program::wait_and_read() const {
  arrays_.device().synchronize();
  static_cast<void>(arrays_.chosen.download(1));
}

void Program::launch_all(const std::vector<Work>& works, bool outside) const {
  for (const Work& work : works) {
    if (work.outside == outside) work.launch({});
    if (work.waits && !outside) wait_and_read();
  }
}

void Program::run(int number) {
  const int kind = number % kLoop == 0 ? kLoop : kUsualStep;
  if (steps_.count(kind) == 0) steps_.emplace(kind, step(kind));
  const std::vector<Work>& works = steps_.at(kind);
  const auto inside = [this, &works] { launch_all(works, false); };
  switch (submission_of(plan_)) {
    case Submission::graph:
      if (!graph_) graph_ = arrays_.device().graph_of(inside);
      graph_();
      break;
    case Submission::anew:
      // A graph that still runs must not be destroyed.
      made_.resize(16);
      made_[next_] = arrays_.device().graph_of(inside);
      made_[next_]();
      next_ = (next_ + 1) % made_.size();
      break;
    case Submission::eager:
    case Submission::waiting:
      inside();
  }
  launch_all(works, true);
  // A server streams the step's tokens before it submits the next step.
  arrays_.device().synchronize();
  static_cast<void>(arrays_.sampled.download(static_cast<std::size_t>(shape_.rows)));
}

Result result_of(const Program& program) {
  Arrays& arrays = program.arrays();
  const auto rows = static_cast<std::size_t>(arrays.shape().rows);
  return {arrays.h.download(rows * static_cast<std::size_t>(arrays.shape().width)),
          arrays.logits.download(rows * static_cast<std::size_t>(arrays.shape().vocabulary)),
          arrays.sampled.download(rows),
          arrays.chosen.download(static_cast<std::size_t>(program.shape().rows))};
}

}  // namespace tilestep::triage

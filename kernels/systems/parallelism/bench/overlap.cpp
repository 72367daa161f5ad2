#include "kernels/systems/parallelism/bench/overlap.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/simt/cuda/nccl.hpp"
#include "kernels/systems/parallelism/gather/gather.hpp"

namespace tilestep::parallelism {
namespace {

using numeric::Bf16;

simt::Span<float> as_packs(simt::Span<std::uint16_t> numbers) {
  return {reinterpret_cast<float*>(numbers.data), numbers.count / 2};
}

}  // namespace

Overlap::Overlap(simt::Device& device, int ranks, const OverlapShape& shape,
                 const BenchSizes& sizes, NcclRanks& nccl, bool in_one_kernel)
    : team_(device, ranks), shape_(shape), nccl_(nccl) {
  constexpr int kRows = 16;  // of a chunk's smallest part
  own_rows_ = shape.tokens / ranks / kRows * kRows;
  shape_.tokens = own_rows_ * ranks;
  columns_ = shape.inner / ranks / kBf16Pack * kBf16Pack;
  shape_.inner = columns_ * ranks;
  const std::size_t width = at(shape_.width);
  std::mt19937 generator = lab::generator_of(shape.tokens % 1000);
  weights_ = lab::uniform_bf16(generator, std::min(kRepeated, width * at(columns_)));
  const CallShape meeting{.op = Op::all_to_all, .ranks = ranks};
  CallShape gather{.op = Op::all_gather, .ranks = ranks, .units = shape_.tokens};
  gather.unit = shape_.width / kBf16Pack;
  gather.blocks = sizes.many_blocks.back();
  gather.threads = sizes.threads;
  meeting_ = team_.add(meeting);
  gather_ = team_.add(gather);
  for (int rank = 0; rank < ranks; ++rank) {
    tokens_.push_back(lab::uniform_bf16(generator, std::min(kRepeated, width * at(own_rows_))));
    own_.push_back(team_.unwritten<std::uint16_t>(rank, width * at(own_rows_)));
    all_.push_back(team_.unwritten<std::uint16_t>(rank, width * at(shape_.tokens)));
    matrix_.push_back(team_.unwritten<std::uint16_t>(rank, width * at(columns_)));
    product_of_.push_back(team_.unwritten<std::uint16_t>(rank, at(shape_.tokens) * at(columns_)));
    fill_repeated(team_, rank, own_.back(), tokens_.back());
    fill_repeated(team_, rank, matrix_.back(), weights_);
    zeros_.push_back(team_.uploaded(rank, std::vector<unsigned>(at(ranks), 0)));
    ones_.push_back(team_.uploaded(rank, std::vector<unsigned>(at(ranks), 1)));
    flags_.push_back(team_.uploaded(rank, std::vector<unsigned>(at(ranks), 0)));
    team_.join(meeting_, rank, as_packs(own_.back()), as_packs(all_.back()));
    team_.join(gather_, rank, as_packs(own_.back()), as_packs(all_.back()));
  }

  const auto whole = [this](int rank) { multiply(rank, 0, shape_.tokens); };
  product_ = {.name = "product", .enqueue = whole};
  const auto add = [&](const char* name, std::function<void(int)> gathers) {
    gathers_.push_back({.name = name, .enqueue = gathers});
    ways_.push_back({.name = std::string(name) + ", then product",
                     .enqueue =
                         [gathers, whole](int rank) {
                           gathers(rank);
                           whole(rank);
                         },
                     .wire = static_cast<int>(gathers_.size()) - 1});
  };
  add("our gather", [this](int rank) { team_.make(gather_, rank); });
  add("copies", [this](int rank) { copy_all(rank); });
  const int copies = 1;
  for (const int pieces : {1, 2}) {
    ways_.push_back({.name = pieces == 1 ? "product beside copies" : "product beside half copies",
                     .chunks = pieces * ranks,
                     .in_turn = false,
                     .enqueue = [this, pieces](int rank) { beside(rank, pieces); },
                     .wire = copies});
  }
  const bool emulated = team_.ranks().stream(0) == nullptr;
  // On one GPU a flag's copy may wait for a multiprocessor that the product has.
  if (in_one_kernel && (emulated || apart()) &&
      team_.kernels().multiplies_coming(team_.ranks().at(0))) {
    ways_.push_back({.name = "one kernel",
                     .chunks = ranks,
                     .in_turn = false,
                     .as_they_come = true,
                     .enqueue = [this](int rank) { beside_in_one(rank); },
                     .wire = copies});
  }
  if (simt::Nccl::loaded().available() && !nccl_.left_out && !emulated && apart()) {
    gathers_.push_back({.name = "NCCL", .enqueue_all = [this] { call_nccl(); }});
    ways_.push_back({.name = "NCCL, then product",
                     .enqueue_all =
                         [this] {
                           call_nccl();
                           for (int rank = 0; rank < team_.count(); ++rank)
                             multiply(rank, 0, shape_.tokens);
                         },
                     .wire = static_cast<int>(gathers_.size()) - 1});
  }
}

void Overlap::multiply(int rank, int first, int rows) {
  const std::size_t place = at(rank), width = at(shape_.width), columns = at(columns_);
  const Product product{.m = rows,
                        .n = columns_,
                        .k = shape_.width,
                        .lda = shape_.width,
                        .ldb = shape_.width,
                        .ldc = columns_,
                        .turn_b = true};
  team_.kernels().multiply_bf16(
      team_.ranks(), rank, product, Bf16s{all_[place].data + at(first) * width, at(rows) * width},
      matrix_[place], Bf16s{product_of_[place].data + at(first) * columns, at(rows) * columns});
}

void Overlap::copy_chunk(int rank, int from, int first, int rows) {
  const std::size_t width = at(shape_.width);
  team_.ranks().copy(rank, all_[at(rank)].data + at(from * own_rows_ + first) * width,
                     own_[at(from)].data + at(first) * width,
                     at(rows) * width * sizeof(std::uint16_t));
}

/// From one peer after the other, each rank beginning with another one.
void Overlap::copy_all(int rank) {
  meet(rank);
  for (int hop = 0; hop < team_.count(); ++hop)
    copy_chunk(rank, (rank + hop) % team_.count(), 0, own_rows_);
}

/// The product of a chunk needs only its copy; a rank's own tokens come first.
void Overlap::beside(int rank, int pieces) {
  simt::Ranks& ranks = team_.ranks();
  const int rows = own_rows_ / pieces;
  meet(rank);
  ranks.come_after(rank, 1);
  copy_chunk(rank, rank, 0, own_rows_);
  multiply(rank, rank * own_rows_, own_rows_);
  for (int hop = 1; hop < team_.count(); ++hop) {
    const int from = (rank + hop) % team_.count();
    for (int piece = 0; piece < pieces; ++piece) {
      ranks.use_stream(rank, 1);
      copy_chunk(rank, from, piece * rows, rows);
      ranks.use_stream(rank, 0);
      ranks.come_after(rank, 0);
      multiply(rank, from * own_rows_ + piece * rows, rows);
    }
  }
}

/// The flag of a chunk comes from its rank too, behind it: a copy within a GPU may need a multiprocessor, and none is free.
void Overlap::beside_in_one(int rank) {
  simt::Ranks& ranks = team_.ranks();
  const std::size_t place = at(rank), width = at(shape_.width);
  const std::size_t bytes = at(own_rows_) * width * sizeof(std::uint16_t);
  ranks.copy(rank, flags_[place].data, zeros_[place].data, flags_[place].count * sizeof(unsigned));
  ranks.copy(rank, all_[place].data, own_[place].data, bytes);
  meet(rank);
  ranks.come_after(rank, 1);
  ranks.use_stream(rank, 1);
  for (int hop = 1; hop < team_.count(); ++hop) {
    const std::size_t from = at((rank + hop) % team_.count());
    ranks.copy(rank, all_[place].data + at(hop * own_rows_) * width, own_[from].data, bytes);
    ranks.copy(rank, flags_[place].data + hop, ones_[from].data, sizeof(unsigned));
  }
  ranks.use_stream(rank, 0);
  const ComingShape coming{
      .m = shape_.tokens, .n = columns_, .k = shape_.width, .rows = own_rows_, .call = gather_ + 1};
  team_.kernels().multiply_coming(ranks, rank, coming,
                                  {all_[place], matrix_[place], product_of_[place], flags_[place]});
  ranks.come_after(rank, 0);
}

void Overlap::call_nccl() {
  const simt::Nccl& nccl = simt::Nccl::loaded();
  nccl.begin();
  for (int rank = 0; rank < team_.count(); ++rank) {
    const std::size_t place = at(rank);
    nccl.all_gather(own_[place].data, all_[place].data, own_[place].count / 2, nccl_.at(rank),
                    team_.ranks().stream(rank));
  }
  nccl.end();
}

void Overlap::warm() {
  if (team_.ranks().stream(0) == nullptr) return;
  team_.ranks().run([&](int rank) {
    multiply(rank, 0, shape_.tokens);
    multiply(rank, 0, own_rows_);
    multiply(rank, 0, own_rows_ / 2);
  });
}

double Overlap::of_x(int row, int i) const {
  const std::vector<std::uint16_t>& period = tokens_[at(row / own_rows_)];
  const std::size_t place = at(row % own_rows_) * at(shape_.width) + at(i);
  return static_cast<double>(Bf16::value(period[place % period.size()]));
}

lab::Closest Overlap::compared(const Way& way) {
  simt::Ranks& ranks = team_.ranks();
  for (int rank = 0; rank < team_.count(); ++rank) {
    simt::Device& device = ranks.at(rank);
    const std::size_t place = at(rank);
    device.fill(product_of_[place].data, 0xFF, product_of_[place].count * 2);
    device.fill(all_[place].data, 0xFF, all_[place].count * 2);
  }
  if (way.enqueue) {
    ranks.run(way.enqueue);
    team_.require_met();
  } else {
    times(way, 1);
  }
  lab::Closest closest;
  for (int rank = 0; rank < team_.count(); ++rank) {
    for (int part = 0; part < 4 * team_.count(); ++part) {
      // Rows at both sides of every border between chunks.
      const int row = (part + 1) / 2 * shape_.tokens / (2 * team_.count()) - part % 2;
      if (row < 0 || row >= shape_.tokens) continue;
      const int some = std::min(columns_, 16), first = columns_ - some;
      int lies = row;
      if (way.as_they_come) lies = (row - rank * own_rows_ + shape_.tokens) % shape_.tokens;
      const std::size_t place = at(lies) * at(columns_) + at(first);
      const std::vector<std::uint16_t> got =
          team_.download(Bf16s{product_of_[at(rank)].data + place, at(some)});
      for (int column = 0; column < some; ++column) {
        double want = 0, bound = 0;
        for (int i = 0; i < shape_.width; ++i) {
          const std::size_t weight = at(first + column) * at(shape_.width) + at(i);
          const double term =
              of_x(row, i) * static_cast<double>(Bf16::value(weights_[weight % weights_.size()]));
          want += term;
          bound += std::abs(term);
        }
        closest.add(Bf16::value(got[at(column)]), want,
                    std::abs(want) * 0x1p-8 + bound * shape_.width * 0x1p-24);
      }
    }
  }
  return closest;
}

std::vector<double> Overlap::times(const Way& way, int samples) {
  if (way.enqueue_all) {
    if (!connected_) nccl_.connect(team_.ranks(), [this] { call_nccl(); });
    connected_ = true;
    return team_.ranks().time_ms(way.enqueue_all, 8, samples);
  }
  return team_.ranks().time_ms(
      [&] {
        for (int rank = 0; rank < team_.count(); ++rank) way.enqueue(rank);
      },
      8, samples);
}

}  // namespace tilestep::parallelism

#include "kernels/systems/parallelism/bench/timed.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/random.hpp"

namespace tilestep::parallelism {

Timed::Timed(simt::Device& device, int ranks, std::int64_t bytes, NcclRanks& nccl)
    : team_(device, ranks), nccl_(nccl) {
  const std::size_t unit = at(kPack * ranks), numbers = at(bytes / 4) / unit * unit;
  std::mt19937 generator = lab::generator_of(bytes % 1000);
  for (int rank = 0; rank < ranks; ++rank) {
    period_.push_back(lab::uniform_floats(generator, std::min(kRepeated, numbers)));
    in_.push_back(team_.unwritten<float>(rank, numbers));
    out_.push_back(team_.unwritten<float>(rank, numbers));
    fill_repeated(team_, rank, in_.back(), period_.back());
  }
}

int Timed::add(const CallShape& shape) {
  const int call = team_.add(shape);
  for (int rank = 0; rank < ranks(); ++rank) {
    const std::size_t place = at(rank);
    simt::Span<const float> in = in_[place];
    if (shape.op == Op::all_gather) in.count = part();
    team_.join(call, rank, in, out_[place]);
  }
  return call;
}

void Timed::judge(const CallShape& shape, int rank, std::size_t i, float got,
                  lab::Closest& closest) const {
  double want = 0, bound = 0;
  switch (shape.op) {
    case Op::reduce_scatter:
      if (i / part() != at(rank)) return;
      [[fallthrough]];
    case Op::all_reduce:
      for (int from = 0; from < ranks(); ++from) {
        const double one = number(from, i);
        want += one;
        bound += std::abs(one) * (ranks() - 1) * 0x1p-24;
      }
      break;
    case Op::all_gather:
      want = number(static_cast<int>(i / part()), i % part());
      break;
    default:
      want = number(static_cast<int>(i / part()), at(rank) * part() + i % part());
  }
  closest.add(got, want, bound);
}

lab::Closest Timed::compared(int call) {
  for (int rank = 0; rank < ranks(); ++rank) {
    simt::Device& device = team_.ranks().at(rank);
    device.fill(out_[at(rank)].data, 0xFF, out_[at(rank)].count * sizeof(float));
  }
  team_.ranks().run([&](int rank) { team_.make(call, rank); });
  team_.require_met();
  lab::Closest closest;
  const CallShape& shape = team_.shape(call);
  for (int rank = 0; rank < ranks(); ++rank) {
    std::size_t begin = 0, end = in_[0].count;
    if (shape.op == Op::reduce_scatter) {
      begin = at(rank) * part();
      end = begin + part();
    }
    const std::size_t some = std::min<std::size_t>(end - begin, 4096);
    for (const std::size_t first : {begin, end - some}) {
      const std::vector<float> got =
          team_.download(simt::Span<float>{out_[at(rank)].data + first, some});
      for (std::size_t i = 0; i < some; ++i) judge(shape, rank, first + i, got[i], closest);
    }
  }
  return closest;
}

std::vector<double> Timed::times(int call, int samples) {
  return team_.ranks().time_ms(
      [&] {
        for (int rank = 0; rank < ranks(); ++rank) team_.make(call, rank);
      },
      calls(), samples);
}

std::vector<double> Timed::nccl_times(Op op, int samples) {
  const simt::Nccl& nccl = simt::Nccl::loaded();
  const auto enqueue = [&] {
    nccl.begin();
    for (int rank = 0; rank < ranks(); ++rank) {
      const std::size_t place = at(rank), numbers = in_[place].count;
      void* stream = team_.ranks().stream(rank);
      void* its = nccl_.at(rank);
      const float* in = in_[place].data;
      float* out = out_[place].data;
      if (op == Op::all_reduce) nccl.all_reduce(in, out, numbers, its, stream);
      if (op == Op::all_gather) nccl.all_gather(in, out, part(), its, stream);
      if (op == Op::reduce_scatter)
        nccl.reduce_scatter(in, out + place * part(), part(), its, stream);
      if (op == Op::all_to_all) nccl.all_to_all(in, out, part(), ranks(), its, stream);
    }
    nccl.end();
  };
  if (!connected_) nccl_.connect(team_.ranks(), enqueue);
  connected_ = true;
  return team_.ranks().time_ms(enqueue, calls(), samples);
}

}  // namespace tilestep::parallelism

#pragma once

#include <algorithm>
#include <vector>

#include "kernels/base/lab/closest.hpp"
#include "kernels/base/simt/cuda/nccl.hpp"
#include "kernels/systems/parallelism/bench/bench.hpp"
#include "kernels/systems/parallelism/run/team.hpp"

namespace tilestep::parallelism {

inline constexpr std::size_t kRepeated = 1000003;  ///< a prime: chunks and ranks differ

/// Fills an array of a rank with repetitions of `period`.
template <class T>
void fill_repeated(Team& team, int rank, simt::Span<T> to, const std::vector<T>& period) {
  if (to.count == 0) return;
  simt::Device& device = team.ranks().at(rank);
  const std::size_t first = std::min(period.size(), to.count);
  device.copy_in(to.data, period.data(), first * sizeof(T));
  for (std::size_t done = first; done < to.count; done *= 2)
    device.copy_on_device(to.data + done, to.data, std::min(done, to.count - done) * sizeof(T));
  device.synchronize();
}

/// NCCL's ranks, one for each GPU, for all calls of a bench; none until they are asked for.
class NcclRanks {
 public:
  NcclRanks() = default;
  ~NcclRanks() {
    if (!all_.empty()) simt::Nccl::loaded().destroy(all_);
  }
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  /// `enqueue` makes a call of all ranks. The first of a kind connects them, which no graph can hold: it is made here.
  template <class Enqueue>
  void connect(simt::Ranks& ranks, const Enqueue& enqueue) {
    std::vector<int> gpus;
    for (int rank = 0; rank < ranks.count(); ++rank) gpus.push_back(ranks.gpu(rank));
    if (all_.empty()) all_ = simt::Nccl::loaded().make(gpus);
    enqueue();
    ranks.run([](int) {});
  }
  bool left_out = false;  ///< a call of it has failed
  void* at(int rank) const { return all_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<void*> all_;
};

/// Ranks with a message each, and calls on it.
class Timed {
 public:
  /// `bytes` of each rank; what is gathered or scattered lies in equal parts.
  Timed(simt::Device& device, int ranks, std::int64_t bytes, NcclRanks& nccl);

  int ranks() const { return team_.count(); }
  bool apart() { return team_.ranks().apart(); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(in_[0].count * sizeof(float)); }
  int add(const CallShape& shape);
  /// Runs a call once, on outputs that hold no numbers, and compares both ends of every rank's. Throws Error if a rank
  /// waited in vain.
  lab::Closest compared(int call);
  /// Milliseconds per call.
  std::vector<double> times(int call, int samples);
  std::vector<double> nccl_times(Op op, int samples);
  bool has_nccl() { return simt::Nccl::loaded().available() && team_.ranks().stream(0) != nullptr; }

 private:
  int calls() const { return bytes() <= 1 << 20 ? 32 : bytes() <= 1 << 26 ? 8 : 3; }
  std::size_t part() const { return in_[0].count / at(ranks()); }
  double number(int rank, std::size_t i) const {
    const std::vector<float>& period = period_[at(rank)];
    return static_cast<double>(period[i % period.size()]);
  }
  void judge(const CallShape& shape, int rank, std::size_t i, float got,
             lab::Closest& closest) const;

  Team team_;
  std::vector<std::vector<float>> period_;
  std::vector<simt::Span<float>> in_, out_;
  NcclRanks& nccl_;
  bool connected_ = false;
};

}  // namespace tilestep::parallelism

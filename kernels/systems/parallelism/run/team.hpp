#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/systems/parallelism/kernels.hpp"

/// Ranks with their calls: what they do together, each time with room and flags of its own.
namespace tilestep::parallelism {

class Team {
 public:
  Team(simt::Device& device, int ranks, std::uint64_t seed = 1,
       simt::ThreadOrder order = simt::ThreadOrder::ascending)
      : kernels_(kernels_of(device)),
        ranks_(kernels_.make_ranks(device, ranks, seed, order)),
        pieces_(at(ranks)) {}

  int count() const { return ranks_->count(); }
  simt::Ranks& ranks() { return *ranks_; }
  const Kernels& kernels() const { return kernels_; }

  /// An array in a rank's memory, all bits set. It lives as long as the team.
  template <class T>
  simt::Span<T> unwritten(int rank, std::size_t count) {
    return {static_cast<T*>(take(rank, count * sizeof(T))), count};
  }
  template <class T>
  simt::Span<T> uploaded(int rank, const std::vector<T>& host) {
    const simt::Span<T> made = unwritten<T>(rank, host.size());
    if (!host.empty()) ranks_->at(rank).copy_in(made.data, host.data(), host.size() * sizeof(T));
    return made;
  }
  template <class T>
  std::vector<T> download(simt::Span<T> from) {
    std::vector<T> host(from.count);
    if (!host.empty()) ranks_->at(0).copy_out(host.data(), from.data, host.size() * sizeof(T));
    return host;
  }

  /// Makes ready a call that the ranks can then make; `shape.rank` does not matter. `notes`: tape entries per rank, 0:
  /// nothing is recorded. Returns its number.
  int add(const CallShape& shape, std::size_t notes = 0);
  /// Where a rank's numbers are, and where its results go. Those of all ranks are needed before the call.
  void join(int call, int rank, simt::Span<const float> in, simt::Span<float> out);
  /// Whom a rank sends to and gets from in a `pass`; −1: nobody.
  void neighbours(int call, int rank, int to, int from);
  /// Throws Error (check_failed) that says who waited for whom, if a wait was given up.
  void require_met() const;
  /// By a rank's host. A call may be made again.
  void make(int call, int rank);
  simt::Trace::Log log(int call, int rank) const;
  const CallShape& shape(int call) const { return calls_[static_cast<std::size_t>(call)].shape; }

 private:
  struct Call {
    CallShape shape;
    std::array<simt::Span<float>, kMostRanks> room;
    std::array<simt::Span<unsigned>, kMostRanks> flags, epochs;
    std::vector<std::unique_ptr<simt::Trace>> tapes;
    std::array<simt::Span<const float>, kMostRanks> in;
    std::array<simt::Span<float>, kMostRanks> out;
    std::array<int, kMostRanks> to, from;
  };
  /// Of one large piece after another: a rank has many small arrays.
  struct Pieces {
    std::vector<simt::Buffer<unsigned char>> all;
    std::size_t used = 0;
  };
  void* take(int rank, std::size_t bytes);

  const Kernels& kernels_;
  std::unique_ptr<simt::Ranks> ranks_;
  std::vector<Pieces> pieces_;
  std::vector<Call> calls_;
};

/// Bytes that went over links in a call, by the accesses of its kernels: from rank to rank, row by row.
std::vector<double> link_bytes(const Team& team, int call);

}  // namespace tilestep::parallelism

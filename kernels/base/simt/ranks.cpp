#include "kernels/base/simt/ranks.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "kernels/base/simt/emulator/emulated_like.hpp"

namespace tilestep::simt {
namespace emulated {

struct RankTurns::Parts {
  struct Rank {
    bool ended = true;
    const unsigned* flag = nullptr;  ///< that it waits for; null: it does not
    unsigned value = 0;
    int call = 0, from = 0;
    std::exception_ptr error;
  };
  std::vector<Rank> ranks;
  std::vector<Stuck> stuck;
  std::mt19937_64 random;
  std::mutex mutex;
  std::condition_variable turn_there;
  int turn = -1;
  bool dead = false;

  bool can_go_on(const Rank& rank) const {
    return !rank.ended && (dead || rank.flag == nullptr || *rank.flag >= rank.value);
  }
  /// Chooses who goes on. Where nobody can, all waits are given up.
  void pass() {
    std::vector<int> able;
    const auto look = [&] {
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        if (can_go_on(ranks[rank])) able.push_back(static_cast<int>(rank));
      }
    };
    look();
    if (able.empty()) {
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        if (!ranks[rank].ended)
          stuck.push_back({static_cast<int>(rank), ranks[rank].call, ranks[rank].from});
      }
      dead = dead || !stuck.empty();
      look();
    }
    turn = able.empty() ? -1 : able[random() % able.size()];
    turn_there.notify_all();
  }
};

RankTurns::RankTurns(int ranks, std::uint64_t seed) : parts_(std::make_unique<Parts>()) {
  parts_->ranks.resize(static_cast<std::size_t>(ranks));
  parts_->random.seed(seed);
}
RankTurns::~RankTurns() = default;

void RankTurns::run(const std::function<void(int rank)>& program) {
  Parts& parts = *parts_;
  for (Parts::Rank& rank : parts.ranks) rank = {.ended = false, .error = nullptr};
  std::vector<std::thread> hosts;
  const auto host = [&](int number) {
    Parts::Rank& rank = parts.ranks[static_cast<std::size_t>(number)];
    {
      std::unique_lock lock(parts.mutex);
      parts.turn_there.wait(lock, [&] { return parts.turn == number; });
    }
    try {
      program(number);
    } catch (...) {
      rank.error = std::current_exception();
    }
    const std::lock_guard lock(parts.mutex);
    rank.ended = true;
    parts.pass();
  };
  try {
    for (int rank = 0; rank < static_cast<int>(parts.ranks.size()); ++rank)
      hosts.emplace_back(host, rank);
  } catch (const std::system_error& error) {
    // Those that were not started have ended; the others are let go one by one.
    {
      const std::lock_guard lock(parts.mutex);
      for (std::size_t rank = hosts.size(); rank < parts.ranks.size(); ++rank)
        parts.ranks[rank].ended = true;
      parts.dead = true;
      parts.pass();
    }
    for (std::thread& one : hosts) one.join();
    throw Error("no thread can be started for a rank: " + error.code().message() +
                    "; close other programs, or raise the limit (`ulimit -u`)",
                ExitCode::unavailable);
  }
  {
    const std::lock_guard lock(parts.mutex);
    parts.pass();
  }
  for (std::thread& one : hosts) one.join();
  for (const Parts::Rank& rank : parts.ranks) {
    if (rank.error) std::rethrow_exception(rank.error);
  }
}

bool RankTurns::await(int number, int call, const unsigned* flag, unsigned value, int from) {
  Parts& parts = *parts_;
  Parts::Rank& rank = parts.ranks[static_cast<std::size_t>(number)];
  std::unique_lock lock(parts.mutex);
  if (parts.dead) return false;
  rank.flag = flag;
  rank.value = value;
  rank.call = call;
  rank.from = from;
  parts.pass();
  parts.turn_there.wait(lock, [&] { return parts.turn == number; });
  rank.flag = nullptr;
  return !parts.dead;
}

void RankTurns::give_up() {
  const std::lock_guard lock(parts_->mutex);
  parts_->dead = true;
}
std::vector<Stuck> RankTurns::stuck() const {
  return parts_->stuck;
}

}  // namespace emulated

namespace {

class EmulatedRanks final : public Ranks {
 public:
  EmulatedRanks(const Device& device, std::span<const KernelEntry> table, int count,
                std::uint64_t seed, ThreadOrder order)
      : turns_(count, seed), pretends_(device.can_time()) {
    count_ = count;
    for (int rank = 0; rank < count; ++rank) {
      const EmulationOptions options{
          .order = order, .seed = seed + static_cast<std::uint64_t>(rank), .os_threads = 1};
      devices_.push_back(make_emulated_like(device, table, options));
    }
  }
  bool apart() const override { return pretends_; }
  Device& at(int rank) override { return *devices_[static_cast<std::size_t>(rank)]; }
  void run(const std::function<void(int rank)>& program) override { turns_.run(program); }
  World world(int rank, int call) override { return {&turns_, rank, call}; }
  std::vector<Stuck> stuck() const override { return turns_.stuck(); }
  void give_up() override { turns_.give_up(); }
  void copy(int rank, void* to, const void* from, std::size_t bytes) override {
    at(rank).copy_on_device(to, from, bytes);
  }
  std::vector<double> time_ms(const std::function<void()>&, int, int samples) override {
    if (pretends_) return std::vector<double>(static_cast<std::size_t>(samples), 1.0);
    throw Error("emulated ranks are not timed: their run time says nothing about a link",
                ExitCode::unavailable);
  }

 private:
  emulated::RankTurns turns_;
  const bool
      pretends_;  ///< the device says that it can time: a test that looks at a bench's tables
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace

std::unique_ptr<Ranks> make_emulated_ranks(const Device& device, std::span<const KernelEntry> table,
                                           int count, std::uint64_t seed, ThreadOrder order) {
  if (count < 1 || count > kMostRanks)
    throw Error("ranks is " + std::to_string(count) + "; allowed: 1–" + std::to_string(kMostRanks));
  return std::make_unique<EmulatedRanks>(device, table, count, seed, order);
}

}  // namespace tilestep::simt

#pragma once

/// \file
/// What Hopper does beside the threads of a block, or of a cluster's blocks, under emulation: mbarriers, the
/// copies of TMA, wgmma, named barriers. It does the work at the earliest or the latest moment that a program
/// allows, or in between, and reports each use of shared memory that is not safe in *every* order in which the
/// hardware might do it, whatever order was taken here.
///
/// How it knows: each thread keeps a vector clock of what it knows to have happened (Lamport's "happened
/// before"; Mattern, "Virtual time and global states of distributed systems", 1988). It has a component
/// for each thread, for each thread's fences towards the async proxy, for the ended phases of each
/// mbarrier, for the products that each warp has waited for, and for the stores that a thread has waited
/// for; and one, the depth, that counts words along the longest chain of them (Lamport's scalar clock). What
/// orders threads (barriers of all kinds) passes knowledge on. Shared memory has a shadow, a
/// Granule for every 16 bytes: which copy wrote it, which threads wrote or read it by ordinary accesses,
/// which products and stores read it. A use whose predecessors the using thread does not know is unsafe.
///
/// Threads and warps are counted through the cluster. Addresses here are those of the cluster's window: a
/// block's own, and kBlockSpan times its rank.
///
/// cp.async, which thread_copies.hpp does, is watched from a block's first word of Hopper's on.
///
/// Not watched: what a kernel does by plain `Shared<T>` (only by `hopper::Staged<T>`), ordinary accesses
/// of a block's threads against each other, global memory, reads of a product's sums before the wait (they
/// are NaN then), and writes to A's registers before it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/base/simt/backends.hpp"
#include "kernels/base/simt/location.hpp"

namespace tilestep::simt::hopper {
enum class Format;
}  // namespace tilestep::simt::hopper

namespace tilestep::simt::emulated {

class BlockRunner;
class OperandLayout;
using Clock = std::uint32_t;

/// A tensor map under emulation: a row-major matrix in global memory, and the box of it that moves.
struct BoxMap {
  unsigned char* base = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t pitch = 0;  ///< bytes from row to row
  int box_rows = 0;
  int box_columns = 0;
  int element_bytes = 1;
  int swizzle = 0;                ///< bytes
  std::int64_t matrices = 0;      ///< one after another; 0: a map of one, which is not asked which
  std::int64_t matrix_pitch = 0;  ///< bytes from one to the next

  int row_bytes() const { return box_columns * element_bytes; }  ///< of the box
  int bytes() const { return box_rows * row_bytes(); }
};

/// What one wgmma multiplies: 64 rows of A by n rows of B.
struct Product {
  int format = 0;  ///< hopper::Format
  int n = 0;
  std::uint64_t a = 0, b = 0;  ///< descriptors
  bool fresh = false;
  bool turned_b = false;  ///< n fastest
  const unsigned* a_registers =
      nullptr;  ///< the thread's fragment of A, where that is in registers

  bool same_as(const Product& other) const {
    return format == other.format && n == other.n && a == other.a && b == other.b &&
           fresh == other.fresh && turned_b == other.turned_b &&
           (a_registers == nullptr) == (other.a_registers == nullptr);
  }
};

/// The threads and the shared memory of a block, or of a cluster's blocks.
struct AsyncShape {
  int threads = 0;  ///< of a block
  int blocks = 1;
  unsigned char* shared = nullptr;
  std::size_t shared_bytes = 0;   ///< of a block
  std::size_t shared_stride = 0;  ///< from block to block
  std::uint64_t seed = 0;
};

class AsyncEngine {
 public:
  /// Shared memory begins at this address, as kernels see it.
  static constexpr unsigned kSharedBase = 1024 + 16;
  /// From block to block of a cluster.
  static constexpr unsigned kBlockSpan = 1u << 18;

  /// `current` is always the thread that runs.
  AsyncEngine(BlockRunner& runner, const int& current, const EmulationOptions& options);

  // ---- the block runner's side ----
  /// Lets those give up who only watch, or if there are none those who wait at most so long. False if there
  /// are neither.
  bool end_watches();
  /// Whether the running block has used a word of Hopper's.
  bool active() const { return active_; }
  void begin_block(const AsyncShape& shape);
  void end_block() { active_ = false; }
  void block_met(int rank);
  void lanes_met(int first_thread, unsigned mask);
  /// Does something that a thread waits for. False if there is nothing.
  bool advance();
  /// Throws Error if the thread leaves products or stores behind that it has not waited for, or is its
  /// block's last, and others may still come to the block's shared memory.
  void thread_ended();
  /// What a sleeping thread waits for, for the report of a block that cannot go on.
  std::string why_asleep(int thread) const;

  // ---- words ----
  unsigned address_of(const void* memory) const;
  /// The memory at an address of the calling thread's block.
  void* at(unsigned address, std::size_t bytes, std::size_t alignment, const char* name);
  /// The memory at the same address of a block of the cluster.
  void* remote(unsigned address, unsigned block, std::size_t bytes, std::size_t alignment,
               const char* name, Location at);
  int rank() const { return rank_of(me()); }
  void cluster_barrier(Location at);
  void name(unsigned address, int bytes, const char* name, int number);

  void barrier_init(unsigned address, int arrivals, Location at);
  void publish_barriers();
  void arrive(unsigned address, int expected_bytes, Location at);
  void arrive_at(unsigned address, unsigned block, Location at);
  void store_at(unsigned address, unsigned barrier, unsigned block, const void* value, Location at);
  void expect(unsigned address, int bytes, Location at);
  void wait(unsigned address, unsigned parity, Location at);
  /// Waits for the next phase of that parity that this thread has not seen, without learning more of it than
  /// its depth. False if nothing else can go on before it ends.
  bool watch(unsigned address, unsigned parity, Location at);
  /// As wait, but where reports are off it ends with false when nothing else can go on.
  bool wait_at_most(unsigned address, unsigned parity, Location at);
  /// Of the calling thread.
  long long depth() const { return known(me())[depth_component()]; }
  void named_barrier(int id, int threads, bool waits, Location at);
  void fence();

  /// The map of one of its matrices; of none of them where `which` is outside.
  BoxMap matrix_of(const BoxMap& map, int which, Location at) const;
  /// To the first `blocks` blocks of the cluster, or with 1 to the thread's own.
  void fetch(const BoxMap& map, unsigned to, unsigned barrier, int column, int row, int blocks,
             Location at);
  /// With `adds` the numbers are added to those in global memory.
  void store(const BoxMap& map, unsigned from, int column, int row, bool adds, Location at);
  void commit_stores();
  void wait_stores(int pending, Location at);

  void begin_products();
  void multiply(const Product& product, float* sums, Location at);
  void commit_products();
  void wait_products(int pending, Location at);

  /// An ordinary access to `bytes` (up to 16, in one granule) is about to happen.
  void reads(const void* memory, int bytes, Location at);
  void writes(const void* memory, int bytes, Location at);
  /// The calling thread has started a copy by cp.async; has waited for one; for all of them that it wanted.
  void copy_started(const void* memory, int bytes, Location at);
  void copy_awaited(const void* memory, int bytes);
  void copies_awaited() {
    tick(me());
    step();
  }

 private:
  static constexpr int kMostBarriers = 64;
  static constexpr int kMostStorers = 32;
  static constexpr int kWarpgroup = 128;
  static constexpr int kGranule = 16;
  static constexpr int kMostWarpgroups = 8;
  static constexpr int kNone = -1;
  static constexpr Clock kUnderWay = 0xFFFFFFFFu;

  using Knowledge = std::vector<Clock>;

  struct Access {
    int thread;
    Clock clock;
    Location at;
    unsigned bytes = 0xFFFF;  ///< of the granule, a bit each
    bool copies = false;      ///< by cp.async; from `clock` on the thread knows that it is done
  };
  /// That a thread came to the shared memory of another block.
  struct Visit {
    Access access;
    const char* does;
  };
  struct Granule {
    std::uint64_t block = 0;  ///< of which the rest is; of another one it means nothing
    int copy = kNone;         ///< that wrote it last
    int copy_row = 0;         ///< of its box
    int store = kNone;        ///< the newest that reads it
    bool stale_kept = false;  ///< `stale` is what the async proxy sees until a fence
    std::array<Clock, kMostWarpgroups> products{};  ///< newest that reads it, of each warpgroup
    std::vector<Access> writers, readers;           ///< by ordinary accesses since the copy
    std::array<unsigned char, kGranule> stale{};
  };
  struct Barrier {
    unsigned address = 0;
    int arrivals = 0;  ///< of a phase
    int pending = 0;   ///< arrivals that the phase still waits for
    long long bytes = 0;
    Clock phase = 0;  ///< that have ended
    int owner = 0;    ///< who has initialised it, and when
    Clock since = 0;
    bool published = false;
    Knowledge gathering = {}, done = {};
    std::vector<int> sleepers = {};
    std::vector<Clock> depths = {};  ///< at which each phase ended
    std::vector<int> watchers = {};
  };
  struct Watch {
    int thread, barrier;
    Clock seen;  ///< phases
  };
  struct NamedBarrier {
    int threads = 0, arrived = 0;
    Knowledge gathering;
    std::vector<int> sleepers = {};
  };
  struct Copy {
    BoxMap map;
    unsigned to = 0;
    int barrier = 0;
    int column = 0, row = 0;
    Location at = {};
    int thread = 0;                         ///< that started it
    Clock depth = 0;                        ///< of that
    int landed_rows = 0, landed_bytes = 0;  ///< whole rows, and bytes of the next one
    std::vector<Clock> row_phase = {};  ///< phase with whose end a landed row is there; never falls
    int granules = 0;                   ///< that it wrote last
    bool landed() const { return landed_rows == map.box_rows; }
  };
  struct Store {
    BoxMap map;
    unsigned from = 0;
    int column = 0, row = 0;
    Location at = {};
    int storer = 0;
    Clock number = 0;  ///< of its storer, from 1
    Clock depth = 0;
    bool adds = false;
    bool done = false;
  };
  struct Storer {
    int thread = 0;
    Clock started = 0, done = 0, awaited = 0;
    std::vector<Clock> groups = {};  ///< the last store of each
    bool asleep = false;
  };
  struct Accumulator {
    int n = 0;
    std::vector<float> tile = {};  ///< 64 × n
    std::array<float*, kWarpgroup> registers{};
    int users = 0;  ///< products that are not done
  };
  struct Need {
    bool copy = false;
    int index = 0;      ///< copy; or writing thread
    Clock clock = 0;    ///< of the writing thread
    int row_begin = 0;  ///< of the copy
    int row_end = 0;
    unsigned address = 0;
    Location at = {};     ///< of the writing
    bool copies = false;  ///< by cp.async
  };
  struct Operation {
    Product product;
    int accumulator = 0;
    int posted = 0;   ///< threads that have
    Clock depth = 0;  ///< of the last of them
    Location at = {};
    std::vector<Need> needs = {};
    std::vector<float> a = {};  ///< from registers
  };
  /// What a thread's registers held when a product was done, and whether a fence came since.
  struct Settled {
    std::uint64_t hash = 0;
    int sums = 0;          ///< of the thread
    Clock number = 0;      ///< of the product
    bool awaited = false;  ///< the thread has waited since
    bool fenced = false;
  };
  struct ProductThread {
    bool began = false;
    Clock posted = 0;
    Clock awaited = 0;
    std::vector<Clock> groups = {};  ///< the last operation of each
    std::unordered_map<float*, Settled> settled;
  };
  /// What is left of a product when its threads have waited for it.
  struct Past {
    Location at;
    Clock depth;
  };
  struct Warpgroup {
    std::deque<Operation> operations = {};  ///< those that are not done, the oldest first
    std::vector<Past> past = {};            ///< those that are
    Clock done = 0;
    Operation& operation(Clock number) { return operations[number - 1 - done]; }
    std::vector<Accumulator> accumulators = {};
    std::array<ProductThread, kWarpgroup> threads;
    std::vector<int> sleepers = {};
  };
  enum class Sleep { none, barrier, patient, watch, named, cluster, products, stores };
  struct Sleeper {
    Sleep kind = Sleep::none;
    int index = 0;
    unsigned parity = 0;
    bool gave_up = false;  ///< patient: nothing else could go on
  };
  struct Label {
    unsigned begin, end;
    const char* name;
    int number;
  };

  // Knowledge.
  Clock* known(int thread) { return known_.data() + static_cast<std::size_t>(thread) * stride_; }
  const Clock* known(int thread) const {
    return known_.data() + static_cast<std::size_t>(thread) * stride_;
  }
  std::size_t fence_of(int thread) const { return static_cast<std::size_t>(threads_ + thread); }
  std::size_t barrier_of(int barrier) const {
    return static_cast<std::size_t>(2 * threads_ + barrier);
  }
  std::size_t warp_of(int warp) const { return barrier_of(kMostBarriers * blocks_ + warp); }
  std::size_t storer_of(int storer) const { return warp_of((threads_ + 31) / 32 + storer); }
  std::size_t depth_component() const { return storer_of(kMostStorers * blocks_); }
  void deepen(int thread, Clock least) {
    Clock& depth = known(thread)[depth_component()];
    depth = std::max(depth, least);
  }
  void join(Clock* into, const Clock* from) const;
  void tick(int thread) { ++known(thread)[thread]; }
  /// The calling thread executes a word.
  void step() { ++known(me())[depth_component()]; }
  int me() const { return current_; }
  int rank_of(int thread) const { return blocks_ == 1 ? 0 : thread / block_threads_; }
  static int rank_at(unsigned address) { return static_cast<int>(address / kBlockSpan); }
  /// In the cluster's window.
  static unsigned in_block(unsigned address, int rank) {
    return address + static_cast<unsigned>(rank) * kBlockSpan;
  }
  unsigned here(unsigned address) const { return in_block(address, rank()); }
  unsigned window_address(const void* memory) const;
  unsigned char* memory(unsigned address) const {
    return shared_ + address / kBlockSpan * shared_stride_ + (address % kBlockSpan - kSharedBase);
  }
  int block_of(unsigned block, const char* does, Location at) const;
  bool knows(int thread, const Access& access) const;
  bool knows_fenced(int thread, const Access& access) const;
  bool knows_row(int thread, const Copy& copy, int row) const;
  bool knows_products(int thread, int group, Clock number) const;
  bool knows_store(int thread, const Store& store) const;

  // Reports.
  /// Where it is reported, in the words of `say`: others may run into thousands of them.
  template <class Say>
  void unsafe(const Say& say) const {
    if (report_) report(say());
  }
  void report(const std::string& what) const;
  std::string place(unsigned address) const;
  std::string who(int thread) const;
  std::string of_block(int rank) const;
  std::string barrier_name(const Barrier& barrier) const;

  // Barriers.
  int used(unsigned address, Location at);
  bool end_phase(int index);
  void log_phase(const Barrier& barrier) const;
  void name_in(AsyncEvent& event, const Barrier& barrier) const;
  Watch& watch_of(int thread, int barrier);
  bool end_patience();
  void arrive_there(int index, int expected_bytes, Location at);
  bool end_cluster_barrier(int leaving);
  void sleep(Sleep kind, int index, unsigned parity, Location at);
  void wake(std::vector<int>& sleepers);

  // Shared memory.
  Granule& granule(unsigned address);
  void check_copied(const Granule& g, unsigned address, const char* does, Location at) const;
  void check_others(const std::vector<Access>& others, const Access& mine, unsigned address,
                    const char* does, const char* did) const;
  void check_copies(const Granule& g, const Access& mine, unsigned address, const char* does) const;
  void keep_stale(Granule& g, unsigned address) const;
  bool in_shared(const void* memory) const;
  Access access_to(unsigned address, int bytes, Location at) const;
  void keep(std::vector<Access>& accesses, Access access) const;
  void visit(int rank, const char* does, Location at);
  void block_ended(int rank) const;
  void check_released(const Granule& g, unsigned address, const char* does, Location at) const;
  void check_fenced(const Granule& g, unsigned address, const char* does, Location at) const;
  bool stale(const Granule& g) const;
  void async_read(unsigned address, unsigned char* to);
  void within(unsigned address, int bytes, const char* does, Location at) const;

  // Copies.
  void check_rank(const BoxMap& map, bool says_which, Location at) const;
  void fetch_into(const BoxMap& map, unsigned to, unsigned barrier, int column, int row,
                  Location at);
  void claim(unsigned address, int copy, int row, Location at);
  void land(Copy& copy);
  void log_landed(const Copy& copy, unsigned address, int bytes) const;
  void land_bytes(const Copy& copy, int bytes);
  void land_pending(std::size_t which);
  int new_copy(Copy copy);
  void retire(int copy);
  void run_store(Store& store);
  int storer_here();
  void finish_stores(Storer& storer, Clock upto);

  // Products.
  int group_of(int thread) const {
    return rank_of(thread) * block_groups_ + thread % block_threads_ / kWarpgroup;
  }
  int first_thread(int group) const {
    return group / block_groups_ * block_threads_ + group % block_groups_ * kWarpgroup;
  }
  /// Which of its warpgroup's 128 threads it is.
  int place_in_group(int thread) const { return thread % block_threads_ % kWarpgroup; }
  Warpgroup& warpgroup(int thread) { return groups_[static_cast<std::size_t>(group_of(thread))]; }
  int accumulator_for(Warpgroup& group, int index, float* sums, int n);
  void add_needs(Operation& operation, int group, Clock number);
  void check_needs(const Operation& operation, Location at) const;
  void check_registers(ProductThread& mine, float* sums, const Product& product, Location at);
  void run_products(int group, Clock upto);
  void load_operand(hopper::Format format, int rank, const OperandLayout& layout, float* to);
  Operation& operation_for(int group, Clock number, const Product& product, Location at);
  void take_sums(int group, int index, Operation& operation, float* sums, Location at);
  void log_product(int group, const Operation& operation) const;
  void run_product(int group, const Operation& operation);
  void put_back(int group, Accumulator& accumulator);

  void nudge();
  std::uint64_t random();

  BlockRunner& runner_;
  const int& current_;
  Completion completion_;
  bool report_;
  std::vector<AsyncEvent>* log_;
  bool active_ = false;
  std::uint64_t block_ = 0;  ///< counts those that used the engine
  std::uint64_t random_state_ = 0;
  int threads_ = 0;  ///< of the cluster
  int blocks_ = 1;
  int block_threads_ = 1;
  int block_groups_ = 1;  ///< warpgroups of a block
  std::size_t stride_ = 0;
  unsigned char* shared_ = nullptr;
  std::size_t shared_bytes_ = 0;   ///< of a block
  std::size_t shared_stride_ = 0;  ///< from block to block
  std::size_t block_granules_ = 0;
  std::vector<Clock> known_;  ///< threads × components
  std::vector<Granule> granules_;
  std::vector<Label> labels_;
  std::vector<Barrier> barriers_;
  std::vector<NamedBarrier> named_;  ///< 16 of each block
  NamedBarrier cluster_;
  std::vector<std::vector<Visit>> visits_;  ///< to each block
  std::vector<Watch> watches_;
  std::vector<Sleeper> sleeping_;
  std::deque<Copy> copies_;       ///< with holes
  std::vector<int> free_copies_;  ///< which are of copies that nothing is left of
  std::deque<Store> stores_;
  std::size_t done_stores_ = 0;  ///< the oldest that are done
  std::vector<int> pending_copies_;
  std::vector<Storer> storers_;
  std::vector<Warpgroup> groups_;
};

/// The engine of the running block. Throws Error outside a kernel.
AsyncEngine& async();

}  // namespace tilestep::simt::emulated

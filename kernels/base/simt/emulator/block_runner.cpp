#include "kernels/base/simt/emulator/block_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

#include "kernels/base/simt/emulator/fault_guard.hpp"

constinit thread_local uint3 threadIdx{0, 0, 0};
constinit thread_local uint3 blockIdx{0, 0, 0};
constinit thread_local dim3 blockDim;
constinit thread_local dim3 gridDim;

namespace tilestep::simt::emulated {
namespace {

constinit thread_local BlockRunner* runner = nullptr;

struct SharedArray {
  void* memory;
  std::size_t bytes;
};
/// The static shared arrays that kernels of this OS thread have come by.
std::vector<SharedArray>& shared_arrays() {
  static thread_local std::vector<SharedArray> arrays;
  return arrays;
}

/// Where dynamic shared memory begins on a GPU too; rows that TMA swizzles by 128 bytes need it.
constexpr std::size_t kSharedAlignment = 1024;

constexpr const char* kStaticShared =
    "uses static shared memory (__shared__) in a launch of clusters, whose blocks have only "
    "dynamic shared memory under emulation; allowed: simt::dynamic_shared";

// Ends a thread of a block that is given up. Caught where the thread began.
struct Unwind {};

}  // namespace

BlockRunner::BlockRunner(const EmulationOptions& options) : options_(options), copies_(options) {}

BlockRunner::~BlockRunner() {
  quit_ = true;
  if (stopped_.signal != 0) return;  // perhaps in the middle of a switch
  for (Context* context : idle_) {
    Fibers::switch_to(fibers_.main(), *context);
#if defined(TILESTEP_TSAN)
    __tsan_destroy_fiber(context->tsan);
#endif
  }
}

BlockRunner& BlockRunner::current() {
  if (runner == nullptr) throw Error("a word that only kernels may use was used outside a kernel");
  return *runner;
}

bool BlockRunner::inside_kernel() {
  return runner != nullptr;
}

void BlockRunner::FreeAligned::operator()(unsigned char* memory) const {
  ::operator delete (memory, std::align_val_t{kSharedAlignment});
}

void BlockRunner::begin(const LaunchJob& job) {
  job_ = &job;
  const dim3 block = job.launch->block;
  block_threads_ = static_cast<int>(block.x * block.y * block.z);
  blocks_ = static_cast<int>(job.launch->cluster);
  count_ = block_threads_ * blocks_;
  const auto count = static_cast<std::size_t>(count_);
  threads_.resize(count);
  order_.resize(count);
  ready_.resize(count);
  warps_.resize((count + kWarp - 1) / kWarp);
  members_.resize(static_cast<std::size_t>(blocks_));
  int thread = 0;
  for (int rank = 0; rank < blocks_; ++rank) {
    for (unsigned z = 0; z < block.z; ++z) {
      for (unsigned y = 0; y < block.y; ++y) {
        for (unsigned x = 0; x < block.x; ++x) threads_[thread++].index = {x, y, z};
      }
    }
  }
  const bool down = options_.order == ThreadOrder::descending;
  for (int i = 0; i < count_; ++i) order_[i] = down ? count_ - 1 - i : i;
  shared_stride_ =
      (job.launch->shared_bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
  if (const std::size_t bytes = shared_stride_ * members_.size(); bytes > shared_capacity_) {
    shared_memory_.reset();
    shared_capacity_ = bytes;
    constexpr std::size_t kFence = SharedRaces::kFence;
    static_assert(kFence % kSharedAlignment == 0);
    shared_memory_.reset(static_cast<unsigned char*>(
        ::operator new (shared_capacity_ + 2 * kFence, std::align_val_t{kSharedAlignment})));
    shared_ = shared_memory_.get() + kFence;
  }
  blockDim = block;
  gridDim = job.launch->grid;
}

void BlockRunner::run(std::uint64_t linear) {
  block_ = linear;
  place_blocks();
  // Each block has its own sequence, so that the orders do not depend on which OS thread runs it.
  random_state_ = options_.seed + (linear + 1) * 0x9E3779B97F4A7C15u;
  for (Thread& thread : threads_) thread.state = State::unstarted;
  ended_ = 0;
  mismatch_ = abandoned_ = told_outside_ = false;
  error_ = nullptr;
  ready_head_ = ready_size_ = 0;
  if (warps_used_) reset_warps();
  coalescing_ = 0;
  if (async_) async_->end_block();
  copies_.begin_block(count_, random_state_);
  fill_shared();
  if (FaultGuard::armed()) watch_memory();
  if (blocks_ > 1) async();  // what passes from block to block is watched from the start
  if (watch_window.listener != nullptr) watch_window.listener->block_begins(block(0));
  begin_phase();
  Context& first = start(order_[cursor_++]);
  main_frame_ = static_cast<const char*>(__builtin_frame_address(0));
  runner = this;
  Fibers::switch_to(fibers_.main(), first);
  runner = nullptr;
  if (watch_window.listener != nullptr) watch_window.listener->block_ended();
  if (races_) races_->end_block(), watch_window = {};
  if (stopped_.signal != 0) [[unlikely]] {
    throw KernelFault(
        fmt::format("{} {}", position(std::min(current_, count_ - 1)), stopped_.what()),
        stopped_.place(), true);
  }
  assert(abandoned_ || ended_ == count_);
  if (blocks_ > 1) check_static_shared();
  if (error_) std::rethrow_exception(error_);
}

void BlockRunner::place_blocks() {
  const dim3 grid = job_->launch->grid;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    const std::uint64_t linear = block(static_cast<int>(rank));
    members_[rank] = {.index = {static_cast<unsigned>(linear % grid.x),
                                static_cast<unsigned>(linear / grid.x % grid.y),
                                static_cast<unsigned>(linear / grid.x / grid.y)}};
  }
  blockIdx = members_[0].index;
}

// NaN in floats: a kernel that reads what no thread wrote shows it.
void BlockRunner::fill_shared() {
  if (shared_stride_ > 0) std::memset(shared_, 0xFF, shared_stride_ * members_.size());
  for (const SharedArray& array : shared_arrays()) std::memset(array.memory, 0xFF, array.bytes);
}

void BlockRunner::watch_memory() {
  if (!races_) races_ = std::make_unique<SharedRaces>(*this);
  races_->begin_block(count_,
                      {reinterpret_cast<std::uintptr_t>(shared_), job_->launch->shared_bytes});
  global_.begin_block(static_cast<std::uint32_t>(block(0)));
  watch_window.global = global_watch().ranges();
  watch_window.view = &global_;
  watch_window.listener = options_.listener;
}

// The blocks of a cluster would share what each must have for itself.
void BlockRunner::check_static_shared() const {
  for (const SharedArray& array : shared_arrays()) {
    const auto* bytes = static_cast<const unsigned char*>(array.memory);
    if (std::all_of(bytes, bytes + array.bytes, [](unsigned char byte) { return byte == 0xFF; })) {
      continue;
    }
    throw KernelFault(fmt::format("{} {}", job_->launch->name, kStaticShared), {});
  }
}

// The thread that runs next, or kNone when the block is over.
inline int BlockRunner::pick_next() {
  if (!abandoned_) [[likely]] {
    if (ready_size_ > 0) {
      const int thread = ready_[ready_head_];
      ready_head_ = ready_head_ + 1 == count_ ? 0 : ready_head_ + 1;
      --ready_size_;
      return thread;
    }
    if (cursor_ < count_) return order_[cursor_++];
  }
  return pick_unusual();
}

// When no thread can run: all have ended, or they wait for what never comes and are to unwind.
int BlockRunner::pick_unusual() {
  // A block whose threads meet at no block barrier is given up here when it is no longer wanted.
  if (async_ && async_->active() && block_ >= job_->end_block.load(std::memory_order_relaxed)) {
    abandoned_ = true;
  }
  if (!abandoned_) {
    try {
      while (advance()) {
        if (ready_size_ > 0) return pick_next();
      }
      if (ended_ == count_) return kNone;
      if (coalesce()) return pick_next();
      error_ = std::make_exception_ptr(
          KernelFault(stall_report(), place_of(threads_[stalled_thread()].place)));
    } catch (...) {  // no memory for the sentence, and no caller on a fiber's stack
      error_ = std::current_exception();
    }
    abandoned_ = true;
  }
  for (int thread = 0; thread < count_; ++thread) {
    const State state = threads_[thread].state;
    if (state == State::at_barrier || state == State::at_warp || state == State::asleep) {
      return thread;
    }
  }
  return kNone;
}

// Whether the hardware beside the threads could do something that one of them waits for.
bool BlockRunner::advance() {
  if (!async_ || !async_->active() || ended_ == count_) return false;
  return async_->advance() || async_->end_watches();
}

// What a fiber does all its life: threads that have not started, one after the other.
void BlockRunner::fiber_body(Context& self) {
  while (!quit_) {
    int next = starting_;
    do {
      threads_[next].context = &self;
      run_thread(next);
      next = pick_next();
    } while (next != kNone && threads_[next].state == State::unstarted);
    idle_.push_back(&self);
    if (next != kNone) go_to(threads_[next]);
    Fibers::switch_to(self, next == kNone ? fibers_.main() : *threads_[next].context);
  }
}

void BlockRunner::run_thread(int thread) {
  enter(thread);
  threads_[thread].state = State::started;
  try {
    job_->thread(job_->data);
    if (async_ && async_->active()) [[unlikely]]
      async_->thread_ended();
  } catch (const Unwind&) {
  } catch (...) {
    if (!error_) error_ = error_of(thread);
    abandoned_ = true;
  }
  threads_[thread].state = State::ended;
  ++ended_;
  if (blocks_ > 1) ++members_[rank_of(thread)].ended;
}

/// What the block ends with after what a thread has thrown, which is being handled. Nothing may be thrown
/// from here: there is no caller on a fiber's stack.
std::exception_ptr BlockRunner::error_of(int thread) const noexcept {
  const auto threw = [&](const std::string& what) {
    return std::make_exception_ptr(
        Error(fmt::format("{} threw {}", position(thread), what), ExitCode::check_failed));
  };
  try {
    try {
      throw;
    } catch (const Error&) {
      return std::current_exception();
    } catch (const std::bad_alloc&) {  // the kernel is right, and the machine is full
      return std::current_exception();
    } catch (const std::exception& other) {
      return threw(fmt::format("an exception: {}", other.what()));
    } catch (...) {
      return threw("something unknown");
    }
  } catch (...) {  // no memory for the sentence
    return std::current_exception();
  }
}

void BlockRunner::begin_phase() {
  cursor_ = 0;
  arrived_ = 0;
  votes_ = 0;
  if (options_.order == ThreadOrder::shuffled) {
    for (int i = count_ - 1; i > 0; --i) {
      std::swap(order_[i], order_[random() % static_cast<std::uint64_t>(i + 1)]);
    }
  }
}

// The context in which a thread that has not started shall begin.
Context& BlockRunner::start(int thread) {
  starting_ = thread;
  if (idle_.empty()) {
    // Room for all that may be idle at once: a fiber that ends its thread has nobody to throw to.
    if (++contexts_ > idle_.capacity()) idle_.reserve(2 * contexts_);
    return fibers_.make([this](Context& self) { fiber_body(self); });
  }
  Context* context = idle_.back();
  idle_.pop_back();
  return *context;
}

// Makes `next` the thread that runs after the switch from the current one.
inline Pause BlockRunner::go_to(Thread& next) {
  Context* from = threads_[current_].context;
  if (next.state == State::unstarted) return {from, &start(static_cast<int>(&next - &threads_[0]))};
  enter(static_cast<int>(&next - &threads_[0]));
#if defined(TILESTEP_RAW_SWITCH)
  // A block's stacks do not fit the first cache: fetches the one that is needed after that switch.
  if (cursor_ < count_) {
    const Context* later = threads_[order_[cursor_]].context;
    if (later != nullptr) {
      const char* top = static_cast<const char*>(later->stack_pointer);
      __builtin_prefetch(top);
      __builtin_prefetch(top + kCacheLine);
      __builtin_prefetch(top + 2 * kCacheLine);
    }
  }
#endif
  return {from, next.context};
}

void BlockRunner::unwind() {
  throw Unwind{};
}

// Who runs while the current thread waits. When nothing can, it unwinds.
Pause BlockRunner::pause() {
  const int next = pick_next();
  resume();
  if (next == current_) return {nullptr, nullptr};
  return go_to(threads_[next]);
}

inline Pause BlockRunner::arrive_at_barrier(bool predicate, Location at) {
  if (blocks_ > 1) [[unlikely]]
    return meet_in_cluster(predicate, at);
  Thread& self = threads_[current_];
  self.place = at;
  self.state = State::at_barrier;
  votes_ += predicate ? 1 : 0;
  // Nearly always the thread is neither the first nor the last to come, and the next in the order
  // waits where it waits.
  if (++arrived_ != count_ && std::memcmp(&at, &barrier_at_, sizeof at) == 0 && ready_size_ == 0 &&
      cursor_ < count_) [[likely]] {
    Thread& next = threads_[order_[cursor_]];
    if (next.state != State::unstarted) [[likely]] {
      ++cursor_;
      return go_to(next);
    }
  }
  return meet(at);
}

// A thread has come to a barrier, and not in the usual way.
[[gnu::noinline]] Pause BlockRunner::meet(Location at) {
  if (arrived_ == 1) {
    barrier_at_ = at;
  } else if (!same_place(barrier_at_, at)) {
    mismatch_ = true;  // reported once nothing else can run, so that the report is always the same
  }
  if (arrived_ == count_ && !mismatch_) {
    vote_result_ = votes_;
    if (async_ && async_->active()) async_->block_met(0);
    if (races_) races_->block_met();
    if (watch_window.listener != nullptr) watch_window.listener->block_met();
    if (block_ >= job_->end_block.load(std::memory_order_relaxed)) abandoned_ = true;
    begin_phase();
  }
  return pause();
}

// The same in a cluster, where the other blocks' threads run on meanwhile.
Pause BlockRunner::meet_in_cluster(bool predicate, Location at) {
  Thread& self = threads_[current_];
  self.place = at;
  self.state = State::at_barrier;
  const auto rank = static_cast<int>(rank_of(current_));
  Member& block = members_[static_cast<std::size_t>(rank)];
  block.votes += predicate ? 1 : 0;
  if (++block.arrived == 1) {
    block.barrier_at = at;
  } else if (!same_place(block.barrier_at, at)) {
    block.mismatch = true;
  }
  if (block.arrived == block_threads_ && !block.mismatch) {
    block.vote_result = std::exchange(block.votes, 0);
    block.arrived = 0;
    async_->block_met(rank);
    if (block_ >= job_->end_block.load(std::memory_order_relaxed)) abandoned_ = true;
    std::vector<int> all(static_cast<std::size_t>(block_threads_));
    std::iota(all.begin(), all.end(), rank * block_threads_);
    wake(all);
  }
  return pause();
}

AsyncEngine& BlockRunner::async() {
  if (!async_) async_ = std::make_unique<AsyncEngine>(*this, current_, options_);
  if (!async_->active()) {
    if (races_) races_->end_block();
    async_->begin_block({.threads = block_threads_,
                         .blocks = blocks_,
                         .shared = shared_,
                         .shared_bytes = job_->launch->shared_bytes,
                         .shared_stride = shared_stride_,
                         .seed = options_.seed + (block_ + 1) * 0x9E3779B97F4A7C15u});
  }
  return *async_;
}

void BlockRunner::sleep(Location at) {
  threads_[current_].place = at;
  threads_[current_].state = State::asleep;
  const Pause waiting = pause();
  if (waiting.to != nullptr) Fibers::switch_to(*waiting.from, *waiting.to);
  resume();
}

Pause arrive_at_barrier(bool predicate, Location at) {
  if (runner == nullptr) [[unlikely]]
    BlockRunner::current();  // throws
  return runner->arrive_at_barrier(predicate, at);
}

int leave_barrier() {
  return runner->leave_barrier();
}

void register_shared(void* memory, std::size_t bytes) {
  if (runner != nullptr && runner->blocks() > 1) runner->fail(kStaticShared);
  shared_arrays().push_back({memory, bytes});
  std::memset(memory, 0xFF, bytes);
}

void* BlockRunner::dynamic_shared_memory(std::size_t bytes, std::size_t byte_offset,
                                         std::size_t alignment) {
  const std::size_t have = job_->launch->shared_bytes;
  if (byte_offset % alignment != 0) {
    fail(
        fmt::format("takes dynamic shared memory from byte {} on, but its elements must start at a "
                    "multiple of {} bytes",
                    byte_offset, alignment));
  }
  if (byte_offset > have || bytes > have - byte_offset) {
    fail(
        fmt::format("takes {} bytes of dynamic shared memory from byte {} on, but the launch gave "
                    "the block {} bytes",
                    bytes, byte_offset, have));
  }
  return shared_ + rank_of(current_) * shared_stride_ + byte_offset;
}

void BlockRunner::watch(const char* name, double value, Location at) const {
  if (job_->watched == nullptr) return;
  const std::size_t rank = blocks_ > 1 ? rank_of(current_) : 0;
  job_->watched->add(
      {name, job_->launch->name, at.line(),
       static_cast<std::uint32_t>(block(static_cast<int>(rank))),
       static_cast<std::uint32_t>(blocks_ > 1 ? current_ % block_threads_ : current_), value});
}

void BlockRunner::fail(const std::string& what) const {
  throw KernelFault(fmt::format("{} {}", position(current_), what), place_here());
}

bool BlockRunner::stop_current(int number, const siginfo_t& info, void* context,
                               bool time_is_up) noexcept {
  return runner != nullptr && runner->stop(number, info, context, time_is_up);
}

std::uint64_t BlockRunner::random() {
  return split_mix(random_state_);
}

}  // namespace tilestep::simt::emulated

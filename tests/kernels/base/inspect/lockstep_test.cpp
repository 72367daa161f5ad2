// Warps put together again from threads that ran one after the other.
#include "kernels/base/inspect/lockstep.hpp"

#include <string_view>

#include "kernels/base/inspect/operations.hpp"
#include "tests/catch.hpp"

namespace tilestep::inspect {
namespace {

constexpr std::uintptr_t kFrame = 1 << 20;

/// Places of a made-up kernel, in the order in which a compiler would lay them out.
constexpr const char kKernel[] = "0123456789";
Code at(int place) {
  return &kKernel[place];
}

/// Threads of a block that go through places "0 1 2": a letter before a digit is "?" where the thread compares there, "a"
/// for an access of 4 bytes, "d" for a place in a function that it calls.
class Threads {
 public:
  explicit Threads(int count) { lockstep_.begin_block(3, count); }
  void run(int thread, std::string_view places) {
    for (const char each : places) {
      if (each == '?') {
        lockstep_.compare(thread, last_);
      } else if (each == 'a') {
        lockstep_.access(thread, 7, Space::global, Use::read,
                         1024 + 4u * static_cast<unsigned>(thread), 4);
      } else if (each == 'd' || each == 'u') {
        frame_ = each == 'd' ? kFrame - 64 : kFrame;
      } else {
        last_ = at(each - '0');
        lockstep_.step(thread, last_, frame_);
      }
    }
  }
  Lockstep& operator*() { return lockstep_; }

 private:
  Lockstep lockstep_;
  Code last_ = nullptr;
  std::uintptr_t frame_ = kFrame;
};

TEST_CASE(
    "inspect: lanes meet again behind a branch, and go apart in each turn of a loop by itself",
    "[simt]") {
  Threads threads(32);
  // A loop, whose condition (5) g++ puts below its body: there a branch (2) leads to 3 or 4. Even lanes take 3, then 4, odd
  // ones 4, then 3; lane 0 leaves after one turn.
  for (int thread = 0; thread < 32; ++thread) {
    threads.run(thread, thread == 0       ? "05?2?a35?6"
                        : thread % 2 == 0 ? "05?2?a35?2?a45?6"
                                          : "05?2?a45?2?a35?6");
  }
  (*threads).end_block();
  const LaunchTrace trace = (*threads).take();
  const auto block = [&](int place) {
    const Block& of = trace.blocks.at(at(place));
    return std::pair(of.warps, of.threads);
  };
  using Counts = std::pair<std::uint64_t, std::uint64_t>;
  CHECK(block(0) == Counts(1, 32));
  CHECK(block(5) == Counts(3, 32 + 32 + 31));
  CHECK(block(2) == Counts(2, 32 + 31));
  CHECK(block(3) == Counts(2, 16 + 16));
  CHECK(block(4) == Counts(2, 16 + 15));
  CHECK(block(6) == Counts(1, 32));
  CHECK(trace.branches.at(at(5)).warps == 3);
  CHECK(trace.branches.at(at(5)).split == 1);
  CHECK(trace.branches.at(at(2)).warps == 2);
  CHECK(trace.branches.at(at(2)).split == 2);
  CHECK(trace.warp.block == 3);
  CHECK(trace.warp.splits == 3);
  CHECK(trace.warp.times.at(at(3)).idle() == 2 * 32 - 32);
  const Traffic& traffic = trace.traffic.at(7);
  CHECK(traffic.requests == 2);
  CHECK(traffic.lanes == 32 + 31);
  CHECK(traffic.moved == 8);
}

TEST_CASE("inspect: lanes in a call go first, wherever its code lies", "[simt]") {
  Threads threads(32);
  for (int thread = 0; thread < 32; ++thread) threads.run(thread, thread < 8 ? "0?1d9u2" : "0?2");
  (*threads).end_block();
  const LaunchTrace trace = (*threads).take();
  CHECK(trace.blocks.at(at(9)).threads == 8);
  CHECK(trace.blocks.at(at(2)).warps == 1);
  CHECK(trace.blocks.at(at(2)).threads == 32);
}

TEST_CASE("inspect: a barrier ends requests; a comparison that is no branch is none", "[simt]") {
  Threads threads(64);
  for (int thread = 0; thread < 64; ++thread) threads.run(thread, "0?1aa");
  (*threads).close();
  for (int thread = 0; thread < 64; ++thread) threads.run(thread, "a2");
  (*threads).end_block();
  const LaunchTrace trace = (*threads).take();
  CHECK(trace.branches.empty());
  CHECK(trace.traffic.at(7).requests == 2 * 3);
  CHECK(trace.traffic.at(7).worst_block == 3);
  CHECK(trace.blocks.at(at(1)).warps == 2);  // not once more behind the barrier
  CHECK((*threads).take().traffic.empty());
}

TEST_CASE("inspect: a long loop is run warp by warp, and a warp that is too long is cut",
          "[simt]") {
  Threads threads(64);
  const std::string turns(Lockstep::kMostOpen / 64 + 1, '1');
  for (int thread = 0; thread < 64; ++thread) threads.run(thread, turns);
  (*threads).end_block();
  LaunchTrace trace = (*threads).take();
  CHECK(trace.left_out == 0);
  CHECK(trace.blocks.at(at(1)).threads == 64 * turns.size());
  CHECK(trace.blocks.at(at(1)).warps == 2 * turns.size());
  Threads one(32);
  one.run(0, std::string(Lockstep::kMostOpen + 10, '1'));
  (*one).end_block();
  trace = (*one).take();
  CHECK(trace.left_out == 10);
  CHECK(trace.blocks.at(at(1)).threads == Lockstep::kMostOpen);
}

TEST_CASE("inspect: operations are those of each basic block", "[simt]") {
  const auto all = read_operations(R"(
0000000000001180 <_Z3addPf>:
    1180:	push   %rbp
    1181:	addss  %xmm0,%xmm1
    1185:	call   1060 <tilestep_steps@plt>
    118a:	mulss  %xmm0,%xmm1
    118e:	addss  0x0(%rip),%xmm1        # 1200 <x>
    1190:	call   1070 <fmaf@plt>
    1195:	call   1060 <tilestep_steps@plt>
    119a:	divsd  %xmm0,%xmm1
    119e:	sqrtss %xmm0,%xmm1
    11a2:	movss  %xmm0,%xmm1

00000000000011b0 <_Z4restv>:
    11b0:	addss  %xmm0,%xmm1
)");
  REQUIRE(all.size() == 2);
  CHECK(all.at(0x118a).fp32 == 4);
  CHECK(all.at(0x118a).fp64 == 0);
  CHECK(all.at(0x119a).fp32 == 1);
  CHECK(all.at(0x119a).fp64 == 1);
  CHECK(read_operations("").empty());
}

}  // namespace
}  // namespace tilestep::inspect

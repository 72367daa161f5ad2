// The backward pass for Hopper against double, over masks and lengths that no tile divides, whatever the order of
// threads and whenever the hardware beside them does its work; each wait, fence and release that can be left out; and
// what an explained kernel notes.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/simt/backends.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/attention/attention_backward/hopper_testing.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::attention_backward;
using namespace tilestep::attention_backward::hopper;
using flash_attention_3::check_refusals, flash_attention_3::device_of, flash_attention_3::Heads,
    flash_attention_3::kHeads, flash_attention_3::kMasks, flash_attention_3::kOrders,
    flash_attention_3::Order, flash_attention_3::said_of;

namespace {

constexpr int kLengths[] = {1, 17, 64, 65, 127, 129, 200, 257};

Problem problem_of(int head_dim, Mask mask, int length, Heads heads = {1, 1}, int window = 40) {
  return {{.mask = mask, .length = length, .window = std::min(window, length)},
          heads.heads,
          heads.kv_heads,
          head_dim};
}

}  // namespace

TEST_CASE("flash-3 backward: the tiles of queries that are met are the mask's own",
          "[attention_backward]") {
  for (const Mask mask : kMasks) {
    for (const int length : kLengths) {
      for (const int window : {0, 1, 40, 64, 257}) {
        const MaskRule rule{.mask = mask, .length = length, .window = std::min(window, length)};
        bool same = true;
        for (const int height : {64, 128}) {
          for (int k0 = 0; k0 < length; k0 += kKeys) {
            const int k1 = std::min(k0 + kKeys, length) - 1;
            const SeenTiles seen = tiles_seen(rule, k0, k1, height);
            for (int tile = 0; tile * height < length; ++tile) {
              const int q0 = tile * height;
              const int q1 = q0 + height - 1;
              const TileKind kind = rule.kind(q0, std::min(q1, length - 1), k0, k1, NoDocuments{});
              const bool is_seen = tile >= seen.first && tile <= seen.last;
              same = same && is_seen == (kind != TileKind::skipped);
              const bool whole = k0 + kKeys <= length;
              same = same && all_seen(rule, q0, q1, k0, k0 + kKeys - 1) ==
                                 (whole && kind == TileKind::full);
            }
          }
        }
        CAPTURE(static_cast<int>(mask), length, window);
        CHECK(same);
      }
    }
  }
}

TEST_CASE("flash-3 backward: every tile of keys comes once, of few heads together the first first",
          "[attention_backward]") {
  for (const int together : {1, 2, 4, 6}) {
    const TileOrder order{13, 6, together};
    std::vector<int> seen(static_cast<std::size_t>(order.count()), 0);
    bool in_order = true;
    KeyTile before{0, 0};
    for (int number = 0; number < order.count(); ++number) {
      const KeyTile place = order.place(number);
      ++seen[static_cast<std::size_t>(place.head * order.tiles + place.tile)];
      const bool same_heads = place.head / together == before.head / together;
      in_order = in_order && (same_heads ? place.tile >= before.tile : place.tile == 0);
      before = place;
    }
    CHECK(seen == std::vector<int>(seen.size(), 1));
    CHECK(in_order);
  }
}

TEST_CASE("flash-3 backward: the timed kernels equal double", "[attention_backward]") {
  const auto device = device_of();
  tests::Part part("flash-3 backward timed", 2);
  int turn = 0;
  for (const int length : kLengths) {
    for (int i = 0; i < (length < 127 ? 3 : 2); ++i, ++turn) {
      if (part.skips()) continue;
      const Heads heads = kHeads[length < 128 ? turn % 4 : turn % 2];
      const int window = std::array{40, 0, 100, 1}[static_cast<std::size_t>(turn / 3 % 4)];
      const Problem p =
          problem_of(turn % 2 == 0 ? 128 : 64, kMasks[turn % 3], length, heads, window);
      INFO(said_of(p));
      const Given in(p);
      const Exact exact = exact_answer(p, in);
      CHECK(timed_outcome(*device, p, in, exact).compared(exact) == "");
    }
  }
}

TEST_CASE("flash-3 backward: other numbers of stages give the same", "[attention_backward]") {
  const auto device = device_of();
  const Problem p = problem_of(128, Mask::causal, 200, {2, 1});
  const Given in(p);
  const Exact exact = exact_answer(p, in);
  using SIMT_BACKEND::Tile;
  CHECK(tiled_outcome<Tile<128, 64, 2, 1, false>>(*device, p, in, exact).compared(exact) == "");
  CHECK(tiled_outcome<Tile<128, 64, 3, 2, false>>(*device, p, in, exact).compared(exact) == "");
}

TEST_CASE("flash-3 backward: the order of threads and of what the hardware does changes nothing",
          "[attention_backward]") {
  tests::Part part("flash-3 backward in other orders", 2);
  for (const int head_dim : {64, 128}) {
    const Problem p = problem_of(head_dim, Mask::causal, 200, {2, 1});
    const Given in(p);
    const Exact exact = exact_answer(p, in);
    for (const Order& order : kOrders) {
      if (part.skips()) continue;
      INFO(said_of(p) << ", completion " << static_cast<int>(order.completion));
      CHECK(timed_outcome(*device_of(order, 2), p, in, exact).compared(exact) == "");
    }
  }
}

TEST_CASE("flash-3 backward: what it does not take is refused with what it does",
          "[attention_backward]") {
  const auto device = device_of();
  check_refusals(problem_of(64, Mask::causal, 4), [&](const Problem& p) {
    const Given in(p);
    Exact forward;  // of numbers that do not matter
    forward.o.assign(in.values.q.size(), 0);
    forward.lse.assign(numeric::elements_of(p.heads, p.rule.length), 0);
    timed_outcome(*device, p, in, forward);
  });
}

// ---- faults ---------------------------------------------------------------------------------------

namespace {

/// What the emulator says of a fault, in the first order in which it says something; else whether numbers are wrong.
std::string named(const Problem& p, const Given& in, const Exact& exact, Fault fault) {
  std::string wrong;
  for (const Order& order : kOrders) {
    try {
      const HopperOutcome out = explained_outcome(*device_of(order), p, in, exact, fault);
      if (out.compared(exact) != "") wrong = "backward_hopper: wrong " + out.compared(exact);
    } catch (const Error& error) {
      return error.what();
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("flash-3 backward: each wait, fence and release that is left out is named",
          "[attention_backward]") {
  struct Case {
    Fault fault;
    const char* says;
  };
  constexpr Case kCases[] = {{Fault::no_publish, "which TMA was not told of"},
                             {Fault::no_meeting, "__syncthreads() is missing"},
                             {Fault::skip_key_wait, "multiplies K"},
                             {Fault::skip_value_wait, "multiplies V"},
                             {Fault::skip_query_wait, "multiplies Q"},
                             {Fault::skip_gradient_wait, "multiplies dO"},
                             {Fault::skip_empty_query, "Q"},
                             {Fault::skip_empty_gradient, "dO"},
                             {Fault::early_query_release, "Q"},
                             {Fault::early_gradient_release, "dO"},
                             {Fault::no_query_release, "empty Q"},
                             {Fault::no_gradient_release, "empty dO"},
                             {Fault::no_score_wait, "wgmma"},
                             {Fault::no_weight_wait, "wgmma"},
                             {Fault::no_query_sum_wait, "wrong dQ"},
                             {Fault::no_ds_fence, "publish_to_async_proxy"},
                             {Fault::no_ds_meeting, "dS"},
                             {Fault::no_dq_fence, "publish_to_async_proxy"},
                             {Fault::no_dq_full_wait, "dQ"},
                             {Fault::no_dq_full, "waits in line"},
                             {Fault::no_dq_free_wait, "dQ"},
                             {Fault::no_dq_free, "waits in line"},
                             {Fault::no_add_wait, "dQ"},
                             {Fault::no_key_meeting, "K"},
                             {Fault::no_store_fence, "publish_to_async_proxy"},
                             {Fault::no_store_meeting, "stores"},
                             {Fault::no_store_wait, "store_wait"}};
  static_assert(std::size(kCases) == static_cast<std::size_t>(Fault::last));
  // Six tiles of queries for each block: stages and tiles of dS come back.
  const Problem p = problem_of(64, Mask::none, 257, {2, 1});
  const Given in(p);
  const Exact exact = exact_answer(p, in);
  CHECK(named(p, in, exact, Fault::none) == "");
  tests::Part part("what the backward pass leaves out", 8);
  for (const auto& [fault, says] : kCases) {
    if (part.skips()) continue;
    CAPTURE(static_cast<int>(fault));
    const std::string said = named(p, in, exact, fault);
    CHECK_THAT(said, Catch::Contains("backward_hopper: ") && Catch::Contains(says));
  }
}

// ---- what is noted --------------------------------------------------------------------------------

TEST_CASE("flash-3 backward: clocks say what happens after what", "[attention_backward]") {
  const auto device = device_of();
  const Problem p = problem_of(128, Mask::causal, 257);
  const Given in(p);
  const Exact exact = exact_answer(p, in);
  const HopperOutcome out = explained_outcome(*device, p, in, exact, Fault::none, 1);
  CHECK(out.compared(exact) == "");
  // The second tile of keys has queries from 128 on: three of five tiles.
  const auto in_order = [&](const std::vector<int>& sites) {
    bool good = true;
    for (int number = 0; number < 3; ++number) {
      for (std::size_t i = 0; i < sites.size(); ++i) {
        const long long now = out.clock(sites[i], number);
        good = good && now >= 0 && (i == 0 || now >= out.clock(sites[i - 1], number));
      }
    }
    return good;
  };
  for (int consumer = 0; consumer < kConsumers; ++consumer) {
    const auto at = [&](Site site) { return site + consumer * kConsumerSites; };
    CHECK(in_order({kWaitsEmptyQ, kCopiesQ, at(kIssuesS), at(kIssuesDp), at(kDoneS), at(kBeginsP),
                    at(kIssuesDv), at(kDoneDp), at(kStoresDs), at(kWaitsDs), at(kIssuesDq),
                    at(kDoneDq), at(kStoresDq), at(kAddsDq), at(kAddedDq)}));
    CHECK(in_order({kWaitsEmptyDo, kCopiesDo, at(kIssuesDp)}));
    CHECK(in_order({at(kIssuesDq), at(kIssuesDk), at(kDoneDq)}));
    CHECK(out.clock(at(kIssuesS), 3) == -1);
    // dP is under way while S is waited for, dK while dQ leaves, and so on.
    CHECK(out.clock(at(kIssuesDp), 1) < out.clock(at(kDoneS), 1));
    CHECK(out.clock(at(kIssuesDv), 1) < out.clock(at(kDoneDp), 1));
    CHECK(out.clock(at(kIssuesDk), 1) < out.clock(at(kDoneDq), 1));
    // dK of a tile reads Q until S of the next one is under way.
    CHECK(out.clock(at(kIssuesS), 2) < out.clock(at(kReleases), 1));
  }
}

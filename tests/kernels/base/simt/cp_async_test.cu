// cp.async under emulation: copies that are there when they have been waited for, and not before.

#include <string>
#include <vector>

#include "kernels/base/simt/tensor_map.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/simt/cp_async_kernels.cu"
#include "tests/kernels/base/simt/hopper_testing.hpp"
#include "tests/kernels/base/simt/testing.hpp"

namespace tilestep::simt {
namespace {

using emulated_backend::CopyFault;

std::string line_of(const std::string& text) {
  return line_in("cp_async_kernels.cu", text);
}

std::vector<float> turned(const EmulationOptions& options, CopyFault fault = CopyFault::none) {
  const auto device = make_emulated_device({}, options);
  const Buffer<float> in(*device, counting<float>(512));
  Buffer<float> out(*device, 512);
  launch(*device, {.name = "turned", .grid = {3}, .block = {64}, .shared_bytes = 512 * 4},
         emulated_backend::turned, global(in.span(), "in"), global(out.span(), "out"), fault);
  return out.download();
}

TEST_CASE("simt: cp.async copies in groups", "[simt]") {
  std::vector<float> expected;
  for (int i = 0; i < 512; ++i) expected.push_back(static_cast<float>(i < 256 ? 255 - i : 767 - i));
  int changed = 0;
  for (const EmulationOptions& options : all_completions()) {
    CHECK(turned(options) == expected);
    changed += turned(options, CopyFault::no_meeting) != expected ? 1 : 0;
    if (options.completion != Completion::latest) continue;
    for (const CopyFault fault : {CopyFault::no_wait, CopyFault::no_commit, CopyFault::wait_one}) {
      const std::vector<float> got = turned(options, fault);
      CHECK(got != expected);
      // The group before the newest is there.
      const bool first = std::equal(got.begin(), got.begin() + 256, expected.begin());
      CHECK(first == (fault == CopyFault::wait_one));
    }
  }
  CHECK(changed > 9);
}

std::vector<float> turned_staged(const EmulationOptions& options,
                                 CopyFault fault = CopyFault::none) {
  const auto device = make_emulated_device({}, options);
  const Buffer<float> in(*device, counting<float>(256));
  Buffer<float> out(*device, 256);
  launch(*device, {.name = "turned_staged", .block = {64}, .shared_bytes = 256 * 4},
         emulated_backend::turned_staged, global(in.span(), "in"), global(out.span(), "out"), 200,
         fault);
  return out.download();
}

TEST_CASE("simt: a cp.async that is not waited for is named where it is watched", "[simt]") {
  for (const EmulationOptions& options : all_completions()) {
    const std::vector<float> got = turned_staged(options);
    for (int i = 0; i < 256; ++i) {
      CHECK(got[static_cast<std::size_t>(i)] == static_cast<float>(255 - i < 200 ? 255 - i : 0));
    }
  }
  const auto with = [](CopyFault fault) {
    return [fault](const EmulationOptions& options) { turned_staged(options, fault); };
  };
  const std::string read = line_of("out[i] = watched[255 - i]");
  const std::string copy = line_of("cp_async4(tile + i");
  names(with(CopyFault::no_wait), {"turned_staged: thread (", "reads byte ", read,
                                   "the cp_async of " + copy, "no cp_async_wait of that thread"});
  names(with(CopyFault::no_commit), {"reads byte ", copy, "no cp_async_wait of that thread"});
  names(with(CopyFault::wait_one), {"reads byte ", copy, "no cp_async_wait of that thread"});
  int unmet = 0;
  for (const EmulationOptions& options : all_completions()) {
    const std::string said = outcome_of([&] { turned_staged(options, CopyFault::no_meeting); });
    unmet += missing_in(said, {"reads byte ", "may still be under way"}) == "" ? 1 : 0;
  }
  // Who reads before the others have begun meets no copy of theirs, and then reads what nobody has written;
  // a thread that comes later is named.
  CHECK(unmet == static_cast<int>(all_completions().size()));
}

std::vector<float> copied_store(const EmulationOptions& options,
                                CopyFault fault = CopyFault::none) {
  const auto device = make_emulated_device({}, options);
  const Buffer<float> in(*device, counting<float>(64));
  Buffer<float> matrix(*device, 64);
  const auto map =
      tensor_map(matrix.span(), {.rows = 8, .columns = 8, .box_rows = 8, .box_columns = 8});
  launch(*device, {.name = "copied_store", .block = {32}, .shared_bytes = 256 + 1024},
         emulated_backend::copied_store, global(in.span(), "in"), map, fault);
  return matrix.download();
}

TEST_CASE("simt: what cp.async brought must be fenced for TMA", "[simt]") {
  for (const EmulationOptions& options : all_completions()) {
    CHECK(copied_store(options) == counting<float>(64));
  }
  const auto with = [](CopyFault fault) {
    return [fault](const EmulationOptions& options) { copied_store(options, fault); };
  };
  const std::string store = line_of("hopper::store(map");
  for (const CopyFault fault : {CopyFault::no_fence, CopyFault::early_fence}) {
    names(with(fault),
          {"stores byte ", store, "by cp_async", "publish_to_async_proxy() after that"});
  }
  names(with(CopyFault::no_wait), {"stores byte ", store, "its cp_async_wait, and"});
}

}  // namespace
}  // namespace tilestep::simt

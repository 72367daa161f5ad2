// Hopper's words under emulation: right programs give right numbers whenever the hardware beside the
// threads does its work, and what a wrong one leaves out is named.

#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/base/simt/tensor_map.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/simt/hopper_kernels.cu"
#include "tests/kernels/base/simt/hopper_testing.hpp"
#include "tests/kernels/base/simt/testing.hpp"

namespace tilestep::simt {
namespace {

using emulated_backend::Fault;
using hopper::Format;

std::string line_of(const std::string& text) {
  return line_in("hopper_kernels.cu", text);
}

// ---- one copy -----------------------------------------------------------------------------------

constexpr int kRows = 11;
constexpr int kColumns = 20;

std::vector<float> loaded(const EmulationOptions& options, int column, int row, int swizzle,
                          Fault fault = Fault::none) {
  const auto device = make_emulated_device({}, options);
  const Buffer<float> matrix(*device, counting<float>(kRows * kColumns));
  const int box_columns = swizzle == 0 ? 12 : swizzle / 4;
  const BoxedMatrix boxes{.rows = kRows,
                          .columns = kColumns,
                          .box_rows = 8,
                          .box_columns = box_columns,
                          .swizzle = swizzle};
  Buffer<float> out(*device, static_cast<std::size_t>(8 * box_columns));
  out.fill(0xFF);
  launch(*device, {.name = "load_box", .block = {32}, .shared_bytes = 8 * 128 + 8 + 1024},
         emulated_backend::load_box, tensor_map(matrix.span(), boxes), global(out.span(), "out"),
         column, row, 8, box_columns, swizzle, fault);
  return out.download();
}

TEST_CASE("hopper: a box is copied with any swizzle, and zeros for what lies outside", "[hopper]") {
  for (const EmulationOptions& options : all_completions()) {
    for (const int swizzle : {0, 32, 64, 128}) {
      for (const auto& [column, row] : {std::pair{0, 0}, {4, 2}, {16, 6}, {-4, -2}, {40, 0}}) {
        const std::vector<float> got = loaded(options, column, row, swizzle);
        const int box_columns = static_cast<int>(got.size()) / 8;
        bool same = true;
        for (int i = 0; i < static_cast<int>(got.size()); ++i) {
          const int x = column + i % box_columns;
          const int y = row + i / box_columns;
          const bool inside = x >= 0 && x < kColumns && y >= 0 && y < kRows;
          const float expected = inside ? static_cast<float>(y * kColumns + x) : 0.0f;
          same = same && got[static_cast<std::size_t>(i)] == expected;
        }
        CHECK(same);
      }
    }
  }
}

TEST_CASE("hopper: swizzles keep a tile's chunks apart", "[hopper]") {
  for (const int swizzle : {32, 64, 128}) {
    std::vector<int> hits(64, 0);
    for (unsigned address = 0; address < 1024; address += 16) {
      ++hits[hopper::swizzled_address(address, swizzle) / 16];
    }
    CHECK(hits == std::vector<int>(64, 1));
  }
  CHECK(hopper::swizzled_address(128 + 16, 128) == 128);  // row 1: chunks 0 and 1 change places
  CHECK(hopper::swizzled_address(7 * 128 + 112, 128) == 7 * 128);
  CHECK(hopper::swizzled_address(64 + 16, 64) == 64 + 16);  // two rows of 64 bytes are one of 128
  CHECK(hopper::swizzled_address(128 + 16, 64) == 128);
}

TEST_CASE("hopper: what a copy lacks is named with block, place and line", "[hopper]") {
  const auto with = [](Fault fault) {
    return [fault](const EmulationOptions& options) { loaded(options, 0, 0, 128, fault); };
  };
  const std::string fetch = line_of("hopper::fetch(map");
  const std::string read = line_of("out[i] = staged");
  // A thread may read before the copy is started, or after: either is one too early.
  names(with(Fault::full_wait),
        {"load_box: thread (", "of block (0,0,0) ", read, fetch, "may still"});
  names(with(Fault::half_waits), {read, fetch, "may still"});
  names(with(Fault::few_bytes), {"reads byte ", read, fetch, "may still be under way"});
  names(with(Fault::many_bytes),
        {"waits in ", "for the mbarrier at byte ", "0 of 1 arrivals and 16 bytes"});
  names(with(Fault::no_publish), {"which TMA was not told of", fetch});
  names(with(Fault::no_use),
        {"load_box: block (0,0,0) ends while the copy to byte ", fetch, "no thread has waited"});
  CHECK(missing_in(outcome_of([] { loaded({.os_threads = 1}, 0, 0, 128, Fault::no_meeting); }),
                   {"nothing after its barrier_init makes it visible to this thread"}) == "");
}

TEST_CASE("hopper: a tensor map that TMA does not take is refused", "[hopper]") {
  const auto device = make_emulated();
  const Buffer<float> matrix(*device, counting<float>(kRows * kColumns));
  const auto refused = [&](const BoxedMatrix& boxes) {
    return outcome_of([&] { tensor_map(matrix.span(), boxes); });
  };
  const BoxedMatrix good{.rows = kRows, .columns = kColumns, .box_rows = 8, .box_columns = 8};
  CHECK(refused(good) == "no error");
  BoxedMatrix bad = good;
  bad.columns = 18;
  CHECK(missing_in(refused(bad), {"rows are 72 bytes apart", "multiples of 16"}) == "");
  bad = good;
  bad.box_rows = 257;
  CHECK(missing_in(refused(bad), {"257 x 8", "1-256"}) == "");
  bad = good;
  bad.box_columns = 6;
  CHECK(missing_in(refused(bad), {"24 bytes", "multiples of 16"}) == "");
  bad = good;
  bad.box_columns = 16;
  bad.swizzle = 32;
  CHECK(missing_in(refused(bad), {"64 bytes", "up to the 32 of the swizzle"}) == "");
  bad = good;
  bad.rows = 12;
  CHECK(missing_in(refused(bad), {"220 elements"}) == "");
}

// ---- stores -------------------------------------------------------------------------------------

std::vector<float> stored(const EmulationOptions& options, Fault fault = Fault::none) {
  const auto device = make_emulated_device({}, options);
  Buffer<float> matrix(*device, 16 * 8);
  matrix.fill(0);
  const BoxedMatrix boxes{.rows = 14, .columns = 8, .box_rows = 8, .box_columns = 8};
  launch(*device, {.name = "store_boxes", .block = {32}, .shared_bytes = 256 + 1024},
         emulated_backend::store_boxes, tensor_map(matrix.span(), boxes), 0, fault);
  return matrix.download();
}

TEST_CASE("hopper: a box is stored, but for what lies outside", "[hopper]") {
  std::vector<float> expected = counting<float>(128);
  std::fill(expected.begin() + 14 * 8, expected.end(), 0.0f);
  for (const EmulationOptions& options : all_completions()) CHECK(stored(options) == expected);
}

TEST_CASE("hopper: a box of one matrix of several ends where the next one begins", "[hopper]") {
  constexpr int kMatrixRows = 6;
  constexpr int kMatrices = 3;
  constexpr std::size_t kNumbers = kMatrices * kMatrixRows * 8;
  for (const EmulationOptions& options : all_completions()) {
    for (const int matrix : {-1, 0, 1, 2, 3}) {
      const auto device = make_emulated_device({}, options);
      const Buffer<float> from(*device, counting<float>(kNumbers));
      // Two rows further out than the matrix has, so that what comes from there would be seen.
      const std::vector<float> before(kNumbers + 16, -1.0f);
      Buffer<float> to(*device, before);
      BoxedMatrix boxes{.rows = kMatrixRows, .columns = 8, .box_rows = 8, .box_columns = 8};
      boxes.matrices = kMatrices;
      launch(*device, {.name = "move_box", .block = {32}, .shared_bytes = 256 + 8 + 1024},
             emulated_backend::move_box, tensor_map(from.span(), boxes),
             tensor_map(to.span(), boxes), 4, matrix);
      std::vector<float> expected = before;
      if (matrix >= 0 && matrix < kMatrices) {
        const int first = (matrix * kMatrixRows + 4) * 8;
        for (int i = first; i < first + 2 * 8; ++i) {
          expected[static_cast<std::size_t>(i)] = static_cast<float>(i);
        }
      }
      CHECK(to.download() == expected);
    }
  }
  const BoxedMatrix all{
      .rows = 4, .columns = 8, .box_rows = 8, .box_columns = 8, .matrices = kMatrices};
  const BoxedMatrix one{.rows = 12, .columns = 8, .box_rows = 8, .box_columns = 8};
  const auto device = make_emulated();
  Buffer<float> numbers(*device, counting<float>(96));
  const auto moved = [&](const BoxedMatrix& boxes) {
    const auto map = tensor_map(numbers.span(), boxes);
    launch(*device, {.name = "move_box", .block = {32}, .shared_bytes = 256 + 8 + 1024},
           emulated_backend::move_box, map, map, 0, 0);
  };
  const auto loaded_without = [&] {
    Buffer<float> out(*device, 64);
    launch(*device, {.name = "load_box", .block = {32}, .shared_bytes = 8 * 128 + 8 + 1024},
           emulated_backend::load_box, tensor_map(numbers.span(), all), global(out.span(), "out"),
           0, 0, 8, 8, 0, Fault::none);
  };
  CHECK(outcome_of([&] { moved(all); }) == "no error");
  CHECK(missing_in(outcome_of([&] { moved(one); }), {"move_box", "it has only one"}) == "");
  CHECK(missing_in(outcome_of(loaded_without), {"load_box", "it has several"}) == "");
  BoxedMatrix many = all;
  many.matrices = 4;
  CHECK(missing_in(outcome_of([&] { moved(many); }), {"96 elements"}) == "");
}

TEST_CASE("hopper: what a store lacks is named, and changes numbers", "[hopper]") {
  const auto with = [](Fault fault) {
    return [fault](const EmulationOptions& options) { stored(options, fault); };
  };
  const std::string store = line_of("hopper::store(map");
  const std::string write = line_of("staged[i] = static_cast<float>(box");
  names(with(Fault::no_fence),
        {"stores byte ", store, write, "publish_to_async_proxy() after that"});
  names(with(Fault::no_store_wait), {"store of " + store, "wait"});
  names(with(Fault::no_store_commit), {"store of " + store, "wait"});
  const auto without_meeting = [](ThreadOrder order) {
    return outcome_of([&] { stored({.order = order, .os_threads = 1}, Fault::no_meeting); });
  };
  CHECK(missing_in(without_meeting(ThreadOrder::ascending), {"writes byte ", "may still read"}) ==
        "");
  CHECK(missing_in(without_meeting(ThreadOrder::descending),
                   {"stores byte ", "nothing tells this thread that it is fenced"}) == "");
  const std::vector<float> right = stored({.os_threads = 1});
  CHECK(stored({.os_threads = 1, .report_unsafe = false}) == right);
  CHECK(stored({.os_threads = 1, .report_unsafe = false}, Fault::no_fence) != right);
}

// ---- a ring of stages ---------------------------------------------------------------------------

std::uint32_t bits_of(Format format, int value) {
  const numeric::FloatSpec spec = format == Format::bf16   ? numeric::kBf16
                                  : format == Format::fp16 ? numeric::kFp16
                                                           : numeric::kE4m3;
  return numeric::encode(spec, value);
}

/// What a ring multiplies: small integers, so that every sum is exact.
struct RingProblem {
  int n, k, tiles;

  int a(int row, int i) const { return (row * 7 + i * 5) % 9 - 4; }
  int b(int row, int i) const { return (row * 3 + i * 11) % 8 - 3; }
  double c(int row, int column) const {
    double sum = 0;
    for (int i = 0; i < k; ++i) sum += static_cast<double>(a(row, i)) * b(column, i);
    return sum;
  }
};

template <Format kFormat, int kN, int kSwizzle>
std::vector<float> ring_product(const EmulationOptions& options, const RingProblem& problem,
                                Fault fault = Fault::none, unsigned cluster = 1) {
  using R = emulated_backend::Ring<kFormat, kN, kSwizzle>;
  using Element = std::conditional_t<kFormat == Format::e4m3, std::uint8_t, std::uint16_t>;
  const auto device = make_emulated_device({}, options);
  const auto matrix = [&](int rows, auto value) {
    std::vector<Element> bits;
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < problem.k; ++i) {
        bits.push_back(static_cast<Element>(bits_of(kFormat, value(row, i))));
      }
    }
    return Buffer<Element>(*device, bits);
  };
  const auto a = matrix(64, [&](int row, int i) { return problem.a(row, i); });
  const auto b = matrix(problem.n, [&](int row, int i) { return problem.b(row, i); });
  const auto map = [&](const Buffer<Element>& array, int rows, int box_rows) {
    return tensor_map(array.span(), {.rows = rows,
                                     .columns = problem.k,
                                     .box_rows = box_rows,
                                     .box_columns = R::kBoxBytes / R::kElementBytes,
                                     .swizzle = kSwizzle});
  };
  Buffer<float> c(*device, 64 * kN);
  c.fill(0xFF);
  launch(*device,
         {.name = "ring_gemm",
          .grid = {cluster},
          .block = {R::kThreads},
          .shared_bytes = R::kSharedBytes + 1024,
          .cluster = cluster},
         emulated_backend::ring_gemm<kFormat, kN, kSwizzle>, map(a, 64, 64), map(b, problem.n, kN),
         global(c.span(), "c"), problem.tiles, fault);
  return c.download();
}

/// The right product; rows of B that are not there count as 0.
std::vector<float> reference(const RingProblem& problem, int n) {
  std::vector<float> c;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < n; ++column) {
      c.push_back(column < problem.n ? static_cast<float>(problem.c(row, column)) : 0.0f);
    }
  }
  return c;
}

/// Seven tiles and a bit less, or one, and less rows of B than the box has.
template <Format kFormat, int kN, int kSwizzle>
void check_ring() {
  using R = emulated_backend::Ring<kFormat, kN, kSwizzle>;
  constexpr int kEight = 16 / R::kElementBytes;  // rows are multiples of 16 bytes
  for (const RingProblem& problem :
       {RingProblem{kN, 7 * R::kDepth, 7}, RingProblem{kN - 5, 7 * R::kDepth - kEight, 7},
        RingProblem{3, kEight, 1}}) {
    const std::vector<float> expected = reference(problem, kN);
    for (const EmulationOptions& options : all_completions()) {
      CHECK(ring_product<kFormat, kN, kSwizzle>(options, problem) == expected);
    }
  }
}

TEST_CASE("hopper: a ring of stages multiplies, in all formats and swizzles", "[hopper]") {
  check_ring<Format::bf16, 32, 0>();
  check_ring<Format::bf16, 32, 32>();
  check_ring<Format::bf16, 64, 64>();
  check_ring<Format::bf16, 64, 128>();
  check_ring<Format::fp16, 32, 64>();
  check_ring<Format::fp16, 128, 128>();
  check_ring<Format::e4m3, 32, 0>();
  check_ring<Format::e4m3, 32, 32>();
  check_ring<Format::e4m3, 64, 128>();
}

const RingProblem kSeven{32, 7 * 32, 7};

std::vector<float> small_ring(const EmulationOptions& options, Fault fault) {
  return ring_product<Format::bf16, 32, 64>(options, kSeven, fault);
}

TEST_CASE("hopper: the blocks of a cluster multiply each for itself", "[hopper]") {
  const std::vector<float> right = reference(kSeven, 32);
  for (const EmulationOptions& options : all_completions()) {
    CHECK(ring_product<Format::bf16, 32, 64>(options, kSeven, Fault::none, 4) == right);
  }
  names(
      [](const EmulationOptions& options) {
        ring_product<Format::bf16, 32, 64>(options, kSeven, Fault::early_release, 2);
      },
      {"thread (128,0,0) of block (", "starts a copy to stage 0, byte 0 of block ",
       "may still read"});
}

TEST_CASE("hopper: the log has every product and every byte, with its block", "[hopper]") {
  using R = emulated_backend::Ring<Format::bf16, 32, 64>;
  for (EmulationOptions options : all_completions()) {
    std::vector<AsyncEvent> log;
    options.log = &log;
    ring_product<Format::bf16, 32, 64>(options, kSeven, Fault::none, 2);
    for (const std::uint64_t block : {0, 1}) {
      long long bytes = 0;
      long long products = 0;
      long long depth = 0;
      bool in_order = true;
      for (const AsyncEvent& event : log) {
        if (event.block != block) continue;
        if (event.kind == AsyncEvent::Kind::landed) {
          bytes += event.bytes;
          in_order = in_order && event.thread == 128 && event.source_block == block;
        } else if (event.kind == AsyncEvent::Kind::product_done) {
          in_order = in_order && event.n == 32 && event.product == products && event.depth > depth;
          depth = event.depth;
          ++products;
        }
      }
      CHECK(in_order);
      CHECK(bytes == 7 * R::kStageBytes);
      CHECK(products == 7 * 2);
    }
  }
}

TEST_CASE("hopper: every wait, fence and release of a ring that is missing is named", "[hopper]") {
  const auto with = [](Fault fault) {
    return [fault](const EmulationOptions& options) { small_ring(options, fault); };
  };
  const std::string multiply = line_of("hopper::wgmma<kFormat, kN>(sums");
  const std::string fetch_a = line_of("hopper::fetch(a, ring.a");
  const std::string wait = line_of("if (waits) hopper::wait_for");
  names(with(Fault::full_wait), {"ring_gemm: thread (", "of block (0,0,0) ", " stage 0, byte 0 in ",
                                 multiply, fetch_a, "may still"});
  names(with(Fault::half_waits), {" stage 0, byte 0 in ", multiply, fetch_a, "may still"});
  names(with(Fault::empty_wait),
        {"thread (128,0,0) of block (0,0,0) starts a copy to stage 0", fetch_a});
  names(with(Fault::early_release), {"thread (128,0,0)", "starts a copy to stage 0, byte 0",
                                     fetch_a, multiply, "may still read"});
  names(with(Fault::few_bytes), {"multiplies stage 0", multiply, "may still be under way"});
  names(with(Fault::many_bytes), {"waits in " + wait, "mbarrier full 0", "16 bytes"});
  names(with(Fault::no_begin), {"reaches wgmma in " + multiply, "without wgmma_begin()"});
  names(with(Fault::no_commit), {multiply, "wait"});
  names(
      [](const EmulationOptions& options) {
        ring_product<Format::bf16, 32, 64>(options, {32, 32, 1}, Fault::no_commit);
      },
      {"ends without wgmma_wait for the wgmma of " + multiply +
       ", which no wgmma_commit has closed"});
  names(with(Fault::no_wait), {"ends without wgmma_wait for the wgmma of " + multiply});
  names(with(Fault::touched_sums), {"writes accumulators of a wgmma before it has waited for it"});
  names(with(Fault::no_publish), {"mbarrier full 0", "publish_barriers() after its barrier_init"});
}

TEST_CASE("hopper: a fault of a ring that is not reported changes its numbers", "[hopper]") {
  const std::vector<float> right = reference(kSeven, 32);
  const auto changes = [&](Completion completion, Fault fault) {
    std::vector<float> got;
    const std::string said = outcome_of([&] {
      got = small_ring({.os_threads = 1, .completion = completion, .report_unsafe = false}, fault);
    });
    return said != "no error" || got != right;
  };
  CHECK(!changes(Completion::earliest, Fault::none));
  CHECK(!changes(Completion::latest, Fault::none));
  CHECK(changes(Completion::latest, Fault::full_wait));
  CHECK(changes(Completion::latest, Fault::few_bytes));
  CHECK(changes(Completion::earliest, Fault::empty_wait));
  CHECK(changes(Completion::early_copies, Fault::early_release));
}

TEST_CASE("hopper: a ring that turns for long is cancelled", "[hopper]") {
  using R = emulated_backend::Ring<Format::bf16, 32, 64>;
  const auto device = make_emulated();
  const Buffer<std::uint16_t> matrix(*device, std::vector<std::uint16_t>(64 * 32));
  const auto map = [&](int rows) {
    return tensor_map(
        matrix.span(),
        {.rows = rows, .columns = 32, .box_rows = rows, .box_columns = 32, .swizzle = 64});
  };
  Buffer<float> c(*device, 64 * 32);
  c.fill(0xFF);
  int asked = 0;
  device->stop_when([&] { return ++asked > 2; });
  constexpr int kTiles = 20000;  // seconds; almost all of them beyond the matrix
  CHECK_THROWS_AS(
      launch(*device,
             {.name = "ring_gemm", .block = {R::kThreads}, .shared_bytes = R::kSharedBytes + 1024},
             emulated_backend::ring_gemm<Format::bf16, 32, 64>, map(64), map(32),
             global(c.span(), "c"), kTiles, Fault::none),
      Cancelled);
  CHECK(std::isnan(c.download()[0]));  // it was not run to its end
}

// ---- the rest -----------------------------------------------------------------------------------

TEST_CASE("hopper: warps meet at a named barrier", "[hopper]") {
  for (const EmulationOptions& options : all_completions()) {
    const auto device = make_emulated_device({}, options);
    Buffer<int> out(*device, 32);
    const auto run = [&](int threads) {
      launch(*device, {.name = "hand_over", .block = {96}, .shared_bytes = 128 + 1024},
             emulated_backend::hand_over, global(out.span(), "out"), threads);
    };
    run(64);
    const std::vector<int> got = out.download();
    for (int lane = 0; lane < 32; ++lane)
      CHECK(got[static_cast<std::size_t>(lane)] == (31 - lane) * 3);
    CHECK(missing_in(outcome_of([&] { run(96); }), {"hand_over", "named barrier 3"}) == "");
    CHECK(missing_in(outcome_of([&] { run(65); }), {"named barrier 3 of 65 threads"}) == "");
  }
}

TEST_CASE("hopper: what a warp wrote is stored by another that met it", "[hopper]") {
  for (const EmulationOptions& options : all_completions()) {
    const auto device = make_emulated_device({}, options);
    Buffer<float> matrix(*device, 64);
    const auto map =
        tensor_map(matrix.span(), {.rows = 8, .columns = 8, .box_rows = 8, .box_columns = 8});
    launch(*device, {.name = "store_of_others", .block = {64}, .shared_bytes = 256 + 1024},
           emulated_backend::store_of_others, map);
    CHECK(matrix.download() == counting<float>(64));
  }
}

TEST_CASE("hopper: stmatrix undoes ldmatrix", "[hopper]") {
  const auto device = make_emulated(ThreadOrder::shuffled, 5);
  Buffer<unsigned> plain(*device, 128);
  Buffer<unsigned> turned(*device, 128);
  Buffer<unsigned> turned_twice(*device, 128);
  std::vector<unsigned> pairs(128);  // element (row, column) of matrix i is its number
  Buffer<unsigned> elements(*device, 128);
  const auto element = [](int matrix, int row, int column) {
    return static_cast<unsigned>(matrix * 64 + row * 8 + column);
  };
  std::vector<unsigned> across(128);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const auto at = static_cast<std::size_t>(lane * 4 + i);
      const int row = lane / 4;
      const int column = lane % 4 * 2;
      pairs[at] = element(i, row, column) | element(i, row, column + 1) << 16;
      across[at] = element(i, column, row) | element(i, column + 1, row) << 16;
    }
  }
  elements.upload(pairs);
  launch(*device, {.name = "round_trip", .block = {32}, .shared_bytes = 512 + 1024},
         emulated_backend::round_trip, global(std::as_const(elements).span(), "in"),
         global(plain.span(), "plain"), global(turned.span(), "turned"),
         global(turned_twice.span(), "turned twice"));
  CHECK(plain.download() == pairs);
  CHECK(turned.download() == across);
  CHECK(turned_twice.download() == pairs);
}

}  // namespace
}  // namespace tilestep::simt

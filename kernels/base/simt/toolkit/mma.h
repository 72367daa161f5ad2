#pragma once

/// \file
/// CUDA's header of this name, for sources under emulation: matrices of a warp in half and
/// __nv_bfloat16 ("C++ Language Extensions", "Warp Matrix Functions"). Products are exact, sums in
/// FP32 from k = 0 on; half accumulators are rounded once, at the end of an mma_sync.
///
/// CUDA leaves open which lane holds which element. Here it is as in the fragments of the PTX
/// instruction mma.m16n8k16: with group = lane / 4 and pair = 2·(lane % 4), a lane holds the
/// elements (group + 8i, pair + 8j) and (…, pair + 8j + 1) of all 8×8 tiles (i, j). Rows and
/// columns are those of A and the accumulator, and those of B's transpose. A fragment of half has
/// 16 elements in CUDA even where there are fewer to hold: it holds them several times.

#include <type_traits>

#include "kernels/base/simt/emulator/emulated_threads.hpp"
#include "kernels/base/simt/toolkit/cuda_bf16.h"
#include "kernels/base/simt/toolkit/cuda_fp16.h"

namespace tilestep::simt::emulated {

/// What the lanes of a warp show each other: the elements of A and of B that they hold.
struct TileBoard {
  float a[32][16], b[32][16];
};
/// The board of the calling thread's warp.
inline TileBoard& tile_board() {
  static_assert(sizeof(TileBoard) <= kWarpBoard);
  return *static_cast<TileBoard*>(warp_board_memory());
}

}  // namespace tilestep::simt::emulated

namespace nvcuda::wmma {
inline namespace tilestep_toolkit {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};  ///< not emulated: a fragment of it says so
}  // namespace precision

template <class Use, int M, int N, int K, class T, class Layout = void>
class fragment {
  static constexpr bool kAccumulates = std::is_same_v<Use, accumulator>;
  static constexpr bool kHalf = std::is_same_v<T, __half>;
  static constexpr bool kSmall = kHalf || std::is_same_v<T, __nv_bfloat16>;
  static_assert(K == 16 && ((M == 16 && N == 16) || (M == 32 && N == 8) || (M == 8 && N == 32)),
                "fragments of 16x16x16, 32x8x16 and 8x32x16 are emulated");
  static_assert(kAccumulates ? kHalf || std::is_same_v<T, float> : kSmall,
                "matrices of half and __nv_bfloat16 are emulated, with accumulators of float, or "
                "of half for half");
  static_assert(kAccumulates == std::is_void_v<Layout>,
                "matrix_a and matrix_b have row_major or col_major, an accumulator neither");

 public:
  using element_type = T;
  static constexpr int simt_rows = std::is_same_v<Use, matrix_b> ? N : M;
  static constexpr int simt_columns = kAccumulates ? N : K;
  /// How many different elements a lane holds.
  static constexpr int simt_held = simt_rows * simt_columns / 32;
  static constexpr int num_elements = kHalf && !kAccumulates ? 16 : simt_held;
  static constexpr int num_storage_elements = num_elements;
  T x[num_elements];

  /// Row and column of a lane's element, which is below simt_held.
  static constexpr int simt_row(int lane, int element) {
    return lane / 4 + element / 2 / (simt_columns / 8) * 8;
  }
  static constexpr int simt_column(int lane, int element) {
    return lane % 4 * 2 + element / 2 % (simt_columns / 8) * 8 + element % 2;
  }
};

/// All lanes of the warp come; this orders no memory.
__forceinline__ void simt_meet(tilestep::simt::Location at) {
  namespace emulated = tilestep::simt::emulated;
  emulated::warp_collective(emulated::WarpOp::matrix, ~0u, 0, 0, at);
}
/// "a 256-bit aligned pointer" and a leading dimension of whole 16 bytes are what CUDA asks; less
/// than 16 bytes no GPU takes.
template <class T>
__forceinline__ void simt_check(const void* memory, unsigned pitch) {
  namespace emulated = tilestep::simt::emulated;
  if (reinterpret_cast<std::uintptr_t>(memory) % 16 != 0)
    emulated::refused_here("passes wmma an address that is no multiple of 16 bytes");
  if (pitch * sizeof(T) % 16 != 0)
    emulated::refused_here(
        sizeof(T) == 2 ? "passes wmma a leading dimension that is no multiple of 8 elements"
                       : "passes wmma a leading dimension that is no multiple of 4 elements");
}
template <class T>
struct alignas(2 * sizeof(T)) [[gnu::may_alias]] simt_pair {
  T low, high;
};

/// Each lane takes its elements, two at a time where they lie side by side (`along`: columns do).
template <class Fragment, class T>
__forceinline__ void simt_load(Fragment& fragment, const T* from, unsigned pitch, bool along) {
  simt_check<T>(from, pitch);
  const int lane = tilestep::simt::emulated::lane();
  for (int i = 0; i < Fragment::simt_held; i += 2) {
    const auto row = static_cast<std::size_t>(Fragment::simt_row(lane, i));
    const auto column = static_cast<std::size_t>(Fragment::simt_column(lane, i));
    if (along) {
      const auto both = *reinterpret_cast<const simt_pair<T>*>(from + row * pitch + column);
      fragment.x[i] = both.low;
      fragment.x[i + 1] = both.high;
    } else {
      fragment.x[i] = from[column * pitch + row];
      fragment.x[i + 1] = from[(column + 1) * pitch + row];
    }
  }
  for (int i = Fragment::simt_held; i < Fragment::num_elements; ++i)
    fragment.x[i] = fragment.x[i % Fragment::simt_held];
}

template <class Use, int M, int N, int K, class T, class Layout>
__forceinline__ void fill_fragment(fragment<Use, M, N, K, T, Layout>& all,
                                   const std::type_identity_t<T>& value) {
  for (T& each : all.x) each = value;
}
template <class Use, int M, int N, int K, class T, class Layout>
requires(!std::is_void_v<Layout>) __forceinline__
    void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& to,
                          const std::type_identity_t<T>* from, unsigned pitch,
                          tilestep::simt::Location at = tilestep::simt::Location::current()) {
  simt_meet(at);
  simt_load(to, from, pitch, std::is_same_v<Use, matrix_b> == std::is_same_v<Layout, col_major>);
}
template <int M, int N, int K, class T>
__forceinline__ void load_matrix_sync(
    fragment<accumulator, M, N, K, T>& to, const std::type_identity_t<T>* from, unsigned pitch,
    layout_t layout, tilestep::simt::Location at = tilestep::simt::Location::current()) {
  simt_meet(at);
  simt_load(to, from, pitch, layout == mem_row_major);
}
template <int M, int N, int K, class T>
__forceinline__ void store_matrix_sync(
    std::type_identity_t<T>* to, const fragment<accumulator, M, N, K, T>& from, unsigned pitch,
    layout_t layout, tilestep::simt::Location at = tilestep::simt::Location::current()) {
  using Fragment = fragment<accumulator, M, N, K, T>;
  simt_meet(at);
  simt_check<T>(to, pitch);
  const int lane = tilestep::simt::emulated::lane();
  for (int i = 0; i < Fragment::simt_held; i += 2) {
    const auto row = static_cast<std::size_t>(Fragment::simt_row(lane, i));
    const auto column = static_cast<std::size_t>(Fragment::simt_column(lane, i));
    if (layout == mem_row_major) {
      *reinterpret_cast<simt_pair<T>*>(to + row * pitch + column) = {from.x[i], from.x[i + 1]};
    } else {
      to[column * pitch + row] = from.x[i];
      to[(column + 1) * pitch + row] = from.x[i + 1];
    }
  }
}

/// The board is no memory of the program's, so the functions that are called at accesses and
/// branches are not called here.
#if defined(__clang__)
#define SIMT_ON_BOARD __attribute__((noinline, no_sanitize("thread", "coverage")))
#else
#define SIMT_ON_BOARD __attribute__((noinline, no_sanitize_thread, no_sanitize_coverage))
#endif
/// Adds the product of the warp's matrices, which are on the board.
template <class Sum, int K>
SIMT_ON_BOARD void simt_multiply(const tilestep::simt::emulated::TileBoard& board, int lane,
                                 float (&sums)[Sum::simt_held]) {
  for (int i = 0; i < Sum::simt_held; ++i) {
    // Row `row` of A, and `column` of B's transpose: the number among a lane's elements at which
    // they begin.
    const int row = Sum::simt_row(lane, i), column = Sum::simt_column(lane, i);
    const int of_row = row / 8 * 4, of_column = column / 8 * 4;
    for (int k = 0; k < K; ++k) {
      const int owner = k % 8 / 2, element = k / 8 * 2 + k % 2;
      sums[i] += board.a[row % 8 * 4 + owner][of_row + element] *
                 board.b[column % 8 * 4 + owner][of_column + element];
    }
  }
}

#undef SIMT_ON_BOARD

/// d = a · b + c; d may be c.
template <int M, int N, int K, class T, class ALayout, class BLayout, class D, class C>
__forceinline__ void mma_sync(fragment<accumulator, M, N, K, D>& d,
                              const fragment<matrix_a, M, N, K, T, ALayout>& a,
                              const fragment<matrix_b, M, N, K, T, BLayout>& b,
                              const fragment<accumulator, M, N, K, C>& c, bool = false,
                              tilestep::simt::Location at = tilestep::simt::Location::current()) {
  using A = fragment<matrix_a, M, N, K, T, ALayout>;
  using B = fragment<matrix_b, M, N, K, T, BLayout>;
  using Sum = fragment<accumulator, M, N, K, D>;
  static_assert(std::is_same_v<T, __half> || (std::is_same_v<D, float> && std::is_same_v<C, float>),
                "matrices of __nv_bfloat16 have accumulators of float");
  tilestep::simt::emulated::TileBoard& board = tilestep::simt::emulated::tile_board();
  const int lane = tilestep::simt::emulated::lane();
  for (int i = 0; i < A::simt_held; ++i) board.a[lane][i] = static_cast<float>(a.x[i]);
  for (int i = 0; i < B::simt_held; ++i) board.b[lane][i] = static_cast<float>(b.x[i]);
  simt_meet(at);  // all elements must be on the board before any lane reads them
  float sums[Sum::simt_held];
  for (int i = 0; i < Sum::simt_held; ++i) sums[i] = static_cast<float>(c.x[i]);
  simt_multiply<Sum, K>(board, lane, sums);
  for (int i = 0; i < Sum::simt_held; ++i) d.x[i] = D(sums[i]);
  simt_meet(at);  // all must have read before a lane goes on and writes to the board again
}

}  // namespace tilestep_toolkit
}  // namespace nvcuda::wmma

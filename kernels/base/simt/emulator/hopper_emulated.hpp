#pragma once

/// \file
/// Included by hopper.hpp for the host compiler: Hopper's words under emulation. What they do and check is
/// async_engine.hpp's; here are the shapes that kernels see.

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "kernels/base/simt/emulator/async_engine.hpp"
#include "kernels/base/simt/emulator/mma_emulated.hpp"

#define __grid_constant__

namespace tilestep::simt {

/// Address in shared memory's own window, which is what the instructions take.
template <class T>
unsigned shared_address(const Checked<T>& array) {
  return emulated::async().address_of(&array[0]);
}

namespace hopper {

/// What TMA knows of an array: tensor_map.hpp.
using TensorMap = emulated::BoxMap;

// ---- mbarriers ----------------------------------------------------------------------------------

inline void barrier_init(unsigned barrier, int arrivals, Location at = Location::current()) {
  emulated::async().barrier_init(barrier, arrivals, at);
}
inline void publish_barriers() {
  emulated::async().publish_barriers();
}
inline void arrive(unsigned barrier, Location at = Location::current()) {
  emulated::async().arrive(barrier, 0, at);
}
inline void arrive_expecting(unsigned barrier, int bytes, Location at = Location::current()) {
  emulated::async().arrive(barrier, bytes, at);
}
inline void expect_bytes(unsigned barrier, int bytes, Location at = Location::current()) {
  emulated::async().expect(barrier, bytes, at);
}
inline void wait_for(unsigned barrier, unsigned parity, Location at = Location::current()) {
  emulated::async().wait(barrier, parity, at);
}
/// Here a wait that never ends is found out without a clock: named, or where reports are off given up.
inline bool wait_at_most(unsigned barrier, unsigned parity, long long,
                         Location at = Location::current()) {
  return emulated::async().wait_at_most(barrier, parity, at);
}
/// Gives up when nothing but those who watch could go on.
inline bool watch(unsigned barrier, unsigned parity, long long, Location at = Location::current()) {
  return emulated::async().watch(barrier, parity, at);
}
inline long long cycles() {
  return emulated::async().depth();
}
inline long long nanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}
/// The hardware may let the thread sleep for a while; here it sleeps until the phase has ended.
inline bool try_wait(unsigned barrier, unsigned parity, Location at = Location::current()) {
  emulated::async().wait(barrier, parity, at);
  return true;
}

// ---- clusters -----------------------------------------------------------------------------------

inline unsigned rank_in_cluster() {
  return static_cast<unsigned>(emulated::async().rank());
}
inline void cluster_barrier(Location at = Location::current()) {
  emulated::async().cluster_barrier(at);
}
inline void arrive_at(unsigned barrier, unsigned block, Location at = Location::current()) {
  emulated::async().arrive_at(barrier, block, at);
}
template <class T>
void store_at(unsigned address, unsigned barrier, unsigned block, const T& value,
              Location at = Location::current()) {
  static_assert(sizeof(T) == 8);
  emulated::async().store_at(address, barrier, block, &value, at);
}

// ---- TMA ----------------------------------------------------------------------------------------

template <int kBlocks = 1>
void fetch(const TensorMap& map, unsigned to, unsigned barrier, int column, int row,
           Location at = Location::current()) {
  static_assert(kBlocks == 1 || kBlocks == 2 || kBlocks == 4 || kBlocks == 8);
  emulated::async().fetch(map, to, barrier, column, row, kBlocks, at);
}
inline void fetch(const TensorMap& map, unsigned to, unsigned barrier, int column, int row,
                  int matrix, Location at = Location::current()) {
  emulated::AsyncEngine& engine = emulated::async();
  engine.fetch(engine.matrix_of(map, matrix, at), to, barrier, column, row, 1, at);
}
inline void store(const TensorMap& map, unsigned from, int column, int row,
                  Location at = Location::current()) {
  emulated::async().store(map, from, column, row, false, at);
}
inline void store(const TensorMap& map, unsigned from, int column, int row, int matrix,
                  Location at = Location::current()) {
  emulated::AsyncEngine& engine = emulated::async();
  engine.store(engine.matrix_of(map, matrix, at), from, column, row, false, at);
}
inline void reduce_add(const TensorMap& map, unsigned from, int column, int row,
                       Location at = Location::current()) {
  emulated::async().store(map, from, column, row, true, at);
}
inline void prefetch(const TensorMap&) {}
inline void store_commit() {
  emulated::async().commit_stores();
}
template <int kPending>
void store_wait(Location at = Location::current()) {
  emulated::async().wait_stores(kPending, at);
}
// A launch begins when the one before it has ended.
inline void others_may_begin() {}
inline void await_launch_before() {}
inline void publish_to_async_proxy() {
  emulated::async().fence();
}

// ---- named barriers and registers ---------------------------------------------------------------

inline void named_barrier_sync(int id, int threads, Location at = Location::current()) {
  emulated::async().named_barrier(id, threads, true, at);
}
inline void named_barrier_arrive(int id, int threads, Location at = Location::current()) {
  emulated::async().named_barrier(id, threads, false, at);
}
/// Threads have all the registers that they want here; the numbers are checked.
template <int kRegisters>
void keep_registers() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
}
template <int kRegisters>
void take_registers() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
}

/// Two numbers in BF16, rounded to nearest even, the first in the low half.
inline unsigned pack_bf16(float low, float high) {
  return numeric::Bf16::bits(low) | static_cast<unsigned>(numeric::Bf16::bits(high)) << 16;
}

inline unsigned pack_fp16(float low, float high) {
  return numeric::encode(numeric::kFp16, static_cast<double>(numeric::Fp16::round(low))) |
         numeric::encode(numeric::kFp16, static_cast<double>(numeric::Fp16::round(high))) << 16;
}
/// NaN stays NaN in E4M3 and is 0 in S8, as on the GPU.
inline unsigned pack_e4m3(float a, float b, float c, float d) {
  unsigned four = 0;
  int shift = 0;
  for (const float one : {a, b, c, d}) {
    const auto rounded = static_cast<double>(numeric::E4m3::round(one));
    four |= numeric::encode(numeric::kE4m3, rounded) << shift;
    shift += 8;
  }
  return four;
}
inline unsigned pack_s8(float a, float b, float c, float d) {
  unsigned four = 0;
  int shift = 0;
  for (const float one : {a, b, c, d}) {
    const float inside = one > 127.0f ? 127.0f : one < -128.0f ? -128.0f : one == one ? one : 0.0f;
    four |= (static_cast<unsigned>(std::lrintf(inside)) & 0xFFu) << shift;
    shift += 8;
  }
  return four;
}
inline float exp2_approximate(float x) {
  const float power = ::exp2f(x);
  return power < 0x1p-126f ? 0.0f : power;
}

// ---- wgmma --------------------------------------------------------------------------------------

/// Sums in FP32, k in order; the hardware keeps fewer bits and another order.
template <Format kFormat, int kN, Major kMajorB = Major::k, class T, int kSums>
void wgmma(T (&d)[kSums], std::uint64_t a, std::uint64_t b, bool fresh,
           Location at = Location::current()) {
  static_assert(allowed_product<kFormat, kN, kMajorB, T, kSums>());
  emulated::async().multiply({.format = static_cast<int>(kFormat),
                              .n = kN,
                              .a = a,
                              .b = b,
                              .fresh = fresh,
                              .turned_b = kMajorB == Major::n},
                             reinterpret_cast<float*>(d), at);
}
/// A's registers are read at once; on a GPU they must not be written before the wait.
template <Format kFormat, int kN, Major kMajorB = Major::k, class T, int kSums>
void wgmma(T (&d)[kSums], const unsigned (&a)[4], std::uint64_t b, bool fresh,
           Location at = Location::current()) {
  static_assert(allowed_product<kFormat, kN, kMajorB, T, kSums>());
  emulated::async().multiply({.format = static_cast<int>(kFormat),
                              .n = kN,
                              .b = b,
                              .fresh = fresh,
                              .turned_b = kMajorB == Major::n,
                              .a_registers = a},
                             reinterpret_cast<float*>(d), at);
}
inline void wgmma_begin() {
  emulated::async().begin_products();
}
inline void wgmma_commit() {
  emulated::async().commit_products();
}
template <int kPending>
void wgmma_wait(Location at = Location::current()) {
  emulated::async().wait_products(kPending, at);
}
template <class T, int kCount>
void settle(T (&)[kCount]) {}

// ---- shared memory by ordinary accesses ---------------------------------------------------------

/// An index that remembers the line it is used in.
struct Index {
  std::ptrdiff_t value;
  Location at;

  template <std::integral I>
  Index(I index, Location here = Location::current())
      : value(static_cast<std::ptrdiff_t>(index)), at(here) {}
};

/// An array in shared memory that also TMA and wgmma come to: each access is bounds-checked, and reported
/// where it is not safe beside theirs. A pointer on a GPU.
template <class T>
class Staged {
  static_assert(16 % sizeof(T) == 0, "an access lies in one of the 16 bytes that are watched");

 public:
  class Element {
   public:
    Element(T* address, Location at) : address_(address), at_(at) {}
    operator T() const {
      emulated::async().reads(address_, sizeof(T), at_);
      return *address_;
    }
    const Element& operator=(const T& value) const {
      emulated::async().writes(address_, sizeof(T), at_);
      *address_ = value;
      return *this;
    }
    const Element& operator=(const Element& other) const { return *this = static_cast<T>(other); }
    const Element& operator+=(const T& value) const {
      return *this = static_cast<T>(*this) + value;
    }

   private:
    T* address_;
    Location at_;
  };

  Staged(T* data, std::size_t count, const char* name) : data_(data, count, name) {}
  Element operator[](Index index) const { return {&data_[index.value], index.at}; }

 private:
  Checked<T> data_;
};

/// `count` elements from a shared address on.
template <class T>
Staged<T> staged(unsigned address, std::size_t count, const char* name = "staged memory") {
  return {static_cast<T*>(emulated::async().at(address, count * sizeof(T), alignof(T), name)),
          count, name};
}
/// The same of the memory that another block of the cluster has at that address.
template <class T>
Staged<T> remote(unsigned address, unsigned block, std::size_t count,
                 const char* name = "staged memory", Location at = Location::current()) {
  return {static_cast<T*>(
              emulated::async().remote(address, block, count * sizeof(T), alignof(T), name, at)),
          count, name};
}
/// How the reports call these bytes: "stage 2".
inline void name_shared(unsigned address, int bytes, const char* name, int number) {
  emulated::async().name(address, bytes, name, number);
}

}  // namespace hopper

namespace emulated {

/// The 16-bit elements in the row of 8 that `row`, the address given by lane `lane`, is.
inline std::uint16_t* matrix_row(unsigned row, int lane, Location at) {
  const auto address = warp_collective(WarpOp::shuffle, 0xFFFFFFFFu, row, lane, at);
  return static_cast<std::uint16_t*>(
      async().at(static_cast<unsigned>(address), 16, 16, "a row of a matrix"));
}

template <bool kTransposed>
void ldmatrix_x4(unsigned (&r)[4], unsigned row, Location at) {
  const int group = lane() / 4;
  const int pair = lane() % 4 * 2;
  for (int matrix = 0; matrix < 4; ++matrix) {
    unsigned halves[2];
    for (int half = 0; half < 2; ++half) {
      const int down = kTransposed ? pair + half : group;
      const int across = kTransposed ? group : pair + half;
      const std::uint16_t* element = matrix_row(row, matrix * 8 + down, at) + across;
      async().reads(element, 2, at);
      halves[half] = *element;
    }
    r[matrix] = halves[0] | halves[1] << 16;
  }
}

}  // namespace emulated

namespace hopper {

inline void ldmatrix_x4(unsigned (&r)[4], unsigned row, Location at = Location::current()) {
  emulated::ldmatrix_x4<false>(r, row, at);
}
inline void ldmatrix_x4_trans(unsigned (&r)[4], unsigned row, Location at = Location::current()) {
  emulated::ldmatrix_x4<true>(r, row, at);
}
inline void stmatrix_x4(unsigned row, const unsigned (&r)[4], Location at = Location::current()) {
  for (int matrix = 0; matrix < 4; ++matrix) {
    std::uint16_t* pair =
        emulated::matrix_row(row, matrix * 8 + emulated::lane() / 4, at) + emulated::lane() % 4 * 2;
    emulated::async().writes(pair, 4, at);
    pair[0] = static_cast<std::uint16_t>(r[matrix]);
    pair[1] = static_cast<std::uint16_t>(r[matrix] >> 16);
  }
}
inline void stmatrix_x4_trans(unsigned row, const unsigned (&r)[4],
                              Location at = Location::current()) {
  for (int matrix = 0; matrix < 4; ++matrix) {
    for (int half = 0; half < 2; ++half) {
      const int down = matrix * 8 + emulated::lane() % 4 * 2 + half;
      std::uint16_t* element = emulated::matrix_row(row, down, at) + emulated::lane() / 4;
      emulated::async().writes(element, 2, at);
      *element = static_cast<std::uint16_t>(r[matrix] >> 16 * half);
    }
  }
}

}  // namespace hopper
}  // namespace tilestep::simt

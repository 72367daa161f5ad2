#pragma once

/// \file
/// CUDA's header of this name, for sources under emulation: cuRAND's generators XORWOW and Philox
/// for kernels ("cuRAND Library", "Device API").
///
/// Integers and uniform numbers have the bits that a GPU gives them. Normal numbers differ from a
/// GPU's after the sixth digit: its logf and __sincosf round in their own way.
///  - XORWOW: G. Marsaglia, "Xorshift RNGs", 2003. A seed's first state and the 2^67 numbers
///    between two sequences are those of cuRAND 13.0.
///  - Philox4x32-10: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. The key
///    is the seed; the upper half of the counter is the sequence, the lower half a quarter of the
///    position.

#include <math.h>

#include "kernels/base/simt/emulator/emulated_threads.hpp"
#include "kernels/base/simt/emulator/emulated_types.hpp"
#include "kernels/base/simt/emulator/xorwow.hpp"

inline namespace tilestep_toolkit {

// Normal numbers are made in pairs: a state keeps the second one of a pair.
struct curandStateXORWOW {
  unsigned d, v[5];
  int has_normal, has_normal_double;
  float normal;
  double normal_double;
};
using curandStateXORWOW_t = curandStateXORWOW;
using curandState_t = curandStateXORWOW;
using curandState = curandStateXORWOW;

struct curandStatePhilox4_32_10 {
  uint4 ctr, output;
  uint2 key;
  unsigned STATE;  ///< the number of `output` that comes next
  int has_normal, has_normal_double;
  float normal;
  double normal_double;
};
using curandStatePhilox4_32_10_t = curandStatePhilox4_32_10;

template <class State>
concept simt_generator =
    std::is_same_v<State, curandStateXORWOW> || std::is_same_v<State, curandStatePhilox4_32_10>;

template <simt_generator State>
__forceinline__ void simt_forget_normals(State* state) {
  state->has_normal = 0;
  state->has_normal_double = 0;
  state->normal = 0;
  state->normal_double = 0;
}

// ---- XORWOW ------------------------------------------------------------------------------------

inline constexpr unsigned kXorwowStep = 362437;  ///< of the counter that is added to the words

__forceinline__ void skipahead(unsigned long long count, curandStateXORWOW* state) {
  std::uint32_t words[5];
  for (int i = 0; i < 5; ++i) words[i] = state->v[i];
  tilestep::simt::emulated::xorwow_skip(words, count, 0);
  for (int i = 0; i < 5; ++i) state->v[i] = words[i];
  state->d += kXorwowStep * static_cast<unsigned>(count);
}
/// 2^67 steps of the counter are a multiple of 2^32.
__forceinline__ void skipahead_sequence(unsigned long long count, curandStateXORWOW* state) {
  std::uint32_t words[5];
  for (int i = 0; i < 5; ++i) words[i] = state->v[i];
  tilestep::simt::emulated::xorwow_skip(words, 0, count);
  for (int i = 0; i < 5; ++i) state->v[i] = words[i];
}
/// The constants are cuRAND's (curand_kernel.h of CUDA 13.0); those of the words and of d are
/// Marsaglia's.
__forceinline__ void curand_init(unsigned long long seed, unsigned long long sequence,
                                 unsigned long long offset, curandStateXORWOW* state) {
  const unsigned low = 1099087573u * (static_cast<unsigned>(seed) ^ 0xAAD26B49u);
  const unsigned high = 2591861531u * (static_cast<unsigned>(seed >> 32) ^ 0xF7DCEFDDu);
  std::uint32_t words[5] = {123456789u + low, 362436069u ^ low, 521288629u + high, 88675123u ^ high,
                            5783321u + low};
  tilestep::simt::emulated::xorwow_skip(words, offset, sequence);
  state->d = 6615241u + high + low + kXorwowStep * static_cast<unsigned>(offset);
  for (int i = 0; i < 5; ++i) state->v[i] = words[i];
  simt_forget_normals(state);
}
__forceinline__ unsigned curand(curandStateXORWOW* state) {
  const unsigned t = state->v[0] ^ state->v[0] >> 2, last = state->v[4];
  for (int i = 0; i < 4; ++i) state->v[i] = state->v[i + 1];
  const unsigned word = last ^ last << 4 ^ t ^ t << 1;
  const unsigned d = state->d + kXorwowStep;
  state->v[4] = word;
  state->d = d;
  return word + d;
}

// ---- Philox ------------------------------------------------------------------------------------

/// Ten rounds on the counter; the key grows by the golden ratio and by √3 − 1, in 2^-32.
__forceinline__ uint4 curand_Philox4x32_10(uint4 counter, uint2 key) {
  unsigned x = counter.x, y = counter.y, z = counter.z, w = counter.w;
  unsigned key_x = key.x, key_y = key.y;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53u} * x;
    const std::uint64_t second = std::uint64_t{0xCD9E8D57u} * z;
    x = static_cast<unsigned>(second >> 32) ^ y ^ key_x;
    y = static_cast<unsigned>(second);
    z = static_cast<unsigned>(first >> 32) ^ w ^ key_y;
    w = static_cast<unsigned>(first);
    key_x += 0x9E3779B9u;
    key_y += 0xBB67AE85u;
  }
  return {x, y, z, w};
}
/// Adds to the counter's 128 bits.
__forceinline__ void simt_philox_add(unsigned long long low, unsigned long long high,
                                     curandStatePhilox4_32_10* state) {
  const std::uint64_t old = state->ctr.x | static_cast<std::uint64_t>(state->ctr.y) << 32;
  const std::uint64_t sum = old + low;
  const std::uint64_t upper =
      (state->ctr.z | static_cast<std::uint64_t>(state->ctr.w) << 32) + high + (sum < old ? 1 : 0);
  state->ctr = {static_cast<unsigned>(sum), static_cast<unsigned>(sum >> 32),
                static_cast<unsigned>(upper), static_cast<unsigned>(upper >> 32)};
  state->output = curand_Philox4x32_10(state->ctr, state->key);
}
__forceinline__ void skipahead(unsigned long long count, curandStatePhilox4_32_10* state) {
  const unsigned place = state->STATE + static_cast<unsigned>(count % 4);
  state->STATE = place % 4;
  simt_philox_add(count / 4 + place / 4, 0, state);
}
__forceinline__ void skipahead_sequence(unsigned long long count, curandStatePhilox4_32_10* state) {
  simt_philox_add(0, count, state);
}
__forceinline__ void curand_init(unsigned long long seed, unsigned long long sequence,
                                 unsigned long long offset, curandStatePhilox4_32_10* state) {
  state->ctr = {0, 0, 0, 0};
  state->key = {static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)};
  state->STATE = static_cast<unsigned>(offset % 4);
  simt_forget_normals(state);
  simt_philox_add(offset / 4, sequence, state);
}
__forceinline__ unsigned curand(curandStatePhilox4_32_10* state) {
  const unsigned place = state->STATE;
  const uint4 all = state->output;
  if (place == 3) simt_philox_add(1, 0, state);
  state->STATE = (place + 1) % 4;
  return place == 0 ? all.x : place == 1 ? all.y : place == 2 ? all.z : all.w;
}
/// The next four numbers.
__forceinline__ uint4 curand4(curandStatePhilox4_32_10* state) {
  const unsigned place = state->STATE;
  const uint4 old = state->output;
  simt_philox_add(1, 0, state);
  const uint4 next = state->output;
  return place == 0   ? old
         : place == 1 ? uint4{old.y, old.z, old.w, next.x}
         : place == 2 ? uint4{old.z, old.w, next.x, next.y}
                      : uint4{old.w, next.x, next.y, next.z};
}

// ---- distributions -----------------------------------------------------------------------------

/// In (0, 1]: the middle of one of 2^32 intervals, rounded.
__forceinline__ float simt_uniform(unsigned bits) {
  return static_cast<float>(bits) * 0x1p-32f + 0x1p-33f;
}
/// The middle of one of 2^53 intervals.
__forceinline__ double simt_uniform(unsigned low, unsigned high) {
  const std::uint64_t bits = low ^ static_cast<std::uint64_t>(high) << 21;
  return static_cast<double>(bits) * 0x1p-53 + 0x1p-54;
}
/// Two normal numbers of two uniform ones (G. Box and M. Muller, 1958).
__forceinline__ float2 simt_normals(unsigned for_length, unsigned for_angle) {
  constexpr float kTurn = 0x1p-32f * 6.2831855f;
  const float angle = static_cast<float>(for_angle) * kTurn + kTurn / 2;
  const float length = ::sqrtf(-2.0f * ::logf(simt_uniform(for_length)));
  return {::sinf(angle) * length, ::cosf(angle) * length};
}
__forceinline__ double2 simt_normals(unsigned length_low, unsigned length_high, unsigned angle_low,
                                     unsigned angle_high) {
  const double half_turns = simt_uniform(angle_low, angle_high) * 2;
  const double length = ::sqrt(-2.0 * ::log(simt_uniform(length_low, length_high)));
  return {tilestep::simt::emulated::sin_pi(half_turns) * length,
          tilestep::simt::emulated::cos_pi(half_turns) * length};
}

template <simt_generator State>
__forceinline__ float curand_uniform(State* state) {
  return simt_uniform(curand(state));
}
/// Of XORWOW two numbers give 53 bits; of Philox one gives 32.
__forceinline__ double curand_uniform_double(curandStateXORWOW* state) {
  const unsigned low = curand(state);
  return simt_uniform(low, curand(state));
}
__forceinline__ double curand_uniform_double(curandStatePhilox4_32_10* state) {
  return static_cast<double>(curand(state)) * 0x1p-32 + 0x1p-32;
}
__forceinline__ float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  const uint4 bits = curand4(state);
  return {simt_uniform(bits.x), simt_uniform(bits.y), simt_uniform(bits.z), simt_uniform(bits.w)};
}
__forceinline__ double2 curand_uniform2_double(curandStatePhilox4_32_10* state) {
  const uint4 bits = curand4(state);
  return {simt_uniform(bits.x, bits.y), simt_uniform(bits.z, bits.w)};
}

template <simt_generator State>
__forceinline__ float2 curand_normal2(State* state) {
  const unsigned for_length = curand(state);
  return simt_normals(for_length, curand(state));
}
template <simt_generator State>
__forceinline__ double2 curand_normal2_double(State* state) {
  const unsigned a = curand(state), b = curand(state), c = curand(state);
  return simt_normals(a, b, c, curand(state));
}
/// Every second call returns the number that the call before it kept.
template <simt_generator State>
__forceinline__ float curand_normal(State* state) {
  if (state->has_normal != 0) {
    state->has_normal = 0;
    return state->normal;
  }
  const float2 both = curand_normal2(state);
  state->has_normal = 1;
  state->normal = both.y;
  return both.x;
}
template <simt_generator State>
__forceinline__ double curand_normal_double(State* state) {
  if (state->has_normal_double != 0) {
    state->has_normal_double = 0;
    return state->normal_double;
  }
  const double2 both = curand_normal2_double(state);
  state->has_normal_double = 1;
  state->normal_double = both.y;
  return both.x;
}
__forceinline__ float4 curand_normal4(curandStatePhilox4_32_10* state) {
  const uint4 bits = curand4(state);
  const float2 low = simt_normals(bits.x, bits.y), high = simt_normals(bits.z, bits.w);
  return {low.x, low.y, high.x, high.y};
}
template <simt_generator State>
__forceinline__ float curand_log_normal(State* state, float mean, float deviation) {
  return ::expf(mean + deviation * curand_normal(state));
}
template <simt_generator State>
__forceinline__ double curand_log_normal_double(State* state, double mean, double deviation) {
  return ::exp(mean + deviation * curand_normal_double(state));
}

}  // namespace tilestep_toolkit

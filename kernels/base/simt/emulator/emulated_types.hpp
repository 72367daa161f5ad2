#pragma once

/// \file
/// CUDA's vector types for the host compiler, with CUDA's alignment. They may alias the elements
/// that they are made of, as on the device, where a row of floats is often read as float4.
/// Included by simt.hpp.

struct [[gnu::may_alias]] uint3 {
  unsigned x, y, z;
};

/// Sizes of a grid or block; what is not given is 1.
struct dim3 {
  unsigned x = 1, y = 1, z = 1;

  constexpr dim3(unsigned x_count = 1, unsigned y_count = 1, unsigned z_count = 1)
      : x(x_count), y(y_count), z(z_count) {}
  constexpr dim3(uint3 size) : x(size.x), y(size.y), z(size.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

struct alignas(8) [[gnu::may_alias]] float2 {
  float x, y;
};
struct [[gnu::may_alias]] float3 {
  float x, y, z;
};
struct alignas(16) [[gnu::may_alias]] float4 {
  float x, y, z, w;
};
struct alignas(8) [[gnu::may_alias]] int2 {
  int x, y;
};
struct [[gnu::may_alias]] int3 {
  int x, y, z;
};
struct alignas(16) [[gnu::may_alias]] int4 {
  int x, y, z, w;
};
struct alignas(8) [[gnu::may_alias]] uint2 {
  unsigned x, y;
};
struct alignas(16) [[gnu::may_alias]] uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) [[gnu::may_alias]] double2 {
  double x, y;
};

constexpr float2 make_float2(float x, float y) {
  return {x, y};
}
constexpr float3 make_float3(float x, float y, float z) {
  return {x, y, z};
}
constexpr float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
constexpr int2 make_int2(int x, int y) {
  return {x, y};
}
constexpr int3 make_int3(int x, int y, int z) {
  return {x, y, z};
}
constexpr int4 make_int4(int x, int y, int z, int w) {
  return {x, y, z, w};
}
constexpr uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) {
  return {x, y, z};
}
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
constexpr double2 make_double2(double x, double y) {
  return {x, y};
}

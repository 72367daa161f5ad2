#pragma once

// What a rank computes by itself: products, attention forward and backward, and steps that go number by number. A thread
// has one number or one row of a head: these kernels are to be exact and short, not fast.

#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/systems/parallelism/kernels.hpp"

namespace tilestep::parallelism::SIMT_BACKEND {

__device__ inline int thread_of_grid() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void product(Product p, simt::Global<const float> a, simt::Global<const float> b,
                        simt::Global<float> c) {
  const int at = thread_of_grid();
  if (at >= p.m * p.n) return;
  const int row = at / p.n, column = at % p.n;
  float sum = 0;
  for (int i = 0; i < p.k; ++i) {
    const float left = a[p.turn_a ? i * p.lda + row : row * p.lda + i];
    const float right = b[p.turn_b ? column * p.ldb + i : i * p.ldb + column];
    sum = fmaf(left, right, sum);
  }
  const int to = row * p.ldc + column;
  c[to] = p.adds ? c[to] + sum : sum;
}

__global__ void product_bf16(Product p, simt::Global<const std::uint16_t> a,
                             simt::Global<const std::uint16_t> b, simt::Global<std::uint16_t> c) {
  const int at = thread_of_grid();
  if (at >= p.m * p.n) return;
  const int row = at / p.n, column = at % p.n;
  float sum = 0;
  for (int i = 0; i < p.k; ++i) {
    const std::uint16_t left = a[p.turn_a ? i * p.lda + row : row * p.lda + i];
    const std::uint16_t right = b[p.turn_b ? column * p.ldb + i : i * p.ldb + column];
    sum = fmaf(numeric::Bf16::value(left), numeric::Bf16::value(right), sum);
  }
  const int to = row * p.ldc + column;
  if (p.adds) sum += numeric::Bf16::value(c[to]);
  c[to] = numeric::Bf16::bits(sum);
}

/// Whether a query may look at a key.
__device__ inline bool sees(int query, int key) {
  return query / kLongest == key / kLongest && key <= query;
}

/// The arrays of attention as a kernel has them.
struct Attention {
  AttendShape shape;
  simt::Global<const float> q, k, v;
  simt::Global<const int> q_at, k_at;
  simt::Global<float> o, m, l;
  simt::Global<const float> d_o, delta;
  simt::Global<float> d_q, d_k, d_v;

  __device__ int width() const { return shape.heads * shape.dim; }
  __device__ float score(int query, int key, int head) const {
    float sum = 0;
    for (int i = 0; i < shape.dim; ++i)
      sum = fmaf(q[query * width() + head * shape.dim + i], k[key * width() + head * shape.dim + i],
                 sum);
    return sum * rsqrtf(static_cast<float>(shape.dim));
  }
  /// The weight of a key, and what its score's gradient is.
  __device__ void back(int query, int key, int head, float& weight, float& d_score) const {
    const int at = query * shape.heads + head;
    weight = expf(score(query, key, head) - m[at]) / l[at];
    float product = 0;
    for (int i = 0; i < shape.dim; ++i)
      product = fmaf(d_o[query * width() + head * shape.dim + i],
                     v[key * width() + head * shape.dim + i], product);
    d_score = weight * (product - delta[at]) * rsqrtf(static_cast<float>(shape.dim));
  }
};

/// A query row of a head, on more keys: what was summed shrinks where the largest score grows.
__global__ void attend(Attention a) {
  const int at = thread_of_grid();
  if (at >= a.shape.queries * a.shape.heads) return;
  const int query = at / a.shape.heads, head = at % a.shape.heads;
  const int first = query * a.width() + head * a.shape.dim;
  for (int key = 0; key < a.shape.keys; ++key) {
    if (!sees(a.q_at[query], a.k_at[key])) continue;
    const float score = a.score(query, key, head), before = a.m[at];
    const float largest = fmaxf(before, score);
    const float shrinks = expf(before - largest), weight = expf(score - largest);
    a.m[at] = largest;
    a.l[at] = a.l[at] * shrinks + weight;  // [step: merge]
    for (int i = 0; i < a.shape.dim; ++i)
      a.o[first + i] =
          a.o[first + i] * shrinks + weight * a.v[key * a.width() + head * a.shape.dim + i];
  }
}
__global__ void finish(Attention a) {
  const int at = thread_of_grid();
  if (at >= a.shape.queries * a.width()) return;
  a.o[at] = a.o[at] / a.l[at / a.shape.dim];
}
/// Rows of heads of two arrays, multiplied.
__global__ void products_of_rows(AttendShape shape, simt::Global<const float> d_o,
                                 simt::Global<const float> o, simt::Global<float> delta) {
  const int at = thread_of_grid();
  if (at >= shape.queries * shape.heads) return;
  float sum = 0;
  for (int i = 0; i < shape.dim; ++i)
    sum = fmaf(d_o[at * shape.dim + i], o[at * shape.dim + i], sum);
  delta[at] = sum;
}
/// The first threads have a query row of a head each, the others a key row.
__global__ void attend_back(Attention a) {
  const int at = thread_of_grid(), heads = a.shape.heads, dim = a.shape.dim;
  const int row = at / heads, head = at % heads;
  float weight = 0, d_score = 0;
  if (row < a.shape.queries) {
    for (int key = 0; key < a.shape.keys; ++key) {
      if (!sees(a.q_at[row], a.k_at[key])) continue;
      a.back(row, key, head, weight, d_score);
      for (int i = head * dim; i < (head + 1) * dim; ++i)
        a.d_q[row * a.width() + i] += d_score * a.k[key * a.width() + i];
    }
    return;
  }
  const int key = row - a.shape.queries;
  if (key >= a.shape.keys) return;
  for (int query = 0; query < a.shape.queries; ++query) {
    if (!sees(a.q_at[query], a.k_at[key])) continue;
    a.back(query, key, head, weight, d_score);
    for (int i = head * dim; i < (head + 1) * dim; ++i) {
      a.d_k[key * a.width() + i] += d_score * a.q[query * a.width() + i];
      a.d_v[key * a.width() + i] += weight * a.d_o[query * a.width() + i];
    }
  }
}

__global__ void each_number(Each what, simt::Global<float> a, simt::Global<const float> b,
                            float value, int count) {
  const int i = thread_of_grid();
  if (i >= count) return;
  switch (what) {
    case Each::add:
      a[i] += b[i];
      break;
    case Each::relu:
      a[i] = fmaxf(b[i], 0.0f);
      break;
    case Each::relu_back:
      a[i] = b[i] > 0.0f ? a[i] : 0.0f;
      break;
    case Each::copy:
      a[i] = b[i];
      break;
    case Each::fill:
      a[i] = value;
      break;
  }
}

/// Kingma and Ba, "Adam: a method for stochastic optimization", 2015, step 1. Both moments are kept for the next one.
__global__ void adam_step(simt::Global<float> weights, simt::Global<const float> gradients,
                          simt::Global<float> moments, int count) {
  const int i = thread_of_grid();
  if (i >= count) return;
  const float gradient = gradients[i];
  moments[i] = 0.1f * gradient;
  moments[count + i] = 0.001f * gradient * gradient;
  const float mean = moments[i] / 0.1f, square = moments[count + i] / 0.001f;
  weights[i] -= kRate * mean / (sqrtf(square) + kAdamEpsilon);
}

__global__ void take_rows(int width, simt::Global<const int> rows, int count, bool back,
                          simt::Global<const float> from, simt::Global<float> to) {
  const int at = thread_of_grid();
  if (at >= count * width) return;
  const int other = rows[at / width] * width + at % width;
  if (back) {
    to[other] = from[at];
  } else {
    to[at] = from[other];
  }
}

}  // namespace tilestep::parallelism::SIMT_BACKEND

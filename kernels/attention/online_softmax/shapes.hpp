#pragma once

#include <cassert>
#include <cstddef>
#include <string>

#include "kernels/attention/online_softmax/kernels.hpp"
#include "kernels/base/simt/error.hpp"

/// Which shapes the kernels take; the same for both backends.
namespace tilestep::online_softmax {

/// Throws Error naming the size that is not allowed.
inline void check_attention(const AttentionShape& shape, simt::Span<const float> scores,
                            simt::Span<const float> values, simt::Span<float> output) {
  const auto within = [](const char* what, int value, int most) {
    if (value >= 1 && value <= most) return;
    throw Error("online_softmax: " + std::string(what) + " is " + std::to_string(value) +
                "; allowed: 1–" + std::to_string(most));
  };
  within("queries", shape.queries, 1 << 20);
  within("keys", shape.keys, 1 << 30);
  within("tile_width", shape.tile_width, 1024);
  within("head_dim", shape.head_dim, 128);
  [[maybe_unused]] const auto at = [](int a, int b) {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
  };
  assert(scores.count == at(shape.queries, shape.keys));
  assert(values.count == at(shape.keys, shape.head_dim));
  assert(output.count == at(shape.queries, shape.head_dim));
  (void)scores, (void)values, (void)output;
}

/// Throws Error saying what the rung cannot take.
inline void check_rows(Rung rung, const RowShape& shape, simt::Span<const float> input,
                       simt::Span<float> output) {
  const std::string name(to_text(rung));
  if (shape.rows < 1 || shape.columns < 1) {
    throw Error(name + ": a matrix of " + std::to_string(shape.rows) + " × " +
                std::to_string(shape.columns) +
                " has nothing to do; rows and columns must be 1 "
                "or more");
  }
  if (shape.rows > 0x7FFFFFFF) throw Error(name + ": allowed rows: 1–2147483647");
  bool compiled = false;
  for (const int threads : kRowBlocks) compiled = compiled || threads == shape.threads;
  if (!compiled) {
    throw Error(name + ": " + std::to_string(shape.threads) +
                " threads a row are not compiled; allowed: 128, 256, 512, 1024");
  }
  const int most = one_read_columns(shape.threads);
  if (rung == Rung::online_one_read && shape.columns > most) {
    throw Error(name + ": a row of " + std::to_string(shape.columns) +
                " columns does not fit into the registers of a block of " +
                std::to_string(shape.threads) + " threads; allowed: 1–" + std::to_string(most));
  }
  assert(input.count == shape.rows * static_cast<std::size_t>(shape.columns));
  assert(output.count == input.count);
  (void)input, (void)output;
}

}  // namespace tilestep::online_softmax

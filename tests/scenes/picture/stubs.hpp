#pragma once

#include <cmath>

#include "scenes/picture/placed.hpp"

/// Pictures of lessons to come, in a few lines each: what the vocabulary has to be able to say.
namespace tilestep::tests {

/// Scores of queries and keys with a causal mask, tile by tile; the tile `now` is worked on.
picture::Picture attention_grid(int tiles, int now);
/// A producer that fills stages of shared memory and a consumer that drains them, at `clock`.
picture::Picture copy_ring(int stages, int clock);
/// Warps of a scheduler over time, until `clock`.
picture::Picture warps_over_time(int warps, int clock);
/// Sequences whose KV cache lies in pages of a pool, after `written` tokens.
picture::Picture page_table(int sequences, int written);
/// Bytes that each kernel of a chain reads and writes; the first `ran` have run.
picture::Picture byte_ledger(int ran);
/// Two GPUs that add up their gradients in chunks, after `steps` of the ring.
picture::Picture two_gpus(int chunks, int steps);

/// Type of one width: what a layout does with it is the same with any other.
class Typewriter final : public picture::Metrics {
 public:
  explicit Typewriter(float scale = 1) : scale_(scale) {}
  float width(std::string_view text, picture::Face face) const override {
    float length = 0;
    for (const char c : text) length += (c & 0xC0) != 0x80 ? 1 : 0;
    return length * height(face) * 0.5f;
  }
  float height(picture::Face face) const override {
    const float design = face == picture::Face::section || face == picture::Face::mono_large ? 24.0f
                         : face == picture::Face::note || face == picture::Face::mono_note   ? 15.0f
                                                                                           : 19.0f;
    return std::round(design * scale_);
  }
  float px(float design) const override { return design * scale_; }

 private:
  float scale_;
};

}  // namespace tilestep::tests

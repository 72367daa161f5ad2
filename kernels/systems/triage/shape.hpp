#pragma once

/// The sizes of the program under diagnosis, for host and kernels.
namespace tilestep::triage {

inline constexpr int kGroup = 4;        ///< query heads that share a head of the cache
inline constexpr int kExperts = 4;      ///< of which each token takes one
inline constexpr int kMostRows = 8;     ///< the largest bucket
inline constexpr int kVocabulary = 32;  ///< tokens that can come in; more can come out

/// Decoder layers as they decode: x → norm → qkv → attention → out → norm → an expert's SwiGLU; then the head.
struct Shape {
  int layers = 2;
  int width = 128;  ///< of a token
  int heads = 4, dim = 64;
  int context = 24;  ///< keys of the cache; the last one is the step's own
  int inner = 64;    ///< of an expert
  int vocabulary = 64;
  int splits = 2;         ///< blocks that share the context of a head
  int expert_blocks = 2;  ///< of each expert
  int rows = 4;           ///< that are computed

  constexpr int cache_heads() const { return heads / kGroup; }
  constexpr int queries() const { return heads * dim; }
  constexpr int cached() const {
    return cache_heads() * dim;
  }  ///< numbers of a key, and of a value
  constexpr int qkv() const { return queries() + 2 * cached(); }
};

}  // namespace tilestep::triage

#include "kernels/attention/kv_cache/layer.hpp"

#include <cmath>

namespace tilestep::kv_cache {

int Case::cached_heads() const {
  switch (scheme) {
    case Scheme::mha:
      return heads;
    case Scheme::gqa:
      return kv_heads;
    case Scheme::mqa:
    case Scheme::mla:
      break;
  }
  return 1;
}

RowShape row_shape(Scheme scheme, int head_dim) {
  if (scheme != Scheme::mla) return {head_dim, head_dim, 2 * head_dim, 0, 0};
  const int latent = 4 * head_dim, rope = head_dim / 2;
  return {latent + rope, latent, latent + rope, latent, rope};
}

double score_scale(const RowShape& row) {
  return 1 / std::sqrt(static_cast<double>(row.latent > 0 ? row.latent / 4 + row.rope : row.key));
}

LayerShape layer_shape(const Case& of) {
  return {of.scheme, of.heads, of.cached_heads(), row_shape(of.scheme, of.head_dim)};
}

double token_bytes(const LayerShape& layer, KvType type) {
  return static_cast<double>(layer.cached_heads) * layer.row.stored * bits_of(type) / 8;
}

double scale_bytes(const LayerShape& layer, KvType type, Scales scales) {
  if (!is_quantized(type)) return 0;
  return static_cast<double>(layer.cached_heads) * (scales == Scales::token ? 2 : 1) *
         sizeof(float);
}

Piece piece_of(const LayerShape& layer, KvType type, int page_size) {
  constexpr std::int64_t kSector = 32;
  const std::int64_t bytes = std::int64_t{layer.row.key} * bits_of(type) / 8 * page_size;
  // The offset of a block within its sector repeats with this period.
  Piece piece{static_cast<double>(bytes), 0};
  for (std::int64_t at = 0; at < kSector * bytes; at += bytes) {
    piece.sectors += static_cast<double>((at + bytes - 1) / kSector - at / kSector + 1) / kSector;
  }
  return piece;
}

}  // namespace tilestep::kv_cache

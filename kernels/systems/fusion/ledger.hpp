#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/systems/fusion/kernels.hpp"

/// The traffic of a decoder block's launches, by formula: what each operation reads and writes beside weights and
/// cache, which operations may share a kernel, and the best that can be had. Touvron et al., "Llama 2", 2023
/// (arXiv:2307.09288) has the block; shapes are those of Llama 3 8B at width 4096.
namespace tilestep::fusion {

/// The block's operations, in order.
enum class Op {
  norm_1,
  quantize_1,
  qkv,
  rotary,
  attention,
  quantize_2,
  project,
  residual_1,
  norm_2,
  quantize_3,
  gate_up,
  swiglu,
  quantize_4,
  down,
  residual_2
};
constexpr auto names_of(Op) {
  return std::to_array<std::string_view>({"RMSNorm", "quantize", "QKV", "rotary", "attention",
                                          "quantize", "project", "residual", "RMSNorm", "quantize",
                                          "gate, up", "SwiGLU", "quantize", "down", "residual"});
}
inline constexpr int kOps = static_cast<int>(count_of<Op>());
inline constexpr int kSeams = kOps - 1;

/// What a kernel may hold of an operation's rows.
enum class Kind {
  row,      ///< needs a whole row: a norm, a scale
  element,  ///< each number by itself, or two of a head
  product,  ///< tiles of a matrix product, none of which has a whole row
  attention
};
Kind kind_of(Op op);

/// A tensor that an operation reads or writes.
struct Traffic {
  std::string tensor;
  double bytes = 0;     ///< per number of the block's width, of one token
  bool stored = false;  ///< written, otherwise read
  bool saved = false;   ///< by a fusion: it stays on the chip
  bool operator==(const Traffic&) const = default;
};

/// Which neighbours share a kernel: seam i is between operations i and i + 1.
using Seams = std::array<bool, kSeams>;
/// The first and last operation of each kernel.
struct Group {
  int first = 0, last = 0;
  bool operator==(const Group&) const = default;
};
std::vector<Group> groups_of(const Seams& seams);
/// Why these operations cannot be one kernel; empty: they can.
std::string why_not(const Group& group);

/// Reads and writes of an operation, with the saved ones among them.
std::vector<Traffic> traffic_of(int op, const Seams& seams, Dtype type);

/// Launches, and bytes that move per number of the block's width and token.
struct Score {
  int launches = 0;
  double bytes = 0;
  /// For `tokens` rows of `width`.
  double microseconds(int width, int tokens) const;
  bool operator==(const Score&) const = default;
};
Score score_of(const Seams& seams, Dtype type);
/// The legal fusion that takes least time.
Seams best_seams(Dtype type, int width, int tokens);
/// How many sets of seams are legal: `visit` gets each.
template <class Visit>
void for_each_legal(const Visit& visit) {
  for (int bits = 0; bits < 1 << kSeams; ++bits) {
    Seams seams{};
    for (int i = 0; i < kSeams; ++i) seams[static_cast<std::size_t>(i)] = (bits >> i & 1) != 0;
    bool legal = true;
    for (const Group& group : groups_of(seams)) legal = legal && why_not(group).empty();
    if (legal) visit(seams);
  }
}

/// The seams that a text names, "8,9": from 1, seam 8 being between operations 8 and 9.
bool is_list_of_seams(std::string_view text);
std::vector<int> seams_listed(std::string_view text);
/// The list with one seam added at its end or, where it is there, taken out.
std::string with_turned(std::string_view text, int seam);
/// Seams in the order listed: fused, or why not with those before.
struct Chosen {
  Seams fused{};
  std::array<std::string, kSeams> refused;  ///< empty: it was not asked for, or is fused
};
Chosen chosen_of(std::string_view text);

/// As the bench measured them on an H200: bytes per microsecond of a kernel that streams, and microseconds of a
/// launch within a graph.
inline constexpr double kBytesPerMicrosecond = 4.2e6;
inline constexpr double kMicrosecondsPerLaunch = 1.1;

}  // namespace tilestep::fusion

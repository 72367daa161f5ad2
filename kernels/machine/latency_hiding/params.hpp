#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/base/lab/knob.hpp"
#include "kernels/base/lab/names.hpp"

/// \file
/// Names shared by kernels, driver and picture of the lesson on latency hiding: the knobs, and values that follow.
namespace tilestep::latency_hiding {

inline constexpr int kLanes = 32;
inline constexpr int kSubPartitions = 4;  ///< per multiprocessor, each with its own scheduler
inline constexpr int kMostWarps = 64;     ///< that a Hopper multiprocessor holds
inline constexpr int kMostBlocks = 32;    ///< that it holds
/// Probes shown per warp: sixteen, or one per arm for a branch with more; those of a copy start at load
/// kFirstProbed.
inline constexpr int kProbes = 16;
inline constexpr int kMostProbes = 32;
inline constexpr int kLoads = 64;        ///< per thread of a copy
inline constexpr int kFirstProbed = 32;  ///< so that all warps have started by then

/// The kernel that runs; each has its own file.
enum class Kernel {
  copy,       ///< streams through memory: loads, then stores
  bulk_copy,  ///< the same by TMA: bytes in flight without registers
  chase,      ///< each load's address is the last one's value
  fma,        ///< chains of dependent FMAs
  spill,      ///< more live numbers than registers
  diverge,    ///< a branch by lane
  tail,       ///< more blocks than fit at once
};
constexpr auto names_of(Kernel) {
  return std::to_array<std::string_view>(
      {"copy", "bulk-copy", "chase", "fma", "spill", "diverge", "tail"});
}
/// Where the kernel is: a path of the repository, built in as an asset.
constexpr std::string_view source_path(Kernel kernel) {
  constexpr auto kPaths = std::to_array<std::string_view>({
      "kernels/machine/latency_hiding/copy.cu",
      "kernels/machine/latency_hiding/bulk/bulk_copy.cu",
      "kernels/machine/latency_hiding/chase.cu",
      "kernels/machine/latency_hiding/fma.cu",
      "kernels/machine/latency_hiding/occupancy/spill.cu",
      "kernels/machine/latency_hiding/diverge.cu",
      "kernels/machine/latency_hiding/occupancy/tail.cu",
  });
  return kPaths.at(static_cast<std::size_t>(kernel));
}
/// Whether its work is loads from memory.
constexpr bool is_copy(Kernel kernel) {
  return kernel == Kernel::copy || kernel == Kernel::bulk_copy;
}

enum class LoadBytes { b4, b8, b16 };
constexpr auto names_of(LoadBytes) {
  return std::to_array<std::string_view>({"4", "8", "16"});
}
constexpr int bytes_of(LoadBytes bytes) {
  return 4 << static_cast<int>(bytes);
}

enum class Loads { l1, l2, l4, l8 };
constexpr auto names_of(Loads) {
  return std::to_array<std::string_view>({"1", "2", "4", "8"});
}
constexpr int count_of(Loads loads) {
  return 1 << static_cast<int>(loads);
}

/// The register limit that the spilling kernel is compiled for.
enum class Registers { r24, r32, r40, r48, r64, r96, r128, r168 };
constexpr auto names_of(Registers) {
  return std::to_array<std::string_view>({"24", "32", "40", "48", "64", "96", "128", "168"});
}
inline constexpr std::array<int, 8> kRegisterLimits = {24, 32, 40, 48, 64, 96, 128, 168};
constexpr int count_of(Registers registers) {
  return kRegisterLimits.at(static_cast<std::size_t>(registers));
}

enum class Block { b32, b64, b128, b256, b512 };
constexpr auto names_of(Block) {
  return std::to_array<std::string_view>({"32", "64", "128", "256", "512"});
}
constexpr int threads_of(Block block) {
  return 32 << static_cast<int>(block);
}

/// Ways that the lanes of a warp take at the branch.
enum class Ways { w1, w2, w4, w8, w16, w32 };
constexpr auto names_of(Ways) {
  return std::to_array<std::string_view>({"1", "2", "4", "8", "16", "32"});
}
constexpr int count_of(Ways ways) {
  return 1 << static_cast<int>(ways);
}

enum class Break {
  none,
  serialize_loads,   ///< each load is stored before the next is issued
  divergent_branch,  ///< lanes load in turn, each in its own branch
};
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>({"none", "serialize-loads", "divergent-branch"});
}

struct Params {
  Kernel kernel = Kernel::copy;
  int warps_per_sm = 16;  ///< resident at a time; dynamic shared memory keeps the others out
  LoadBytes bytes_per_load = LoadBytes::b16;
  Loads loads_in_flight = Loads::l4;
  int ilp = 4;  ///< independent chains of a thread: 1–8
  Registers max_registers = Registers::r128;
  Block block = Block::b128;
  Ways divergence = Ways::w2;
  Break broken = Break::none;
  std::int64_t seed = 1;
};

/// The knobs, bound to Params: kernel warps_per_sm bytes_per_load loads_in_flight ilp max_registers block
/// divergence break seed.
const lab::KnobTable<Params>& knob_table();

/// Registers per thread of the probed copy, at most: by its loads in flight. A run on a GPU checks it.
constexpr int copy_registers(Loads loads) {
  constexpr std::array<int, 4> kMost = {32, 40, 48, 72};
  return kMost.at(static_cast<std::size_t>(loads));
}

/// The break in effect: only the copy has one.
constexpr Break broken_of(const Params& params) {
  return params.kernel == Kernel::copy ? params.broken : Break::none;
}

/// Blocks per multiprocessor that together have warps_per_sm warps.
constexpr int blocks_per_sm(const Params& params) {
  return params.warps_per_sm * kLanes / threads_of(params.block);
}
/// Bytes that a multiprocessor requests before it must wait, by the knobs of a copy: warps × lanes × loads ×
/// bytes. With break = serialize-loads there is one load in flight.
constexpr int asked_bytes(const Params& params) {
  const int loads =
      broken_of(params) == Break::serialize_loads ? 1 : count_of(params.loads_in_flight);
  return params.warps_per_sm * kLanes * loads * bytes_of(params.bytes_per_load);
}

/// Dynamic shared memory per block: the kernel's own, or more to keep further blocks out.
int dynamic_shared_bytes(const Params& params);
/// Bytes per stage of a bulk copy: as many as one load of each of the block's threads.
constexpr int stage_bytes(const Params& params) {
  return bytes_of(params.bytes_per_load) * threads_of(params.block);
}

/// Threads of the kernel tail, in all.
inline constexpr int kTailThreads = 100'000;
constexpr int tail_blocks(const Params& params) {
  return (kTailThreads + threads_of(params.block) - 1) / threads_of(params.block);
}

}  // namespace tilestep::latency_hiding

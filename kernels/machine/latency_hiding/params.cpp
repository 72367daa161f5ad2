#include "kernels/machine/latency_hiding/params.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/base/lab/occupancy.hpp"
#include "kernels/machine/latency_hiding/kernels.hpp"

namespace tilestep::latency_hiding {

using lab::Demand, lab::Occupancy, lab::occupancy_of;

namespace {

int warps_of_block(const Params& params) {
  return threads_of(params.block) / kLanes;
}

/// The most warps of whole blocks that fit with this many registers per thread.
int most_warps(const Params& params, int registers) {
  return occupancy_of({.threads = threads_of(params.block), .registers = registers}).warps;
}

/// Registers that bound the warps: the limit that the spilling kernel is compiled for, or a copy's.
int bounding_registers(const Params& params) {
  if (params.kernel == Kernel::spill) return count_of(params.max_registers);
  return params.kernel == Kernel::copy ? copy_registers(params.loads_in_flight) : 32;
}

void check_warps(const Params& params) {
  const int of_block = warps_of_block(params);
  const int most = std::min(kMostWarps, kMostBlocks * of_block);
  const int warps = params.warps_per_sm;
  if (warps % of_block == 0 && warps <= most) return;
  const int works = std::clamp(warps / of_block * of_block, of_block, most);
  lab::refuse_with(
      "warps_per_sm", std::int64_t{warps}, fmt::format("block = {}", threads_of(params.block)),
      of_block == 1 ? fmt::format("1–{}: a multiprocessor holds {} blocks", most, kMostBlocks)
                    : fmt::format("multiples of {} up to {}: whole blocks", of_block, most),
      std::int64_t{works});
}

void check_registers(const Params& params) {
  const int registers = bounding_registers(params);
  const int most = most_warps(params, registers);
  if (params.warps_per_sm <= most) return;
  const std::string with =
      params.kernel == Kernel::spill
          ? fmt::format("kernel = spill and max_registers = {}", registers)
          : fmt::format("kernel = copy and loads_in_flight = {}", count_of(params.loads_in_flight));
  if (most == 0) {
    lab::refuse_with("block", std::string(name_of(params.block)), with,
                     "those whose threads get enough registers", std::string("32"));
  }
  lab::refuse_with(
      "warps_per_sm", std::int64_t{params.warps_per_sm}, with,
      fmt::format("up to {}: more threads do not get {} registers each", most, registers),
      std::int64_t{most});
}

void check_stages(const Params& params) {
  if (params.kernel != Kernel::bulk_copy) return;
  const auto fits = [&](Loads loads) {
    Params other = params;
    other.loads_in_flight = loads;
    const BulkShape shape = bulk_shape(other);
    const Occupancy all = occupancy_of(
        {.threads = threads_of(params.block), .dynamic_shared_bytes = shape.shared_bytes()});
    return all.resident >= blocks_per_sm(params);
  };
  if (fits(params.loads_in_flight)) return;
  std::string allowed;
  Loads works = Loads::l1;
  for (const Loads loads : all_of<Loads>()) {
    if (!fits(loads)) continue;
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", count_of(loads));
    works = loads;
  }
  lab::refuse_with("loads_in_flight", std::string(name_of(params.loads_in_flight)),
                   fmt::format("kernel = bulk-copy, warps_per_sm = {} and bytes_per_load = {}",
                               params.warps_per_sm, bytes_of(params.bytes_per_load)),
                   allowed + ": the stages of all blocks share 228 KB",
                   std::string(name_of(works)));
}

void check_tail(const Params& params) {
  if (params.kernel != Kernel::tail || params.block >= Block::b128) return;
  lab::refuse_with("block", std::string(name_of(params.block)), "kernel = tail", "128, 256, 512",
                   std::string(name_of(Block::b128)));
}

/// Shared memory per block with which no more than `blocks` fit.
int throttle_bytes(int blocks) {
  const Multiprocessor sm;
  const int each = sm.shared_bytes / blocks / sm.shared_unit * sm.shared_unit - sm.reserved_bytes;
  return std::min(each, sm.most_shared_of_block);
}

}  // namespace

int dynamic_shared_bytes(const Params& params) {
  int own = 0;
  if (params.kernel == Kernel::chase) own = kRingBytes;
  if (params.kernel == Kernel::bulk_copy) own = bulk_shape(params).shared_bytes();
  // If no further block would fit anyway, L1 keeps its room.
  const Demand demand{.threads = threads_of(params.block), .registers = bounding_registers(params)};
  if (occupancy_of(demand).resident <= blocks_per_sm(params)) return own;
  return std::max(own, throttle_bytes(blocks_per_sm(params)));
}

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .group("kernel")
          .choice(&Params::kernel, {"kernel", "Which kernel the warps run."})
          .integer(
              &Params::warps_per_sm,
              {"warps_per_sm", "Warps", "of an SM",
               "Resident warps per multiprocessor; unused shared memory keeps more blocks out."},
              1, kMostWarps)
          .choice(&Params::bytes_per_load,
                  {"bytes_per_load", "Load", "bytes", "Bytes per load of a thread."})
          .with("kernel", {"copy", "bulk-copy"})
          .choice(
              &Params::loads_in_flight,
              {"loads_in_flight", "Loads in flight", "",
               "Loads that a thread issues before it uses the first (copy); stages (bulk-copy)."})
          .with("kernel", {"copy", "bulk-copy"})
          .integer(&Params::ilp,
                   {"ilp", "Chains", "of a thread", "Independent chains of FMAs per thread."}, 1, 8)
          .with("kernel", {"fma"})
          .choice(&Params::max_registers, {"max_registers", "Registers", "of a thread",
                                           "Register limit that the kernel is compiled with."})
          .with("kernel", {"spill"})
          .choice(&Params::block, {"block", "Block", "threads", "Threads per block."})
          .choice(&Params::divergence, {"divergence", "Ways", "of a warp",
                                        "Arms of the branch that the lanes of a warp split over."})
          .with("kernel", {"diverge"})
          .with("break", {"divergent-branch"})
          .choice(
              &Params::broken,
              {"break", "Break it", "",
               "Use each load before issuing the next, or load inside a divergent branch (copy)."})
          .group("run")
          .seed("Seed of the data and of the pointer chase.")
          .require(check_warps)
          .require(check_registers)
          .require(check_stages)
          .require(check_tail);
  return table;
}

}  // namespace tilestep::latency_hiding

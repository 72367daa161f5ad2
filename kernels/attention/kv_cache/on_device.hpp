#pragma once

#include "kernels/attention/kv_cache/paged/work_plan.hpp"
#include "kernels/attention/kv_cache/quantize.hpp"

/// \file
/// The arrays of a launch.
namespace tilestep::kv_cache {

/// Work items on the device, and room for their parts.
struct DeviceCut {
  /// At most `rows` query heads per slot, each with `columns` numbers of O.
  DeviceCut(simt::Device& device, const paged::WorkPlan& plan, int rows, int columns);
  void add_to(paged::Arrays& arrays);

  simt::Buffer<paged::WorkItem> items;
  simt::Buffer<int> first_item, arrived, parts;
  simt::Buffer<float> part_o, part_m, part_l;
};

/// A cache on the device, with its queries and room for the answer. Bytes that no kernel writes are 0xFF: NaN.
struct OnDevice {
  OnDevice(simt::Device& device, const Inputs& inputs, const Cache& cache,
           const paged::WorkPlan& plan, int rows);
  paged::Arrays arrays();

  simt::Buffer<std::uint16_t> q;
  simt::Buffer<std::uint8_t> k, v;
  simt::Buffer<float> k_scales, v_scales;
  simt::Buffer<int> table, context;
  simt::Buffer<std::uint16_t> o;
  simt::Buffer<float> lse;
  DeviceCut cut;
};

}  // namespace tilestep::kv_cache

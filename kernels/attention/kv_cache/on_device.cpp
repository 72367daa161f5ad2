#include "kernels/attention/kv_cache/on_device.hpp"

#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::kv_cache {

using lab::unwritten, lab::uploaded;

DeviceCut::DeviceCut(simt::Device& device, const paged::WorkPlan& plan, int rows, int columns)
    : items(device, plan.items),
      first_item(device, plan.first_item),
      arrived(device, static_cast<std::size_t>(plan.slots)),
      parts(device, plan.parts),
      part_o(unwritten<float>(
          device, numeric::elements_of(plan.slots, rows) * static_cast<std::size_t>(columns))),
      part_m(unwritten<float>(device, numeric::elements_of(plan.slots, rows))),
      part_l(unwritten<float>(device, part_m.count())) {
  arrived.fill(0);
}

void DeviceCut::add_to(paged::Arrays& arrays) {
  arrays.items = items.span();
  arrays.first_item = first_item.span();
  arrays.part_o = part_o.span();
  arrays.part_m = part_m.span();
  arrays.part_l = part_l.span();
  arrays.arrived = arrived.span();
  arrays.parts = parts.span();
}

OnDevice::OnDevice(simt::Device& device, const Inputs& inputs, const Cache& cache,
                   const paged::WorkPlan& plan, int rows)
    : q(uploaded(device, words_of(inputs.q))),
      k(uploaded(device, cache.k.bytes)),
      v(uploaded(device, cache.v.bytes)),
      k_scales(uploaded(device, cache.k.scales)),
      v_scales(uploaded(device, cache.v.scales)),
      table(uploaded(device, inputs.flat_tables())),
      context(uploaded(device, inputs.contexts)),
      o(unwritten<std::uint16_t>(device, numeric::elements_of(inputs.batch(), inputs.layer.heads) *
                                             static_cast<std::size_t>(inputs.layer.row.value))),
      lse(unwritten<float>(device, numeric::elements_of(inputs.batch(), inputs.layer.heads))),
      cut(device, plan, rows, inputs.layer.row.value) {}

paged::Arrays OnDevice::arrays() {
  paged::Arrays arrays;
  arrays.q = q.span();
  arrays.k = k.span();
  arrays.v = v.span();
  arrays.k_scales = k_scales.span();
  arrays.v_scales = v_scales.span();
  arrays.table = table.span();
  arrays.context = context.span();
  arrays.o = o.span();
  arrays.lse = lse.span();
  cut.add_to(arrays);
  return arrays;
}

}  // namespace tilestep::kv_cache

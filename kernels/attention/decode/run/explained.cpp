#include "kernels/attention/decode/run/explained.hpp"

namespace tilestep::decode {
namespace {

/// What is asked of the kernel for mla.
latent::ExplainedProblem latent_problem_of(const paged::Problem& problem, const Inputs& inputs) {
  return {problem.heads,          inputs.layer.row.key,
          inputs.layer.row.value, problem.page_size,
          problem.table_pitch,    problem.most_rows,
          problem.most_requests,  static_cast<float>(inputs.scale),
          problem.merging};
}

}  // namespace

Way way_of(simt::Device& device, const Case& of, const Inputs& inputs) {
  const Kernels& kernels = kernels_of(device);
  const RowShape& row = inputs.layer.row;
  if (row.latent == 0) return kv_cache::way_of(device, kernels, of, inputs);
  // As many query heads go together as a block has room for; each such group reads the latent rows.
  const int heads = inputs.layer.heads;
  const int groups = heads / latent::heads_of_item(heads, row.value);
  return {{heads, groups, inputs.page_size},
          latent::most_heads(row.value),
          [&](const Outcome& outcome, const paged::Arrays& arrays, const paged::Explanation& what) {
            kernels.explain(device, latent_problem_of(outcome.problem, inputs), arrays, what);
          }};
}

Outcome run_explained(simt::Device& device, const Case& of, const Inputs& inputs,
                      const Cache& cache, const Chosen& chosen) {
  return kv_cache::run_explained(device, of, inputs, cache, chosen, way_of(device, of, inputs));
}

}  // namespace tilestep::decode

// Runs the lesson's kernels: queries and keys are mapped, one query meets all keys, then all tokens are processed one by
// one and by chunks, timed kernels and explained ones.

#include "kernels/attention/linear_attention/run/run.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::linear_attention {
namespace {

std::size_t words(int rows, int dim) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(dim);
}
std::vector<float> or_ones(std::vector<float> some) {
  if (some.empty()) some.push_back(1);
  return some;
}

Words mapped(simt::Device& device, const Run& run, const Words& x) {
  const auto from = lab::uploaded(device, x);
  const auto omega = lab::uploaded(device, run.inputs.omega);
  auto to = lab::unwritten<std::uint16_t>(device, x.size());
  kernels_of(device).features(device, run.params.features(run.params.context), from.span(),
                              omega.span(), to.span());
  device.synchronize();
  return to.download();
}

Memory memory_of(simt::Device& device, const Run& run, int chunk) {
  Shape shape = run.params.shape();
  shape.chunk = chunk;
  return {device,          shape, run.mapped_q, run.mapped_k, run.inputs.v, run.inputs.log_gates,
          run.inputs.betas};
}

Results timed(simt::Device& device, const Run& run, bool chunked, int chunk) {
  Memory memory = memory_of(device, run, chunk);
  if (chunked) {
    kernels_of(device).chunked(device, memory.shape(), memory.arrays(), Break::none, {});
  } else {
    kernels_of(device).recurrent(device, memory.shape(), memory.arrays(), false, {}, {});
  }
  device.synchronize();
  return memory.results();
}

/// The first kShown numbers of each row.
std::vector<float> shown_rows(std::span<const float> rows, int dim) {
  std::vector<float> all;
  for (std::size_t row = 0; row < rows.size(); row += static_cast<std::size_t>(dim)) {
    for (std::size_t i = 0; i < kShown; ++i) all.push_back(rows[row + i]);
  }
  return all;
}

void record_weights(simt::Device& device, Run& run) {
  const int dim = run.params.dim(), tokens = run.params.context;
  const std::size_t last = words(tokens - 1, dim);
  const auto upload = [&](const Words& all, std::size_t from) {
    return lab::uploaded(device, Words(all.begin() + static_cast<std::ptrdiff_t>(from), all.end()));
  };
  const auto q = upload(run.inputs.q, last), k = upload(run.inputs.k, 0),
             mapped_q = upload(run.mapped_q, last), mapped_k = upload(run.mapped_k, 0),
             v = upload(run.inputs.v, 0);
  auto answers = lab::unwritten<float>(device, words(3, dim));
  simt::Trace recording(device, 2 * words(tokens, 1) + words(3, dim));
  kernels_of(device).weights(
      device, run.params.shape(),
      {q.span(), k.span(), mapped_q.span(), mapped_k.span(), v.span(), answers.span()},
      recording.tape());
  device.synchronize();
  run.all_answers = answers.download();
  const simt::Trace::Log log = recording.download();
  Trace& trace = run.trace;
  trace.exact = log.all_notes<float>(kExact, words(tokens, 1), "softmax's weights");
  trace.approximate = log.all_notes<float>(kApproximate, words(tokens, 1), "the weights");
  const std::vector<float> answer =
      shown_rows(log.all_notes<float>(kAnswer, words(3, dim), "the answers"), dim);
  const auto part = [&](int i) {
    return std::vector<float>(answer.begin() + i * kShown, answer.begin() + (i + 1) * kShown);
  };
  trace.by_softmax = part(0);
  trace.by_weights = part(1);
  trace.by_state = part(2);
}

void record_tokens(simt::Device& device, Run& run) {
  Trace& trace = run.trace;
  const std::size_t tokens = words(trace.tokens, 1), rows = words(trace.tokens, kShown),
                    squares = words(kShown, kShown), repeats = words(trace.repeats, 1);
  Memory memory = memory_of(device, run, run.params.chunk());
  const auto probes = lab::uploaded(
      device, Words(run.mapped_k.begin(),
                    run.mapped_k.begin() +
                        static_cast<std::ptrdiff_t>(words(trace.repeats, run.params.dim()))));
  simt::Trace recording(device, tokens * squares + rows * (2 + repeats));
  kernels_of(device).recurrent(device, memory.shape(), memory.arrays(), false,
                               {probes.span(), trace.repeats}, recording.tape());
  device.synchronize();
  const simt::Trace::Log log = recording.download();
  trace.states = log.all_notes<float>(kState, tokens * squares, "the states");
  trace.before = log.all_notes<float>(kBefore, rows, "what the state held before");
  trace.held = log.all_notes<float>(kProbe, rows * repeats, "what the state holds");
  trace.out = log.all_notes<float>(kOut, rows, "the outputs");
}

/// What an explained launch by chunks left and noted.
Results record_chunks(simt::Device& device, Run& run, Break broken) {
  Trace& trace = run.trace;
  const std::size_t rows = words(trace.tokens, kShown), square = words(kShown, kShown),
                    chunks = words(trace.chunks(), 1), width = words(trace.chunk, 1);
  Memory memory = memory_of(device, run, trace.chunk);
  simt::Trace recording(device,
                        words(trace.tokens, trace.chunk) + chunks * square + 2 * rows + 1024);
  kernels_of(device).chunked(device, memory.shape(), memory.arrays(), broken, recording.tape());
  device.synchronize();
  const simt::Trace::Log log = recording.download();
  trace.handed = log.all_notes<float>(kHanded, chunks * square, "the states of the chunks");
  trace.inter = log.all_notes<float>(kInter, rows, "what the states say");
  trace.chunk_out = log.all_notes<float>(kOut, rows, "the outputs of the chunks");
  // Products above the diagonal are not computed strip by strip: they count as 0.
  trace.products = log.notes<float>(kProduct, words(trace.tokens, trace.chunk), NAN);
  std::size_t missing = 0;
  for (std::size_t i = 0; i < trace.products.size(); ++i) {
    if (!std::isnan(trace.products[i])) continue;
    missing += i % width <= i / width % width ? 1 : 0;
    trace.products[i] = 0;
  }
  if (missing > 0)
    simt::refuse_unrecorded("the masked product", trace.products.size() - missing,
                            trace.products.size());
  return memory.results();
}

/// Numbers of the output that are wrong, by their tokens; all, and those of the shown columns.
void find_wrong(Run& run, const Results& got) {
  Trace& trace = run.trace;
  const ReferenceHead exact = reference_head(head_of(run), trace.dim, trace.rule, Way::chunked);
  trace.wrong.assign(words(trace.tokens, 1), 0);
  for (std::size_t i = 0; i < got.o.size(); ++i) {
    const auto value = static_cast<double>(numeric::Bf16::value(got.o[i]));
    if (std::abs(value - exact.o.value[i]) <= exact.o.bound[i]) continue;
    ++trace.wrong[i / words(1, trace.dim)];
    ++trace.result.wrong;
  }
}

}  // namespace

Memory::Memory(simt::Device& device, const Shape& shape, const Words& q, const Words& k,
               const Words& v, const std::vector<float>& log_gates, const std::vector<float>& betas)
    : shape_(shape),
      q_(lab::uploaded(device, q)),
      k_(lab::uploaded(device, k)),
      v_(lab::uploaded(device, v)),
      log_gates_(lab::uploaded(device, or_ones(log_gates))),
      betas_(lab::uploaded(device, or_ones(betas))),
      o_(device, v.size()),
      states_(device, words(shape.heads * chunks_of(shape), shape.dim * shape.dim)),
      values_(device, corrects(shape.rule) ? v.size() : 1),
      readers_(device, corrects(shape.rule) ? v.size() : 1),
      state_(device, words(shape.heads, shape.dim * shape.dim)),
      decays_(device, gates(shape.rule) ? words(shape.heads, shape.tokens) : 1) {
  forget();
}

void Memory::forget() {
  for (simt::Buffer<std::uint16_t>* one : {&o_, &states_, &values_, &readers_}) one->fill(0xFF);
  state_.fill(0xFF);
  decays_.fill(0xFF);
}

Arrays Memory::arrays() {
  return {.q = std::as_const(q_).span(),
          .k = std::as_const(k_).span(),
          .v = std::as_const(v_).span(),
          .log_gates = std::as_const(log_gates_).span(),
          .betas = std::as_const(betas_).span(),
          .o = o_.span(),
          .state = state_.span(),
          .decays = decays_.span(),
          .states = states_.span(),
          .values = values_.span(),
          .readers = readers_.span()};
}

Head head_of(const Run& run) {
  return {run.mapped_q, run.mapped_k, run.inputs.v, run.inputs.log_gates, run.inputs.betas};
}

lab::Closest compared(const Words& o, const numeric::AllBounded& exact, int dim) {
  lab::Closest closest;
  for (std::size_t i = 0; i < exact.value.size(); ++i)
    closest.add(numeric::Bf16::value(o[i]), exact.value[i], exact.bound[i], [&] {
      return fmt::format("token {}, number {}", i / words(1, dim), i % words(1, dim));
    });
  return closest;
}
lab::Closest compared(const std::vector<float>& got, const numeric::AllBounded& exact) {
  return lab::compared(got, exact.value, exact.bound);
}

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  run.params = params;
  progress.report(0.05, "making tokens");
  run.inputs = make_inputs({.tokens = params.context,
                            .dim = params.dim(),
                            .repeat = params.repeat,
                            .gate = params.gate,
                            .beta = params.beta},
                           params.seed);
  Trace& trace = run.trace;
  trace.feature = params.feature;
  trace.rule = params.rule;
  trace.broken = params.broken;
  trace.dim = params.dim();
  trace.tokens = params.context;
  trace.chunk = params.chunk();
  trace.repeats = params.repeat;
  trace.gate = params.gate;
  trace.beta = params.beta;
  run.mapped_q = mapped(device, run, run.inputs.q);
  run.mapped_k = mapped(device, run, run.inputs.k);
  trace.keys = shown_rows(values_of(run.mapped_k), trace.dim);
  trace.values = shown_rows(values_of(run.inputs.v), trace.dim);
  progress.check();

  progress.report(0.2, "one query against all keys");
  record_weights(device, run);
  progress.report(0.3, "token by token");
  run.recurrent = timed(device, run, false, params.chunk());
  record_tokens(device, run);
  progress.check();

  progress.report(0.5, "chunk by chunk");
  for (const int chunk : kChunks) run.by_chunks.push_back(timed(device, run, true, chunk));
  run.shown = record_chunks(device, run, Break::none);
  find_wrong(run, run.shown);
  if (params.broken == Break::none) return run;
  trace.result = {};
  find_wrong(run, record_chunks(device, run, params.broken));
  const auto numbers = static_cast<int>(words(trace.tokens, trace.dim));
  trace.result.outcome = trace.result.wrong == 0 ? "no number is wrong all the same"
                                                 : fmt::format("{} of {} numbers are wrong",
                                                               trace.result.wrong, numbers);
  return run;
}

}  // namespace tilestep::linear_attention

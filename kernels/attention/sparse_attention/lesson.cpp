#include "kernels/attention/sparse_attention/lesson.hpp"

#include "kernels/attention/sparse_attention/bench/bench.hpp"
#include "kernels/attention/sparse_attention/run/run.hpp"
#include "kernels/base/lab/knob.hpp"
#include "kernels/base/lab/replay.hpp"

namespace tilestep::sparse_attention {
namespace {

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  return report_of(run_of(params, device, progress));
}

/// The parts of a run that depend on its GPU.
const lab::Replay& replay_of_runs() {
  static const lab::Replay kReplay{
      .of_machine = {{"trace.result", "how many are past a tolerance is a matter of the last bit"}},
      .rounding = 0x1p-14,
      .rounding_why = "exp and the sums of weights differ in their last bits."};
  return kReplay;
}

}  // namespace

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .group("model")
          .choice(&Params::method, {"method", "Method", "", "Which keys a query sees."})
          .integer(&Params::window,
                   {"window", "Window", "tokens",
                    "How many a query sees; of block-sparse about, of prefix the first."},
                   1, 64)
          .with("method", {"sliding-window", "strided", "block-sparse", "prefix"})
          .integer(&Params::context, {"context", "Tokens", "", "Tokens in the text."}, 8, 64)
          .integer(&Params::top_k, {"top_k", "Top-k", "tokens", "That dsa chooses."}, 1, 64)
          .integer(&Params::indexer_heads,
                   {"indexer_heads", "Indexer's heads", "", "Heads that score the tokens."}, 1, 8)
          .group("kernel")
          .choice(&Params::tile_choice,
                  {"tile", "Tile", "", "Queries and keys of a tile; of dsa tokens at a time."},
                  {"4", "8", "16", "32"})
          .choice(&Params::finding,
                  {"found", "Tiles found by", "", "How the rule is asked about a tile."})
          .with("method", {"causal", "sliding-window", "strided", "block-sparse", "documents",
                           "prefix", "own"})
          .group("run")
          .choice(&Params::broken,
                  {"break", "Break it", "", "Makes a mistake and runs it for real."})
          .with("method", {"dsa"})
          .seed();
  return table;
}

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(kLesson,
                            "What attention leaves out costs nothing only if a whole tile, or a "
                            "row of the cache, is left out.",
                            knob_table(), run, bench_report)
          .with_telling({{"strided",
                          "As few pairs as the window's, and twice the tiles.",
                          {.method = Method::strided}},
                         {"block-sparse",
                          "A rule made of blocks: hardly a pair is computed in vain.",
                          {.method = Method::block_sparse}},
                         {"corners",
                          "Four corners do not know what is between them.",
                          {.method = Method::strided, .window = 6, .finding = Finding::corners}},
                         {"dsa",
                          "An indexer scores all tokens, attention reads the best.",
                          {.method = Method::dsa}},
                         {"scattered-keys",
                          "Rows of other tokens: right scores of wrong keys.",
                          {.method = Method::dsa, .broken = Break::scattered_keys}},
                         {"stale-top-k",
                          "Attention reads what was best for the token before.",
                          {.method = Method::dsa, .broken = Break::stale_top_k}}})
          .with_trials({{},
                        {.method = Method::own, .context = 61},
                        {.method = Method::strided, .window = 5, .tile_choice = 2, .context = 50},
                        {.method = Method::documents, .tile_choice = 0},
                        {.method = Method::dsa, .context = 61},
                        {.method = Method::dsa, .tile_choice = 3, .top_k = 3}})
          .with_small_bench([](simt::Device& device, lab::Progress& progress) {
            return bench_report(device, progress, BenchSizes::tiny());
          })
          .with_replay(replay_of_runs);
  return lesson;
}

}  // namespace tilestep::sparse_attention

// The host's side of decode steps: what it submits, in which streams, and what it captures.

#include <algorithm>
#include <map>

#include "kernels/systems/launches/run/run.hpp"

namespace tilestep::launches {
namespace {

const Kernels& kernels_of(const simt::Device& device) {
  return static_cast<const Kernels&>(device.kernels(kLessonId));
}

template <class T>
simt::Span<T> part(simt::Span<T> all, std::size_t first, std::size_t count) {
  return {all.data + first, count};
}
std::size_t times(int a, int b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

/// The weights from their second element on, so that no row is aligned to 16 bytes.
std::vector<std::uint16_t> shifted(const std::vector<std::uint16_t>& from) {
  std::vector<std::uint16_t> all(from.size() + 1);
  std::copy(from.begin(), from.end(), all.begin() + 1);
  return all;
}

class Host {
 public:
  Host(const StepsPlan& plan, const Weights& weights, simt::Device& device)
      : plan_(plan),
        device_(device),
        kernels_(kernels_of(device)),
        streams_(device.make_streams(plan.order)),
        table_(device, weights.table),
        gains_(device, weights.gains),
        gate_(device, weights.gate),
        shifted_(device, shifted(weights.gate)),
        up_(device, weights.up),
        down_(device, weights.down),
        h_(device, times(kMostBatch, plan.model.width)),
        n_(device, h_.count()),
        d_(device, h_.count()),
        gates_(device, times(kMostBatch, plan.model.inner)),
        ups_(device, gates_.count()),
        a_(device, gates_.count()),
        arrived_(device, 1),
        begins_(device, slots()),
        ends_(device, slots()) {
    if (streams_ == nullptr)
      throw Error("launches: " + device.info().name + " has no streams", ExitCode::unavailable);
    first_ = streams_->make_stream();
    second_ = streams_->make_stream();
    replace_tokens();
    name_arrays();
  }

  StepsDone done() {
    StepsDone all;
    for (std::size_t step = 0; step < plan_.tokens.size(); ++step) {
      all.first_calls.push_back(static_cast<int>(streams_->log().calls.size()));
      if (plan_.broken == Break::stale_pointer && step > 0) replace_tokens();
      if (device_.can_time()) clear_stamps();
      all.steps.push_back(run_step(plan_.tokens[step]));
      const std::size_t batch = plan_.tokens[step].size();
      all.h.push_back(h_.download(batch * static_cast<std::size_t>(plan_.model.width)));
      all.stamps.push_back(device_.can_time() ? read_stamps()
                                              : std::vector<std::pair<double, double>>());
    }
    all.log = streams_->log();
    return all;
  }

 private:
  std::size_t slots() const { return static_cast<std::size_t>(launches_of(plan_.model.layers)); }
  Stamps stamps(int slot) {
    return device_.can_time() ? Stamps{begins_.span(), ends_.span(), slot} : Stamps{};
  }
  void clear_stamps() {
    begins_.fill(0xFF);
    ends_.fill(0);
    device_.synchronize();
  }
  std::vector<std::pair<double, double>> read_stamps() const {
    const auto begins = begins_.download(), ends = ends_.download();
    std::vector<std::pair<double, double>> all;
    for (std::size_t i = 0; i < begins.size(); ++i) {
      all.emplace_back(static_cast<double>(begins[i]), static_cast<double>(ends[i]));
    }
    return all;
  }

  /// Another array for the tokens. The old one stays allocated, as an allocator with a pool keeps it.
  void replace_tokens() {
    tokens_.emplace_back(device_, std::vector<int>(kMostBatch));
    streams_->name(tokens_.back().span(), "tokens");
  }
  void name_arrays() {
    streams_->name(h_.span(), "h");
    streams_->name(n_.span(), "n");
    streams_->name(d_.span(), "d");
    streams_->name(gates_.span(), "gate");
    streams_->name(ups_.span(), "up");
    streams_->name(a_.span(), "a");
  }

  // ---- one step ------------------------------------------------------------------------------------

  StepTrace run_step(const std::vector<int>& tokens) {
    StepTrace step;
    step.batch = step.rows = static_cast<int>(tokens.size());
    if (plan_.mode == Mode::persistent) {
      step.how = How::persistent;
      upload(tokens, step.rows);
      submit_persistent(step.rows);
    } else if (plan_.mode == Mode::bucketed && bucket_of(step.batch) == 0) {
      step.how = How::no_bucket;
      upload(tokens, step.rows);
      submit(step.rows);
    } else if (plan_.mode == Mode::eager) {
      upload(tokens, step.rows);
      submit(step.rows);
    } else {
      if (plan_.mode == Mode::bucketed) step.rows = bucket_of(step.batch);
      const simt::GraphExec graph = plan_.mode == Mode::graph ? graph_for(step) : bucket_for(step);
      upload(tokens, step.rows);
      streams_->replay(graph, first_);
    }
    streams_->synchronize(first_);
    return step;
  }

  void upload(std::vector<int> tokens, int rows) {
    tokens.resize(static_cast<std::size_t>(rows));  // padding is token 0
    const std::string array = tokens_.size() == 1 ? "" : " " + std::to_string(tokens_.size());
    streams_->upload(first_, "tokens" + array, part(tokens_.back().span(), 0, tokens.size()),
                     tokens);
  }

  int bucket_of(int batch) const {
    const auto found = std::lower_bound(plan_.buckets.begin(), plan_.buckets.end(), batch);
    return found == plan_.buckets.end() ? 0 : *found;
  }

  simt::Graph captured(int rows) {
    streams_->begin_capture(first_);
    submit(rows);
    return streams_->end_capture(first_);
  }
  /// One graph, which follows the batch.
  simt::GraphExec graph_for(StepTrace& step) {
    const auto found = graphs_.find(0);
    if (found == graphs_.end()) {
      step.how = How::captured;
      graphs_.emplace(0, streams_->instantiate(captured(step.rows)));
    } else if (step.rows == captured_rows_) {
      step.how = How::replayed;
    } else if (const simt::Graph other = captured(step.rows);
               streams_->update(found->second, other)) {
      step.how = How::updated;
    } else {
      step.how = How::captured;
      found->second = streams_->instantiate(other);
    }
    captured_rows_ = step.rows;
    return graphs_.at(0);
  }
  /// A graph per bucket, captured when it is first needed.
  simt::GraphExec bucket_for(StepTrace& step) {
    step.how = How::replayed;
    if (graphs_.count(step.rows) == 0) {
      step.how = How::captured;
      graphs_.emplace(step.rows, streams_->instantiate(captured(step.rows)));
    }
    return graphs_.at(step.rows);
  }

  /// A launch, and with host-sync a wait for it. What is captured cannot be waited for.
  void launch(simt::Stream stream, int place, const std::function<void(const Stamps&)>& work) {
    streams_->in(stream, label_at(place), [&] { work(stamps(place)); });
    if (plan_.broken == Break::host_sync && plan_.mode == Mode::eager) {
      streams_->synchronize(stream);
    }
  }

  void submit(int rows) {
    StepShape shape = plan_.model;
    shape.batch = rows;
    launch(first_, place_of(Op::embed, 0), [&](const Stamps& at) {
      kernels_.embed(device_, shape, tokens_.back().span(), table_.span(), h_.span(), at);
    });
    for (int layer = 0; layer < shape.layers; ++layer) submit_layer(shape, layer);
  }

  void submit_layer(const StepShape& shape, int layer) {
    const auto width = static_cast<std::size_t>(shape.width);
    const auto at = [&](Op op) { return place_of(op, layer); };
    launch(first_, at(Op::norm), [&](const Stamps& stamp) {
      kernels_.norm(device_, shape, h_.span(),
                    part(simt::Span<const float>(gains_.span()),
                         static_cast<std::size_t>(layer) * width, width),
                    n_.span(), stamp);
    });
    streams_->wait(second_, streams_->record(first_));  // up needs n too
    launch(first_, at(Op::gate), [&](const Stamps& stamp) {
      product(shape, Op::gate, layer, n_.span(), gates_.span(), stamp);
    });
    launch(second_, at(Op::up), [&](const Stamps& stamp) {
      product(shape, Op::up, layer, n_.span(), ups_.span(), stamp);
    });
    const simt::Event up_is_done = streams_->record(second_);
    const bool in_time = plan_.broken != Break::missing_dependency;
    if (in_time) streams_->wait(first_, up_is_done);
    launch(first_, at(Op::act), [&](const Stamps& stamp) {
      kernels_.act(device_, shape, gates_.span(), ups_.span(), a_.span(), stamp);
    });
    if (!in_time) streams_->wait(first_, up_is_done);
    launch(first_, at(Op::down), [&](const Stamps& stamp) {
      product(shape, Op::down, layer, a_.span(), d_.span(), stamp);
    });
    launch(first_, at(Op::add),
           [&](const Stamps& stamp) { kernels_.add(device_, shape, d_.span(), h_.span(), stamp); });
  }

  /// The kernel is the dispatcher's choice.
  void product(const StepShape& shape, Op op, int layer, simt::Span<const float> x,
               simt::Span<float> y, const Stamps& stamp) {
    const bool down = op == Op::down;
    const ProductShape product{down ? shape.width : shape.inner, down ? shape.inner : shape.width,
                               shape.batch};
    const std::size_t count = times(product.rows, product.k);
    const std::size_t first = static_cast<std::size_t>(layer) * count;
    const bool moved = op == Op::gate && layer >= shape.layers - plan_.fallback;
    const simt::Span<const std::uint16_t> w = down           ? down_.span()
                                              : op == Op::up ? up_.span()
                                              : moved        ? shifted_.span()
                                                             : gate_.span();
    const Choice choice =
        chosen_for({.m = shape.batch, .n = product.rows, .k = product.k, .offset = moved ? 2 : 0});
    const bool single = choice.kernel == Kernel::single;
    const char* const name = down ? "down" : op == Op::up ? "up" : single ? "gate_single" : "gate";
    kernels_.product(device_, name, single ? Loads::single : Loads::vectors, product,
                     {part(w, first + (moved ? 1 : 0), count), x, y}, stamp);
  }

  void submit_persistent(int rows) {
    StepShape shape = plan_.model;
    shape.batch = rows;
    streams_->in(first_, "counter to 0", [&] { arrived_.fill(0); });
    streams_->in(first_, std::string(kWholeStep), [&] {
      kernels_.persistent(device_, shape,
                          {tokens_.back().span(), table_.span(), gains_.span(), gate_.span(),
                           up_.span(), down_.span(), h_.span(), a_.span(), arrived_.span()},
                          stamps(0), plan_.broken != Break::missing_dependency);
    });
  }

  const StepsPlan& plan_;
  simt::Device& device_;
  const Kernels& kernels_;
  std::shared_ptr<simt::Streams> streams_;
  simt::Stream first_, second_;
  std::vector<simt::Buffer<int>> tokens_;  ///< the last one is in use
  simt::Buffer<float> table_, gains_;
  simt::Buffer<std::uint16_t> gate_, shifted_, up_, down_;
  simt::Buffer<float> h_, n_, d_, gates_, ups_, a_;
  simt::Buffer<unsigned> arrived_;
  simt::Buffer<unsigned long long> begins_, ends_;
  std::map<int, simt::GraphExec> graphs_;  ///< by bucket
  int captured_rows_ = 0;
};

}  // namespace

std::string label_at(int place) {
  const std::string name(name_of(op_at(place)));
  return place == 0 ? name : name + " " + std::to_string(layer_at(place) + 1);
}

StepsDone steps_done(const StepsPlan& plan, const Weights& weights, simt::Device& device) {
  return Host(plan, weights, device).done();
}

}  // namespace tilestep::launches

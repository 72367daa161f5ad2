#include "kernels/attention/paged_kv/serving.hpp"

#include <algorithm>
#include <deque>
#include <map>

#include "kernels/base/lab/random.hpp"

namespace tilestep::paged_kv {
namespace {

struct Request {
  int prompt = 0;
  int steps = 0;  ///< that it runs; 0: beyond the timeline
  int made = 0;   ///< tokens, before it was preempted
};

/// Tokens that a request makes in a step, so that pages fill visibly.
int stride_of(int context) {
  return std::max(1, context / 16);
}

std::vector<Request> requests_of(const Params& params, int all_steps) {
  std::mt19937 generator = lab::generator_of(params.seed + 3);
  const int grown = stride_of(params.context) * all_steps / 2;
  std::vector<Request> requests;
  for (int r = 0; r < params.requests; ++r) {
    Request request;
    const auto spread = static_cast<unsigned>(params.context) + 1;
    const int length = params.context / 2 + static_cast<int>(generator() % spread);
    request.prompt = std::max(length - grown, std::min(params.prefix, length));
    // The last ones are still running at the end, so that the kernel has work.
    const int steps =
        2 + static_cast<int>(generator() % (static_cast<unsigned>(all_steps) / 2 + 1));
    request.steps = r + params.batch >= params.requests ? 0 : steps;
    requests.push_back(request);
  }
  return requests;
}

class Engine {
 public:
  Engine(const Params& params, int pages, int steps)
      : params_(params),
        requests_(requests_of(params, steps)),
        tables_(pages, tokens_of(params.page_size)) {
    for (int r = 0; r < params.requests; ++r) waiting_.push_back(r);
  }

  Served step(int stride) {
    events_.clear();
    leave();
    admit();
    for (int token = 0; token < stride; ++token) grow();
    return moment();
  }

 private:
  struct Lane {
    int request = 0;
    int table = 0;  ///< its number among the block tables
    int age = 0;    ///< steps
  };

  int held(const Lane& lane) const {
    return static_cast<int>(tables_.table(lane.table).pages.size());
  }

  void leave() {
    for (std::size_t i = 0; i < lanes_.size();) {
      Lane& lane = lanes_[i];
      const int steps = requests_[static_cast<std::size_t>(lane.request)].steps;
      if (steps > 0 && lane.age >= steps) {
        events_.push_back({Happening::finished, lane.request, held(lane)});
        tables_.finish(lane.table);
        lanes_.erase(lanes_.begin() + static_cast<std::ptrdiff_t>(i));
        ++finished_;
      } else {
        ++lane.age;
        ++i;
      }
    }
  }

  /// First come, first admitted; no request overtakes one that waits for pages.
  void admit() {
    while (!waiting_.empty() && static_cast<int>(lanes_.size()) < params_.batch) {
      const int r = waiting_.front();
      const Request& request = requests_[static_cast<std::size_t>(r)];
      const int tokens = request.prompt + request.made;
      const int shared = std::min(params_.prefix, tokens);
      const bool shares =
          shared > 0 && !lanes_.empty() && tables_.table(lanes_.front().table).tokens >= shared;
      const auto admitted = shares ? tables_.admit_after(lanes_.front().table, shared, tokens)
                                   : tables_.admit(tokens);
      if (!admitted) {
        events_.push_back({Happening::waits, r, tables_.pages_for(tokens)});
        return;
      }
      waiting_.pop_front();
      lanes_.push_back({r, admitted->request, 1});
      events_.push_back({admitted->shared_pages > 0 ? Happening::shared : Happening::admitted, r,
                         tables_.pages_for(tokens) - admitted->shared_pages});
    }
  }

  void grow() {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      while (i < lanes_.size() && !tables_.append(lanes_[i].table)) preempt();
    }
  }

  void preempt() {
    const Lane lane = lanes_.back();
    lanes_.pop_back();
    Request& request = requests_[static_cast<std::size_t>(lane.request)];
    request.made = tables_.table(lane.table).tokens - request.prompt;
    events_.push_back({Happening::preempted, lane.request, held(lane)});
    tables_.finish(lane.table);
    waiting_.push_front(lane.request);
  }

  Served moment() const {
    Served now;
    now.events = events_;
    now.waiting = static_cast<int>(waiting_.size());
    now.finished = finished_;
    const auto pages = static_cast<std::size_t>(tables_.pool().pages());
    now.owner.assign(pages, -1);
    now.holders.assign(pages, 0);
    now.filled.assign(pages, 0);
    for (const Lane& lane : lanes_) {
      const BlockTable& table = tables_.table(lane.table);
      now.running.push_back({lane.request, table.tokens, table.pages});
      for (std::size_t i = 0; i < table.pages.size(); ++i) {
        const auto page = static_cast<std::size_t>(table.pages[i]);
        const int here =
            std::min(table.tokens - static_cast<int>(i) * tables_.page_size(), tables_.page_size());
        if (now.owner[page] < 0) now.owner[page] = lane.request;
        ++now.holders[page];
        now.filled[page] = std::max(now.filled[page], here);
      }
    }
    return now;
  }

  const Params& params_;
  std::vector<Request> requests_;
  BlockTables tables_;
  std::deque<int> waiting_;
  std::vector<Lane> lanes_;
  std::vector<Happened> events_;
  int finished_ = 0;
};

}  // namespace

int Served::free_pages() const {
  return static_cast<int>(std::count(holders.begin(), holders.end(), 0));
}

int Served::tokens() const {
  int sum = 0;
  for (const int tokens : filled) sum += tokens;
  return sum;
}

namespace {

int limit_of(const Params& params, int steps) {
  return params.context / 2 + params.context + stride_of(params.context) * steps;
}

}  // namespace

std::int64_t pool_tokens(const Params& params, int steps) {
  const std::int64_t average = std::int64_t{params.batch} * params.context;
  return std::max<std::int64_t>(average + average / 8, limit_of(params, steps));
}

Serving serve(const Params& params, int steps) {
  Serving serving;
  serving.page_size = tokens_of(params.page_size);
  serving.stride = stride_of(params.context);
  serving.limit = limit_of(params, steps);
  serving.pages =
      static_cast<int>((pool_tokens(params, steps) + serving.page_size - 1) / serving.page_size);
  Engine engine(params, serving.pages, steps);
  for (int step = 0; step < steps; ++step) {
    serving.steps.push_back(engine.step(serving.stride));
  }
  return serving;
}

}  // namespace tilestep::paged_kv

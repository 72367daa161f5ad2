#include "kernels/base/simt/stream.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace tilestep::simt {
namespace {

double now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

void insert_all(std::vector<int>& to, const std::vector<int>& from) {
  for (const int each : from) {
    if (std::find(to.begin(), to.end(), each) == to.end()) to.push_back(each);
  }
}

}  // namespace

Streams::Streams(const StreamOptions& options) : options_(options), random_(options.seed) {
  log_.start_ms = now_ms();
}
Streams::~Streams() = default;

// ---- the calls --------------------------------------------------------------------------------------

int Streams::call(CallKind kind, int stream, int object, std::string label) {
  StreamLog::Call made{.kind = kind, .stream = stream, .object = object, .label = std::move(label)};
  made.captured = stream >= 0 && lanes_.at(static_cast<std::size_t>(stream)).captured;
  made.tick = log_.ticks;
  made.begin_ms = now_ms() - log_.start_ms;
  log_.calls.push_back(std::move(made));
  return static_cast<int>(log_.calls.size()) - 1;
}

/// The device has had a moment to do what it may by now.
void Streams::finish_call(int call) {
  log_.calls[static_cast<std::size_t>(call)].end_ms = now_ms() - log_.start_ms;
  advance();
}

Streams::Lane& Streams::lane(Stream stream) {
  return lanes_.at(static_cast<std::size_t>(stream.id));
}

Stream Streams::make_stream() {
  lanes_.emplace_back();
  const int id = static_cast<int>(lanes_.size()) - 1;
  on_make_stream(id);
  return {id};
}

void Streams::name_memory(const void* begin, std::size_t bytes, std::string name) {
  const int now = static_cast<int>(log_.calls.size());
  for (StreamLog::Named& each : log_.names) {
    if (each.name == name && each.until_call < 0) each.until_call = now;
  }
  log_.names.push_back({std::move(name), begin, bytes, now, -1});
}

void Streams::in(Stream stream, std::string label, const std::function<void()>& work) {
  label_ = std::move(label);
  current_ = stream.id;
  entered_ms_ = now_ms() - log_.start_ms;
  on_enter(stream.id);
  try {
    work();
  } catch (...) {
    current_ = -1;
    on_leave();
    throw;
  }
  current_ = -1;
  on_leave();
}

void Streams::submit(Submitted submitted) {
  if (taken_ != nullptr) {
    taken_->push_back(std::move(submitted));
    return;
  }
  const int made = call(CallKind::launch, current_, -1, label_);
  log_.calls.back().begin_ms = std::exchange(entered_ms_, now_ms() - log_.start_ms);
  add(made, current_, label_, std::move(submitted));
  finish_call(made);
}

void Streams::upload_bytes(Stream stream, std::string label, void* to, const void* host,
                           std::size_t bytes) {
  if (lane(stream).captured) throw Error("a copy from the host's memory is not captured here");
  const int made = call(CallKind::upload, stream.id, -1, label);
  add(made, stream.id, label, {"copy", {{to, bytes, true}}, on_upload(stream.id, to, host, bytes)});
  finish_call(made);
}

/// A piece of work at the end of a stream, or a node at the end of what is captured of it.
void Streams::add(int call, int stream, const std::string& label, Submitted submitted) {
  Lane& its = lane({stream});
  if (its.captured) {
    log_.graphs.back().push_back({stream, label, submitted.kernel, its.tail, submitted.uses});
    graph_runs_.back().push_back(std::move(submitted.run));
    its.tail = {static_cast<int>(log_.graphs.back().size()) - 1};
    return;
  }
  StreamLog::Work work{.call = call,
                       .stream = stream,
                       .label = label,
                       .kernel = submitted.kernel,
                       .after = its.tail,
                       .uses = std::move(submitted.uses)};
  its.tail = {add_work(std::move(work), std::move(submitted.run))};
}

int Streams::add_work(StreamLog::Work work, Run run) {
  insert_all(work.after, waited_);
  log_.works.push_back(std::move(work));
  runs_.push_back(std::move(run));
  return static_cast<int>(log_.works.size()) - 1;
}

Event Streams::record(Stream stream) {
  const Lane& its = lane(stream);
  Recorded event;
  event.captured = its.captured;
  (its.captured ? event.nodes : event.works) = its.tail;
  events_.push_back(std::move(event));
  const int id = static_cast<int>(events_.size()) - 1;
  const int made = call(CallKind::record, stream.id, id, {});
  on_record(id, stream.id);
  finish_call(made);
  return {id};
}

void Streams::wait(Stream stream, Event event) {
  const Recorded& recorded = events_.at(static_cast<std::size_t>(event.id));
  Lane& its = lane(stream);
  if (recorded.captured && !its.captured) {
    // The stream joins the capture; what it did before is not part of the graph.
    its.captured = true;
    its.kept = std::exchange(its.tail, {});
  }
  if (its.captured && !recorded.captured) {
    throw Error("a captured stream waits for an event that was recorded outside its capture");
  }
  insert_all(its.tail, recorded.captured ? recorded.nodes : recorded.works);
  const int made = call(CallKind::wait, stream.id, event.id, {});
  on_wait(stream.id, event.id);
  finish_call(made);
}

void Streams::synchronize(Stream stream) {
  if (lane(stream).captured) throw Error("the host waits for a stream that is being captured");
  const int made = call(CallKind::synchronize, stream.id, -1, {});
  on_synchronize(stream.id);
  const std::vector<int> tail = lane(stream).tail;
  const std::vector<bool> needed = needed_by(tail);
  while (advance_waiting(needed)) {
  }
  std::erase_if(waited_, [&](int work) { return needed[static_cast<std::size_t>(work)]; });
  insert_all(waited_, tail);
  log_.calls[static_cast<std::size_t>(made)].end_ms = now_ms() - log_.start_ms;
  advance();
}

// ---- graphs -----------------------------------------------------------------------------------------

void Streams::begin_capture(Stream stream) {
  if (capturing_ >= 0) throw Error("a capture begins inside another one");
  const int made =
      call(CallKind::begin_capture, stream.id, static_cast<int>(log_.graphs.size()), {});
  log_.graphs.emplace_back();
  graph_runs_.emplace_back();
  capturing_ = stream.id;
  lane(stream).captured = true;
  lane(stream).kept = std::exchange(lane(stream).tail, {});
  on_begin_capture(stream.id);
  finish_call(made);
}

Graph Streams::end_capture(Stream stream) {
  if (capturing_ != stream.id) throw Error("a capture ends in another stream than it began in");
  const std::vector<int>& end = lane(stream).tail;
  // A node that leads nowhere else must be one that the stream has come to.
  std::vector<bool> followed(log_.graphs.back().size());
  for (const StreamLog::Node& node : log_.graphs.back()) {
    for (const int before : node.after) followed[static_cast<std::size_t>(before)] = true;
  }
  for (std::size_t node = 0; node < followed.size(); ++node) {
    if (followed[node] || std::find(end.begin(), end.end(), static_cast<int>(node)) != end.end())
      continue;
    throw Error("the capture ends before the stream of " + log_.graphs.back()[node].label +
                " is joined: let the first stream wait for an event recorded behind it");
  }
  const int id = static_cast<int>(log_.graphs.size()) - 1;
  const int made = call(CallKind::end_capture, stream.id, id, {});
  on_end_capture(stream.id, id);
  for (Lane& each : lanes_) {
    if (each.captured) each.tail = std::exchange(each.kept, {});
    each.captured = false;
  }
  capturing_ = -1;
  finish_call(made);
  return {id};
}

GraphExec Streams::instantiate(Graph graph) {
  const auto of = static_cast<std::size_t>(graph.id);
  execs_.push_back({graph.id, log_.graphs.at(of), graph_runs_.at(of)});
  const int id = static_cast<int>(execs_.size()) - 1;
  const int made = call(CallKind::instantiate, -1, id, {});
  on_instantiate(id, graph.id);
  finish_call(made);
  return {id};
}

bool Streams::update(GraphExec exec, Graph graph) {
  Exec& to = execs_.at(static_cast<std::size_t>(exec.id));
  const auto& from = log_.graphs.at(static_cast<std::size_t>(graph.id));
  const bool same = std::equal(
      to.nodes.begin(), to.nodes.end(), from.begin(), from.end(),
      [](const StreamLog::Node& a, const StreamLog::Node& b) { return a.after == b.after; });
  const int made = call(CallKind::update, -1, exec.id, {});
  const bool done = same && on_update(exec.id, graph.id);
  if (done) {
    to.nodes = from;
    to.runs = graph_runs_[static_cast<std::size_t>(graph.id)];
  }
  finish_call(made);
  return done;
}

void Streams::set_arguments(GraphExec exec, int node, const std::function<void()>& work) {
  Exec& to = execs_.at(static_cast<std::size_t>(exec.id));
  StreamLog::Node& its = to.nodes.at(static_cast<std::size_t>(node));
  const int made = call(CallKind::set, -1, exec.id, its.label);
  std::vector<Submitted> taken;
  taken_ = &taken;
  try {
    on_enter(its.stream);
    on_set(exec.id, node, work);
    on_leave();
  } catch (...) {
    taken_ = nullptr;
    on_leave();
    throw;
  }
  taken_ = nullptr;
  if (taken.size() != 1) throw Error("a node of a graph gets the arguments of one launch");
  its.uses = std::move(taken.front().uses);
  to.runs[static_cast<std::size_t>(node)] = std::move(taken.front().run);
  finish_call(made);
}

void Streams::replay(GraphExec exec, Stream stream) {
  const Exec& graph = execs_.at(static_cast<std::size_t>(exec.id));
  const int made = call(CallKind::replay, stream.id, exec.id, {});
  if (lane(stream).captured) throw Error("a graph is replayed inside a capture");
  const int first = static_cast<int>(log_.works.size());
  std::vector<bool> followed(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const StreamLog::Node& node = graph.nodes[i];
    StreamLog::Work work{.call = made,
                         .node = static_cast<int>(i),
                         .stream = node.stream,
                         .label = node.label,
                         .kernel = node.kernel,
                         .after = {},
                         .uses = node.uses};
    for (const int before : node.after) {
      followed[static_cast<std::size_t>(before)] = true;
      work.after.push_back(first + before);
    }
    if (node.after.empty()) work.after = lane(stream).tail;
    add_work(std::move(work), graph.runs[i]);
  }
  std::vector<int> tail;
  for (std::size_t i = 0; i < followed.size(); ++i) {
    if (!followed[i]) tail.push_back(first + static_cast<int>(i));
  }
  if (!tail.empty()) lane(stream).tail = std::move(tail);
  on_replay(exec.id, stream.id);
  finish_call(made);
}

// ---- the device's work ------------------------------------------------------------------------------

bool Streams::ready(int work) const {
  const StreamLog::Work& its = log_.works[static_cast<std::size_t>(work)];
  const bool submitted = log_.calls[static_cast<std::size_t>(its.call)].tick < log_.ticks;
  return its.tick < 0 && submitted &&
         std::all_of(its.after.begin(), its.after.end(), [&](int before) {
           const int tick = log_.works[static_cast<std::size_t>(before)].tick;
           return tick >= 0 && tick < log_.ticks;
         });
}

void Streams::do_work(int work) {
  const auto at = static_cast<std::size_t>(work);
  log_.works[at].tick = log_.ticks;
  if (runs_[at]) std::exchange(runs_[at], nullptr)();
}

/// One more tick. Where work is done as soon as it may be, each stream does the next of its own; streams take turns to
/// be first, since what has no order must not matter.
void Streams::advance() {
  ++log_.ticks;
  if (options_.order != WorkOrder::earliest) return;
  std::vector<std::size_t> order(lanes_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random_);
  std::vector<int> due;
  for (const std::size_t stream : order) {
    for (int work = 0; work < static_cast<int>(log_.works.size()); ++work) {
      if (log_.works[static_cast<std::size_t>(work)].stream != static_cast<int>(stream)) continue;
      if (!ready(work)) continue;
      due.push_back(work);
      break;
    }
  }
  for (const int work : due) do_work(work);
}

/// While the host waits: the next of the work that it waits for. False when that is all done.
bool Streams::advance_waiting(const std::vector<bool>& wanted) {
  const auto is_open = [&](std::size_t work) { return wanted[work] && log_.works[work].tick < 0; };
  bool open = false;
  for (std::size_t i = 0; i < wanted.size(); ++i) open = open || is_open(i);
  if (!open) return false;
  advance();
  if (options_.order == WorkOrder::earliest) return true;
  std::vector<int> may;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (is_open(i) && ready(static_cast<int>(i))) may.push_back(static_cast<int>(i));
  }
  if (may.empty())
    return true;  // what was submitted with this very call is ready with the next tick
  std::size_t chosen = 0;
  if (options_.order == WorkOrder::shuffled) {
    chosen = static_cast<std::size_t>(random_() % may.size());
  } else {
    for (std::size_t i = 1; i < may.size(); ++i) {
      const auto stream = [&](std::size_t of) {
        return log_.works[static_cast<std::size_t>(may[of])].stream;
      };
      if (stream(i) < stream(chosen)) chosen = i;
    }
  }
  do_work(may[chosen]);
  return true;
}

std::vector<bool> Streams::needed_by(const std::vector<int>& works) const {
  std::vector<bool> needed(log_.works.size());
  for (const int work : works) needed[static_cast<std::size_t>(work)] = true;
  // Work comes after work that was submitted earlier.
  for (std::size_t i = needed.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (const int before : log_.works[i].after) needed[static_cast<std::size_t>(before)] = true;
  }
  return needed;
}

// ---- what is wrong ------------------------------------------------------------------------------------

namespace {

/// What a name stands for, or stood for, at this address.
const StreamLog::Named* named_at(const StreamLog& log, const void* begin, int call) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const StreamLog::Named* found = nullptr;
  for (const StreamLog::Named& each : log.names) {
    const auto from = reinterpret_cast<std::uintptr_t>(each.begin);
    if (address >= from && address < from + each.bytes && each.since_call <= call) found = &each;
  }
  return found;
}

struct Stretch {
  std::uintptr_t begin = 0, end = 0;
};
Stretch stretch_of(const StreamLog& log, const MemoryUse& use, int call) {
  const auto begin = reinterpret_cast<std::uintptr_t>(use.begin);
  if (use.bytes > 0) return {begin, begin + use.bytes};
  const StreamLog::Named* named = named_at(log, use.begin, call);
  if (named == nullptr) return {begin, begin};
  return {begin, reinterpret_cast<std::uintptr_t>(named->begin) + named->bytes};
}

/// The use of `a` that meets one of `b`; null: none, or none of the two writes.
const MemoryUse* meeting(const StreamLog& log, const StreamLog::Work& a, const StreamLog::Work& b) {
  for (const MemoryUse& one : a.uses) {
    for (const MemoryUse& two : b.uses) {
      if (!one.written && !two.written) continue;
      const Stretch s = stretch_of(log, one, a.call), t = stretch_of(log, two, b.call);
      if (s.begin < t.end && t.begin < s.end) return &one;
    }
  }
  return nullptr;
}

std::string work_text(const StreamLog::Work& work) {
  return work.label + " (call " + std::to_string(work.call + 1) + ")";
}

}  // namespace

std::string memory_name(const StreamLog& log, const MemoryUse& use, int call) {
  const StreamLog::Named* named = named_at(log, use.begin, call);
  if (named == nullptr) return "memory";
  const bool replaced = named->until_call >= 0 && call >= named->until_call;
  return replaced ? named->name + ", replaced" : named->name;
}

std::vector<StreamFinding> findings_of(const StreamLog& log) {
  std::vector<StreamFinding> found;
  std::set<std::string> known;
  const auto add = [&](StreamFinding finding, const std::string& what) {
    if (known.insert(what + finding.memory).second) found.push_back(std::move(finding));
  };
  // Whether work j comes before work i, by the order of the calls.
  std::vector<std::vector<bool>> before(log.works.size());
  for (std::size_t i = 0; i < log.works.size(); ++i) {
    const StreamLog::Work& work = log.works[i];
    before[i].assign(log.works.size(), false);
    for (const int each : work.after) {
      const auto at = static_cast<std::size_t>(each);
      before[i][at] = true;
      for (std::size_t j = 0; j < at; ++j) before[i][j] = before[i][j] || before[at][j];
    }
    for (const MemoryUse& use : work.uses) {
      const std::string memory = memory_name(log, use, work.call);
      if (memory.ends_with(", replaced")) {
        add({StreamFinding::stale, static_cast<int>(i), -1, memory.substr(0, memory.find(','))},
            "stale " + work.label);
      }
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (before[i][j]) continue;
      const MemoryUse* use = meeting(log, work, log.works[j]);
      if (use == nullptr) continue;
      add({StreamFinding::unordered, static_cast<int>(i), static_cast<int>(j),
           memory_name(log, *use, work.call)},
          work.label + ", " + log.works[j].label);
    }
  }
  return found;
}

std::string text_of(const StreamFinding& finding, const StreamLog& log) {
  const StreamLog::Work& work = log.works.at(static_cast<std::size_t>(finding.work));
  if (finding.kind == StreamFinding::stale) {
    return work_text(work) + " uses " + finding.memory +
           " at the address that was captured, which the host has replaced since";
  }
  const StreamLog::Work& other = log.works.at(static_cast<std::size_t>(finding.other));
  const auto writes = [&](const StreamLog::Work& of) {
    return std::any_of(of.uses.begin(), of.uses.end(), [&](const MemoryUse& use) {
      return use.written && memory_name(log, use, of.call) == finding.memory;
    });
  };
  return work_text(work) + (writes(work) ? " writes " : " reads ") + finding.memory + ", which " +
         work_text(other) + (writes(other) ? " writes" : " reads") + ", and nothing orders them";
}

}  // namespace tilestep::simt

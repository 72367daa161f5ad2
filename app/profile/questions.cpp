// The six questions of a slow model, each answered from the trace, or with how to record one that says it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "app/profile/numbers.hpp"
#include "kernels/base/lab/plural.hpp"

namespace tilestep::profile {
namespace {

using lab::plural;

/// From here on a cause is named before the kernels are.
constexpr double kMuch = 0.2;
constexpr std::size_t kMostNamed = 3;

struct Part {
  std::string_view in_name, said;
};

/// Whose kernel it is, by what its name contains.
constexpr std::array<Part, 14> kFamilies = {{{"flash", "FlashAttention's"},
                                             {"fmha", "an attention library's"},
                                             {"flashinfer", "FlashInfer's"},
                                             {"paged_attention", "vLLM's"},
                                             {"triton", "Triton's"},
                                             {"cutlass", "CUTLASS's"},
                                             {"nvjet", "cuBLAS's"},
                                             {"cublas", "cuBLAS's"},
                                             {"xmma", "cuBLAS's or cuDNN's"},
                                             {"gemv", "a matrix–vector product's"},
                                             {"gemm", "a GEMM library's"},
                                             {"cudnn", "cuDNN's"},
                                             {"nccl", "NCCL's"},
                                             {"at::native", "PyTorch's own"}}};

/// A type that a kernel's name tells; the narrowest that it names is what it multiplies.
constexpr std::array<Part, 18> kTypes = {{{"e4m3", "fp8 e4m3"},
                                          {"e5m2", "fp8 e5m2"},
                                          {"fp8", "fp8"},
                                          {"int4", "int4"},
                                          {"int8", "int8"},
                                          {"s8_", "int8"},
                                          {"i8i8", "int8"},
                                          {"bf16", "bf16"},
                                          {"bfloat16", "bf16"},
                                          {"BFloat16", "bf16"},
                                          {"fp16", "fp16"},
                                          {"f16", "fp16"},
                                          {"half", "fp16"},
                                          {"Half", "fp16"},
                                          {"tf32", "tf32"},
                                          {"sgemm", "fp32"},
                                          {"float", "fp32"},
                                          {"f32", "fp32"}}};

template <std::size_t n>
std::string said_by(const std::array<Part, n>& parts, std::string_view name) {
  for (const Part& part : parts) {
    if (name.find(part.in_name) != name.npos) return std::string(part.said);
  }
  return {};
}

/// "mm (62 %); add (12 %)": what took most of `all_ns`.
using Times = std::map<std::string, double>;
std::vector<std::pair<std::string, double>> ranked(const Times& times) {
  std::vector<std::pair<std::string, double>> all(times.begin(), times.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return all;
}
std::string said_of(const Times& times, double all_ns) {
  std::string said;
  const auto sorted = ranked(times);
  for (std::size_t i = 0; i < sorted.size() && i < kMostNamed; ++i) {
    said += fmt::format("{}{} ({})", i == 0 ? "" : "; ", sorted[i].first,
                        percent_of(sorted[i].second / std::max(all_ns, 1.0)));
  }
  return said;
}

class Answers {
 public:
  Answers(const Trace& trace, const Numbers& numbers) : trace_(trace), numbers_(numbers) {
    for (const KernelUse& kernel : numbers.kernels) all_ns_ += static_cast<double>(kernel.ns);
    for (const Event& event : trace.events) {
      if (event.kind == Kind::kernel && event.begin_ns < numbers.stretch.to_ns &&
          event.end_ns > numbers.stretch.from_ns)
        kernels_.push_back(&event);
    }
  }

  std::vector<Answer> all() const {
    return {bottleneck(), by_operator(), shape(), dtype(), kernel(), system()};
  }

 private:
  bool kineto() const { return trace_.format == Format::kineto; }
  std::int64_t total() const { return static_cast<std::int64_t>(std::min(all_ns_, 9e18)); }
  const KernelUse* top() const {
    return numbers_.kernels.empty() ? nullptr : &numbers_.kernels.front();
  }
  const Event& event(int index) const { return trace_.events[static_cast<std::size_t>(index)]; }
  /// Short enough for a sentence.
  std::string name(int index) const {
    constexpr std::size_t kMost = 48;
    std::string name = short_name(trace_.names[static_cast<std::size_t>(index)]);
    if (name.size() <= kMost) return name;
    name.resize(kMost);
    while (!name.empty() && (static_cast<unsigned char>(name.back()) & 0xC0) == 0x80)
      name.pop_back();
    if (!name.empty() && (static_cast<unsigned char>(name.back()) & 0x80) != 0) name.pop_back();
    return name + "…";
  }
  /// As much of it as lies in the stretch.
  double ns_of(const Event& each) const {
    return static_cast<double>(std::min(each.end_ns, numbers_.stretch.to_ns) -
                               std::max(each.begin_ns, numbers_.stretch.from_ns));
  }

  /// The answer is about this launch, which the timeline shows.
  void point(Answer& answer, int index) const {
    answer.event = index;
    answer.kernel = event(index).name;
    answer.shown = stretch_of(index);
  }
  int index_of(const Event& each) const { return static_cast<int>(&each - trace_.events.data()); }
  Stretch stretch_of(int index) const { return {event(index).begin_ns, event(index).end_ns}; }

  Answer begun(const char* id, const char* title) const {
    Answer answer{id, title, {}, true, {}, numbers_.stretch, -1, -1};
    if (const KernelUse* kernel = top()) answer.kernel = kernel->name;
    return answer;
  }

  Answer bottleneck() const {
    Answer answer = begun("bottleneck", "Bottleneck");
    answer.kernel = -1;
    const DeviceUse& use = numbers_.busiest();
    const auto all = static_cast<double>(std::max<std::int64_t>(numbers_.stretch.ns(), 1));
    std::int64_t late_ns = 0, late = 0;
    int longest = -1;
    for (std::size_t i = 0; i < numbers_.gaps.size(); ++i) {
      const Gap& gap = numbers_.gaps[i];
      if (!gap.late || gap.device != use.device) continue;
      late_ns += gap.idle.ns();
      ++late;
      if (longest < 0 || gap.idle.ns() > numbers_.gaps[static_cast<std::size_t>(longest)].idle.ns())
        longest = static_cast<int>(i);
    }
    const double kernels = static_cast<double>(use.kernel_ns) / all,
                 copies = static_cast<double>(use.busy_ns - use.kernel_ns) / all,
                 talks = static_cast<double>(use.communication_ns) / all,
                 host = static_cast<double>(late_ns) / all,
                 idle = static_cast<double>(numbers_.stretch.ns() - use.busy_ns) / all;
    const std::string shares = fmt::format(
        "GPU {} runs kernels {} of {}, only copies or fills {}, and is idle {}", use.device,
        percent_of(kernels), time_of(numbers_.stretch.ns()), percent_of(copies), percent_of(idle));
    if (host >= kMuch) {
      const Gap& gap = numbers_.gaps[static_cast<std::size_t>(longest)];
      answer.text = fmt::format(
          "The host. {}: {} of the time in {} in which the next work was not yet launched, the "
          "longest {}{}.",
          shares, percent_of(host), plural(late, "gap"), time_of(gap.idle.ns()),
          gap.before < 0 ? std::string() : ", after " + trace_.name_of(event(gap.before)));
      answer.shown = gap.idle;
    } else if (talks >= kMuch) {
      answer.text = fmt::format("Communication. {}; {} of the time nothing but communication runs.",
                                shares, percent_of(talks));
    } else if (copies >= kMuch) {
      answer.text = fmt::format("Copies. {}.", shares);
    } else if (idle >= kMuch) {
      answer.text = fmt::format("Waiting. {}; {} of the time because the host was late.", shares,
                                percent_of(host));
      if (!numbers_.has_calls) {
        answer.text =
            fmt::format("Waiting. {}. This trace does not say whether the host was late.", shares);
        answer.known = false;
        answer.record = kineto() ? "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
                                 : "nsys profile --trace=cuda,nvtx";
      }
      if (numbers_.all_gaps.longest >= 0)
        answer.shown = numbers_.gaps[static_cast<std::size_t>(numbers_.all_gaps.longest)].idle;
    } else {
      answer.text = fmt::format(
          "The kernels. {}. Whether memory or arithmetic limits them this trace does not say.",
          shares);
      answer.record =
          "nsys profile --gpu-metrics-devices=all, or ncu --set roofline for the longest kernel";
    }
    return answer;
  }

  Answer by_operator() const {
    Answer answer = begun("operator", "Operator");
    Times times;
    std::map<std::string, const Event*> longest;
    double graphs_ns = 0;
    for (const Event* each : kernels_) {
      if (each->of_graph) graphs_ns += ns_of(*each);
      if (each->of_graph || each->op < 0) continue;
      const std::string& op = trace_.name_of(event(each->op));
      times[op] += ns_of(*each);
      const Event*& kept = longest[op];
      if (kept == nullptr || each->ns() > kept->ns()) kept = each;
    }
    const double graphs = all_ns_ > 0 ? graphs_ns / all_ns_ : 0;
    if (times.empty()) {
      answer.known = false;
      answer.text = graphs > 0.5 ? fmt::format(
                                       "This trace does not say: {} of the kernels' time comes "
                                       "from CUDA graphs, whose launch hides the operator.",
                                       percent_of(graphs))
                                 : "This trace does not say which operator launched a kernel.";
      answer.record =
          graphs > 0.5 ? "a few steps without graphs (vLLM: enforce_eager=True)"
          : kineto()
              ? "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
              : "NVTX ranges: torch.autograd.profiler.emit_nvtx(), nsys profile --trace=cuda,nvtx";
      return answer;
    }
    const auto first = ranked(times).front();
    answer.text = fmt::format("{} launched most. Shares of the kernels' {}: {}.", first.first,
                              time_of(total()), said_of(times, all_ns_));
    if (graphs >= 0.05)
      answer.text += fmt::format(" {} comes from CUDA graphs, whose launch hides the operator.",
                                 percent_of(graphs));
    const Event& shown = *longest[first.first];
    point(answer, index_of(shown));
    answer.shown.from_ns = std::min(event(shown.op).begin_ns, shown.begin_ns);
    return answer;
  }

  Answer shape() const {
    Answer answer = begun("shape", "Shape");
    struct Given {
      Times times;
      const Event* longest = nullptr;
    };
    std::map<int, Given> by_kernel;
    for (const Event* each : kernels_) {
      if (each->op < 0 || event(each->op).shape < 0) continue;
      const std::string& dims = trace_.shapes[static_cast<std::size_t>(event(each->op).shape)].dims;
      if (dims.empty()) continue;
      Given& given = by_kernel[each->name];
      given.times[dims] += ns_of(*each);
      if (given.longest == nullptr || each->ns() > given.longest->ns()) given.longest = each;
    }
    for (const KernelUse& use : numbers_.kernels) {
      const auto found = by_kernel.find(use.name);
      if (found == by_kernel.end()) continue;
      const auto& [times, longest] = found->second;
      const std::string dims = ranked(times).front().first;
      answer.text =
          fmt::format("{}, {} of the time, was launched by {} with the operands {}.",
                      name(use.name), percent_of(use.share), trace_.name_of(event(longest->op)),
                      said_of(times, static_cast<double>(use.ns)));
      if (const std::string odd = not_of_eight(dims); !odd.empty())
        answer.text += fmt::format(
            " {} is no multiple of 8, which tensor cores' loads of 16 bytes want.", odd);
      point(answer, index_of(*longest));
      return answer;
    }
    answer.known = false;
    answer.text = "This trace does not say which shapes the operators had.";
    answer.record = kineto() ? "record_shapes=True"
                             : "torch.autograd.profiler.emit_nvtx(record_shapes=True), nsys "
                               "profile --trace=cuda,nvtx";
    return answer;
  }

  /// The first dimension above 16 that 8 does not divide.
  static std::string not_of_eight(const std::string& dims) {
    std::string number;
    for (const char c : dims + " ") {
      if (c >= '0' && c <= '9' && number.size() < 9) {
        number += c;
        continue;
      }
      if (!number.empty() && std::stol(number) > 16 && std::stol(number) % 8 != 0) return number;
      number.clear();
    }
    return {};
  }

  Answer dtype() const {
    Answer answer = begun("dtype", "Dtype");
    Times times;
    std::map<int, std::string> by_name;
    double unknown = 0, by_op = 0, known = 0;
    for (const Event* each : kernels_) {
      std::string type;
      if (each->op >= 0 && event(each->op).shape >= 0) {
        type = trace_.shapes[static_cast<std::size_t>(event(each->op).shape)].types;
        if (!type.empty()) by_op += ns_of(*each);
      }
      if (type.empty()) {
        const auto [found, fresh] = by_name.try_emplace(each->name);
        if (fresh) found->second = said_by(kTypes, trace_.name_of(*each));
        type = found->second;
      }
      (type.empty() ? unknown : known) += ns_of(*each);
      for (std::size_t at; (at = type.find(", ")) != type.npos;) type.replace(at, 2, " + ");
      if (!type.empty()) times[type] += ns_of(*each);
    }
    if (times.empty()) {
      answer.known = false;
      answer.text = "This trace does not say: neither operators nor kernels' names tell a type.";
      answer.record =
          kineto() ? "record_shapes=True" : "torch.autograd.profiler.emit_nvtx(record_shapes=True)";
      return answer;
    }
    answer.text =
        fmt::format("Shares of the kernels' {}: {}", time_of(total()), said_of(times, all_ns_));
    if (unknown > 0) answer.text += fmt::format("; {} does not say", percent_of(unknown / all_ns_));
    answer.text += by_op == 0      ? ", by the kernels' names."
                   : by_op < known ? ", by the operators' inputs, otherwise by the kernels' names."
                                   : ", by the operators' inputs.";
    if (by_op == 0)
      answer.record = kineto() ? "record_shapes=True, which has the types of all inputs"
                               : "torch.autograd.profiler.emit_nvtx(record_shapes=True)";
    point(answer, top()->longest);
    return answer;
  }

  Answer kernel() const {
    Answer answer = begun("kernel", "Kernel");
    const KernelUse* use = top();
    if (use == nullptr) {
      answer.known = false;
      answer.text = "This trace has copies and fills, but no kernel.";
      answer.record = kineto() ? "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
                               : "nsys profile --trace=cuda --cuda-graph-trace=node";
      return answer;
    }
    answer.text = fmt::format(
        "{}: {} of {} on average, {} of the {}: without it the whole were at most {:.2f}× as fast.",
        name(use->name), plural(use->launches, "launch", "launches"), time_of(use->mean_ns()),
        percent_of(use->share), time_of(numbers_.stretch.ns()), std::min(use->bound(), 999.0));
    const std::string family =
        said_by(kFamilies, trace_.names[static_cast<std::size_t>(use->name)]);
    if (!family.empty()) answer.text += fmt::format(" By its name it is {}.", family);
    if (use->launch >= 0) answer.text += launch_of(*use);
    point(answer, use->longest);
    return answer;
  }

  std::string launch_of(const KernelUse& use) const {
    const Launch& launch = trace_.launches[static_cast<std::size_t>(use.launch)];
    std::string said;
    if (launch.grid[0] > 0 && launch.block[0] > 0) {
      const auto product = [](const std::int64_t(&of)[3]) {
        double all = 1;
        for (const std::int64_t each : of)
          all *= static_cast<double>(std::max<std::int64_t>(each, 1));
        return all;
      };
      said += fmt::format(" Its longest launch has {:.0f} blocks of {:.0f} threads",
                          product(launch.grid), product(launch.block));
      const auto device = trace_.devices.find(trace_.track_of(event(use.longest)).device);
      if (device != trace_.devices.end() && device->second.multiprocessors > 0)
        said += fmt::format(" for {} multiprocessors", device->second.multiprocessors);
      if (launch.registers >= 0) said += fmt::format(", {} registers per thread", launch.registers);
      if (launch.occupancy_percent >= 0)
        said +=
            fmt::format(", {:.0f} % occupancy as the profiler estimates", launch.occupancy_percent);
      said += '.';
    }
    return said;
  }

  Answer system() const {
    Answer answer = begun("system", "System");
    answer.kernel = -1;
    const Steps& steps = numbers_.steps;
    if (!steps.each.empty()) {
      answer.text = fmt::format("{} “{}”, {} and {} each in the middle. ",
                                plural(std::ssize(steps.each), "step"), steps.name,
                                time_of(steps.median_ns), plural(steps.kernels, "kernel"));
      answer.shown = steps.each[steps.each.size() / 2];
    } else {
      answer.known = false;
      answer.record =
          kineto() ? "profiler.step() after each step" : "an NVTX range around each step";
      answer.text = "This trace marks no steps. ";
    }
    answer.text += fmt::format("{} of {} came from CUDA graphs", numbers_.graph_kernels,
                               plural(numbers_.kernel_count, "kernel"));
    if (numbers_.has_calls) {
      answer.text += fmt::format("; the host made {}", plural(numbers_.calls, "CUDA call"));
      if (numbers_.waits.empty()) {
        answer.text += " and waited in none of them";
      } else {
        const WaitUse& wait = numbers_.waits.front();
        answer.text += fmt::format(", and waited {} in {} of {}", time_of(wait.ns),
                                   plural(wait.count, "call"), name(wait.name));
      }
    }
    answer.text += ". Batches and queues are in a serving engine's metrics, not in a GPU's trace.";
    return answer;
  }

  const Trace& trace_;
  const Numbers& numbers_;
  double all_ns_ = 0;
  std::vector<const Event*> kernels_;
};

}  // namespace

std::vector<Answer> answers_of(const Trace& trace, const Numbers& numbers) {
  return Answers(trace, numbers).all();
}

}  // namespace tilestep::profile

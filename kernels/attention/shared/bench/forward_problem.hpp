#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/attention/shared/reference.hpp"
#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/closest.hpp"

namespace tilestep::attention {

/// Attention made ready on the device, in BF16, for kernels and peers that are timed. Q, K and V repeat a period, so that
/// the host knows each of their numbers; O is compared with double at some queries of the first head and the last.
class ForwardProblem {
 public:
  ForwardProblem(simt::Device& device, const Task& task);

  const Task& task() const { return task_; }
  /// 4 · length² · head_dim · heads; half of that with a causal mask.
  double flops() const;
  /// Q, K, V, O and log-sum-exp once.
  double bytes() const;

  simt::Span<const std::uint16_t> q() { return q_.span(); }
  simt::Span<const std::uint16_t> k() { return k_.span(); }
  simt::Span<const std::uint16_t> v() { return v_.span(); }
  simt::Span<std::uint16_t> o() { return o_.span(); }
  simt::Span<float> lse() { return lse_.span(); }

  /// A launch that is held to what such a kernel's O may be; `slack` times as far off for a peer. Kernels `as` have
  /// the same roundings.
  lab::Runnable judged(std::function<void()> launch, const std::string& as,
                       const Roundings& roundings, double slack = 1);

  /// Random numbers of the size of O, for dO.
  lab::Repeated<std::uint16_t> numbers(unsigned seed) const;
  /// Q, K and V of a head.
  Numbers numbers_of_head(int head) const;
  /// `count` numbers of O, and of log-sum-exp, as the last launch left them.
  std::vector<std::uint16_t> output(std::size_t first, std::size_t count) const {
    return o_.download(first, count);
  }
  std::vector<float> log_sum_exp(std::size_t first, std::size_t count) const {
    return lse_.download(first, count);
  }

 protected:
  simt::Device& device_;

 private:
  struct Probe {
    int head, query;
  };
  /// The answers at the probes, and how far such a kernel may be from them; made once.
  const Reference& reference(const std::string& as, const Roundings& roundings);
  lab::Closest compared(const std::string& as, const Roundings& roundings, double slack);

  Task task_;
  lab::Repeated<std::uint16_t> q_, k_, v_;
  simt::Buffer<std::uint16_t> o_;
  simt::Buffer<float> lse_;
  std::vector<Probe> probes_;
  std::map<std::string, Reference> references_;
};

}  // namespace tilestep::attention

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/systems/triage/kernels.hpp"
#include "kernels/systems/triage/run/plan.hpp"
#include "kernels/systems/triage/run/reference.hpp"

/// The program under diagnosis: its arrays, and the launches of a step as a plan has them.
namespace tilestep::triage {

/// A model in device memory, each matrix in the forms that plans ask for, made when they first do.
class Arrays {
 public:
  /// `shape.rows`: those that are wanted. The tokens of rows 0, 1, … are tokens_of().
  Arrays(simt::Device& device, const Shape& shape, Numbers numbers);

  const Shape& shape() const { return shape_; }
  const Numbers& numbers() const { return numbers_; }
  simt::Device& device() const { return device_; }
  static const std::vector<int>& tokens_of();

  // Of a layer.
  simt::Span<const std::uint16_t> qkv(int layer, Weights weights);
  simt::Span<const float> qkv_floats(int layer);
  simt::Span<const std::uint16_t> out(int layer, Weights weights);
  simt::Span<const float> gains(int layer, int which);
  simt::Span<const float> router(int layer);
  simt::Span<const std::uint16_t> experts(int layer, int which);  ///< 0 gate, 1 up, 2 down
  simt::Span<std::uint16_t> cache(int layer, int which);          ///< 0 keys, 1 values
  /// Rows of wide weights with an odd pitch.
  static int odd_pitch(int k) { return k + 1 - k % 2; }

  simt::Span<const unsigned char> head() { return head_.span(); }
  simt::Span<const float> scales() { return scales_.span(); }
  simt::Span<std::uint16_t> expanded();  ///< room for the head in BF16
  simt::Span<std::uint16_t> spare();     ///< room for a layer's keys, or values

  simt::Buffer<int> tokens, chosen, sampled;
  simt::Buffer<float> table, h, n, qkv_rows, parts, attended, d, a, logits, inverse, no_bias,
      one_bias;

 private:
  template <class T>
  simt::Span<T> part(simt::Buffer<T>& all, int layer, std::size_t count);

  simt::Device& device_;
  const Shape shape_;
  const Numbers numbers_;
  simt::Buffer<float> gains_, router_;
  simt::Buffer<std::uint16_t> qkv_, out_, gate_, up_, down_, keys_, values_;
  simt::Buffer<unsigned char> head_;
  simt::Buffer<float> scales_;
  std::map<int, simt::Buffer<std::uint16_t>> other_;  ///< other forms, by what they are
  std::map<int, simt::Buffer<float>> floats_;
};

/// A launch of a step.
struct Work {
  Op op = Op::embed;
  int layer = -1;  ///< −1: of none
  int row = -1;    ///< −1: of all
  std::string dtype = {}, shape = {},
              layout = {};  ///< "BF16", "6144 x 4096, 4 rows", "rows aligned to 16 bytes"
  int load_bytes = 0;       ///< of a load of weights or of the cache; 0: has none
  double flops = 0;
  bool waits = false;    ///< the host waits for it, and reads a number
  bool outside = false;  ///< not part of a graph
  std::function<void(const Watch&)> launch = {};
  std::string label() const;  ///< "qkv 2", "add 1.3"
};

/// A plan's launches.
class Program {
 public:
  Program(Arrays& arrays, const Plan& plan);
  Program(const Program&) = delete;  // its launches know where it is
  Program& operator=(const Program&) = delete;

  const Plan& plan() const { return plan_; }
  const Shape& shape() const { return shape_; }  ///< with the rows that are computed
  Arrays& arrays() const { return arrays_; }
  /// Of a step of the loop, from 1.
  std::vector<Work> step(int number) const;
  /// Has a step done as the plan's submission has it, and reads its tokens; a graph is made at the first call.
  void run(int number);
  /// Reads the number that the host waits for.
  void wait_and_read() const;

 private:
  void attention(std::vector<Work>& works, int layer) const;
  void experts(std::vector<Work>& works, int layer) const;
  void norm(std::vector<Work>& works, int layer, int which) const;
  void residual(std::vector<Work>& works, int layer, Op op) const;
  void head(std::vector<Work>& works) const;
  void launch_all(const std::vector<Work>& works, bool outside) const;

  Arrays& arrays_;
  const Plan plan_;
  const Kernels& kernels_;
  Shape shape_;
  std::map<int, std::vector<Work>> steps_;
  std::function<void()> graph_;
  std::vector<std::function<void()>> made_;  ///< the last graphs that were made anew
  std::size_t next_ = 0;
};

/// h and what was sampled, of a step's wanted rows.
struct Result {
  std::vector<float> h, logits;
  std::vector<int> sampled, chosen;  ///< `chosen` of all rows, in the last layer
};
Result result_of(const Program& program);

}  // namespace tilestep::triage

#pragma once

#include <initializer_list>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/base/simt/backends.hpp"

namespace tilestep::simt {

inline std::unique_ptr<Device> make_emulated(ThreadOrder order = ThreadOrder::ascending,
                                             std::uint64_t seed = 1, int os_threads = 2) {
  return make_emulated_device({}, {.order = order, .seed = seed, .os_threads = os_threads});
}

/// The three orders, `shuffled` with a few seeds.
inline std::vector<EmulationOptions> all_orders() {
  return {{.order = ThreadOrder::ascending, .os_threads = 2},
          {.order = ThreadOrder::descending, .os_threads = 2},
          {.order = ThreadOrder::shuffled, .seed = 1, .os_threads = 2},
          {.order = ThreadOrder::shuffled, .seed = 2, .os_threads = 1},
          {.order = ThreadOrder::shuffled, .seed = 3, .os_threads = 2}};
}

/// The text of the Error that `work` throws, or "no error".
template <class Work>
std::string outcome_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Which of `parts` is not in `text`, told for a failed check; empty if all are.
inline std::string missing_in(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    if (text.find(part) == std::string::npos) return text + " (lacks: " + part + ")";
  }
  return "";
}

/// 0, 1, 2, … count − 1.
template <class T>
std::vector<T> counting(std::size_t count) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), T{0});
  return values;
}

}  // namespace tilestep::simt

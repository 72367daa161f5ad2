#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "app/worker/lab_address.hpp"

namespace tilestep::app {

/// What is said until a worker elsewhere has named its build: whatever leads to it may talk first (a
/// banner, a scheduler's remark), and may fail in ways of its own. No process, no pipe.
class Greeting {
 public:
  Greeting(LabAddress lab, std::chrono::steady_clock::time_point until, std::string first_request)
      : request(std::move(first_request)), deadline(until), lab_(std::move(lab)) {}

  std::string request;  ///< to be sent once it is known
  const std::chrono::steady_clock::time_point deadline;

  /// Takes a line. True: it came from a worker of our build. False: from none; more may follow. Throws
  /// Error (unavailable) with a sentence on what to do for one of another build, or too much talk.
  bool take(const std::string& line);
  /// Why there is no worker, in sentences with what to do. `how`: "ended with exit code 255"; `error`: the
  /// last that it wrote on its standard error, or nothing; `exit_code`: −1 if it had none.
  std::string why_none(std::string_view how, std::string_view error, int exit_code) const;

 private:
  LabAddress lab_;
  std::string last_words_;
  std::size_t heard_ = 0;  ///< bytes of lines that are none of ours
};

}  // namespace tilestep::app

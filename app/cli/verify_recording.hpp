#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/lab/compare.hpp"
#include "kernels/base/lab/lesson.hpp"

namespace tilestep::app {

/// At most so many recordings below a folder are verified.
inline constexpr std::size_t kMostRecordings = 1000;

/// The result for one file.
struct Verified {
  std::filesystem::path path;
  bool same_build = false;  ///< as this program's
  std::string lesson, set;  ///< empty where the file does not say
  std::string made;         ///< "recorded on NVIDIA H200 on 2026-11-22"
  std::string refused;      ///< why it is no recording; empty: it is one
  ExitCode code = ExitCode::good;
  lab::Comparison comparison;
  std::vector<std::string> remarks;
};

/// The recordings below `folder`, or `folder` itself where it is a file: those that end in .json, by name.
/// Throws Error (unavailable) if there is none, and for more than kMostRecordings.
std::vector<std::filesystem::path> find_recordings(const std::filesystem::path& folder);
/// Reads one, checks it and replays its run. Throws Cancelled alone.
Verified verify(const std::filesystem::path& path, lab::Progress& progress);

std::string line_of(const Verified& verified);
nlohmann::json json_of(const Verified& verified);

}  // namespace tilestep::app

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/site/lesson_site.hpp"
#include "app/worker/lab_client.hpp"

namespace tilestep::app {

struct SiteRequest {
  std::filesystem::path out;
  std::vector<const lab::Lesson*> lessons;
  SiteOptions options;  ///< without its lab
  LabAddress lab;       ///< where kernels run
  std::string program;  ///< path of tilestep itself
  std::string base_url;
  bool single_file = false, force = false;
};

/// Writes the course's pages, lessons side by side on as many processes as the machine has cores, and says where
/// they are. Returns the exit code. Throws Error.
int write_site(const SiteRequest& request);

}  // namespace tilestep::app

#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tilestep::tests {

/// An environment's variable for as long as this lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

/// A shell script in the place of one of assets/peers.
class StandIn {
 public:
  StandIn(const char* name, const std::string& script)
      : folder_(std::filesystem::temp_directory_path() /
                ("tilestep-stand-in-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    write(name, script);
  }
  ~StandIn() { std::filesystem::remove_all(folder_); }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  /// Another file beside it. Returns its path.
  std::string write(const char* name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

 private:
  std::filesystem::path folder_;
  Environment shell_{"TILESTEP_PYTHON", "sh"};
  Environment where_{"TILESTEP_PEERS", folder_.string()};
};

}  // namespace tilestep::tests

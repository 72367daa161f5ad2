#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Videos are made by ffmpeg, where it is installed.
namespace tilestep::app {

/// The program `ffmpeg` in PATH; nothing if there is none.
std::optional<std::filesystem::path> find_ffmpeg();

/// Its arguments for frames in `folder`, called as frame_name says, of which there are `count`.
std::vector<std::string> ffmpeg_arguments(const std::filesystem::path& folder, int count, int rate,
                                          const std::filesystem::path& out);
/// "frame-0007.png"
std::string frame_name(int frame);

/// Runs a program to its end, without a shell; what it prints goes to standard error. Returns its exit code, 128 + n
/// for signal n. Throws Error (unavailable) if it cannot be started.
int run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments);

}  // namespace tilestep::app

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// Where things are kept on this machine, and how files are read.
namespace tilestep::app {

/// "$XDG_CONFIG_HOME/tilestep", else "~/.config/tilestep"; nothing where neither is named.
std::optional<std::filesystem::path> config_folder();
/// "$XDG_STATE_HOME/tilestep", else "~/.local/state/tilestep"; nothing where neither is named.
std::optional<std::filesystem::path> state_folder();
/// Where the user saves: the documents folder that the desktop names, else ~/Documents if it is there, else the
/// folder that the program was started in.
std::filesystem::path documents_folder();
/// "FOLDER/coalescing-2026-01-31-1.csv", with the first number whose file is not there.
std::filesystem::path free_name(const std::filesystem::path& folder, std::string_view stem,
                                std::string_view ending);
/// Where a damaged file goes: a free name beside it, "FILE.damaged-1" to "-3"; with all of them there, the oldest's.
std::filesystem::path aside_name(const std::filesystem::path& file);
/// Today's date in UTC: "2026-01-31".
std::string day_of_today();

/// A whole file. Throws Error: (unavailable) if it is not there or cannot be read, and if it is no file or
/// larger than `most` bytes.
std::string read_file(const std::filesystem::path& path, std::size_t most);
/// The same of a kernel source: Error for what is none as well (lab::why_no_source).
std::string read_source(const std::filesystem::path& path);

}  // namespace tilestep::app

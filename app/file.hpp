#pragma once

#include <filesystem>
#include <string_view>

namespace tilestep::app {

/// Writes a whole file, making its folder: beside its place first, then renamed, so that whatever
/// was there before stays until the new bytes are all written. Nothing is left behind where that
/// fails. Throws Error (unavailable) with the reason; so for what is there and is no file (a folder,
/// a device) or may not be written.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Whether both name one file, also one that is not there yet, or through links.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

/// Makes a folder and those above it. Throws Error (unavailable) with the reason.
void make_folder(const std::filesystem::path& path);

}  // namespace tilestep::app

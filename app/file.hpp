#pragma once

#include <filesystem>
#include <string_view>

namespace tilestep::app {

/// Writes a whole file, making its folder: beside its place first, then renamed, so that whatever
/// was there before stays until the new bytes are all written. Nothing is left behind where that
/// fails. Throws Error (unavailable) with the reason; so for what is there and is no file (a folder,
/// a device) or may not be written.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Throws Error for what --out must not replace: tilestep itself; a folder, a device or a pipe (unavailable); a link, or a
/// file that is not of the kind that is written there, unless `force` says so. The kind is that of the name's ending, else
/// `bytes`, which begin as those there do.
void require_output(const std::filesystem::path& path, bool force, std::string_view bytes = {});
/// write_file where require_output has nothing against it.
void write_output(const std::filesystem::path& path, std::string_view bytes, bool force);
/// How pages begin, so that no one else's is taken for one of ours.
inline constexpr std::string_view kPageBegins =
    "<!doctype html>\n<html data-by=\"tilestep\" lang=\"en\">\n";

/// Whether both name one file, also one that is not there yet, or through links.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

/// Makes a folder and those above it. Throws Error (unavailable) with the reason.
void make_folder(const std::filesystem::path& path);

/// A folder of this process alone, which is gone with this object.
class ScratchFolder {
 public:
  /// Throws Error (unavailable).
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tilestep::app

#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// Where the workbench keeps what it makes: headers as they were built in, and compiled kernels.
namespace tilestep::workbench {

/// $TILESTEP_CACHE, $XDG_CACHE_HOME/tilestep, ~/.cache/tilestep, or where none of them can be written a folder of this
/// user below the system's folder for temporary files. Made if it is not there. Throws Error (unavailable).
std::filesystem::path cache_folder();

/// A folder of this program's headers below `cache_folder()`, as a compiler takes them: written once for
/// each build of tilestep. Throws Error (unavailable).
std::filesystem::path header_folder();

/// Makes the folder `folder` by `fill`, which is given another name to write it under: who finds it there
/// finds it whole, also when two make it at once. One that was damaged since (a full disk, a copy, a hand) is made again.
/// Returns false if it was there already. Throws Error (unavailable), and what `fill` throws.
template <class Fill>
bool make_whole(const std::filesystem::path& folder, Fill fill);

/// A folder below cache_folder()/`kind`, made when something is written there, and removed with this object.
class OwnFolder {
 public:
  explicit OwnFolder(std::string_view kind);
  ~OwnFolder();
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Writes a file and the folders that it lies in. Throws Error (unavailable).
void write_whole(const std::filesystem::path& file, std::string_view text);
/// Throws Error (unavailable).
std::string read_whole(const std::filesystem::path& file);

/// Removes the folders inside `folder` that were used longest ago, but for the newest `kept` and those of the last hour.
void keep_newest(const std::filesystem::path& folder, std::size_t kept);

// ---- what the template is made of ----------------------------------------------------------------

/// Lists what is in `folder` in a file there. Throws Error (unavailable).
void list_contents(const std::filesystem::path& folder);
/// Whether all that was listed is there as it was.
bool is_whole(const std::filesystem::path& folder);
/// An unused name beside `folder`.
std::filesystem::path draft_beside(const std::filesystem::path& folder);
/// Gives a draft its name. False if another process was faster; the draft is then removed.
bool publish(const std::filesystem::path& draft, const std::filesystem::path& folder);

template <class Fill>
bool make_whole(const std::filesystem::path& folder, Fill fill) {
  std::error_code error;
  if (is_whole(folder)) return false;
  std::filesystem::remove_all(folder, error);
  const std::filesystem::path draft = draft_beside(folder);
  try {
    fill(draft);
    list_contents(draft);
  } catch (...) {
    std::filesystem::remove_all(draft, error);
    throw;
  }
  return publish(draft, folder);
}

}  // namespace tilestep::workbench

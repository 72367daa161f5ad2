#include "kernels/base/workbench/folders.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/edit.hpp"
#include "kernels/base/simt/error.hpp"
#include "kernels/base/simt/source_hash.hpp"

namespace tilestep::workbench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBaseHeader = "kernels/base/simt/simt.hpp";
/// Stands in for the JSON library's forward declarations: kernels name its type and never use it.
constexpr std::string_view kJsonDeclared = "#pragma once\nnamespace nlohmann {\nclass json;\n}\n";

/// Stands in for <assert.h> and <cassert> where a kernel is compiled for the emulation: which thread it was is told.
constexpr std::string_view kAssert = R"(#ifdef __CUDACC__
#include_next <assert.h>
#else
namespace tilestep::simt::emulated {
[[noreturn]] void assertion_failed(const char* condition);
}
#undef assert
#define assert(...) \
  (static_cast<bool>(__VA_ARGS__) ? void(0) : ::tilestep::simt::emulated::assertion_failed(#__VA_ARGS__))
#endif
)";

/// Another process may be at work in a folder that was used in this time.
constexpr std::chrono::hours kLately{1};

/// What a finished folder has in it: how many files, then of each a line with its bytes, their hash, its name.
constexpr const char* kContents = "contents";
/// Of longer files, precompiled headers, the bytes are counted alone.
constexpr std::uintmax_t kMostHashed = 16 << 20;

/// "512 00f3…" of a file as it is now.
std::string state_of(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) return "none";
  try {
    return fmt::format("{} {}", size, size > kMostHashed ? "-" : lab::hash_of(read_whole(file)));
  } catch (const Error&) {
    return "none";
  }
}

bool usable(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return ::access(folder.c_str(), W_OK | X_OK) == 0;
}

fs::path from_environment(const char* name, const char* below) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value != '/') return {};
  return fs::path(value) / below;
}

void write_headers(const fs::path& folder) {
  for (const lab::Asset& asset : lab::assets()) {
    if (asset.path.starts_with("kernels/")) write_whole(folder / asset.path, asset.text);
  }
  write_whole(folder / "nlohmann" / "json_fwd.hpp", kJsonDeclared);
  for (const char* name : {"assert.h", "cassert"}) write_whole(folder / name, kAssert);
}

}  // namespace

fs::path cache_folder() {
  if (const fs::path asked = from_environment("TILESTEP_CACHE", ""); !asked.empty()) {
    if (usable(asked)) return asked;
    throw Error(
        fmt::format("the folder {} that TILESTEP_CACHE names cannot be written; name another one",
                    asked.string()),
        ExitCode::unavailable);
  }
  for (const fs::path& folder : {from_environment("XDG_CACHE_HOME", "tilestep"),
                                 from_environment("HOME", ".cache/tilestep")}) {
    if (!folder.empty() && usable(folder)) return folder;
  }
  std::error_code error;
  const fs::path temporary =
      fs::temp_directory_path(error) / fmt::format("tilestep-{}", ::getuid());
  if (!error && usable(temporary)) {
    fs::permissions(temporary, fs::perms::owner_all, error);  // fails where it is somebody else's
    if (!error) return temporary;
  }
  throw Error(
      "there is no folder to compile kernels in: neither ~/.cache nor the system's folder for "
      "temporary "
      "files can be written; name one with TILESTEP_CACHE",
      ExitCode::unavailable);
}

fs::path header_folder() {
  const auto assets = lab::assets();
  const bool built_in = std::any_of(assets.begin(), assets.end(), [](const lab::Asset& asset) {
    return asset.path == kBaseHeader;
  });
  if (!built_in) {
    throw Error("this program was built without the headers of its kernels, so it compiles none",
                ExitCode::unavailable);
  }
  const fs::path folder =
      cache_folder() /
      fmt::format("headers-{}", std::string_view(simt::source_hash()).substr(0, 16));
  make_whole(folder, write_headers);
  return folder;
}

void write_whole(const fs::path& file, std::string_view text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  std::ofstream out(file, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) {
    throw Error(fmt::format("{} cannot be written; is the disk full?", file.string()),
                ExitCode::unavailable);
  }
}

std::string read_whole(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.is_open() || in.bad()) {
    throw Error(fmt::format("{} cannot be read", file.string()), ExitCode::unavailable);
  }
  return text;
}

void list_contents(const fs::path& folder) {
  std::string list;
  int count = 0;
  std::error_code error;
  fs::create_directories(folder, error);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    list += fmt::format("{} {}\n", state_of(entry.path()),
                        entry.path().lexically_relative(folder).string());
    ++count;
  }
  write_whole(folder / kContents, fmt::format("{}\n{}", count, list));
}

bool is_whole(const fs::path& folder) {
  std::ifstream list(folder / kContents);
  int count = -1;
  std::string size, hash, name;
  list >> count;
  for (; count > 0 && list >> size >> hash && std::getline(list >> std::ws, name); --count) {
    if (state_of(folder / name) != size + " " + hash) return false;
  }
  return count == 0;
}

void keep_newest(const fs::path& folder, std::size_t kept) {
  std::error_code error;
  std::vector<fs::directory_entry> all;
  for (const auto& entry : fs::directory_iterator(folder, error)) all.push_back(entry);
  if (all.size() <= kept) return;
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    std::error_code ignored;
    return a.last_write_time(ignored) > b.last_write_time(ignored);
  });
  const auto lately = fs::file_time_type::clock::now() - kLately;
  for (std::size_t i = kept; i < all.size(); ++i) {
    if (all[i].last_write_time(error) < lately) fs::remove_all(all[i].path(), error);
  }
}

fs::path draft_beside(const fs::path& folder) {
  static std::atomic<int> number{0};
  return fs::path(folder.string() + fmt::format(".{}-{}", ::getpid(), ++number));
}

bool publish(const fs::path& draft, const fs::path& folder) {
  std::error_code error;
  fs::rename(draft, folder, error);
  if (!error) return true;
  const std::string why = error.message();
  fs::remove_all(draft, error);
  if (fs::exists(folder, error)) return false;
  throw Error(fmt::format("{} cannot be made: {}", folder.string(), why), ExitCode::unavailable);
}

OwnFolder::OwnFolder(std::string_view kind) : path_(draft_beside(cache_folder() / kind)) {}

OwnFolder::~OwnFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

}  // namespace tilestep::workbench

#include "app/keep/drafts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "app/file.hpp"
#include "app/keep/place.hpp"
#include "kernels/base/lab/edit.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

constexpr double kDraftRest_s = 0.5;
constexpr std::size_t kMostDraftBytes = 1 << 20;

fs::path beside(const fs::path& path, std::string_view ending) {
  return path.string() + std::string(ending);
}

/// The first of "one_pass.cu.before-1", "…-2" that is not there.
fs::path free_beside(const fs::path& path, std::string_view ending) {
  std::error_code failed;
  for (int n = 1;; ++n) {
    fs::path free = beside(path, fmt::format("{}-{}", ending, n));
    if (!fs::exists(fs::symlink_status(free, failed))) return free;
  }
}

/// What the file says; nothing where there is none. Throws Error as read_file does.
std::optional<std::string> draft_text(const fs::path& path) {
  std::error_code failed;
  if (!fs::exists(path, failed)) return std::nullopt;
  return read_file(path, kMostDraftBytes);
}

std::string hash_beside(const fs::path& path) {
  try {
    const std::string text = draft_text(beside(path, ".original")).value_or("");
    return text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return {};  // of whatever build it is, the draft itself is what counts
  }
}

}  // namespace

std::optional<fs::path> drafts_folder() {
  const auto folder = state_folder();
  return folder ? std::optional(*folder / "drafts") : std::nullopt;
}

fs::path Drafts::path(const DraftOf& of) const {
  if (!folder_) return {};
  return *folder_ / fs::path(of.lesson).filename() / fs::path(of.source).filename();
}

void Drafts::say(std::string sentence) {
  if (remark_.empty()) remark_ = std::move(sentence);
}

void Drafts::note_state(const fs::path& path, File& file) const {
  std::error_code failed;
  file.time = fs::last_write_time(path, failed);
  file.size = fs::file_size(path, failed);
}

std::optional<Drafts::Draft> Drafts::load(const DraftOf& of) {
  if (!folder_) return std::nullopt;
  const fs::path path = this->path(of);
  File& file = files_[path];
  if (!file.pending) {
    try {
      file.there = draft_text(path);
      note_state(path, file);
    } catch (const Error& error) {
      say(fmt::format("the draft was not read: {}", error.what()));
      return std::nullopt;
    }
  }
  const std::optional<std::string>& text = file.pending ? file.pending : file.there;
  if (!text || *text == of.original) return std::nullopt;
  const std::string hash = hash_beside(path);
  return Draft{*text, !hash.empty() && hash != lab::hash_of(of.original)};
}

void Drafts::keep(const DraftOf& of, std::string_view text, double now_s) {
  if (!folder_) return;
  File& file = files_[path(of)];
  if (!file.pending) file.due_s = now_s + kDraftRest_s;
  file.pending = text;
  if (!file.there) file.hash = lab::hash_of(of.original);
}

void Drafts::start_over(const DraftOf& of, std::string_view text, double now_s) {
  if (!folder_) return;
  const fs::path path = this->path(of);
  if (const auto draft = load(of); draft && draft->text != text) {
    try {
      write_file(free_beside(path, ".before"), draft->text);
    } catch (const Error& error) {
      say(fmt::format("the earlier draft was not kept: {}", error.what()));
    }
  }
  keep(of, text, now_s);
  files_[path].hash = lab::hash_of(of.original);
}

std::optional<double> Drafts::due_s() const {
  std::optional<double> due;
  for (const auto& [path, file] : files_) {
    if (file.pending) due = std::min(due.value_or(file.due_s), file.due_s);
  }
  return due;
}

void Drafts::write_due(double now_s) {
  for (auto& [path, file] : files_) {
    if (file.pending && file.due_s <= now_s) write(path, file);
  }
}

void Drafts::write() {
  for (auto& [path, file] : files_) {
    if (file.pending) write(path, file);
  }
}

void Drafts::write(const fs::path& path, File& file) {
  const std::string text = *std::exchange(file.pending, std::nullopt);
  try {
    // Another window, or another program, has written there meanwhile: nobody's work is lost.
    const auto there = draft_text(path);
    if (there && there != file.there && *there != text) {
      const fs::path aside = free_beside(path, ".other");
      write_file(aside, *there);
      say(fmt::format("another program has changed the draft; its version is kept as '{}'",
                      aside.string()));
    }
    if (!file.hash.empty()) {
      write_file(beside(path, ".original"), file.hash + "\n");
      file.hash.clear();
    }
    if (there != text) write_file(path, text);
    file.there = text;
    note_state(path, file);
    complained_ = false;
  } catch (const Error& error) {
    if (!std::exchange(complained_, true)) {
      say(fmt::format("the draft was not saved: {}", error.what()));
    }
  }
}

std::optional<std::string> Drafts::changed_outside(const DraftOf& of) {
  const fs::path path = this->path(of);
  const auto found = files_.find(path);
  if (found == files_.end() || found->second.pending) return std::nullopt;
  File& file = found->second;
  const auto [time, size] = std::pair(file.time, file.size);
  note_state(path, file);
  if (file.time == time && file.size == size) return std::nullopt;
  try {
    auto text = draft_text(path);
    if (!text || text == file.there) return std::nullopt;
    // Some editors empty a file before they write it.
    if (text->empty()) {
      file.time = {};
      return std::nullopt;
    }
    file.there = text;
    return text;
  } catch (const Error& error) {
    say(fmt::format("the draft was not read: {}", error.what()));
    return std::nullopt;
  }
}

}  // namespace tilestep::app

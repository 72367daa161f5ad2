#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tilestep::app {

/// "$XDG_STATE_HOME/tilestep/drafts", else "~/.local/state/tilestep/drafts"; nothing where neither is named.
std::optional<std::filesystem::path> drafts_folder();

/// Which source a draft is of.
struct DraftOf {
  std::string_view lesson;    ///< "online-softmax"
  std::string_view source;    ///< "kernels/attention/online_softmax/one_pass.cu"
  std::string_view original;  ///< its text as built in
};

/// What the user makes of kernel sources, kept as files: FOLDER/online-softmax/one_pass.cu, and beside it
/// one_pass.cu.original with the hash of the source that it was made from. A change is in its file half a second later, so
/// that a window that is killed loses no more. Nothing here throws: `take_remark` says what went wrong.
class Drafts {
 public:
  /// Without a folder nothing is kept.
  explicit Drafts(std::optional<std::filesystem::path> folder) : folder_(std::move(folder)) {}
  ~Drafts() { write(); }
  Drafts(const Drafts&) = delete;
  Drafts& operator=(const Drafts&) = delete;

  bool keeps() const { return folder_.has_value(); }
  struct Draft {
    std::string text;
    bool of_other_build = false;  ///< made from another text of the source
  };
  /// The draft that was kept; nothing: there is none, or it is the original itself.
  std::optional<Draft> load(const DraftOf& of);
  /// Where it is kept; empty: nowhere.
  std::filesystem::path path(const DraftOf& of) const;
  /// Keeps another text: in half a second.
  void keep(const DraftOf& of, std::string_view text, double now_s);
  /// As `keep`, of a draft that begins anew: what it was is kept beside it, as one_pass.cu.before-1.
  void start_over(const DraftOf& of, std::string_view text, double now_s);
  /// When `write_due` has something to do.
  std::optional<double> due_s() const;
  void write_due(double now_s);
  /// Writes all that waits, now.
  void write();
  /// The text of the file where another program has changed it since it was read or written, once.
  std::optional<std::string> changed_outside(const DraftOf& of);
  /// Messages since the last call; empty: none.
  std::string take_remark() { return std::exchange(remark_, {}); }

 private:
  struct File {
    std::optional<std::string> there;  ///< the file's last known content; nothing: there is no file
    std::optional<std::string> pending;  ///< the content to write
    double due_s = 0;
    std::string hash;  ///< of the original, to be written beside it
    std::filesystem::file_time_type time = {};
    std::uintmax_t size = 0;
  };
  void write(const std::filesystem::path& path, File& file);
  void note_state(const std::filesystem::path& path, File& file) const;
  void say(std::string sentence);

  std::optional<std::filesystem::path> folder_;
  std::map<std::filesystem::path, File> files_;
  std::string remark_;
  bool complained_ = false;  ///< that nothing can be written
};

}  // namespace tilestep::app

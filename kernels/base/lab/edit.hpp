#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/simt/error.hpp"

/// A kernel source edited by the user, and the outcome: plain data, to and from JSON.
namespace tilestep::lab {

template <class T>
class Fields;

/// The longest kernel source, in bytes.
inline constexpr std::size_t kMostKernelBytes = std::size_t{512} << 10;
/// Why `text` is not a kernel source, as the end of a sentence ("is UTF-16; …"); empty if it is one. A source is UTF-8
/// without control characters but line ends, tabs and form feeds, at most kMostKernelBytes long.
std::string why_no_source(std::string_view text);

/// A source to compile in place of the built-in one.
struct KernelEdit {
  std::string path;  ///< as in the repository: "kernels/attention/online_softmax/one_pass.cu"
  std::string text;
};
inline bool operator==(const KernelEdit& a, const KernelEdit& b) {
  return a.path == b.path && a.text == b.text;
}

enum class Severity { error, warning, note };
constexpr auto names_of(Severity) {
  return std::to_array<std::string_view>({"error", "warning", "note"});
}

/// A message of the compiler or the emulation about a line of the edited source.
struct Diagnostic {
  int line = 0;    ///< 1-based; 0: not about a line
  int column = 0;  ///< 1-based, in bytes; 0: the whole line
  Severity severity = Severity::error;
  std::string text;
};

/// The kernel that a report is about, if it is not the built-in one.
struct EditedKernel {
  std::string path;      ///< of the source that was replaced
  std::string hash;      ///< of its text: 16 hexadecimal digits
  std::string compiler;  ///< "g++ 12.2.0", "nvcc 13.0"
  double compile_ms = 0;
  bool cached = false;  ///< it had been compiled before
  std::vector<Diagnostic> diagnostics;
  bool idle = false;  ///< the run launched none of its kernels, so its checks are about others
};

/// A hash of the text, as 16 hexadecimal digits.
std::string hash_of(std::string_view text);

/// The Error for a source that does not compile, or a kernel that fails in a line of it.
class SourceError : public Error {
 public:
  SourceError(const std::string& sentence, std::vector<Diagnostic> diagnostics,
              ExitCode code = ExitCode::check_failed)
      : Error(sentence, code), diagnostics_(std::move(diagnostics)) {}
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};
/// The diagnostics of `error` if it is a SourceError; otherwise none.
std::vector<Diagnostic> diagnostics_of(const Error& error);

const Fields<Diagnostic>& diagnostic_fields();
const Fields<KernelEdit>& kernel_edit_fields();
const Fields<EditedKernel>& edited_kernel_fields();

}  // namespace tilestep::lab

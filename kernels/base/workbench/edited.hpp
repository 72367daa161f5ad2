#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/simt/backends.hpp"

namespace tilestep::workbench {

/// The table `built` with `edited` in place of its lesson's own entry: a lesson may launch another's kernels too.
std::vector<simt::KernelEntry> with_edited(const simt::KernelEntry& edited,
                                           std::span<const simt::KernelEntry> built);

/// A lesson's kernels for the emulation with an edited source among them, compiled and loaded. It must outlive the
/// devices that are made with its table; what was loaded stays for the rest of this process.
class EditedKernels {
 public:
  /// `built`: as of with_edited. Throws what compile_for_host throws; lab::SourceError for what it cannot be linked with.
  EditedKernels(std::string_view lesson, const lab::KernelEdit& edit,
                std::span<const simt::KernelEntry> built, const lab::Progress& progress,
                const std::function<void(std::string_view)>& tell = {});

  /// The lesson's, then those of the others as they were built.
  std::span<const simt::KernelEntry> table() const { return table_; }
  const lab::EditedKernel& info() const { return info_; }
  /// Of the module, as it lies in the cache.
  const std::string& file() const { return file_; }

 private:
  std::string lesson_;
  std::string file_;
  lab::EditedKernel info_;
  std::vector<simt::KernelEntry> table_;
};

/// Gives `device`, a GPU, the lesson's kernels with an edited source among them to launch in place of its own; what the
/// edit does not reach stays as it was built. Throws what compile_for_gpu throws.
lab::EditedKernel use_edited_on_gpu(simt::Device& device, std::string_view lesson,
                                    const lab::KernelEdit& edit, const lab::Progress& progress,
                                    const std::function<void(std::string_view)>& tell = {});

/// Says in the report which kernel ran, and adds what it showed by simt::watch as a table, if it showed something.
void tell_of_edit(lab::Report& report, const lab::EditedKernel& kernel, const simt::Device& device);

}  // namespace tilestep::workbench

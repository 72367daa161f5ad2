#pragma once

#include <string>
#include <vector>

#include "kernels/base/lab/edit.hpp"
#include "kernels/base/simt/emulator/fault_place.hpp"

namespace tilestep::workbench {

/// An edited source, and the module that was compiled from it and is loaded.
struct EditedModule {
  std::string file;  ///< of the module
  std::string path;  ///< of the source, as in the repository: "kernels/…/one_pass.cu"
};

/// For each address of the calling process the line of the edited source that it belongs to; 0 for those of other code,
/// and for all where addr2line (binutils) is missing. Of code that was inlined it is the innermost line of that source.
std::vector<int> lines_of(const std::vector<const void*>& addresses, const EditedModule& module);

/// Whether one of the kernels (addresses of the calling process) stands in the edited source. Of a source that others include,
/// and where addr2line is missing: in its module.
bool stand_in_source(const std::vector<const void*>& kernels, const EditedModule& module,
                     bool shared);

/// The line of the edited source in which it happened; 0: none is known.
int line_of(const simt::FaultPlace& place, const EditedModule& module);

/// "… (line 42 of one_pass.cu)", unless the sentence says so already or the line is 0.
std::string with_line(const std::string& sentence, int line, const EditedModule& module);

/// The same fault with its line, as a diagnostic too.
lab::SourceError located(const simt::KernelFault& fault, const EditedModule& module);

}  // namespace tilestep::workbench

#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// Which sources a lesson's kernels are made of, as they were built in.
namespace tilestep::workbench {

/// "one_pass.cu" of a path.
inline std::string_view name_of_file(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// "kernels/attention/online_softmax" for "online-softmax". Throws Error (unavailable) where the sources
/// of that lesson were not built in.
std::string folder_of(std::string_view lesson);

/// The sources of a lesson that a user may read and edit, "kernels/…/one_pass.cu": those with device code that its
/// launch files include, headers too.
std::vector<std::string> editable_sources(std::string_view lesson);

/// The headers with device code that lessons share and the lesson's kernels include, as nvcc compiles them. They are
/// read, not edited: each backend has all lessons' kernels on one copy of them.
std::vector<std::string> shared_headers(std::string_view lesson);
bool is_shared_header(std::string_view path);

/// The location of a function.
struct Definition {
  std::string path;
  int line = 0;  ///< 1-based, of its name
};
using Definitions = std::map<std::string, Definition, std::less<>>;
/// The device functions that `path`, an editable source of the lesson or a shared header, defines or reaches by its
/// includes; of several with one name the first of the nearest source.
Definitions functions_in_reach(std::string_view lesson, std::string_view path);

/// The files of a lesson that are compiled: no other one includes them.
std::vector<std::string> launch_sources(std::string_view lesson);

/// Whether others than they include `path`, a source of the lesson: then kernels of other sources have its code in them too.
bool is_shared(std::string_view lesson, std::string_view path);

/// Those of them that include `path`, directly or not, and the one that ends with the lesson's set of kernels.
std::vector<std::string> launch_sources_of(std::string_view lesson, std::string_view path);

/// Which source of the lesson the file `name` with this text is an edit of: the one of its name, else the one with which
/// it has most lines in common. Throws Error naming the lesson's sources.
std::string source_meant(std::string_view lesson, std::string_view name, std::string_view text);

/// Throws Error naming the lesson's sources if `path` is none of them.
void require_source(std::string_view lesson, std::string_view path);

}  // namespace tilestep::workbench

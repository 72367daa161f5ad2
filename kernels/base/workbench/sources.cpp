#include "kernels/base/workbench/sources.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::workbench {
namespace {

/// An edit of a source keeps at least so much of it, counted in lines.
constexpr double kLeastInCommon = 0.2;

std::string in_code(std::string_view lesson) {
  std::string id(lesson);
  std::replace(id.begin(), id.end(), '-', '_');
  return id;
}

/// The files of ours that `text` includes.
std::set<std::string> includes_of(std::string_view text) {
  constexpr std::string_view kInclude = "#include \"";
  std::set<std::string> all;
  for (std::size_t at = text.find(kInclude); at != text.npos; at = text.find(kInclude, at)) {
    at += kInclude.size();
    const std::size_t end = std::min(text.find('"', at), text.size());
    all.emplace(text.substr(at, end - at));
  }
  return all;
}

bool built_in(std::string_view path) {
  const auto assets = lab::assets();
  return std::any_of(assets.begin(), assets.end(),
                     [&](const lab::Asset& asset) { return asset.path == path; });
}

/// Adds `path` and the files that it includes.
void reach(const std::string& path, std::set<std::string>& reached) {
  if (!built_in(path) || !reached.insert(path).second) return;
  for (const std::string& next : includes_of(lab::asset(path))) reach(next, reached);
}

/// "kernels/attention/decode/" of a file there or deeper.
std::string folder_of_file(std::string_view path) {
  std::size_t end = 0;
  for (int slashes = 0; slashes < 3; ++slashes)
    end = std::min(path.find('/', end), path.size()) + 1;
  return std::string(path.substr(0, end));
}

/// The lesson's folder, and those that it shares with others: its files include theirs, and they have no kernel set.
std::set<std::string> folders_of(std::string_view lesson) {
  std::set<std::string> reached;
  reach(folder_of(lesson) + "/launch.cu", reached);
  std::set<std::string> folders;
  for (const std::string& path : reached) {
    const std::string folder = folder_of_file(path);
    if (folder.starts_with("kernels/base/") || !path.starts_with(folder)) continue;
    if (!built_in(folder + "launch.cu")) folders.insert(folder);
  }
  folders.insert(folder_of(lesson) + "/");
  return folders;
}

/// The files of the lesson's folders with this ending.
std::vector<std::string> files_of(std::string_view lesson, std::string_view ending) {
  const std::set<std::string> folders = folders_of(lesson);
  std::vector<std::string> all;
  for (const lab::Asset& asset : lab::assets()) {
    if (asset.path.ends_with(ending) && folders.contains(folder_of_file(asset.path)))
      all.emplace_back(asset.path);
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// Whether a header has code that is compiled with a kernel: for each backend, so that an edit of it replaces it.
bool has_device_code(std::string_view text) {
  return text.find("SIMT_BACKEND") != text.npos && text.find("__device__") != text.npos;
}

/// What an emulated kernel is compiled with where nvcc takes another header, and the tape, whose calls are folded.
bool is_unseen(std::string_view path) {
  return path.starts_with("kernels/base/simt/emulator/") || path == "kernels/base/simt/tape.hpp";
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The name of the function whose declaration goes on at `at`, and where it stands; empty: it is none.
std::string_view name_in(std::string_view text, std::size_t& at) {
  constexpr std::string_view kBounds = "__launch_bounds__";
  for (std::size_t word = at; at < text.size() && text.substr(at, 1).find_first_of(";{=") != 0;
       ++at) {
    if (is_word(text[at])) {
      if (at == 0 || !is_word(text[at - 1])) word = at;
      continue;
    }
    if (text[at] != '(' || !is_word(text[at - 1])) continue;
    const std::string_view name = text.substr(word, at - word);
    if (name == kBounds) {
      at = std::min(text.find(')', at), text.size() - 1);
      continue;
    }
    at = word;
    return name == "operator" ? std::string_view() : name;
  }
  return {};
}

/// The device functions of a source that were not found yet.
void add_functions(const std::string& path, Definitions& found) {
  const std::string_view text = lab::asset(path);
  std::size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::size_t mark = std::min(line.find("__device__"), line.find("__global__"));
    if (mark < line.find("//")) {
      constexpr std::size_t kMark = 10;
      std::size_t at = begin + mark + kMark;
      const std::string_view name = name_in(text, at);
      const auto from = text.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto lines =
          at > begin ? std::count(from, text.begin() + static_cast<std::ptrdiff_t>(at), '\n') : 0;
      if (!name.empty())
        found.try_emplace(std::string(name), Definition{path, number + static_cast<int>(lines)});
    }
    begin = end + 1;
  }
}

std::set<std::string_view> lines_of(std::string_view text) {
  std::set<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.size() > 3) lines.insert(line);  // a brace alone says nothing
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

[[noreturn]] void refuse(std::string_view lesson, std::string_view what) {
  std::vector<std::string_view> names;
  const std::vector<std::string> sources = editable_sources(lesson);
  for (const std::string& source : sources) names.push_back(name_of_file(source));
  throw Error(fmt::format("{} is no kernel source of '{}'; allowed: {}", what, lesson,
                          fmt::join(names, ", ")));
}

}  // namespace

std::string folder_of(std::string_view lesson) {
  const std::string end = fmt::format("/{}/launch.cu", in_code(lesson));
  for (const lab::Asset& asset : lab::assets()) {
    if (asset.path.starts_with("kernels/") && asset.path.ends_with(end)) {
      return std::string(asset.path.substr(0, asset.path.rfind('/')));
    }
  }
  throw Error(fmt::format("the kernel sources of '{}' were not built into this program", lesson),
              ExitCode::unavailable);
}

std::vector<std::string> launch_sources(std::string_view lesson) {
  std::vector<std::string> all = files_of(lesson, ".cu");
  std::set<std::string> included;
  for (const std::string_view ending : {".cu", ".hpp"}) {
    for (const std::string& file : files_of(lesson, ending))
      included.merge(includes_of(lab::asset(file)));
  }
  std::erase_if(all, [&](const std::string& source) { return included.count(source) > 0; });
  return all;
}

bool is_shared(std::string_view lesson, std::string_view path) {
  std::vector<std::string> others = editable_sources(lesson);
  for (const std::string& header : files_of(lesson, ".hpp")) others.push_back(header);
  return std::any_of(others.begin(), others.end(), [&](const std::string& file) {
    return includes_of(lab::asset(file)).count(std::string(path)) > 0;
  });
}

std::vector<std::string> editable_sources(std::string_view lesson) {
  std::set<std::string> reached;
  const std::vector<std::string> launch = launch_sources(lesson);
  for (const std::string& source : launch) reach(source, reached);
  std::vector<std::string> all, headers;
  for (const std::string& source : reached) {
    if (source.starts_with("kernels/base/")) continue;
    if (source.ends_with(".cu")) {
      const bool compiled = std::find(launch.begin(), launch.end(), source) != launch.end();
      if (!compiled) all.push_back(source);
    } else if (has_device_code(lab::asset(source))) {
      headers.push_back(source);
    }
  }
  all.insert(all.end(), headers.begin(), headers.end());
  return all;
}

bool is_shared_header(std::string_view path) {
  return path.starts_with("kernels/base/simt/") && path.ends_with(".hpp") && built_in(path) &&
         !is_unseen(path) && lab::asset(path).find("__device__ ") != std::string_view::npos;
}

std::vector<std::string> shared_headers(std::string_view lesson) {
  std::set<std::string> reached;
  for (const std::string& source : editable_sources(lesson)) reach(source, reached);
  std::vector<std::string> headers(reached.begin(), reached.end());
  std::erase_if(headers, [](const std::string& path) { return !is_shared_header(path); });
  return headers;
}

Definitions functions_in_reach(std::string_view lesson, std::string_view path) {
  std::vector<std::string> sources = editable_sources(lesson);
  const std::vector<std::string> shared = shared_headers(lesson);
  sources.insert(sources.end(), shared.begin(), shared.end());
  std::vector<std::string> reached = {std::string(path)};
  Definitions found;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::string file = reached[i];
    const bool shown = std::find(sources.begin(), sources.end(), file) != sources.end();
    if (shown) add_functions(file, found);
    for (const std::string& next : includes_of(lab::asset(file))) {
      const bool known = std::find(reached.begin(), reached.end(), next) != reached.end();
      if (!known && built_in(next) && !is_unseen(next)) reached.push_back(next);
    }
  }
  const std::string_view text = lab::asset(path);  // whose own lambdas hide them
  std::erase_if(found, [&](const auto& each) {
    return text.find(fmt::format("auto {} = [", each.first)) != text.npos;
  });
  return found;
}

std::vector<std::string> launch_sources_of(std::string_view lesson, std::string_view path) {
  std::vector<std::string> chosen;
  for (const std::string& source : launch_sources(lesson)) {
    std::set<std::string> reached;
    reach(source, reached);
    if (source.ends_with("/launch.cu") || reached.count(std::string(path)) > 0) {
      chosen.push_back(source);
    }
  }
  return chosen;
}

void require_source(std::string_view lesson, std::string_view path) {
  const std::vector<std::string> all = editable_sources(lesson);
  if (std::find(all.begin(), all.end(), path) == all.end())
    refuse(lesson, fmt::format("'{}'", path));
}

std::string source_meant(std::string_view lesson, std::string_view name, std::string_view text) {
  const std::vector<std::string> all = editable_sources(lesson);
  for (const std::string& source : all) {
    if (name_of_file(source) == name_of_file(name)) return source;
  }
  const auto mine = lines_of(text);
  const std::string* nearest = nullptr;
  double most = kLeastInCommon;
  for (const std::string& source : all) {
    const auto its = lines_of(lab::asset(source));
    const auto common = std::count_if(its.begin(), its.end(),
                                      [&](std::string_view line) { return mine.count(line) > 0; });
    const double share =
        static_cast<double>(common) / static_cast<double>(std::max<std::size_t>(1, its.size()));
    if (share > most) most = share, nearest = &source;
  }
  if (nearest == nullptr) refuse(lesson, fmt::format("'{}', by its name and by its lines,", name));
  return *nearest;
}

}  // namespace tilestep::workbench

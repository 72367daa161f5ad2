#include "kernels/base/workbench/precompiled.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "kernels/base/lab/json.hpp"
#include "kernels/base/simt/error.hpp"
#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/program.hpp"

namespace tilestep::workbench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "kernels/base/workbench/kernel_headers.hpp";
/// One for each compiler and build that are in use at a time.
constexpr std::size_t kKeptHeaders = 2;

bool is_clang(const Compiler& compiler) {
  return compiler.name.find("clang") != std::string::npos;
}

/// g++ looks for the precompiled header beside the name that it is told to include; what stands there under that name
/// is included where it does not fit.
constexpr const char* kName = "kernel_headers.hpp";

fs::path made_in(const fs::path& folder, const Compiler& compiler) {
  return folder / fmt::format("{}{}", kName, is_clang(compiler) ? ".pch" : ".gch");
}

void make(const Job& job, const fs::path& folder) {
  write_whole(folder / kName, fmt::format("#include \"{}\"\n", kHeader));
  std::vector<std::string> words = {job.compiler.program};
  for (const std::string& flag : job.flags) words.push_back(flag == "c++" ? "c++-header" : flag);
  words.insert(words.end(), {"-I", job.headers.string(), (job.headers / kHeader).string(), "-o",
                             made_in(folder, job.compiler).string()});
  const Ran ran = run_program(words, kCompileLimit, job.memory_mb, job.watch.stop);
  if (ran.status == 0) return;
  throw Error(fmt::format("{} cannot be precompiled: {}", kHeader, ran.output.substr(0, 400)),
              ExitCode::unavailable);
}

}  // namespace

std::vector<std::string> precompiled_headers(const Job& job) {
  const char* set = std::getenv(kPrecompiledVariable);
  const std::string_view wanted = set == nullptr ? "" : set;
  if (wanted == "no") return {};
  std::string key = job.headers.filename().string() + job.compiler.program + job.compiler.name;
  for (const std::string& flag : job.flags) key += flag + ' ';
  try {
    const fs::path all = !wanted.empty() ? fs::path(wanted) : cache_folder() / "precompiled";
    const fs::path folder = all / lab::hash_of(key);
    std::error_code error;
    fs::create_directories(all, error);
    if (make_whole(folder, [&](const fs::path& draft) { make(job, draft); })) {
      keep_newest(all, kKeptHeaders);
    }
    fs::last_write_time(folder, fs::file_time_type::clock::now(), error);  // it is in use
    if (is_clang(job.compiler)) return {"-include-pch", made_in(folder, job.compiler).string()};
    return {"-include", (folder / kName).string()};
  } catch (const Cancelled&) {
    throw;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace tilestep::workbench

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kernels/base/inspect/run.hpp"
#include "kernels/base/workbench/cuda_words.hpp"
#include "kernels/base/workbench/diagnostics.hpp"
#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/job.hpp"
#include "kernels/base/workbench/precompiled.hpp"

namespace tilestep::inspect {
namespace {

namespace fs = std::filesystem;
using workbench::Job;

constexpr std::size_t kKept = 32, kMostFiles = 64;
/// Device functions are inlined: what a call takes from memory or returns to it is no access to the compilers.
constexpr const char* kInlined = "-DSIMT_INLINED";
/// Which ways threads take is told (lockstep.hpp).
constexpr const char* kWays = "-fsanitize-coverage=trace-pc,trace-cmp";
constexpr const char* kWaysOfClang = "-fsanitize-coverage=bb,no-prune,trace-pc,trace-cmp";
constexpr const char* kToolkit = "kernels/base/simt/toolkit";

/// The files that a program takes from its own folder, by the names that it includes them by.
void add_own(const fs::path& folder, std::string_view text,
             std::map<std::string, std::string>& files) {
  for (const std::string& name : workbench::included_by(text)) {
    const fs::path path = fs::path(name).lexically_normal();
    std::error_code error;
    if (path.is_absolute() || path.string().starts_with("..") || files.count(name) > 0 ||
        files.size() >= kMostFiles || !fs::is_regular_file(folder / path, error)) {
      continue;
    }
    const std::string own = workbench::read_whole(folder / path);
    files[name] = own;
    add_own((folder / path).parent_path() == folder ? folder : (folder / path).parent_path(), own,
            files);
  }
}

std::string key_of(const Job& job, const std::map<std::string, std::string>& files) {
  std::string all = std::string("program\n") + kWays + job.edit.path + '\n' + job.edit.text + '\n' +
                    job.headers.filename().string() + job.compiler.program + job.compiler.name;
  for (const std::string& flag : job.flags) all += flag + ' ';
  for (const auto& [name, text] : files) all += name + '\n' + text;
  return lab::hash_of(all);
}

void link(const Job& job, const fs::path& object) {
  const fs::path list = job.draft / "renamed.txt";
  workbench::write_whole(list, std::string(workbench::kWatchedWords) + kProgramWords);
  if (workbench::run_program({"objcopy", "--redefine-syms=" + list.string(), object.string()},
                             workbench::kCompileLimit)
          .status != 0) {
    throw Error(
        "the program objcopy, of binutils, does not work here; install it (Debian: apt-get install "
        "binutils)",
        ExitCode::unavailable);
  }
  const workbench::Ran ran =
      workbench::run_program({job.compiler.program, "-shared", "-o",
                              (job.draft / workbench::kHostModule).string(), object.string()},
                             workbench::kCompileLimit, 0, job.watch.stop);
  if (ran.status != 0) workbench::fail(job, ran);
  fs::remove(object);
}

}  // namespace

workbench::Compiled compile_program(const fs::path& path, std::string_view text,
                                    const workbench::CompileWatch& watch) {
  Job job;
  job.edit = {path.filename().string(), std::string(text)};
  job.compiler = workbench::host_compiler();
  job.flags = workbench::host_flags(job.compiler);
  job.emulated = true;
  job.memory_mb = 4096;
  job.watch = watch;
  job.headers = workbench::header_folder();
  std::map<std::string, std::string> own;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  add_own(folder, text, own);
  const fs::path all = workbench::cache_folder() / "inspected", made = all / key_of(job, own);
  std::error_code error;
  fs::create_directories(all, error);
  workbench::Compiled compiled;
  compiled.info.path = job.edit.path;
  compiled.info.compiler = job.compiler.name;
  const auto start = std::chrono::steady_clock::now();
  compiled.info.cached = !workbench::make_whole(made, [&](const fs::path& draft) {
    job.draft = draft;
    const fs::path source = draft / "edited" / job.edit.path, object = draft / "program.o";
    workbench::write_whole(source, workbench::for_emulation(text, workbench::Written::program));
    for (const auto& [name, its_text] : own) {
      workbench::write_whole(draft / "edited" / name,
                             workbench::for_emulation(its_text, workbench::Written::program));
    }
    const std::vector<std::string> headers = workbench::precompiled_headers(job);
    const auto compiled_as = [&](std::vector<std::string> more) {
      std::vector<std::string> words = {job.compiler.program};
      const bool clang = job.compiler.name.find("clang") != std::string::npos;
      more.insert(more.end(),
                  {clang ? kWaysOfClang : kWays, "-w", "-include",
                   (job.headers / kToolkit / "host.hpp").string(), "-I", job.headers.string(), "-I",
                   (job.headers / kToolkit).string(), "-iquote", fs::absolute(folder).string(),
                   source.string(), "-o", object.string()});
      for (const auto& part : {headers, job.flags, more}) {
        words.insert(words.end(), part.begin(), part.end());
      }
      return workbench::run_program(words, workbench::kCompileLimit, job.memory_mb, watch.stop);
    };
    workbench::Ran ran = compiled_as({kInlined});
    if (ran.status != 0 && ran.output.find("inlining failed") != std::string::npos) {
      ran = compiled_as(
          {});  // a function calls itself: it is called then, and its arguments are no accesses
    }
    if (ran.status != 0) workbench::fail(job, ran);
    link(job, object);
  });
  compiled.info.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (!compiled.info.cached) workbench::keep_newest(all, kKept);
  compiled.folder = made;
  return compiled;
}

}  // namespace tilestep::inspect

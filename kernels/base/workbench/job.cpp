#include "kernels/base/workbench/job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/json.hpp"
#include "kernels/base/workbench/cuda_words.hpp"
#include "kernels/base/workbench/diagnostics.hpp"
#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/guarded.hpp"
#include "kernels/base/workbench/precompiled.hpp"
#include "kernels/base/workbench/sources.hpp"

namespace tilestep::workbench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kKept = 64;
constexpr const char* kInfo = "info.json";
/// What stands in for the CUDA Toolkit's headers.
constexpr const char* kToolkit = "kernels/base/simt/toolkit";

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::vector<lab::Diagnostic> compile_one(const Job& job, const std::string& source) {
  std::vector<std::string> words = {job.compiler.program};
  words.insert(words.end(), job.flags.begin(), job.flags.end());
  words.insert(words.end(), {"-I", (job.draft / "edited").string(), "-I", job.headers.string(),
                             (job.headers / source).string(), "-o", job.made_of(source).string()});
  const Ran ran = run_program(words, kCompileLimit, job.memory_mb, job.watch.stop);
  if (ran.status != 0) fail(job, ran);
  return diagnostics_in(ran.output, job.edit.path);
}

/// Each processor takes the next source when it has done one; what is longest should come first.
std::vector<lab::Diagnostic> compile_all(const Job& job, const std::vector<std::string>& sources) {
  std::atomic<std::size_t> next{0};
  std::vector<std::vector<lab::Diagnostic>> said(sources.size());
  const auto work = [&] {
    for (std::size_t i = next++; i < sources.size(); i = next++) {
      try {
        said[i] = compile_one(job, sources[i]);
      } catch (...) {
        next = sources.size();  // the others start no more
        throw;
      }
    }
  };
  const auto processors = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  std::vector<std::future<void>> running;
  for (std::size_t i = 0; i < std::min(sources.size(), processors); ++i) {
    running.push_back(std::async(std::launch::async, work));
  }
  for (auto& each : running) each.get();
  std::vector<lab::Diagnostic> all;
  for (auto& one : said) {
    for (lab::Diagnostic& each : one) all.push_back(std::move(each));
  }
  return all;
}

/// What an earlier compilation left.
Compiled kept_in(const fs::path& folder) {
  const auto json = nlohmann::json::parse(read_whole(folder / kInfo), nullptr, false);
  Compiled compiled{lab::edited_kernel_fields().from_json(json, "info.json"), folder};
  std::error_code error;
  fs::last_write_time(folder, fs::file_time_type::clock::now(), error);  // it is in use
  return compiled;
}

/// Tells apart what may be compiled to something else.
std::string key_of(const Job& job) {
  std::string all = job.lesson + '\n' + job.edit.path + '\n' + job.edit.text + '\n' +
                    job.headers.filename().string() + job.compiler.program + job.compiler.name;
  for (const std::string& flag : job.flags) all += flag + ' ';
  return lab::hash_of(all);
}

void require_text(const lab::KernelEdit& edit) {
  if (edit.text.find_first_not_of(" \t\r\n") != std::string::npos) return;
  throw lab::SourceError(
      fmt::format("{} is empty; the lesson's kernels have to be in it", name_of_file(edit.path)),
      {{1, 0, lab::Severity::error, "nothing is here"}});
}

}  // namespace

fs::path Job::made_of(const std::string& source) const {
  return draft / (fs::path(source).stem().string() + ending);
}

void fail(const Job& job, const Ran& ran) {
  if (ran.output.find("No space left on device") != std::string::npos) {
    throw Error(fmt::format("{} was not compiled: the disk is full (kernels are compiled in {} and "
                            "in the system's folder for temporary files)",
                            name_of_file(job.edit.path), cache_folder().string()),
                ExitCode::unavailable);
  }
  auto said = diagnostics_in(ran.output, job.edit.path);
  std::string sentence = sentence_of(said, job.edit.path);
  const std::string_view name = name_of_file(job.edit.path);
  if (ran.timed_out) {
    sentence = fmt::format("{} was not compiled within {} seconds", name, kCompileLimit.count());
  } else if (said.empty()) {
    // A path may have the word too.
    const std::string_view kOut[] = {"out of memory", "memory exhausted", "Cannot allocate memory",
                                     "bad_alloc"};
    const bool memory = ran.status > 128 ||
                        std::any_of(std::begin(kOut), std::end(kOut), [&](std::string_view words) {
                          return ran.output.find(words) != std::string::npos;
                        });
    sentence =
        fmt::format("{} does not compile: {}", name,
                    memory ? fmt::format("the compiler needs more than {} MB for it", job.memory_mb)
                           : "the compiler says: " + first_line(ran.output));
  }
  throw lab::SourceError(sentence, std::move(said));
}

Compiled compile(Job job,
                 const std::function<void(const Job&, const std::vector<std::string>&)>& finish) {
  require_source(job.lesson, job.edit.path);
  require_text(job.edit);
  job.headers = header_folder();
  const fs::path all = cache_folder() / "edited", folder = all / key_of(job);
  std::error_code error;
  fs::create_directories(all, error);
  const bool fresh = make_whole(folder, [&](const fs::path& draft) {
    if (job.watch.tell) job.watch.tell(kCompiling);
    const auto start = Clock::now();
    job.draft = draft;
    write_whole(draft / "edited" / job.edit.path,
                job.emulated ? for_emulation(job.edit.text) : job.edit.text);
    if (job.emulated) {
      const std::vector<std::string> more = precompiled_headers(job);
      job.flags.insert(job.flags.begin(), more.begin(), more.end());
      job.flags.insert(job.flags.end(), {"-I", (job.headers / kToolkit).string()});
    }
    const std::vector<std::string> sources = launch_sources_of(job.lesson, job.edit.path);
    lab::EditedKernel info{
        job.edit.path, lab::hash_of(job.edit.text), job.compiler.name, 0, true, {}};
    info.diagnostics = compile_all(job, sources);
    finish(job, sources);
    info.compile_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    write_whole(draft / kInfo, lab::edited_kernel_fields().to_json(info).dump());
  });
  Compiled compiled = kept_in(folder);
  compiled.info.cached = !fresh;
  if (fresh) keep_newest(all, kKept);
  return compiled;
}

}  // namespace tilestep::workbench

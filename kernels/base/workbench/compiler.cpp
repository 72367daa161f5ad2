#include "kernels/base/workbench/compiler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/job.hpp"

namespace tilestep::workbench {
namespace {

namespace fs = std::filesystem;

}  // namespace

/// -g1 has the lines for what is said about a fault. Without optimization the compiler takes half the time, and the
/// kernels that a lesson shows are small. Its accesses to memory and the ends of its arrays are told as they would be to
/// ThreadSanitizer and UBSan, without whose runtimes it is linked (simt/memory_words.cpp); what it does not initialize is
/// NaN or a large number.
std::vector<std::string> host_flags(const Compiler& compiler) {
  const bool clang = compiler.name.find("clang") != std::string::npos;
  return {"-std=c++20",
          "-fsanitize=thread,bounds",
          clang ? "-mllvm" : "--param",
          clang ? "-tsan-instrument-func-entry-exit=0" : "tsan-instrument-func-entry-exit=0",
          clang ? "-mllvm" : "--param",
          clang ? "-tsan-distinguish-volatile=1" : "tsan-distinguish-volatile=1",
          "-ftrivial-auto-var-init=pattern",
          "-fno-omit-frame-pointer",
          "-fstack-protector-strong",
          "-O0",
          "-g1",
          "-fPIC",
          "-fvisibility=hidden",
          "-fvisibility-inlines-hidden",
          "-DSIMT_EDITED",
          "-Wall",
          "-Wno-unknown-pragmas",
          "-Wno-unused-function",
          "-fdiagnostics-color=never",
          clang ? "-Wno-unknown-warning-option" : "-Wno-tsan",  // fences are none of its
          clang ? "-fno-caret-diagnostics" : "-fno-diagnostics-show-caret",
          clang ? "-ferror-limit=100" : "-fmax-errors=100",
          "-x",
          "c++",
          "-c"};
}

namespace {

/// -w: what nvcc warns of, the host compiler has said, or it is about code that is not the user's.
std::vector<std::string> gpu_flags(int compute_capability) {
  const std::string feature = compute_capability >= 90 ? "a" : "";
  return {"-std=c++20",
          fmt::format("-arch=sm_{}{}", compute_capability, feature),
          "-lineinfo",
          "-w",
          "--expt-relaxed-constexpr",
          "--extended-lambda",
          "-DSIMT_EDITED",
          "-DSIMT_EDITED_IMAGE",
          "-DNDEBUG"};
}

/// The kind of compiler that this program was built with: what the two share must be the same to both, and Clang's
/// headers before version 15 have no std::source_location.
#if defined(__clang__)
constexpr const char* kOwnCompiler = "clang++";
#else
constexpr const char* kOwnCompiler = "g++";
#endif

std::string text_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

/// The last word that looks like a version: "g++ (Debian 12.2.0-14) 12.2.0", "release 13.0, V13.0.88".
std::string version_in(const std::string& said) {
  std::istringstream words(said);
  std::string version;
  for (std::string word; words >> word;) {
    if (word.starts_with('V') && word.size() > 1) word.erase(0, 1);
    const bool number = word[0] >= '0' && word[0] <= '9';
    if (number && word.find('.') != std::string::npos) version = word;
  }
  while (!version.empty() && (version.back() == ',' || version.back() == ')')) version.pop_back();
  return version;
}

std::string lines_of(const std::string& text, int count) {
  std::size_t end = 0;
  for (; count > 0 && end != std::string::npos; --count) end = text.find('\n', end + 1);
  return text.substr(0, end);
}

/// The first of `names` that starts; nothing: none does.
Compiler first_that_starts(const std::vector<std::string>& names, int lines_with_version) {
  for (const std::string& name : names) {
    const std::string program = find_program(name);
    if (program.empty()) continue;
    const Ran ran = run_program({program, "--version"}, std::chrono::seconds(20));
    if (ran.status != 0) continue;
    const std::string version = version_in(lines_of(ran.output, lines_with_version));
    return {program,
            fs::path(program).filename().string() + (version.empty() ? "" : " " + version)};
  }
  return {};
}

[[noreturn]] void refuse_asked(const char* variable, const std::string& asked) {
  throw Error(
      fmt::format("the compiler '{}' that {} names does not start; name another one, or none",
                  asked, variable),
      ExitCode::unavailable);
}

/// Keeps what `find` found for what the variables ask for; one thread compiles at a time.
template <class Find>
Compiler remembered(const std::string& asked, Find find) {
  static std::map<std::string, Compiler> known;
  if (const auto found = known.find(asked); found != known.end()) return found->second;
  const Compiler compiler = find();  // what is missing may be installed meanwhile: that is not kept
  known[asked] = compiler;
  return compiler;
}

/// The symbols that the objects want and none of them defines.
std::set<std::string> missing_symbols(const std::vector<std::string>& objects) {
  std::vector<std::string> words = {"nm", "-P"};
  words.insert(words.end(), objects.begin(), objects.end());
  const Ran ran = run_program(words, kCompileLimit);
  if (ran.status != 0) {
    throw Error(
        "the program nm, of binutils, does not work here; install it (Debian: apt-get install "
        "binutils)",
        ExitCode::unavailable);
  }
  std::set<std::string> missing, defined;
  std::istringstream lines(ran.output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words_of(line);
    std::string name, kind;
    if (words_of >> name >> kind) (kind == "U" ? missing : defined).insert(name);
  }
  for (const std::string& name : defined) missing.erase(name);
  return missing;
}

/// Gives what the edited files want of the lesson's other files the names that those have in the program: an edited
/// kernel's namespace is its own, so that nothing else could be taken for it.
void borrow_the_rest(const Job& job, const std::vector<std::string>& objects) {
  constexpr std::string_view kOwn = "14edited_backend", kProgram = "16emulated_backend";
  std::string renamed = kWatchedWords;
  for (const std::string& name : missing_symbols(objects)) {
    std::string there = name;
    for (std::size_t at = there.find(kOwn); at != there.npos; at = there.find(kOwn, at)) {
      there.replace(at, kOwn.size(), kProgram);
    }
    if (there != name) renamed += name + " " + there + "\n";
  }
  const fs::path list = job.draft / "borrowed.txt";
  write_whole(list, renamed);
  for (const std::string& object : objects) {
    const Ran ran =
        run_program({"objcopy", "--redefine-syms=" + list.string(), object}, kCompileLimit);
    if (ran.status == 0) continue;
    throw Error(
        "the program objcopy, of binutils, does not work here; install it (Debian: apt-get install "
        "binutils)",
        ExitCode::unavailable);
  }
}

void link_module(const Job& job, const std::vector<std::string>& sources) {
  std::vector<std::string> objects;
  for (const std::string& source : sources) objects.push_back(job.made_of(source).string());
  borrow_the_rest(job, objects);
  // Several launch files may include the edited source, and with it a function or variable of the user's that is not
  // inline: they are the same one.
  std::vector<std::string> words = {job.compiler.program, "-shared", "-Wl,-z,muldefs", "-o",
                                    (job.draft / kHostModule).string()};
  words.insert(words.end(), objects.begin(), objects.end());
  const Ran ran = run_program(words, kCompileLimit, 0, job.watch.stop);
  if (ran.status != 0) fail(job, ran);
  for (const std::string& object : objects) fs::remove(object);
}

}  // namespace

Compiler host_compiler() {
  const std::string asked = text_of("TILESTEP_CXX");
  return remembered("host " + asked, [&] {
    const Compiler found =
        first_that_starts(asked.empty() ? std::vector<std::string>{kOwnCompiler, "c++"}
                                        : std::vector<std::string>{asked},
                          1);
    if (!found.program.empty()) return found;
    if (!asked.empty()) refuse_asked("TILESTEP_CXX", asked);
    throw Error(
        fmt::format("there is no {0} here, which edited kernels need; install it (Debian: apt-get "
                    "install {1})",
                    kOwnCompiler, std::string_view(kOwnCompiler) == "g++" ? "g++" : "clang"),
        ExitCode::unavailable);
  });
}

Compiler gpu_compiler() {
  const std::string asked = text_of("TILESTEP_NVCC"), home = text_of("CUDA_HOME");
  return remembered("gpu " + asked + ":" + home, [&] {
    std::vector<std::string> names = {"nvcc", "/usr/local/cuda/bin/nvcc"};
    if (!home.empty()) names.insert(names.begin() + 1, home + "/bin/nvcc");
    if (!asked.empty()) names = {asked};
    const Compiler found = first_that_starts(names, 4);
    if (!found.program.empty()) return found;
    if (!asked.empty()) refuse_asked("TILESTEP_NVCC", asked);
    throw Error(
        "there is no nvcc here, which edited kernels need on a GPU; install the CUDA Toolkit, name "
        "its nvcc by "
        "TILESTEP_NVCC, or choose the emulated backend",
        ExitCode::unavailable);
  });
}

Compiled compile_for_host(std::string_view lesson, const lab::KernelEdit& edit,
                          const CompileWatch& watch) {
  const Compiler compiler = host_compiler();
  return compile(
      {std::string(lesson), edit, compiler, host_flags(compiler), true, 4096, ".o", {}, {}, watch},
      link_module);
}

namespace {

Compiled compile_by_nvcc(std::string_view lesson, const lab::KernelEdit& edit,
                         int compute_capability, const char* form, const CompileWatch& watch) {
  std::vector<std::string> flags = gpu_flags(compute_capability);
  flags.push_back(fmt::format("-{}", form));
  return compile({std::string(lesson),
                  edit,
                  gpu_compiler(),
                  std::move(flags),
                  false,
                  16384,
                  fmt::format(".{}", form),
                  {},
                  {},
                  watch},
                 [](const Job&, const std::vector<std::string>&) {});
}

}  // namespace

Compiled compile_for_gpu(std::string_view lesson, const lab::KernelEdit& edit,
                         int compute_capability, const CompileWatch& watch) {
  return compile_by_nvcc(lesson, edit, compute_capability, "cubin", watch);
}

Compiled compile_to_ptx(std::string_view lesson, const lab::KernelEdit& edit,
                        int compute_capability, const CompileWatch& watch) {
  return compile_by_nvcc(lesson, edit, compute_capability, "ptx", watch);
}

std::vector<fs::path> cubins_in(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".cubin") all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace tilestep::workbench

#include "kernels/base/workbench/assembly.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>

#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/job.hpp"

namespace tilestep::workbench {
namespace {

namespace fs = std::filesystem;

std::string demangled(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  const std::string name = text == nullptr ? symbol : text;
  std::free(text);
  return name;
}

/// Calls `take` with each line.
template <class Take>
void each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

/// The whole number that follows `word`; −1: none does.
int number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return -1;
  text = trimmed(text.substr(at + word.size()));
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The whole number that stands before `word`; −1: none does.
int number_before(std::string_view text, std::string_view word) {
  const std::size_t end = text.find(word);
  if (end == text.npos || end == 0) return -1;
  std::size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  return number_after(text.substr(begin, end - begin), "");
}

std::string_view quoted(std::string_view text) {
  const std::size_t begin = text.find('"');
  if (begin == text.npos) return {};
  return text.substr(begin + 1, text.find('"', begin + 1) - begin - 1);
}

AssemblyKernel kernel_of(std::string_view symbol) {
  AssemblyKernel kernel;
  kernel.symbol = symbol;
  kernel.name = short_name_of(demangled(kernel.symbol));
  return kernel;
}

/// PTX numbers its files, and says so at the end.
std::vector<int> numbers_of_file(std::string_view text, std::string_view path) {
  std::vector<int> numbers;
  each_line(text, [&](std::string_view line) {
    line = trimmed(line);
    if (line.starts_with(".file") && quoted(line).ends_with(path))
      numbers.push_back(number_after(line, ".file"));
  });
  return numbers;
}

/// The two whole numbers that `text` begins with; zeros where it does not.
std::array<int, 2> two_numbers(std::string_view text) {
  std::array<int, 2> numbers{};
  for (int& number : numbers) {
    text = trimmed(text);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return numbers;
}

/// Of " 2 30 1, function_name $L, inlined_at 1 112 5" the line in one of the files: the innermost that is there.
int line_of_loc(std::string_view loc, const std::vector<int>& files) {
  constexpr std::string_view kInlined = "inlined_at";
  while (true) {
    const auto [file, line] = two_numbers(loc);
    if (std::count(files.begin(), files.end(), file) > 0) return line;
    const std::size_t next = loc.find(kInlined);
    if (next == loc.npos) return 0;
    loc.remove_prefix(next + kInlined.size());
  }
}

std::string beside_nvcc(const Compiler& nvcc, const char* name) {
  const std::string there = (fs::path(nvcc.program).parent_path() / name).string();
  const std::string found = find_program(there);
  return found.empty() ? find_program(name) : found;
}

void append(std::vector<AssemblyKernel>& all, std::vector<AssemblyKernel> more) {
  for (AssemblyKernel& kernel : more) all.push_back(std::move(kernel));
}

std::vector<fs::path> files_ending(const fs::path& folder, const char* ending) {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ending) all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<AssemblyKernel> ptx_in(const fs::path& folder, const Compiler& nvcc,
                                   const std::string& path, int capability) {
  std::vector<AssemblyKernel> all;
  const std::string ptxas = beside_nvcc(nvcc, "ptxas");
  for (const fs::path& file : files_ending(folder, ".ptx")) {
    std::vector<AssemblyKernel> kernels = read_ptx(read_whole(file), path);
    if (!ptxas.empty()) {
      const std::string architecture =
          fmt::format("-arch=sm_{}{}", capability, capability >= 90 ? "a" : "");
      const Ran ran =
          run_program({ptxas, "-v", architecture, file.string(), "-o", "/dev/null"}, kCompileLimit);
      if (ran.status == 0) read_resources(ran.output, kernels);
    }
    append(all, std::move(kernels));
  }
  return all;
}

std::vector<AssemblyKernel> sass_in(const fs::path& folder, const Compiler& nvcc,
                                    const std::string& path) {
  const std::string nvdisasm = beside_nvcc(nvcc, "nvdisasm");
  if (nvdisasm.empty()) {
    throw Error(
        "there is no nvdisasm here, which shows SASS; it comes with the CUDA Toolkit (Debian: "
        "apt-get install "
        "nvidia-cuda-toolkit)",
        ExitCode::unavailable);
  }
  std::vector<AssemblyKernel> all;
  for (const fs::path& file : cubins_in(folder)) {
    const Ran ran = run_program({nvdisasm, "-c", "-gi", file.string()}, kCompileLimit);
    if (ran.status != 0) {
      throw Error(fmt::format("nvdisasm does not read what nvcc made: {}",
                              ran.output.substr(0, ran.output.find('\n'))),
                  ExitCode::unavailable);
    }
    append(all, read_sass(ran.output, path));
  }
  return all;
}

}  // namespace

std::string short_name_of(std::string_view name) {
  std::string text;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (c == '(' && depth == 0) break;  // its parameters
    if (name.compare(i, 2, "::") == 0) {
      std::size_t begin = text.size();
      const auto is_word = [](char w) {
        return std::isalnum(static_cast<unsigned char>(w)) != 0 || w == '_';
      };
      while (begin > 0 && is_word(text[begin - 1])) --begin;
      text.resize(begin);  // a namespace
      ++i;
      continue;
    }
    text += c;
  }
  // "void f<…>": what a template returns is part of its name.
  if (text.starts_with("void ")) text.erase(0, 5);
  return text;
}

std::vector<AssemblyKernel> read_ptx(std::string_view text, std::string_view path) {
  const std::vector<int> files = numbers_of_file(text, path);
  std::vector<AssemblyKernel> kernels;
  bool inside = false;
  int line_now = 0;
  each_line(text, [&](std::string_view line) {
    const std::string_view words = trimmed(line);
    const std::size_t entry = words.find(".entry ");
    if (entry != words.npos) {
      const std::string_view symbol = words.substr(entry + 7);
      kernels.push_back(kernel_of(symbol.substr(0, symbol.find_first_of("( \t"))));
    }
    if (words == "{" && !kernels.empty() && kernels.back().lines.empty()) {
      inside = true;
      line_now = 0;
      return;
    }
    if (line == "}") inside = false;
    if (!inside || words.empty() || words.starts_with("//") || words.starts_with("$L__tmp")) return;
    if (words.starts_with(".loc")) {
      line_now = line_of_loc(words.substr(4), files);
      return;
    }
    kernels.back().lines.push_back({std::string(words), words.starts_with(".reg") ? 0 : line_now});
  });
  return kernels;
}

std::vector<AssemblyKernel> read_sass(std::string_view text, std::string_view path) {
  std::vector<AssemblyKernel> kernels;
  bool inside = false;
  int line_now = 0;
  each_line(text, [&](std::string_view line) {
    const std::string_view words = trimmed(line);
    if (words.starts_with(".section")) {
      constexpr std::string_view kText = ".text.";
      const std::size_t at = words.find(kText);
      inside = at != words.npos;
      if (!inside) return;
      const std::string_view symbol = words.substr(at + kText.size());
      kernels.push_back(kernel_of(symbol.substr(0, symbol.find_first_of(",\" \t"))));
      line_now = 0;
      return;
    }
    if (!inside) return;
    if (words.starts_with("//##")) {
      // Of what was inlined, each caller has a line of its own: the innermost of the source counts.
      if (words.find("inlined at") == words.npos) line_now = 0;
      if (line_now == 0) {
        std::string_view rest = words;
        if (!quoted(rest).ends_with(path)) {
          const std::size_t at = rest.find("inlined at");
          rest = at == rest.npos ? "" : rest.substr(at);
        }
        if (quoted(rest).ends_with(path)) line_now = number_after(rest, ", line");
      }
      return;
    }
    if (words.starts_with("/*")) {
      const std::size_t code = words.find("*/");
      if (code == words.npos) return;
      const std::string_view instruction = trimmed(words.substr(code + 2));
      if (instruction.empty() || instruction.starts_with("/*")) return;
      kernels.back().lines.push_back(
          {std::string(instruction.substr(0, instruction.find(';') + 1)), line_now});
    } else if (words.starts_with(".L_") && words.ends_with(":")) {
      kernels.back().lines.push_back({std::string(words), 0});
    }
  });
  return kernels;
}

void read_resources(std::string_view said, std::vector<AssemblyKernel>& kernels) {
  AssemblyKernel* now = nullptr;
  each_line(said, [&](std::string_view line) {
    for (const std::string_view mark : {"Compiling entry function '", "Function properties for "}) {
      const std::size_t at = line.find(mark);
      if (at == line.npos) continue;
      std::string_view symbol = line.substr(at + mark.size());
      symbol = trimmed(symbol.substr(0, symbol.find('\'')));
      const auto found =
          std::find_if(kernels.begin(), kernels.end(),
                       [&](const AssemblyKernel& each) { return each.symbol == symbol; });
      now = found == kernels.end() ? nullptr : &*found;
    }
    if (now == nullptr) return;
    if (line.find("bytes stack frame") != line.npos) {
      now->stack_bytes = number_before(line, " bytes stack frame");
      now->spill_store_bytes = number_before(line, " bytes spill stores");
      now->spill_load_bytes = number_before(line, " bytes spill loads");
    }
    if (line.find("Used ") != line.npos) {
      now->registers = number_after(line, "Used ");
      now->shared_bytes = std::max(0, number_before(line, " bytes smem"));
    }
  });
}

Assembly assembly_of(std::string_view lesson, const lab::KernelEdit& edit, AssemblyForm form,
                     int compute_capability, const CompileWatch& watch) {
  const Compiler nvcc = gpu_compiler();
  const bool ptx = form == AssemblyForm::ptx;
  const Compiled compiled = ptx ? compile_to_ptx(lesson, edit, compute_capability, watch)
                                : compile_for_gpu(lesson, edit, compute_capability, watch);
  return {compiled.info, ptx ? ptx_in(compiled.folder, nvcc, edit.path, compute_capability)
                             : sass_in(compiled.folder, nvcc, edit.path)};
}

}  // namespace tilestep::workbench

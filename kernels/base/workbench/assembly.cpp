#include "kernels/base/workbench/assembly.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <utility>

#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/job.hpp"

namespace tilestep::workbench {
namespace {

namespace fs = std::filesystem;

/// Calls `take` with each line.
template <class Take>
void each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

using lab::trimmed;

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
  kernel.name = short_name_of(full_name_of(kernel.symbol));
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

/// A place in a file of PTX's list: file, line, column.
using Place = std::array<int, 3>;

/// The three whole numbers that `text` begins with; zeros where it does not.
Place place_in(std::string_view text) {
  Place numbers{};
  for (int& number : numbers) {
    text = trimmed(text);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return numbers;
}

/// The lines of the source that an instruction belongs to, the innermost first.
class Chain {
 public:
  void clear() { lines_.clear(); }
  void add(int line) {
    if (line > 0 && std::count(lines_.begin(), lines_.end(), line) == 0) lines_.push_back(line);
  }
  AssemblyLine of(std::string_view text) const {
    AssemblyLine line{std::string(text)};
    if (lines_.empty()) return line;
    line.line = lines_.front();
    line.callers.assign(lines_.begin() + 1, lines_.end());
    return line;
  }

 private:
  std::vector<int> lines_;
};

/// What PTX says of places: of one that was inlined, the place of the call. Where that was inlined itself, an earlier
/// `.loc` has said so.
class Locations {
 public:
  explicit Locations(std::vector<int> files) : files_(std::move(files)) {}

  /// " 2 30 1, function_name $L, inlined_at 1 112 5".
  Chain chain_of(std::string_view loc) {
    constexpr std::string_view kInlined = "inlined_at";
    constexpr int kDeepest = 64;
    Place place = place_in(loc);
    const std::size_t at = loc.find(kInlined);
    if (at == loc.npos) {
      calls_.erase(place);
    } else {
      calls_[place] = place_in(loc.substr(at + kInlined.size()));
    }
    Chain chain;
    for (int depth = 0; depth < kDeepest; ++depth) {
      if (std::count(files_.begin(), files_.end(), place[0]) > 0) chain.add(place[1]);
      const auto call = calls_.find(place);
      if (call == calls_.end()) break;
      place = call->second;
    }
    return chain;
  }

 private:
  std::vector<int> files_;
  std::map<Place, Place> calls_;
};

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

/// Where nothing else was asked for: what to install for PTX and SASS, which no emulation shows.
Compiler compiler_for_assembly() {
  const char* asked = std::getenv("TILESTEP_NVCC");
  if (asked != nullptr && *asked != '\0') return gpu_compiler();
  try {
    return gpu_compiler();
  } catch (const Error&) {
    throw Error(
        "there is no nvcc here, which makes PTX and SASS; install the CUDA Toolkit (Debian: "
        "apt-get install nvidia-cuda-toolkit), or name its nvcc by TILESTEP_NVCC",
        ExitCode::unavailable);
  }
}

std::string disassembler_beside(const Compiler& nvcc) {
  const std::string nvdisasm = beside_nvcc(nvcc, "nvdisasm");
  if (!nvdisasm.empty()) return nvdisasm;
  throw Error(
      "there is no nvdisasm here, which shows SASS; it comes with the CUDA Toolkit (Debian: "
      "apt-get install nvidia-cuda-toolkit)",
      ExitCode::unavailable);
}

/// A cubin while it is looked at.
class CubinFile {
 public:
  CubinFile() : path_(draft_beside(cache_folder() / "listed.cubin")) {}
  ~CubinFile() {
    std::error_code error;
    fs::remove(path_, error);
  }
  CubinFile(const CubinFile&) = delete;
  CubinFile& operator=(const CubinFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

/// The tools that make a file of PTX into a listing; empty: not needed, or not there.
struct Tools {
  std::string ptxas, nvdisasm;
};

[[noreturn]] void refuse(std::string_view tool, std::string_view what, const Ran& ran) {
  throw Error(fmt::format("{} does not take what {} made: {}", tool, what,
                          ran.output.substr(0, ran.output.find('\n'))),
              ExitCode::unavailable);
}

/// What of a file of PTX is asked for, with its resources as far as they are said.
std::vector<AssemblyKernel> kernels_in(const fs::path& ptx, const Tools& tools,
                                       const std::string& path, int capability,
                                       const CompileWatch& watch) {
  std::vector<AssemblyKernel> kernels;
  const bool sass = !tools.nvdisasm.empty();
  if (!sass) kernels = read_ptx(read_whole(ptx), path);
  if (tools.ptxas.empty()) return kernels;
  const CubinFile cubin;
  // As nvcc calls it.
  const Ran ran = run_program(
      {tools.ptxas, "-v", "-m64", "--generate-line-info", "-arch=" + architecture_of(capability),
       ptx.string(), "-o", sass ? cubin.path() : "/dev/null"},
      kCompileLimit, 0, watch.stop);
  if (!sass) {
    if (ran.status == 0) read_resources(ran.output, kernels);
    return kernels;
  }
  if (ran.status != 0) refuse("ptxas", "nvcc", ran);
  const Ran shown =
      run_program({tools.nvdisasm, "-c", "-gi", cubin.path()}, kCompileLimit, 0, watch.stop);
  if (shown.status != 0) refuse("nvdisasm", "ptxas", shown);
  kernels = read_sass(shown.output, path);
  read_resources(ran.output, kernels);
  return kernels;
}

}  // namespace

std::string architecture_of(int compute_capability) {
  return fmt::format("sm_{}{}", compute_capability, compute_capability >= 90 ? "a" : "");
}

std::string full_name_of(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  const std::string name = text == nullptr ? symbol : text;
  std::free(text);
  return name;
}

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
  Locations locations(numbers_of_file(text, path));
  std::vector<AssemblyKernel> kernels;
  bool inside = false;
  Chain now;
  each_line(text, [&](std::string_view line) {
    const std::string_view words = trimmed(line);
    const std::size_t entry = words.find(".entry ");
    if (entry != words.npos) {
      const std::string_view symbol = words.substr(entry + 7);
      kernels.push_back(kernel_of(symbol.substr(0, symbol.find_first_of("( \t"))));
    }
    if (words == "{" && !kernels.empty() && kernels.back().lines.empty()) {
      inside = true;
      now.clear();
      return;
    }
    if (line == "}") inside = false;
    if (!inside || words.empty() || words.starts_with("//") || words.starts_with("$L__tmp")) return;
    if (words.starts_with(".loc")) {
      now = locations.chain_of(words.substr(4));
      return;
    }
    kernels.back().lines.push_back(words.starts_with(".reg") ? AssemblyLine{std::string(words)}
                                                             : now.of(words));
  });
  return kernels;
}

std::vector<AssemblyKernel> read_sass(std::string_view text, std::string_view path) {
  std::vector<AssemblyKernel> kernels;
  bool inside = false, said = false;  // the lines of the next instruction are being said
  Chain now;
  each_line(text, [&](std::string_view line) {
    const std::string_view words = trimmed(line);
    if (words.starts_with(".section")) {
      constexpr std::string_view kText = ".text.";
      const std::size_t at = words.find(kText);
      inside = at != words.npos;
      if (!inside) return;
      const std::string_view symbol = words.substr(at + kText.size());
      kernels.push_back(kernel_of(symbol.substr(0, symbol.find_first_of(",\" \t"))));
      now.clear();
      return;
    }
    if (!inside) return;
    if (words.starts_with("//##")) {
      // Of what was inlined, each call has a line of its own, going out.
      if (!std::exchange(said, true)) now.clear();
      for (std::string_view rest = words; !rest.empty();) {
        const std::size_t call = rest.find("inlined at");
        const std::string_view place = rest.substr(0, call);
        if (quoted(place).ends_with(path)) now.add(number_after(place, ", line"));
        rest = call == rest.npos ? "" : rest.substr(call + 10);
      }
      return;
    }
    said = false;
    if (words.starts_with("/*")) {
      const std::size_t code = words.find("*/");
      if (code == words.npos) return;
      const std::string_view instruction = trimmed(words.substr(code + 2));
      if (instruction.empty() || instruction.starts_with("/*")) return;
      kernels.back().lines.push_back(now.of(instruction.substr(0, instruction.find(';') + 1)));
    } else if (words.starts_with(".L_") && words.ends_with(":")) {
      kernels.back().lines.push_back({std::string(words)});
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
  const Compiler nvcc = compiler_for_assembly();
  Tools tools{beside_nvcc(nvcc, "ptxas"), {}};
  if (form == AssemblyForm::sass) {
    tools.nvdisasm = disassembler_beside(nvcc);  // before a minute is spent on it
    if (tools.ptxas.empty()) {
      throw Error("there is no ptxas beside nvcc here, which makes SASS; install the CUDA Toolkit",
                  ExitCode::unavailable);
    }
  }
  const Compiled compiled = compile_to_ptx(lesson, edit, compute_capability, watch);
  Assembly assembly{compiled.info, {}};
  for (const fs::path& file : files_ending(compiled.folder, ".ptx")) {
    append(assembly.kernels, kernels_in(file, tools, edit.path, compute_capability, watch));
  }
  return assembly;
}

}  // namespace tilestep::workbench

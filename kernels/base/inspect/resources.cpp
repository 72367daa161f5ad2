#include "kernels/base/inspect/resources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/workbench/assembly.hpp"
#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/program.hpp"

namespace tilestep::inspect {
namespace {

namespace fs = std::filesystem;

constexpr lab::Multiprocessor kAmpere{.shared_bytes = 164 << 10, .most_shared_of_block = 163 << 10};
constexpr lab::Multiprocessor kAda{
    .warps = 48, .blocks = 24, .shared_bytes = 100 << 10, .most_shared_of_block = 99 << 10};
constexpr lab::Multiprocessor kTuring{.warps = 32,
                                      .blocks = 16,
                                      .shared_bytes = 64 << 10,
                                      .reserved_bytes = 0,
                                      .shared_unit = 256,
                                      .most_shared_of_block = 64 << 10};
constexpr Gpu kGpus[] = {
    {"h100", "H100 SXM", 90, 132, 3.35, 67, 34},
    {"h200", "H200 SXM", 90, 132, 4.8, 67, 34},
    {"a100", "A100 SXM 80 GB", 80, 108, 2.039, 19.5, 9.7, kAmpere},
    {"rtx4090", "GeForce RTX 4090", 89, 128, 1.008, 82.6, 1.29, kAda},
    {"l4", "L4", 89, 58, 0.3, 30.3, 0.473, kAda},
    {"t4", "T4", 75, 40, 0.32, 8.1, 0.253, kTuring},
};

/// "ptxas info : Compiling entry function '_Z3addPf' for 'sm_90'", then what it uses.
std::map<std::string, int> read_registers(std::string_view said) {
  std::vector<workbench::AssemblyKernel> kernels;
  constexpr std::string_view kMark = "Compiling entry function '";
  for (std::size_t at = said.find(kMark); at != said.npos; at = said.find(kMark, at)) {
    at += kMark.size();
    workbench::AssemblyKernel kernel;
    kernel.symbol = said.substr(at, said.find('\'', at) - at);
    kernel.name = workbench::short_name_of(workbench::full_name_of(kernel.symbol));
    kernels.push_back(std::move(kernel));
  }
  workbench::read_resources(said, kernels);
  std::map<std::string, int> all;
  for (const auto& kernel : kernels) {
    int& most = all[kernel.name];
    most = std::max(most, kernel.registers);
  }
  return all;
}

std::string_view plain_name(std::string_view kernel) {
  kernel = kernel.substr(0, kernel.find('<'));
  const std::size_t space = kernel.rfind("::");
  return lab::trimmed(space == kernel.npos ? kernel : kernel.substr(space + 2));
}

/// Of a launch whose kernel is called so in the source; 0: not known.
int registers_for(const Registers& registers, const std::string& kernel) {
  if (const auto found = registers.of_kernel.find(kernel); found != registers.of_kernel.end())
    return found->second;
  int most = 0;  // of a template, whose arguments are written in more ways than one
  for (const auto& [name, count] : registers.of_kernel) {
    if (plain_name(name) == plain_name(kernel)) most = std::max(most, count);
  }
  return most;
}

class Row {
 public:
  Row(const lab::Table& table, std::size_t row) : table_(table), row_(row) {}
  std::optional<double> number(std::string_view id) const {
    const auto* value = std::get_if<double>(&cell(id));
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  std::string text(std::string_view id) const {
    const auto* value = std::get_if<std::string>(&cell(id));
    return value == nullptr ? std::string() : *value;
  }
  /// Threads or blocks in "x,y,z".
  double count(std::string_view id) const {
    double product = 1;
    const std::string words = text(id);
    std::string_view rest = words;
    while (!rest.empty()) {
      int number = 0;
      std::from_chars(rest.data(), rest.data() + rest.size(), number);
      product *= number;
      const std::size_t comma = rest.find(',');
      rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
    }
    return product;
  }

 private:
  const lab::Cell& cell(std::string_view id) const {
    for (std::size_t i = 0; i < table_.columns.size(); ++i) {
      if (table_.columns[i].id == id) return table_.rows[row_].at(i);
    }
    throw Error(
        fmt::format("this is no report of `tilestep inspect`: its table '{}' has no column '{}'",
                    table_.id, id));
  }
  const lab::Table& table_;
  std::size_t row_;
};

}  // namespace

std::string gpu_names() {
  std::string names;
  for (const Gpu& each : kGpus) names += (names.empty() ? "" : ", ") + std::string(each.id);
  return names;
}

const Gpu* gpu_of_device(std::string_view device) {
  for (const Gpu& each : kGpus) {
    const std::string_view model = each.name.substr(0, each.name.find(' '));
    const bool geforce = model == "GeForce";  // told apart by its number
    const std::string_view wanted = geforce ? each.name : model;
    const std::size_t at = device.find(wanted);
    if (at == device.npos) continue;
    const std::size_t end = at + wanted.size();
    if (end == device.size() || device[end] == ' ') return &each;  // an L40 is no L4
  }
  return nullptr;
}

const Gpu& gpu_named(std::string_view id) {
  for (const Gpu& each : kGpus) {
    if (each.id == id) return each;
  }
  throw Error(fmt::format("--gpu cannot be '{}'; allowed: {}", id, gpu_names()));
}

Registers registers_of(const fs::path& path, std::string_view text, int compute_capability,
                       const workbench::CompileWatch& watch) {
  Registers registers;
  try {
    const workbench::Compiler nvcc = workbench::gpu_compiler();
    const fs::path all = workbench::cache_folder() / "registers";
    const fs::path folder = fs::absolute(path).parent_path();
    const fs::path made =
        all / lab::hash_of(fmt::format("{}\n{}\n{}\n{}\n{}", nvcc.program, nvcc.name,
                                       compute_capability, folder.string(), text));
    std::error_code error;
    fs::create_directories(all, error);
    constexpr const char* kSaid = "ptxas.txt";
    workbench::make_whole(made, [&](const fs::path& draft) {
      const fs::path source = draft / "source.cu";
      workbench::write_whole(source, text);
      const workbench::Ran ran = workbench::run_program(
          {nvcc.program, "-std=c++17", fmt::format("-arch=sm_{}", compute_capability), "-w",
           "-cubin", "-Xptxas", "-v", "-I", folder.string(), source.string(), "-o",
           (draft / "source.cubin").string()},
          std::chrono::seconds(60), 16384, watch.stop);
      if (ran.status != 0) throw Error("nvcc does not compile the file", ExitCode::check_failed);
      workbench::write_whole(draft / kSaid, ran.output);
      fs::remove(draft / "source.cubin", error);
    });
    workbench::keep_newest(all, 64);
    registers.of_kernel = read_registers(workbench::read_whole(made / kSaid));
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& why) {
    registers.why_not = why.code() == ExitCode::unavailable
                            ? "there is no nvcc here, so registers are no limit in this table"
                            : std::string(why.what());
  }
  return registers;
}

void add_resources(lab::Report& report, const Gpu& gpu, const Registers& registers) {
  const lab::Table* launches = report.table("launches");
  if (launches == nullptr) return;
  lab::Table occupancy{
      "occupancy",
      fmt::format("Occupancy ({})", gpu.name),
      {lab::whole("launch"), lab::column("kernel", "kernel"),
       lab::real("occupancy", "occupancy", "%", 1), lab::column("limit", "limit"),
       lab::whole("resident", "resident blocks"), lab::real("waves", "waves", "", 2),
       lab::whole("threads", "threads per block"), lab::whole("registers", "registers per thread"),
       lab::whole("shared", "shared per block", "B"), lab::whole("by_threads", "blocks by threads"),
       lab::whole("by_registers", "by registers"), lab::whole("by_shared", "by shared memory"),
       lab::whole("by_blocks", "by blocks")}};
  lab::Table roofline{
      "roofline",
      fmt::format("Roofline ({})", gpu.name),
      {lab::whole("launch"), lab::column("kernel", "kernel"),
       lab::real("least_us", "lower bound", "µs", 3), lab::column("bound", "bound by"),
       lab::real("intensity", "arithmetic intensity", "FLOP/B", 3),
       lab::real("ridge", "ridge point", "FLOP/B", 1),
       lab::real("intensity_moved", "of bytes moved", "FLOP/B", 3),
       lab::whole("flop", "operations", "FLOP"), lab::whole("once", "unique bytes", "B"),
       lab::whole("moved", "bytes moved", "B")}};
  for (std::size_t i = 0; i < launches->rows.size(); ++i) {
    const Row row(*launches, i);
    const double launch = *row.number("launch"), blocks = row.count("grid");
    const std::string kernel = row.text("kernel");
    const auto threads = static_cast<int>(std::min(row.count("block"), 1e6));
    const auto whole = [&](std::string_view id) {
      return static_cast<int>(std::min(row.number(id).value_or(0), 1e9));
    };
    const int used = registers_for(registers, kernel);
    const lab::Occupancy all = lab::occupancy_of({.threads = threads,
                                                  .registers = used,
                                                  .static_shared_bytes = whole("static"),
                                                  .dynamic_shared_bytes = whole("shared")},
                                                 gpu.sm);
    const bool fits = all.resident > 0 && blocks > 0;
    const auto by = [&](lab::Limit limit) {
      const int blocks_by = all.blocks[static_cast<std::size_t>(limit)];
      return blocks_by < 1'000'000 ? lab::Cell(blocks_by) : lab::Cell();
    };
    occupancy.add({launch, kernel, 100 * all.share(gpu.sm),
                   fits ? name_of(all.binding) : "does not fit", all.resident,
                   fits ? lab::Cell(blocks / (gpu.multiprocessors * all.resident)) : lab::Cell(),
                   threads, used > 0 ? lab::Cell(used) : lab::Cell(),
                   whole("static") + whole("shared"), by(lab::Limit::threads),
                   used > 0 ? by(lab::Limit::registers) : lab::Cell(),
                   by(lab::Limit::shared_memory), by(lab::Limit::blocks)});
    const auto fp32 = row.number("fp32"), fp64 = row.number("fp64"), once = row.number("once"),
               moved = row.number("moved");
    if (!fp32 || !fp64 || !once || !moved || *once <= 0) continue;
    const double flop = *fp32 + *fp64;
    const double by_memory = *once / gpu.memory_tb_s * 1e-6,
                 by_arithmetic = (*fp32 / gpu.fp32_tflops + *fp64 / gpu.fp64_tflops) * 1e-6;
    const double peak = *fp64 > *fp32 ? gpu.fp64_tflops : gpu.fp32_tflops;
    roofline.add({launch, kernel, std::max(by_memory, by_arithmetic),
                  by_arithmetic > by_memory ? "arithmetic" : "memory", flop / *once,
                  peak / gpu.memory_tb_s, *moved > 0 ? lab::Cell(flop / *moved) : lab::Cell(), flop,
                  *once, *moved});
  }
  (*report.trace)["gpu"] = {{"id", gpu.id},
                            {"name", gpu.name},
                            {"memory_tb_s", gpu.memory_tb_s},
                            {"fp32_tflops", gpu.fp32_tflops},
                            {"fp64_tflops", gpu.fp64_tflops},
                            {"registers", registers.why_not}};
  report.add(std::move(occupancy));
  report.add(std::move(roofline));
}

}  // namespace tilestep::inspect

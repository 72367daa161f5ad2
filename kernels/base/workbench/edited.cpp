#include "kernels/base/workbench/edited.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "kernels/base/simt/emulator/shared_variables.hpp"
#include "kernels/base/workbench/compiler.hpp"
#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/guarded.hpp"
#include "kernels/base/workbench/sources.hpp"

namespace tilestep::workbench {
namespace {

using KernelsFunction = const simt::KernelSet& (*)();
constexpr const char* kSymbol = "tilestep_edited_kernels";

/// "undefined symbol: _ZN…" with the name as it is written in C++.
std::string readable(std::string_view said) {
  constexpr std::string_view kUndefined = "undefined symbol: ";
  const std::size_t at = said.find(kUndefined);
  if (at == said.npos) return std::string(said);
  const std::string symbol(said.substr(at + kUndefined.size()));
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  const std::string name = text == nullptr ? symbol : text;
  std::free(text);
  return fmt::format("'{}' is declared and used, but defined nowhere", name);
}

KernelsFunction load(const Compiled& compiled) {
  const std::string_view name = name_of_file(compiled.info.path);
  // Never unloaded: OS threads of the emulator keep shared arrays of it.
  void* handle =
      dlopen((compiled.folder / kHostModule).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* why = dlerror();
    const std::string reason = readable(why == nullptr ? "unknown reason" : why);
    throw lab::SourceError(fmt::format("{} cannot be linked: {}", name, reason),
                           {{0, 0, lab::Severity::error, reason}});
  }
  const auto kernels = reinterpret_cast<KernelsFunction>(dlsym(handle, kSymbol));
  if (kernels == nullptr) {
    throw lab::SourceError(
        fmt::format("{} cannot be used: no kernels of the lesson came out of it", name), {});
  }
  simt::emulated::know_variables(compiled.folder / kHostModule,
                                 reinterpret_cast<const void*>(kernels));
  return kernels;
}

}  // namespace

std::vector<simt::KernelEntry> with_edited(const simt::KernelEntry& edited,
                                           std::span<const simt::KernelEntry> built) {
  std::vector<simt::KernelEntry> table{edited};
  for (const simt::KernelEntry& entry : built) {
    if (!entry.belongs_to(edited.lesson)) table.push_back(entry);
  }
  return table;
}

EditedKernels::EditedKernels(std::string_view lesson, const lab::KernelEdit& edit,
                             std::span<const simt::KernelEntry> built,
                             const lab::Progress& progress,
                             const std::function<void(std::string_view)>& tell)
    : lesson_(lesson) {
  const Compiled compiled =
      compile_for_host(lesson, edit, {tell, [&progress] { return progress.cancelled(); }});
  info_ = compiled.info;
  file_ = (compiled.folder / kHostModule).string();
  if (tell) tell(kRunning);  // what the source has of initializers runs as it is loaded
  table_ = with_edited({lesson_, load(compiled)}, built);
}

lab::EditedKernel use_edited_on_gpu(simt::Device& device, std::string_view lesson,
                                    const lab::KernelEdit& edit, const lab::Progress& progress,
                                    const std::function<void(std::string_view)>& tell) {
  const Compiled compiled = compile_for_gpu(lesson, edit, device.info().compute_capability,
                                            {tell, [&progress] { return progress.cancelled(); }});
  for (const std::filesystem::path& cubin : cubins_in(compiled.folder)) {
    device.use_image(read_whole(cubin));
  }
  return compiled.info;
}

void tell_of_edit(lab::Report& report, const lab::EditedKernel& kernel,
                  const simt::Device& device) {
  report.kernel = kernel;
  const std::vector<simt::Watched> watched = device.watched();
  if (watched.empty()) return;
  lab::Table table{
      "watched",
      "Watched",
      {lab::column("name", "name"), lab::column("kernel", "kernel"), lab::whole("line"),
       lab::whole("block"), lab::whole("thread"), lab::column("value", "value")}};
  for (const simt::Watched& each : watched) {
    table.add({each.name, each.kernel, each.line, each.block, each.thread, each.value});
  }
  if (device.watched_dropped() > 0) {
    table.title = fmt::format("Watched (the first {}; {} more were shown)", table.rows.size(),
                              device.watched_dropped());
  }
  report.add(std::move(table));
}

}  // namespace tilestep::workbench

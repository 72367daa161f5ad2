#include "kernels/base/workbench/assembly_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/workbench/sources.hpp"

namespace tilestep::workbench {
namespace {

using lab::Fields;

/// Wider than what is offered: the GPU of a lab may be one that this build has not heard of, and nvcc knows which it can.
constexpr int kLeastCapability = 50, kMostCapability = 999;
constexpr int kMostLine = 1'000'000;
constexpr int kNotSaid = -1, kMostTaken = 1'000'000'000;

const Fields<AssemblyRequest>& request_fields() {
  static const auto kFields =
      Fields<AssemblyRequest>()
          .text("lesson", &AssemblyRequest::lesson)
          .custom(
              "kernel",
              [](const AssemblyRequest& request) {
                return lab::kernel_edit_fields().to_json(request.kernel);
              },
              [](const lab::Place& at, AssemblyRequest& request) {
                lab::kernel_edit_fields().read(at, request.kernel);
              })
          .name("form", &AssemblyRequest::form)
          .whole("capability", &AssemblyRequest::capability, kLeastCapability, kMostCapability);
  return kFields;
}

const Fields<AssemblyLine>& line_fields() {
  static const auto kFields =
      Fields<AssemblyLine>()
          .text("text", &AssemblyLine::text)
          .whole("line", &AssemblyLine::line, 0, kMostLine)
          .wholes("callers", &AssemblyLine::callers, lab::kAnyCount, 1, kMostLine);
  return kFields;
}

const Fields<AssemblyKernel>& kernel_fields() {
  static const auto kFields =
      Fields<AssemblyKernel>()
          .text(TILESTEP_MEMBERS(AssemblyKernel, symbol, name))
          .whole(TILESTEP_MEMBERS(AssemblyKernel, registers, stack_bytes, spill_store_bytes,
                                  spill_load_bytes, shared_bytes),
                 kNotSaid, kMostTaken)
          // Columns: of some ten thousand lines the names of their members are not said again and again.
          .columns("lines", &AssemblyKernel::lines, line_fields(), lab::kAnyCount);
  return kFields;
}

const Fields<Assembly>& assembly_fields() {
  static const auto kFields = Fields<Assembly>()
                                  .custom(
                                      "compiled",
                                      [](const Assembly& assembly) {
                                        return lab::edited_kernel_fields().to_json(assembly.info);
                                      },
                                      [](const lab::Place& at, Assembly& assembly) {
                                        lab::edited_kernel_fields().read(at, assembly.info);
                                      })
                                  .list("kernels", &Assembly::kernels, kernel_fields());
  return kFields;
}

bool is_of_source(const AssemblyKernel& kernel) {
  return std::any_of(kernel.lines.begin(), kernel.lines.end(),
                     [](const AssemblyLine& line) { return line.line > 0; });
}

}  // namespace

Assembly answer_assembly(const AssemblyRequest& request, lab::Progress& progress) {
  progress.report(0, fmt::format("compiling {} for {}", name_of_file(request.kernel.path),
                                 architecture_of(request.capability)));
  Assembly assembly = assembly_of(request.lesson, request.kernel, request.form, request.capability,
                                  {{}, [&progress] { return progress.cancelled(); }});
  progress.check();
  // A launch file has the kernels of other sources, too.
  if (std::any_of(assembly.kernels.begin(), assembly.kernels.end(), is_of_source)) {
    std::erase_if(assembly.kernels,
                  [](const AssemblyKernel& kernel) { return !is_of_source(kernel); });
  }
  return assembly;
}

nlohmann::json to_json(const AssemblyRequest& request) {
  return request_fields().to_json(request);
}

nlohmann::json to_json(const Assembly& assembly) {
  return assembly_fields().to_json(assembly);
}

AssemblyRequest assembly_request_from_json(const nlohmann::json& json) {
  return request_fields().from_json(json, "assembly");
}

Assembly assembly_from_json(const nlohmann::json& json) {
  return assembly_fields().from_json(json, "assembly");
}

}  // namespace tilestep::workbench

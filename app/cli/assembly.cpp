#include "kernels/base/workbench/assembly.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/fitted_table.hpp"
#include "app/cli/output.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/workbench/sources.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

using workbench::Assembly;
using workbench::AssemblyForm;
using workbench::AssemblyKernel;

struct AssemblyArguments {
  std::string lesson, kernel, source, form = "ptx", function, capability = "90";
  bool json = false;
};

/// The user's file, or a source as it was built in.
lab::KernelEdit source_of(const AssemblyArguments& arguments) {
  const std::string id = lesson(arguments.lesson).info().id;
  if (!arguments.kernel.empty()) return read_kernel_edit(id, arguments.kernel);
  const std::vector<std::string> all = workbench::editable_sources(id);
  std::string path = all.front();
  if (!arguments.source.empty()) {
    path = workbench::folder_of(id) + "/" + arguments.source;
    workbench::require_source(id, path);
  } else if (all.size() > 1) {
    std::string names;
    for (const std::string& each : all) {
      names += (names.empty() ? "" : ", ") + each.substr(each.rfind('/') + 1);
    }
    throw Error(
        fmt::format("'{}' has several sources: choose one with --source; allowed: {}", id, names));
  }
  return {path, std::string(lab::asset(path))};
}

int capability_of(const std::string& text) {
  for (const int allowed : workbench::kCapabilities) {
    if (text == std::to_string(allowed)) return allowed;
  }
  throw Error(fmt::format("--capability cannot be '{}'; allowed: {}", text,
                          fmt::join(workbench::kCapabilities, ", ")));
}

/// Those whose names have `part` in them; all where it is empty.
std::vector<AssemblyKernel> chosen_of(const Assembly& assembly, const std::string& part) {
  std::vector<AssemblyKernel> chosen;
  std::vector<std::string> names;
  for (const AssemblyKernel& kernel : assembly.kernels) {
    if (kernel.name.find(part) != std::string::npos) chosen.push_back(kernel);
    names.push_back(kernel.name);
  }
  if (chosen.empty()) {
    throw Error(
        fmt::format("no kernel here has '{}' in its name; allowed: {}", part, joined(names)));
  }
  return chosen;
}

lab::Cell number(int value) {
  return value < 0 ? lab::Cell() : lab::Cell(value);
}

/// Of SASS alone nobody says what a kernel takes: those columns are left out.
lab::Table resources(const std::vector<AssemblyKernel>& kernels) {
  const bool said = std::any_of(kernels.begin(), kernels.end(),
                                [](const AssemblyKernel& kernel) { return kernel.registers >= 0; });
  lab::Table table{
      "kernels", "Kernels as compiled", {"kernel", lab::whole("lines", "instructions")}};
  if (said) {
    for (const auto& column : {lab::whole("registers"), lab::whole("stack", "stack", "bytes"),
                               lab::whole("spill_stores", "spill stores", "bytes"),
                               lab::whole("spill_loads", "spill loads", "bytes"),
                               lab::whole("shared", "shared", "bytes")}) {
      table.columns.push_back(column);
    }
  }
  for (const AssemblyKernel& kernel : kernels) {
    std::vector<lab::Cell> row = {kernel.name, kernel.lines.size()};
    if (said) {
      for (const int taken : {kernel.registers, kernel.stack_bytes, kernel.spill_store_bytes,
                              kernel.spill_load_bytes, kernel.shared_bytes}) {
        row.push_back(number(taken));
      }
    }
    table.add(std::move(row));
  }
  return table;
}

nlohmann::json to_json(const std::vector<AssemblyKernel>& kernels) {
  nlohmann::json all = nlohmann::json::array();
  for (const AssemblyKernel& kernel : kernels) {
    nlohmann::json lines = nlohmann::json::array();
    for (const auto& line : kernel.lines)
      lines.push_back({{"text", line.text}, {"line", line.line}, {"callers", line.callers}});
    all.push_back({{"name", kernel.name},
                   {"symbol", kernel.symbol},
                   {"registers", kernel.registers},
                   {"stack_bytes", kernel.stack_bytes},
                   {"spill_store_bytes", kernel.spill_store_bytes},
                   {"spill_load_bytes", kernel.spill_load_bytes},
                   {"shared_bytes", kernel.shared_bytes},
                   {"lines", std::move(lines)}});
  }
  return all;
}

/// The source's line before the instructions that came of it.
std::string listing(const AssemblyKernel& kernel, const std::string& text) {
  std::vector<std::string_view> source;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    source.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::string out = fmt::format("\n{}\n", kernel.name);
  int before = 0;
  for (const auto& each : kernel.lines) {
    if (each.line != before && each.line > 0 && each.line <= std::ssize(source)) {
      out += fmt::format("{:5}  {}\n", each.line, source[static_cast<std::size_t>(each.line) - 1]);
    }
    if (each.line > 0) before = each.line;
    out += fmt::format("           {}\n", each.text);
  }
  return out;
}

int assembly(const AssemblyArguments& arguments) {
  if (arguments.lesson.empty()) throw Error("name a lesson, as `tilestep list` does");
  const auto form = named<AssemblyForm>(arguments.form);
  if (!form) throw Error(fmt::format("--form cannot be '{}'; allowed: ptx, sass", arguments.form));
  const int capability = capability_of(arguments.capability);
  const lab::KernelEdit source = source_of(arguments);
  const Assembly all = workbench::assembly_of(arguments.lesson, source, *form, capability);
  const std::vector<AssemblyKernel> chosen = chosen_of(all, arguments.function);
  if (arguments.json) {
    print(json_text(
        {{"source", source.path}, {"form", arguments.form}, {"kernels", to_json(chosen)}}));
    return static_cast<int>(ExitCode::good);
  }
  print(aligned(resources(chosen)));
  if (!arguments.function.empty()) {
    for (const AssemblyKernel& kernel : chosen) print(listing(kernel, source.text));
  } else {
    print("\n--function NAME lists the instructions of a kernel, line by line of the source.\n");
  }
  return static_cast<int>(ExitCode::good);
}

}  // namespace

void add_assembly(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<AssemblyArguments>();
  CLI::App* command = app.add_subcommand("assembly",
                                         "Show the PTX or SASS of a lesson's kernels by source "
                                         "line, with registers, spills and shared memory");
  command->add_option("LESSON", arguments->lesson, "Lesson, as named by `tilestep list`");
  add_kernel(*command, arguments->kernel);
  command
      ->add_option("--source", arguments->source, "Source file of the lesson, such as one_pass.cu")
      ->type_name("FILE");
  command->add_option("--form", arguments->form, "ptx or sass")->type_name("FORM");
  command
      ->add_option("--function", arguments->function,
                   "Only kernels whose name contains this, with their instructions")
      ->type_name("NAME");
  command
      ->add_option("--capability", arguments->capability,
                   "Compute capability, 90 for 9.0 (default)")
      ->type_name("N");
  command->add_flag("--json", arguments->json, "As JSON");
  command->callback([arguments, &invocation] {
    invocation.action = [arguments] { return assembly(*arguments); };
  });
}

}  // namespace tilestep::app

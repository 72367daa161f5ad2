#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kernels/base/lab/edit.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/workbench/assembly.hpp"

/// A lab's request for assembly and its answer: plain data, to and from JSON.
namespace tilestep::workbench {

/// A request to compile a lesson's source, built-in or edited, for a GPU.
struct AssemblyRequest {
  std::string lesson;
  lab::KernelEdit kernel;
  AssemblyForm form = AssemblyForm::ptx;
  int capability = kDefaultCapability;  ///< compute capability: 90 for 9.0
  bool operator==(const AssemblyRequest&) const = default;
};

/// Answers it, with the kernels alone that have instructions of the source; all where none has. `progress` hears what is
/// done and is asked whether to stop. Throws as assembly_of does.
Assembly answer_assembly(const AssemblyRequest& request, lab::Progress& progress);

nlohmann::json to_json(const AssemblyRequest& request);
nlohmann::json to_json(const Assembly& assembly);
/// Throw Error saying which member is missing or wrong.
AssemblyRequest assembly_request_from_json(const nlohmann::json& json);
Assembly assembly_from_json(const nlohmann::json& json);

}  // namespace tilestep::workbench

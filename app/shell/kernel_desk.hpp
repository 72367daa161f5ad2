#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/shell/owned_kernel.hpp"
#include "app/shell/session.hpp"
#include "kernels/base/workbench/assembly_request.hpp"
#include "kernels/base/workbench/sources.hpp"
#include "scenes/ui/code_editor.hpp"

/// What the pane *Kernel* holds of a lesson.
namespace tilestep::app {

/// What stands beside a lesson's source under Kernel.
struct AssemblyDesk {
  std::optional<workbench::AssemblyForm> form;  ///< nothing: the source alone
  int capability = 0;       ///< that was chosen; 0: the lab's GPU's, else kDefaultCapability
  std::string symbol = {};  ///< of the kernel on show; empty: the one that the line is of
  int line = 0;       ///< of the source, that was chosen in either; 0: the step's, or the caret's
  int seen_line = 0;  ///< the step's or the caret's in the frame before
  /// The lines of the instruction that the pointer was on in the frame before, the innermost first.
  std::vector<int> hovered = {};
  int source_goes = 0;        ///< the source brings this line into sight
  int listing_goes = 0;       ///< the listing its first instruction
  bool resources_fit = true;  ///< in the head, in this frame; else they stand below the listing
  bool asks = false;          ///< what is on show is to be compiled
};

/// What the user makes of a lesson's kernel.
struct KernelDesk {
  /// A source as the user changes it.
  struct Sheet {
    ui::CodeEditor editor;
    std::uint64_t kept = 0;       ///< the revision of its text that the draft has
    bool has_draft = false;       ///< from another time, or of this one
    bool of_other_build = false;  ///< made from another text of the source
    std::string original;         ///< as built in
    bool placed = false;          ///< the editor has shown the line of the step
  };
  bool edits = false;                   ///< the editor is on show under Kernel
  std::string path;                     ///< of the sheet in it
  std::map<std::string, Sheet> sheets;  ///< by path
  /// A source that is read in place of the one that the step is in, until the next step.
  struct Opened {
    std::string path;
    int line = 0;          ///< that was asked for; 0: its beginning
    scenes::Cursor since;  ///< where the lesson stood
    bool fresh = true;     ///< it has not been brought into sight
  };
  std::optional<Opened> opened;
  std::vector<std::string> sources;  ///< that can be opened, once they were looked for
  std::map<std::string, workbench::Definitions> functions;  ///< in reach of a source
  /// What a capsule brought. No draft is kept of it, and the user's own sheet of that source is left alone.
  struct Guest {
    lab::KernelEdit edit;  ///< as it came
    KernelOwner owner = KernelOwner::capsule;
    Sheet sheet;
  };
  std::optional<Guest> guest;
  bool guest_in_editor = false;  ///< the editor has that, in place of the user's own sheet
  /// The user's own editor has the draft of `path`: what it saves is run.
  bool watches = false;
  double look_s = 0;                   ///< when to look for that
  std::optional<Ticket> running = {};  ///< the run whose seconds are counted
  double running_since_s = 0;
  std::optional<lab::Settings> before_trial =
      {};  ///< where one came from when one went to a trial setting
  AssemblyDesk assembly = {};
};

}  // namespace tilestep::app

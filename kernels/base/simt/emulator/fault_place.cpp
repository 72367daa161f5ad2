#include "kernels/base/simt/emulator/fault_place.hpp"

#include <unwind.h>

#include "kernels/base/simt/emulator/fault_guard.hpp"

namespace tilestep::simt::emulated {
namespace {

struct Walk {
  const void** to;
  volatile std::size_t& count;
};

_Unwind_Reason_Code take_caller(_Unwind_Context* context, void* data) {
  auto& walk = *static_cast<Walk*>(data);
  int is_exact = 0;  // of what a signal interrupted; of others it is where they return to
  const auto address = _Unwind_GetIPInfo(context, &is_exact);
  if (address == 0 || walk.count >= kMostCallers) return _URC_END_OF_STACK;
  walk.to[walk.count] = reinterpret_cast<const void*>(is_exact != 0 ? address : address - 1);
  walk.count = walk.count + 1;
  return _URC_NO_REASON;
}

}  // namespace

void collect_callers(const void* (&callers)[kMostCallers], volatile std::size_t& count) {
  Walk walk{callers, count};
  _Unwind_Backtrace(take_caller, &walk);
}

FaultPlace place_here() {
  FaultPlace place;
  if (!FaultGuard::armed()) return place;
  const void* callers[kMostCallers];
  volatile std::size_t count = 0;
  collect_callers(callers, count);
  place.callers.assign(callers, callers + count);
  return place;
}

FaultPlace place_of(const Location& at) {
  FaultPlace place;
  place.file = at.file_name();
  place.line = at.line();
  return place;
}

}  // namespace tilestep::simt::emulated

#include "kernels/base/simt/fault_place.hpp"

#include <unwind.h>

#include "kernels/base/simt/fault_guard.hpp"

namespace tilestep::simt::emulated {
namespace {

struct Walk {
  const void** to;
  std::size_t count = 0;
};

_Unwind_Reason_Code take_caller(_Unwind_Context* context, void* data) {
  auto& walk = *static_cast<Walk*>(data);
  int is_exact = 0;  // of what a signal interrupted; of others it is where they return to
  const auto address = _Unwind_GetIPInfo(context, &is_exact);
  if (address == 0) return _URC_END_OF_STACK;
  walk.to[walk.count++] = reinterpret_cast<const void*>(is_exact != 0 ? address : address - 1);
  return walk.count < kMostCallers ? _URC_NO_REASON : _URC_END_OF_STACK;
}

}  // namespace

std::size_t collect_callers(const void* (&callers)[kMostCallers]) {
  Walk walk{callers};
  _Unwind_Backtrace(take_caller, &walk);
  return walk.count;
}

FaultPlace place_here() {
  FaultPlace place;
  if (!FaultGuard::armed()) return place;
  const void* callers[kMostCallers];
  place.callers.assign(callers, callers + collect_callers(callers));
  return place;
}

FaultPlace place_of(const Location& at) {
  FaultPlace place;
  place.file = at.file_name();
  place.line = at.line();
  return place;
}

}  // namespace tilestep::simt::emulated

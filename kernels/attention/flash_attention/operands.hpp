#pragma once

/// \file
/// The arrays of the forward kernels up to flash-2.

#include "kernels/attention/flash_attention/kernels.hpp"
#include "kernels/attention/shared/device/softmax.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {

using namespace attention::SIMT_BACKEND;
using attention::SIMT_BACKEND::online_softmax;  // and not the lesson of that name

/// A kernel's arrays; an explained kernel counts the bytes it requests from them.
template <class Tape>
struct Operands {
  template <class T>
  using Array = ArrayOf<Tape, T>;

  Array<const Bits> q, k, v;
  simt::Global<const int> begins;
  Array<Bits> o;
  Array<float> lse;
  Array<Bits> s, p;
  Array<float> o_sums, m, l;
};

}  // namespace tilestep::flash_attention::SIMT_BACKEND

#pragma once

/// \file
/// What the lessons' launch files include of the standard library and of simt. Edited kernels are compiled with it
/// precompiled (precompiled.hpp): most of a second of each, and none of it can be edited.

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/mma.hpp"
#include "kernels/base/simt/packed.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/base/simt/tensor_map.hpp"

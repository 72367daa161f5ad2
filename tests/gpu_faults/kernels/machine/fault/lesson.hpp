#pragma once

#include "kernels/lessons.hpp"

/// A kernel that does what no kernel should.
namespace tilestep::fault {}

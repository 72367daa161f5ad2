#pragma once

/// \file
/// CUDA's header of this name, for edited sources under emulation: simt.hpp has its words.

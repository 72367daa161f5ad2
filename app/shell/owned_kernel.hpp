#pragma once

#include <utility>

#include "kernels/base/lab/edit.hpp"

namespace tilestep::app {

/// Whose a source is, and so how it is run.
enum class KernelOwner {
  user,     ///< the user's own: as the user
  capsule,  ///< from someone else, even if the user has edited it: in a sandbox
  trusted,  ///< from someone else, but the user lets it run like the user's own
};

/// A source that is run in place of the built-in one. Its owner goes with its text, through every edit.
struct OwnedKernel : lab::KernelEdit {
  OwnedKernel(lab::KernelEdit edit, KernelOwner its_owner)
      : lab::KernelEdit(std::move(edit)), owner(its_owner) {}
  KernelOwner owner;

  bool for_sandbox() const { return owner == KernelOwner::capsule; }
  bool from_capsule() const { return owner != KernelOwner::user; }
};
inline bool operator==(const OwnedKernel& a, const OwnedKernel& b) {
  return a.owner == b.owner && a.path == b.path && a.text == b.text;
}

}  // namespace tilestep::app

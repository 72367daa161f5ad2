// Part of tilestep under AddressSanitizer alone.

/// Nothing is unloaded. What a graphics driver keeps until the program ends is found through the driver's own
/// variables; once those are gone, LeakSanitizer takes it for a leak of ours, in an "unknown module".
extern "C" int dlclose(void* /*library*/) noexcept {
  return 0;
}

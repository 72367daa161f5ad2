#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdio>

#include "kernels/base/simt/sanitizers.hpp"
#include "tests/skip.hpp"

namespace tilestep::tests {
namespace {
int skips = 0;
}  // namespace

void skip(const std::string& reason) {
  ++skips;
  std::printf("skipped: %s\n", reason.c_str());
}

}  // namespace tilestep::tests

#if defined(TILESTEP_ASAN)
/// The sanitizer's own 30 calls behind each allocation and 256 MiB of freed memory, which is touched anew all the time,
/// cost a quarter of the tests' time.
/// ASAN_OPTIONS in the environment counts for more.
extern "C" const char* __asan_default_options() {
  return "malloc_context_size=6:quarantine_size_mb=8";
}
#endif

/// kSkipped where a test found nothing here to test with, and no other failed.
int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  return failed == 0 && tilestep::tests::skips > 0 ? tilestep::tests::kSkipped : failed;
}

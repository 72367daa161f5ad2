#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdio>

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

/// kSkipped where a test found nothing here to test with, and no other failed.
int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  return failed == 0 && tilestep::tests::skips > 0 ? tilestep::tests::kSkipped : failed;
}

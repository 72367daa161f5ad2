// What compute-sanitizer says, in the forms that its documentation shows, and how it is called.
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "kernels/base/workbench/compute_sanitizer.hpp"
#include "kernels/base/workbench/folders.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/workbench/own_cache.hpp"

namespace tilestep::workbench {
namespace {

using tests::contains;

const std::string kSanitized = "kernels/memory/coalescing/access.cu";
const std::string kFile = "/home/ada/.cache/tilestep/edited/0123/edited/" + kSanitized;

std::string output(const std::string& middle) {
  return "========= COMPUTE-SANITIZER\nMoves 3 sectors\n" + middle +
         "========= Program hit cudaErrorLaunchFailure (error 719) due to \"unspecified launch "
         "failure\" on CUDA API call to cudaMemcpy.\n"
         "=========     Saved host backtrace up to driver entry point at error\n"
         "========= ERROR SUMMARY: 2 errors\n";
}

/// A program that stands in for compute-sanitizer: `script` is what it does.
class Instead {
 public:
  explicit Instead(const std::string& script) : file_((cache_.folder / "sanitizer").string()) {
    std::filesystem::create_directories(cache_.folder);
    std::ofstream(file_) << "#!/bin/sh\n" << script << "\n";
    ::chmod(file_.c_str(), 0700);
    ::setenv("TILESTEP_COMPUTE_SANITIZER", file_.c_str(), 1);
  }
  ~Instead() { ::unsetenv("TILESTEP_COMPUTE_SANITIZER"); }
  Instead(const Instead&) = delete;
  Instead& operator=(const Instead&) = delete;
  std::filesystem::path folder() const { return cache_.folder; }

 private:
  tests::OwnCache cache_;
  std::string file_;
};

const SanitizedRun kRun{"coalescing",
                        {{"pattern", std::string("offset")}, {"stride", std::int64_t{3}}},
                        {kSanitized, "// a text\n"}};

}  // namespace

TEST_CASE("compute-sanitizer: an address out of bounds", "[workbench]") {
  const auto found = finding_in(
      output("========= Invalid __global__ write of size 4 bytes\n"
             "=========     at void tilestep::coalescing::edited_backend::gather<"
             "tilestep::coalescing::Pattern, float const *>(T2, T3, int)+0x1d0 in " +
             kFile +
             ":42\n"
             "=========     by thread (3,0,0) in block (1,2,0)\n"
             "=========     Address 0x7f2b6a000010 is out of bounds\n"
             "=========     and is 13 bytes after the nearest allocation at 0x7f2b6a000000 of size "
             "4 bytes\n"
             "=========     Saved host backtrace up to driver entry point at kernel launch time\n"
             "=========         Host Frame:main in main.cpp:9 [0x1234] in tilestep\n"
             "=========\n"
             "========= Invalid __global__ write of size 4 bytes\n"
             "=========     at void tilestep::coalescing::edited_backend::gather()+0x1d0 in " +
             kFile +
             ":43\n"
             "=========     by thread (4,0,0) in block (1,2,0)\n"),
      kSanitized);
  REQUIRE(found.has_value());
  CHECK(found->line == 42);
  CHECK(found->kernel == "gather");
  CHECK(found->sentence() ==
        "gather: thread (3,0,0) of block (1,2,0): invalid __global__ write of size 4 bytes; "
        "address 0x7f2b6a000010 is out of bounds and is 13 bytes after the nearest allocation at "
        "0x7f2b6a000000 of size 4 bytes");
}

TEST_CASE("compute-sanitizer: the line of the edited source that called what failed",
          "[workbench]") {
  const auto found =
      finding_in(output("========= Invalid __shared__ read of size 16 bytes\n"
                        "=========     at tilestep::simt::load(float const *)+0x30 in "
                        "/home/ada/.cache/tilestep/headers/kernels/base/simt/tape.hpp:77\n"
                        "=========     by thread (0,0,0) in block (0,0,0)\n"
                        "=========     Address 0x4 is misaligned\n"
                        "=========         Device Frame:(anonymous namespace)::row(int)+0x90 in " +
                        kFile +
                        ":12\n"
                        "=========         Device Frame:gather(float *)+0xf0 in " +
                        kFile + ":50\n"),
                 kSanitized);
  REQUIRE(found.has_value());
  CHECK(found->line == 12);
  CHECK(found->kernel == "gather");
  CHECK(found->what == "invalid __shared__ read of size 16 bytes; address 0x4 is misaligned");
}

TEST_CASE("compute-sanitizer: the older form, and a file without its folder", "[workbench]") {
  const auto found = finding_in(output("========= Invalid __global__ read of size 4 bytes\n"
                                       "=========     at 0xb0 in access.cu:6:gather(float*)\n"
                                       "=========     by thread (31,0,0) in block (0,0,0)\n"
                                       "=========     Address 0x0 is out of bounds\n"),
                                kSanitized);
  REQUIRE(found.has_value());
  CHECK(found->line == 6);
  CHECK(found->thread == "(31,0,0)");
}

TEST_CASE("compute-sanitizer: threads that part before a barrier", "[workbench]") {
  const auto found = finding_in(
      output("========= Barrier error detected. Divergent thread(s) in block\n"
             "=========     at tile(float *)+0x40 in /elsewhere/headers/kernels/other.cu:9\n"
             "=========     by thread (1,0,0) in block (0,0,0)\n"
             "=========\n"
             "========= Barrier error detected. Divergent thread(s) in block\n"
             "=========     at gather(float *)+0x40 in " +
             kFile +
             ":88\n"
             "=========     by thread (32,0,0) in block (0,0,0)\n"),
      kSanitized);
  REQUIRE(found.has_value());  // the one in the user's source, though it comes later
  CHECK(found->line == 88);
  CHECK(found->what == "barrier error detected. Divergent thread(s) in block");
  CHECK(found->thread == "(32,0,0)");
}

TEST_CASE("compute-sanitizer: without line numbers the thread is known", "[workbench]") {
  const auto found = finding_in(output("========= Invalid __local__ write of size 8 bytes\n"
                                       "=========     at gather(float *)+0x40\n"
                                       "=========     by thread (2,0,0) in block (7,0,0)\n"),
                                kSanitized);
  REQUIRE(found.has_value());
  CHECK(found->line == 0);
  CHECK(found->sentence() ==
        "gather: thread (2,0,0) of block (7,0,0): invalid __local__ write of size 8 bytes");
}

TEST_CASE("compute-sanitizer: where it found nothing there is no finding", "[workbench]") {
  CHECK(!finding_in("", kSanitized));
  CHECK(!finding_in(output(""), kSanitized));
  CHECK(
      !finding_in("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", kSanitized));
  CHECK(!finding_in("at gather+0x1 in " + kFile + ":3\nby thread (1,0,0) in block (0,0,0)\n",
                    kSanitized));
}

TEST_CASE("compute-sanitizer gets the same source and knobs, and a guard", "[workbench]") {
  const Instead instead(
      "echo \"$TILESTEP_SANITIZED $*\" > \"$0.said\"\n"
      "for word; do case $word in *.cu) cp \"$word\" \"$0.source\";; esac; done\n"
      "echo '========= Invalid __global__ read of size 4 bytes'\n"
      "echo '=========     at gather()+0x10 in access.cu:1'\n"
      "echo '=========     by thread (0,0,0) in block (0,0,0)'");
  const Sanitized sanitized = run_sanitized(kRun, {});
  REQUIRE(sanitized.finding.has_value());
  CHECK(sanitized.finding->line == 1);
  const std::string said = read_whole(instead.folder() / "sanitizer.said");
  CHECK(said.starts_with("1 --tool memcheck "));
  CHECK(contains(said, " run coalescing --backend cuda --kernel "));
  CHECK(contains(said, "/access.cu --set pattern=offset --set stride=3\n"));
  CHECK(read_whole(instead.folder() / "sanitizer.source") == "// a text\n");
  SanitizedRun barriers = kRun;
  barriers.barriers = true;
  (void)run_sanitized(barriers, {});
  CHECK(read_whole(instead.folder() / "sanitizer.said").starts_with("1 --tool synccheck "));
  for (const auto& entry : std::filesystem::directory_iterator(instead.folder())) {
    CHECK(!entry.is_directory());  // the source's is gone
  }
}

TEST_CASE("compute-sanitizer: why there is no finding", "[workbench]") {
  {
    const Instead instead(
        "echo '========= COMPUTE-SANITIZER'; echo '========= ERROR SUMMARY: 0 errors'");
    CHECK(run_sanitized(kRun, {}).why == "found nothing");
  }
  {
    const Instead instead(
        "echo '========= COMPUTE-SANITIZER'; echo '========= Error: no GPU'; exit 1");
    CHECK(run_sanitized(kRun, {}).why == "could not run it: Error: no GPU");
  }
  const Instead instead("sleep 100");
  CHECK_THROWS_AS(run_sanitized(kRun, [] { return true; }), Cancelled);
  ::setenv("TILESTEP_COMPUTE_SANITIZER", "/no/such/program", 1);
  CHECK(run_sanitized(kRun, {}).why == "is not installed here");
}

TEST_CASE("this process is one that compute-sanitizer looks at if it was told so", "[workbench]") {
  CHECK(!is_sanitized());
  ::setenv("TILESTEP_SANITIZED", "1", 1);
  CHECK(is_sanitized());
  ::unsetenv("TILESTEP_SANITIZED");
}

}  // namespace tilestep::workbench

// What is asked about a bench of the lesson on decoding: only what its tables have, and with their numbers. The numbers
// here are made up.
#include "scenes/shared/measured.hpp"

#include "scenes/attention/decode/scene.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using lab::column, lab::real, lab::whole;
using Bench = tests::MadeUpBench<scenes::DecodeScene>;

TEST_CASE("Decode: questions about a bench have its numbers", "[decode_scene]") {
  lab::Table ladder{
      "ladder_measured", "", {"rung", real("time", "", "ms", 3), real("fraction", "", "", 3)}};
  ladder.add({"paged-repeat-kv", 2.0, 0.1});
  ladder.add({"paged-balanced", 0.25, 0.9});
  CHECK(Bench({ladder}).answer("read") == "85 to 95 %");
  CHECK(Bench({ladder}).answer("repeat") == "8.0×");
  CHECK(Bench({ladder}).asked("repeat").because.find("DRAM") == std::string::npos);
  lab::Table bytes{"bytes", "", {"rung", real("dram", "", "MB", 1)}};
  bytes.add({"paged-repeat-kv", 8000.0});
  bytes.add({"paged-balanced", 1000.0});
  CHECK(Bench({ladder, bytes}).asked("repeat").because.find("8000 MB instead of 1000") !=
        std::string::npos);

  lab::Table batches{
      "batches", "", {whole("batch", ""), column("rung", ""), real("bandwidth", "", "GB/s", 0)}};
  batches.add({1, "a block each", 100.0});
  batches.add({1, "equal pieces", 400.0});
  CHECK(Bench({batches}).answer("split") == "4.0×");

  lab::Table formats{
      "formats", "", {column("kv_dtype", ""), whole("page_size", ""), real("speedup", "", "", 2)}};
  formats.add({"fp8", 16, 1.7});
  CHECK(Bench({formats}).answer("format") == "not asked");
  formats.add({"int4", 16, 2.5});
  CHECK(Bench({formats}).answer("format") == "2.5×");

  lab::Table schemes{"schemes", "", {column("scheme", ""), real("tokens", "", "1/s", 0)}};
  schemes.add({"mha", 30000.0});
  schemes.add({"gqa", 240000.0});
  CHECK(Bench({schemes}).answer("sharing") == "8.0×");
}

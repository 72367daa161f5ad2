// Scripts that answer in JSON, run as peers: as built in, of another folder, missing, and answering nonsense.

#include "kernels/base/lab/peer_process.hpp"

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/scripted_rungs.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/stand_in.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using tests::contains;
using tests::error_of;

TEST_CASE("a peer's script is that of a folder, or the one built in", "[lab]") {
  const tests::StandIn stand("fusion.py", "read -r line; echo '{\"ms\": [1, 2]}'");
  lab::ScriptPeer peer("fusion.py");
  CHECK(lab::numbers_of(peer.ask({{"rung", "eager"}}), "ms") == std::vector<double>{1, 2});
  CHECK(contains(error_of([] { lab::ScriptPeer("other.py"); }), "has no other.py; allowed:"));

  const tests::Environment built_in("TILESTEP_PEERS", "");
  CHECK(lab::peer_command("fusion.py").at(1) == "-c");
  CHECK(lab::peer_command("fusion.py").at(2) == lab::asset("assets/peers/fusion.py"));
  // As a file, for as long as the peer lives.
  const tests::Environment shell(
      "TILESTEP_PYTHON",
      stand.write("python", "#!/bin/sh\nread -r line; echo \"{\\\"path\\\": \\\"$1\\\"}\"\n"));
  std::filesystem::permissions(std::getenv("TILESTEP_PYTHON"), std::filesystem::perms::owner_all);
  std::string path;
  {
    lab::ScriptPeer as_file("fusion.py");
    path = as_file.ask({}).at("path");
    CHECK(std::filesystem::file_size(path) == lab::asset("assets/peers/fusion.py").size());
  }
  CHECK_FALSE(std::filesystem::exists(path));
  const tests::Environment nobody("TILESTEP_PYTHON", "/nowhere/python");
  CHECK(contains(error_of([] { lab::ScriptPeer("fusion.py"); }), "/nowhere/python"));
}

TEST_CASE("a peer's answer has the numbers that were asked for, or a sentence says so", "[lab]") {
  const auto said = [](const char* answer, std::size_t count) {
    return error_of([&] { lab::numbers_of(nlohmann::json::parse(answer), "ms", count); });
  };
  CHECK(lab::numbers_of({{"ms", {1, 2}}}, "ms", 2).size() == 2);
  CHECK(contains(said("{}", 0), "without 'ms'; allowed: a list of at least one number"));
  CHECK(contains(said("{\"ms\": []}", 0), "at least one number"));
  CHECK(contains(said("{\"ms\": [1]}", 2), "a list of 2 numbers"));
  CHECK(contains(said("{\"ms\": [1, \"soon\"]}", 2), "a list of 2 numbers"));
  CHECK(contains(said("{\"ms\": 1}", 0), "at least one number"));
}

TEST_CASE("lines of code are neither blank nor comments", "[lab]") {
  CHECK(lab::lines_of_code("") == 0);
  CHECK(lab::lines_of_code("a\n\n  // b\n  c  // d\n# e\n#include <f>\n  ") == 3);
}

// Recordings are replayed, and what does not hold in them is found and named. The files are made here, of
// runs under emulation; those of the repository are verified by `tilestep verify-recording` itself.
#include "app/cli/verify_recording.hpp"

#include <fmt/format.h>

#include <functional>

#include "app/file.hpp"
#include "kernels/base/lab/record.hpp"
#include "kernels/catalog.hpp"
#include "tests/app/child.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using nlohmann::json;
using tests::contains;
using tests::error_of;

namespace {

/// The file of a lesson's telling settings, as if it had been recorded here.
json recorded(const std::string& id, const std::string& set) {
  for (const lab::Telling& telling : lesson(id).telling()) {
    if (telling.name != set) continue;
    lab::RecordedRun kept{id, set, "2026-01-02", {}, lab::made_by_this("1.2.3")};
    kept.run = tests::run_on(*simt::make_emulated_device(emulated_kernels()), lesson(id),
                             telling.settings);
    return to_json(kept);
  }
  throw Error("no such set");
}

/// What verify-recording finds in `text` under that name.
app::Verified verified_text(const std::string& name, const std::string& text) {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "gpu" / name;
  app::write_file(path, text);
  return app::verify(path, tests::unwatched);
}
app::Verified verified(const json& file) {
  return verified_text(fmt::format("{}/{}.json", file.at("lesson").get<std::string>(),
                                   file.at("set").get<std::string>()),
                       file.dump());
}

const json& rising() {
  static const json kFile = recorded("online-softmax", "rising");
  return kFile;
}

/// The first difference after `change`; empty: there is none.
std::string difference(const json& file, const std::function<void(json& run)>& change) {
  json changed = file;
  change(changed["run"]);
  const app::Verified found = verified(changed);
  CHECK(found.refused.empty());
  if (!found.comparison.difference) {
    CHECK(found.code == ExitCode::good);
    return "";
  }
  CHECK(found.code == ExitCode::check_failed);
  CHECK(contains(app::line_of(found), found.comparison.difference->path));
  return found.comparison.difference->path;
}

/// What is refused after `change`.
std::string refusal(const std::function<void(json& file)>& change) {
  json changed = rising();
  change(changed);
  const std::string lesson = changed["lesson"].is_string() ? changed["lesson"] : "x";
  const app::Verified found = verified_text(lesson + "/rising.json", changed.dump());
  CHECK(found.code == ExitCode::bad_input);
  return found.refused;
}

}  // namespace

TEST_CASE("a recording that holds is called the same", "[cli]") {
  const app::Verified found = verified(rising());
  CHECK(found.code == ExitCode::good);
  CHECK(found.remarks.empty());
  CHECK(found.comparison.compared > 100);
  CHECK(found.comparison.close == 0);
  CHECK(contains(app::line_of(found), "rising.json: online-softmax at rising, recorded on "));
  CHECK(app::json_of(found).at("ok") == true);
}

TEST_CASE("what was changed in a recording is found and named", "[cli]") {
  using Run = json&;
  CHECK(difference(rising(), [](Run run) { run["trace"]["first_wrong_tile"] = 2; }) ==
        "trace.first_wrong_tile");
  const auto times = [](double factor) {
    return [factor](Run run) {
      json& l = run["trace"]["steps"]["l"][1];
      l = l.get<double>() * factor;
    };
  };
  CHECK(difference(rising(), times(1 + 1e-5)) == "trace.steps.l[1]");
  CHECK(difference(rising(), times(1 + 3e-7)) == "");  // as another exp gives it
  CHECK(difference(rising(), [](Run run) { run["trace"]["steps"]["m"][0] = "inf"; }) ==
        "trace.steps.m[0]");
  CHECK(difference(rising(), [](Run run) { run["tables"][0]["rows"][1][0] = 7; }) ==
        "tables.tiles.tile[1]");
  CHECK(contains(difference(rising(), [](Run run) { run["tables"][0]["rows"].erase(2); }),
                 "tables.tiles."));
  CHECK(difference(rising(), [](Run run) { run["tables"].erase(1); }) == "tables.naive");
  CHECK(difference(rising(), [](Run run) { run["measurements"][0]["value"] = 1; }) ==
        "measurements.rescales");
  CHECK(difference(rising(), [](Run run) { run["checks"][2]["ok"] = false; }) ==
        "checks.weights.ok");
  CHECK(difference(rising(), [](Run run) { run["checks"].erase(2); }) == "checks.weights");

  const json lanes = recorded("coalescing", "neighbours");
  CHECK(difference(lanes, [](Run run) {
          json& offset = run["trace"]["requests"][1]["bytes"][3];
          offset = offset.get<int>() + 4;
        }) == "trace.requests[1].bytes[3]");
}

TEST_CASE("what is of the machine may differ", "[cli]") {
  const json skewed = recorded("moe-routing", "capacity");
  CHECK(difference(skewed, [](json& run) {
          json& tiles = run["trace"]["tiles"];
          for (auto& [name, column] : tiles.items()) std::swap(column[0], column[1]);
          tiles["end"][2] = 12345.0;
          run["trace"]["clock_unit"] = "ns";
          for (json& table : run["tables"]) {
            if (table["id"] == "tiles") std::swap(table["rows"][0], table["rows"][1]);
          }
        }) == "");
  CHECK(contains(difference(skewed,
                            [](json& run) {
                              json& kept = run["trace"]["tiles"]["kept"][0];
                              kept = kept.get<int>() - 1;
                            }),
                 "trace.tiles.kept"));
  // A run elsewhere counts and times.
  CHECK(difference(rising(), [](json& run) {
          json counted = run["measurements"][0];
          counted["id"] = "sectors", counted["provenance"] = "counted";
          run["measurements"].push_back(counted);
          run["device"]["name"] = "another";
        }) == "");
}

TEST_CASE("a recording of another build is remarked on", "[cli]") {
  const auto remarks = [](const std::function<void(json&)>& change) {
    json changed = rising();
    change(changed);
    const app::Verified found = verified(changed);
    CHECK(found.code == ExitCode::good);
    return fmt::format("{}", fmt::join(found.remarks, "; "));
  };
  CHECK(remarks([](json& file) { file["source_hash"] = "00"; }) ==
        "it was made from other kernel sources than this program's, tilestep 1.2.3");
  CHECK(remarks([](json& file) { file.erase("source_hash"); }) ==
        "it does not say which build made it");
  CHECK(remarks([](json& file) { file["colour"] = "blue"; }) == "'colour' is not understood");
  CHECK(remarks([](json& file) { file["run"]["summary"] = "It ran."; }) ==
        "words have changed since: summary");
}

TEST_CASE("a recording of another build may lack what came since, and nothing else", "[cli]") {
  json older = rising();
  older.erase("source_hash");
  CHECK(difference(older, [](json& run) { run["tables"][0]["rows"].erase(3); }) == "");
  CHECK(contains(difference(older, [](json& run) { run["tables"][0]["rows"].erase(1); }),
                 "tables.tiles."));
  CHECK(difference(older, [](json& run) { run["trace"]["weights"][0] = 0.5; }) ==
        "trace.weights[0]");
  older["run"]["tables"].erase(1);
  const app::Verified found = verified(older);
  CHECK(found.code == ExitCode::good);
  REQUIRE(found.remarks.size() == 2);
  CHECK(found.remarks[1] == "not in it yet: tables.naive");
}

TEST_CASE("what is no recording is refused with the reason", "[cli]") {
  CHECK(refusal([](json& file) { file["lesson"] = "tiling"; }) ==
        "its run is of the lesson 'online-softmax', not 'tiling'");
  CHECK(contains(refusal([](json& file) { file["lesson"] = "thinking"; }),
                 "there is no lesson 'thinking'; the lessons are: coalescing, latency-hiding"));
  CHECK(contains(refusal([](json& file) { file["run"]["params"]["keys"] = 0; }),
                 "knob 'keys' cannot be '0'; allowed: 1–65536"));
  CHECK(contains(refusal([](json& file) { file["run"]["trace"]["steps"]["l"].erase(1); }),
                 "'steps.l' must have 4 entries, but has 3"));
  CHECK(contains(refusal([](json& file) { file.erase("run"); }), "'run'"));
  CHECK(contains(refusal([](json& file) { file.erase("set"); }), "it is not a recording"));
  CHECK(contains(refusal([](json& file) { file["version"] = 9; }),
                 "made by a newer tilestep: its version is 9"));
  CHECK(contains(refusal([](json& file) { file["set"] = "falling"; }),
                 "which must be called online-softmax/falling.json"));

  const std::string text = rising().dump();
  const auto of_text = [](const std::string& bytes) {
    const app::Verified found = verified_text("online-softmax/rising.json", bytes);
    CHECK(found.code == ExitCode::bad_input);
    return found.refused;
  };
  CHECK(contains(of_text(text.substr(0, text.size() - 9)), "it is cut off after"));
  CHECK(contains(of_text(""), "it is cut off after 0 bytes"));
  CHECK(contains(of_text("no, " + text), "it is not JSON from byte"));
  CHECK(contains(of_text(std::string(200'000, '[')), "more than 32 objects and lists"));
  CHECK(contains(of_text(text + std::string(300'000, ' ')), "larger than the 300000 bytes"));
}

TEST_CASE("verify-recording says and returns what it found", "[cli]") {
  const tests::TemporaryFolder folder;
  const auto verify = [&](const char* below = ".") {
    return tests::run_tilestep({"verify-recording", (folder.path() / below).string(), "--json"});
  };
  CHECK(verify().code == 3);
  CHECK(contains(verify().err, "there is no recording (*.json) below"));
  CHECK(verify("nowhere").code == 3);

  const auto path = folder.path() / "gpu/online-softmax/rising.json";
  app::write_file(path, rising().dump());
  CHECK(verify().code == 0);
  json changed = rising();
  changed["run"]["trace"]["weights"][0] = 0.5;
  app::write_file(path, changed.dump());
  const auto found = verify();
  CHECK(found.code == 1);
  CHECK(found.json().at("ok") == false);
  const json file = found.json().at("files").at(0);
  CHECK(file.at("difference").at("path") == "trace.weights[0]");
  CHECK(file.at("difference").at("recorded") == "0.5");
  CHECK(found.json().at("lessons").at("online-softmax").at("rounding") > 0);
  app::write_file(folder.path() / "gpu/x.json", "{");
  CHECK(verify().code == 2);
  CHECK(verify("gpu/x.json").code == 2);
}

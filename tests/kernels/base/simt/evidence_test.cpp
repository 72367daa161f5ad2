// A run is had again from what its lesson has read of the device, and from nothing else.
#include "kernels/evidence.hpp"

#include <nlohmann/json.hpp>

#include "kernels/base/simt/emulator/evidence.hpp"
#include "kernels/catalog.hpp"
#include "tests/catch.hpp"

namespace tilestep {
namespace {

using tests::contains, tests::error_of;

struct Kept {
  lab::Request request;
  lab::Report report;
  std::string evidence;
};

/// A run of the kernels that were built in.
Kept kept(const std::string& id, const lab::Settings& params = {}) {
  simt::EvidenceWriter evidence;
  const auto device = simt::make_witnessed_device(emulated_kernels(), {}, evidence);
  lab::NoProgress progress;
  const lab::Lesson& of = lesson(id);
  lab::Report report = of.run(of.knobs().completed(params), *device, progress);
  return {{.lesson = id, .params = params}, std::move(report), evidence.take()};
}

lab::Report again(const Kept& run, std::string_view evidence) {
  lab::NoProgress progress;
  return answer_from_evidence(run.request, evidence, progress);
}

TEST_CASE("simt: a run is had again from its evidence", "[simt]") {
  // Of these the one is run on devices of its own, with a log and with launches that fail, and the other follows addresses.
  for (const Kept& run :
       {kept("online-softmax"), kept("hopper-gemm", {{"break", "skip-full-wait"}}),
        kept("latency-hiding", {{"kernel", "chase"}})}) {
    INFO(run.request.lesson);
    CHECK((lab::to_json(again(run, run.evidence)) == lab::to_json(run.report)));
  }
}

TEST_CASE("simt: evidence that is not what the lesson reads is refused", "[simt]") {
  const Kept run = kept("online-softmax");
  const auto refused = [&](std::string_view evidence) {
    return contains(error_of([&] { again(run, evidence); }), "other outputs than the lesson reads");
  };
  CHECK(refused(""));
  CHECK(refused(run.evidence.substr(0, run.evidence.size() - 1)));
  CHECK(refused(run.evidence + run.evidence));
  CHECK(refused(run.evidence + std::string("f\2\0\0\0\0\0\0\0x", 10)));  // longer than it is
  std::string damaged = run.evidence;
  damaged[0] = 'o';  // an output where memory is asked for
  CHECK(refused(damaged));
  damaged = run.evidence;
  damaged[8] = '\x7F';  // of a size beyond all
  CHECK(refused(damaged));
  damaged = run.evidence;
  damaged[15] = '\x7F';  // at an address that no program has
  CHECK(refused(damaged));
}

TEST_CASE("simt: other outputs fail the lesson's checks", "[simt]") {
  const Kept run = kept("online-softmax");
  std::string changed = run.evidence;
  // The first output, behind the addresses (nine bytes before eight): its first number's sign.
  std::size_t output = 0;
  while (changed.at(output) == 'a') output += 17;
  REQUIRE(changed.at(output) == 'o');
  changed.at(output + 9 + 3) ^= '\x80';
  CHECK(run.report.ok());
  CHECK_FALSE(again(run, changed).ok());
}

TEST_CASE("simt: evidence has a limit", "[simt]") {
  const std::string half(simt::kMostEvidence / 2 - 64, 'x');
  simt::EvidenceWriter evidence, more;
  for (simt::EvidenceWriter* each : {&evidence, &more, &more, &evidence}) {
    each->copied_out(half.data(), half.size());
  }
  CHECK(evidence.take().size() > 2 * half.size());
  more.failed(std::string(128, 'x'));
  CHECK(contains(error_of([&] { more.take(); }), "more than 2.75 MiB"));
}

}  // namespace
}  // namespace tilestep

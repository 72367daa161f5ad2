#include "scenes/shared/glossary.hpp"

#include <algorithm>
#include <set>

#include "kernels/base/lab/assets.hpp"
#include "scenes/shared/glossary_words.hpp"
#include "scenes/shared/scene.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using scenes::Term;

namespace {

/// What a reader of papers and of this program may look up; each is a name or an alias.
constexpr const char* kWanted[] = {
    "Thread", "SIMT", "sub-partition", "scheduler", "eligible", "stalled", "latency hiding",
    "data reuse", "software pipelining", "prefetch", "register file", "register pressure",
    "local memory", "TMA", "tensor map", "mbarrier", "warpgroup", "warp specialization", "cluster",
    "multicast", "tensor memory", "tcgen05", "microscaling", "FP4", "CuTe", "CUTLASS", "layout",
    "swizzle", "INT8", "ternary", "NVFP4", "MXFP4", "GGUF", "k-quant", "token", "gradient",
    "activation", "W4A16", "W4A4", "SDPA", "FlexAttention", "SageAttention", "SonicMoE",
    "data parallel", "tensor parallel", "pipeline parallel", "expert parallel", "context parallel",
    "FSDP", "ZeRO", "all-reduce", "all-to-all", "KV cache", "RoPE", "NoPE", "sliding window",
    "attention sink", "MHA", "MQA", "GQA", "MLA", "DSA", "YaRN", "PagedAttention", "FlashInfer",
    "FlashMLA", "TensorRT-LLM", "Triton", "TileLang", "PTX", "DeepGEMM", "ScatterMoE", "DeepEP",
    "GPTQ", "AWQ", "CUDA graph", "torch.compile", "speculative decoding", "prefill", "decode",
    "continuous batching", "fusion", "RMSNorm", "bucketing",
    // what the lessons and their sources speak of
    "Accumulator", "Arithmetic intensity", "Array of structures", "Attention", "Bandwidth", "Bank",
    "Bank conflict", "Barrier", "BF16", "Block", "thread block", "Cache line", "Capacity factor",
    "Causal mask", "Coalescing", "Compensated summation", "Compute-bound", "cp.async",
    "Denominator", "Double buffering", "Dropped token", "E4M3", "E5M2", "Emulation", "Expert",
    "Exponent", "FlashAttention", "FLOP", "FMA", "FP8", "FP16", "FP32", "Frozen sum", "Gate weight",
    "GEMM", "Grouped GEMM", "Hardware counter", "HBM", "Key", "Kernel", "L1 cache", "L2 cache",
    "Lane", "ldmatrix", "Lockstep", "Mantissa", "Mask", "Memory-bound", "MMA", "Mixture of experts",
    "MoE", "Multiprocessor", "SM", "Occupancy", "Online softmax", "Outlier", "Padding",
    "Pairwise summation", "Persistent block", "Promotion", "Quantization", "Query", "Race",
    "Register", "Register spilling", "Request", "Rescale", "Roofline", "Rounding to nearest even",
    "Router", "Saturation", "Scale", "Score", "Sector", "Shared memory", "Softmax", "Spacing",
    "ulp", "Spilling", "Stochastic rounding", "Straggler", "Stride", "Structure of arrays",
    "Subnormal", "Tensor core", "TF32", "Tile", "Tiling", "Unit roundoff", "Value", "Warp",
    "Warp shuffle", "Wavefront", "wgmma", "linear attention", "dequantization", "launch overhead",
    "BitNet"};

std::vector<std::string> names_of(const Term& term) {
  std::vector<std::string> names = term.aliases;
  names.insert(names.begin(), term.name);
  return names;
}

const Term* named(std::string_view name) {
  for (const Term& term : scenes::glossary()) {
    for (const std::string& other : names_of(term)) {
      if (scenes::glossary_words::folded(other) == scenes::glossary_words::folded(name)) {
        return &term;
      }
    }
  }
  return nullptr;
}

int sentences(const std::string& text) {
  int count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool ends =
        text[i] == '.' && (i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\n');
    count += ends;
  }
  return count;
}

std::vector<std::string> ids(const std::vector<const Term*>& terms) {
  std::vector<std::string> all;
  for (const Term* term : terms) all.push_back(term->id);
  return all;
}

std::vector<std::string> found_in(std::string_view text, std::string_view lesson = {}) {
  std::vector<std::string> all;
  for (const auto& mention : scenes::terms_in(text, lesson)) {
    all.push_back(mention.term->id + ": " + std::string(text.substr(mention.begin, mention.size)));
  }
  return all;
}

using Strings = std::vector<std::string>;

std::set<std::string> lesson_names() {
  std::set<std::string> names;
  for (const auto& scene : scenes::make_scenes()) names.emplace(scene->lesson());
  return names;
}

}  // namespace

TEST_CASE("the glossary has the terms of the field", "[scenes_shared]") {
  for (const char* wanted : kWanted) {
    CAPTURE(wanted);
    CHECK(named(wanted) != nullptr);
  }
}

TEST_CASE("a term is said in two to five sentences, the first of which stands alone",
          "[scenes_shared]") {
  for (const Term& term : scenes::glossary()) {
    CAPTURE(term.name, term.text, term.first_sentence);
    CHECK(sentences(term.text) >= 2);
    CHECK(sentences(term.text) <= 5);
    CHECK(term.first_sentence.size() < 160);
    CHECK(term.first_sentence.find_first_of("[]`*\n") == std::string::npos);
    CHECK(term.first_sentence.ends_with("."));
    CHECK(term.text.find("<!--") == std::string::npos);
    CHECK(term.text.find("Seen in") == std::string::npos);
  }
}

TEST_CASE("a first sentence keeps the code in it, and of links the label", "[scenes_shared]") {
  CHECK(scenes::first_sentence("Each is\n`C[i][j] = a * b`, *with* [a tile](term:tile). Next.") ==
        "Each is C[i][j] = a * b, with a tile.");
  CHECK(scenes::first_sentence("[open") == "[open");
}

TEST_CASE("each link of the glossary leads somewhere", "[scenes_shared]") {
  const std::set<std::string> lessons = lesson_names();
  const auto is_lesson = [&](const std::string& name) { return lessons.contains(name); };
  std::set<std::string> shown;
  for (const Term& term : scenes::glossary()) {
    CAPTURE(term.name);
    for (const std::string& id : term.related) {
      CAPTURE(id);
      CHECK(scenes::term_of(id) != nullptr);
      CHECK(id != term.id);
    }
    for (const std::string& lesson : term.lessons) {
      CAPTURE(lesson);
      CHECK(is_lesson(lesson));
      shown.insert(lesson);
    }
    for (const std::string& lesson : term.only_in) CHECK(is_lesson(lesson));
  }
  CHECK(shown == lessons);
}

TEST_CASE("terms stand in the order of the alphabet, each once", "[scenes_shared]") {
  const auto& all = scenes::glossary();
  std::set<std::string> names, ids;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].name);
    if (i > 0) {
      CHECK(scenes::glossary_words::folded(all[i - 1].name) <
            scenes::glossary_words::folded(all[i].name));
    }
    CHECK(ids.insert(all[i].id).second);
    for (const std::string& name : names_of(all[i])) {
      CAPTURE(name);
      CHECK(names.insert(scenes::glossary_words::folded(name)).second);
    }
  }
}

TEST_CASE("terms are found by name, alias, part and text", "[scenes_shared]") {
  using scenes::find_terms;
  CHECK(find_terms("shared memory").at(0)->id == "shared-memory");
  CHECK(find_terms("SM").at(0)->id == "multiprocessor");
  CHECK(find_terms("streaming multi").at(0)->id == "multiprocessor");
  // No letter, though it begins as one does: as if nothing were asked for.
  CHECK(find_terms("\xC3\xFF").size() == find_terms("").size());
  CHECK(find_terms("CTA").at(0)->id == "block");
  CHECK(find_terms("zero").at(0)->id == "fsdp");
  CHECK(find_terms("bank").at(0)->id == "bank");
  CHECK(find_terms("bank").at(1)->id == "bank-conflict");
  CHECK(find_terms("memory bound").at(0)->id == "memory-bound");
  CHECK(find_terms("MEMORY-BOUND").at(0)->id == "memory-bound");
  CHECK(find_terms("Röpe").at(0)->id == "rope");
  CHECK(find_terms("moe").at(0)->id == "mixture-of-experts");
  // A word inside the name, after names that begin with it.
  const Strings scheduler = ids(find_terms("conflict"));
  REQUIRE(!scheduler.empty());
  CHECK(scheduler[0] == "bank-conflict");
  // Only the text says it.
  CHECK(ids(find_terms("llama.cpp")) == Strings{"gguf"});
  CHECK(find_terms("no such word").empty());
  CHECK(find_terms("").size() == scenes::glossary().size());
}

TEST_CASE("names come before words inside names, and these before texts", "[scenes_shared]") {
  const Strings found = ids(scenes::find_terms("tensor"));
  const auto place = [&](const char* id) {
    return std::find(found.begin(), found.end(), id) - found.begin();
  };
  CHECK(place("tensor-core") < place("tma"));    // alias: tensor memory accelerator
  CHECK(place("tma") < place("sub-partition"));  // text
  CHECK(place("sub-partition") < std::ssize(found));
}

TEST_CASE("terms are seen in a text: whole words, the longest, each once", "[scenes_shared]") {
  CHECK(found_in("A warp asks for sectors; each warp waits.") ==
        Strings{"warp: warp", "sector: sectors"});
  CHECK(found_in("Bank conflicts in shared\nmemory") ==
        Strings{"bank-conflict: Bank conflicts", "shared-memory: shared\nmemory"});
  CHECK(found_in("memory bound, memory-bound") == Strings{"memory-bound: memory bound"});
  CHECK(found_in("cp.async and torch.compile") ==
        Strings{"asynchronous-copy: cp.async", "torch-compile: torch.compile"});
  CHECK(found_in("shared. Memory") == Strings{});
  CHECK(found_in("warped, warping, unwarp, warp-wide, half-warp") == Strings{});
  CHECK(found_in("the expert's tile") == Strings{"expert: expert", "tile: tile"});
  CHECK(found_in("ein Wärp") == Strings{"warp: Wärp"});
  // What is written with capitals inside is another word without them.
  CHECK(found_in("zero of a rope, FLOPs, a kv cache") == Strings{"flop: FLOPs"});
  CHECK(found_in("ZeRO, RoPE, KV caches") ==
        Strings{"fsdp: ZeRO", "rope: RoPE", "kv-cache: KV caches"});
}

TEST_CASE("headings, code, links and comments are no running text", "[scenes_shared]") {
  CHECK(found_in("## The warp\n`warp` and [warp](term:warp) <!-- warp -->\n```\nwarp\n```\n") ==
        Strings{});
  CHECK(found_in("## The warp\nA `lane` of a warp") == Strings{"warp: warp"});
  // What is never closed hides nothing.
  CHECK(found_in("a ` warp <!-- lane [tile") == Strings{"warp: warp", "lane: lane", "tile: tile"});
}

TEST_CASE("an everyday word is a term only where it means one", "[scenes_shared]") {
  CHECK(found_in("the key and its value") == Strings{});
  CHECK(found_in("the key and its value", "tiling") == Strings{});
  CHECK(found_in("the key and its value", "online-softmax") == Strings{"key: key", "value: value"});
}

TEST_CASE("a damaged glossary says what is wrong", "[scenes_shared]") {
  const auto refused = [](const char* text, const char* why) {
    const std::string said = tests::error_of([&] { scenes::parse_glossary(text); });
    CAPTURE(said);
    CHECK(tests::contains(said, why));
  };
  refused("## A\n## B\nText.\n", "says nothing about 'A'");
  refused("## A\n<!-- also: b -->\nText.\n## B\nText.\n", "'B' twice: under A and B");
  refused("## A\nSee [b](term:b).\n", "'A' links to a term that is not there: b");
  CHECK(scenes::parse_glossary("").empty());
  CHECK(scenes::parse_glossary("# Glossary\n\nWords before the first term.\n").empty());
}

TEST_CASE("the lessons' texts speak in terms of the glossary", "[scenes_shared]") {
  for (const lab::Asset& asset : lab::assets()) {
    if (!asset.path.starts_with("assets/lessons/")) continue;
    std::string lesson(asset.path.substr(asset.path.rfind('/') + 1));
    lesson.resize(lesson.size() - 3);
    CAPTURE(lesson);
    const auto mentions = scenes::terms_in(asset.text, lesson);
    CHECK(mentions.size() >= 12);
    std::set<const Term*> seen;
    std::size_t shown = 0, last = 0;
    for (const scenes::TermMention& mention : mentions) {
      const std::string_view text = asset.text.substr(mention.begin, mention.size);
      CAPTURE(mention.term->name, std::string(text));
      CHECK(seen.insert(mention.term).second);  // each once, in the order of the text
      CHECK((seen.size() == 1 || mention.begin > last));
      CHECK(text.find_first_of("`[]#|") == text.npos);
      last = mention.begin;
      const auto& lessons = mention.term->lessons;
      shown += static_cast<std::size_t>(std::count(lessons.begin(), lessons.end(), lesson));
    }
    CHECK(shown >= 6);  // some of the terms that point to this lesson are in its text
  }
}

// How an edited source is written another way for the emulation.

#include "kernels/base/workbench/cuda_words.hpp"

#include <algorithm>

#include "kernels/base/lab/assets.hpp"
#include "tests/catch.hpp"

namespace tilestep::workbench {
namespace {

using tests::contains;

TEST_CASE("an extern shared array becomes a pointer to dynamic shared memory", "[workbench]") {
  struct Row {
    std::string_view written, read;
  };
  for (const Row& row : {
           Row{"void f() { extern __shared__ float s[]; }",
               "void f() {                   float*s=::simt_dynamic{}; }"},
           Row{"void f() { extern __shared__ __align__(16) unsigned char raw[]; }",
               "void f() {                                 unsigned char*raw=::simt_dynamic{}; }"},
           Row{"void f() { alignas(4) extern __shared__ alignas(16) T a[], b[]; }",
               "void f() { alignas(4)                               "
               "T*a=::simt_dynamic{},*b=::simt_dynamic{}; }"},
           Row{"void f() { __shared__ extern volatile int v[][16]; }",
               "void f() {                   volatile int(*v)[16]=::simt_dynamic{}; }"},
           Row{"void f() { extern __shared__ float4\n  far[]; }",
               "void f() {                   float4\n *far=::simt_dynamic{}; }"},
           Row{"namespace a {\n#define B {\ninline namespace c { extern __shared__ float s[]; } }",
               "namespace a {\n#define B {\ninline namespace c { ::simt_dynamic_of<            "
               "float > s; } }"},
           Row{"struct S { void f() { extern __shared__ int s[]; } };",
               "struct S { void f() {                   int*s=::simt_dynamic{}; } };"},
       }) {
    CHECK(for_emulation(row.written) == row.read);
  }
}

TEST_CASE("a launch becomes a call, and every line stays where it is", "[workbench]") {
  const auto call = [](const std::string& callee, const std::string& shape,
                       const std::string& arguments) {
    return "::simt_kernel(SIMT_NAME(" + callee + "), [=](auto... simt_a) { " + callee +
           "(simt_a...); }).at(SIMT_HERE, " + shape + ")(" + arguments + ")";
  };
  struct Row {
    std::string written, read;
  };
  for (const Row& row : {
           Row{"k<<<1, 2>>>(a, b);", call("k", "1, 2", "a, b") + ";"},
           Row{"space::k<float, (3 > 2)><<<dim3(1, 2), 256, 0, s>>>(a, NULL);",
               call("space::k<float, (3 > 2)>", "dim3(1, 2), 256, 0, s", "a, nullptr") + ";"},
           Row{"if (x) ::k<<<n / 2, f<3>(4)>>>(); else k<<<1, 8 >> 1>>>();",
               "if (x) " + call("::k", "n / 2, f<3>(4)", "") + "; else " +
                   call("k", "1, 8 >> 1", "") + ";"},
           Row{"t[i]<<<1, 1>>>(g << 3);", call("t[i]", "1, 1", "g << 3") + ";"},
           Row{"(a ? k : l)<<<1, 2>>>();", call("(a ? k : l)", "1, 2", "") + ";"},
           Row{"of.k<<<\n1,\n2>>>(\na);", call("of.k", "\n1,\n2", "\na") + ";"},
           Row{"return get(1)<<<1, 2>>>(), 0;", "return " + call("get(1)", "1, 2", "") + ", 0;"},
           Row{"#define RUN(k, ...) k<<<g, b>>>(__VA_ARGS__)",
               "#define RUN(k, ...) " + call("k", "g, b", "__VA_ARGS__")},
           Row{"cudaMalloc((void**)&p->next[2], n * f(a, b));",
               "cudaMalloc(::simt_name{\"next\"}, (void**)&p->next[2], n * f(a, b));"},
           Row{"int main() { auto main = 1; }",
               "int __attribute__((visibility(\"default\"))) main() { auto main = 1; }"},
           Row{"// k<<<1, 2>>>(a)\n\"k<<<1, 2>>>(a)\" /* k<<<1,2>>>() */ R\"(k<<<1,2>>>(a))\" a << "
               "b << c >> d;",
               "// k<<<1, 2>>>(a)\n\"k<<<1, 2>>>(a)\" /* k<<<1,2>>>() */ R\"(k<<<1,2>>>(a))\" a << "
               "b << c >> d;"},
           Row{"<<<1, 2>>>(a); k<<<1; k<<<>>>;", "<<<1, 2>>>(a); k<<<1; k<<<>>>;"},
       }) {
    CHECK(for_emulation(row.written, Written::program) == row.read);
  }
  CHECK(contains(for_emulation("k<<<1, 2>>>(a);"), "a kernel cannot launch another one here"));
  CHECK(!contains(for_emulation("cudaMalloc(&p, 4);", Written::program), "GCC error"));
}

TEST_CASE("what is no code and no shared array stays as it is", "[workbench]") {
  for (const std::string_view text : {
           "// extern __shared__ float s[]; asm(\"x\")\\\n reinterpret_cast<a>(b)\n",
           "/* reinterpret_cast\n */ \"reinterpret_cast \\\" tex2D(\" 'a' '\\'' '\"' u8\"asm(\"",
           "R\"x(reinterpret_cast )\" asm(\"a\"))x\" LR\"(__shfl(1))\"",
           "extern \"C\" int f(int a[]); extern float plain[]; extern int s;",
           "int n = 1'000'000; a.reinterpret_cast_ = 0x1'F; __attribute__((__noinline__)) void "
           "f();",
           "asm volatile(\"\" ::: \"memory\"); a << b; a >> b; int tex2D = 3; group.any(1);",
           "#include <cuda_fp16.h>\n#include \"kernels/base/simt/simt.hpp\"\n#error asm(\"x\")\n",
           "extern __shared__",
           "extern __shared__[]",
           "extern __shared__ (",
           "\"",
           "R\"(",
           "#include",
           "/*",
           "extern __shared__ {",
           "texture < 3",
       }) {
    CHECK(for_emulation(text) == text);
  }
}

TEST_CASE("words of libraries get others of the same length", "[workbench]") {
  CHECK(for_emulation("#define A(p) \\\n reinterpret_cast<float4*>(p)") ==
        "#define A(p) \\\n simt_reinterpret<float4*>(p)");
  CHECK(for_emulation("__device__ __noinline__ f();") == "__device__ SIMT_OUTLINE f();");
}

TEST_CASE("what cannot be emulated is an error in its line, that says what to write",
          "[workbench]") {
  struct Row {
    std::string_view written, said;
  };
  for (const Row& row : {
           Row{"x = __shfl(x, 1)", "__shfl: it has no mask"},
           Row{"x = __any(x)", "write the word with _sync"},
           Row{"tex1Dfetch<float>(t, 1)", "with __ldg(&array[i])"},
           Row{"cudaTextureObject_t t;", "textures and"},
           Row{"surf2Dwrite(1, s, 0, 0)", "surfaces are not emulated"},
           Row{"cudaMallocAsync(&p, 4)", "only kernels"},
           Row{"kernel<<<1, 32>>>(a)", "<<< >>>: a kernel cannot launch"},
           Row{"asm volatile(\"bar.sync 0;\")", "asm: PTX is not emulated"},
           Row{"auto g = cg::coalesced_threads();", "tiled_partition<N>"},
           Row{"if (__isShared(p))", "memory space"},
           Row{"#include <mma.h>\n", "simt::mma_m16n8k16_bf16"},
           Row{"  # include <cub/block/block_reduce.cuh>", "CUB is not emulated"},
       }) {
    const std::string read = for_emulation(row.written);
    INFO(read);
    CHECK(contains(read, "GCC error"));
    CHECK(contains(read, row.said));
    CHECK(std::count(read.begin(), read.end(), '\n') ==
          std::count(row.written.begin(), row.written.end(), '\n'));
  }
}

TEST_CASE("no source of ours holds what is refused where it is compiled for the emulation",
          "[workbench]") {
  // Two keep PTX for a GPU, and a launch file calls the runtime.
  for (const lab::Asset& asset : lab::assets()) {
    if (!asset.path.ends_with(".cu") || asset.path.ends_with("launch.cu")) continue;
    const std::string read = for_emulation(asset.text);
    INFO(asset.path);
    CHECK(std::count(read.begin(), read.end(), '\n') ==
          std::count(asset.text.begin(), asset.text.end(), '\n'));
    CHECK((!contains(read, "GCC error") || contains(asset.text, "#if defined(__CUDA")));
  }
}

}  // namespace
}  // namespace tilestep::workbench

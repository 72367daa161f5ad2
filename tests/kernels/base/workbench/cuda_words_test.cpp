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
  for (const char* header :
       {"<cublas_v2.h>", "<curand_kernel.h>", "<mma.h>", "<cooperative_groups/scan.h>"}) {
    const std::string text = std::string("#include ") + header + "\n";
    CHECK(for_emulation(text, Written::program) == text);
  }
  CHECK(contains(for_emulation("cublasGemmEx(h);", Written::program), "use cublasSgemm"));
}

TEST_CASE("inline PTX of a program becomes calls with its operands", "[workbench]") {
  const auto call = [](const std::string& parameters, const std::string& body) {
    return "[](" + parameters + ") __attribute__((always_inline)) { " + body + "}";
  };
  const std::string one = "auto&& simt_0";
  struct Row {
    std::string written, read;
  };
  for (const Row& row : {
           Row{R"(asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));)",
               call(one, "simt_0 = ::tilestep::simt::ptx::laneid(); ") + " (  (lane));"},
           Row{R"(asm("bar.sync 0;" ::: "memory");)", call("", "__syncthreads(); ") + "(  );"},
           Row{"__asm__ __volatile__(\"cp.async.wait_group %0;\\n\"\n:\n: \"n\"(N)\n);",
               call(one, "::tilestep::simt::ptx::cp_async_wait(simt_0); ") + " (\n\n (N)\n);"},
           Row{"#define EX2(y, x) asm(\"ex2.approx\" \\\n \".f32 %0, %1;\" : \"=f\"(y) \\\n : "
               "\"f\"(x))",
               "#define EX2(y, x) " +
                   call("auto&& simt_0, auto&& simt_1",
                        "simt_0 = ::tilestep::simt::ptx::ex2(simt_1); ") +
                   "( \\\n   (y) \\\n  ,(x))"},
       }) {
    CHECK(for_emulation(row.written, Written::program) == row.read);
  }
  struct Refused {
    std::string_view written, said;
  };
  for (const Refused& row : {
           Refused{R"(asm("wgmma.fence.sync.aligned;");)",
                   "the instruction wgmma.fence.sync.aligned "},
           Refused{R"(asm("mov.u32 %0, %%pm0;" : "=r"(x));)", "the instruction mov.u32 "},
           Refused{R"(asm("mov.u32 %0, %1;" : "=r"(x));)", "the instruction mov.u32 "},
           Refused{R"(asm("bar.sync 1;");)", "the instruction bar.sync "},
           Refused{R"(asm("bar.sync 0, 64;");)", "the instruction bar.sync "},
           Refused{R"(asm("@p bar.sync 0;");)", "the instruction @p"},
           Refused{R"(asm("{ bar.sync 0;");)", "GCC error"},
           Refused{
               R"(asm("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0}, [%1];" : "=r"(a) : "r"(b));)",
               "the instruction ldmatrix.sync.aligned.m8n8.x4.shared.b16 "},
           Refused{R"(asm("cp.async.ca.shared.global [%0], %1, 4;" :: "r"(a), "l"(b));)",
                   "the instruction cp.async.ca.shared.global "},
           Refused{R"(asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0};");)",
                   "the instruction mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "},
           Refused{R"(asm("mov.u32 %0, %%laneid;" : [lane] "=r"(x));)", "in strings with operands"},
           Refused{"#define A(x) asm(\"mov \" #x)\n", "in strings with operands"},
       }) {
    const std::string read = for_emulation(row.written, Written::program);
    INFO(read);
    CHECK(contains(read, "GCC error"));
    CHECK(contains(read, row.said));
    CHECK(std::count(read.begin(), read.end(), '\n') ==
          std::count(row.written.begin(), row.written.end(), '\n'));
  }
  // An operand is code, and comments and strings are none.
  for (const std::string_view text :
       {"// asm(\"bar.sync 0;\")\n", "/* asm(\"bar.sync 0;\") */",
        "f(\"asm(\\\"bar.sync 0;\\\")\")", "R\"(asm(\"bar.sync 0;\");)\"",
        "asm volatile(\"\" ::: \"memory\");", "int asm_ = 1;", "__cvta_generic_to_shared(p);"}) {
    CHECK(for_emulation(text, Written::program) == text);
  }
  CHECK(
      contains(for_emulation(
                   R"(asm("ex2.approx.f32 %0, %1;" : "=f"(reinterpret_cast<float&>(y)) : "f"(x));)",
                   Written::program),
               "(simt_reinterpret<float&>(y))"));
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
           Row{"auto g = cg::labeled_partition(tile, 1);", "tiled_partition<N>"},
           Row{"if (__isShared(p))", "memory space"},
           Row{"__cvta_generic_to_shared(p)", "memory space"},
           Row{"cublasGemmEx(h)", "has gemm, gemv"},
           Row{"#include <cublas_v2.h>\n", "CUDA's libraries are not emulated"},
           Row{"#include <curand.h>\n", "in a kernel with curand_kernel.h"},
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
    const bool program = asset.path.starts_with("assets/exercises/");
    const std::string read =
        for_emulation(asset.text, program ? Written::program : Written::kernels);
    INFO(asset.path);
    CHECK(std::count(read.begin(), read.end(), '\n') ==
          std::count(asset.text.begin(), asset.text.end(), '\n'));
    CHECK((!contains(read, "GCC error") || contains(asset.text, "#if defined(__CUDA")));
  }
}

}  // namespace
}  // namespace tilestep::workbench

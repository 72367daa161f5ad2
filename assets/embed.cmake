# cmake -DROOT=DIR -DFILES="a;b" -DOUT=FILE.cpp -P embed.cmake
# Writes ${OUT}: the ${FILES} below ${ROOT} as data, found again through lab::asset(). The assembler takes the
# files as they are, which is much faster than to compile them as numbers.
set(rows "")
set(bodies "")
set(index 0)
foreach(file IN LISTS FILES)
  string(APPEND bodies "EMBED(${index}, \"${ROOT}/${file}\")\n")
  string(APPEND rows "    {\"${file}\", {tilestep_asset_${index}, tilestep_asset_end_${index}}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT} "// Made by assets/embed.cmake.
#include \"kernels/base/lab/assets.hpp\"

#define EMBED(number, file)                                        \\
  extern \"C\" const char tilestep_asset_##number[];                 \\
  extern \"C\" const char tilestep_asset_end_##number[];             \\
  __asm__(\".pushsection .rodata\\n\"                                 \\
          \".hidden tilestep_asset_\" #number \"\\n\"                   \\
          \".global tilestep_asset_\" #number \"\\n\"                   \\
          \"tilestep_asset_\" #number \":\\n\"                          \\
          \".incbin \\\"\" file \"\\\"\\n\"                                \\
          \".hidden tilestep_asset_end_\" #number \"\\n\"               \\
          \".global tilestep_asset_end_\" #number \"\\n\"               \\
          \"tilestep_asset_end_\" #number \":\\n\"                      \\
          \".byte 0\\n\"                                              \\
          \".popsection\\n\");
${bodies}
namespace tilestep::lab {
namespace {
const Asset kAssets[] = {
${rows}};
}  // namespace
std::span<const Asset> assets() { return kAssets; }
}  // namespace tilestep::lab
")

# The window's fonts travel inside the program, so that it looks the same on every machine. Their
# files are those of the system that it is built on (Debian: fonts-inter, fonts-jetbrains-mono).
# TILESTEP_FONT_FOLDER names a folder to look in first.
set(TILESTEP_FONT_FOLDER "" CACHE PATH "Folder of the Inter and JetBrains Mono font files")

# Sets ${variable} to the path of a font file; the configuration fails without it.
function(tilestep_font variable name)
  find_file(${variable} NAMES ${name}.otf ${name}.ttf NO_CACHE
    HINTS ${TILESTEP_FONT_FOLDER}
    PATHS /usr/share/fonts /usr/local/share/fonts
    PATH_SUFFIXES opentype/inter truetype/jetbrains-mono inter jetbrains-mono rsms-inter-fonts
                  jetbrains-mono-fonts TTF OTF)
  if(NOT ${variable})
    message(FATAL_ERROR "The font ${name} was not found. Install the packages fonts-inter and "
                        "fonts-jetbrains-mono, or set TILESTEP_FONT_FOLDER to the folder of its file.")
  endif()
  set(${variable} ${${variable}} PARENT_SCOPE)
endfunction()

tilestep_font(inter_regular Inter-Regular)
tilestep_font(inter_semibold Inter-SemiBold)
tilestep_font(inter_title InterDisplay-SemiBold)
tilestep_font(mono JetBrainsMono-Regular)

# The assembler copies the files in: a megabyte as a C++ array would take the compiler long.
set(font_data ${CMAKE_CURRENT_BINARY_DIR}/font_data.cpp)
set(assembly "")
foreach(font inter_regular inter_semibold inter_title mono)
  string(APPEND assembly "asm(R\"(
    .pushsection .rodata
    .balign 16
    .global tilestep_${font}
    tilestep_${font}: .incbin \"${${font}}\"
    .global tilestep_${font}_end
    tilestep_${font}_end: .byte 0
    .popsection
)\");\n")
endforeach()
file(CONFIGURE OUTPUT ${font_data} CONTENT "// Made by scenes/ui/fonts.cmake.\n${assembly}" @ONLY)
set_source_files_properties(${font_data} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
  OBJECT_DEPENDS "${inter_regular};${inter_semibold};${inter_title};${mono}")
target_sources(tilestep_ui PRIVATE ${font_data})

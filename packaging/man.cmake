# Writes ${OUT}: the man page of ${PROGRAM}, made from what `--help` of it and its commands says.

# A fixed-width block of roff that shows `text` as it is.
function(roff_block variable text)
  string(REPLACE "\\" "\\e" text "${text}")
  string(REPLACE "-" "\\-" text "${text}")
  string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" text "${text}")
  set(${variable} ".nf\n${text}\n.fi\n" PARENT_SCOPE)
endfunction()

function(help_of variable)
  execute_process(COMMAND ${PROGRAM} ${ARGN} --help OUTPUT_VARIABLE text
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

help_of(help)
roff_block(block "${help}")
set(page ".TH TILESTEP 1 \"\" \"tilestep ${VERSION}\" \"User Commands\"
.SH NAME
tilestep \\- teaches how GPU kernels for language models work
.SH SYNOPSIS
.B tilestep
[\\fICOMMAND\\fR] [\\fIOPTIONS\\fR]
.SH DESCRIPTION
${block}.SH COMMANDS
")
string(REGEX REPLACE ".*\nSubcommands:\n" "" commands "${help}")
string(REGEX MATCHALL "(^|\n)  [a-z][a-z-]*" commands "${commands}")
foreach(command IN LISTS commands)
  string(STRIP "${command}" command)
  help_of(help ${command})
  roff_block(block "${help}")
  string(APPEND page ".SS tilestep ${command}\n${block}")
endforeach()
file(WRITE ${OUT} "${page}")

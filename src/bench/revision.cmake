# Writes belfry_version.hpp from git's description of the source tree, or "unknown" without git.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12
                OUTPUT_VARIABLE REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR REVISION STREQUAL "")
  set(REVISION "unknown")
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)

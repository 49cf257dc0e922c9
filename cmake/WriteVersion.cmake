# Run by the build (cmake -P): writes version.hpp, and touches it only where something changed.
# In: SOURCE_DIR, TEMPLATE, OUTPUT, BELFRY_VERSION.
set(BELFRY_REVISION "unknown")
find_program(git NAMES git)
if(git AND EXISTS ${SOURCE_DIR}/.git)
  # safe.directory: the checkout may belong to another user (root in a container).
  set(ask ${git} -c safe.directory=* -C ${SOURCE_DIR})
  execute_process(COMMAND ${ask} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    execute_process(COMMAND ${ask} status --porcelain --untracked-files=no
      OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(changes)
      string(APPEND revision "-dirty")
    endif()
    set(BELFRY_REVISION "${revision}")
  endif()
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)

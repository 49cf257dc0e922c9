# Installs the build into a folder of its own, builds the consumers against it and runs them: one uses formats and
# the host library, the other the device API, under the installed software NIC.
# Guards against an exported target that names a file, a flag or a library of the build tree.
file(REMOVE_RECURSE ${WORK})
set(ENV{DESTDIR} "")
foreach(command IN ITEMS
    "${CMAKE_COMMAND};--install;${BUILD};--prefix;${WORK}/prefix"
    "${CMAKE_COMMAND};-S;${SOURCE};-B;${WORK}/build;-G;${GENERATOR};-DCMAKE_PREFIX_PATH=${WORK}/prefix;-DCMAKE_CXX_COMPILER=${COMPILER};-DCMAKE_CUDA_COMPILER=${CUDA_COMPILER}"
    "${CMAKE_COMMAND};--build;${WORK}/build"
    "${WORK}/build/consumer"
    "${WORK}/prefix/bin/belfry;softnic;--;${WORK}/build/put_signal")
  execute_process(COMMAND ${command} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
if(EXISTS ${WORK}/build/put_signal_gpu AND EXISTS /dev/nvidia0)
  set(ENV{CUDA_MODULE_LOADING} EAGER)
  execute_process(COMMAND ${WORK}/prefix/bin/belfry softnic -- ${WORK}/build/put_signal_gpu COMMAND_ERROR_IS_FATAL ANY)
endif()

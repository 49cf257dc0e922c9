# `cmake --install`: the headers, the CMake package that finds them (find_package(belfry), targets
# belfry::headers, belfry::host, belfry::host_cuda, belfry::proxy and belfry::lanes), and those of the programs and
# libraries that this configuration builds.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/belfry DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${BELFRY_GENERATED_INCLUDE}/belfry/version.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/belfry)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(belfry_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/belfry)
install(TARGETS belfry_headers EXPORT belfry_targets)
set(BELFRY_HAVE_HOST 0)
if(TARGET belfry_host)
  set(BELFRY_HAVE_HOST 1)
  install(TARGETS belfry_host EXPORT belfry_targets)
endif()
set(BELFRY_HAVE_HOST_CUDA 0)
if(TARGET belfry_host_cuda)
  set(BELFRY_HAVE_HOST_CUDA 1)
  install(TARGETS belfry_host_cuda EXPORT belfry_targets)
endif()
if(TARGET belfry_proxy)
  install(TARGETS belfry_proxy EXPORT belfry_targets)
endif()
set(BELFRY_HAVE_LANES 0)
if(TARGET belfry_lanes)
  set(BELFRY_HAVE_LANES 1)
  install(TARGETS belfry_lanes EXPORT belfry_targets)
endif()
install(EXPORT belfry_targets NAMESPACE belfry:: DESTINATION ${belfry_package_dir} FILE belfryTargets.cmake)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/belfryConfig.cmake.in
  ${PROJECT_BINARY_DIR}/belfryConfig.cmake INSTALL_DESTINATION ${belfry_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/belfryConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/belfryConfig.cmake ${PROJECT_BINARY_DIR}/belfryConfigVersion.cmake
  DESTINATION ${belfry_package_dir})

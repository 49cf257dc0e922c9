# `cmake --install`: the headers, the CMake package that finds them (find_package(belfry), target
# belfry::headers), and those of the programs and libraries that this configuration builds.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/belfry DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${BELFRY_GENERATED_INCLUDE}/belfry/version.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/belfry)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(belfry_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/belfry)
install(TARGETS belfry_headers EXPORT belfry_targets)
install(EXPORT belfry_targets NAMESPACE belfry:: DESTINATION ${belfry_package_dir} FILE belfryTargets.cmake)
file(WRITE ${PROJECT_BINARY_DIR}/belfryConfig.cmake
  "include(\"\${CMAKE_CURRENT_LIST_DIR}/belfryTargets.cmake\")\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/belfryConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/belfryConfig.cmake ${PROJECT_BINARY_DIR}/belfryConfigVersion.cmake
  DESTINATION ${belfry_package_dir})

# belfry/version.hpp, in the build tree: the project's version and the git revision at build time.
set(BELFRY_GENERATED_INCLUDE ${PROJECT_BINARY_DIR}/include)
add_custom_target(belfry_version_header
  BYPRODUCTS ${BELFRY_GENERATED_INCLUDE}/belfry/version.hpp
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DBELFRY_VERSION=${PROJECT_VERSION}
    -DTEMPLATE=${CMAKE_CURRENT_LIST_DIR}/version.hpp.in
    -DOUTPUT=${BELFRY_GENERATED_INCLUDE}/belfry/version.hpp -P ${CMAKE_CURRENT_LIST_DIR}/WriteVersion.cmake
  COMMENT "Noting version and git revision")

target_include_directories(belfry_headers INTERFACE $<BUILD_INTERFACE:${BELFRY_GENERATED_INCLUDE}>)
add_dependencies(belfry_headers belfry_version_header)

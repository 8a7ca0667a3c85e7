# SPDX-License-Identifier: Apache-2.0
# Headers, both libraries, the tool, its manual pages, a pkg-config file and a CMake package.

include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/keel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h")
install(TARGETS keel_shared keel_static EXPORT KeelTargets)
set_target_properties(keel_tool PROPERTIES EXPORT_NAME tool)
install(TARGETS keel_tool EXPORT KeelTargets)
if(TARGET keel_trace AND NOT KEEL_SANITIZE)
    install(TARGETS keel_trace DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Keel)
set(version_file ${PROJECT_BINARY_DIR}/KeelConfigVersion.cmake)
write_basic_package_version_file(${version_file} COMPATIBILITY SameMinorVersion)
install(EXPORT KeelTargets NAMESPACE Keel:: DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/cmake/KeelConfig.cmake ${version_file}
    ${PROJECT_SOURCE_DIR}/cmake/KeelKernels.cmake ${PROJECT_SOURCE_DIR}/cmake/embed.c.in
    DESTINATION ${package_dir})

list(TRANSFORM KEEL_LIBRARIES PREPEND -l OUTPUT_VARIABLE private_libs)
list(JOIN private_libs " " KEEL_PRIVATE_LIBS)
file(RELATIVE_PATH KEEL_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/keel.pc.in ${PROJECT_BINARY_DIR}/keel.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/keel.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

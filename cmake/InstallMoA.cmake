# The package MoA: what `cmake --install` puts beside the targets that AddMoA.cmake
# names. Only the headers under include/ are there; the dialects and the passes are
# in the libraries, but no header of theirs is a promise.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/MoA)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ TYPE INCLUDE COMPONENT Compiler
        FILES_MATCHING PATTERN "*.h")
# The component C has its own headers, so that it can be installed alone.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/moa-c TYPE INCLUDE COMPONENT C FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/include/moa/DLPack.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/moa COMPONENT C)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/MoAConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/MoAConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/MoAConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
foreach(component Compiler C)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE TYPE DOC COMPONENT ${component})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/MoAConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/MoAConfigVersion.cmake
          DESTINATION ${package_dir} COMPONENT ${component})
endforeach()
foreach(component Compiler C Tools)
  install(EXPORT MoA${component}Targets NAMESPACE MoA:: DESTINATION ${package_dir} COMPONENT ${component})
endforeach()

# The project's own wrappers: every library links MLIR and LLVM through their shared objects only,
# because an exported static MLIR archive beside libMLIR.so would register every dialect twice.

# moa_install_target(NAME COMPONENT): into the package, whose components are Compiler and Tools.
function(moa_install_target name component)
  if(MOA_INSTALL)
    install(TARGETS ${name} EXPORT MoA${component}Targets COMPONENT ${component})
  endif()
endfunction()

# add_moa_library(NAME SOURCES ... [DEPENDS ...] [LINK ...])
function(add_moa_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  # fmt is used by the sources alone: whoever links an installed library needs none.
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM $<BUILD_INTERFACE:fmt::fmt-header-only>)
  # MoAFrontend is MoA::Frontend, here and in the installed package.
  string(SUBSTRING ${name} 3 -1 exported)
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${exported})
  add_library(MoA::${exported} ALIAS ${name})
  moa_install_target(${name} Compiler)
endfunction()

# add_moa_tool(NAME SOURCES ... [LINK ...])
function(add_moa_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  set_target_properties(${name} PROPERTIES
    INSTALL_RPATH "$ORIGIN/../lib;${LLVM_LIBRARY_DIR}"
    BUILD_RPATH "${LLVM_LIBRARY_DIR}")
  moa_install_target(${name} Tools)
endfunction()

# moa_tablegen(TARGET FILE.td OUTPUT GENERATOR-FLAGS ... OUTPUT GENERATOR-FLAGS ...)
# One dialect file: declarations and definitions of its enums, attributes, types and ops.
function(add_moa_dialect target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  get_filename_component(base ${td} NAME_WE)
  string(TOLOWER ${base} dialect)
  mlir_tablegen(${base}Attrs.h.inc -gen-attrdef-decls -attrdefs-dialect=${dialect})
  mlir_tablegen(${base}Attrs.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${dialect})
  mlir_tablegen(${base}Types.h.inc -gen-typedef-decls -typedefs-dialect=${dialect})
  mlir_tablegen(${base}Types.cpp.inc -gen-typedef-defs -typedefs-dialect=${dialect})
  mlir_tablegen(${base}Dialect.h.inc -gen-dialect-decls -dialect=${dialect})
  mlir_tablegen(${base}Dialect.cpp.inc -gen-dialect-defs -dialect=${dialect})
  mlir_tablegen(${base}Ops.h.inc -gen-op-decls -dialect=${dialect})
  mlir_tablegen(${base}Ops.cpp.inc -gen-op-defs -dialect=${dialect})
  # Enumerations stand in a file of their own: the generator writes every enum
  # it sees, those of included files too.
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${base}Enums.td)
    set(LLVM_TARGET_DEFINITIONS ${base}Enums.td)
    mlir_tablegen(${base}Enums.h.inc -gen-enum-decls)
    mlir_tablegen(${base}Enums.cpp.inc -gen-enum-defs)
  endif()
  add_public_tablegen_target(${target})
endfunction()

# The project's own wrappers: every library links MLIR and LLVM through their shared objects only,
# because an exported static MLIR archive beside libMLIR.so would register every dialect twice.
# With MOA_STATIC_LLVM every library links the archives instead, and none is exported: what leaves
# the build is libmoa-c.so, which shows neither LLVM nor the tools' C++ to other libraries.
if(MOA_STATIC_LLVM)
  include(StaticLLVM)
  set(MOA_LLVM_LIBRARIES MoAStaticLLVM)
else()
  set(MOA_LLVM_LIBRARIES MLIR LLVM)
endif()

# moa_install_target(NAME COMPONENT): into the package, whose components are Compiler, C and Tools.
function(moa_install_target name component)
  if(MOA_INSTALL)
    install(TARGETS ${name} EXPORT MoA${component}Targets COMPONENT ${component})
  endif()
endfunction()

# The headers that most sources include, parsed once by Clang, whose precompiled headers hold the
# templates already instantiated. GCC's are slower to load than the headers are to parse.
# moa_use_precompiled(NAME) makes a target with the compiler flags of the libraries use them.
# -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without, which shows a missing #include.
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_library(MoAPrecompiled OBJECT ${CMAKE_CURRENT_LIST_DIR}/Precompiled.cpp)
  target_link_libraries(MoAPrecompiled PRIVATE fmt::fmt-header-only)
  # Without a time stamp the result has the same bytes each time, so that the compiler cache finds what is compiled
  # with it. The result itself is not cached: it names the headers of this tree.
  target_compile_options(MoAPrecompiled PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  set_target_properties(MoAPrecompiled PROPERTIES CXX_COMPILER_LAUNCHER "")
  add_dependencies(MoAPrecompiled MoAMoAIncGen MoADNFIncGen MoAONFIncGen MoADeviceIncGen)
  target_precompile_headers(MoAPrecompiled PRIVATE
    <algorithm> <cmath> <functional> <limits> <map> <memory> <numeric> <optional> <set> <string>
    <vector> <fmt/format.h>
    <dialects/DNF/IR/DNF.h> <dialects/Device/IR/Device.h> <dialects/MoA/IR/MoA.h>
    <dialects/ONF/IR/ONF.h> <lib/Support/SymExpr.h>
    <llvm/ADT/DenseMap.h> <llvm/ADT/MapVector.h> <llvm/ADT/STLExtras.h> <llvm/ADT/SetVector.h>
    <llvm/ADT/StringExtras.h> <llvm/ADT/StringMap.h> <llvm/ADT/StringSet.h>
    <llvm/ADT/StringSwitch.h> <llvm/ADT/TypeSwitch.h> <llvm/Support/CommandLine.h>
    <llvm/Support/Error.h> <llvm/Support/Format.h> <llvm/Support/JSON.h>
    <llvm/Support/MathExtras.h> <llvm/Support/MemoryBuffer.h> <llvm/Support/raw_ostream.h>
    <mlir/Analysis/SliceAnalysis.h> <mlir/Dialect/Arith/IR/Arith.h>
    <mlir/Dialect/LLVMIR/LLVMDialect.h> <mlir/Dialect/Math/IR/Math.h>
    <mlir/Dialect/MemRef/IR/MemRef.h> <mlir/Dialect/SCF/IR/SCF.h> <mlir/IR/BuiltinOps.h>
    <mlir/IR/IRMapping.h> <mlir/IR/Matchers.h> <mlir/IR/PatternMatch.h> <mlir/Parser/Parser.h>
    <mlir/Pass/Pass.h> <mlir/Pass/PassManager.h> <mlir/Transforms/DialectConversion.h>)
endif()

function(moa_use_precompiled name)
  if(TARGET MoAPrecompiled)
    target_precompile_headers(${name} REUSE_FROM MoAPrecompiled)
    get_target_property(type ${name} TYPE)
    if(type STREQUAL EXECUTABLE) # compiled as the headers are, by -fPIC in place of -fPIE
      set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${name} PRIVATE -fPIC)
    endif()
    target_compile_options(${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
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
  target_link_libraries(${name} PUBLIC ${ARG_LINK} ${MOA_LLVM_LIBRARIES} $<BUILD_INTERFACE:fmt::fmt-header-only>)
  moa_use_precompiled(${name})
  # MoAFrontend is MoA::Frontend, here and in the installed package.
  string(SUBSTRING ${name} 3 -1 exported)
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${exported})
  add_library(MoA::${exported} ALIAS ${name})
  moa_install_target(${name} Compiler)
endfunction()

# add_moa_tool(NAME SOURCES ... [LINK ...])
# The sources of moa-x define `extern "C" int moa_x_main(int argc, char **argv)`. With
# MOA_STATIC_LLVM this function is in libmoa-c.so, and the executable only calls it.
function(add_moa_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name}-main OBJECT ${ARG_SOURCES})
  target_link_libraries(${name}-main PRIVATE ${ARG_LINK})
  moa_use_precompiled(${name}-main)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/tools/main.c)
  string(REPLACE "-" "_" function ${name})
  target_compile_definitions(${name} PRIVATE MOA_TOOL_MAIN=${function}_main)
  if(MOA_STATIC_LLVM)
    target_link_libraries(MoAC PRIVATE ${name}-main ${ARG_LINK})
    target_link_libraries(${name} PRIVATE MoAC)
    return()
  endif()
  target_link_libraries(${name} PRIVATE ${name}-main ${ARG_LINK})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  set_target_properties(${name} PROPERTIES
    INSTALL_RPATH "$ORIGIN/../lib;${LLVM_LIBRARY_DIR}"
    BUILD_RPATH "${LLVM_LIBRARY_DIR}")
  moa_install_target(${name} Tools)
endfunction()

# add_moa_program(NAME SOURCES ... [LINK ...])
# A program of the tests, with a main function of its own. It is not installed.
function(add_moa_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  moa_use_precompiled(${name})
  set_target_properties(${name} PROPERTIES BUILD_RPATH "${LLVM_LIBRARY_DIR}")
endfunction()

# moa_tablegen(TARGET FILE.td OUTPUT GENERATOR-FLAGS ... OUTPUT GENERATOR-FLAGS ...)
# One dialect file: declarations and definitions of its enums, attributes, types, interfaces and
# ops.
function(add_moa_dialect target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  get_filename_component(base ${td} NAME_WE)
  string(TOLOWER ${base} dialect)
  mlir_tablegen(${base}Attrs.h.inc -gen-attrdef-decls -attrdefs-dialect=${dialect})
  mlir_tablegen(${base}Types.h.inc -gen-typedef-decls -typedefs-dialect=${dialect})
  mlir_tablegen(${base}Types.cpp.inc -gen-typedef-defs -typedefs-dialect=${dialect})
  mlir_tablegen(${base}Dialect.h.inc -gen-dialect-decls -dialect=${dialect})
  mlir_tablegen(${base}Dialect.cpp.inc -gen-dialect-defs -dialect=${dialect})
  mlir_tablegen(${base}Interfaces.h.inc -gen-op-interface-decls)
  mlir_tablegen(${base}Interfaces.cpp.inc -gen-op-interface-defs)
  mlir_tablegen(${base}Ops.h.inc -gen-op-decls -dialect=${dialect})
  mlir_tablegen(${base}Ops.cpp.inc -gen-op-defs -dialect=${dialect})
  # One file with all attributes, if their declarations are in several.
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${base}Attributes.td)
    set(LLVM_TARGET_DEFINITIONS ${base}Attributes.td)
  endif()
  mlir_tablegen(${base}Attrs.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${dialect})
  # Enumerations stand in a file of their own: the generator writes every enum
  # it sees, those of included files too.
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${base}Enums.td)
    set(LLVM_TARGET_DEFINITIONS ${base}Enums.td)
    mlir_tablegen(${base}Enums.h.inc -gen-enum-decls)
    mlir_tablegen(${base}Enums.cpp.inc -gen-enum-defs)
  endif()
  add_public_tablegen_target(${target})
endfunction()

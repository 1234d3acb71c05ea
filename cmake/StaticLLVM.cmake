# MoAStaticLLVM: every archive of MLIR and LLVM, of which the linker takes what is used.
# The archives' own CMake targets name libLLVM.so, so that their files are linked here.
get_property(mlir_archives GLOBAL PROPERTY MLIR_ALL_LIBS)
set(archives)
foreach(name ${mlir_archives} ${LLVM_AVAILABLE_LIBS})
  if(TARGET ${name} AND name MATCHES "^(MLIR|LLVM)" AND NOT name MATCHES "CAPI|Test")
    get_target_property(type ${name} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND archives $<TARGET_FILE:${name}>)
    endif()
  endif()
endforeach()
if(NOT archives)
  message(FATAL_ERROR "MOA_STATIC_LLVM needs the archives of MLIR and LLVM, which are not in ${LLVM_LIBRARY_DIR}")
endif()

# LLVM's compression. Where there is no archive, the shared library is linked.
find_library(MOA_ZLIB NAMES libz.a z REQUIRED)
find_library(MOA_ZSTD NAMES libzstd.a zstd REQUIRED)

add_library(MoAStaticLLVM INTERFACE)
# The archives need each other in both directions.
string(REPLACE ";" "," archives "${archives}")
target_link_libraries(MoAStaticLLVM INTERFACE
  "$<LINK_GROUP:RESCAN,${archives}>" ${MOA_ZSTD} ${MOA_ZLIB} ${CMAKE_DL_LIBS} m)

# What the Python wheel holds besides Python files: the folder moa/_lib, and the extension module
# moa._native. Both are the component Wheel.
#
# libmoa-c.so exports the C interface and the functions of the tools. All C++ in it is local, so
# that other libraries of the process may hold another LLVM.
set(folder moa/_lib)
set(targets MoAC MoARuntimeShared moa-codegen moa-opt moa-run)
foreach(library MoAC MoARuntimeShared)
  target_sources(${library} PRIVATE ${PROJECT_SOURCE_DIR}/lib/CAPI/Random.c)
endforeach()
# OpenMP serves kernels alone, so that no symbol asks for it.
target_link_options(MoAC PRIVATE -static-libstdc++ -static-libgcc LINKER:--gc-sections LINKER:--no-as-needed)
foreach(tool moa-codegen moa-opt moa-run)
  target_link_options(${tool} PRIVATE -static-libgcc LINKER:--gc-sections)
endforeach()
set_target_properties(${targets} PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS ${targets}
        RUNTIME DESTINATION ${folder} COMPONENT Wheel
        LIBRARY DESTINATION ${folder} COMPONENT Wheel)
file(REAL_PATH ${MOA_OPENMP_LIBRARY} openmp)
install(PROGRAMS ${openmp} DESTINATION ${folder} COMPONENT Wheel)

if(TARGET MoAPython)
  install(TARGETS MoAPython LIBRARY DESTINATION moa COMPONENT Wheel)
elseif(EXISTS ${PROJECT_SOURCE_DIR}/python/CMakeLists.txt)
  message(FATAL_ERROR "the wheel needs the extension module, and that needs the headers of Python (python3-dev)")
endif()

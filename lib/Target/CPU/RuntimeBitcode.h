//===- RuntimeBitcode.h - Runtime.c as LLVM bitcode -------------*- C++ -*-===//
#ifndef MOA_TARGET_CPU_RUNTIMEBITCODE_H
#define MOA_TARGET_CPU_RUNTIMEBITCODE_H

extern const unsigned char kRuntimeBitcode[];
extern const unsigned long kRuntimeBitcodeSize;

#endif // MOA_TARGET_CPU_RUNTIMEBITCODE_H

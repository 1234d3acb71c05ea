//===- RuntimeBitcode.h - the run-time code as LLVM bitcode -----*- C++ -*-===//
#ifndef MOA_TARGET_CPU_RUNTIMEBITCODE_H
#define MOA_TARGET_CPU_RUNTIMEBITCODE_H

extern const unsigned char kRuntimeBitcode[];
extern const unsigned long kRuntimeBitcodeSize;
extern const unsigned char kBindingBitcode[];
extern const unsigned long kBindingBitcodeSize;

#endif // MOA_TARGET_CPU_RUNTIMEBITCODE_H

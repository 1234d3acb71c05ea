//===- GpuNests.h - forms of nests as data of the cost model ----*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_GPUNESTS_H
#define MOA_CONVERSION_ONFTODEVICE_GPUNESTS_H

#include "lib/Conversion/ONFToDevice/Forms.h"
#include "lib/Schedule/GpuSchedule.h"

namespace moa {

/// Returns the data of the form `tiles`.
mlir::DictionaryAttr writeFold(mlir::MLIRContext *context, TileFold fold);
/// Of that data: the interleaved arrays, if there are any.
inline constexpr llvm::StringLiteral kInterleavedKey = "interleaved";

/// Returns a schedule that binds every axis of a nest to blocks and leaves its folds sequential.
NestSchedule outerFactors(onf::ForOp nest);
/// Returns the data of a form whose schedule the nest alone determines. `text` describes it, as in "8
/// lanes per row". `slow` is the distribution of a row in words, if tensor cores would be faster.
mlir::DictionaryAttr writeSchedule(mlir::MLIRContext *context, const NestSchedule &schedule, const llvm::Twine &text,
                                   llvm::StringRef slow = "");

/// Returns a nest with the forms in the list. The error names data that is missing.
llvm::Expected<GpuNest> readNest(onf::ForOp nest, mlir::ArrayAttr forms);
/// Reads the forms that `onf-find-forms` has stored on the kernel's nests, in order.
llvm::Expected<std::vector<GpuNest>> readNests(onf::KernelOp kernel);

/// Returns why a nest cannot run with tiles on a machine's tensor cores; empty if it can.
std::string whyNoTiles(const GpuNest &nest, const GpuMachine &machine);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_GPUNESTS_H

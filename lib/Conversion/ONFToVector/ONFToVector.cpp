//===- ONFToVector.cpp - the pass convert-onf-to-vector -------------------===//
#include "lib/Conversion/ONFToVector/ONFToVector.h"
#include "dialects/ONF/IR/Hints.h"
#include "lib/Conversion/ONFToVector/Columns.h"
#include "lib/Conversion/ONFToVector/Nest.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace moa {
#define GEN_PASS_DECL_CONVERTONFTOVECTOR
#define GEN_PASS_DEF_CONVERTONFTOVECTOR
#include "lib/Conversion/ConversionPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;
using namespace moa::onf;

static LogicalResult convertKernel(onf::KernelOp kernel, const ONFToVectorOptions &options, int64_t &nests,
                                   int64_t &scratchBytes, SmallVectorImpl<Attribute> &shared) {
  if (failed(rows::checkKernel(kernel)))
    return failure();
  for (auto nest : kernel.getBody().getOps<ForOp>())
    if (options.blocks)
      rows::blockColumns(nest);
  ArgumentBlock block(kernel);
  rows::Dependence deps;
  OpBuilder builder(kernel);
  unsigned number = 0;
  for (auto nest : kernel.getBody().getOps<ForOp>()) {
    Value chosen = nest.buildChoice();
    for (bool merging : {false, true}) {
      rows::NestEmitter emitter(kernel, nest, chosen, number, block, deps, options, merging);
      if (merging && !emitter.isSplit())
        continue;
      ++number;
      if (!emitter.emit(builder))
        return failure();
      scratchBytes = std::max(scratchBytes, emitter.getScratchBytes());
      if (merging)
        shared.push_back(builder.getStringAttr(emitter.getSharedText()));
    }
  }
  nests = std::max<int64_t>(nests, number);
  SmallVector<Attribute> temporaries;
  for (unsigned k = kernel.getNumInputs() + kernel.getNumOutputs(), e = kernel.getBody().getNumArguments(); k < e; ++k)
    temporaries.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("name", builder.getStringAttr(kernel.getArrayName(k))),
         builder.getNamedAttr("type", TypeAttr::get(kernel.getBody().getArgument(k).getType()))}));
  if (!temporaries.empty())
    kernel->getParentOp()->setAttr("moa.temporaries", builder.getArrayAttr(temporaries));
  if (Attribute shown = kernel->getAttr(onf::kShownAttr))
    kernel->getParentOp()->setAttr(onf::kShownAttr, shown);
  kernel.erase();
  return success();
}

LogicalResult moa::convertONFToVector(ModuleOp module, const ONFToVectorOptions &options) {
  MLIRContext *context = module.getContext();
  context->loadDialect<func::FuncDialect, scf::SCFDialect, arith::ArithDialect, math::MathDialect,
                       vector::VectorDialect, LLVM::LLVMDialect, affine::AffineDialect>();
  int64_t nests = 0, scratchBytes = 0;
  SmallVector<Attribute> shared;
  for (auto kernel : llvm::make_early_inc_range(module.getOps<onf::KernelOp>()))
    if (failed(convertKernel(kernel, options, nests, scratchBytes, shared)))
      return failure();
  OpBuilder builder(context);
  module->setAttr("moa.nests", builder.getI64IntegerAttr(nests));
  module->setAttr("moa.scratch_bytes", builder.getI64IntegerAttr(scratchBytes));
  if (!shared.empty())
    module->setAttr("moa.shared", builder.getArrayAttr(shared));
  return success();
}

namespace {
struct ConvertONFToVector final : moa::impl::ConvertONFToVectorBase<ConvertONFToVector> {
  using Base::Base;

  void runOnOperation() final {
    ONFToVectorOptions options;
    options.vectorsPerTile = vectorsPerTile;
    options.vectorBits = vectorBits;
    options.blocks = blocks;
    options.byteDots = byteDots;
    options.bf16Dots = bf16Dots;
    if (failed(convertONFToVector(getOperation(), options)))
      return signalPassFailure();
    // Their bodies were inlined where states are combined.
    for (MonoidOp monoid : llvm::make_early_inc_range(getOperation().getOps<MonoidOp>()))
      monoid.erase();
  }
};
} // namespace

std::unique_ptr<Pass> moa::createConvertONFToVectorPass(const ONFToVectorOptions &options) {
  ConvertONFToVectorOptions made;
  made.vectorsPerTile = options.vectorsPerTile;
  made.vectorBits = options.vectorBits;
  made.blocks = options.blocks;
  made.byteDots = options.byteDots;
  made.bf16Dots = options.bf16Dots;
  return createConvertONFToVector(made);
}

void moa::registerONFToVectorPipelines() {
  PassPipelineRegistration<>("moa-vector-to-llvm", "From the CPU lowering's functions to the llvm dialect",
                             buildVectorToLLVMPipeline);
}

//===- ONFToVector.cpp - the pass convert-onf-to-vector -------------------===//
#include "lib/Conversion/ONFToVector/ONFToVector.h"
#include "lib/Conversion/ONFToVector/Nest.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

static LogicalResult convertKernel(onf::KernelOp kernel, const ONFToVectorOptions &options,
                                   int64_t &nests, int64_t &scratchBytes) {
  if (failed(rows::checkKernel(kernel)))
    return failure();
  ArgumentBlock block(kernel);
  rows::Dependence deps;
  OpBuilder builder(kernel);
  unsigned number = 0;
  for (auto nest : kernel.getBody().getOps<ForOp>()) {
    rows::NestEmitter emitter(kernel, nest, number++, block, deps, options);
    if (!emitter.emit(builder))
      return failure();
    scratchBytes = std::max(scratchBytes, emitter.getScratchBytes());
  }
  nests = std::max<int64_t>(nests, number);
  kernel.erase();
  return success();
}

LogicalResult moa::convertONFToVector(ModuleOp module,
                                      const ONFToVectorOptions &options) {
  MLIRContext *context = module.getContext();
  context->loadDialect<func::FuncDialect, scf::SCFDialect, arith::ArithDialect,
                       math::MathDialect, vector::VectorDialect, LLVM::LLVMDialect,
                       affine::AffineDialect>();
  int64_t nests = 0, scratchBytes = 0;
  for (auto kernel : llvm::make_early_inc_range(module.getOps<onf::KernelOp>()))
    if (failed(convertKernel(kernel, options, nests, scratchBytes)))
      return failure();
  OpBuilder builder(context);
  module->setAttr("moa.nests", builder.getI64IntegerAttr(nests));
  module->setAttr("moa.scratch_bytes", builder.getI64IntegerAttr(scratchBytes));
  return success();
}

namespace {
/// Every nest of an onf.kernel becomes vector code over its rows.
///
/// **Requires** checked onf, lifted or not. **Establishes** the functions of
/// ONFToVector.h; no onf op is left. **Numerics**: sums are reassociated by
/// blocks of the reduced index, 256 or the cache tile; sums of blocks are
/// compensated, except those of states with axes in blocked folds, so that the
/// relative error of a sum of terms of one sign is at most that of one block, or
/// of one block and n / block additions. Everything else is evaluated as written.
struct ConvertONFToVectorPass
    : PassWrapper<ConvertONFToVectorPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertONFToVectorPass)
  ConvertONFToVectorPass(const ONFToVectorOptions &options = {}) {
    vectorsPerTile = options.vectorsPerTile;
    vectorBits = options.vectorBits;
    blocks = options.blocks;
  }
  ConvertONFToVectorPass(const ConvertONFToVectorPass &other) : PassWrapper(other) {}
  StringRef getArgument() const final { return "convert-onf-to-vector"; }
  StringRef getDescription() const final {
    return "Lower onf kernels to vector code over their rows";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<func::FuncDialect, scf::SCFDialect, arith::ArithDialect,
                    math::MathDialect, vector::VectorDialect, LLVM::LLVMDialect,
                    affine::AffineDialect>();
  }
  void runOnOperation() final {
    ONFToVectorOptions options;
    options.vectorsPerTile = vectorsPerTile;
    options.vectorBits = vectorBits;
    options.blocks = blocks;
    if (failed(convertONFToVector(getOperation(), options)))
      return signalPassFailure();
    // The functions of monoids stand where states are combined.
    for (MonoidOp monoid : llvm::make_early_inc_range(getOperation().getOps<MonoidOp>()))
      monoid.erase();
  }
  Option<int64_t> vectorsPerTile{*this, "vectors-per-tile",
                                 llvm::cl::desc("vectors of rows per task where a nest is not lifted"),
                                 llvm::cl::init(6)};
  Option<int64_t> vectorBits{*this, "vector-bits",
                             llvm::cl::desc("bits of a vector where a nest is not lifted"),
                             llvm::cl::init(512)};
  Option<bool> blocks{*this, "blocks",
                      llvm::cl::desc("run folds in blocks where their form allows it"),
                      llvm::cl::init(true)};
};
} // namespace

std::unique_ptr<Pass>
moa::createConvertONFToVectorPass(const ONFToVectorOptions &options) {
  return std::make_unique<ConvertONFToVectorPass>(options);
}

void moa::registerONFToVectorPasses() {
  registerPass([] { return createConvertONFToVectorPass(); });
  registerPass([] { return createOrderRowsPass(); });
  registerPass([] { return createExpandMathPass(); });
  PassPipelineRegistration<>("moa-vector-to-llvm",
                             "From the CPU lowering's functions to the llvm dialect",
                             buildVectorToLLVMPipeline);
}

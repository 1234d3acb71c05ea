//===- ONFToDevice.cpp - from scheduled loop nests to GPU programs --------===//
#include "lib/Conversion/ONFToDevice/ONFToDevice.h"
#include "dialects/Device/Transforms/Accesses.h"
#include "dialects/Device/Transforms/Passes.h"
#include "dialects/MoA/IR/Unsigned.h"
#include "dialects/ONF/IR/Hints.h"
#include "lib/Conversion/ONFToDevice/Forms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace moa {
#define GEN_PASS_DEF_CONVERTONFTODEVICE
#include "lib/Conversion/ConversionPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;

namespace {
struct ConvertONFToDevice final : moa::impl::ConvertONFToDeviceBase<ConvertONFToDevice> {
  static LogicalResult lower(onf::ForOp nest, device::ProgramOp program, unsigned number) {
    auto name = nest->getAttrOfType<StringAttr>(onf::kFormAttr);
    if (!name)
      return nest.emitOpError("expects axes bound to blocks of a GPU; run onf-lift-gpu first");
    const KernelForm *form = getForm(name);
    if (!form)
      return nest.emitOpError("has the form '") << name.getValue() << "', which is none";
    auto match = form->match(nest);
    if (!match)
      return nest.emitOpError("is bound to ") << form->factors << ", but cannot run so: " << match.why();
    return (*match)->lower(program, number);
  }
  /// Returns the predicate of a versioned nest, for the contract of the device level.
  static DictionaryAttr describeChoice(onf::KernelOp kernel, onf::ForOp nest) {
    if (!nest.getChoices())
      return {};
    Builder b(kernel.getContext());
    auto describe = [&](Value array, int64_t value) {
      StringRef name = kernel.getArrayName(cast<BlockArgument>(array).getArgNumber());
      return SmallVector<NamedAttribute>{b.getNamedAttr("by", b.getStringAttr(name)),
                                         b.getNamedAttr("is", b.getI64IntegerAttr(value))};
    };
    int64_t value = *nest.getChoice();
    SmallVector<NamedAttribute> choice = describe(nest.getChoices(), value);
    onf::StoreOp decision = kernel.getStore(cast<BlockArgument>(nest.getChoices()).getArgNumber());
    auto refinement = decision ? onf::getRefinement(decision) : std::nullopt;
    if (refinement && refinement->outside != value)
      choice.push_back(b.getNamedAttr("where", b.getDictionaryAttr(describe(refinement->of, refinement->value))));
    return b.getDictionaryAttr(choice);
  }
  LogicalResult convert(onf::KernelOp kernel) {
    OpBuilder b(kernel);
    auto program = device::ProgramOp::create(b, kernel.getLoc(), kernel.getSymNameAttr(), kernel.getSymbolsAttr(),
                                             kernel.getRequiresAttr(), kernel.getArgNamesAttr(),
                                             kernel.getResultNamesAttr(), kernel.getResultTypesAttr(),
                                             kernel.getTemporaryNamesAttr(), kernel.getTemporaryTypesAttr());
    for (StringRef name : {StringRef(onf::kShownAttr), StringRef(kUnsignedAttr)})
      if (Attribute attribute = kernel->getAttr(name))
        program->setAttr(name, attribute);
    Block &block = program.getBody().emplaceBlock();
    for (BlockArgument arg : kernel.getBody().getArguments())
      block.addArgument(arg.getType(), arg.getLoc());
    unsigned number = 0;
    for (auto nest : kernel.getBody().getOps<onf::ForOp>()) {
      Operation *last = block.empty() ? nullptr : &block.back();
      DictionaryAttr choice = describeChoice(kernel, nest);
      if (failed(lower(nest, program, number++)))
        return failure();
      SmallVector<Attribute> pairs;
      for (auto [x, y] : onf::getLaunchConditions(nest))
        pairs.append({x, y});
      Attribute condition = pairs.empty() ? Attribute() : ArrayAttr::get(nest.getContext(), pairs);
      for (Operation *made = last ? last->getNextNode() : &block.front(); (choice || condition) && made;
           made = made->getNextNode()) {
        if (made->hasAttr(device::kAlwaysAttr) && !nest.getWhere())
          continue;
        if (choice)
          made->setAttr(device::kChosenAttr, choice);
        if (condition)
          made->setAttr(onf::kLaunchIfAttr, condition);
      }
    }
    kernel.erase();
    // Kernels of results come first. Hosts launch the others, which only compute error estimates,
    // after them or not at all.
    for (device::KernelOp reportOnly : device::findReportOnly(program))
      reportOnly->moveBefore(&block, block.end());
    return success();
  }
  void runOnOperation() final {
    SmallVector<onf::KernelOp> kernels(getOperation().getOps<onf::KernelOp>());
    for (onf::KernelOp kernel : kernels)
      if (failed(convert(kernel)))
        return signalPassFailure();
    // Monoid functions have been inlined where states are combined.
    for (MonoidOp monoid : llvm::make_early_inc_range(getOperation().getOps<MonoidOp>()))
      monoid.erase();
  }
};
} // namespace

std::unique_ptr<Pass> moa::createConvertONFToDevicePass() { return std::make_unique<ConvertONFToDevice>(); }

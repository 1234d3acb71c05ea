//===- Codegen.cpp - LLVM IR and PTX of kernels ---------------------------===//
#include "lib/Target/PTX/PTX.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

// Only the NVPTX target, which Debian's LLVM package always has.
extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

using namespace llvm;

namespace moa::ptx {

// wgmma and setmaxnreg need sm_90a; PTX 8.6 comes with CUDA 12.7.
static constexpr StringRef kProcessor = "sm_90a", kFeatures = "+ptx86";

// CodeGenOptLevel::Aggressive runs global value numbering more often, for the same machine code.
static constexpr CodeGenOptLevel kLevel = CodeGenOptLevel::Default;

static Expected<std::unique_ptr<TargetMachine>> createTargetMachine() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError("this LLVM has no NVPTX target: " + error);
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(triple, kProcessor, kFeatures, TargetOptions(), std::nullopt, std::nullopt, kLevel));
  if (!machine)
    return createStringError("this LLVM does not know " + kProcessor);
  return machine;
}

/// Marks assembly with side effects as convergent: it acts on a whole warp and must not move under
/// a divergent condition.
static void markConvergent(llvm::Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallInst>(&instruction); call && call->isInlineAsm())
        if (cast<InlineAsm>(call->getCalledOperand())->hasSideEffects()) {
          call->addFnAttr(Attribute::Convergent);
          function.addFnAttr(Attribute::Convergent);
        }
}

// LLVM's -O3, reduced for modules of a few long functions. Keeps the passes that merge equal
// values, hoist loop invariants and unroll loops over private arrays. Omits vectorizers, most
// interprocedural passes, dead-store elimination and repeated cleanups, which find nothing here.
// InstCombine, the slowest pass, runs twice instead of eight times.
static constexpr StringRef kPasses =
    "function(nvvm-intr-range),always-inline,ipsccp,cgscc(inline),globaldce,"
    "function<eager-inv>("
    // Straight-line code.
    "simplifycfg,sroa<modify-cfg>,early-cse<>,instcombine<max-iterations=1;no-verify-fixpoint>,"
    "simplifycfg<switch-range-to-icmp>,early-cse<memssa>,reassociate,"
    // Loops. Those that index private arrays disappear, and then the arrays.
    "loop-mssa(loop-simplifycfg,licm<no-allowspeculation>,"
    "loop-rotate<header-duplication;no-prepare-for-lto>,licm<allowspeculation>,"
    "simple-loop-unswitch<nontrivial;trivial>),"
    "simplifycfg<switch-range-to-icmp>,"
    "loop(loop-idiom,indvars,loop-deletion,loop-unroll-full),sroa<modify-cfg>,"
    // Values that have become equal, constant or dead.
    "gvn<no-memdep>,sccp,bdce,loop-mssa(licm<allowspeculation>),"
    "simplifycfg<switch-range-to-icmp;switch-to-arithmetic;hoist-common-insts;sink-common-insts>,"
    "instcombine<max-iterations=1;no-verify-fixpoint>,"
    "loop-unroll<O3>,sroa<preserve-cfg>,infer-alignment,loop-mssa(licm<allowspeculation>),"
    "div-rem-pairs,"
    "simplifycfg<switch-range-to-icmp;hoist-loads-stores-with-cond-faulting>)";

static Error optimise(llvm::Module &module, TargetMachine &machine) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine);
  functions.registerPass([&] { return machine.getTargetIRAnalysis(); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  ModulePassManager passes;
  if (Error error = builder.parsePassPipeline(passes, kPasses))
    return error;
  passes.run(module, modules);
  return Error::success();
}

Expected<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp source, LLVMContext &context, StringRef name) {
  auto machine = createTargetMachine();
  if (!machine)
    return machine.takeError();
  std::unique_ptr<llvm::Module> module = mlir::translateModuleToLLVMIR(source, context, name);
  if (!module)
    return createStringError("translation to LLVM IR failed");
  module->setTargetTriple((*machine)->getTargetTriple());
  module->setDataLayout((*machine)->createDataLayout());
  if (Error error = linkLibdevice(*module))
    return error;
  for (Function &function : *module)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", kProcessor);
      function.addFnAttr("target-features", kFeatures);
      function.addFnAttr(Attribute::NoUnwind);
    }
  markConvergent(*module);
  if (Error error = optimise(*module, **machine))
    return error;
  return module;
}

namespace {

/// Skips the load-store vectorizer. Kernels already access neighbours together, so it finds
/// nothing, and its time is quadratic in the loads of a mask.
class SkipVectorizer final : public OptPassGate {
public:
  bool shouldRunPass(StringRef pass, StringRef) const override { return pass != "load-store-vectorizer"; }
  bool isEnabled() const override { return true; }
};

} // namespace

Expected<std::string> emit(llvm::Module &module) {
  static SkipVectorizer gate;
  module.getContext().setOptPassGate(gate);
  auto machine = createTargetMachine();
  if (!machine)
    return machine.takeError();
  SmallVector<char, 0> text;
  raw_svector_ostream stream(text);
  legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::AssemblyFile))
    return createStringError("this LLVM writes no PTX");
  passes.run(module);
  return std::string(text.begin(), text.end());
}

} // namespace moa::ptx

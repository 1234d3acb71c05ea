//===- Codegen.cpp - LLVM modules, object files and loading ---------------===//

#include "lib/Target/CPU/Codegen.h"
#include "lib/Target/CPU/RuntimeBitcode.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include "llvm/Transforms/Scalar/InstSimplifyPass.h"
#include <dlfcn.h>
#include <mutex>

using namespace llvm;

namespace moa::cpu {

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

static void initialiseTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    InitializeNativeTargetAsmParser();
  });
}

static std::string getHostFeatures() {
  std::string text;
  for (const auto &feature : sys::getHostCPUFeatures())
    text += (text.empty() ? "" : ",") + ((feature.second ? "+" : "-") + feature.first()).str();
  return text;
}

Expected<std::unique_ptr<TargetMachine>> createTargetMachine(StringRef processor, unsigned optimization) {
  initialiseTargets();
  Triple triple(sys::getProcessTriple());
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError("no code generator for this machine: " + error);
  bool host = processor.empty() || processor == "native";
  std::string name = host ? sys::getHostCPUName().str() : processor.str();
  std::unique_ptr<MCSubtargetInfo> known(target->createMCSubtargetInfo(triple, "", ""));
  if (!known->isCPUStringValid(name))
    return createStringError("unknown processor '" + processor + "' for " + triple.str() +
                             "; 'native' is this one, and 'llc -mtriple=" + triple.getArchName() +
                             " -mcpu=help' of LLVM lists the names");
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(triple, name, host ? getHostFeatures() : "", TargetOptions(), Reloc::PIC_,
                                  std::nullopt, optimization ? CodeGenOptLevel::Aggressive : CodeGenOptLevel::None));
  if (!machine)
    return createStringError("no code generator for processor '" + name + "'");
  return machine;
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

static void setMachine(llvm::Module &module, const TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr(Attribute::NoUnwind);
  }
}

static Error linkBitcode(llvm::Module &module, const unsigned char *bytes, size_t size) {
  auto buffer = MemoryBuffer::getMemBuffer(StringRef(reinterpret_cast<const char *>(bytes), size), "runtime",
                                           /*RequiresNullTerminator=*/false);
  auto runtime = parseBitcodeFile(*buffer, module.getContext());
  if (!runtime)
    return runtime.takeError();
  (*runtime)->setTargetTriple(module.getTargetTriple());
  (*runtime)->setDataLayout(module.getDataLayout());
  if (Linker::linkModules(module, std::move(*runtime)))
    return createStringError("the run-time code does not link");
  return Error::success();
}

static int64_t getIntAttr(mlir::ModuleOp module, StringRef name) {
  auto attribute = module->getAttrOfType<mlir::IntegerAttr>(name);
  return attribute ? attribute.getInt() : 0;
}

Expected<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp source, LLVMContext &context, TargetMachine &machine,
                                                  const KernelSignature &signature, bool packed, Binding binding) {
  std::unique_ptr<llvm::Module> module = mlir::translateModuleToLLVMIR(source, context, signature.name);
  if (!module)
    return createStringError("translation to LLVM IR failed");
  setMachine(*module, machine);
  if (Error error = linkBitcode(*module, kRuntimeBitcode, kRuntimeBitcodeSize))
    return error;
  if (binding == Binding::TVMFFI)
    if (Error error = linkBitcode(*module, kBindingBitcode, kBindingBitcodeSize))
      return error;
  EntryPointOptions options;
  options.numNests = getIntAttr(source, "moa.nests");
  options.scratchBytes = getIntAttr(source, "moa.scratch_bytes");
  auto temporaries = getTemporaries(source);
  if (!temporaries)
    return temporaries.takeError();
  options.temporaries = std::move(*temporaries);
  auto shown = getShown(source, signature);
  if (!shown)
    return shown.takeError();
  options.shown = std::move(*shown);
  options.packed = packed;
  options.binding = binding;
  options.processor = getProcessor(machine, /*usesTiles=*/module->getFunction(kTilesIntrinsic) != nullptr);
  if (Error error = addEntryPoints(*module, signature, options))
    return error;
  StringRef stem = signature.name;
  internalizeModule(*module, [stem](const GlobalValue &value) {
    StringRef name = value.getName();
    name.consume_front("__tvm_ffi_");
    if (!name.consume_front(stem))
      return false;
    return name.empty() || name == "_workspace" || name == "_check" || name == "_prepare" || name == "_shown" ||
           name.starts_with("_packed");
  });
  return module;
}

/// Nests with more instructions have register tiles, which are unrolled already.
static constexpr unsigned kMostUnrolled = 2000;

/// Counts the instructions of the nests, without the run-time code.
static unsigned countInstructions(llvm::Module &module) {
  unsigned count = 0;
  for (Function &function : module)
    if (function.getName().contains("_nest"))
      count += function.getInstructionCount();
  return count;
}

/// Rewrites loads and stores of bf16 to those of 16-bit integers.
///
/// A processor without bf16 instructions has no registers of that type. LLVM then splits a vector
/// of bf16 and rounds each element by a call of __truncsfbf2, which libgcc has only from version 13
/// on. Integers are stored unchanged. InstCombine does the same for most accesses, but not at -O0.
static void accessBf16AsIntegers(llvm::Module &module) {
  auto isBf16 = [](Type *type) { return type->getScalarType()->isBFloatTy(); };
  auto bitsOf = [](Type *type) { return type->getWithNewType(Type::getInt16Ty(type->getContext())); };
  for (Function &function : module)
    for (Instruction &access : make_early_inc_range(instructions(function))) {
      IRBuilder<> b(&access);
      Instruction *made = nullptr;
      if (auto *store = dyn_cast<StoreInst>(&access)) {
        Value *value = store->getValueOperand();
        if (!isBf16(value->getType()))
          continue;
        Value *bits = b.CreateBitCast(value, bitsOf(value->getType()));
        made = b.CreateAlignedStore(bits, store->getPointerOperand(), store->getAlign(), store->isVolatile());
      } else if (auto *load = dyn_cast<LoadInst>(&access)) {
        if (!isBf16(load->getType()))
          continue;
        made = b.CreateAlignedLoad(bitsOf(load->getType()), load->getPointerOperand(), load->getAlign(),
                                   load->isVolatile());
        load->replaceAllUsesWith(b.CreateBitCast(made, load->getType()));
      }
      if (!made)
        continue;
      made->copyMetadata(access);
      access.eraseFromParent();
    }
}

/// Defines __truncsfbf2, which LLVM calls to round f32 to bf16 on processors without an instruction
/// for it. Rounds to nearest even, and NaN to a quiet NaN. libgcc has this function only from
/// version 13 on.
static void defineRoundingToBf16(llvm::Module &module) {
  LLVMContext &context = module.getContext();
  Type *bf16 = Type::getBFloatTy(context);
  if (module.getFunction("__truncsfbf2") || llvm::none_of(module, [&](Function &function) {
        return llvm::any_of(instructions(function),
                            [&](Instruction &op) { return op.getType()->getScalarType() == bf16; });
      }))
    return;
  auto *function = Function::Create(FunctionType::get(bf16, {Type::getFloatTy(context)}, false),
                                    GlobalValue::LinkOnceODRLinkage, "__truncsfbf2", module);
  function->setVisibility(GlobalValue::HiddenVisibility);
  function->setDoesNotThrow();
  IRBuilder<> b(BasicBlock::Create(context, "", function));
  Value *x = function->getArg(0), *bits = b.CreateBitCast(x, b.getInt32Ty());
  Value *high = b.CreateLShr(bits, 16);
  Value *halfUnit = b.CreateAdd(b.CreateAnd(high, 1), b.getInt32(0x7fff));
  Value *rounded = b.CreateLShr(b.CreateAdd(bits, halfUnit), 16);
  Value *quiet = b.CreateOr(high, 0x40);
  Value *result = b.CreateSelect(b.CreateFCmpUNO(x, x), quiet, rounded);
  b.CreateRet(b.CreateBitCast(b.CreateTrunc(result, b.getInt16Ty()), bf16));
}

void optimise(llvm::Module &module, TargetMachine &machine, unsigned optimization) {
  static const OptimizationLevel levels[] = {OptimizationLevel::O0, OptimizationLevel::O2, OptimizationLevel::O2,
                                             OptimizationLevel::O3};
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = optimization > 1;
  tuning.LoopUnrolling = optimization > 1 || countInstructions(module) <= kMostUnrolled;
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine, tuning);
  functions.registerPass([&] { return machine.getTargetIRAnalysis(); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  OptimizationLevel level = levels[optimization];
  ModulePassManager passes =
      optimization == 0 ? builder.buildO0DefaultPipeline(level) : builder.buildPerModuleDefaultPipeline(level);
  accessBf16AsIntegers(module);
  // Folds adjacent casts between bf16 and its bits.
  if (optimization == 0)
    passes.addPass(createModuleToFunctionPassAdaptor(InstSimplifyPass()));
  passes.run(module, modules);
  if (!machine.getMCSubtargetInfo()->checkFeatures("+avx512bf16"))
    defineRoundingToBf16(module);
}

Expected<SmallVector<char, 0>> emitObject(llvm::Module &module, TargetMachine &machine) {
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile))
    return createStringError("this machine's target writes no object files");
  passes.run(module);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

struct LoadedObject::Impl {
  std::unique_ptr<orc::LLJIT> jit;
};

LoadedObject::LoadedObject(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
LoadedObject::~LoadedObject() = default;

/// Returns the file of the OpenMP library for kernels: the one in this process, else the one that
/// the compiler was built with. Given by its file name alone, this one is already loaded or in
/// the folder of libmoa-c.so; loading it here shows its symbols to kernels.
static Expected<std::string> provideOpenMP() {
  // Symbols that the whole process sees. LLVM's search would start with the libraries that LLVM opened.
  void *process = dlopen(nullptr, RTLD_LAZY);
  auto find = [&] { return dlsym(process, "__kmpc_fork_call"); };
  void *fork = find();
  // Intel's library has the same functions, and ends the process if LLVM's starts too. If it is
  // loaded for another library only, as NumPy with MKL does, this call makes it visible.
  if (!fork && dlopen("libiomp5.so", RTLD_LAZY | RTLD_GLOBAL | RTLD_NOLOAD))
    fork = find();
  std::string error;
  if (!fork && sys::DynamicLibrary::LoadLibraryPermanently(MOA_OPENMP_LIBRARY, &error))
    return createStringError("no OpenMP library: " + error);
  Dl_info info;
  if (!dladdr(fork ? fork : find(), &info))
    return createStringError("the OpenMP library has no file");
  return info.dli_fname;
}

Expected<std::unique_ptr<LoadedObject>> LoadedObject::load(ArrayRef<char> object) {
  initialiseTargets();
  auto library = provideOpenMP();
  if (!library)
    return library.takeError();
  auto jit = orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  // All functions of OpenMP are taken from one library. GCC's has functions of the same names, and
  // PyTorch loads it for the whole process; its omp_get_thread_num() returns 0 in LLVM's threads.
  auto openMP = orc::DynamicLibrarySearchGenerator::Load(
      library->c_str(), (*jit)->getDataLayout().getGlobalPrefix(),
      [](const orc::SymbolStringPtr &name) { return (*name).starts_with("omp_") || (*name).starts_with("__kmpc_"); });
  if (!openMP)
    return openMP.takeError();
  (*jit)->getMainJITDylib().addGenerator(std::move(*openMP));
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  auto buffer = MemoryBuffer::getMemBufferCopy(StringRef(object.data(), object.size()), "kernel");
  if (Error error = (*jit)->addObjectFile(std::move(buffer)))
    return error;
  auto impl = std::make_unique<Impl>();
  impl->jit = std::move(*jit);
  return std::unique_ptr<LoadedObject>(new LoadedObject(std::move(impl)));
}

Expected<void *> LoadedObject::lookup(StringRef name) {
  auto address = impl->jit->lookup(name);
  if (!address)
    return address.takeError();
  return address->toPtr<void *>();
}

} // namespace moa::cpu

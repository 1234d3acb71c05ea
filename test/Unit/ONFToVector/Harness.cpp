//===- Harness.cpp - compile onf text for this machine and run it ---------===//
#include "Harness.h"
#include "dialects/ONF/IR/ONF.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <regex>

using namespace mlir;

namespace moa::test {

static OwningOpRef<ModuleOp> lower(MLIRContext &context, StringRef text, const ONFToVectorOptions &options) {
  ParserConfig config(&context);
  auto module = parseSourceString<ModuleOp>(text, config);
  if (!module || failed(convertONFToVector(*module, options)))
    return nullptr;
  PassManager manager(&context);
  buildVectorToLLVMPipeline(manager);
  if (failed(manager.run(*module)))
    return nullptr;
  return module;
}

static std::unique_ptr<ExecutionEngine> makeEngine(ModuleOp module) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto builder = llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
  builder.setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
  builder.addFeatures({"-prefer-256-bit"});
  if (const char *cpu = std::getenv("MOA_TEST_CPU")) { // an older machine's code
    builder.getFeatures() = llvm::SubtargetFeatures();
    builder.setCPU(cpu);
  }
  auto machine = llvm::cantFail(builder.createTargetMachine());
  auto passMachine = llvm::cantFail(builder.createTargetMachine());
  auto optimize = makeOptimizingTransformer(3, 0, passMachine.get());
  ExecutionEngineOptions engineOptions;
  engineOptions.transformer = optimize;
  engineOptions.jitCodeGenOptLevel = llvm::CodeGenOptLevel::Aggressive;
  engineOptions.enableObjectDump = std::getenv("MOA_TEST_OBJECT") != nullptr;
  auto engine = ExecutionEngine::create(module, engineOptions, std::move(machine));
  if (!engine) {
    emitError(module.getLoc()) << llvm::toString(engine.takeError());
    return nullptr;
  }
  if (const char *file = std::getenv("MOA_TEST_OBJECT")) {
    llvm::consumeError((*engine)->lookup("none").takeError());
    (*engine)->dumpToObjectFile(file);
  }
  return std::move(*engine);
}

std::unique_ptr<Kernel> Kernel::compile(StringRef text, const ONFToVectorOptions &options, std::string &error) {
  auto kernel = std::make_unique<Kernel>();
  MLIRContext &context = kernel->context;
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registry.insert<MoADialect, onf::ONFDialect, arith::ArithDialect, math::MathDialect, func::FuncDialect>();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    error += diagnostic.str() + "\n";
    return success();
  });
  // Vectors of 512 bits use instructions that only AVX-512 has.
  ONFToVectorOptions possible = options;
  std::string lifted = text.str();
  if (!llvm::sys::getHostCPUFeatures().lookup("avx512f")) {
    possible.vectorBits = std::min<int64_t>(possible.vectorBits, 256);
    lifted = std::regex_replace(lifted, std::regex("lane: 8>"), "lane: 4>");
    lifted = std::regex_replace(lifted, std::regex("lane: 16>"), "lane: 8>");
  }
  OwningOpRef<ModuleOp> module = lower(context, lifted, possible);
  if (!module)
    return nullptr;
  kernel->nests = (*module)->getAttrOfType<IntegerAttr>("moa.nests").getInt();
  kernel->scratchBytes = (*module)->getAttrOfType<IntegerAttr>("moa.scratch_bytes").getInt();
  for (auto function : module->getOps<LLVM::LLVMFuncOp>())
    if (function.getName().ends_with("_nest0"))
      kernel->name = function.getName().drop_back(6).str();
  kernel->engine = makeEngine(*module);
  return kernel->engine ? std::move(kernel) : nullptr;
}

void Kernel::run(const std::vector<int64_t> &slots, bool single) {
  char *scratch = static_cast<char *>(std::aligned_alloc(64, scratchBytes + 64));
  std::memset(scratch, 0xff, scratchBytes + 64); // NaN everywhere
  for (int64_t k = 0; k != nests; ++k) {
    std::string number = std::to_string(k);
    auto nest = reinterpret_cast<void (*)(const int64_t *, void *, int64_t, int64_t)>(
        llvm::cantFail(engine->lookup(name + "_nest" + number)));
    auto tasks =
        reinterpret_cast<int64_t (*)(const int64_t *)>(llvm::cantFail(engine->lookup(name + "_tasks" + number)));
    int64_t count = tasks(slots.data());
    if (!single)
      nest(slots.data(), scratch, 0, count);
    else
      for (int64_t task = count; task-- > 0;)
        nest(slots.data(), scratch, task, task + 1);
  }
  std::free(scratch);
}

double Kernel::runRange(const std::vector<int64_t> &slots, double fraction) {
  char *scratch = static_cast<char *>(std::aligned_alloc(64, scratchBytes + 64));
  auto nest = reinterpret_cast<void (*)(const int64_t *, void *, int64_t, int64_t)>(
      llvm::cantFail(engine->lookup(name + "_nest0")));
  auto tasks = reinterpret_cast<int64_t (*)(const int64_t *)>(llvm::cantFail(engine->lookup(name + "_tasks0")));
  int64_t count = tasks(slots.data());
  int64_t some = std::max<int64_t>(static_cast<int64_t>(count * fraction), 1);
  nest(slots.data(), scratch, 0, some);
  std::free(scratch);
  return static_cast<double>(some) / count;
}

void pushStrided(std::vector<int64_t> &slots, const void *data, const std::vector<int64_t> &strides) {
  slots.push_back(reinterpret_cast<int64_t>(data));
  slots.insert(slots.end(), strides.begin(), strides.end());
}

void pushArray(std::vector<int64_t> &slots, const void *data, const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  pushStrided(slots, data, strides);
}

int64_t floatSlot(float value) {
  int64_t slot = 0;
  std::memcpy(&slot, &value, sizeof value);
  return slot;
}

int64_t doubleSlot(double value) {
  int64_t slot = 0;
  std::memcpy(&slot, &value, sizeof value);
  return slot;
}

uint16_t toBF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value))
    return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float fromBF16(uint16_t half) {
  uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

double relativeError(const std::vector<double> &a, const std::vector<double> &b) {
  double difference = 0, norm = 0;
  for (size_t k = 0; k != a.size(); ++k) {
    difference += (a[k] - b[k]) * (a[k] - b[k]);
    norm += b[k] * b[k];
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

} // namespace moa::test

//===- Libdevice.cpp - CUDA's mathematical functions ----------------------===//
//
// nvcc takes exp, log, … from libdevice, a library of LLVM IR in the CUDA toolkit. This target
// links the same file, so that the same operations run, and repeats the settings of nvcc:
//
//   - __nvvm_reflect: subnormal numbers are kept (__CUDA_FTZ 0), square roots are
//     correctly rounded (__CUDA_PREC_SQRT 1), the architecture is 900;
//   - contraction: nvcc fuses a product with the sum that uses it. Most of the library
//     has explicit fused operations; `contract` fuses the others.
//
//===----------------------------------------------------------------------===//
#include "lib/Target/PTX/PTX.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace llvm;

namespace moa::ptx {

static constexpr StringRef kLibrary = "nvvm/libdevice/libdevice.10.bc";

std::optional<std::string> findInToolkit(StringRef path) {
  std::vector<std::string> roots;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (auto root = sys::Process::GetEnv(variable); root && !root->empty())
      roots.push_back(*root);
  if (roots.empty()) { // an explicitly named toolkit is the only one searched
    for (const char *program : {"ptxas", "nvcc"})
      if (auto found = sys::findProgramByName(program)) {
        SmallString<128> real;
        if (!sys::fs::real_path(*found, real))
          roots.push_back(sys::path::parent_path(sys::path::parent_path(real)).str());
      }
    roots.push_back("/usr/local/cuda");
  }
  for (const std::string &root : roots) {
    SmallString<128> candidate(root);
    sys::path::append(candidate, path);
    if (sys::fs::exists(candidate))
      return candidate.str().str();
  }
  return std::nullopt;
}

/// Replaces the calls of __nvvm_reflect by constants.
static void answerReflection(llvm::Module &module) {
  Function *reflect = module.getFunction("__nvvm_reflect");
  if (!reflect)
    return;
  for (User *user : make_early_inc_range(reflect->users())) {
    auto *call = cast<CallInst>(user);
    auto *name = cast<GlobalVariable>(call->getArgOperand(0)->stripPointerCasts());
    StringRef question = cast<ConstantDataSequential>(name->getInitializer())->getAsCString();
    int64_t answer = StringSwitch<int64_t>(question)
                         .Case("__CUDA_PREC_SQRT", 1)
                         .Case("__CUDA_PREC_DIV", 1)
                         .Case("__CUDA_ARCH", 900)
                         .Default(0);
    call->replaceAllUsesWith(ConstantInt::get(call->getType(), answer));
    call->eraseFromParent();
  }
  reflect->eraseFromParent();
}

/// Fuses a product into sums if all of its uses are sums, as nvcc does: x = a · b, x + y ⇒
/// fma(a, b, y), also for x + x. Differences are not fused.
static void contract(Function &function) {
  SmallVector<Instruction *> products;
  for (Instruction &instruction : instructions(function))
    if (instruction.getOpcode() == Instruction::FMul && all_of(instruction.users(), [](User *user) {
          return cast<Instruction>(user)->getOpcode() == Instruction::FAdd;
        }))
      products.push_back(&instruction);
  for (Instruction *product : products)
    for (User *user : make_early_inc_range(product->users())) {
      auto *sum = cast<Instruction>(user);
      if (sum->getParent() == nullptr || sum->use_empty())
        continue; // in x + x, x has the same user twice
      unsigned position = sum->getOperand(0) == product ? 1 : 0;
      IRBuilder<> builder(sum);
      Value *fused =
          builder.CreateIntrinsic(Intrinsic::fma, {sum->getType()},
                                  {product->getOperand(0), product->getOperand(1), sum->getOperand(position)});
      sum->replaceAllUsesWith(fused);
    }
}

Error linkLibdevice(llvm::Module &module) {
  SmallVector<std::string> called;
  for (Function &function : module)
    if (function.isDeclaration() && function.getName().starts_with("__nv_"))
      called.push_back(function.getName().str());
  if (called.empty())
    return Error::success();
  auto path = findInToolkit(kLibrary);
  if (!path)
    return createStringError("the kernel calls " + called.front() + " of CUDA's " + kLibrary.str() +
                             ", which is not in $CUDA_HOME or $CUDA_PATH (if neither is set: the toolkit of PATH, "
                             "/usr/local/cuda); install the CUDA toolkit or set CUDA_HOME to its root");
  auto buffer = MemoryBuffer::getFile(*path);
  if (!buffer)
    return createStringError("cannot read " + *path + ": " + buffer.getError().message());
  auto library = getLazyBitcodeModule((*buffer)->getMemBufferRef(), module.getContext());
  if (!library)
    return library.takeError();
  (*library)->setTargetTriple(module.getTargetTriple());
  (*library)->setDataLayout(module.getDataLayout());
  std::set<std::string> own;
  for (Function &function : module)
    if (!function.isDeclaration())
      own.insert(function.getName().str());
  if (Linker::linkModules(module, std::move(*library), Linker::LinkOnlyNeeded))
    return createStringError(*path + " does not link");
  for (Function &function : module) {
    if (function.isDeclaration() || own.count(function.getName().str()))
      continue;
    function.setLinkage(GlobalValue::InternalLinkage);
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("target-features");
    contract(function);
  }
  answerReflection(module);
  return Error::success();
}

} // namespace moa::ptx

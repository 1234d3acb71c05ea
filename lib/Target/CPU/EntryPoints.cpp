//===- EntryPoints.cpp - the C interface of an emitted kernel -------------===//
//
// Emits the tables of Runtime/Runtime.h as LLVM constants. Also emits one function per entry point,
// which packs its arguments into arrays and calls the run-time code.
//
//===----------------------------------------------------------------------===//

#include "lib/Target/CPU/EntryPoints.h"
#include "lib/Target/CPU/Runtime/Runtime.h"
#include "lib/Target/CText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace moa::cpu {

//===----------------------------------------------------------------------===//
// Postfix code
//===----------------------------------------------------------------------===//

namespace {
/// Compiles expressions to the postfix code of Runtime.h.
class ExprCompiler {
public:
  explicit ExprCompiler(const KernelSignature &signature) {
    for (auto [k, binding] : llvm::enumerate(signature.bindings))
      leaves[binding.name] = {kSymbol, int64_t(k)};
    for (auto [k, array] : llvm::enumerate(signature.getArrays()))
      for (unsigned axis = 0; axis < array->getRank(); ++axis)
        leaves[getShapeSymbol(array->name, axis)] = {kShape, int64_t(k), axis};
  }

  /// Fails if the expression needs a deeper stack than the run-time code has.
  llvm::Expected<std::vector<int64_t>> compile(const SymExpr &expr) {
    code.clear();
    depth = deepest = 0;
    emit(expr);
    code.push_back(kEnd);
    if (deepest > kMaxStack)
      return llvm::createStringError("the expression '" + expr.str() + "' is nested too deeply");
    return code;
  }

private:
  void push(std::vector<int64_t> words) {
    code.insert(code.end(), words.begin(), words.end());
    deepest = std::max(deepest, ++depth);
  }
  void combine(int64_t op) {
    code.push_back(op);
    --depth;
  }

  void emit(const SymExpr::Atom &atom) {
    if (atom.kind == SymExpr::Atom::Kind::Symbol)
      return push(leaves.at(atom.text));
    emit(atom.lhs);
    emit(atom.rhs);
    combine(atom.kind == SymExpr::Atom::Kind::Mod ? kMod : kFloorDiv);
  }

  void emit(const SymExpr &expr) {
    if (expr.isZero())
      return push({kPush, 0});
    bool first = true;
    for (const auto &[monomial, coefficient] : expr.getTerms()) {
      bool empty = true;
      if (coefficient != 1 || monomial.empty()) {
        push({kPush, coefficient});
        empty = false;
      }
      for (const auto &[atom, power] : monomial)
        for (unsigned k = 0; k < power; ++k) {
          emit(*atom);
          if (!empty)
            combine(kMul);
          empty = false;
        }
      if (!first)
        combine(kAdd);
      first = false;
    }
  }

  std::map<std::string, std::vector<int64_t>> leaves;
  std::vector<int64_t> code;
  int depth = 0, deepest = 0;
};

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Emits the table of one kernel. Every field has 64 bits: an integer or a pointer.
class TableBuilder {
public:
  TableBuilder(llvm::Module &module, const KernelSignature &signature, const EntryPointOptions &options)
      : module(module), context(module.getContext()), signature(signature), options(options), compiler(signature) {
    assignSlots();
  }

  /// Returns the MoaKernel, or null if an expression cannot be compiled.
  Constant *build() {
    Constant *fields[] = {text(signature.name),
                          number(signature.getArrays().size()),
                          arrays(),
                          number(scalarSlots.size()),
                          numbers(scalarSlots),
                          number(signature.bindings.size()),
                          symbols(),
                          numbers(symbolSlots),
                          number(signature.constraints.size()),
                          constraints(),
                          number(options.numNests),
                          nests(),
                          number(options.temporaries.size()),
                          temporaries(),
                          number(options.shown.size()),
                          shown(),
                          number(numSlots),
                          number((options.scratchBytes + 63) / 64 * 64),
                          text(options.processor.name),
                          number(options.processor.features.size()),
                          features()};
    Constant *table = global(ConstantStruct::getAnon(fields), "table");
    return error ? nullptr : table;
  }
  int64_t getNumSlots() const { return numSlots; }

  /// Returns the moa_ffi_kernel of BindingCalls.c for a MoaKernel.
  Constant *buildBinding(Constant *table) {
    std::vector<Constant *> rows;
    std::vector<BindingParameter> parameters = getBindingParameters(signature);
    for (const BindingParameter &parameter : parameters)
      rows.push_back(ConstantStruct::getAnon(
          {text(parameter.name), number(parameter.kind), number(parameter.low), number(parameter.high)}));
    return global(ConstantStruct::getAnon({text(signature.name), number(parameters.size()), list(rows, "parameters"),
                                           module.getFunction("moaFfiEnter"), number(/*CPU*/ 1), table}),
                  "binding");
  }
  llvm::Error takeError() { return std::move(error); }

private:
  /// Assigns the slots of the argument block (ArgumentBlock.h). Inputs, outputs and temporaries
  /// come first, then the symbols in order of declaration, then the address of the shared workspace
  /// memory.
  void assignSlots() {
    for (const Parameter &parameter : signature.parameters) {
      if (parameter.isScalar())
        scalarSlots.push_back(numSlots);
      else
        arraySlots.push_back(numSlots);
      numSlots += 1 + parameter.getRank();
    }
    for (const Parameter &temporary : options.temporaries) {
      temporarySlots.push_back(numSlots);
      numSlots += 1 + temporary.getRank();
    }
    std::map<std::string, int64_t> declared;
    for (const std::string &name : signature.symbols)
      declared[name] = numSlots++;
    ++numSlots; // the address of the shared workspace memory
    for (const SymbolBinding &binding : signature.bindings)
      symbolSlots.push_back(declared[binding.name]);
  }

  Constant *number(int64_t value) { return ConstantInt::getSigned(Type::getInt64Ty(context), value); }
  Constant *numbers(ArrayRef<int64_t> values) {
    std::vector<uint64_t> words(values.begin(), values.end());
    return global(ConstantDataArray::get(context, words), "words");
  }
  Constant *text(llvm::StringRef value) { return global(ConstantDataArray::getString(context, value), "text"); }
  Constant *global(Constant *initialiser, const char *suffix) {
    auto *variable = new GlobalVariable(module, initialiser->getType(), /*isConstant=*/true,
                                        GlobalValue::PrivateLinkage, initialiser, signature.name + "_" + suffix);
    variable->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return variable;
  }
  Constant *list(ArrayRef<Constant *> elements, const char *suffix) {
    if (elements.empty())
      return ConstantPointerNull::get(PointerType::get(context, 0));
    auto *type = llvm::ArrayType::get(elements[0]->getType(), elements.size());
    return global(ConstantArray::get(type, elements), suffix);
  }

  std::pair<Constant *, Constant *> exprFields(const SymExpr &expr) {
    auto code = compiler.compile(expr);
    if (!code) {
      error = llvm::joinErrors(std::move(error), code.takeError());
      return {text(""), number(0)};
    }
    return {text(getReadable(expr.str())), numbers(*code)};
  }
  Constant *expr(const SymExpr &value) {
    auto [string, code] = exprFields(value);
    return ConstantStruct::getAnon({string, code});
  }

  Constant *array(const Parameter &array, int64_t slot) {
    std::vector<Constant *> extents;
    for (const SymExpr &extent : array.extents)
      extents.push_back(expr(extent));
    return ConstantStruct::getAnon({text(array.name), text(array.getTypeText()), number(array.isOutput),
                                    number(getDLPackCode(array.type)), number(getBits(array.type)),
                                    number(array.getRank()), list(extents, "extents"), number(slot)});
  }
  /// Emits one constant for each element of a range.
  template <typename Range, typename Make> Constant *listOf(Range &&range, const char *suffix, Make make) {
    std::vector<Constant *> rows;
    for (auto &&element : range)
      rows.push_back(make(element));
    return list(rows, suffix);
  }
  Constant *arrays() {
    int64_t next = 0;
    return listOf(signature.getArrays(), "arrays",
                  [&](const Parameter *parameter) { return array(*parameter, arraySlots[next++]); });
  }
  Constant *temporaries() {
    int64_t next = 0;
    return listOf(options.temporaries, "temporaries",
                  [&](const Parameter &parameter) { return array(parameter, temporarySlots[next++]); });
  }
  Constant *shown() {
    return listOf(options.shown, "tolerances", [&](const ShownResult &result) {
      const Tolerance &within = *signature.getArrays()[result.array]->within;
      std::vector<std::string> axes;
      for (const SymExpr &extent : options.temporaries[result.temporary].extents)
        axes.push_back(extent.str());
      return ConstantStruct::getAnon({number(result.array), number(result.temporary),
                                      number(llvm::bit_cast<int64_t>(within.epsilon)), text(within.str()),
                                      text(llvm::join(axes, ", ")), text(result.why)});
    });
  }
  Constant *symbols() {
    return listOf(signature.bindings, "symbols", [&](const SymbolBinding &binding) {
      return ConstantStruct::getAnon({text(binding.name), expr(binding.value)});
    });
  }
  Constant *constraints() {
    return listOf(signature.constraints, "constraints", [&](const Constraint &constraint) {
      return ConstantStruct::getAnon(
          {text(constraint.text), number(constraint.relation), expr(constraint.lhs), expr(constraint.rhs)});
    });
  }
  Constant *sharedOf(int64_t nest) {
    Constant *function = module.getFunction(signature.name + "_shared" + std::to_string(nest));
    return function ? function : ConstantPointerNull::get(PointerType::get(context, 0));
  }
  Constant *nests() {
    return listOf(llvm::seq(options.numNests), "nests", [&](int64_t k) {
      return ConstantStruct::getAnon({module.getFunction(signature.name + "_tasks" + std::to_string(k)), sharedOf(k),
                                      module.getFunction(signature.name + "_nest" + std::to_string(k))});
    });
  }
  Constant *features() {
    return listOf(options.processor.features, "features", [&](const Feature &feature) {
      return ConstantStruct::getAnon({text(feature.name), number(feature.leaf), number(feature.subleaf),
                                      number(feature.reg), number(feature.bit), number(feature.state)});
    });
  }

  llvm::Module &module;
  LLVMContext &context;
  const KernelSignature &signature;
  const EntryPointOptions &options;
  ExprCompiler compiler;
  std::vector<int64_t> arraySlots, scalarSlots, temporarySlots, symbolSlots;
  int64_t numSlots = 0;
  llvm::Error error = llvm::Error::success();
};

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Emits the entry points of one kernel, which refer to its table.
class EntryBuilder {
public:
  EntryBuilder(llvm::Module &module, const KernelSignature &signature, Constant *table, int64_t numSlots)
      : module(module), builder(module.getContext()), signature(signature), table(table), numSlots(numSlots) {
    pointer = builder.getPtrTy();
    word = builder.getInt64Ty();
  }

  /// Fails if the module already has a function with the name of an entry point.
  llvm::Error takeError() { return std::move(error); }

  void buildEntries() {
    begin(signature.name, builder.getInt32Ty(), {pointer, word, pointer});
    Value *launched = callRuntime("moaLaunch", {tensors, scalars, block(), extra(0), extra(1)});
    builder.CreateRet(launched);

    begin(signature.name + "_workspace", word, {});
    builder.CreateRet(callRuntime("moaWorkspace", {tensors, scalars, block()}));

    begin(signature.name + "_check", builder.getInt32Ty(), {pointer, word});
    builder.CreateRet(callRuntime("moaCheck", {tensors, extra(0), extra(1)}));

    declare(signature.name + "_prepare", builder.getInt32Ty(), {builder.getInt32Ty()});
    builder.CreateRet(callRuntime("moaPrepare", {extra(0)}));
  }

  /// Emits NAME_shown, which returns whether tolerances hold, with a message.
  void buildShown() {
    begin(signature.name + "_shown", builder.getInt32Ty(), {pointer, word, pointer, pointer, word});
    builder.CreateRet(callRuntime("moaShown", {tensors, scalars, block(), extra(0), extra(1), extra(3), extra(4)}));
  }

  /// Emits variants that take arrays of arguments.
  void buildPacked() {
    declare(signature.name + "_packed", builder.getInt32Ty(), {pointer, pointer, pointer, word});
    builder.CreateRet(callRuntime("moaLaunch", {extra(0), extra(1), block(), extra(2), extra(3)}));
    declare(signature.name + "_packed_workspace", word, {pointer, pointer});
    builder.CreateRet(callRuntime("moaWorkspace", {extra(0), extra(1), block()}));
    declare(signature.name + "_packed_check", builder.getInt32Ty(), {pointer, pointer, word});
    builder.CreateRet(callRuntime("moaCheck", {extra(0), extra(1), extra(2)}));
    declare(signature.name + "_packed_shown", builder.getInt32Ty(), {pointer, pointer, pointer, word, pointer, word});
    builder.CreateRet(callRuntime("moaShown", {extra(0), extra(1), block(), extra(2), extra(3), extra(4), extra(5)}));
  }

  /// Emits functions for tvm-ffi, which take tagged values.
  void buildBinding(Constant *binding, bool hasShown) {
    table = binding;
    auto build = [&](const char *suffix, const char *name) {
      declare("__tvm_ffi_" + signature.name + suffix, builder.getInt32Ty(),
              {pointer, pointer, builder.getInt32Ty(), pointer});
      builder.CreateRet(callRuntime(name, {extra(1), extra(2), extra(3)}));
    };
    build("", "moaFfiRun");
    build("_workspace", "moaFfiSize");
    if (hasShown)
      build("_shown", "moaFfiShow");
  }

private:
  Type *getScalarType(ElementType type) {
    switch (type) {
    case ElementType::F64:
      return builder.getDoubleTy();
    case ElementType::F32:
    case ElementType::BF16:
    case ElementType::F16:
      return builder.getFloatTy();
    default:
      return builder.getIntNTy(getBits(type));
    }
  }

  Function *declare(const std::string &name, Type *result, ArrayRef<Type *> types) {
    auto *type = FunctionType::get(result, types, false);
    function = Function::Create(type, GlobalValue::ExternalLinkage, name, module);
    function->addFnAttr(Attribute::NoUnwind);
    // Like the run-time code, these run on any processor, where they may refuse.
    Function *runtime = module.getFunction("moaLaunch");
    for (const char *attribute : {"target-cpu", "target-features"})
      if (runtime && runtime->hasFnAttribute(attribute))
        function->addFnAttr(runtime->getFnAttribute(attribute));
    if (function->getName() != name)
      error = llvm::joinErrors(std::move(error), llvm::createStringError("the entry point '" + name +
                                                                         "' has the name of a library function that "
                                                                         "the kernel calls; rename the kernel"));
    builder.SetInsertPoint(BasicBlock::Create(module.getContext(), "entry", function));
    numOwn = 0;
    return function;
  }

  /// Starts a function with the kernel's parameters, followed by `types`. Stores the kernel's
  /// arguments in the arrays `tensors` and `scalars`.
  void begin(const std::string &name, Type *result, ArrayRef<Type *> types) {
    std::vector<Type *> all;
    std::vector<const Parameter *> order = signature.getCallingOrder();
    for (const Parameter *parameter : order)
      all.push_back(parameter->isScalar() ? getScalarType(parameter->type) : pointer);
    llvm::append_range(all, types);
    declare(name, result, all);
    numOwn = order.size();
    tensors = array(pointer, signature.getArrays().size());
    scalars = array(word, signature.getScalars().size());
    int64_t numTensors = 0, numScalars = 0;
    for (auto [k, parameter] : llvm::enumerate(order)) {
      Argument *argument = function->getArg(k);
      argument->setName(parameter->name);
      if (parameter->isScalar())
        storeAt(scalars, numScalars++, getScalarBits(*parameter, argument));
      else
        storeAt(tensors, numTensors++, argument);
    }
  }

  /// Returns the 64 bits of a scalar in the argument block.
  Value *getScalarBits(const Parameter &parameter, Argument *argument) {
    switch (parameter.type) {
    case ElementType::F64:
      return builder.CreateBitCast(argument, word);
    case ElementType::F32:
      return builder.CreateZExt(builder.CreateBitCast(argument, builder.getInt32Ty()), word);
    case ElementType::BF16:
      return builder.CreateCall(module.getFunction("moaRoundBf16"), {argument});
    case ElementType::F16:
      return builder.CreateCall(module.getFunction("moaRoundF16"), {argument});
    case ElementType::I1:
      argument->addAttr(Attribute::ZExt);
      return builder.CreateZExt(builder.CreateIsNotNull(argument), word);
    default:
      if (getBits(parameter.type) < 64)
        argument->addAttr(Attribute::SExt);
      return builder.CreateSExt(argument, word);
    }
  }

  Value *array(Type *type, int64_t count) {
    return builder.CreateAlloca(type, builder.getInt64(std::max<int64_t>(count, 1)));
  }
  Value *block() { return array(word, numSlots); }
  void storeAt(Value *base, int64_t index, Value *value) {
    builder.CreateStore(value, builder.CreateConstGEP1_64(value->getType(), base, index));
  }
  Value *extra(unsigned k) { return function->getArg(numOwn + k); }
  Value *callRuntime(const char *name, std::vector<Value *> arguments) {
    arguments.insert(arguments.begin(), table);
    return builder.CreateCall(module.getFunction(name), arguments);
  }

  llvm::Module &module;
  IRBuilder<> builder;
  const KernelSignature &signature;
  Constant *table;
  int64_t numSlots;
  Type *pointer, *word;
  Function *function = nullptr;
  unsigned numOwn = 0;
  Value *tensors = nullptr, *scalars = nullptr;
  llvm::Error error = llvm::Error::success();
};
} // namespace

/// Checks the fixed sizes of Runtime.h and that C allows the kernel's name.
static llvm::Error checkLimits(const KernelSignature &signature) {
  auto refuse = [&](const char *parts, size_t count, int limit) {
    return llvm::createStringError("kernel '" + signature.name + "' has " + std::to_string(count) + " " + parts +
                                   "; the limit is " + std::to_string(limit));
  };
  if (isReservedWord(signature.name))
    return llvm::createStringError("a kernel cannot be called '" + signature.name +
                                   "' in C: it is a word of C or C++; rename the kernel");
  if (signature.symbols.size() > kMaxSymbols)
    return refuse("symbols", signature.symbols.size(), kMaxSymbols);
  if (signature.getArrays().size() > kMaxArrays)
    return refuse("array parameters", signature.getArrays().size(), kMaxArrays);
  for (const Parameter &parameter : signature.parameters)
    if (parameter.getRank() > kMaxRank)
      return refuse("axes on one array", parameter.getRank(), kMaxRank);
  return llvm::Error::success();
}

llvm::Error addEntryPoints(llvm::Module &module, const KernelSignature &signature, const EntryPointOptions &options) {
  if (llvm::Error error = checkLimits(signature))
    return error;
  for (int64_t k = 0; k < options.numNests; ++k)
    for (const char *kind : {"_tasks", "_nest"})
      if (!module.getFunction(signature.name + kind + std::to_string(k)))
        return llvm::createStringError("expects a function " + signature.name + kind + std::to_string(k));
  TableBuilder tables(module, signature, options);
  Constant *table = tables.build();
  if (!table)
    return tables.takeError();
  llvm::consumeError(tables.takeError());
  EntryBuilder entries(module, signature, table, tables.getNumSlots());
  entries.buildEntries();
  bool hasShown = llvm::any_of(options.shown, [](const ShownResult &result) { return result.why.empty(); });
  if (hasShown)
    entries.buildShown();
  if (options.packed)
    entries.buildPacked();
  if (options.binding == Binding::TVMFFI)
    entries.buildBinding(tables.buildBinding(table), hasShown);
  return entries.takeError();
}

} // namespace moa::cpu

//===- KernelPrinter.h - a device kernel as CUDA C++ ------------*- C++ -*-===//
//
// A value with one use in its own block is printed at its use. Other values are named constants.
// Loop-carried values are variables; a conditional that yields the next values of its loop assigns
// them in place. Fragments are arrays of a thread's registers, declared at the start of their
// block, with 16-bit floats packed. Repeated steps on fragments become functions (Outline.h). Lines
// have at most 120 columns.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TARGET_CUDA_KERNELPRINTER_H
#define MOA_TARGET_CUDA_KERNELPRINTER_H

#include "lib/Target/CUDA/Cuda.h"
#include "lib/Target/CUDA/Expressions.h"
#include "lib/Target/CUDA/Outline.h"
#include "lib/Target/CUDA/Phases.h"
#include "lib/Target/CUDA/Storage.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

namespace moa::cuda {

class KernelPrinter {
public:
  /// Prints the kernel, or the function of one outline. An outline needs the functions of later
  /// outlines first. With `merges`, consecutive loops are printed as one (Phases.h).
  KernelPrinter(device::KernelOp kernel, const Names &names, Helpers &helpers, const FragmentStorage &storage,
                std::vector<Outline> &outlines, bool merges, std::optional<size_t> function = std::nullopt)
      : kernel(kernel), program(mlir::cast<device::ProgramOp>(kernel->getParentOp())), names(names), helpers(helpers),
        storage(storage), outlines(outlines), merges(merges), function(function), launch(gpu::getLaunch(kernel)) {}

  llvm::Expected<KernelText> print();
  llvm::Expected<std::string> printFunction();
  /// Returns whether all consecutive loops could be merged. If not, the text is incomplete.
  bool hasMergedAll() const { return mergedAll; }

private:
  //===--- Names ----------------------------------------------------------===//
  /// Returns a C++ name close to the wish that is unused until the scope ends.
  std::string fresh(llvm::StringRef wish);
  std::string freshState(llvm::StringRef wish);
  /// Returns a name for an array, which is declared at the start of its block. Differs from the names
  /// of inner blocks before it, which would shadow the array.
  std::string freshArray(llvm::StringRef wish);
  /// Returns a word for a value: its role in a fold, its name in the program, or its operation.
  std::string wishFor(mlir::Value value, const char *fallback) const;
  std::string wishForFragment(mlir::Value fragment) const;
  /// Returns the name of the state of a fold that a scalar is a value of, in one lane or joined from
  /// several, or an empty text.
  std::string stateOf(mlir::Value value) const;
  std::string findState(mlir::Value value) const;
  std::string wishForState(mlir::Value value) const;
  std::string wishForStored(mlir::Value value) const;
  std::string wishForLoaded(mlir::Value value) const;
  void pushScope() { scopes.emplace_back(); }
  void popScope();

  /// A pair of braces: the names that end with it, and the arrays declared at its start, by type.
  struct Scope {
    std::vector<std::string> names;
    std::set<std::string> inner; ///< names of the blocks inside that have ended
    std::optional<size_t> start;
    std::vector<std::pair<std::string, std::string>> arrays;
  };
  Scope &getBlockScope();
  /// Declares an array at the start of the innermost block.
  void declareArray(const std::string &type, const std::string &declarator);
  void writeArrays(Scope &scope);

  //===--- Lines ----------------------------------------------------------===//
  /// Prints one statement, broken at 120 columns.
  void write(const std::string &text);
  void writeVariable(const std::string &declaration);
  /// Prints a constant, on the line of the constant before if the types agree.
  void writeConstant(const std::string &type, const std::string &declarator);
  /// Prints a statement. Adds a comment at its end if the line has room.
  void writeWithNote(const std::string &text, const std::string &note);
  /// Prints a comment on lines of its own.
  void writeComment(const std::string &text);
  bool continueLine(const std::string &kind, const std::string &text);
  /// Opens and closes a block. `text` is its end or the head of the next block. If the head uses
  /// names of the scope, the scope must be open already (`hasScope`).
  void open(const std::string &head, bool hasScope = false);
  void close(const std::string &text = "}");
  /// Removes the braces of a conditional that starts at `start` and has single statements.
  void dropBraces(size_t start);

  //===--- Values ---------------------------------------------------------===//
  Expr value(mlir::Value v);
  std::string constantText(mlir::arith::ConstantOp op, const std::string &name = "");
  void nameBound(mlir::Operation &op, std::vector<Expr> &operands);
  Expr symbolText(device::SymbolOp op);
  /// Returns whether a loop or conditional, which may change variables, is in between.
  static bool isSeparated(mlir::Operation &op, mlir::Operation *user);
  /// Stores an expression for its one use, or names it.
  void define(mlir::Operation &op, Expr expr, bool mayInline = true);

  //===--- Statements -----------------------------------------------------===//
  void printBlock(mlir::Block &block) { printFrom(&block.front()); }
  /// Prints the operation and all after it.
  void printFrom(mlir::Operation *op);
  void printStatement(mlir::Operation &op);
  void printScalar(mlir::Operation &op);
  std::string access(mlir::Value array, mlir::Value offset);
  template <typename OpT> std::string runAt(OpT op);
  std::string element(mlir::Value local, mlir::OperandRange indices);
  void printLocal(mlir::memref::AllocaOp local);

  /// Prints simultaneous assignments: none may read a variable that an earlier assignment changed.
  void assign(mlir::ValueRange targets, mlir::ValueRange sources);

  /// Returns whether a loop indexes private arrays. It must be unrolled, because registers have no
  /// addresses.
  static bool mustUnroll(mlir::scf::ForOp loop);
  void printFor(mlir::scf::ForOp loop);
  /// Prints the loop, merged with the loops that follow it if possible. Returns the last loop.
  mlir::Operation *printLoops(mlir::scf::ForOp first);
  std::vector<std::string> declarePhases(llvm::ArrayRef<mlir::scf::ForOp> loops);
  bool printPhases(llvm::MutableArrayRef<mlir::scf::ForOp> loops);
  std::vector<Statement> record(mlir::scf::ForOp loop, size_t at, Scope &scope);
  static std::optional<std::vector<std::pair<std::string, std::string>>>
  uniteArrays(llvm::ArrayRef<Scope> parts, llvm::ArrayRef<Statement> statements);
  bool writeUnder(const std::string &head, const Statement &statement, size_t recorded);
  void writeStatements(llvm::ArrayRef<Statement> statements, size_t recorded);
  /// Lets if (c) { …next values… } else { old values } assign the variables of the loop in place.
  void aliasConditional(mlir::scf::ForOp loop, mlir::scf::YieldOp yield);
  void printIf(mlir::scf::IfOp branch);
  void printStages(device::StagesOp op);

  //===--- Repeated steps (OutlinePrinter.cpp) ----------------------------===//
  struct Call {
    Outline *outline;
    size_t occurrence;
  };
  /// Returns the call that replaces the operation and others after it.
  std::optional<Call> findCall(mlir::Operation *op);
  /// Prints a call. Returns the last operation that it replaces.
  mlir::Operation *printCall(Call call);
  bool isStepOfFunction(mlir::Operation *op) const;
  /// Returns the next printed operation of a block.
  mlir::Operation *getNext(mlir::Operation *op) const;
  std::string wishForFunction(const Outline &outline) const;
  std::string freshParameter(llvm::StringRef wish);
  void declareParameters();
  void addParameter(const Outline::Parameter &parameter);
  /// Returns the name of an index's part that warp and lane determine.
  std::string threadPlace(const std::string &part, const std::string &wish);

  //===--- Tiles (TilePrinter.cpp) ----------------------------------------===//
  bool printTile(mlir::Operation *op);
  void printShared(mlir::Operation *op);
  bool hasRoles();
  void initBarriers(mlir::Value hasWork = {});
  void printSpecialize(device::SpecializeOp op);
  void writeProducerNotes(mlir::Region &producer);
  void printRoles(device::SpecializeOp op);
  void printProducerBlocks(device::SpecializeOp op);
  void printConsumerBlocks(device::SpecializeOp op);
  std::string ofAllLanes(mlir::Value number);
  std::string bitsOf(mlir::Value number);
  void giveBlock();
  std::string getListName(device::CollectOp op, size_t k);
  void printCollect(device::CollectOp op);
  void printCopy(device::CopyOp op);
  void printCopyRows(device::CopyRowsOp op);
  void printStoreTile(device::StoreTileOp op);
  void printAwaitStores(device::AwaitStoresOp op);
  void printClear(device::ClearUnseenOp op);
  std::pair<std::string, std::string> publishedAt(device::PublishOp op);
  void printPublish(device::PublishOp op);
  void printLoadPeer(device::LoadPeerOp op);
  std::string slot(mlir::Value array, mlir::Value index);
  std::string stage(mlir::Value ring, mlir::Value number);
  std::string keptNumber(mlir::Value number);

  //===--- Shared memory (SharedMemory.cpp) -------------------------------===//
  struct Field {
    int64_t place, bytes, alignment;
    std::string type, declarator;
  };
  std::string freshField(llvm::StringRef wish);
  Field getRingField(mlir::Value ring);
  std::vector<Field> getFields();
  void declareShared();

  //===--- Fragments (FragmentPrinter.cpp) --------------------------------===//
  static std::pair<std::string, std::string> getRegisters(mlir::Value fragment);
  void declareRegisters(mlir::Value fragment, const std::string &name);
  /// Returns the register array of a fragment, declaring it at its first use.
  std::string declareFragment(mlir::Value fragment, const char *fallback);
  void copyFragment(const std::string &to, const std::string &from);
  /// Copies a fragment. Fills the registers directly if `from` is a constant without an array.
  void copyFragment(const std::string &to, mlir::Value from);
  bool isCopiedConstant(mlir::Value fragment) const;
  /// Returns whether a loop starts with the value but neither reads nor returns it.
  static bool isNeverRead(mlir::OpOperand &use);
  void writeFill(const std::string &to, device::FillOp op);
  void printFill(device::FillOp op);
  std::string requestProducts(device::ContractOp op);
  void printContract(device::ContractOp op);
  void printAwait(device::AwaitOp op);
  bool isVotedInCondition(device::AnyOp op);
  void printAny(device::AnyOp op);
  void printIfAny(device::IfAnyOp op);
  bool printRounding(device::MapOp op);
  bool printConstantMap(device::MapOp op);
  /// Prints a map and the maps after it that share its loop. Returns the last of them.
  mlir::Operation *printMaps(device::MapOp first);
  void printPair(device::StoreOp store);
  /// Prints the statements of one map for the register `e`. Returns their number.
  unsigned printMapBody(device::MapOp op, const std::string &e, llvm::function_ref<bool(mlir::Value)> isLocal);
  void printThreadPlaces(mlir::Region &consumer);
  std::string requestRegisterFunction(const char *wish, const std::string &part, const std::string &e);
  /// Requests the function that combines two values of a monoid.
  std::string requestCombination(Monoid monoid, mlir::Type type);
  std::string requestSumOfHalves(device::LayoutAttr layout, device::LayoutAttr rows);
  std::string requestReduction(device::LayoutAttr layout, device::LayoutAttr rows);
  /// Prints a reduction and the merge into a state after it. Returns the last of them.
  mlir::Operation *printReduce(device::ReduceOp op);

  //===--- Registers of warps (WarpPrinter.cpp) ---------------------------===//
  void printContractFragments(device::ContractFragmentsOp op);
  void printLoadFragment(device::LoadFragmentOp op);
  void printConvertLayout(device::ConvertLayoutOp op);

  std::string printHeading();
  std::string printSignature();

  device::KernelOp kernel;
  device::ProgramOp program;
  const Names &names;
  Helpers &helpers;
  const FragmentStorage &storage;
  std::vector<Outline> &outlines;
  bool merges, mergedAll = true;
  std::optional<size_t> function; // the outline to print
  gpu::Launch launch;
  std::string body;
  size_t depth = 0, written = 0;
  std::string error;
  llvm::DenseMap<mlir::Value, Expr> values;
  std::set<std::string> used;
  std::vector<Scope> scopes;
  /// The statements of one block at its own depth, with their positions.
  struct Recording {
    size_t depth = 0;
    std::vector<std::pair<size_t, Statement>> statements;
  };
  std::optional<Recording> recording;
  std::map<std::string, std::string> phaseArrays; // types of registers by name
  std::set<std::string> phaseNames;               // names inside of blocks of the phases so far
  bool hasVariables = false;                      // some phase declares variables: phases cannot be merged
  size_t joinEnd = 0;                             // end of the last line that may be continued
  bool isWrapped = false;
  std::string joinKind;                                     // type of that constant
  llvm::DenseMap<mlir::Value, std::string> fragmentArrays;  // by FragmentStorage::of
  llvm::DenseMap<mlir::Value, std::string> localValues;     // fragments local to one loop of maps
  llvm::DenseMap<mlir::Value, std::string> resultRegisters; // of values that are results of a map
  std::map<std::string, std::string> threadPlaces;          // names by expression
  mutable llvm::DenseMap<mlir::Value, std::string> states;  // results of stateOf
  // Fields of the block's shared memory: all names, kept scalars, and scratch words.
  std::set<std::string> fieldNames;
  std::vector<std::string> keptFields;
  std::string clearWords, collectWords;
  bool hasShared = false;                                      // whether the struct is declared
  std::vector<std::pair<mlir::Value, std::string>> stageBytes; // constants for the bytes of a stage
  // For persistent kernels (device.next_block): two barriers, the word that says whether there is a
  // block, and the variable with the parity of blocks.
  std::string givenBarrier, leftBarrier, hasBlock, blockParity;
  bool inProducer = false;
  std::vector<std::pair<std::string, mlir::TypedValue<device::BarriersType>>> barriers;
};

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_KERNELPRINTER_H

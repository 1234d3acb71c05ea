//===- KernelBuilder.h - small moa kernels for tests ------------*- C++ -*-===//
//
// Builds a moa.kernel operator by operator with the shapes inferred, and runs
// it at every level on the same arguments.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_TEST_UNIT_CONVERSION_KERNELBUILDER_H
#define MOA_TEST_UNIT_CONVERSION_KERNELBUILDER_H

#include "dialects/DNF/IR/DNF.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Interpreter/Interpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <limits>

namespace moa::test {

using Sizes = std::map<std::string, int64_t>;
using Axes = std::vector<std::vector<int64_t>>;
using mlir::Value;

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline const double kNaN = std::numeric_limits<double>::quiet_NaN();

mlir::MLIRContext &getContext();
mlir::Type typeNamed(llvm::StringRef name);

/// What the random values of a parameter are drawn from.
struct Input {
  std::string name;
  /// Integers are drawn from 0 ≤ i < bound, an expression over the symbols.
  std::string bound;
  double low = -1, high = 1;
  /// Floats are whole numbers, on which sums and products are exact.
  bool whole = false;
};

class KernelBuilder {
public:
  explicit KernelBuilder(std::vector<std::string> symbols);

  /// A parameter. Extents are expressions over the symbols.
  Value input(std::string name, std::vector<std::string> extents, llvm::StringRef type = "f64",
              std::string bound = "8");
  /// Bounds of the random values of the parameter declared last.
  void range(double low, double high);
  /// The same, of whole numbers.
  void wholeRange(double low, double high);
  void output(Value value);

  Value constant(double value, llvm::StringRef type = "f64");
  Value extent(llvm::StringRef expr);
  Value iota(llvm::StringRef extent);
  /// Point-wise function; `axes` as for moa.map.
  Value map(ScalarFn fn, std::vector<Value> operands, const Axes &axes);
  /// The same with operands on the leading axes of the operand of most axes.
  Value map(ScalarFn fn, std::vector<Value> operands);
  Value cast(Value x, llvm::StringRef type, bool implicit = false);
  Value mask(Value p, Value x, std::vector<int64_t> axes);
  Value reduce(Monoid monoid, Value x, int64_t axis);
  /// Reduction of the last axis.
  Value reduce(Monoid monoid, Value x);
  Value inner(Value a, Value b, int64_t frame = 0, bool lhsFramed = true, bool rhsFramed = true,
              Monoid monoid = Monoid::add, ScalarFn fn = ScalarFn::mul);
  /// `frameExtents` are those of the frame the indices share.
  Value psi(Value x, std::vector<Value> indices, std::vector<int64_t> dims, const Axes &axes,
            std::vector<std::string> frameExtents);
  Value transpose(Value x, std::vector<int64_t> perm);
  Value reshape(Value x, std::vector<std::string> extents);
  Value slice(Value x, int64_t axis, llvm::StringRef start, llvm::StringRef count);
  Value reverse(Value x, int64_t axis);
  Value rotate(Value x, llvm::StringRef by, int64_t axis);
  Value cat(Value x, Value y, int64_t axis);

  /// A monoid of the user: `combine` is written with map() and constant().
  std::string monoid(llvm::StringRef name, double identity, llvm::StringRef type,
                     llvm::function_ref<Value(Value, Value)> combine);
  /// Reduction with a monoid of the user.
  Value reduce(const std::string &monoid, Value x, int64_t axis);

  /// Ends the kernel; the module is verified.
  mlir::OwningOpRef<mlir::ModuleOp> finish();
  const std::vector<Input> &getInputs() const { return inputs; }
  static ArrayType typeOf(Value value) { return mlir::cast<ArrayType>(value.getType()); }

private:
  ArrayType array(llvm::ArrayRef<ExprAttr> shape, mlir::Type type);
  ExprAttr expr(llvm::StringRef text);
  mlir::StringAttr text(llvm::StringRef value);
  mlir::ArrayAttr attributes(const Axes &axes);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::OpBuilder b;
  mlir::Location loc;
  KernelOp kernel;
  std::vector<Input> inputs;
  std::vector<Value> outputs;
};

/// Random arguments of a kernel under values of its symbols.
KernelInputs randomInputs(KernelOp kernel, const std::vector<Input> &inputs, const Sizes &sizes, unsigned seed);

/// A kernel at the three levels.
class Levels {
public:
  explicit Levels(mlir::OwningOpRef<mlir::ModuleOp> module, std::vector<std::string> disabledRules = {},
                  unsigned seed = 0);
  bool valid() const { return moa && dnf && onf; }
  KernelOp getMoA() { return *moa->getOps<KernelOp>().begin(); }
  dnf::KernelOp getDNF() { return *dnf->getOps<dnf::KernelOp>().begin(); }
  onf::KernelOp getONF() { return *onf->getOps<onf::KernelOp>().begin(); }
  /// Folds at the top of row nests, as a count per nest.
  std::vector<unsigned> passes();

private:
  mlir::OwningOpRef<mlir::ModuleOp> moa, dnf, onf;
};

/// The outputs of a kernel; a failure of the run fails the test.
std::vector<Array> run(mlir::Operation *kernel, const KernelInputs &inputs);

/// Bit-equal, except that any NaN equals any NaN.
void expectSame(const std::vector<Array> &got, const std::vector<Array> &expected);
/// Equal to a relative error; NaN and infinities stand at the same places.
void expectClose(const std::vector<Array> &got, const std::vector<Array> &expected, double tolerance = 1e-12);

} // namespace moa::test

#endif // MOA_TEST_UNIT_CONVERSION_KERNELBUILDER_H

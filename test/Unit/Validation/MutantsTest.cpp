//===- MutantsTest.cpp - wrong laws, addresses and liftings are caught ----===//
#include "dialects/DNF/IR/DNF.h"
#include "lib/Analysis/Passes.h"
#include "lib/Conversion/DNFToONF/DNFToONF.h"
#include "lib/Conversion/MoAToDNF/MoAToDNF.h"
#include "lib/Frontend/Frontend.h"
#include "lib/Pipelines/Registration.h"
#include "lib/Schedule/Passes.h"
#include "lib/Validation/Validation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/PassManager.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace moa;
using ::testing::HasSubstr;

namespace {

/// A law in the place of that for OpTy: what it makes of i ψ op.
using MakeElement = std::function<Value(Operation *op, SmallVector<Value> i, OpBuilder &b, Location loc)>;

struct WrongLaw final : OpRewritePattern<dnf::PsiOp> {
  WrongLaw(MLIRContext *context, StringRef name, MakeElement make)
      : OpRewritePattern(context, 10), name(name), make(std::move(make)) {}

  LogicalResult matchAndRewrite(dnf::PsiOp op, PatternRewriter &rewriter) const final {
    Operation *producer = op.getArray().getDefiningOp();
    if (!producer || producer->getName().getStringRef() != name)
      return failure();
    Value value = make(producer, SmallVector<Value>(op.getIndices()), rewriter, op.getLoc());
    rewriter.replaceOp(op, value);
    return success();
  }
  std::string name;
  MakeElement make;
};

Value psi(OpBuilder &b, Location loc, Value array, ValueRange index) {
  return dnf::PsiOp::create(b, loc, cast<ArrayType>(array.getType()).getElementType(), array, index);
}
Value extent(OpBuilder &b, Location loc, Value array, unsigned axis) {
  return dnf::ExtentOp::create(b, loc, cast<ArrayType>(array.getType()).getShape()[axis]);
}

class Mutants : public ::testing::Test {
protected:
  Mutants() : context(makeRegistry(), MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        messages += diagnostic.str() + "\n";
      return success();
    });
  }
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  void read(StringRef text) {
    moa = parseMoA(text, "test.moa", FrontendOptions(), &context);
    ASSERT_TRUE(moa) << messages;
  }
  OwningOpRef<ModuleOp> run(ModuleOp from, std::unique_ptr<Pass> pass) {
    OwningOpRef<ModuleOp> module = from.clone();
    PassManager pm(&context);
    pm.addPass(std::move(pass));
    EXPECT_TRUE(succeeded(pm.run(*module))) << messages;
    return module;
  }
  void toNormalForm() { dnf = run(*moa, createConvertMoAToDNFPass()); }
  void toLoops() {
    toNormalForm();
    onf = run(*dnf, createConvertDNFToONFPass());
  }
  template <typename KernelT> KernelT kernelOf(OwningOpRef<ModuleOp> &module) {
    return *module->getOps<KernelT>().begin();
  }

  /// The message of the validation where a law is replaced.
  std::string withLaw(StringRef text, StringRef law, StringRef op, MakeElement make) {
    read(text);
    dnf = run(*moa, createConvertMoAToDNFPass({law.str()}, 0, nullptr, [&](RewritePatternSet &patterns) {
      patterns.add<WrongLaw>(&context, op, make);
    }));
    return compareUses();
  }
  std::string compareUses() {
    Validator validator(&context);
    bool good = succeeded(validator.compareUses(kernelOf<moa::KernelOp>(moa), kernelOf<dnf::KernelOp>(dnf)));
    EXPECT_EQ(good, messages.empty());
    return std::move(messages);
  }
  std::string compareAddresses() {
    Validator validator(&context);
    bool good = succeeded(validator.compareAddresses(kernelOf<dnf::KernelOp>(dnf), kernelOf<onf::KernelOp>(onf)));
    EXPECT_EQ(good, messages.empty());
    return std::move(messages);
  }
  /// The lifted form of `onf` with the intervals of its masks.
  OwningOpRef<ModuleOp> lift() { return run(*run(*onf, createDeriveIntervalsPass()), createLiftPass()); }
  /// The message of the values at a random point, where `lifted` is not that of `onf`.
  std::string compareValues(OwningOpRef<ModuleOp> lifted) {
    Validator validator(&context);
    bool good = succeeded(validator.compareValues(kernelOf<dnf::KernelOp>(dnf), kernelOf<onf::KernelOp>(onf),
                                                  kernelOf<onf::KernelOp>(lifted)));
    EXPECT_EQ(good, messages.empty());
    bool tried = llvm::any_of(validator.getFacts(), [](const Fact &fact) { return fact.status == Fact::Tried; });
    EXPECT_EQ(good, tried);
    return std::move(messages);
  }
  template <typename OpT> OpT first(Operation *root) {
    OpT found;
    root->walk([&](OpT op) { found = found ? found : op; });
    return found;
  }

  MLIRContext context;
  std::string messages;
  OwningOpRef<ModuleOp> moa, dnf, onf;
};

/// The right laws pass, with the facts of every kind.
TEST_F(Mutants, RightLawsPass) {
  read("kernel k[B, H, G, N, M; D = 8](Q : f32[B, H, N, D], K : f32[B, G, M, D],\n"
       "  V : f32[B, G, M, D]) -> (O : f32[B, H, N, D], l : f32[B, H, N])\n"
       "  require H % G == 0 {\n"
       "  Kh = [b < B, h < H] K[b, h / (H/G)]\n"
       "  Vh = [b < B, h < H] V[b, h / (H/G)]\n"
       "  S = mask([_, _, i, j] j <= i + (M - N), Q +.* transpose(Kh))\n"
       "  O = softmax(S) +.* Vh\n"
       "  l = logsumexp(S)\n"
       "}");
  toLoops();
  Validator validator(&context);
  ASSERT_TRUE(succeeded(validator.compareUses(kernelOf<moa::KernelOp>(moa), kernelOf<dnf::KernelOp>(dnf)))) << messages;
  ASSERT_TRUE(succeeded(validator.checkBounds(kernelOf<dnf::KernelOp>(dnf)))) << messages;
  ASSERT_TRUE(succeeded(validator.compareAddresses(kernelOf<dnf::KernelOp>(dnf), kernelOf<onf::KernelOp>(onf))))
      << messages;
  auto lifted = run(*onf, createLiftPass());
  ASSERT_TRUE(succeeded(validator.checkLifting(kernelOf<onf::KernelOp>(onf), kernelOf<onf::KernelOp>(lifted))))
      << messages;
  ASSERT_TRUE(succeeded(validator.compareValues(kernelOf<dnf::KernelOp>(dnf), kernelOf<onf::KernelOp>(onf),
                                                kernelOf<onf::KernelOp>(lifted))))
      << messages;
  std::map<Fact::Kind, unsigned> counts;
  std::set<std::string> lemmas;
  for (const Fact &fact : validator.getFacts()) {
    ++counts[fact.kind];
    EXPECT_NE(fact.status, Fact::Assumed) << fact.statement;
    if (fact.status == Fact::ByLemma)
      lemmas.insert(fact.because.begin(), fact.because.end());
  }
  EXPECT_EQ(counts[Fact::Uses], 2u);
  EXPECT_EQ(counts[Fact::Writes], 2u);
  EXPECT_EQ(counts[Fact::Addresses], 2u);
  EXPECT_GE(counts[Fact::Bounds], 12u);
  EXPECT_GE(counts[Fact::Lifting], 4u);
  EXPECT_EQ(counts[Fact::Values], 1u);
  EXPECT_TRUE(lemmas.count("Lemma 2"));
}

//===----------------------------------------------------------------------===//
// Laws
//===----------------------------------------------------------------------===//

TEST_F(Mutants, TransposeTheWrongWay) {
  std::string text = withLaw("kernel k[N](x : f32[N, N, N]) -> y : f32[N, N, N] { y = transpose(x, [1, 2, 0]) }",
                             "psi-transpose", "moa.transpose", [](Operation *op, auto i, auto &b, auto loc) {
                               auto transpose = cast<TransposeOp>(op);
                               SmallVector<Value> index;
                               for (int64_t axis : transpose.getPerm())
                                 index.push_back(i[axis]);
                               return psi(b, loc, transpose.getInput(), index);
                             });
  EXPECT_THAT(text, HasSubstr("ψ-reduction has given y another meaning"));
  EXPECT_THAT(text, HasSubstr("became x["));
}

TEST_F(Mutants, ReverseOffByOne) {
  std::string text = withLaw("kernel k[N](x : f32[N]) -> y : f32[N] { y = reverse(x) }", "psi-reverse", "moa.reverse",
                             [](Operation *op, auto i, auto &b, auto loc) {
                               Value n = extent(b, loc, op->getOperand(0), 0);
                               return psi(b, loc, op->getOperand(0), {arith::SubIOp::create(b, loc, n, i[0])});
                             });
  EXPECT_THAT(text, HasSubstr("x[N - n - 1] became x[N - n]"));
}

TEST_F(Mutants, TakeFromTheWrongEnd) {
  std::string text =
      withLaw("kernel k[N](x : f32[N]) -> y : f32[2] require N >= 2 { y = take(x, -2) }", "psi-slice", "moa.slice",
              [](Operation *op, auto i, auto &b, auto loc) { return psi(b, loc, op->getOperand(0), i); });
  EXPECT_THAT(text, HasSubstr("x[N + k - 2] became x[k]"));
}

TEST_F(Mutants, CatenateWithoutOffset) {
  std::string text = withLaw("kernel k[N, M](x : f32[N], z : f32[M]) -> y : f32[N + M] { y = cat(x, z) }", "psi-cat",
                             "moa.cat", [](Operation *op, auto i, auto &b, auto loc) {
                               auto cat = cast<CatOp>(op);
                               Value n = extent(b, loc, cat.getLhs(), 0);
                               Value inFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, i[0], n);
                               Value left = psi(b, loc, cat.getLhs(), i), right = psi(b, loc, cat.getRhs(), i);
                               return dnf::JoinOp::create(b, loc, inFirst, left, right).getResult();
                             });
  EXPECT_THAT(text, HasSubstr("z[m - N] became z[m]"));
}

TEST_F(Mutants, RotateBackwards) {
  std::string text = withLaw("kernel k[N](x : f32[N]) -> y : f32[N] { y = rotate(x, 1) }", "psi-rotate", "moa.rotate",
                             [](Operation *op, auto i, auto &b, auto loc) {
                               Value n = extent(b, loc, op->getOperand(0), 0);
                               Value one = arith::ConstantIndexOp::create(b, loc, 1);
                               Value moved = arith::SubIOp::create(b, loc, i[0], one);
                               Value q = arith::FloorDivSIOp::create(b, loc, moved, n);
                               Value whole = arith::MulIOp::create(b, loc, q, n);
                               return psi(b, loc, op->getOperand(0), {arith::SubIOp::create(b, loc, moved, whole)});
                             });
  EXPECT_THAT(text, HasSubstr("has given y another meaning"));
}

TEST_F(Mutants, MaskForgotten) {
  std::string text =
      withLaw("kernel k[N, M](x : f32[N, M]) -> y : f32[N] { y = +/ mask([i, j] j <= i, x) }", "psi-mask", "moa.mask",
              [](Operation *op, auto i, auto &b, auto loc) { return psi(b, loc, cast<MaskOp>(op).getInput(), i); });
  EXPECT_THAT(text, HasSubstr("has given y another meaning"));
}

TEST_F(Mutants, SelectionTurned) {
  std::string text = withLaw("kernel k[N](x : f32[N], z : f32[N], p : bool[N]) -> y : f32[N] { y = select(p, x, z) }",
                             "psi-map", "moa.map", [](Operation *op, auto i, auto &b, auto loc) {
                               SmallVector<Value> v;
                               for (Value input : op->getOperands())
                                 v.push_back(psi(b, loc, input, i));
                               return dnf::JoinOp::create(b, loc, v[0], v[2], v[1]).getResult();
                             });
  EXPECT_THAT(text, HasSubstr("has given y another meaning"));
}

TEST_F(Mutants, ReshapeByColumns) {
  std::string text = withLaw("kernel k[N; D = 4](x : f32[N, D, D]) -> y : f32[N, D*D] { y = reshape(x, [N, D*D]) }",
                             "psi-reshape", "moa.reshape", [](Operation *op, auto i, auto &b, auto loc) {
                               Value four = arith::ConstantIndexOp::create(b, loc, 4);
                               Value high = arith::FloorDivSIOp::create(b, loc, i[1], four);
                               Value whole = arith::MulIOp::create(b, loc, high, four);
                               Value low = arith::SubIOp::create(b, loc, i[1], whole);
                               return psi(b, loc, op->getOperand(0), {i[0], low, high});
                             });
  EXPECT_THAT(text, HasSubstr("became x["));
}

TEST_F(Mutants, GatherOnTheWrongAxis) {
  std::string text = withLaw("kernel k[N](x : f32[N, N], t : i32[N] in 0..N) -> y : f32[N, N] { y = x[t] }", "psi-psi",
                             "moa.psi", [](Operation *op, auto i, auto &b, auto loc) {
                               auto gather = cast<moa::PsiOp>(op);
                               Value entry = psi(b, loc, gather.getIndices()[0], {i[0]});
                               return psi(b, loc, gather.getInput(), {i[1], entry});
                             });
  EXPECT_THAT(text, HasSubstr("has given y another meaning"));
}

TEST_F(Mutants, AnotherDomain) {
  read("kernel k[N, M](x : f32[N, M]) -> y : f32[N, M] { y = 2 * x }");
  toNormalForm();
  first<dnf::OutputOp>(*dnf).setDomainAttr(Builder(&context).getStrArrayAttr({"M", "N"}));
  EXPECT_THAT(compareUses(), HasSubstr("the domain of output y is not its shape"));
}

TEST_F(Mutants, OperationOfNoLaw) {
  read("kernel k[N](x : f32[N]) -> y : f32[N] { y = x }");
  toNormalForm();
  auto yield = first<dnf::YieldOp>(*dnf);
  OpBuilder b(yield);
  Value value = yield->getOperand(0);
  yield->setOperand(0, math::AtanOp::create(b, yield.getLoc(), value));
  EXPECT_THAT(compareUses(), HasSubstr("ψ-reduction has given y another meaning: an operation of its "
                                       "normal form is unknown"));
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

static constexpr StringRef product = "kernel k[N, M; D = 8](x : f32[N, D], y : f32[M, D]) -> z : f32[N, M] "
                                     "{ z = x +.* transpose(y) }";

/// Replaces the indices of a load or store, which are over its terms $0, $1, ….
template <typename OpT> static void setIndices(OpT op, std::initializer_list<StringRef> texts) {
  std::vector<onf::Subscript> axes;
  for (StringRef text : texts)
    axes.push_back(*onf::Subscript::get(*SymExpr::parse(text)));
  op.setSubscriptsAttr(onf::SubscriptsAttr::get(op.getContext(), axes));
}

TEST_F(Mutants, RightAddressesPass) {
  read(product);
  toLoops();
  EXPECT_EQ(compareAddresses(), "");
}

TEST_F(Mutants, StridesExchanged) {
  read(product);
  toLoops();
  auto load = first<onf::LoadOp>(*onf);
  ASSERT_TRUE(load);
  setIndices(load, {"$1", "$0"});
  EXPECT_THAT(compareAddresses(), HasSubstr("by its address, which its normal form does not"));
}

TEST_F(Mutants, AddressMoved) {
  read(product);
  toLoops();
  setIndices(first<onf::LoadOp>(*onf), {"$0 + 1", "$1"});
  EXPECT_THAT(compareAddresses(), HasSubstr("reads x[n + 1, k] by its address"));
}

TEST_F(Mutants, StrideTwice) {
  read(product);
  toLoops();
  setIndices(first<onf::LoadOp>(*onf), {"$0", "2*$1"});
  EXPECT_THAT(compareAddresses(), HasSubstr("reads x[n, 2*k] by its address"));
}

TEST_F(Mutants, StrideAsFactor) {
  read(product);
  toLoops();
  setIndices(first<onf::LoadOp>(*onf), {"$0", "$1*y.s1"});
  EXPECT_THAT(compareAddresses(), HasSubstr("reads x[n, k*y.s1] by its address"));
}

TEST_F(Mutants, StoreOmitted) {
  read(product);
  toLoops();
  first<onf::StoreOp>(*onf).erase();
  EXPECT_THAT(compareAddresses(), HasSubstr("output z is stored at 0 places"));
}

TEST_F(Mutants, StoredTwice) {
  read(product);
  toLoops();
  auto store = first<onf::StoreOp>(*onf);
  OpBuilder(store).clone(*store);
  EXPECT_THAT(compareAddresses(), HasSubstr("output z is stored at 2 places"));
}

TEST_F(Mutants, StoredAcross) {
  read(product);
  toLoops();
  setIndices(first<onf::StoreOp>(*onf), {"$1", "$0"});
  EXPECT_THAT(compareAddresses(),
              HasSubstr(", which is not every element once: axis 0 needs the index of a loop over N "
                        "of its own"));
}

TEST_F(Mutants, StoredForEveryIndexOfALoop) {
  read("kernel k[N, M](x : f32[N, M]) -> z : f32[N, M] { z = x }");
  toLoops();
  setIndices(first<onf::StoreOp>(*onf), {"$0", "0"});
  EXPECT_THAT(compareAddresses(), HasSubstr("which is not every element once"));
}

TEST_F(Mutants, ReadLeftOut) {
  read(product);
  toLoops();
  auto load = first<onf::LoadOp>(*onf);
  OpBuilder b(load);
  load.replaceAllUsesWith(arith::ConstantOp::create(b, load.getLoc(), b.getFloatAttr(load.getType(), 1)).getResult());
  load.erase();
  EXPECT_THAT(compareAddresses(), HasSubstr("reads x[n, k] in its normal form, but no address does"));
}

TEST_F(Mutants, FoldOverAnotherRange) {
  read(product);
  toLoops();
  first<onf::FoldOp>(*onf).setExtent(7);
  EXPECT_THAT(compareAddresses(), HasSubstr("by its address, which its normal form does not"));
}

//===----------------------------------------------------------------------===//
// Lifting
//===----------------------------------------------------------------------===//

TEST_F(Mutants, LiftingOfAnotherRange) {
  read(product);
  toLoops();
  auto lifted = run(*onf, createLiftPass());
  auto fold = first<onf::FoldOp>(*lifted);
  Validator validator(&context);
  EXPECT_TRUE(succeeded(validator.checkLifting(kernelOf<onf::KernelOp>(onf), kernelOf<onf::KernelOp>(lifted))));
  fold.setExtent(SymExpr::symbol("M"));
  EXPECT_TRUE(mlir::failed(validator.checkLifting(kernelOf<onf::KernelOp>(onf), kernelOf<onf::KernelOp>(lifted))));
  EXPECT_THAT(messages, HasSubstr("lifting has changed more than the order of 'k': step "));
  EXPECT_THAT(messages, HasSubstr(" is another one"));
}

TEST_F(Mutants, LiftingWithoutTheGuard) {
  read("kernel k[N, M](x : f32[N, M]) -> y : f32[N] { y = +/ mask([i, j] j <= i, x) }");
  toLoops();
  auto lifted = run(*onf, createLiftPass());
  first<onf::GuardOp>(*lifted).erase();
  Validator validator(&context);
  EXPECT_TRUE(mlir::failed(validator.checkLifting(kernelOf<onf::KernelOp>(onf), kernelOf<onf::KernelOp>(lifted))));
  EXPECT_THAT(messages, HasSubstr("lifting has changed more than the order of 'k'"));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static constexpr StringRef weights =
    "kernel k[N, M; D = 8](q : f32[N, D], k : f32[M, D], v : f32[M, D]) -> o : f32[N, D]\n"
    "  require N <= M {\n"
    "  o = softmax(mask([i, j] j <= i + (M - N), q +.* transpose(k))) +.* v\n"
    "}";

/// The first repair, whose state must follow the maximum.
static onf::YieldOp repairOf(ModuleOp module) {
  onf::YieldOp found;
  module.walk([&](onf::AccOp acc) {
    if (!found && !acc.getRepair().empty())
      found = cast<onf::YieldOp>(acc.getRepair().front().back());
  });
  return found;
}

TEST_F(Mutants, RightValuesPass) {
  read(weights);
  toLoops();
  EXPECT_EQ(compareValues(lift()), "");
}

TEST_F(Mutants, RepairForgotten) {
  read(weights);
  toLoops();
  onf::YieldOp yield = repairOf(*onf);
  ASSERT_TRUE(yield);
  OpBuilder b(yield);
  Type type = yield.getValues()[0].getType();
  yield->setOperand(0, arith::ConstantOp::create(b, yield.getLoc(), FloatAttr::get(type, 1.0)));
  std::string message = compareValues(lift());
  EXPECT_THAT(message, HasSubstr("the folds of 'k' do not compute the specified values: o["));
  EXPECT_THAT(message, HasSubstr("with M = "));
  EXPECT_THAT(message, HasSubstr(", but they give "));
  EXPECT_THAT(message, HasSubstr("; this is an error of the compiler, not of the specification"));
}

TEST_F(Mutants, RepairTurned) {
  read(weights);
  toLoops();
  onf::YieldOp yield = repairOf(*onf);
  auto difference = first<arith::SubFOp>(yield->getParentOp());
  yield->getParentRegion()->walk([&](arith::SubFOp op) { difference = op; });
  Value left = difference.getLhs();
  difference.getLhsMutable().assign(difference.getRhs());
  difference.getRhsMutable().assign(left);
  EXPECT_THAT(compareValues(lift()), HasSubstr("the folds of 'k' do not compute"));
}

TEST_F(Mutants, AnotherTerm) {
  read("kernel k[N](x : f32[N]) -> y : f32[] { y = (+/ (x * x)) / f32(N) }");
  toLoops();
  auto multiplication = first<arith::MulFOp>(*onf);
  ASSERT_TRUE(multiplication);
  OpBuilder b(multiplication);
  multiplication.getResult().replaceAllUsesWith(
      arith::AddFOp::create(b, multiplication.getLoc(), multiplication.getLhs(), multiplication.getRhs()));
  EXPECT_THAT(compareValues(lift()), HasSubstr("the folds of 'k' do not compute"));
}

TEST_F(Mutants, AnotherMonoid) {
  read("kernel k[N, M](x : f32[N, M]) -> y : f32[N] { y = max/ x }");
  toLoops();
  first<onf::AccOp>(*onf).setMonoid(Monoid::min);
  EXPECT_THAT(compareValues(lift()), HasSubstr("the folds of 'k' do not compute"));
}

/// An interval that leaves out the last key that a tile of rows sees.
TEST_F(Mutants, IntervalTooShort) {
  read(weights);
  toLoops();
  auto lifted = lift();
  onf::FoldOp masked;
  lifted->walk([&](onf::FoldOp fold) { masked = fold.getPieces() ? fold : masked; });
  ASSERT_TRUE(masked);
  SmallVector<Attribute> pieces;
  for (auto piece : masked.getPieces()->getAsRange<onf::PieceAttr>()) {
    SmallVector<AffineExpr> upper;
    for (AffineExpr bound : piece.getVisitUpper().getResults())
      upper.push_back(bound - 1);
    AffineMap map = piece.getVisitUpper();
    pieces.push_back(onf::PieceAttr::get(&context, piece.getVisitLower(),
                                         AffineMap::get(map.getNumDims(), map.getNumSymbols(), upper, &context),
                                         piece.getFullLower(), piece.getFullUpper(), piece.getFull()));
  }
  masked.setPiecesAttr(ArrayAttr::get(&context, pieces));
  EXPECT_THAT(compareValues(std::move(lifted)), HasSubstr("the lifted loops of 'k' do not compute"));
}

/// What rounding decides is no difference: R1 makes both sides of this comparison the same,
/// and as they are written their last bits differ.
TEST_F(Mutants, RoundingIsNoDifference) {
  read("kernel k[N, M](x : f64[N, M], s : f64) -> y : f64[N] {\n"
       "  y = [i] select(+/ (x[i] * s) >= s * (+/ x[i]), 1.0, 0.0)\n"
       "}");
  toLoops();
  EXPECT_EQ(compareValues(lift()), "");
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

TEST_F(Mutants, IndexBeyondItsAxis) {
  read("kernel k[N](x : f32[N]) -> y : f32[N] { y = [i] x[i + 1] }");
  toNormalForm();
  Validator validator(&context);
  EXPECT_TRUE(mlir::failed(validator.checkBounds(kernelOf<dnf::KernelOp>(dnf))));
  EXPECT_THAT(messages, HasSubstr("index i + 1 may be outside of axis 0 of x, whose extent is N"));
  EXPECT_THAT(messages, HasSubstr("i + 1 < N could not be shown"));
}

} // namespace

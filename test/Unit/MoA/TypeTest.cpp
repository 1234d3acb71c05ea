//===- TypeTest.cpp - array types that text cannot spell ------------------===//
#include "dialects/MoA/IR/MoA.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace moa;

namespace {

/// The parser brings extents into canonical form; who builds a type must.
TEST(ArrayTypeTest, ExtentsAreCanonical) {
  MLIRContext context;
  context.loadDialect<MoADialect>();
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  Builder b(&context);
  auto emitError = [&] { return mlir::emitError(b.getUnknownLoc()); };
  auto make = [&](StringRef extent) {
    message.clear();
    SmallVector<StringAttr> shape = {b.getStringAttr(extent)};
    return ArrayType::getChecked(emitError, &context, ArrayRef<StringAttr>(shape), Type(b.getF32Type()));
  };
  EXPECT_TRUE(make("M + N"));
  EXPECT_FALSE(make("N + M"));
  EXPECT_EQ(message, "expects extents in canonical form (C1), but got 'N + M'");
  EXPECT_FALSE(make("2*"));
  EXPECT_EQ(message, "expects extents in canonical form (C1), but got '2*'");
}

} // namespace

//===- SignatureTest.cpp - signatures, bindings and headers ---------------===//

#include "lib/Target/Signature.h"
#include "dialects/MoA/IR/MoA.h"
#include "lib/Target/CPU/EntryPoints.h"
#include "lib/Target/GPU/Header.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"

using namespace moa;
using testing::HasSubstr;
using testing::Not;

namespace {

/// A kernel with one input of each given type and one output.
class Signatures : public testing::Test {
protected:
  Signatures() { context.loadDialect<MoADialect>(); }

  llvm::Expected<KernelSignature> read(std::string symbols, std::vector<std::string> inputs,
                                       std::string constraints = "") {
    std::string names, arguments;
    for (size_t k = 0; k < inputs.size(); ++k) {
      std::string comma = k ? ", " : "", name = "a" + std::to_string(k);
      names += comma + "\"" + name + "\"";
      arguments += comma + "%" + name + ": !moa.array<" + inputs[k] + ">";
    }
    std::string text = "moa.kernel @f attributes {symbols = [" + symbols + "], requires = [" + constraints +
                       "], arg_names = [" + names +
                       "], result_names = [\"r\"], result_types = "
                       "[!moa.array<" +
                       inputs[0] + ">]} {\n^bb0(" + arguments + "):\n  moa.return %a0 : !moa.array<" + inputs[0] +
                       ">\n}";
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return llvm::createStringError("the test's text does not parse");
    return getSignature(&module->getBody()->front());
  }
  std::string error(llvm::Expected<KernelSignature> signature) {
    return signature ? "" : llvm::toString(signature.takeError());
  }
  static std::string bindings(const KernelSignature &signature) {
    std::string text;
    for (const SymbolBinding &binding : signature.bindings)
      text += binding.name + " = " + binding.value.str() + "; ";
    return text;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(Signatures, SymbolsComeFromTheShapes) {
  auto signature = read(R"("N", "M")", {"[N, M], f32", "[M, 4], bf16"});
  ASSERT_TRUE(bool(signature)) << llvm::toString(signature.takeError());
  EXPECT_EQ(bindings(*signature), "N = a0.shape[0]; M = a0.shape[1]; ");
  EXPECT_EQ(signature->getText(), "f(a0 : f32[N, M], a1 : bf16[M, 4]) -> (r : f32[N, M])");
}

TEST_F(Signatures, LinearExtentsAreSolved) {
  auto signature = read(R"("M", "N")", {"[\"M + N\"], f32", "[N], f32"});
  ASSERT_TRUE(bool(signature)) << llvm::toString(signature.takeError());
  EXPECT_THAT(bindings(*signature), HasSubstr("N = a1.shape[0]; M = "));
  auto scaled = read(R"("N")", {"[\"2*N\"], f32"});
  ASSERT_TRUE(bool(scaled)) << llvm::toString(scaled.takeError());
  EXPECT_EQ(scaled->bindings.size(), 1u);
}

TEST_F(Signatures, UndeterminedSymbolsAreErrors) {
  EXPECT_THAT(error(read(R"("H", "G")", {"[\"H/G\"], f32", "[G], f32"})),
              HasSubstr("the value of 'H' does not follow"));
}

TEST_F(Signatures, Constraints) {
  auto signature = read(R"("H", "G")", {"[H, G], f32"}, R"("H%G == 0", "G <= 8", "H != 3")");
  ASSERT_TRUE(bool(signature)) << llvm::toString(signature.takeError());
  ASSERT_EQ(signature->constraints.size(), 3u);
  EXPECT_EQ(signature->constraints[0].relation, 0);
  EXPECT_EQ(signature->constraints[1].relation, 3);
  EXPECT_EQ(signature->constraints[2].relation, 1);
  EXPECT_EQ(signature->constraints[1].lhs.str(), "G");
}

TEST_F(Signatures, HeaderDeclaresTheEntryPoints) {
  auto signature = read(R"("N")", {"[N], f32", "[], i1", "[N], i1", "[], bf16"});
  ASSERT_TRUE(bool(signature)) << llvm::toString(signature.takeError());
  cpu::Processor processor{"abacus", {}};
  for (int k = 0; k < 20; ++k)
    processor.features.push_back({"beads", 7, 0, 0, 0, 0});
  std::string header = cpu::printHeader({*signature}, "GUARD_H", processor);
  EXPECT_THAT(header, HasSubstr(" * Compiled for the processor abacus. "));
  EXPECT_THAT(header, HasSubstr("int32_t f(const DLTensor *a0, const DLTensor *a2, bool "
                                "a1, float a3,\n          const DLTensor *r, void "
                                "*workspace, size_t bytes, void *stream);"));
  EXPECT_THAT(header, HasSubstr("int32_t f_prepare(int32_t device);"));
  EXPECT_THAT(header, HasSubstr(" *   in  a2 : bool[N]\n"));
  // That of a GPU declares the same, with notes of its own.
  std::string gpuHeader = gpu::printHeader({*signature}, "GUARD_H");
  EXPECT_THAT(gpuHeader, HasSubstr("by MoA for GPUs"));
  EXPECT_THAT(gpuHeader, Not(HasSubstr("Compiled for the processor")));
  llvm::StringRef declared = header, same = gpuHeader;
  size_t guard = declared.find("#ifndef GUARD_H");
  ASSERT_NE(guard, llvm::StringRef::npos);
  EXPECT_EQ(declared.substr(guard), same.substr(same.find("#ifndef GUARD_H")));
  std::string both = header + gpuHeader;
  for (llvm::StringRef rest = both; !rest.empty();) {
    auto [line, more] = rest.split('\n');
    EXPECT_LE(line.contains("kernel f(") ? 0 : line.size(), 80u) << line.str();
    rest = more;
  }
}

} // namespace

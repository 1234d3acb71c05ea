//===- RoundingErrorBounds.cpp - error bounds for passes ------------------===//
#include "lib/Accuracy/Bounds/RoundingErrorBounds.h"
#include "dialects/MoA/IR/MoA.h"
#include "lib/Accuracy/Bounds/RoundingErrorImpl.h"
#include "lib/Accuracy/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace moa {
#define GEN_PASS_DEF_BOUNDERRORSPASS
#include "lib/Accuracy/AccuracyPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;

namespace {
/// The inputs read by contractions of two inputs (`scores`) and of one input (`sums`).
struct InputClasses {
  std::set<std::string> scores, sums;
  FormatAssignment halves, split; ///< for every operand
  bool areApart = true;
};
} // namespace

static InputClasses classify(llvm::ArrayRef<ContractionOperand> operands) {
  InputClasses classes;
  const OperandFormat *scaled = lookupOperandFormat("fp16p"), *wide = lookupOperandFormat("bf16");
  const OperandFormat *scaledPair = lookupOperandFormat("fp16x2"), *widePair = lookupOperandFormat("bf16x2");
  for (unsigned k = 0; k + 1 < operands.size(); k += 2) {
    const ContractionOperand *pair[] = {&operands[k], &operands[k + 1]};
    bool isScore = !pair[0]->isComputed && !pair[1]->isComputed;
    classes.areApart &= !pair[0]->isComputed || !pair[1]->isComputed;
    for (const ContractionOperand *operand : pair) {
      classes.halves[operand->name] = isScore ? scaled : wide;
      classes.split[operand->name] = isScore ? scaledPair : widePair;
      if (operand->isComputed)
        continue;
      // No name: selected among several inputs.
      classes.areApart &= !operand->array.empty();
      (isScore ? classes.scores : classes.sums).insert(operand->array);
    }
  }
  for (const std::string &array : classes.scores)
    classes.areApart &= !classes.sums.count(array);
  return classes;
}

llvm::json::Value RoundingErrorAnalysis::boundsToJSON() const {
  auto indexName = [&](int number) { return impl->indexName(number); };
  ErrorExprText text(indexName);
  llvm::json::Array atoms, results;
  std::set<unsigned> listed;
  auto write = [&](unsigned result, const FormatAssignment &formats) {
    ErrorBound bound = this->bound(result, formats);
    llvm::json::Array facts;
    llvm::json::Object object;
    for (const ErrorFact &fact : bound.facts)
      if (fact.value)
        facts.push_back(llvm::json::Object{{"value", text.toJSON(*fact.value, atoms, listed)}, {"limit", fact.limit}});
      else
        object["assumes"] = fact.text;
    object["relative"] = text.toJSON(bound.relative, atoms, listed);
    object["absolute"] = text.toJSON(bound.absolute, atoms, listed);
    object["facts"] = std::move(facts);
    return object;
  };
  InputClasses classes = classify(operands());
  FormatAssignment wide, widePairs;
  for (const ContractionOperand &operand : operands()) {
    wide[operand.name] = lookupOperandFormat("bf16");
    widePairs[operand.name] = lookupOperandFormat("bf16x2");
  }
  unsigned number = 0;
  for (auto output : impl->context.kernel.getBody().getOps<dnf::OutputOp>()) {
    llvm::json::Array indices;
    for (StringRef name : output.getNames().getAsValueRange<StringAttr>())
      indices.push_back(name);
    llvm::json::Object result{{"result", impl->resultList[number].name}, {"indices", std::move(indices)}};
    result["written"] = write(number, {});
    if (classes.areApart) {
      result["halves"] = write(number, classes.halves);
      result["split"] = write(number, classes.split);
    }
    result["bf16"] = write(number, wide);
    result["bf16x2"] = write(number, widePairs);
    results.push_back(std::move(result));
    ++number;
  }
  return llvm::json::Object{{"scores", llvm::json::Array(classes.scores)},
                            {"sums", llvm::json::Array(classes.sums)},
                            {"atoms", std::move(atoms)},
                            {"results", std::move(results)}};
}

bool moa::usesF64(Operation *kernel) {
  return kernel
      ->walk([](Operation *op) {
        bool isDouble = llvm::any_of(op->getResultTypes(), [](Type type) { return type.isF64(); });
        return isDouble ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

void moa::setBounds(dnf::KernelOp kernel, Operation *on) {
  bool isAsked = false;
  for (unsigned k = 0; k < kernel.getResultNames().size(); ++k)
    if (WithinAttr within = getWithin(kernel, k))
      isAsked |= !within.getTolerance().isSampled && !within.getTolerance().isRelative;
  if (!isAsked || usesF64(kernel))
    return;
  std::string text = llvm::formatv("{0}", RoundingErrorAnalysis::create(kernel).boundsToJSON());
  on->setAttr(kBoundsAttr, StringAttr::get(kernel.getContext(), text));
}

namespace {
struct BoundErrorsPass final : moa::impl::BoundErrorsPassBase<BoundErrorsPass> {
  using Base::Base;
  void runOnOperation() override {
    getOperation()->walk([](dnf::KernelOp kernel) { setBounds(kernel, kernel); });
  }
};
} // namespace

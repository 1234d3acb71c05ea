//===- Explain.cpp - the derivation of every kernel as text ---------------===//
#include "lib/Analysis/ArrayText.h"
#include "lib/Analysis/MathText.h"
#include "lib/Compiler/CompilationImpl.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace moa {

/// Prints every named array, and the results, in the operators of the language.
static void printArrays(KernelOp kernel, llvm::raw_ostream &os) {
  Block &body = kernel.getBody().front();
  ArrayText text(body, kernel.getArgNames());
  for (Operation &op : body.without_terminator())
    if (StringRef name = text.name(op.getResult(0)); !name.empty())
      os << "  " << name << " = " << text.definition(op.getResult(0)).text << "\n";
  auto values = cast<ReturnOp>(body.getTerminator()).getValues();
  for (auto [value, result] : llvm::zip(values, kernel.getResultNames().getAsValueRange<StringAttr>()))
    if (text.name(value) != result)
      os << "  " << result << " = " << text.of(value).text << "\n";
}

static void printFactors(llvm::ArrayRef<AxisSchedule> axes, StringRef what, llvm::raw_ostream &os) {
  for (const AxisSchedule &axis : axes) {
    os << "  " << what << " " << axis.name << ":";
    llvm::ListSeparator times(" ×");
    for (auto [resource, size] : axis.factors) {
      os << times << " " << onf::stringifyResource(resource);
      if (size)
        os << " " << size;
    }
    os << "\n";
  }
}

static void printScheduleLines(const Schedule &schedule, llvm::raw_ostream &os) {
  for (const NestSchedule &nest : schedule.nests) {
    printFactors(nest.axes, "axis", os);
    printFactors(nest.folds, "fold", os);
    if (!nest.pipeline)
      continue;
    const PipelineSchedule &pipeline = *nest.pipeline;
    os << "  pipeline: " << pipeline.consumerRegisters << " registers per thread that computes, "
       << pipeline.producerRegisters << " per thread that copies"
       << (pipeline.overlap ? "; products overlap the states of the next tile" : "")
       << (pipeline.holdsRows ? "; rows are held in registers" : "")
       << (pipeline.takesTurns ? "; warpgroups take turns" : "");
    if (pipeline.shares)
      os << "; the last blocks are shared among " << pipeline.shares << " multiprocessors";
    os << "\n";
  }
}

static void printSection(StringRef heading, StringRef text, llvm::raw_ostream &os) {
  if (!text.empty())
    os << "\n" << heading << "\n\n" << text;
}

static bool explainKernel(Compilation::Impl &compilation, unsigned index, llvm::raw_ostream &os) {
  const std::string &name = compilation.infos[index].name;
  os << "kernel " << compilation.infos[index].text << "\n";
  Level entry = compilation.getEntryLevel();
  Operation *lifted = compilation.getKernelOp(name, Level::Lifted);
  if (!lifted)
    return false;
  std::string text;
  llvm::raw_string_ostream part(text);
  auto flush = [&](StringRef heading) {
    printSection(heading, text, os);
    text.clear();
  };
  if (entry == Level::MoA)
    printArrays(cast<KernelOp>(compilation.getKernelOp(name, Level::MoA)), part);
  flush("Arrays, with the functions they call written out");
  part << compilation.psiTrace.print(name);
  flush("ψ-reduction, by the laws of docs/Spec.md, sections 3 and 4, from the outputs inward");
  if (entry <= Level::DNF)
    part << printMathematics(compilation.getKernelOp(name, Level::DNF));
  flush("Denotational normal form");
  part << compilation.foldTrace.print(name);
  flush("Fusion, by the rules R0 to R7 of docs/Spec.md, section 6");
  if (entry <= Level::ONF)
    part << printMathematics(compilation.getKernelOp(name, Level::ONF));
  flush("Operational normal form");
  for (const std::string &line : compilation.describePlanLaws(index))
    part << "  " << line << "\n";
  flush("Accuracy that may be spent, by the laws of docs/Accuracy/Bounds.md, section 3, and "
        "docs/Accuracy/LowRank.md, section 2");
  part << printIntervals(lifted);
  flush("Masks as intervals, for a tile of rows");
  if (const std::vector<Schedule> *schedules = entry < Level::Lifted ? compilation.getSchedules() : nullptr) {
    printScheduleLines((*schedules)[index], part);
    flush(("Schedule for " + llvm::Twine((*schedules)[index].machine) +
           ", the factors of each axis from the outermost in")
              .str());
  }
  return true;
}

std::optional<std::string> Compilation::explain() {
  if (!impl->isOpen())
    return std::nullopt;
  if (!impl->options.explain) {
    impl->log.addQueryError("the derivation was not recorded; set CompilerOptions::explain");
    return std::nullopt;
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  for (unsigned index = 0; index < impl->infos.size(); ++index) {
    os << (index ? "\n" : "");
    if (!explainKernel(*impl, index, os))
      return std::nullopt;
  }
  return text;
}

} // namespace moa

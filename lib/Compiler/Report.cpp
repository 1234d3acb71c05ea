//===- Report.cpp - the compilation report --------------------------------===//

#include "dialects/ONF/IR/ONF.h"
#include "lib/Accuracy/Bounds/RoundingError.h"
#include "lib/Analysis/DataMovement.h"
#include "lib/Analysis/Recomputation.h"
#include "lib/Compiler/CompilationImpl.h"
#include "lib/Target/GPU/Launch.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <set>

using namespace mlir;

namespace moa {

namespace {
struct NestSummary {
  struct Range {
    std::string name, extent;
    unsigned states = 0; ///< of a fold
  };
  std::vector<Range> loops, folds;
};

/// The accuracy of one result: its tolerance, and the variants that use it.
struct Accuracy {
  std::string result;
  Tolerance allowed;
  std::vector<std::string> leading; ///< extents of the axes that a relative error is per
  std::vector<std::string> spent;   ///< one line per mixed-precision variant
};

struct KernelReport {
  std::string name, signature;
  std::vector<Accuracy> accuracy; ///< of the results that have a tolerance
  std::optional<DataMovementReport> movement;
  std::vector<NestSummary> nests;
  std::vector<Recomputed> recomputed;
  int64_t scratchBytes = 0;
  std::vector<std::string> sharedBytes;    ///< of nests that are split over cores
  std::vector<gpu::WorkspaceArray> arrays; ///< of the workspace, without threads' scratch memory
  bool isForGPU = false;
  std::string schedule;
  std::vector<Fact> facts;
  /// Bounds on rounding errors, if the kernel has a dnf level.
  std::optional<RoundingErrorAnalysis> errors;
};
} // namespace

static std::vector<NestSummary> summariseNests(onf::KernelOp kernel) {
  std::vector<NestSummary> nests;
  for (onf::ForOp nest : kernel.getBody().getOps<onf::ForOp>()) {
    NestSummary summary;
    for (auto [name, extent] :
         llvm::zip(nest.getNames().getAsValueRange<StringAttr>(), nest.getExtents().getAsValueRange<ExprAttr>()))
      summary.loops.push_back({name.str(), extent.str()});
    for (onf::FoldOp fold : nest.getBody().getOps<onf::FoldOp>())
      summary.folds.push_back({fold.getName().str(), fold.getExtent().str(), fold.getNumResults()});
    nests.push_back(std::move(summary));
  }
  return nests;
}

static std::vector<Accuracy> findAccuracy(const KernelSignature &signature) {
  std::vector<Accuracy> list;
  for (const Parameter &parameter : signature.parameters) {
    if (!parameter.within)
      continue;
    Accuracy entry{parameter.name, *parameter.within, {}, {}};
    for (const SymExpr &extent :
         llvm::ArrayRef(parameter.extents).drop_back(std::min<size_t>(2, parameter.extents.size())))
      entry.leading.push_back(extent.str());
    list.push_back(std::move(entry));
  }
  return list;
}

static std::string becauseOf(const Fact &fact) {
  std::string text = getName(fact.status).str();
  if (!fact.because.empty())
    text += " (" + llvm::join(fact.because, "; ") + ")";
  return text;
}

/// Gathers the report of one kernel. Returns nothing after an error.
static std::optional<KernelReport> analyse(Compilation::Impl &compilation, unsigned index) {
  KernelReport report;
  report.name = compilation.infos[index].name;
  report.signature = compilation.infos[index].text;
  report.accuracy = findAccuracy(compilation.signatures[index]);
  for (Accuracy &entry : report.accuracy) {
    unsigned result = 0;
    for (const Parameter &parameter : compilation.signatures[index].parameters) {
      if (parameter.isOutput && parameter.name == entry.result)
        entry.spent = compilation.describePlans(index, result);
      result += parameter.isOutput;
    }
  }
  if (compilation.getEntryLevel() == Level::MoA)
    report.movement = analyzeDataMovement(cast<KernelOp>(compilation.getKernelOp(report.name, Level::MoA)));
  Operation *lifted = compilation.getKernelOp(report.name, Level::Lifted);
  if (!lifted)
    return std::nullopt;
  report.nests = summariseNests(cast<onf::KernelOp>(lifted));
  // A statement that holds under several conditions is one fact.
  std::set<std::string> known;
  for (const Fact &fact : compilation.getFacts(index))
    if (known.insert((getName(fact.kind) + fact.subject + fact.statement + becauseOf(fact)).str()).second)
      report.facts.push_back(fact);
  if (compilation.getEntryLevel() <= Level::DNF)
    if (Operation *definitions = compilation.getKernelOp(report.name, Level::DNF))
      report.errors = RoundingErrorAnalysis::create(cast<dnf::KernelOp>(definitions));
  report.recomputed = findRecomputed(cast<onf::KernelOp>(lifted));
  if (compilation.getEntryLevel() < Level::Lifted)
    report.schedule = printSchedule((*compilation.getSchedules())[index]);
  // A GPU kernel has no scratch memory, only arrays in its workspace.
  report.isForGPU = !compilation.options.architecture.empty();
  if (report.isForGPU) {
    Operation *program = compilation.getKernelOp(report.name, Level::Device);
    if (!program)
      return std::nullopt;
    report.arrays = gpu::getWorkspace(cast<device::ProgramOp>(program));
    return report;
  }
  ModuleOp module = compilation.getKernelModule(index, Level::Vector);
  if (!module)
    return std::nullopt;
  if (auto bytes = module->getAttrOfType<IntegerAttr>("moa.scratch_bytes"))
    report.scratchBytes = bytes.getInt();
  auto temporaries = getTemporaries(module);
  if (!temporaries)
    return llvm::consumeError(temporaries.takeError()), std::nullopt;
  for (const Parameter &temporary : *temporaries) {
    SymExpr bytes(getBits(temporary.type) / 8);
    for (const SymExpr &extent : temporary.extents)
      bytes = bytes * extent;
    report.arrays.push_back({temporary});
    report.arrays.back().bytes = bytes;
  }
  if (auto shared = module->getAttrOfType<ArrayAttr>("moa.shared"))
    for (StringRef text : shared.getAsValueRange<StringAttr>())
      report.sharedBytes.push_back(text.str());
  return report;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static void printNest(llvm::raw_ostream &os, const NestSummary &nest, unsigned number) {
  os << "  nest " << number << ": for";
  llvm::interleave(nest.loops, os, [&](const auto &loop) { os << " " << loop.name << " < " << loop.extent; }, ",");
  os << (nest.loops.empty() ? " one element; " : "; ") << nest.folds.size()
     << (nest.folds.size() == 1 ? " pass" : " passes");
  llvm::interleave(
      nest.folds, os,
      [&](const auto &fold) {
        os << (&fold == &nest.folds.front() ? ": " : "") << fold.name << " < " << fold.extent << " (" << fold.states
           << (fold.states == 1 ? " state)" : " states)");
      },
      ", ");
  os << "\n";
}

/// Prints the number of facts of each status, and the facts that rest on more than a proof.
static void printFacts(llvm::raw_ostream &os, ArrayRef<Fact> facts) {
  if (facts.empty())
    return;
  std::map<Fact::Status, unsigned> counts;
  std::set<std::string> lines;
  for (const Fact &fact : facts) {
    ++counts[fact.status];
    if (fact.status != Fact::Proved)
      lines.insert((getName(fact.kind) + " of " + fact.subject + ": " + fact.statement + ": " + becauseOf(fact)).str());
  }
  os << "\nfacts: ";
  llvm::interleave(counts, os, [&](const auto &entry) { os << entry.second << " " << getName(entry.first); }, ", ");
  os << "\n";
  for (const std::string &line : lines)
    os << "  " << line << "\n";
}

/// The confidence of a sampled tolerance (Def 31). lib/Accuracy/Selection/Decision.cpp decides with margins
/// for it.
static constexpr double kSampledConfidence = 0.95;

static void printAccuracy(llvm::raw_ostream &os, ArrayRef<Accuracy> accuracy) {
  if (!accuracy.empty())
    os << "\naccuracy\n";
  for (const Accuracy &entry : accuracy) {
    os << "  " << entry.result << ": within " << getNumberText(entry.allowed.epsilon) << ", ";
    if (entry.allowed.isRelative)
      os << "relative L2 error"
         << (entry.leading.empty() ? "" : " for each index of [" + llvm::join(entry.leading, ", ") + "]");
    else
      os << "component-wise, relative to magnitudes";
    if (entry.allowed.isSampled)
      os << "; on a sample, " << getNumberText(100 * kSampledConfidence) << " % confidence";
    else
      os << "; a priori";
    if (entry.spent.empty())
      os << "; no pass has spent accuracy";
    os << "\n";
    for (const std::string &decision : entry.spent)
      os << "    spent: " << decision << "\n";
  }
}

static void printText(llvm::raw_ostream &os, const KernelReport &report, const SymbolValues *symbols) {
  os << "kernel " << report.signature << "\n";
  if (report.movement) {
    os << "\n";
    report.movement->print(os, symbols);
  }
  os << "\nloops\n";
  for (auto [k, nest] : llvm::enumerate(report.nests))
    printNest(os, nest, k);
  if (!report.recomputed.empty())
    os << "\nrecomputed\n";
  for (const Recomputed &found : report.recomputed)
    os << "  " << found.name << ": each element " << found.times.str() << " times, " << found.where << "\n";
  printAccuracy(os, report.accuracy);
  printFacts(os, report.facts);
  if (report.isForGPU)
    os << "\nworkspace: " << gpu::getWorkspaceBytes(report.arrays).str() << " bytes\n";
  else
    os << "\nworkspace: threads * " << report.scratchBytes << " bytes" << (report.arrays.empty() ? "\n" : ", and\n");
  for (const gpu::WorkspaceArray &array : report.arrays)
    os << "  " << array.name << ": " << array.bytes.str() << "\n";
  for (const std::string &text : report.sharedBytes)
    os << "  and for parts of the range, " << text << "\n";
  if (!report.schedule.empty())
    os << "\nschedule\n" << report.schedule << "\n";
  if (report.errors) {
    os << "\nerrors\n";
    report.errors->print(os);
  }
}

/// Returns true for remarks and warnings of passes.
static bool isFinding(const Diagnostic &diagnostic) {
  return diagnostic.severity == Severity::Remark || diagnostic.severity == Severity::Warning;
}

static void printRemarks(llvm::raw_ostream &os, const DiagnosticLog &log) {
  bool first = true;
  for (const Diagnostic &diagnostic : log.get()) {
    if (!isFinding(diagnostic))
      continue;
    os << (first ? "\nremarks\n" : "") << "  ";
    first = false;
    if (diagnostic.line)
      os << diagnostic.file << ":" << diagnostic.line << ":" << diagnostic.column << ": ";
    os << diagnostic.message << "\n";
    for (const Diagnostic &note : diagnostic.notes)
      os << "    " << note.message << "\n";
  }
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static llvm::json::Object toJSON(const NestSummary &nest) {
  llvm::json::Array loops, folds;
  for (const auto &loop : nest.loops)
    loops.push_back(llvm::json::Object{{"name", loop.name}, {"extent", loop.extent}});
  for (const auto &fold : nest.folds)
    folds.push_back(llvm::json::Object{{"name", fold.name}, {"extent", fold.extent}, {"states", fold.states}});
  return llvm::json::Object{{"loops", std::move(loops)}, {"passes", std::move(folds)}};
}

static llvm::json::Array toJSON(ArrayRef<Recomputed> recomputed) {
  llvm::json::Array list;
  for (const Recomputed &found : recomputed)
    list.push_back(llvm::json::Object{{"name", found.name}, {"times", found.times.str()}, {"where", found.where}});
  return list;
}

static llvm::json::Array toJSON(ArrayRef<Accuracy> accuracy) {
  llvm::json::Array list;
  for (const Accuracy &entry : accuracy) {
    llvm::json::Object object{{"result", entry.result},
                              {"epsilon", entry.allowed.epsilon},
                              {"measure", entry.allowed.isRelative ? "relative" : "component-wise"},
                              {"mode", entry.allowed.isSampled ? "sampled" : "bound"},
                              {"spent", llvm::json::Array(entry.spent)}};
    if (entry.allowed.isSampled)
      object["confidence"] = kSampledConfidence;
    list.push_back(std::move(object));
  }
  return list;
}

static llvm::json::Array toJSON(ArrayRef<Fact> facts) {
  llvm::json::Array list;
  for (const Fact &fact : facts) {
    llvm::json::Object entry{{"kind", getName(fact.kind)},
                             {"array", fact.subject},
                             {"statement", fact.statement},
                             {"status", getName(fact.status)},
                             {"because", llvm::json::Array(fact.because)}};
    if (auto place = fact.place->findInstanceOf<FileLineColLoc>()) {
      entry["file"] = place.getFilename().getValue();
      entry["line"] = place.getLine();
      entry["column"] = place.getColumn();
    }
    list.push_back(std::move(entry));
  }
  return list;
}

static llvm::json::Object toJSON(const KernelReport &report, const SymbolValues *symbols) {
  llvm::json::Array nests;
  for (const NestSummary &nest : report.nests)
    nests.push_back(toJSON(nest));
  llvm::json::Object object{{"kernel", report.name},
                            {"signature", report.signature},
                            {"nests", std::move(nests)},
                            {"recomputed", toJSON(report.recomputed)},
                            {"within", toJSON(report.accuracy)},
                            {"facts", toJSON(report.facts)},
                            {"workspace_bytes_per_thread", report.scratchBytes},
                            {"workspace_shared", llvm::json::Array(report.sharedBytes)}};
  if (report.isForGPU || !report.arrays.empty())
    object["workspace_bytes"] = gpu::getWorkspaceBytes(report.arrays).str();
  if (report.movement)
    object["data_movement"] = report.movement->toJSON(symbols);
  if (report.errors)
    object["errors"] = report.errors->toJSON();
  if (!report.schedule.empty())
    object["schedule"] = llvm::cantFail(llvm::json::parse(report.schedule));
  return object;
}

static llvm::json::Array remarksToJSON(const DiagnosticLog &log) {
  llvm::json::Array remarks;
  for (const Diagnostic &diagnostic : log.get())
    if (isFinding(diagnostic))
      remarks.push_back(llvm::json::Object{{"file", diagnostic.file},
                                           {"line", diagnostic.line},
                                           {"column", diagnostic.column},
                                           {"message", diagnostic.message}});
  return remarks;
}

/// Checks that each value is for a symbol of some kernel, and that all or no symbols have values.
static bool checkSymbols(Compilation::Impl &compilation, const SymbolValues &symbols) {
  for (const auto &[name, value] : symbols) {
    bool known = false;
    for (const KernelInfo &info : compilation.infos)
      known |= llvm::is_contained(info.symbols, name);
    if (!known) {
      compilation.log.addQueryError("no kernel has a symbol '" + name + "'");
      return false;
    }
  }
  std::set<std::string> missing;
  for (const KernelInfo &info : compilation.infos)
    for (const std::string &name : info.symbols)
      if (!symbols.empty() && !symbols.count(name))
        missing.insert(name);
  if (missing.empty())
    return true;
  compilation.log.addQueryError("numbers need values of all symbols; there is none of " + llvm::join(missing, ", "));
  return false;
}

std::optional<std::string> printReport(Compilation::Impl &compilation, ReportFormat format,
                                       const SymbolValues &values) {
  if (!checkSymbols(compilation, values))
    return std::nullopt;
  const SymbolValues *symbols = values.empty() ? nullptr : &values;
  std::vector<KernelReport> reports;
  for (unsigned k = 0; k < compilation.infos.size(); ++k) {
    std::optional<KernelReport> report = analyse(compilation, k);
    if (!report)
      return std::nullopt;
    reports.push_back(std::move(*report));
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  if (format == ReportFormat::Text) {
    for (const KernelReport &report : reports)
      printText(os, report, symbols);
    printRemarks(os, compilation.log);
    return text;
  }
  llvm::json::Array kernels;
  for (const KernelReport &report : reports)
    kernels.push_back(toJSON(report, symbols));
  os << llvm::formatv("{0:2}", llvm::json::Value(llvm::json::Object{{"kernels", std::move(kernels)},
                                                                    {"remarks", remarksToJSON(compilation.log)}}))
     << "\n";
  return text;
}

} // namespace moa

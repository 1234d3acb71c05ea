//===- RoundingErrorReport.cpp - bounds as text and JSON ------------------===//
#include "lib/Accuracy/Bounds/RoundingErrorImpl.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace moa;

static std::string formatUnit(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g", value);
  return text;
}

/// Prints the bound of one result, its conditions and its assumptions.
static void printBound(llvm::raw_ostream &os, const ErrorBound &bound, ErrorExprText &text, const std::string &name) {
  std::vector<ErrorExpr> parts{bound.relative, bound.absolute};
  if (bound.hasDeep) {
    parts.push_back(bound.deepRelative);
    parts.push_back(bound.deepAbsolute);
  }
  for (const ErrorFact &fact : bound.facts)
    if (fact.value)
      parts.push_back(*fact.value);
  std::vector<std::string> definitions;
  std::vector<std::string> lines = text.print(parts, definitions);
  os << "  " << name << ": E = " << lines[0] << "\n    absolute: " << lines[1] << "\n";
  unsigned next = 2;
  if (bound.hasDeep) {
    os << "    in the measure with absolute values through all contractions: E = " << lines[2]
       << "\n      absolute: " << lines[3] << "\n";
    next = 4;
  }
  for (const ErrorFact &fact : bound.facts) {
    if (fact.value)
      os << "    if " << fact.text << ": " << lines[next++] << " <= " << formatUnit(fact.limit) << "\n";
    else
      os << "    assuming that " << fact.text << "\n";
  }
  for (const std::string &reason : bound.reasons)
    os << "    infinite, " << reason << "\n";
  for (const std::string &line : definitions)
    os << "    " << line << "\n";
}

void RoundingErrorAnalysis::print(llvm::raw_ostream &os, const FormatAssignment &formats) const {
  auto indexName = [&](int number) { return impl->indexName(number); };
  for (const ContractionOperand &operand : operands()) {
    const OperandFormat *format = impl->formatOf(operand, formats);
    os << "  " << operand.name << ": " << (format ? format->name.str() : "integers")
       << (operand.isComputed ? ", computed" : "") << "\n";
  }
  for (unsigned k = 0; k < impl->resultList.size(); ++k) {
    ErrorBound bound = this->bound(k, formats);
    ErrorExprText text(indexName);
    printBound(os, bound, text, impl->resultList[k].name);
    for (const ErrorBound::Contribution &contribution : bound.contributions) {
      ErrorExprText other(indexName);
      std::vector<std::string> definitions;
      std::string without = other.print({contribution.relativeWithout}, definitions)[0];
      os << "    without " << contribution.source << ": E = " << without;
      for (const std::string &definition : definitions)
        os << ", " << definition;
      os << "\n";
    }
  }
}

llvm::json::Value RoundingErrorAnalysis::toJSON(const FormatAssignment &formats) const {
  auto indexName = [&](int number) { return impl->indexName(number); };
  ErrorExprText text(indexName);
  llvm::json::Array operandList, results, atoms;
  std::set<unsigned> listed;
  auto write = [&](const ErrorExpr &e) { return text.toJSON(e, atoms, listed); };
  for (const ContractionOperand &operand : operands()) {
    const OperandFormat *format = impl->formatOf(operand, formats);
    operandList.push_back(llvm::json::Object{
        {"name", operand.name}, {"format", format ? format->name.str() : ""}, {"computed", operand.isComputed}});
  }
  for (unsigned k = 0; k < impl->resultList.size(); ++k) {
    ErrorBound bound = this->bound(k, formats);
    llvm::json::Array contributions, facts;
    for (const ErrorBound::Contribution &contribution : bound.contributions)
      contributions.push_back(llvm::json::Object{{"source", contribution.source},
                                                 {"relative_without", write(contribution.relativeWithout)},
                                                 {"absolute_without", write(contribution.absoluteWithout)}});
    for (const ErrorFact &fact : bound.facts) {
      llvm::json::Object entry{{"text", fact.text}};
      if (fact.value) {
        entry["value"] = write(*fact.value);
        entry["limit"] = fact.limit;
      }
      facts.push_back(std::move(entry));
    }
    results.push_back(llvm::json::Object{{"result", impl->resultList[k].name},
                                         {"indices", llvm::json::Array(freeIndices(k))},
                                         {"relative", write(bound.relative)},
                                         {"absolute", write(bound.absolute)},
                                         {"deep_relative", write(bound.deepRelative)},
                                         {"deep_absolute", write(bound.deepAbsolute)},
                                         {"contributions", std::move(contributions)},
                                         {"facts", std::move(facts)},
                                         {"reasons", llvm::json::Array(bound.reasons)}});
  }
  return llvm::json::Object{{"operands", std::move(operandList)},
                            {"results", std::move(results)},
                            {"atoms", std::move(atoms)},
                            {"tiny", impl->context.rules.tinyValue}};
}

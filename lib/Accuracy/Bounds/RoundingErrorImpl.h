//===- RoundingErrorImpl.h - state of the error analysis --------*- C++ -*-===//
#ifndef MOA_ACCURACY_ROUNDINGERRORIMPL_H
#define MOA_ACCURACY_ROUNDINGERRORIMPL_H

#include "lib/Accuracy/Bounds/RoundingErrorWalk.h"

namespace moa {

struct RoundingErrorAnalysis::Impl {
  explicit Impl(dnf::KernelOp kernel) : context(kernel) {}

  /// The error of one result, in terms of parameters.
  struct Result {
    std::string name;
    ErrorValue deep, shallow;
    unsigned rounding = 0; ///< the first of two parameters: relative, absolute
    std::vector<int> free; ///< the indices that statistics keep
  };

  void run();
  void finish(Result &result, dnf::OutputOp op);
  std::vector<int> findFree(const Result &result, dnf::OutputOp op);
  ErrorExpr keep(const ErrorExpr &e, const std::vector<int> &free);
  std::vector<double> values(const FormatAssignment &formats) const;
  ErrorExpr insert(const ErrorExpr &e, const std::vector<double> &values);
  std::string indexName(int number) const;
  const OperandFormat *formatOf(const ContractionOperand &operand, const FormatAssignment &formats) const;
  void addFacts(ErrorBound &bound, const Result &result, const FormatAssignment &formats,
                const std::vector<double> &values);

  mutable ErrorContext context;
  std::vector<Result> resultList;
};

} // namespace moa

#endif // MOA_ACCURACY_ROUNDINGERRORIMPL_H

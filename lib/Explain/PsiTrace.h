//===- PsiTrace.h - ψ-reduction as text, law by law -------------*- C++ -*-===//
#ifndef MOA_EXPLAIN_PSITRACE_H
#define MOA_EXPLAIN_PSITRACE_H

#include "lib/Conversion/MoAToDNF/Observer.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <string>
#include <vector>

namespace moa {

/// Records every definition after each law that `convert-moa-to-dnf` applies.
class PsiTrace final : public PsiObserver {
public:
  void began(dnf::KernelOp kernel) final;
  void applied(llvm::StringRef law, dnf::KernelOp kernel) final;
  void tidied(llvm::StringRef what, dnf::KernelOp kernel) final;
  void ended(dnf::KernelOp kernel) final;

  /// Returns the derivation of one kernel: each definition, and below it the laws in the order of
  /// their application, each with the definition after it. Empty if no kernel of that name was
  /// reduced.
  std::string print(llvm::StringRef kernel) const;

private:
  /// The right side of a definition after a step. The first line has no step.
  struct Line {
    std::string step, text;
  };
  struct Definition {
    std::string head;
    std::vector<Line> lines;
    bool isCut = false; ///< has more steps than are kept: the last line is the end
    bool isLeft = true; ///< in the normal form
  };
  struct Kernel {
    llvm::MapVector<mlir::Operation *, Definition> definitions;
    /// How often each law was applied, and how often the text did not change.
    std::map<std::string, std::pair<unsigned, unsigned>> laws;
    std::vector<std::string> names; ///< of lets, by their number in the text
  };

  bool record(llvm::StringRef step, dnf::KernelOp kernel, bool isEnd = false);
  void printTally(const Kernel &kernel, llvm::raw_ostream &os) const;
  std::string resolve(llvm::StringRef text, const Kernel &kernel) const;

  llvm::StringMap<Kernel> kernels;
};

/// Returns a law with its number in docs/Spec.md: "P8 psi-inner".
std::string getNumberedLaw(llvm::StringRef law);

} // namespace moa

#endif // MOA_EXPLAIN_PSITRACE_H

//===- UserMonoid.h - execution of user-defined monoids ---------*- C++ -*-===//
#ifndef MOA_INTERPRETER_USERMONOID_H
#define MOA_INTERPRETER_USERMONOID_H

#include "lib/Interpreter/Scalar.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <vector>

namespace moa::interp {

/// The body of a moa.monoid as straight-line code on cells. Both forms of the body, operators on
/// arrays of rank 0 and scalar ops, give the same code.
class UserMonoid {
public:
  /// Returns null, with the reason in `why`, if the body contains an unsupported op.
  static std::shared_ptr<const UserMonoid> make(MonoidOp op, std::string &why);

  /// Computes x ⊕ y. Returns an error about the operands, or null. A value is needed only if a
  /// selection picks it.
  const char *apply(Cell x, Cell y, Cell &result) const;
  Cell getIdentity() const { return identity; }
  Form getForm() const { return form; }

private:
  struct Step {
    enum Kind { Constant, Perform, Select } kind = Perform;
    Instr instr;
    Cell constant = ofInt(0);
    unsigned operands[3] = {0, 0, 0};
    unsigned count = 0;
  };
  std::vector<Step> steps; // values 0 and 1 are x and y, step k gives value k + 2
  unsigned returned = 0;
  Cell identity = ofInt(0);
  Form form;
};

/// Returns the user-defined monoid of a reduction or a state, or null for a named monoid.
llvm::Expected<std::shared_ptr<const UserMonoid>> getUserMonoid(mlir::Operation *op);

} // namespace moa::interp

#endif // MOA_INTERPRETER_USERMONOID_H

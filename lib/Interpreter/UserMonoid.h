//===- UserMonoid.h - monoids of the specification, executed ----*- C++ -*-===//
#ifndef MOA_INTERPRETER_USERMONOID_H
#define MOA_INTERPRETER_USERMONOID_H

#include "lib/Interpreter/Scalar.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <vector>

namespace moa::interp {

/// The body of a moa.monoid as straight-line code on cells; both forms of the
/// body, operators on arrays of rank 0 and scalar ops, have the same one.
class UserMonoid {
public:
  /// Null, with the reason in `why`, if the body holds an op without meaning.
  static std::shared_ptr<const UserMonoid> make(MonoidOp op, std::string &why);

  /// x ⊕ y; returns what is wrong with the operands, or null. As everywhere,
  /// a value is needed only where a selection picks it.
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

/// The monoid that a reduction or a state names; null for a named monoid.
llvm::Expected<std::shared_ptr<const UserMonoid>> getUserMonoid(mlir::Operation *op);

} // namespace moa::interp

#endif // MOA_INTERPRETER_USERMONOID_H

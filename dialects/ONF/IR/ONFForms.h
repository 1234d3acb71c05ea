//===- ONFForms.h - the forms of GPU nests ----------------------*- C++ -*-===//
#ifndef MOA_DIALECTS_ONF_IR_ONFFORMS_H
#define MOA_DIALECTS_ONF_IR_ONFFORMS_H

#include "dialects/ONF/IR/ONF.h"

#define GET_ATTRDEF_CLASSES
#include "dialects/ONF/IR/ONFFormsAttrs.h.inc"

namespace moa::onf {

/// On a nest: its forms, as `#onf.form`, in order of preference.
inline constexpr llvm::StringLiteral kFormsAttr = "moa.forms";

/// On a lifted nest: the name of the form that its schedule has.
inline constexpr llvm::StringLiteral kFormAttr = "moa.form";

} // namespace moa::onf

#endif // MOA_DIALECTS_ONF_IR_ONFFORMS_H

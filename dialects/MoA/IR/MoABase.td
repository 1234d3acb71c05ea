//===- MoABase.td - dialect, attributes and types of moa ----*- tablegen -*-===//
//
// Values are whole arrays with symbolic shapes. There is one op per operator of the algebra.
// Numbers in brackets, [Def 3], refer to docs/Spec.md.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_MOA_IR_MOABASE_TD
#define MOA_DIALECTS_MOA_IR_MOABASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def MoA_Dialect : Dialect {
  let name = "moa";
  let summary = "Whole arrays and the operators of the Mathematics of Arrays";
  let description = [{
    Every value is an array with a symbolic shape. A scalar is an array of rank zero. An array may
    have absent elements (`moa.mask`). Point-wise operators propagate absence; reductions skip
    absent elements.
  }];
  let cppNamespace = "::moa";
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

include "dialects/MoA/IR/MoAEnums.td"

def MoA_ScalarFnAttr : EnumAttr<MoA_Dialect, MoA_ScalarFn, "fn">;
def MoA_MonoidAttr : EnumAttr<MoA_Dialect, MoA_Monoid, "monoid">;

def MoA_WithinAttr : AttrDef<MoA_Dialect, "Within"> {
  let mnemonic = "within";
  let summary = "The tolerance of a result [Def 25]";
  let description = [{
    The largest error that a result may have. `epsilon` is the bound. `relative` selects the
    relative measure; without it the measure is component-wise. `sampled` allows an estimate from
    sampled rows; without it the bound holds for every input.

        #moa.within<3.000000e-02, relative, sampled>    // within 3e-2 relative sampled

    The attribute `within` of a kernel has one entry per result: a `#moa.within`, or `unit` if the
    result may have no more error than the default numerics.

    Constraints: the tolerance is positive and finite (C1); one that is sampled is relative (C2).
  }];
  let parameters = (ins APFloatParameter<"">:$epsilon, "bool":$relative, "bool":$sampled);
  let builders = [AttrBuilder<(ins "const ::moa::Tolerance &":$tolerance)>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::moa::Tolerance getTolerance() const;
  }];
}

def MoA_ExprAttr : AttrDef<MoA_Dialect, "Expr"> {
  let mnemonic = "expr";
  let summary = "An integer expression over the kernel's symbols";
  let description = [{
    A polynomial in canonical form, so equal polynomials are the same attribute. Ops and types print
    only the text.

        #moa.expr<"M - N">
  }];
  let parameters = (ins AttrParameter<"::moa::SymExpr", "", "const ::moa::SymExpr &">:$value);
  let hasCustomAssemblyFormat = 1;
  let returnType = "const ::moa::SymExpr &";
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = "::moa::ExprAttr::get($_builder.getContext(), $0)";
  let extraClassDeclaration = [{
    using ValueType = const ::moa::SymExpr &;
  }];
}

def MoA_ExprArrayAttr : TypedArrayAttrBase<MoA_ExprAttr, "array of integer expressions">;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def MoA_ArrayType : TypeDef<MoA_Dialect, "Array"> {
  let mnemonic = "array";
  let summary = "An array with symbolic extents";
  let description = [{
    `shape` holds the extents and `elementType` the type of the elements: f64, f32, bf16, f16, i1,
    i8 … i64 or index. An extent is an integer expression over the kernel's symbols. Text other than
    a name or a number is quoted.

        !moa.array<[B, H, "H/G", 128], bf16>
  }];
  let parameters = (ins ArrayRefParameter<"::moa::ExprAttr">:$shape,
                        "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    unsigned getRank() const { return getShape().size(); }
    /// Returns the extent of one axis as an expression.
    const ::moa::SymExpr &getExtent(unsigned axis) const { return getShape()[axis].getValue(); }
    static ArrayType get(::mlir::MLIRContext *context,
                         ::llvm::ArrayRef<::moa::SymExpr> extents,
                         ::mlir::Type elementType);
    ArrayType withElementType(::mlir::Type type) const;
  }];
}

#endif // MOA_DIALECTS_MOA_IR_MOABASE_TD

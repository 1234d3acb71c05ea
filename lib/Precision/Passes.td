//===- Passes.td - passes that spend accuracy ---------------*- tablegen -*-===//
#ifndef MOA_PRECISION_PASSES_TD
#define MOA_PRECISION_PASSES_TD

include "mlir/Pass/PassBase.td"

def AdaptPrecisionPass : Pass<"onf-adapt-precision", "::mlir::ModuleOp"> {
  let summary = "Compute contractions in fewer bits where a result allows an error and it is met";
  let options = [
    Option<"decisions", "decisions", "bool", "false",
           "Two further results: the plan of each index, and what was estimated of it">,
    Option<"check", "check", "bool", "false",
           "Estimate the plans of the table too, and fall back from those that are too far off">,
    Option<"table", "table", "std::string", "\"\"",
           "Plans instead of estimates, `f.O=1,0;f.P=2`: of the nest that stores O of the kernel f, by index in row-major order">
  ];
  let dependentDialects = ["::moa::onf::ONFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

#endif // MOA_PRECISION_PASSES_TD

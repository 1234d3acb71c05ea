//===- RowReader.h - rows of an operand -------------------------*- C++ -*-===//
#ifndef MOA_ACCURACY_ROWREADER_H
#define MOA_ACCURACY_ROWREADER_H

#include "lib/Accuracy/Selection/Adapter.h"
#include <algorithm>

namespace moa::accuracy {

/// Reads the rows of an array along an axis, less their mean if there is one. Rows along `across`
/// share a scale.
struct RowReader {
  mlir::Value array;
  unsigned axis = 0;
  const Mean *mean = nullptr;
  std::optional<unsigned> across;
  llvm::SmallVector<mlir::Attribute> names, extents;
  llvm::SmallVector<mlir::Attribute> scaleNames, scaleExtents;

  ArrayType type() const { return llvm::cast<ArrayType>(array.getType()); }
  unsigned place() const { return across ? *across - (*across > axis) : 0; }
  llvm::SmallVector<mlir::Value> indicesOf(mlir::ValueRange row, mlir::Value k) const {
    llvm::SmallVector<mlir::Value> indices(row);
    indices.insert(indices.begin() + axis, k);
    return indices;
  }
  mlir::Value read(Code &at, mlir::ValueRange row, mlir::Value k) const {
    llvm::SmallVector<mlir::Value> indices = indicesOf(row, k);
    mlir::Value x = at.loadFloat(array, indices);
    if (!mean)
      return x;
    indices.erase(indices.begin() + mean->axis);
    return at.sub(x, at.loadFloat(mean->array, indices));
  }
  mlir::Value loadMean(Code &at, mlir::ValueRange others, mlir::Value k) const {
    llvm::SmallVector<mlir::Value> indices = indicesOf(withRow(others, mlir::Value()), k);
    indices.erase(indices.begin() + mean->axis);
    return at.loadFloat(mean->array, indices);
  }
  mlir::Value largestOf(Code &code, mlir::ValueRange row) const {
    return code.fold("k", type().getExtent(axis), [&](Code &at, mlir::Value k, mlir::Value &) {
      return llvm::SmallVector<Code::State>{{Monoid::max, "largest", at.absolute(read(at, row, k))}};
    })[0];
  }
  llvm::SmallVector<mlir::Value> withRow(mlir::ValueRange others, mlir::Value number) const {
    llvm::SmallVector<mlir::Value> row(others);
    row.insert(row.begin() + place(), number);
    return row;
  }
  llvm::SmallVector<mlir::Value> withoutRow(mlir::ValueRange row) const {
    llvm::SmallVector<mlir::Value> others(row);
    others.erase(others.begin() + place());
    return others;
  }
  template <typename List> List lastOf(List list) const {
    std::rotate(list.begin() + place(), list.begin() + place() + 1, list.end());
    return list;
  }
};

} // namespace moa::accuracy

#endif // MOA_ACCURACY_ROWREADER_H

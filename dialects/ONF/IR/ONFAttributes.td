//===- ONFAttributes.td - all attributes of onf -------------*- tablegen -*-===//
//
// Their definitions and their parser are in one file, their declarations in several.
//
//===----------------------------------------------------------------------===//
include "dialects/ONF/IR/ONF.td"
include "dialects/ONF/IR/ONFForms.td"

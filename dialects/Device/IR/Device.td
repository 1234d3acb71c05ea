//===- Device.td - programs for a GPU -----------------------*- tablegen -*-===//
//
// What one thread of a grid does. Scalar operations are those of arith and math,
// control flow that of scf, per-thread arrays are memrefs in the private memory
// space; this dialect adds what those do not have: kernels with their launch,
// the caller's arrays, and the coordinates of a thread.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_DEVICE_IR_DEVICE_TD
#define MOA_DIALECTS_DEVICE_IR_DEVICE_TD

include "dialects/MoA/IR/MoABase.td"

def Device_Dialect : Dialect {
  let name = "device";
  let summary = "Programs for a GPU: kernels, their launch, and what a thread does";
  let cppNamespace = "::moa::device";
  let dependentDialects = ["::moa::MoADialect"];
}

class Device_Op<string mnemonic, list<Trait> traits = []>
    : Op<Device_Dialect, mnemonic, traits>;

def Device_ProgramOp : Device_Op<"program",
    [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "One entry point: kernels that are launched one after the other";
  let description = [{
    Attributes and block arguments as for `onf.kernel`: the inputs, then the
    outputs. The body holds `device.kernel`s only, in the order of their launches;
    each starts when the one before has finished.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$symbols,
                       StrArrayAttr:$requires, StrArrayAttr:$arg_names,
                       StrArrayAttr:$result_names, TypeArrayAttr:$result_types);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Device_KernelOp : Device_Op<"kernel",
    [HasParent<"ProgramOp">, SingleBlock, NoTerminator, AutomaticAllocationScope]> {
  let summary = "What every thread of one launch does";
  let description = [{
    `device.kernel @name blocks "B*H*((N + 127)/128)" threads 128 { … }`: a grid
    of that many blocks of `threads` threads; nothing is launched when there are
    none.

    Constraints: `threads` is a multiple of 32 and at most 1024 (C1); `blocks` is
    an expression over the program's symbols (C2).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$blocks, I64Attr:$threads);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `blocks` $blocks `threads` $threads attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Device_BlockOp : Device_Op<"block", [Pure]> {
  let summary = "This block's number in the grid";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Device_ThreadOp : Device_Op<"thread", [Pure]> {
  let summary = "This thread's number in its block";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Device_SymbolOp : Device_Op<"symbol", [Pure]> {
  let summary = "An integer expression over the program's symbols and strides";
  let description = [{
    `device.symbol "2*Q.s1 + N"`; stride symbols are named `<array>.s<axis>` and
    count elements. The value is the same for all threads.
  }];
  let arguments = (ins StrAttr:$expr);
  let results = (outs Index:$result);
  let assemblyFormat = "$expr attr-dict";
  let hasVerifier = 1;
}

def Device_ScalarOp : Device_Op<"scalar", [Pure]> {
  let summary = "The value of an argument of rank zero, passed with the launch";
  let arguments = (ins MoA_ArrayType:$array);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$array attr-dict `:` type($array) `->` type($result)";
  let hasVerifier = 1;
}

def Device_LoadOp : Device_Op<"load"> {
  let summary = "One element of an input in global memory";
  let description = [{
    `offset` counts elements from the array's first one. The address lies inside
    the array. Inputs do not change during a program.
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead]>:$array, Index:$offset);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $array `[` $offset `]` attr-dict `:` type($array) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Device_StoreOp : Device_Op<"store"> {
  let summary = "Writes one element of an output, which has its element type";
  let arguments = (ins AnyType:$value, Arg<MoA_ArrayType, "", [MemWrite]>:$array,
                       Index:$offset);
  let assemblyFormat = [{
    $value `,` $array `[` $offset `]` attr-dict `:` type($value) `,` type($array)
  }];
  let hasVerifier = 1;
}

#endif // MOA_DIALECTS_DEVICE_IR_DEVICE_TD

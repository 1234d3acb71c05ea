//===- DeviceTypes.td - fragments, tiles, barriers ----------*- tablegen -*-===//
#ifndef MOA_DIALECTS_DEVICE_IR_DEVICETYPES_TD
#define MOA_DIALECTS_DEVICE_IR_DEVICETYPES_TD

include "dialects/Device/IR/DeviceBase.td"

def Device_LayoutAttr : AttrDef<Device_Dialect, "Layout"> {
  let mnemonic = "layout";
  let summary = "The warp, lane and register that hold each element of a tile";
  let description = [{
    A layout is the dimension lifting of a tile's axes. Every axis is a mixed-radix number whose
    digits, from the outermost in, are written `place: size by stride`. The place is warp, lane or
    register. The number of an element's warp (lane, register) is the sum of digit · stride over the
    digits bound to warps (lanes, registers). `replicas` are digits that belong to no axis: the
    element is held once for each of their values.

    For example, the accumulator of wgmma m64n128 (PTX ISA 8.0, 9.7.14):

        #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4],
                       [register: 16 by 4, lane: 4 by 1, register: 2 by 1]>

    Row 16·warp + 8·r₁ + lane/4, column 8·r₂ + 2·(lane mod 4) + r₀ is in register 4·r₂ + 2·r₁ + r₀.

    Constraints: the digits of each place, ordered by stride, have no gap, that is each stride is
    the product of the sizes below it (C1); there are 4 warps and 32 lanes (C2). By C1, (element,
    replica) ↔ (warp, lane, register) is a bijection.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$ranks,
                        ArrayRefParameter<"int64_t">:$places,
                        ArrayRefParameter<"int64_t">:$sizes,
                        ArrayRefParameter<"int64_t">:$strides);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    struct Digit {
      Place place;
      int64_t size, stride, weight; ///< weight: of the digit in its axis
    };
    /// Returns the number of axes. `ranks` has one more entry, that of the replicas.
    unsigned getRank() const { return getRanks().size() - 1; }
    /// Returns the digits of an axis from the outermost in, or those of the replicas.
    ::llvm::SmallVector<Digit> getDigits(unsigned axis) const;
    int64_t getExtent(unsigned axis) const;
    /// Returns the number of registers of one thread.
    int64_t getNumRegisters() const;
    /// Returns the layout of one value per index of `axis`, replicated over the other threads. A
    /// reduction along the other axes has this layout.
    LayoutAttr getSlice(unsigned axis) const;
    /// Returns the layout of per-thread partials along `axis`: each thread has reduced its own
    /// elements. The axis keeps the digits bound to warps and lanes, innermost last.
    LayoutAttr getThreadPart(unsigned axis) const;
    /// Returns the layout of the accumulator of wgmma m64nNk16. For 16-bit elements this is also
    /// the layout of operand A in registers.
    static LayoutAttr getAccumulator(::mlir::MLIRContext *context, int64_t columns);
  }];
}

def Device_FragmentType : TypeDef<Device_Dialect, "Fragment"> {
  let mnemonic = "fragment";
  let summary = "A tile in the registers of a warpgroup";
  let description = [{
    A tile that is distributed over the registers of a warpgroup, as `layout` says.

        !device.fragment<[64, 128], f32, #device.layout<…>>

    Constraint: the layout has the tile's axes and extents (C1).
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType, "LayoutAttr":$layout);
  let assemblyFormat = "`<` `[` $shape `]` `,` $elementType `,` $layout `>`";
  let genVerifyDecl = 1;
}

def Device_RingType : TypeDef<Device_Dialect, "Ring"> {
  let mnemonic = "ring";
  let summary = "Tiles in shared memory, one per stage of a pipeline";
  let description = [{
    `stages` tiles of rows × columns, with elements of 16 or 8 bits. With c elements in 128 bytes
    (64 or 128), a tile is stored as [columns / c][rows][c] with the 128-byte swizzle: the 16-byte
    unit u of row r is stored at u xor (r mod 8).

        !device.ring<2, [128, 64], bf16>

    Constraints: columns are a multiple of c (C1), rows of 8 (C2); elements have 16 bits, or are i8
    or f8E4M3FN (C3).
  }];
  let parameters = (ins "int64_t":$stages, ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $stages `,` `[` $shape `]` `,` $elementType `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRows() const { return getShape()[0]; }
    int64_t getColumns() const { return getShape()[1]; }
    int64_t getElementBytes() const { return getElementType().getIntOrFloatBitWidth() / 8; }
    int64_t getStageBytes() const { return getRows() * getColumns() * getElementBytes(); }
    /// A row is split into pieces of 128 bytes: the columns of a piece, and the pieces of a row.
    int64_t getPieceColumns() const { return 128 / getElementBytes(); }
    int64_t getPieces() const { return getColumns() / getPieceColumns(); }
  }];
}

def Device_BarriersType : TypeDef<Device_Dialect, "Barriers"> {
  let mnemonic = "barriers";
  let summary = "Barriers in shared memory, one per stage";
  let description = [{
    `stages` mbarriers. A phase of each is completed by `arrivals` arrivals and by the bytes that
    are announced to it.

        !device.barriers<2, 1>
  }];
  let parameters = (ins "int64_t":$stages, "int64_t":$arrivals);
  let assemblyFormat = "`<` $stages `,` $arrivals `>`";
}

def Device_PublishedType : TypeDef<Device_Dialect, "Published"> {
  let mnemonic = "published";
  let summary = "A fragment that each block of a cluster has published";
  let description = [{
    The registers of a fragment in the shared memory of each block of a cluster.

        !device.published
  }];
}

def Device_MembersType : TypeDef<Device_Dialect, "Members"> {
  let mnemonic = "members";
  let summary = "A list of indices in shared memory";
  let description = [{
    Room for `capacity` indices. An index is stored in 16 bits, relative to the lower bound of its
    `device.collect`.

        !device.members<2048>

    Constraint: the capacity is at least 1 and at most 65536 (C1).
  }];
  let parameters = (ins "int64_t":$capacity);
  let assemblyFormat = "`<` $capacity `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getBytes() const { return 2 * getCapacity(); }
  }];
}

#endif // MOA_DIALECTS_DEVICE_IR_DEVICETYPES_TD

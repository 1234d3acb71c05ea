//===- Names.cpp - C++ names and types ------------------------------------===//
#include "lib/Target/CText.h"
#include "lib/Target/CUDA/Cuda.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace moa::cuda {

std::string getIdentifier(llvm::StringRef wish) {
  std::string name;
  for (char c : wish)
    if (llvm::isAlnum(c) || c == '_')
      name += c;
    else if (!llvm::StringRef(name).ends_with("_"))
      name += '_';
  if (name.empty() || llvm::isDigit(name.front()))
    name = "v" + name;
  // Values named after a logical monoid.
  if (name == "or")
    return "some";
  if (name == "and")
    return "every";
  if (isReservedWord(name))
    name += "_";
  return name;
}

std::string appendWord(llvm::StringRef name, llvm::StringRef word) {
  return (name + (name.ends_with("_") ? "" : "_") + word).str();
}

std::string getNumbered(llvm::StringRef name, unsigned number) { return appendWord(name, std::to_string(number)); }

llvm::StringRef getValueType(Type type) {
  if (type.isF64())
    return "double";
  if (type.isF32())
    return "float";
  if (type.isBF16())
    return "__nv_bfloat16";
  if (type.isF16())
    return "__half";
  if (isa<Float8E4M3FNType>(type))
    return "uint8_t"; // as bits
  if (type.isInteger(1))
    return "bool";
  if (type.isInteger(8))
    return "int8_t";
  if (type.isInteger(16))
    return "int16_t";
  if (type.isInteger(32))
    return "int32_t";
  return "int64_t";
}

llvm::StringRef getStorageType(Type element) { return element.isInteger(1) ? "uint8_t" : getValueType(element); }

/// Names in the entry points and checks, where the user's arguments are visible.
static const char *const kHostWords[] = {
    // Parameters and variables.
    "m", "n", "given", "arrays", "text", "size", "launch", "message", "stream", "bytes", "workspace", "blocks",
    "device", "needed", "code", "latest", "reads", "is_needed", "maps",
    // Types and a namespace.
    "size_t", "Array", "Message", "Checked", "Extent", "DLTensor", "std", "CUtensorMap", "cudaStream_t",
    // Functions.
    "is_known", "check_workspace", "open_array", "bind_symbol", "check_extents", "check_constraint", "check_memory",
    "check_tiles", "describe_tiles", "describe_steps", "prepare_device", "launch_kernel", "launch_kernel_in_order",
    "allow_shared_memory", "all_larger", "check_bounds", "check_grids", "not_shown", "cudaSuccess"};

/// Names in the kernels.
static const char *const kDeviceWords[] = {
    "threadIdx", "blockIdx", "gridDim", "await_earlier_launches", "let_next_launch_start", "await_overlapped_launch",
    "is_skipped", "shared", "Shared", "shared_bytes", "LOG2_E", "LN_2", "LARGE_PIVOT", "RESCALE_LIMIT", "warp", "lane",
    "warpgroup", "wait", "arrive", "copy", "copy_unit", "arrive_copied", "publish", "load_peer", "sync_cluster",
    "PUBLISHED", "fill", "floor_div", "floor_mod", "ceil_div", "trunc_div", "trunc_mod", "max_int", "min_int",
    "max_nan", "min_nan", "max_nan_double", "min_nan_double", "to_int", "to_byte", "shift_left", "shift_right",
    "both_numbers", "differ_ordered", "exp2_approximate", "reciprocal_approximate", "reciprocal_near", "low_word",
    "opaque", "group_of", "load_runs", "load_aligned", "load_aligned_runs", "store_aligned", "read_awaited",
    "store_pair", "signal", "signals", "next_block", "raise_flag", "next_turn", "await_turns", "end_turn",
    "init_barriers", "arrive_all", "publish_barriers", "tile_by_rows", "tile_by_columns", "row_step", "start_products",
    "commit_products", "await_products", "await_integer_products", "pack_bf16", "pack_f16", "to_e4m3", "from_e4m3",
    "half_from_bits", "halves_from_bits", "add_halves", "halves_of", "sum_halves", "in_workspace", "bytes_of", "places",
    "place", "clear_masked_columns", "clear_masked_rows", "append_members", "put_fragment", "await_stores",
    "shared_address", "row_register", "row_of", "column_of", "contract_fragments", "load_fragment", "unit_address",
    "load_matrices_1", "load_matrices_2", "load_matrices_4", "convert_layout", "reorder_registers", "reduce_rows",
    "plus", "times", "both", "either", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t",
    "uint64_t", "__half", "__nv_bfloat16", "rsqrt",
    // Macros.
    "NULL", "NAN", "INFINITY", "INT64_MIN", "INT32_MIN", "EOF", "DEVICE", "UNROLL", "TEN", "SUMS_4", "SUMS_16",
    "INT_SUMS_4", "INT_SUMS_16", "REFUSE_IF", "REJECT_IF"};

/// Functions of the math library, and their variants for f32.
static const char *const kLibrary[] = {
    "norm",     "rnorm", "norm3d", "rnorm3d",  "norm4d", "rnorm4d", "rhypot",     "rcbrt", "sinpi", "cospi",
    "sincospi", "exp10", "erfinv", "erfcinv",  "erfcx",  "normcdf", "normcdfinv", "exp",   "exp2",  "expm1",
    "log",      "log2",  "log10",  "log1p",    "sqrt",   "cbrt",    "tanh",       "sinh",  "cosh",  "sin",
    "cos",      "tan",   "atan",   "erf",      "erfc",   "floor",   "ceil",       "round", "rint",  "trunc",
    "fabs",     "pow",   "atan2",  "copysign", "fma",    "fmod",    "fmax",       "fmin"};

/// Prefixes of names that the file or CUDA's headers may declare, and suffixes of macros.
static const char *const kBeginnings[] = {"__",         "MOA_",       "WGMMA_",     "MMA_",           "CUDA_",
                                          "CU_",        "cuda",       "mma_",       "start_products", "add_products",
                                          "copy_tile_", "copy_part_", "copy_byte_", "store_tile_",    "load_matrices_",
                                          "reduce_",    "update_",    "pack_"};
static const char *const kEnds[] = {"_MAX", "_MIN", "_WIDTH"};
static const char *const kMacros[] = {"linux", "unix", "assert", "errno", "stdin", "stdout", "stderr"};

/// Returns whether a name is a type of CUDA's headers, which no kernel may have. Vector types end
/// with a number of elements, for example `float4`.
static bool isTypeOfCuda(llvm::StringRef name) {
  static const llvm::StringRef kTypes[] = {"half",        "half2",        "nv_half", "nv_half2",
                                           "nv_bfloat16", "nv_bfloat162", "dim3"};
  static const llvm::StringRef kElements[] = {"char", "uchar", "short",    "ushort",    "int",   "uint",
                                              "long", "ulong", "longlong", "ulonglong", "float", "double"};
  bool isVector = llvm::StringRef("1234").contains(name.take_back()) && llvm::is_contained(kElements, name.drop_back());
  return isVector || llvm::is_contained(kTypes, name);
}

static bool mayBeDeclared(llvm::StringRef name) {
  bool isDriver = name.size() > 2 && (name.starts_with("cu") || name.starts_with("CU")) && llvm::isUpper(name[2]);
  return isDriver || llvm::is_contained(kMacros, name) ||
         llvm::any_of(kBeginnings, [&](const char *part) { return name.starts_with(part); }) ||
         llvm::any_of(kEnds, [&](const char *part) { return name.ends_with(part); });
}

bool isOwnName(llvm::StringRef name) {
  auto is = [&](const char *word) { return name == word; };
  return llvm::any_of(kHostWords, is) || llvm::any_of(kDeviceWords, is) || llvm::any_of(kLibrary, is) ||
         isReservedWord(name) || mayBeDeclared(name) || isTypeOfCuda(name);
}

std::string Names::choose(llvm::StringRef wish) {
  static const std::set<std::string> host(std::begin(kHostWords), std::end(kHostWords));
  std::string name = getIdentifier(wish), result = name;
  // A name that starts with "__" stays reserved with any suffix.
  if (mayBeDeclared(name))
    result = name = (llvm::StringRef(name).starts_with("_") ? "v" : "") + name + "_";
  for (unsigned k = 2; host.count(result) || !taken.insert(result).second; ++k)
    result = getNumbered(name, k);
  return result;
}

Names::Names(device::ProgramOp program) {
  taken.insert(std::begin(kDeviceWords), std::end(kDeviceWords));
  for (const char *name : kLibrary)
    taken.insert({name, std::string(name) + "f"});
  std::vector<std::string> plain;
  for (StringRef name : program.getAllNames())
    plain.push_back(name.str());
  for (const std::string &name : plain)
    arguments.push_back(choose(name));
  for (auto symbol : program.getSymbols().getAsValueRange<StringAttr>())
    symbols[symbol.str()] = choose(symbol);
  for (auto [k, name] : llvm::enumerate(plain)) {
    auto type = cast<ArrayType>(program.getBody().getArgument(k).getType());
    for (unsigned axis = 0; axis < type.getRank(); ++axis) {
      std::string stride = name + ".s" + std::to_string(axis);
      symbols[stride] = choose(stride);
    }
  }
}

std::string Names::expression(const SymExpr &expr) const {
  return expression(expr, [&](const std::string &name) { return of(name); });
}

static std::string printAtom(const SymExpr::Atom &atom, llvm::function_ref<std::string(const std::string &)> name) {
  if (atom.kind == SymExpr::Atom::Kind::Symbol)
    return name(atom.text);
  bool isMod = atom.kind == SymExpr::Atom::Kind::Mod;
  return (isMod ? "floor_mod(" : "floor_div(") + Names::expression(atom.lhs, name) + ", " +
         Names::expression(atom.rhs, name) + ")";
}

std::string Names::expression(const SymExpr &expr, llvm::function_ref<std::string(const std::string &)> name) {
  if (expr.isZero())
    return "0";
  std::string text;
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    std::string term;
    for (const auto &[atom, power] : monomial)
      for (unsigned k = 0; k < power; ++k)
        term += (term.empty() ? "" : " * ") + printAtom(*atom, name);
    uint64_t magnitude = coefficient < 0 ? 0 - uint64_t(coefficient) : uint64_t(coefficient);
    if (term.empty())
      term = std::to_string(magnitude);
    else if (magnitude != 1)
      term = std::to_string(magnitude) + " * " + term;
    if (text.empty())
      text = (coefficient < 0 ? "-" : "") + term;
    else
      text += (coefficient < 0 ? " - " : " + ") + term;
  }
  return text;
}

} // namespace moa::cuda

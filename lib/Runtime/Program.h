//===- Program.h - a manifest in a form that calls execute ------*- C++ -*-===//
#ifndef MOA_RUNTIME_PROGRAM_H
#define MOA_RUNTIME_PROGRAM_H

#include "lib/Runtime/Cuda.h"
#include "lib/Runtime/Expression.h"
#include <atomic>
#include <mutex>

namespace moa::runtime {

constexpr int kMaxRank = 16, kMaxMapRank = 5;

struct ElementType {
  const char *name;
  int bits, code; ///< in memory; DLPack's type code
  char scalar;    ///< f: float, d: double, s: 16-bit float, i: signed, u: unsigned, b: boolean; 0: none
};

/// Returns a type by its name in a manifest, or null.
const ElementType *findElementType(const std::string &name);

/// One parameter of a kernel.
struct Parameter {
  std::string name, shape, typeText;
  const ElementType *type = nullptr;
  int32_t role = MOA_INPUT;
  std::vector<Expression> extents;
};

struct Binding {
  std::string name;
  Place place;
  Expression value;
};

struct Constraint {
  std::string text;
  Expression left, right;
  int relation = 0; ///< == != < <= > >=
};

/// An array of the workspace. Its offset is a constant unless the function has offsets of run time.
struct Workspace {
  std::string name;
  const ElementType *type = nullptr;
  std::vector<Expression> extents;
  Expression bytes;
  int64_t unit = 1, slack = 0, offset = 0;
};

struct TensorMap {
  bool isOfWorkspace = false;
  unsigned array = 0, rowAxis = 0, rank = 0;
  int rows = 1;
  bool hasStep = false;
  Expression step;
};

/// One parameter of a launch: where its value is in the frame of a call.
struct LaunchParameter {
  enum Kind : uint8_t { Pointer, Workspace, Map, Scalar, Symbol, Stride } kind = Pointer;
  uint8_t axis = 0;
  uint16_t number = 0;
};

/// Conditions x > y, which several launches may share.
struct Condition {
  std::vector<std::pair<Expression, Expression>> larger;
};

struct Launch {
  std::string kernel;
  Expression blocks;
  int64_t mostBlocks = 0; ///< 0: any number
  int threads = 0, sharedBytes = 0, number = 0;
  int firstOverlapped = 0; ///< it may overlap with the latest launch of the call, from this number on
  bool isForShown = false, isReliedOn = false;
  int condition = -1;
  unsigned firstMap = 0;
  std::vector<TensorMap> maps;
  std::vector<LaunchParameter> parameters;
  /// The kernel, and a bit for each device where it may have its shared memory.
  mutable std::atomic<cuda::CUkernel> handle{nullptr};
  mutable std::atomic<uint64_t> ready{0};
};

struct Shown {
  std::string name, tolerance, never, axes;
  unsigned array = 0; ///< the result
  double within = 0;
  unsigned workspace = 0;
  std::vector<Expression> extents;
};

using CpuFunction = void *;

struct Program;

struct Function {
  const Program *program = nullptr;
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<unsigned> arrays, scalars; ///< numbers of parameters
  unsigned numInputs = 0;                ///< arrays that are inputs; they come first
  std::vector<std::string> symbols;
  std::vector<Binding> bindings;
  std::vector<Constraint> constraints;
  /// The bindings that use the inputs only, and the first symbol that they do not give.
  std::vector<Binding> fromInputs;
  std::string notFromInputs;

  // On a GPU.
  std::vector<Workspace> workspace;
  Expression workspaceBytes;
  bool hasRuntimeOffsets = false;
  std::vector<Condition> conditions;
  std::vector<std::unique_ptr<Launch>> launches;
  std::vector<unsigned> tiled; ///< arrays that are copied by tiles, each once
  std::vector<Shown> shown;
  bool hasShown = false;
  unsigned numMaps = 0, mostParameters = 0;
  size_t frameBytes = 0;

  // On a CPU: the entry points; `shownEntry` may be null.
  CpuFunction call = nullptr, check = nullptr, workspaceEntry = nullptr, shownEntry = nullptr, prepare = nullptr;
};

struct Program {
  bool isCpu = false;
  std::string target;
  cuda::Requirements needed;
  std::vector<char> image;
  std::vector<std::unique_ptr<Function>> functions;
  mutable std::mutex mutex;
  mutable std::atomic<cuda::CUlibrary> library{nullptr};
  void *file = nullptr; ///< the shared library of a CPU program
};

/// Reads a manifest for the target "cpu" or a GPU. Returns null and the reason if it cannot be used.
std::unique_ptr<Program> readManifest(const char *text, bool isCpu, std::string &why);

/// The arguments of one call, bound and checked.
struct Frame {
  const Function *function;
  Array *arrays, **arrayList; ///< and a pointer to each
  int64_t *symbols;
  uint64_t *scalars;
  Checked *blocks;
  bool *holds; ///< the conditions
  cuda::CUtensorMap *maps;
  int64_t *offsets;
  char **places;
  void **pointers;
  const cuda::Driver *driver;
  cuda::CUdevice device;
};

inline int64_t read(const Frame &frame, Place place) {
  switch (place.kind) {
  case Place::Symbol:
    return frame.symbols[place.number];
  case Place::Extent:
    return frame.arrays[place.number].tensor->shape[place.axis];
  case Place::Stride:
    return frame.arrays[place.number].s[place.axis];
  }
  return 0;
}

/// Returns the bytes of a call's frame.
size_t measureFrame(const Function &function);
/// Lays a frame out in memory of that size.
Frame placeFrame(const Function &function, char *memory);

//===----------------------------------------------------------------------===//
// Checks (Arrays.cpp)
//===----------------------------------------------------------------------===//

/// Opens the first `count` arrays.
int32_t openArrays(Frame &frame, size_t count, Message m, const DLTensor *const *given);
int32_t bindSymbols(Frame &frame, const std::vector<Binding> &bindings, Message m);
/// Checks the extents of the first `count` arrays.
int32_t checkExtents(const Frame &frame, size_t count, Message m);
int32_t checkConstraints(const Frame &frame, Message m);
/// Converts the scalars to their types.
int32_t readScalars(const Function &function, uint64_t *bits, Message m, const moa_value *scalars);
int32_t findShapes(const Function &function, Message m, const DLTensor *const *arrays, int64_t *const *shapes);

//===----------------------------------------------------------------------===//
// The targets (Gpu.cpp, Cpu.cpp)
//===----------------------------------------------------------------------===//

struct Arguments {
  const DLTensor *const *arrays;
  const moa_value *scalars;
  void *workspace;
  size_t bytes;
  void *stream;
};

namespace gpu {
int32_t check(const Function &function, Message m, const Arguments &given);
int64_t workspace(const Function &function, Message m, const Arguments &given);
int32_t call(const Function &function, Message m, const Arguments &given);
int32_t shown(const Function &function, Message m, const Arguments &given);
int32_t prepare(const Function &function, Message m, int32_t device);
void unload(Program &program);
} // namespace gpu

namespace cpu {
/// Finds the entry points; `where` is named in the error. Returns why it cannot, or an empty text.
std::string findEntryPoints(Program &program, moa_finder find, void *context, const std::string &where);
/// Opens the shared library and finds the entry points.
std::string load(Program &program, const char *path);
int32_t check(const Function &function, Message m, const Arguments &given);
int64_t workspace(const Function &function, Message m, const Arguments &given);
int32_t call(const Function &function, Message m, const Arguments &given);
int32_t shown(const Function &function, Message m, const Arguments &given);
int32_t prepare(const Function &function, Message m, int32_t device);
} // namespace cpu

} // namespace moa::runtime

struct moa_program {
  std::unique_ptr<moa::runtime::Program> program;
};

#endif // MOA_RUNTIME_PROGRAM_H

//===- File.cpp - a whole CUDA C++ file -----------------------------------===//
#include "lib/Target/CUDA/Cuda.h"
#include "lib/Target/CUDA/HostText.h"
#include "lib/Target/CUDA/TileHelpers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cassert>

namespace moa::cuda {

/// Returns the number of columns of UTF-8 text.
static size_t countColumns(llvm::StringRef text) {
  return llvm::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
}

void addComment(std::string &text, llvm::StringRef line, size_t columns) {
  std::string indent(line.size() - line.ltrim().size(), ' ');
  std::string rest = line.str();
  while (countColumns(rest) > columns) {
    size_t at = llvm::StringRef::npos;
    // Break at blanks after the first word. A word longer than a line stays whole.
    for (size_t k = rest.find(' ', rest.find_first_not_of(' '));
         k != std::string::npos && countColumns(llvm::StringRef(rest).take_front(k)) <= columns;
         k = rest.find(' ', k + 1))
      at = k;
    if (at == llvm::StringRef::npos)
      break;
    text += "// " + rest.substr(0, at) + "\n";
    rest = indent + "    " + llvm::StringRef(rest).drop_front(at + 1).ltrim().str();
  }
  text += rest.empty() ? "//\n" : "// " + rest + "\n";
}

/// Returns the notes as comment lines, without comment marks of their own and without repeated
/// blank lines.
static std::string comment(llvm::StringRef notes) {
  std::string text;
  llvm::SmallVector<llvm::StringRef> lines;
  notes.rtrim().split(lines, '\n');
  bool wasBlank = true;
  std::string joined;
  for (auto [k, next] : llvm::enumerate(lines)) {
    llvm::StringRef line = next.rtrim();
    if (line.consume_front("//"))
      line.consume_front(" ");
    // Join short notes on the notation.
    constexpr llvm::StringLiteral note = "  (";
    llvm::StringRef after = k + 1 < lines.size() ? lines[k + 1].rtrim() : "";
    if (!joined.empty())
      line = joined += line.drop_front().str();
    if (line.starts_with(note) && after.starts_with(note) && countColumns(line) + countColumns(after) <= 118) {
      joined = line.str();
      continue;
    }
    if (!line.empty() || !wasBlank)
      addComment(text, line);
    wasBlank = line.empty();
    joined.clear();
  }
  // Avoid trigraphs.
  for (size_t at = text.find("??"); at != std::string::npos; at = text.find("??", at))
    text.insert(at + 1, " ");
  return text;
}

/// Returns whether a program copies tiles of 8-bit elements or of workspace arrays, which have no
/// caller's descriptor.
static bool copiesOthers(device::ProgramOp program) {
  return program
      .walk([&](device::CopyOp copy) {
        bool isOther = copy.getRing().getType().getElementBytes() == 1 || program.isWorkspace(copy.getArray());
        return isOther ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// Generalises the function that describes tiles of a caller's 16-bit elements to all elements.
static std::string describeAnyTiles(llvm::StringRef text) {
  static const std::pair<const char *, const char *> kPlaces[] = {
      {"64 of the last", "128 bytes of the last"},
      {"k == 0 ? 64 :", "k == 0 ? 128 / a.bytes :"},
      {"a.tensor->dtype.code == 4 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : "
       "CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
       "a.bytes == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8\n"
       "                    : a.code == 4 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16\n"
       "                                  : CU_TENSOR_MAP_DATA_TYPE_FLOAT16"}};
  std::string result = text.str();
  for (auto [from, to] : kPlaces) {
    size_t at = result.find(from);
    assert(at != std::string::npos && "the text has changed");
    result.replace(at, llvm::StringRef(from).size(), to);
  }
  return result;
}

/// Returns whether a text contains a call as whole words. The empty call is in every text.
static bool containsCall(llvm::StringRef text, llvm::StringRef call) {
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  auto isWithin = [&](size_t at) { return at > 0 && at < text.size() && isPart(text[at - 1]) && isPart(text[at]); };
  for (size_t at = text.find(call); at != llvm::StringRef::npos; at = text.find(call, at + 1))
    if (call.empty() || (!isWithin(at) && !isWithin(at + call.size())))
      return true;
  return false;
}

/// Returns the host functions that `callers` need, directly or indirectly.
static std::string printHostFunctions(const std::string &callers, bool ofOthers) {
  std::string text;
  for (const HostFunction &function : llvm::reverse(kHostFunctions)) {
    llvm::StringRef names = function.name;
    llvm::SmallVector<llvm::StringRef, 2> calls;
    names.split(calls, ' ');
    if (llvm::any_of(calls,
                     [&](llvm::StringRef call) { return containsCall(text, call) || containsCall(callers, call); }))
      text = (ofOthers && names == "describe_tiles" ? describeAnyTiles(function.text) : function.text) + text;
  }
  return text;
}

llvm::Expected<std::string> printFile(llvm::ArrayRef<ProgramText> programs, Binding binding) {
  Helpers helpers;
  std::string notes, kernelTexts, hostTexts;
  std::vector<KernelSignature> bound;
  bool ofOthers = false;
  for (const ProgramText &entry : programs) {
    if (isOwnName(entry.signature.name) || (binding != Binding::None && isBindingName(entry.signature.name)))
      return llvm::createStringError(
          "a kernel cannot be called '" + entry.signature.name +
          "' in CUDA C++: the emitted file, a header or the language uses this name; rename it");
    ofOthers |= copiesOthers(entry.program);
    Names names(entry.program);
    auto kernels = printKernels(entry.program, names, helpers);
    if (!kernels)
      return kernels.takeError();
    notes += comment(entry.notes) + "//\n";
    std::vector<gpu::HostLaunch> launches;
    for (const KernelText &kernel : *kernels) {
      kernelTexts += "\n" + kernel.text;
      launches.push_back(kernel.launch);
    }
    gpu::HostTable table(entry.signature, gpu::getWorkspace(entry.program), std::move(launches));
    hostTexts += "\n" + printHost(table, names);
    bound.push_back(entry.signature);
  }
  std::string text = notes;
  text += "// Written by a compiler; this file carries no licence obligation. Build: nvcc "
          "-gencode arch=compute_90a,code=sm_90a\n\n";
  std::string rest =
      kDeclarations + printHelpers(helpers) + kernelTexts + printHostFunctions(hostTexts, ofOthers) + hostTexts;
  // Report unsupported GPUs by one compiler error, not by one ptxas error per line.
  bool needsHopper = llvm::any_of(llvm::ArrayRef<const char *>{"wgmma.", "setmaxnreg.", "cp.async.bulk"},
                                  [&](const char *word) { return rest.find(word) != std::string::npos; });
  if (needsHopper)
    text += "#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)\n"
            "#error \"this file has instructions of sm_90a alone; compile it with "
            "nvcc -gencode arch=compute_90a,code=sm_90a\"\n#endif\n\n";
  // Headers, and a word of the text that requires each.
  static const std::pair<const char *, const char *> kHeaders[] = {
      {"", "cmath"},           {"std::atomic", "atomic"}, {"offsetof(", "cstddef"},         {"", "cstdint"},
      {"", "cstdio"},          {"strlen(", "cstring"},    {"std::", "functional"},          {"bfloat16", "cuda_bf16.h"},
      {"half", "cuda_fp16.h"}, {"", "cuda_runtime.h"},    {"CUtensorMap", "cudaTypedefs.h"}};
  for (auto [word, header] : kHeaders)
    if (rest.find(word) != std::string::npos)
      text += std::string("#include <") + header + ">\n";
  return text + "\n" + rest + (binding == Binding::TVMFFI ? "\n" + printBinding(bound) : "");
}

} // namespace moa::cuda

//===- moa-protected.cpp - kernels whose arrays end at protected pages ----===//
//
//   moa-protected FILE.moa …        the kernels of specifications, at sizes around their numbers
//
// Every array and the workspace end at a page that nobody may read or write, then begin right after
// one. A kernel that reads or writes elsewhere ends its process, which is a failure with its sizes.
// Results are compared with those of the interpreter at the level moa where these take little work.
//
//===----------------------------------------------------------------------===//
#include "Inputs.h"
#include "lib/Support/SplitMix64.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <sys/wait.h>

using namespace moa;
using namespace moa::random;
namespace cl = llvm::cl;

static cl::OptionCategory category("moa-protected");
static cl::list<std::string> files(cl::Positional, cl::OneOrMore, cl::desc("FILE.moa ..."), cl::cat(category));
static cl::list<std::string> settings("set", cl::desc("a compile-time constant or type, where a file has it"),
                                      cl::cat(category));
static cl::opt<unsigned> count("count", cl::desc("sizes of each kernel"), cl::init(24), cl::cat(category));
static cl::opt<unsigned> optimization("O", cl::Prefix, cl::desc("how hard LLVM works, 0 to 3"), cl::init(0),
                                      cl::cat(category));
static cl::opt<bool> verbose("verbose", cl::desc("print the sizes of each call"), cl::cat(category));

/// Elements of all arrays of a call, operations of one, and of one whose results are compared.
static constexpr int64_t kMostElements = 1 << 17;
static constexpr double kMostRun = 1e8, kMostCompared = 1e6;

namespace {
/// What the process of a file has reached, in memory that it shares with the one that started it.
struct Progress {
  unsigned kernel = 0, calls = 0, compared = 0, failures = 0;
  char at[256] = "";
};

class Runner {
public:
  Runner(Compilation &unit, const KernelInfo &info, const std::set<int64_t> &numbers, Progress &progress)
      : unit(unit), info(info), numbers(numbers), progress(progress), random{std::hash<std::string>()(info.name)} {}
  void run();

private:
  using Shapes = std::vector<std::vector<int64_t>>;
  using Arrays = std::vector<std::unique_ptr<Memory>>;
  std::optional<Shapes> shapesAt(const Sizes &sizes);
  std::vector<Sizes> chooseSizes();
  std::vector<ReferenceArray> chooseInputs(const Shapes &shapes, const Sizes &sizes);
  std::pair<int64_t, int64_t> rangeOf(const ParameterInfo &parameter, const Sizes &sizes);
  void runAt(const Sizes &sizes, bool isCompared);
  Arrays call(const Shapes &shapes, const std::vector<ReferenceArray> &inputs, Placement placement);
  void compare(const Arrays &arrays, size_t inputArrays, const std::vector<ReferenceArray> &expected);
  void fail(const llvm::Twine &why) {
    llvm::outs() << info.name << " at" << progress.at << ": " << why << "\n";
    llvm::outs().flush();
    ++progress.failures;
  }

  Compilation &unit;
  const KernelInfo &info;
  const std::set<int64_t> &numbers;
  Progress &progress;
  SplitMix64 random;
  std::optional<Kernel> code;
};
} // namespace

//===----------------------------------------------------------------------===//
// Sizes and values
//===----------------------------------------------------------------------===//

/// The shapes at sizes that the constraints allow; nothing where a call takes long.
std::optional<Runner::Shapes> Runner::shapesAt(const Sizes &sizes) {
  auto shapes = unit.shapes(info.name, sizes);
  if (!shapes)
    return std::nullopt;
  double elements = 0;
  for (const auto &shape : *shapes) {
    double product = 1;
    for (int64_t extent : shape)
      product *= extent;
    elements += product;
  }
  Shapes inputs;
  for (auto [shape, parameter] : llvm::zip(*shapes, info.parameters))
    if (!parameter.isOutput)
      inputs.push_back(shape);
  if (elements > kMostElements || !unit.bindSymbols(info.name, inputs, sizes) ||
      unit.flops(info.name, sizes,
                 std::vector<Scalar>(llvm::count_if(info.parameters, [](auto &p) { return p.isScalar(); }), Scalar(1)))
              .value_or(0) > kMostRun)
    return std::nullopt;
  return shapes;
}

/// Sizes that are all the same, 0, 1 and those around numbers, then such sizes in any combination.
std::vector<Sizes> Runner::chooseSizes() {
  std::vector<int64_t> values{0, 1, 2, 3, 5};
  for (int64_t number : numbers)
    for (int64_t value : {number - 1, number, number + 1})
      if (!llvm::is_contained(values, value))
        values.push_back(value);
  std::set<Sizes> seen;
  std::vector<Sizes> chosen;
  unsigned attempts = values.size() + 10 * count;
  for (unsigned k = 0; k < attempts && chosen.size() < count; ++k) {
    Sizes sizes;
    for (const std::string &symbol : info.symbols)
      sizes[symbol] = k < values.size() ? values[k] : values[random.below(values.size())];
    if (seen.insert(sizes).second && shapesAt(sizes))
      chosen.push_back(sizes);
  }
  return chosen;
}

/// The least and one more than the largest value of an integer parameter.
std::pair<int64_t, int64_t> Runner::rangeOf(const ParameterInfo &parameter, const Sizes &sizes) {
  auto evaluate = [&](llvm::StringRef text) {
    auto expr = SymExpr::parse(text.trim());
    auto value = expr ? expr->evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
      auto it = sizes.find(name.str());
      return it == sizes.end() ? std::nullopt : std::optional(it->second);
    })
                      : std::nullopt;
    return value.value_or(0);
  };
  if (auto [low, high] = llvm::StringRef(parameter.range).split(".."); !high.empty())
    return {evaluate(low), evaluate(high)};
  int64_t most = 3; // offsets and lengths about the sizes
  for (const auto &[name, size] : sizes)
    most = std::max(most, size + 2);
  bool isNarrow = parameter.elementType == "i8" || parameter.elementType == "u8";
  return {parameter.isScalar() || parameter.elementType[0] == 'u' ? 0 : -1,
          isNarrow ? std::min<int64_t>(most, 100) : most};
}

/// Whether elements are integers, with a sign or without.
static bool isWhole(llvm::StringRef type) { return type.starts_with("i") || type.starts_with("u"); }

std::vector<ReferenceArray> Runner::chooseInputs(const Shapes &shapes, const Sizes &sizes) {
  std::vector<ReferenceArray> inputs;
  for (auto [shape, parameter] : llvm::zip(shapes, info.parameters)) {
    if (parameter.isOutput)
      break;
    ReferenceArray array{shape, {}};
    size_t elements = 1;
    for (int64_t extent : shape)
      elements *= extent;
    auto [low, high] = rangeOf(parameter, sizes);
    for (size_t k = 0; k < elements; ++k)
      if (parameter.elementType == "bool")
        array.data.push_back(random.below(2));
      else if (isWhole(parameter.elementType))
        array.data.push_back(high > low ? low + random.below(high - low) : 0);
      else
        array.data.push_back(
            roundToType(shape.empty() ? 0.25 + random.uniform() : 2 * random.uniform() - 1, parameter.elementType));
    inputs.push_back(std::move(array));
  }
  return inputs;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// The arrays after a call, inputs first; none where the code refuses.
Runner::Arrays Runner::call(const Shapes &shapes, const std::vector<ReferenceArray> &inputs, Placement placement) {
  Arrays memory;
  std::vector<const DLTensor *> arrays;
  std::vector<Scalar> scalars;
  for (auto [k, parameter] : llvm::enumerate(info.parameters)) {
    if (parameter.isScalar()) {
      double value = inputs[k].data[0];
      scalars.push_back(isWhole(parameter.elementType) ? Scalar(int64_t(value)) : Scalar(value));
      continue;
    }
    memory.push_back(std::make_unique<Memory>(shapes[k], parameter.elementType, /*gap=*/0, placement));
    if (!parameter.isOutput)
      memory.back()->fill(inputs[k].data);
    arrays.push_back(memory.back()->tensor());
  }
  std::string message;
  int64_t bytes = code->workspace(arrays, scalars);
  if (int32_t why = bytes < 0 ? int32_t(-bytes) : code->check(arrays, &message)) {
    fail("refused with code " + llvm::Twine(why) + ": " + message);
    return {};
  }
  ProtectedPages workspace(bytes, placement, 0xA5, /*alignment=*/64);
  int32_t why = code->run(arrays, scalars, bytes ? workspace.getData() : nullptr, bytes);
  ++progress.calls;
  if (!why || why == Kernel::kNotShown)
    return memory;
  fail("refused with code " + llvm::Twine(why));
  return {};
}

/// Compares by the largest difference over the largest value: this finds what is read or left out
/// by mistake, other tests the accuracy.
void Runner::compare(const Arrays &arrays, size_t inputArrays, const std::vector<ReferenceArray> &expected) {
  constexpr double most = 5e-2;
  ++progress.compared;
  for (auto [k, want] : llvm::enumerate(expected)) {
    std::vector<double> found = arrays[inputArrays + k]->read();
    double largest = 1e-3, off = 0;
    for (auto [x, y] : llvm::zip_equal(found, want.data))
      if (std::isfinite(y)) {
        largest = std::max(largest, std::fabs(y));
        off = std::max(off, std::isnan(x) ? INFINITY : std::fabs(x - y));
      }
    if (!(off <= most * largest))
      fail("result " + llvm::Twine(k) + " is off by " + std::to_string(off) + " of values up to " +
           std::to_string(largest));
  }
}

void Runner::runAt(const Sizes &sizes, bool isCompared) {
  std::string text;
  for (const auto &[name, size] : sizes)
    text += " " + name + "=" + std::to_string(size);
  snprintf(progress.at, sizeof progress.at, "%s", text.c_str());
  if (verbose)
    llvm::outs() << info.name << text << "\n";
  llvm::outs().flush();
  auto shapes = shapesAt(sizes);
  std::vector<ReferenceArray> inputs = chooseInputs(*shapes, sizes);
  std::optional<std::vector<ReferenceArray>> expected;
  if (isCompared)
    expected = unit.evaluate(info.name, Level::MoA, inputs, 0, sizes);
  size_t inputArrays = llvm::count_if(info.parameters, [](auto &p) { return !p.isOutput && !p.isScalar(); });
  for (Placement placement : {Placement::AtEnd, Placement::AtBegin}) {
    Arrays arrays = call(*shapes, inputs, placement);
    for (auto [k, array] : llvm::enumerate(arrays))
      if (!array->isIntact())
        fail("array " + llvm::Twine(k) + " is written elsewhere");
    if (expected && !arrays.empty())
      compare(arrays, inputArrays, *expected);
  }
}

void Runner::run() {
  code = unit.load(info.name);
  if (!code)
    return fail("no code: " + unit.renderDiagnostics());
  auto ones = std::vector<Scalar>(llvm::count_if(info.parameters, [](auto &p) { return p.isScalar(); }), Scalar(1));
  for (const Sizes &sizes : chooseSizes())
    runAt(sizes, unit.flops(info.name, sizes, ones).value_or(0) <= kMostCompared);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// The numbers of a specification, without those that are too large for a size here or part of a
/// name or a real.
static std::set<int64_t> numbersOf(llvm::StringRef text) {
  std::set<int64_t> numbers{16};
  while (!text.empty()) {
    llvm::StringRef word = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
    int64_t number;
    if (!word.empty() && !word.getAsInteger(10, number) && number > 1 && number <= 256)
      numbers.insert(number);
    text = text.drop_front(std::max<size_t>(word.size(), 1));
  }
  return numbers;
}

/// Runs the kernels of a file from `progress.kernel` on.
static void runFile(const std::string &path, llvm::StringRef text, Progress &progress) {
  CompilerOptions options;
  options.optimization = optimization;
  for (const std::string &setting : settings)
    if (text.contains(" " + setting.substr(0, setting.find('=')) + " "))
      options.settings.push_back(setting);
  Compilation unit = Compiler(options).compileText(text.str(), path);
  if (!unit.ok()) {
    llvm::outs() << path << ": " << unit.renderDiagnostics();
    ++progress.failures;
    return;
  }
  std::set<int64_t> numbers = numbersOf(text);
  const std::vector<KernelInfo> kernels = unit.kernels();
  for (; progress.kernel < kernels.size(); ++progress.kernel) {
    *progress.at = 0;
    Runner(unit, kernels[progress.kernel], numbers, progress).run();
  }
}

/// The same in a process of its own, again after each kernel that ends it.
static void runApart(const std::string &path, Progress &progress) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    llvm::outs() << path << ": " << buffer.getError().message() << "\n";
    ++progress.failures;
    return;
  }
  progress.kernel = 0;
  for (bool again = true; again;) {
    fflush(nullptr);
    llvm::outs().flush();
    pid_t child = fork();
    if (child == 0) {
      runFile(path, (*buffer)->getBuffer(), progress);
      llvm::outs().flush();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    again = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (!again)
      continue;
    llvm::outs() << path << ": kernel " << progress.kernel << " at" << progress.at
                 << " ends the process: " << (WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit code") << "\n";
    ++progress.failures;
    ++progress.kernel;
  }
}

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Runs kernels whose arrays stand at protected pages\n");
  setenv("OMP_NUM_THREADS", "1", /*overwrite=*/0);
  void *memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return 2;
  Progress &progress = *new (memory) Progress();
  for (const std::string &path : files)
    runApart(path, progress);
  llvm::outs() << files.size() << " files, " << progress.calls << " calls, " << progress.compared << " compared, "
               << progress.failures << " failures\n";
  return progress.failures != 0;
}

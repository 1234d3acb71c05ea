//===- Figures.cpp - the CPU figures of the project -----------------------===//
//
// Everything that is compared is interleaved in one process: each round
// measures the FMA peak, the compiled kernel and both forms of the rival, in an
// order that rotates; medians and ratios are taken over the rounds.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/cpu/Ours.h"
#include "benchmarks/cpu/Peak.h"
#include "benchmarks/cpu/Statistics.h"
#include "benchmarks/cpu/Unfused.h"
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <omp.h>
#include <optional>
#include <random>
#include <string>

using namespace moa;
using namespace moa::bench;

namespace {

struct Options {
  int rounds = 11;
  std::string figure = "all"; // attention, decode, memory, compile
  std::string examples = MOA_EXAMPLES_DIR;
};

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

template <typename Work> double timed(Work work) {
  double begin = now();
  work();
  return now() - begin;
}

/// Seconds that all threads of this process have computed.
double processorTime() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

/// One contender's rounds, by the clock and by the processors' time, which
/// other load on the machine disturbs less.
struct Samples {
  template <typename Work> void measure(Work work) {
    double begin = processorTime();
    clock.push_back(timed(work));
    processor.push_back(processorTime() - begin);
  }
  std::vector<double> clock, processor;
};

void fillNormal(FloatArray &array, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  for (float &value : array.values)
    value = normal(generator);
}

double relativeError(const std::vector<float> &a, const std::vector<float> &b) {
  double difference = 0, norm = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    difference += (double(a[k]) - b[k]) * (double(a[k]) - b[k]);
    norm += double(b[k]) * b[k];
  }
  return std::sqrt(difference / norm);
}

/// Full attention of one shape: inputs, output, compiled kernel, workspace.
class Attention {
public:
  Attention(Shape shape, Kernel kernel)
      : q({1, shape.heads, shape.queries, shape.width}), k({1, shape.heads, shape.keys, shape.width}),
        v({1, shape.heads, shape.keys, shape.width}), out(q.shape), kernel(std::move(kernel)) {
    fillNormal(q, 1);
    fillNormal(k, 2);
    fillNormal(v, 3);
    scale = 1.0 / std::sqrt(double(shape.width));
    workspace.emplace(std::max<int64_t>(this->kernel.workspace(arrays(), {scale}), 0));
  }
  std::vector<const DLTensor *> arrays() const { return {&q.tensor, &k.tensor, &v.tensor, &out.tensor}; }
  int32_t run() const { return kernel.run(arrays(), {scale}, workspace->data, workspace->bytes); }
  FloatArray q, k, v, out;
  double scale;
  Kernel kernel;
  std::optional<Workspace> workspace;
};

std::optional<Kernel> compile(const Options &options, const std::string &name) {
  CompilerOptions settings;
  settings.settings = {"T=f32", "D=128"};
  Compilation unit = Compiler(settings).compileFile(options.examples + "/" + name + ".moa");
  std::optional<Kernel> kernel = unit.load();
  if (!kernel)
    fmt::print(stderr, "{}", unit.renderDiagnostics());
  return kernel;
}

void printRate(const char *what, const std::vector<double> &seconds, double flops) {
  fmt::print("  {:<34} {:8.1f} ms   {:7.1f} GFLOP/s   (quartiles {:.1f} .. {:.1f} "
             "ms)\n",
             what, median(seconds) * 1e3, flops / median(seconds) * 1e-9, quantile(seconds, 0.25) * 1e3,
             quantile(seconds, 0.75) * 1e3);
}

void printRatio(const char *what, const std::vector<double> &values, const char *unit, double bar) {
  fmt::print("  {:<34} {:.3f}{} (quartiles {:.3f} .. {:.3f}, range {:.3f} .. "
             "{:.3f}); bar {}: {}\n",
             what, median(values), unit, quantile(values, 0.25), quantile(values, 0.75), quantile(values, 0),
             quantile(values, 1), bar, median(values) >= bar ? "met" : "NOT met");
}

//===----------------------------------------------------------------------===//
// Speed
//===----------------------------------------------------------------------===//

/// What the rounds measured; the peak in GFLOP/s of all threads.
struct Rounds {
  Samples own, heads, products;
  std::vector<double> peak, peakByProcessor;

  void measurePeak() {
    Samples time;
    double rate = 0;
    time.measure([&] { rate = measureFmaPeak(0.2); });
    peak.push_back(rate);
    peakByProcessor.push_back(rate * time.clock[0] * numThreads() / time.processor[0]);
  }
};

void printAttention(const Shape &shape, const Rounds &rounds) {
  std::vector<double> share, shareByProcessor;
  for (size_t k = 0; k < rounds.peak.size(); ++k) {
    share.push_back(shape.flops() / rounds.own.clock[k] * 1e-9 / rounds.peak[k]);
    shareByProcessor.push_back(shape.flops() * numThreads() / rounds.own.processor[k] * 1e-9 /
                               rounds.peakByProcessor[k]);
  }
  fmt::print("\nfull attention, f32, (B, H, N, D) = (1, {}, {}, {}), {} "
             "threads, {} rounds\n",
             shape.heads, shape.queries, shape.width, numThreads(), rounds.peak.size());
  fmt::print("  {:<34} {:7.1f} GFLOP/s ({} bits; quartiles {:.1f} .. {:.1f})\n", "FMA peak, measured",
             median(rounds.peak), fmaVectorBits(), quantile(rounds.peak, 0.25), quantile(rounds.peak, 0.75));
  printRate("compiled from the specification", rounds.own.clock, shape.flops());
  printRate("unfused, threads inside sgemm", rounds.products.clock, shape.flops());
  printRate("unfused, threads over heads", rounds.heads.clock, shape.flops());
  auto printSpeed = [&](const char *what, const Samples &rival) {
    printRatio(what, ratios(rival.clock, rounds.own.clock), " x", 1.2);
    printRatio("  the same by processor time", ratios(rival.processor, rounds.own.processor), " x", 1.2);
  };
  printSpeed("speed over threads inside sgemm", rounds.products);
  printSpeed("speed over threads over heads", rounds.heads);
  printRatio("share of the FMA peak", share, "", 0.55);
  printRatio("  the same by processor time", shareByProcessor, "", 0.55);
}

bool measureAttention(const Options &options) {
  Shape shape;
  std::optional<Kernel> kernel = compile(options, "sdpa");
  if (!kernel)
    return false;
  Attention ours(shape, *kernel);
  FloatArray reference(ours.q.shape);
  Unfused byHeads(shape, Split::Heads), byProducts(shape, Split::Products);
  auto runRival = [&](Unfused &rival) {
    rival.run(ours.q.values.data(), ours.k.values.data(), ours.v.values.data(), ours.scale, reference.values.data());
  };

  Rounds rounds;
  int32_t code = 0;
  std::function<void()> steps[] = {[&] { rounds.measurePeak(); },
                                   [&] { rounds.own.measure([&] { code |= ours.run(); }); },
                                   [&] { rounds.heads.measure([&] { runRival(byHeads); }); },
                                   [&] { rounds.products.measure([&] { runRival(byProducts); }); }};
  const int count = 4;
  for (auto &step : steps) // a round that does not count: pages, threads
    step();
  double error = relativeError(ours.out.values, reference.values);
  rounds = Rounds();
  for (int round = 0; round < options.rounds; ++round) {
    fmt::print(stderr, "round {} of {}\r", round + 1, options.rounds);
    for (int step = 0; step < count; ++step)
      steps[(round + step) % count]();
  }
  printAttention(shape, rounds);
  fmt::print("  {:<34} {:.2e} relative L2 between the two results\n", "agreement", error);
  return code == 0 && error < 1e-5;
}

//===----------------------------------------------------------------------===//
// One query
//===----------------------------------------------------------------------===//

/// One query over many keys, with one thread and with all: what parts of the range
/// give. The results must have the same bits.
bool measureDecode(const Options &options) {
  Shape shape;
  shape.heads = shape.queries = 1;
  shape.keys = 65536;
  std::optional<Kernel> kernel = compile(options, "sdpa");
  if (!kernel)
    return false;
  Attention ours(shape, *kernel);
  const int all = numThreads();
  Samples one, many;
  int32_t code = 0;
  std::vector<float> results[2];
  auto measure = [&](int threads, Samples &samples, std::vector<float> &result) {
    omp_set_num_threads(threads);
    samples.measure([&] { code |= ours.run(); });
    result = ours.out.values;
  };
  for (int round = -1; round < options.rounds; ++round) {
    if (round == 0)
      one = many = Samples(); // the first round does not count
    for (bool first : {round % 2 == 0, round % 2 != 0})
      first ? measure(1, one, results[0]) : measure(all, many, results[1]);
  }
  omp_set_num_threads(all);
  bool same = results[0] == results[1];
  fmt::print("\ndecode, f32, (B, H, N, M, D) = (1, 1, 1, 65536, {}), {} rounds\n", shape.width, one.clock.size());
  printRate("one thread", one.clock, shape.flops());
  printRate(fmt::format("{} threads", all).c_str(), many.clock, shape.flops());
  printRatio("speed over one thread", ratios(one.clock, many.clock), " x", 1.6);
  fmt::print("  {:<34} {}\n", "bits of the two", same ? "equal" : "DIFFERENT");
  return code == 0 && same;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// A line of /proc/self/status in KiB, such as VmHWM.
int64_t readStatus(const std::string &key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key + ":", 0) == 0)
      return std::atoll(line.c_str() + key.size() + 1);
  return -1;
}

bool measureMemory(const Options &options) {
  Shape shape;
  shape.heads = 1;
  shape.queries = shape.keys = 65536;
  std::optional<Kernel> kernel = compile(options, "sdpa");
  if (!kernel)
    return false;
  Attention ours(shape, *kernel);
  // Threads, their stacks and the output's pages exist before the count starts.
  Shape small = shape;
  small.queries = small.keys = 256;
  if (Attention(small, *kernel).run())
    return false;
  std::ofstream("/proc/self/clear_refs") << "5"; // resets the high-water mark
  int64_t before = readStatus("VmRSS");
  double seconds = timed([&] { (void)ours.run(); });
  double growth = (readStatus("VmHWM") - before) / 1024.0;
  double space = ours.workspace->bytes / 1048576.0;
  fmt::print("\nmemory, f32, (B, H, N, D) = (1, 1, 65536, 128), {:.1f} s, {:.1f} "
             "GFLOP/s\n",
             seconds, shape.flops() / seconds * 1e-9);
  bool met = std::max(space, growth) <= 16;
  fmt::print("  {:<34} {:.2f} MiB\n", "workspace asked for", space);
  fmt::print("  {:<34} {:.2f} MiB; bar 16: {}\n", "growth of the resident set", growth, met ? "met" : "NOT met");
  return met;
}

//===----------------------------------------------------------------------===//
// Compile time
//===----------------------------------------------------------------------===//

struct CompileTimes {
  std::vector<double> lifted, vector, firstCall;
};

/// One fresh compilation; the call is on the smallest shape, so that what is
/// timed is the compiler.
bool compileOnce(const Options &options, CompileTimes &times) {
  CompilerOptions settings;
  settings.settings = {"T=f32", "D=128"};
  std::string path = options.examples + "/sdpa.moa";
  double begin = now();
  Compilation unit = Compiler(settings).compileFile(path);
  bool ok = unit.print(Level::Lifted).has_value();
  times.lifted.push_back(now() - begin);
  ok = ok && unit.print(Level::Vector).has_value();
  times.vector.push_back(now() - begin);

  begin = now();
  Compilation fresh = Compiler(settings).compileFile(path);
  std::optional<Kernel> kernel = fresh.load();
  if (!ok || !kernel) {
    fmt::print(stderr, "{}{}", unit.renderDiagnostics(), fresh.renderDiagnostics());
    return false;
  }
  Shape shape;
  shape.heads = shape.queries = shape.keys = 1;
  ok = Attention(shape, *kernel).run() == 0;
  times.firstCall.push_back(now() - begin);
  return ok;
}

bool measureCompilation(const Options &options) {
  CompileTimes times;
  for (int round = 0; round < options.rounds; ++round)
    if (!compileOnce(options, times))
      return false;
  auto print = [](const char *what, const std::vector<double> &seconds, double bar) {
    fmt::print("  {:<34} {:.3f} s (first {:.3f}, range {:.3f} .. {:.3f}); bar {}: "
               "{}\n",
               what, median(seconds), seconds.front(), quantile(seconds, 0), quantile(seconds, 1), bar,
               median(seconds) <= bar ? "met" : "NOT met");
  };
  fmt::print("\ncompilation of examples/sdpa.moa, T=f32, D=128\n");
  print("specification to lifted level", times.lifted, 0.5);
  print("specification to vector code", times.vector, 0.5);
  print("specification to end of first call", times.firstCall, 1.0);
  return true;
}

std::optional<Options> readOptions(int argc, char **argv) {
  Options options;
  for (int k = 1; k < argc; ++k) {
    std::string word = argv[k];
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name == "--rounds" && std::atoi(value.c_str()) > 0)
      options.rounds = std::atoi(value.c_str());
    else if (name == "--figure" &&
             (value == "all" || value == "attention" || value == "decode" || value == "memory" || value == "compile"))
      options.figure = value;
    else if (name == "--examples" && !value.empty())
      options.examples = value;
    else
      return std::nullopt;
  }
  return options;
}

} // namespace

int main(int argc, char **argv) {
  std::optional<Options> options = readOptions(argc, argv);
  if (!options) {
    fmt::print(stderr, "usage: moa-bench-cpu [--rounds=N] [--examples=DIR]\n"
                       "                     [--figure=all|attention|decode|memory|compile]\n");
    return 2;
  }
  fmt::print("OpenBLAS kernels: {}; threads: {}\n", blasCoreName(), numThreads());
  std::pair<const char *, bool (*)(const Options &)> figures[] = {{"compile", measureCompilation},
                                                                  {"attention", measureAttention},
                                                                  {"decode", measureDecode},
                                                                  {"memory", measureMemory}};
  bool ok = true;
  for (auto &[name, measure] : figures)
    if (options->figure == "all" || options->figure == name) {
      ok &= measure(*options);
      std::fflush(stdout);
    }
  return ok ? 0 : 1;
}

//===- Compilation.cpp - compilations in C --------------------------------===//

#include "lib/CAPI/Handles.h"

using namespace moa;
using namespace moa::capi;

static_assert(int(Level::MoA) == MOA_LEVEL_MOA && int(Level::DNF) == MOA_LEVEL_DNF &&
              int(Level::ONF) == MOA_LEVEL_ONF && int(Level::Lifted) == MOA_LEVEL_LIFTED &&
              int(Level::Vector) == MOA_LEVEL_VECTOR && int(Level::LLVM) == MOA_LEVEL_LLVM &&
              int(Level::Device) == MOA_LEVEL_DEVICE);

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

/// Stores the diagnostics after the first `known` ones as an error. `before` is the text of those.
static void setErrorSince(moa_error **error, const Compilation &unit, size_t known, const std::string &before) {
  if (!error)
    return;
  std::vector<Diagnostic> added;
  for (size_t k = known; k < unit.diagnostics().size(); ++k)
    if (unit.diagnostics()[k].severity != Severity::Remark)
      added.push_back(unit.diagnostics()[k]);
  // Diagnostics are only ever appended, so the text of the former ones is a prefix.
  std::string text = unit.renderDiagnostics().substr(before.size());
  setError(error, unit.ok() ? MOA_STATUS_QUERY : MOA_STATUS_COMPILATION, text.c_str(), added);
}

static bool failArgument(moa_error **error, const char *message) {
  setError(error, MOA_STATUS_ARGUMENT, message);
  return false;
}

/// Returns true if there is a compilation that can be queried. Otherwise stores an error.
static bool isUsable(const moa_compilation *compilation, moa_error **error) {
  if (!compilation)
    return failArgument(error, "the compilation is NULL");
  if (!compilation->isBroken)
    return true;
  setError(error, MOA_STATUS_INTERNAL, "the compilation is not usable: an earlier call ran out of memory or failed");
  return false;
}

/// Asks a question about a compilation. Returns what `make` makes of the answer, or null and the
/// error. `wrong` says why an argument is wrong, or is null.
template <typename Result, typename Question, typename Maker>
static Result *ask(moa_compilation *compilation, moa_error **error, const char *wrong, Question question,
                   Maker make) noexcept {
  return guarded(error, [&]() -> Result * {
    if (!isUsable(compilation, error) || (wrong && !failArgument(error, wrong)))
      return nullptr;
    size_t known = compilation->unit.diagnostics().size();
    std::string before = error ? compilation->unit.renderDiagnostics() : "";
    compilation->isBroken = true; // an exception leaves the state unknown
    auto answer = question(compilation->unit);
    compilation->isBroken = false;
    if (!answer) {
      setErrorSince(error, compilation->unit, known, before);
      return nullptr;
    }
    return make(std::move(*answer));
  });
}

/// Asks for a text or bytes.
template <typename Question>
static moa_text *ask(moa_compilation *compilation, moa_error **error, const char *wrong, Question question) noexcept {
  return ask<moa_text>(compilation, error, wrong, question,
                       [](const auto &answer) { return new moa_text{std::string(answer.begin(), answer.end())}; });
}

//===----------------------------------------------------------------------===//
// Compilations
//===----------------------------------------------------------------------===//

/// Returns a new compilation, or null with an error if it has failed.
template <typename Function>
static moa_compilation *compile(const moa_options *options, moa_error **error, Function work) {
  Compilation unit = work(Compiler(options ? options->options : CompilerOptions()));
  if (unit.ok())
    return new moa_compilation{std::move(unit), false, std::nullopt};
  setErrorSince(error, unit, 0, "");
  return nullptr;
}

moa_compilation *moa_compile_text(const moa_options *options, const char *text, const char *name, moa_error **error) {
  return guarded(error, [&]() -> moa_compilation * {
    if (!text && !failArgument(error, "the text of the specification is NULL"))
      return nullptr;
    return compile(options, error,
                   [&](const Compiler &compiler) { return compiler.compileText(text, name ? name : "input.moa"); });
  });
}

moa_compilation *moa_compile_file(const moa_options *options, const char *path, moa_error **error) {
  return guarded(error, [&]() -> moa_compilation * {
    if (!path && !failArgument(error, "the path of the specification is NULL"))
      return nullptr;
    return compile(options, error, [&](const Compiler &compiler) { return compiler.compileFile(path); });
  });
}

void moa_compilation_destroy(moa_compilation *compilation) { delete compilation; }

moa_level moa_compilation_input_level(const moa_compilation *compilation) {
  return compilation ? static_cast<moa_level>(compilation->unit.inputLevel()) : MOA_LEVEL_MOA;
}

size_t moa_compilation_diagnostic_count(const moa_compilation *compilation) {
  return compilation ? compilation->unit.diagnostics().size() : 0;
}

const moa_diagnostic *moa_compilation_diagnostic(const moa_compilation *compilation, size_t index) {
  return compilation ? getElement(compilation->unit.diagnostics(), index) : nullptr;
}

moa_text *moa_compilation_diagnostics(const moa_compilation *compilation, bool remarks, moa_error **error) {
  return guarded(error, [&]() -> moa_text * {
    return isUsable(compilation, error) ? new moa_text{compilation->unit.renderDiagnostics(remarks)} : nullptr;
  });
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

moa_text *moa_compilation_print(moa_compilation *compilation, int32_t level, moa_error **error) {
  bool isLevel = level >= MOA_LEVEL_MOA && level <= MOA_LEVEL_DEVICE;
  return ask(compilation, error, isLevel ? nullptr : "there is no level of this number",
             [&](Compilation &unit) { return unit.print(static_cast<Level>(level)); });
}

moa_text *moa_compilation_mathematics(moa_compilation *compilation, moa_error **error) {
  return ask(compilation, error, nullptr, [](Compilation &unit) { return unit.mathematics(); });
}

moa_text *moa_compilation_explain(moa_compilation *compilation, moa_error **error) {
  return ask(compilation, error, nullptr, [](Compilation &unit) { return unit.explain(); });
}

moa_text *moa_compilation_cuda(moa_compilation *compilation, moa_error **error) {
  return ask(compilation, error, nullptr, [](Compilation &unit) { return unit.cuda(); });
}

/// Returns one part of the PTX, which is made by the first query.
static std::optional<std::string> getPart(moa_compilation &compilation, int32_t part) {
  if (!compilation.ptx)
    compilation.ptx = compilation.unit.ptx();
  if (!compilation.ptx)
    return std::nullopt;
  const PTXFiles &files = *compilation.ptx;
  return part == MOA_PTX_TEXT ? files.text : part == MOA_PTX_LAUNCHER ? files.launcher : files.manifest;
}

moa_text *moa_compilation_ptx(moa_compilation *compilation, int32_t part, moa_error **error) {
  bool isPart = part >= MOA_PTX_TEXT && part <= MOA_PTX_MANIFEST;
  return ask(compilation, error, isPart ? nullptr : "there is no part of PTX of this number",
             [&](Compilation &) { return getPart(*compilation, part); });
}

moa_text *moa_compilation_cubin(moa_compilation *compilation, moa_error **error) {
  return ask(compilation, error, nullptr, [](Compilation &unit) { return unit.cubin(); });
}

moa_text *moa_compilation_object(moa_compilation *compilation, moa_error **error) {
  return ask(compilation, error, nullptr, [](Compilation &unit) { return unit.object(); });
}

moa_text *moa_compilation_header(moa_compilation *compilation, moa_error **error) {
  return ask(compilation, error, nullptr, [](Compilation &unit) { return unit.header(); });
}

moa_text *moa_compilation_manifest(moa_compilation *compilation, moa_error **error) {
  return ask(compilation, error, nullptr, [](Compilation &unit) { return unit.manifest(); });
}

moa_text *moa_compilation_schedule(moa_compilation *compilation, moa_error **error) {
  return ask(compilation, error, nullptr, [](Compilation &unit) { return unit.schedule(); });
}

/// Returns the fault of the arguments of a report, or null.
static const char *checkReport(int32_t format, const char *const *names, const int64_t *values, size_t count) {
  if (format != MOA_REPORT_TEXT && format != MOA_REPORT_JSON)
    return "there is no format of a report of this number";
  if (count && (!names || !values))
    return "the names or the values of the symbols are NULL";
  for (size_t k = 0; k < count; ++k)
    if (!names[k])
      return "the name of a symbol is NULL";
  return nullptr;
}

moa_text *moa_compilation_report(moa_compilation *compilation, int32_t format, const char *const *names,
                                 const int64_t *values, size_t count, moa_error **error) {
  return ask(compilation, error, checkReport(format, names, values, count), [&](Compilation &unit) {
    std::map<std::string, int64_t> symbols;
    for (size_t k = 0; k < count; ++k)
      symbols[names[k]] = values[k];
    return unit.report(format == MOA_REPORT_TEXT ? ReportFormat::Text : ReportFormat::JSON, symbols);
  });
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

moa_kernel *moa_load(moa_compilation *compilation, const char *name, moa_error **error) {
  return ask<moa_kernel>(
      compilation, error, nullptr, [&](Compilation &unit) { return unit.load(orEmpty(name)); },
      [](Kernel kernel) { return new moa_kernel{std::move(kernel)}; });
}

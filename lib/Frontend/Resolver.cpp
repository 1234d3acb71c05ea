//===- Resolver.cpp - names, arities and the order of definitions ---------===//
//
// A name with one definition may be used anywhere in its body. A name that is redefined, as in `S =
// mask(p, S)`, has versions. A use refers to the last version above it in the text. Each version is
// computed from the previous version. Values and functions have separate name spaces.
//
//===----------------------------------------------------------------------===//
#include "lib/Frontend/Resolver.h"
#include "lib/Frontend/Builtins.h"
#include "lib/Frontend/ForeignNames.h"
#include "lib/Support/Shorten.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/SaveAndRestore.h"
#include <set>

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

namespace {

/// The names of one kernel or function while its expressions are resolved.
struct Names {
  llvm::StringMap<unsigned> params;
  llvm::StringMap<SourceLoc> locations;            // of parameters and symbols
  llvm::StringMap<bool> symbols;                   // true for element types
  llvm::StringMap<SourceLoc> later;                // symbols from the current one on
  llvm::StringMap<std::vector<unsigned>> versions; // of definitions
  std::vector<const IndexVar *> indexVars;
  const Body *body = nullptr;
  unsigned current = 0;       // the definition being resolved
  std::vector<unsigned> uses; // definitions that it uses
  std::set<unsigned> callees; // functions that the body calls
  unsigned nextIndexVar = 0;
};

class Resolver {
public:
  Resolver(Program &program, const Reporter &reporter) : program(program), reporter(reporter) {}
  LogicalResult run();

private:
  LogicalResult declareFunctions();
  LogicalResult resolveFunction(unsigned index);
  LogicalResult resolveKernel(KernelDecl &kernel);
  LogicalResult refuseParameters(const Expr &constraint, const KernelDecl &kernel);
  LogicalResult resolveHeader(KernelDecl &kernel, Names &names);
  LogicalResult resolveBody(Body &body, Names &names, ArrayRef<std::string> results);
  LogicalResult checkVersions(const Body &body, const Names &names);
  LogicalResult declare(Names &names, StringRef name, SourceLoc loc);

  LogicalResult resolve(Expr &expr, Names &names);
  LogicalResult resolveChildren(Expr &expr, Names &names);
  LogicalResult resolveName(Expr &expr, Names &names);
  LogicalResult resolveDefinition(Expr &expr, Names &names, ArrayRef<unsigned> versions);
  LogicalResult resolveCall(Expr &expr, Names &names);
  LogicalResult resolveFunctionRef(Expr &expr, Names &names);
  LogicalResult resolveIndexForm(Expr &expr, Names &names);
  LogicalResult unknownName(const Expr &expr, const Names &names);
  LogicalResult unknownFunction(const Expr &expr, const Names &names);
  int lookupFunction(StringRef name, unsigned file) const;

  LogicalResult order(Body &body, ArrayRef<std::vector<unsigned>> uses, ArrayRef<unsigned> roots);
  LogicalResult visit(const Body &body, ArrayRef<std::vector<unsigned>> uses, unsigned root, std::vector<int> &state,
                      std::vector<unsigned> &sorted);
  LogicalResult checkRecursion();

  Program &program;
  const Reporter &reporter;
  llvm::StringMap<unsigned> functions[2]; // by file
  std::vector<std::set<unsigned>> callees;
  /// The predicate of the mask or selection being resolved.
  const Expr *predicate = nullptr;
  const Expr *assumed = nullptr;
};

} // namespace

LogicalResult frontend::resolveNames(Program &program, const Reporter &reporter) {
  return Resolver(program, reporter).run();
}

LogicalResult Resolver::run() {
  if (failed(declareFunctions()))
    return failure();
  callees.resize(program.functions.size());
  for (unsigned k = 0; k < program.functions.size(); ++k)
    if (failed(resolveFunction(k)))
      return failure();
  if (failed(checkRecursion()))
    return failure();
  llvm::StringMap<SourceLoc> kernels;
  for (KernelDecl &kernel : program.kernels) {
    auto [entry, isNew] = kernels.try_emplace(kernel.name, kernel.loc);
    if (!isNew) {
      auto error = reporter.error(kernel.loc) << "kernel '" << kernel.name << "' is defined twice";
      error.attachNote(reporter.exact(entry->second)) << "first defined here";
      return error;
    }
    if (failed(resolveKernel(kernel)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

LogicalResult Resolver::declareFunctions() {
  for (auto [index, function] : llvm::enumerate(program.functions)) {
    if (lookupBuiltin(function.name))
      return reporter.error(function.loc)
             << "'" << function.name << "' is a function of the language and cannot be defined";
    auto [entry, isNew] = functions[function.loc.file].try_emplace(function.name, index);
    if (isNew)
      continue;
    auto error = reporter.error(function.loc)
                 << (function.isMonoid() ? "monoid '" : "function '") << function.name << "' is defined twice";
    error.attachNote(reporter.exact(program.functions[entry->second].loc)) << "first defined here";
    return error;
  }
  return success();
}

int Resolver::lookupFunction(StringRef name, unsigned file) const {
  for (int k : {int(SourceLoc::User), int(SourceLoc::Prelude)}) {
    // The prelude calls its own functions, even if the user defines others of these names.
    if (file == SourceLoc::Prelude && k == SourceLoc::User)
      continue;
    auto entry = functions[k].find(name);
    if (entry != functions[k].end())
      return entry->second;
  }
  return -1;
}

LogicalResult Resolver::declare(Names &names, StringRef name, SourceLoc loc) {
  auto [entry, isNew] = names.locations.try_emplace(name, loc);
  if (isNew)
    return success();
  auto error = reporter.error(loc) << "'" << name << "' is declared twice";
  error.attachNote(reporter.exact(entry->second)) << "first declared here";
  return error;
}

LogicalResult Resolver::resolveFunction(unsigned index) {
  FunctionDecl &function = program.functions[index];
  Names names;
  for (auto [k, param] : llvm::enumerate(function.params)) {
    if (failed(declare(names, param.name, param.loc)))
      return failure();
    names.params[param.name] = k;
  }
  for (const FunctionParam &param : function.params) {
    if (!param.cell)
      continue;
    for (const FunctionParam::Extent &extent : *param.cell) {
      if (extent.symbol.empty() || names.symbols.count(extent.symbol))
        continue;
      if (failed(declare(names, extent.symbol, extent.loc)))
        return failure();
      names.symbols[extent.symbol] = false;
    }
  }
  if (function.identity) {
    Names none;
    if (failed(resolve(*function.identity, none)))
      return failure();
    names.callees = std::move(none.callees);
  }
  LogicalResult result = resolveBody(function.body, names, {});
  callees[index] = std::move(names.callees);
  return result;
}

LogicalResult Resolver::resolveHeader(KernelDecl &kernel, Names &names) {
  for (SymbolDecl &symbol : kernel.symbols)
    names.later.try_emplace(symbol.name, symbol.loc);
  for (SymbolDecl &symbol : kernel.symbols) {
    if (failed(declare(names, symbol.name, symbol.loc)) || (symbol.value && failed(resolve(*symbol.value, names))))
      return failure();
    names.symbols[symbol.name] = symbol.kind == SymbolDecl::ElementType;
    names.later.erase(symbol.name);
  }
  for (std::vector<ArrayDecl> *arrays : {&kernel.params, &kernel.results})
    for (ArrayDecl &array : *arrays) {
      for (ExprPtr &extent : array.shape)
        if (failed(resolve(*extent, names)))
          return failure();
      for (Expr *bound : {array.low.get(), array.high.get()})
        if (bound && failed(resolve(*bound, names)))
          return failure();
    }
  for (ExprPtr &constraint : kernel.constraints)
    if (failed(refuseParameters(*constraint, kernel)) || failed(resolve(*constraint, names)))
      return failure();
  for (auto [k, param] : llvm::enumerate(kernel.params)) {
    if (failed(declare(names, param.name, param.loc)))
      return failure();
    names.params[param.name] = k;
  }
  for (ExprPtr &assumption : kernel.assumptions) {
    llvm::SaveAndRestore<const Expr *> restore(assumed, assumption.get());
    if (failed(resolve(*assumption, names)))
      return failure();
  }
  return success();
}

/// Reports parameters in a constraint: it is checked from the shapes of a call, before any array is
/// read.
LogicalResult Resolver::refuseParameters(const Expr &constraint, const KernelDecl &kernel) {
  for (const ExprPtr &part : constraint.args)
    if (part && failed(refuseParameters(*part, kernel)))
      return failure();
  if (constraint.kind != ExprKind::Name)
    return success();
  auto param = llvm::find_if(kernel.params, [&](const ArrayDecl &array) { return array.name == constraint.name; });
  if (param == kernel.params.end())
    return success();
  std::string indices;
  for (size_t k = 0; k < param->shape.size(); ++k)
    indices += (k ? ", i" : "i") + std::to_string(k);
  auto error = reporter.error(constraint.loc)
               << "'" << param->name << "' is a parameter, and a constraint compares symbols, which are sizes";
  if (!llvm::is_contained({"i8", "i16", "i32", "i64", "u8", "u16", "u32"}, param->type.name))
    return error << "; an assumption is about integers, so write 'mask' or 'select' where its "
                    "values matter";
  if (indices.empty())
    return error << "; write promises of the caller about integers as 'assume', for example 'assume " << param->name
                 << " > 0'";
  return error << "; write promises of the caller about integers as 'assume', for example 'assume [" << indices << "] "
               << param->name << "[" << indices << "] > 0'";
}

LogicalResult Resolver::resolveKernel(KernelDecl &kernel) {
  Names names;
  if (failed(resolveHeader(kernel, names)))
    return failure();
  std::vector<std::string> results;
  Names resultNames = names;
  for (ArrayDecl &result : kernel.results) {
    if (failed(declare(resultNames, result.name, result.loc)))
      return failure();
    results.push_back(result.name);
  }
  std::set<std::string> defined;
  for (const Definition &definition : kernel.body.definitions)
    defined.insert(definition.name);
  for (ArrayDecl &result : kernel.results)
    if (!defined.count(result.name))
      return reporter.error(result.loc) << "result '" << result.name << "' is not defined in the body"
                                        << didYouMean(result.name,
                                                      std::vector<std::string>(defined.begin(), defined.end()));
  return resolveBody(kernel.body, names, results);
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

LogicalResult Resolver::resolveBody(Body &body, Names &names, ArrayRef<std::string> results) {
  names.body = &body;
  for (auto [k, definition] : llvm::enumerate(body.definitions)) {
    if (names.symbols.count(definition.name)) {
      auto error = reporter.error(definition.loc) << "'" << definition.name << "' is a symbol and cannot be defined";
      error.attachNote(reporter.exact(names.locations.lookup(definition.name))) << "declared here";
      return error;
    }
    names.versions[definition.name].push_back(k);
  }
  std::vector<std::vector<unsigned>> uses(body.definitions.size());
  for (auto [k, definition] : llvm::enumerate(body.definitions)) {
    names.current = k;
    names.uses.clear();
    if (failed(resolve(*definition.value, names)))
      return failure();
    uses[k] = names.uses;
  }
  std::vector<unsigned> roots;
  if (body.result) {
    names.current = body.definitions.size();
    names.uses.clear();
    if (failed(resolve(*body.result, names)))
      return failure();
    roots = names.uses;
  }
  for (const std::string &result : results)
    roots.push_back(names.versions[result].back());
  if (failed(order(body, uses, roots)))
    return failure();
  return checkVersions(body, names);
}

static bool mentions(const Expr &expr, StringRef name) {
  if (expr.kind == ExprKind::Name && expr.name == name && expr.ref.kind != Reference::IndexVariable)
    return true;
  return llvm::any_of(expr.args, [&](const ExprPtr &arg) { return mentions(*arg, name); }) ||
         llvm::any_of(expr.vars, [&](const IndexVar &var) { return var.bound && mentions(*var.bound, name); });
}

/// Reports a redefinition that does not use the previous version: probably a mistake.
LogicalResult Resolver::checkVersions(const Body &body, const Names &names) {
  for (auto [k, definition] : llvm::enumerate(body.definitions)) {
    unsigned first = names.versions.lookup(definition.name).front();
    bool isParam = names.params.count(definition.name);
    if ((first == k && !isParam) || mentions(*definition.value, definition.name))
      continue;
    auto error = reporter.error(definition.loc) << "'" << definition.name
                                                << "' is already defined, and this definition does not use "
                                                   "it; give one "
                                                   "of them another name";
    error.attachNote(reporter.exact(isParam ? names.locations.lookup(definition.name) : body.definitions[first].loc))
        << (isParam ? "declared here" : "first defined here");
    return error;
  }
  return success();
}

/// Depth-first search with an explicit stack, since the chain of definitions may be long.
LogicalResult Resolver::visit(const Body &body, ArrayRef<std::vector<unsigned>> uses, unsigned root,
                              std::vector<int> &state, std::vector<unsigned> &sorted) {
  enum { New, Open, Done };
  if (state[root] == Done)
    return success();
  std::vector<std::pair<unsigned, unsigned>> path{{root, 0}};
  state[root] = Open;
  while (!path.empty()) {
    auto &[node, position] = path.back();
    if (position == uses[node].size()) {
      state[node] = Done;
      sorted.push_back(node);
      path.pop_back();
      continue;
    }
    unsigned used = uses[node][position++];
    if (state[used] == Open) {
      const Definition &start = body.definitions[used];
      auto error = reporter.error(start.loc)
                   << "'" << start.name << "' is defined in terms of itself; define a first '" << start.name
                   << "' above it, or write a recurrence as a reduction over earlier "
                   << "indices, as in '+/ mask([i, j] j <= i, [_, j] x[j])'";
      for (auto step = path.rbegin(); step != path.rend() && step->first != used; ++step)
        error.attachNote(reporter.exact(body.definitions[step->first].loc))
            << "through '" << body.definitions[step->first].name << "' here";
      return error;
    }
    if (state[used] == New) {
      state[used] = Open;
      path.emplace_back(used, 0);
    }
  }
  return success();
}

LogicalResult Resolver::order(Body &body, ArrayRef<std::vector<unsigned>> uses, ArrayRef<unsigned> roots) {
  std::vector<int> state(body.definitions.size(), 0);
  for (unsigned root : roots)
    if (failed(visit(body, uses, root, state, body.needed)))
      return failure();
  for (unsigned k = 0; k < body.definitions.size(); ++k)
    if (failed(visit(body, uses, k, state, body.unneeded)))
      return failure();
  return success();
}

LogicalResult Resolver::checkRecursion() {
  // States: 0 new, 1 on the path, 2 done.
  std::vector<int> state(callees.size(), 0);
  for (unsigned root = 0; root < callees.size(); ++root) {
    std::vector<std::pair<unsigned, std::set<unsigned>::iterator>> path;
    auto enter = [&](unsigned node) {
      state[node] = 1;
      path.emplace_back(node, callees[node].begin());
    };
    if (state[root] == 0)
      enter(root);
    while (!path.empty()) {
      auto &[node, position] = path.back();
      if (position == callees[node].end()) {
        state[node] = 2;
        path.pop_back();
        continue;
      }
      unsigned callee = *position++;
      if (state[callee] == 0) {
        enter(callee);
      } else if (state[callee] == 1) {
        const FunctionDecl &function = program.functions[callee];
        auto error = reporter.error(function.loc)
                     << "function '" << function.name << "' calls itself; recursion does not exist in the language";
        for (auto step = path.rbegin(); step->first != callee; ++step)
          error.attachNote(reporter.exact(program.functions[step->first].loc))
              << "through '" << program.functions[step->first].name << "' here";
        return error;
      }
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

LogicalResult Resolver::resolve(Expr &expr, Names &names) {
  switch (expr.kind) {
  case ExprKind::Name:
    return resolveName(expr, names);
  case ExprKind::Call:
    return resolveCall(expr, names);
  case ExprKind::IndexForm:
    return resolveIndexForm(expr, names);
  case ExprKind::FunctionRef:
    return resolveFunctionRef(expr, names);
  case ExprKind::List:
    return reporter.error(expr.loc) << "a list stands only as a shape, a permutation or an index, as in "
                                       "'reshape(x, [m, n])'";
  default:
    return resolveChildren(expr, names);
  }
}

LogicalResult Resolver::resolveChildren(Expr &expr, Names &names) {
  bool hasPredicate = expr.kind == ExprKind::Call && (expr.name == "mask" || expr.name == "select");
  for (ExprPtr &arg : expr.args) {
    llvm::SaveAndRestore restore(predicate);
    if (hasPredicate)
      predicate = arg == expr.args.front() ? arg.get() : nullptr;
    if (failed(resolve(*arg, names)))
      return failure();
  }
  size_t arity = expr.args.size();
  if (expr.ranks && expr.ranks->size() != arity)
    return reporter.error(expr.loc) << "'" << expr.name << "' takes " << arity
                                    << (arity == 1 ? " cell rank" : " cell ranks") << " after '@', but got "
                                    << expr.ranks->size();
  return success();
}

LogicalResult Resolver::resolveName(Expr &expr, Names &names) {
  for (const IndexVar *var : llvm::reverse(names.indexVars))
    if (var->name == expr.name) {
      expr.ref = {Reference::IndexVariable, var->id};
      return success();
    }
  auto versions = names.versions.find(expr.name);
  if (versions != names.versions.end())
    return resolveDefinition(expr, names, versions->second);
  auto param = names.params.find(expr.name);
  if (param != names.params.end()) {
    expr.ref = {Reference::Parameter, param->second};
    return success();
  }
  auto symbol = names.symbols.find(expr.name);
  if (symbol == names.symbols.end())
    return unknownName(expr, names);
  if (symbol->second)
    return reporter.error(expr.loc) << "'" << expr.name << "' is an element type, not a value; a cast is written '"
                                    << expr.name << "(x)'";
  expr.ref = {Reference::Symbol, 0};
  return success();
}

LogicalResult Resolver::resolveDefinition(Expr &expr, Names &names, ArrayRef<unsigned> versions) {
  auto param = names.params.find(expr.name);
  bool isParam = param != names.params.end();
  unsigned chosen = versions.front();
  if (versions.size() > 1 || isParam) {
    auto above = llvm::lower_bound(versions, names.current);
    if (above == versions.begin() && isParam) {
      expr.ref = {Reference::Parameter, param->second};
      return success();
    }
    if (above == versions.begin()) {
      auto error = reporter.error(expr.loc) << "'" << expr.name
                                            << "' is defined more than once, and this use stands "
                                               "before its first definition";
      for (unsigned version : versions)
        error.attachNote(reporter.exact(names.body->definitions[version].loc)) << "defined here";
      return error;
    }
    chosen = *(above - 1);
  }
  expr.ref = {Reference::Definition, chosen};
  names.uses.push_back(chosen);
  return success();
}

LogicalResult Resolver::unknownName(const Expr &expr, const Names &names) {
  if (lookupBuiltin(expr.name) || lookupFunction(expr.name, expr.loc.file) >= 0)
    return reporter.error(expr.loc) << "'" << expr.name << "' is a function; call it with its arguments";
  if (auto later = names.later.find(expr.name); later != names.later.end()) {
    auto error = reporter.error(expr.loc)
                 << "'" << expr.name << "' has no value here: a constant reads only symbols that "
                 << "are declared before it";
    error.attachNote(reporter.exact(later->second)) << "declared here";
    return error;
  }
  std::vector<std::string> candidates;
  for (const IndexVar *var : names.indexVars)
    candidates.push_back(var->name);
  for (const auto &entry : names.versions)
    candidates.push_back(entry.first().str());
  for (const auto &entry : names.locations)
    candidates.push_back(entry.first().str());
  candidates.insert(candidates.end(), {"true", "false", "inf"});
  llvm::sort(candidates);
  std::string meant = didYouMean(expr.name, candidates);
  auto error = reporter.error(expr.loc) << "unknown name '" << expr.name << "'";
  if (assumed && assumed->kind != ExprKind::IndexForm)
    error << "; name the index before the assumption: '[" << expr.name << "] " << shorten(assumed->text, 60) << "'";
  else if (!meant.empty())
    error << meant;
  else if (predicate && predicate->kind != ExprKind::IndexForm)
    error << "; name the index before the predicate, with '_' for every other axis: "
             "'[_, "
          << expr.name << "] " << shorten(predicate->text, 60) << "'";
  else
    error << "; declare it: a size in '[…]' after the kernel's name, an array or a number in '(…)', "
             "an index before an expression, as in '[i] …'";
  return error;
}

LogicalResult Resolver::unknownFunction(const Expr &expr, const Names &names) {
  if (names.versions.count(expr.name) || names.params.count(expr.name))
    return reporter.error(expr.loc) << "'" << expr.name << "' is an array, not a function; index it with '" << expr.name
                                    << "[...]'";
  if (StringRef own = getOwnSpelling(expr.name); !own.empty())
    return reporter.error(expr.loc) << "unknown function '" << expr.name << "'; write " << own;
  if (isForeignType(expr.name))
    return reporter.error(expr.loc) << "unknown element type '" << expr.name << "'" << getTypeHint(expr.name);
  std::vector<std::string> candidates = getBuiltinNames();
  for (const auto &table : functions)
    for (const auto &entry : table)
      candidates.push_back(entry.first().str());
  llvm::sort(candidates);
  return reporter.error(expr.loc) << "unknown function '" << expr.name << "'" << didYouMean(expr.name, candidates);
}

static std::string countText(unsigned low, unsigned high) {
  std::string text = std::to_string(low);
  if (high != low)
    text += " or " + std::to_string(high);
  return text + (high == 1 ? " argument" : " arguments");
}

LogicalResult Resolver::resolveCall(Expr &expr, Names &names) {
  auto type = names.symbols.find(expr.name);
  bool isCast = getElementType(reporter.getContext(), expr.name) || (type != names.symbols.end() && type->second);
  const Builtin *builtin = lookupBuiltin(expr.name);
  unsigned low = isCast ? 1 : builtin ? builtin->minArgs : 0;
  unsigned high = isCast ? 1 : builtin ? builtin->maxArgs : 0;
  if (!isCast && !builtin) {
    expr.callee = lookupFunction(expr.name, expr.loc.file);
    if (expr.callee < 0)
      return unknownFunction(expr, names);
    names.callees.insert(expr.callee);
    low = high = program.functions[expr.callee].params.size();
  }
  if (expr.args.size() < low || expr.args.size() > high) {
    auto error = reporter.error(expr.loc)
                 << "'" << expr.name << "' takes " << countText(low, high) << ", but got " << expr.args.size();
    if (builtin)
      error << "; write " << builtin->usage;
    if (expr.callee >= 0)
      error.attachNote(reporter.exact(program.functions[expr.callee].loc)) << "defined here";
    return error;
  }
  if (expr.ranks && (isCast || (builtin && builtin->kind != Builtin::Pointwise)))
    return reporter.error(expr.loc) << "'" << expr.name
                                    << "' takes no cell ranks; put it into a 'def' with a cell "
                                       "pattern and lift that";
  if (!builtin || builtin->listArg < 0 || expr.args.size() <= static_cast<size_t>(builtin->listArg) ||
      expr.arg(builtin->listArg).kind != ExprKind::List)
    return resolveChildren(expr, names);
  for (ExprPtr &arg : expr.args)
    if (failed(arg->kind == ExprKind::List ? resolveChildren(*arg, names) : resolve(*arg, names)))
      return failure();
  return success();
}

LogicalResult Resolver::resolveFunctionRef(Expr &expr, Names &names) {
  bool isOperator = !llvm::isAlpha(expr.name[0]) && expr.name[0] != '_';
  if (isOperator || llvm::is_contained({"and", "or", "max", "min"}, expr.name))
    return success();
  const Builtin *builtin = lookupBuiltin(expr.name);
  if (builtin && builtin->kind == Builtin::Pointwise)
    return success();
  expr.callee = lookupFunction(expr.name, expr.loc.file);
  if (expr.callee < 0)
    return builtin ? reporter.error(expr.loc) << "'" << expr.name << "' is not a scalar function"
                   : unknownFunction(expr, names);
  names.callees.insert(expr.callee);
  return success();
}

LogicalResult Resolver::resolveIndexForm(Expr &expr, Names &names) {
  // The variables of the form are not in scope in its bounds.
  for (IndexVar &var : expr.vars)
    if (var.bound && failed(resolve(*var.bound, names)))
      return failure();
  size_t outside = names.indexVars.size();
  for (IndexVar &var : expr.vars) {
    var.id = names.nextIndexVar++;
    if (!var.isWildcard())
      names.indexVars.push_back(&var);
  }
  LogicalResult result = resolve(*expr.args[0], names);
  names.indexVars.resize(outside);
  return result;
}

//===- DNFInterpreter.cpp - definitions over index domains ----------------===//
#include "dialects/DNF/IR/DNF.h"
#include "lib/Interpreter/Machine.h"
#include "lib/Interpreter/UserMonoid.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace moa;
using namespace moa::interp;
using llvm::Error;
using llvm::Expected;

namespace {

/// The body of a let, an output or a reduction: arguments and a yield.
struct Body {
  Scope *scope = nullptr;
  std::vector<Node *> arguments;
  Node *value = nullptr, *condition = nullptr;

  bool present(Machine &m) const { return (!condition || m.get(condition).i) && m.isPresent(value); }
  bool mayBeAbsent() const { return condition || value->mayBeAbsent; }
};

/// A direct-mapped cache of values by index. A small domain has one entry per index. In a large
/// one, indices with the same low bits share an entry. A tag is the linear index + 1.
class Cache {
public:
  const Cell *find(uint64_t tag, ArrayRef<int64_t> domain) {
    if (entries.empty())
      allocate(domain);
    const Entry &entry = entries[(tag - 1) & (entries.size() - 1)];
    return entry.tag == tag ? &entry.value : nullptr;
  }
  void insert(uint64_t tag, Cell value) { entries[(tag - 1) & (entries.size() - 1)] = {tag, value}; }

private:
  struct Entry {
    uint64_t tag = 0;
    Cell value = ofInt(0);
  };
  static constexpr uint64_t kMaxEntries = uint64_t(1) << 21;

  void allocate(ArrayRef<int64_t> domain) {
    uint64_t size = 1, wanted = 1;
    for (int64_t extent : domain)
      wanted = std::min<uint64_t>(wanted * extent, kMaxEntries);
    while (size < wanted)
      size *= 2;
    entries.resize(size);
  }
  std::vector<Entry> entries;
};

struct Let {
  std::string name;
  std::vector<int64_t> domain;
  Body body;
  bool cached = false;
  Cache cache;
};

struct InputNode final : Node {
  InputNode(Scope *scope, Location loc, std::vector<Node *> indices, const Array &array, StringRef name, Form form,
            std::vector<bool> *reads)
      : Node(scope, loc), indices(std::move(indices)), array(array), name(name), form(form), reads(reads) {
    for (Node *index : this->indices)
      mayBeAbsent |= index->mayBeAbsent;
  }
  Cell compute(Machine &m) override {
    int64_t linear = 0;
    bool inside = true;
    for (size_t k = 0; k < indices.size(); ++k) {
      int64_t i = m.get(indices[k]).i, extent = array.shape[k];
      inside &= i >= 0 && i < extent;
      linear = linear * extent + i;
    }
    if (m.failed)
      return ofInt(0);
    if (!inside)
      return outside(m);
    if (reads)
      (*reads)[linear] = true;
    double value = array.data[linear];
    return form.isFloat() ? ofFloat(value) : fromDouble(value, form);
  }
  Cell outside(Machine &m) {
    std::vector<int64_t> index;
    for (Node *node : indices)
      index.push_back(m.get(node).i);
    return m.fail(loc, "index " + indexText(index) + " is outside '" + name + "' of shape " + indexText(array.shape));
  }
  bool present(Machine &m) override {
    return llvm::all_of(indices, [&](Node *index) { return m.isPresent(index); });
  }
  std::vector<Node *> indices;
  const Array &array;
  std::string name;
  Form form;
  std::vector<bool> *reads;
};

struct ApplyNode final : Node {
  ApplyNode(Scope *scope, Location loc, std::vector<Node *> indices, Let &let)
      : Node(scope, loc), indices(std::move(indices)), let(let) {
    mayBeAbsent = let.body.mayBeAbsent();
    for (Node *index : this->indices)
      mayBeAbsent |= index->mayBeAbsent;
  }
  /// Evaluates the indices. Returns their linear position in the domain + 1, or 0 if outside.
  uint64_t locate(Machine &m) {
    uint64_t linear = 0;
    for (size_t k = 0; k < indices.size(); ++k) {
      int64_t i = m.get(indices[k]).i;
      if (m.failed)
        return 0;
      if (i < 0 || i >= let.domain[k]) {
        m.fail(loc, "index " + Twine(i) + " is outside axis " + Twine(k) + " of '" + let.name + "' with domain " +
                        indexText(let.domain));
        return 0;
      }
      linear = linear * let.domain[k] + i;
    }
    return linear + 1;
  }
  void enter(Machine &m) {
    m.enter(*let.body.scope);
    for (size_t k = 0; k < indices.size(); ++k)
      m.set(let.body.arguments[k], indices[k]->value);
  }
  Cell compute(Machine &m) override {
    uint64_t tag = locate(m);
    if (!tag)
      return ofInt(0);
    if (!let.cached) {
      enter(m);
      return m.get(let.body.value);
    }
    if (const Cell *known = let.cache.find(tag, let.domain))
      return *known;
    enter(m);
    Cell value = m.get(let.body.value);
    if (!m.failed)
      let.cache.insert(tag, value);
    return value;
  }
  bool present(Machine &m) override {
    for (Node *index : indices)
      if (!m.isPresent(index))
        return false;
    if (!let.body.mayBeAbsent())
      return true;
    if (!locate(m))
      return false;
    enter(m);
    return let.body.present(m);
  }
  std::vector<Node *> indices;
  Let &let;
};

/// A reduction. If it depends on some but not all of the enclosing indices, its values are cached
/// by the indices it depends on.
struct ReduceNode final : Node {
  ReduceNode(Scope *scope, Location loc, Monoid monoid, std::shared_ptr<const UserMonoid> user, Type type,
             int64_t extent, Body body, std::vector<Node *> keys, std::vector<int64_t> domain)
      : Node(scope, loc), monoid(monoid), user(std::move(user)), type(type), extent(extent), body(body),
        keys(std::move(keys)), domain(std::move(domain)) {}
  Cell compute(Machine &m) override {
    if (keys.empty())
      return reduce(m);
    uint64_t tag = 0;
    for (auto [key, size] : llvm::zip(keys, domain))
      tag = tag * size + m.get(key).i;
    if (const Cell *known = cache.find(++tag, domain))
      return *known;
    Cell value = reduce(m);
    if (!m.failed)
      cache.insert(tag, value);
    return value;
  }
  Cell reduce(Machine &m) {
    Accumulator sum(monoid, type, user.get());
    for (int64_t j = 0; j < extent && !m.failed; ++j) {
      m.enter(*body.scope);
      m.set(body.arguments[0], ofInt(j));
      if (body.present(m))
        sum.add(m.movedStep(monoid, Form::of(type), m.get(body.value), *this, j));
    }
    if (const char *why = sum.getFault())
      return m.fail(loc, why);
    return sum.get();
  }
  Monoid monoid;
  std::shared_ptr<const UserMonoid> user;
  Type type;
  int64_t extent;
  Body body;
  std::vector<Node *> keys;
  std::vector<int64_t> domain;
  Cache cache;
};

struct WhereNode final : Node {
  WhereNode(Scope *scope, Location loc, Node *condition, Node *operand)
      : Node(scope, loc), condition(condition), operand(operand) {
    mayBeAbsent = true;
  }
  Cell compute(Machine &m) override { return m.get(operand); }
  bool present(Machine &m) override { return m.isPresent(condition) && m.get(condition).i && m.isPresent(operand); }
  Node *condition, *operand;
};

/// A selection, also between domains: absent if the selected value is.
struct JoinNode final : Node {
  JoinNode(Scope *scope, Location loc, Node *condition, Node *first, Node *second)
      : Node(scope, loc), condition(condition), first(first), second(second) {
    mayBeAbsent = condition->mayBeAbsent || first->mayBeAbsent || second->mayBeAbsent;
  }
  Cell compute(Machine &m) override { return m.get(picked(m)); }
  bool present(Machine &m) override { return m.isPresent(condition) && m.isPresent(picked(m)); }
  Node *picked(Machine &m) { return m.get(condition).i ? first : second; }
  Node *condition, *first, *second;
};

/// Yields the first value if it is present, otherwise the second.
struct OtherwiseNode final : Node {
  OtherwiseNode(Scope *scope, Location loc, Node *first, Node *second)
      : Node(scope, loc), first(first), second(second) {
    mayBeAbsent = first->mayBeAbsent && second->mayBeAbsent;
  }
  Cell compute(Machine &m) override { return m.get(m.isPresent(first) ? first : second); }
  bool present(Machine &m) override { return m.isPresent(first) || m.isPresent(second); }
  Node *first, *second;
};

struct Output {
  std::vector<int64_t> domain;
  Body body;
  Form form, stored; // of the value, and of the array's elements
};

class DNFInterpreter final : GraphBuilder {
public:
  DNFInterpreter(const Kernel &kernel, const Symbols &symbols, const KernelInputs &inputs,
                 const InterpretOptions &options)
      : GraphBuilder(kernel, symbols, state), inputs(inputs), options(options) {
    state.setRoundings(options);
  }

  Expected<std::vector<Array>> run(dnf::KernelOp op, const Sample *sample);

private:
  Expected<bool> buildSpecial(Operation *op) override;
  Error buildBody(Region &region, ArrayRef<int64_t> domain, Body &body);
  using Indices = llvm::SetVector<Value>;
  const Indices &indicesOf(Value value);
  Indices capturedIndices(Region &region);
  Error buildLet(dnf::LetOp op);
  Error buildReduce(dnf::ReduceOp op);
  Error buildPsi(dnf::PsiOp op);
  Error buildKernel(dnf::KernelOp op);
  Expected<std::vector<int64_t>> domainOf(ArrayAttr shape);
  double element(Output &output, ArrayRef<int64_t> index);

  Machine state;
  const KernelInputs &inputs;
  const InterpretOptions &options;
  /// The indices around the op being built, outermost first.
  std::vector<Value> around;
  llvm::DenseMap<Value, int64_t> extents;
  llvm::DenseMap<Value, Indices> dependences;
  std::map<std::string, std::unique_ptr<Let>> lets;
  std::map<unsigned, Output> outputs;
};

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

Error DNFInterpreter::buildBody(Region &region, ArrayRef<int64_t> domain, Body &body) {
  Block &block = region.front();
  // An inner body is deeper than everything it can use.
  body.scope = makeScope(++depth);
  body.arguments = makeArguments(block, body.scope);
  for (auto [arg, extent] : llvm::zip(block.getArguments(), domain)) {
    extents[arg] = extent;
    around.push_back(arg);
  }
  for (Operation &op : block.without_terminator())
    if (Error error = buildOp(&op))
      return error;
  around.resize(around.size() - block.getNumArguments());
  --depth;
  auto yield = cast<dnf::YieldOp>(block.getTerminator());
  body.value = nodeOf(yield.getValue());
  if (yield.getPresent())
    body.condition = nodeOf(yield.getPresent());
  return Error::success();
}

const DNFInterpreter::Indices &DNFInterpreter::indicesOf(Value value) {
  if (auto it = dependences.find(value); it != dependences.end())
    return it->second;
  Indices result;
  if (extents.count(value)) {
    result.insert(value);
  } else if (Operation *op = value.getDefiningOp()) {
    for (Value operand : op->getOperands())
      result.insert_range(indicesOf(operand));
    for (Region &region : op->getRegions())
      result.insert_range(capturedIndices(region));
  }
  return dependences[value] = std::move(result);
}

DNFInterpreter::Indices DNFInterpreter::capturedIndices(Region &region) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(region, captured);
  Indices result;
  for (Value value : captured)
    result.insert_range(indicesOf(value));
  return result;
}

Expected<std::vector<int64_t>> DNFInterpreter::domainOf(ArrayAttr shape) {
  std::vector<int64_t> domain;
  for (const SymExpr &expr : shape.getAsValueRange<ExprAttr>()) {
    auto extent = evaluate(expr, symbols);
    if (!extent)
      return extent.takeError();
    domain.push_back(*extent);
  }
  return domain;
}

/// Returns true if a let's body is expensive enough to be worth a cache.
static bool isExpensive(dnf::LetOp op) {
  return op
      ->walk([](Operation *inner) {
        bool cheap = !isa<dnf::ReduceOp, dnf::ApplyOp>(inner) && inner->getName().getDialectNamespace() != "math";
        return cheap ? WalkResult::advance() : WalkResult::interrupt();
      })
      .wasInterrupted();
}

Error DNFInterpreter::buildLet(dnf::LetOp op) {
  auto let = std::make_unique<Let>();
  let->name = op.getSymName().str();
  auto domain = domainOf(op.getDomain());
  if (!domain)
    return domain.takeError();
  let->domain = std::move(*domain);
  let->cached = isExpensive(op);
  if (Error error = buildBody(op.getBody(), let->domain, let->body))
    return error;
  lets[let->name] = std::move(let);
  return Error::success();
}

Error DNFInterpreter::buildReduce(dnf::ReduceOp op) {
  auto extent = evaluate(op.getExtent(), symbols);
  if (!extent)
    return extent.takeError();
  Body body;
  if (Error error = buildBody(op.getBody(), {*extent}, body))
    return error;
  Indices indices = capturedIndices(op.getBody());
  std::vector<Node *> keys;
  std::vector<int64_t> domain;
  if (indices.size() < around.size())
    for (Value index : indices) {
      keys.push_back(nodeOf(index));
      domain.push_back(extents[index]);
    }
  auto user = getUserMonoid(op);
  if (!user)
    return user.takeError();
  define(op.getResult(), make<ReduceNode>(captureScope(op.getBody()), op.getLoc(), op.getMonoid(), *user,
                                          op.getResult().getType(), *extent, body, std::move(keys), std::move(domain)));
  return Error::success();
}

Error DNFInterpreter::buildPsi(dnf::PsiOp op) {
  auto arg = dyn_cast<BlockArgument>(op.getArray());
  if (!arg || !isa<dnf::KernelOp>(arg.getOwner()->getParentOp()))
    return makeError(locationText(op.getLoc()) + "ψ on an array that is no input");
  unsigned k = arg.getArgNumber();
  const Array &array = inputs.arrays[k];
  std::vector<bool> *reads = nullptr;
  if (options.reads) {
    reads = &(*options.reads)[k];
    reads->resize(array.data.size());
  }
  Form form = Form::of(kernel.argTypes[k].getElementType());
  define(op.getResult(), make<InputNode>(scopeOf(op.getIndices()), op.getLoc(), nodesOf(op.getIndices()), array,
                                         kernel.argNames[k], form, reads));
  return Error::success();
}

Expected<bool> DNFInterpreter::buildSpecial(Operation *op) {
  auto done = [](Error error) -> Expected<bool> {
    if (error)
      return error;
    return true;
  };
  if (auto psi = dyn_cast<dnf::PsiOp>(op))
    return done(buildPsi(psi));
  if (auto reduce = dyn_cast<dnf::ReduceOp>(op))
    return done(buildReduce(reduce));
  if (auto extent = dyn_cast<dnf::ExtentOp>(op)) {
    makeExtent(extent.getResult(), evaluate(extent.getExpr(), symbols));
    return true;
  }
  if (auto where = dyn_cast<dnf::WhereOp>(op)) {
    define(where.getResult(), make<WhereNode>(scopeOf(op->getOperands()), op->getLoc(), nodeOf(where.getCondition()),
                                              nodeOf(where.getValue())));
    return true;
  }
  if (auto join = dyn_cast<dnf::JoinOp>(op)) {
    define(join.getResult(), make<JoinNode>(scopeOf(op->getOperands()), op->getLoc(), nodeOf(join.getCondition()),
                                            nodeOf(join.getFirst()), nodeOf(join.getSecond())));
    return true;
  }
  if (auto otherwise = dyn_cast<dnf::OtherwiseOp>(op)) {
    define(otherwise.getResult(), make<OtherwiseNode>(scopeOf(op->getOperands()), op->getLoc(),
                                                      nodeOf(otherwise.getFirst()), nodeOf(otherwise.getSecond())));
    return true;
  }
  auto apply = dyn_cast<dnf::ApplyOp>(op);
  if (!apply)
    return false;
  auto it = lets.find(apply.getLet().str());
  if (it == lets.end())
    return makeError(locationText(op->getLoc()) + "no let '" + apply.getLet() + "' above this");
  define(apply.getResult(),
         make<ApplyNode>(scopeOf(apply.getIndices()), op->getLoc(), nodesOf(apply.getIndices()), *it->second));
  return true;
}

Error DNFInterpreter::buildKernel(dnf::KernelOp op) {
  if (options.reads)
    options.reads->resize(inputs.arrays.size());
  for (Operation &inner : op.getBody().front()) {
    if (auto let = dyn_cast<dnf::LetOp>(inner)) {
      if (Error error = buildLet(let))
        return error;
      continue;
    }
    auto definition = cast<dnf::OutputOp>(inner);
    Output &output = outputs[definition.getResult()];
    auto domain = domainOf(definition.getDomain());
    if (!domain)
      return domain.takeError();
    output.domain = std::move(*domain);
    output.form = Form::of(definition.getType());
    output.stored = Form::of(kernel.resultTypes[definition.getResult()].getElementType());
    if (Error error = buildBody(definition.getBody(), output.domain, output.body))
      return error;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

double DNFInterpreter::element(Output &output, ArrayRef<int64_t> index) {
  machine.enter(*output.body.scope);
  for (auto [node, i] : llvm::zip(output.body.arguments, index))
    machine.set(node, ofInt(i));
  if (!output.body.present(machine))
    return 0;
  return toStored(machine.get(output.body.value), output.form, output.stored);
}

Expected<std::vector<Array>> DNFInterpreter::run(dnf::KernelOp op, const Sample *sample) {
  if (Error error = buildKernel(op))
    return error;
  std::vector<Array> results;
  for (unsigned k = 0; k < kernel.resultTypes.size(); ++k) {
    if (sample && sample->output != k)
      continue;
    auto it = outputs.find(k);
    if (it == outputs.end())
      return makeError("no dnf.output defines '" + kernel.resultNames[k] + "'");
    Output &output = it->second;
    Array array;
    if (sample) {
      for (const std::vector<int64_t> &index : sample->indices)
        if (!machine.failed)
          array.data.push_back(element(output, index));
      array.shape = {static_cast<int64_t>(array.data.size())};
    } else {
      array.shape = output.domain;
      std::vector<int64_t> index(output.domain.size(), 0);
      if (countOf(output.domain))
        do
          array.data.push_back(element(output, index));
        while (!machine.failed && nextIndex(index, output.domain));
    }
    if (machine.failed)
      return machine.takeError();
    results.push_back(std::move(array));
  }
  return results;
}

} // namespace

Expected<std::vector<Array>> moa::interp::interpretDNF(Operation *op, const Kernel &kernel, const Symbols &symbols,
                                                       const KernelInputs &inputs, const InterpretOptions &options,
                                                       const Sample *sample) {
  return DNFInterpreter(kernel, symbols, inputs, options).run(cast<dnf::KernelOp>(op), sample);
}

//===- KeyBlocks.cpp - few keys for many, where rows bound keys -----------===//
//
// Where row i has the keys j ≤ i + e, the rows fall into kBlocks blocks of R. All rows of block p
// have the keys in front of f = p·R + e, the first rows of the block having f and later ones more,
// up to f + R − 1. A row folds over the classes with the numbers and means of the keys in front of
// f, and over the keys from f on one by one (law F10 of docs/LowRank.md). Both stand behind each
// other in arrays of the block, the classes from the last place of theirs downwards, so that the
// places of a row are an interval:
//
//     classPlaces − (classes there are) ≤ x ≤ classPlaces + (i − p·R)
//
// A class without a key in front of f has no weight. In place of κ_c it has a key that all rows of
// the block have, so that extremes, and with them the references of exponentials, are those of keys
// that rows have.
//
//===----------------------------------------------------------------------===//
#include "lib/Precision/LowRank.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace moa::precision {

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

namespace {
/// keys · j + rows · i + Σ sign · rest + constant.
struct Difference {
  Value key, row;
  int64_t keys = 0, rows = 0, constant = 0;
  SmallVector<std::pair<Value, bool>> rest = {};

  /// Adds ± a value; false where it is not of this form.
  bool add(Value value, bool isPositive) {
    int64_t sign = isPositive ? 1 : -1;
    APInt number;
    if (!value.getType().isIndex())
      return false;
    if (value == key || value == row) {
      (value == key ? keys : rows) += sign;
      return true;
    }
    if (matchPattern(value, m_ConstantInt(&number))) {
      constant += sign * number.getSExtValue();
      return true;
    }
    llvm::SmallPtrSet<Value, 8> indices;
    if (!collectIndices(value, indices))
      return false;
    if (!indices.contains(key) && !indices.contains(row)) {
      rest.emplace_back(value, isPositive);
      return true;
    }
    Operation *op = value.getDefiningOp();
    return isa<arith::AddIOp, arith::SubIOp>(op) && add(op->getOperand(0), isPositive) &&
           add(op->getOperand(1), isPositive == isa<arith::AddIOp>(op));
  }
};
} // namespace

/// The guard of the fold, if it has one, as j ≤ i + e, and nothing else that needs what knows the
/// key there.
bool KeyClasses::findBound(std::string &why) {
  onf::FoldOp outer = score().outer;
  auto guards = llvm::to_vector(outer.getBody().getOps<onf::GuardOp>());
  if (guards.empty())
    return true;
  if (!options.uses("F10")) {
    why = "law F10, of bounds that move with rows, is disabled";
    return false;
  }
  why = "the fold over '" + outer.getName().str() +
        "' is masked by more than a bound of keys j that moves with rows i, j <= i + c with one c "
        "for all rows";
  auto compare = guards[0].getCondition().getDefiningOp<arith::CmpIOp>();
  if (guards.size() > 1 || !compare)
    return false;
  using arith::CmpIPredicate;
  CmpIPredicate kind = compare.getPredicate();
  bool isLess = kind == CmpIPredicate::sle || kind == CmpIPredicate::slt;
  if (!isLess && kind != CmpIPredicate::sge && kind != CmpIPredicate::sgt)
    return false;
  // Not negative where the key is there.
  Difference difference{outer.getBody().getArgument(0),
                        nest.getBody().front().getArguments().back()};
  if (!difference.add(compare.getRhs(), isLess) || !difference.add(compare.getLhs(), !isLess) ||
      difference.keys != -1 || difference.rows != 1)
    return false;
  bound.constant = difference.constant - (kind == CmpIPredicate::slt || kind == CmpIPredicate::sgt);
  bound.rest = difference.rest;
  llvm::SetVector<Operation *> ops;
  ops.insert(compare);
  for (size_t next = 0; next < ops.size(); ++next)
    for (Value operand : ops[next]->getOperands()) {
      llvm::SmallPtrSet<Value, 8> indices;
      if (operand != difference.key && operand.getDefiningOp() &&
          collectIndices(operand, indices) && indices.contains(difference.key))
        ops.insert(operand.getDefiningOp());
    }
  for (Operation *op : ops)
    for (Operation *user : op->getUsers())
      if (user != guards[0] && !ops.contains(user))
        return false;
  // The copy engine of a GPU takes arrays of five axes, and those of blocks have three more.
  if (nest.getExtents().size() > 3) {
    why = "rows have different keys, and there are more than two axes in front of them";
    return false;
  }
  bound.guard = guards[0];
  bound.ops = ops;
  return true;
}

/// i + e for i = 0.
Value KeyClasses::boundOfFirst(Code &code, ValueRange head) {
  IRMapping map = headMap(head, Value());
  Value sum = code.index(bound.constant);
  for (auto [value, isAdded] : bound.rest) {
    Value part = copyOf(code, value, map);
    sum = isAdded ? code.make<arith::AddIOp>(sum, part) : code.make<arith::SubIOp>(sum, part);
  }
  return sum;
}

SymExpr KeyClasses::blockLength() {
  SymExpr unit(kBlockUnit), all(kBlocks * kBlockUnit);
  return unit * SymExpr::floorDiv(rows() + all - SymExpr(1), all);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Of each block the keys that all of its rows have and those of the block before do not, where its
/// classes start, and where the keys of its first row end.
void KeyClasses::addBlockEnds() {
  Type i32 = Builder(kernel.getContext()).getI32Type();
  SymExpr blocks(kBlocks);
  blockFrom = addArray("block_from", {blocks}, i32);
  blockKeys = addArray("block_keys", {blocks}, i32);
  blockStart = addArray("block_start", {blocks}, i32);
  blockEnd = addArray("block_end", {blocks}, i32);
  auto [names, extents] = headed("p", blocks);
  // Bounds of folds, which are read where nothing is tried, too.
  editor.addNest(names, extents, nullptr, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back();
    Value zero = code.index(0), length = code.extent(blockLength()),
          places = code.extent(classPlaces());
    Value row = code.make<arith::MulIOp>(indices.back(), length);
    Value last = code.make<arith::AddIOp>(row, boundOfFirst(code, head)); // key of the first row
    auto inside = [&](Value key) {
      return code.make<arith::MinSIOp>(code.make<arith::MaxSIOp>(key, zero),
                                       code.extent(numKeys()));
    };
    Value first = inside(last);
    Value isFirst = code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, indices.back(), zero);
    Value from =
        code.make<arith::SelectOp>(isFirst, zero, inside(code.make<arith::SubIOp>(last, length)));
    Value isUsed = code.make<arith::CmpIOp>(arith::CmpIPredicate::slt, row, code.extent(rows()));
    Value isBehind = code.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, first, zero);
    Value number = code.make<arith::SelectOp>(code.make<arith::AndIOp>(isUsed, isBehind),
                                              code.toIndex(code.load(all, head)), zero);
    // Rows without a key, of a block that is not there all of them.
    Value blind = code.make<arith::MaxSIOp>(code.make<arith::SubIOp>(zero, last), zero);
    blind = code.make<arith::SelectOp>(isUsed, code.make<arith::MinSIOp>(blind, length), length);
    code.store(from, blockFrom, indices);
    code.store(first, blockKeys, indices);
    code.store(code.make<arith::SubIOp>(places, number), blockStart, indices);
    code.store(code.make<arith::SubIOp>(places, blind), blockEnd, indices);
  });
}

/// What stands at a place of a block: a class, an odd key or one of the block's own keys.
KeyClasses::Place KeyClasses::readPlace(Code &code, ValueRange head, Value x) {
  using arith::CmpIPredicate;
  auto is = [&](CmpIPredicate kind, Value a, Value b) {
    return code.make<arith::CmpIOp>(kind, a, b);
  };
  auto both = [&](Value a, Value b) { return code.make<arith::AndIOp>(a, b); };
  Value one = code.index(1), zero = code.index(0), places = code.extent(classPlaces());
  Value classesHere = numClasses(code, head);
  Place place;
  place.isOwn = is(CmpIPredicate::sge, x, places);
  place.own = code.make<arith::MaxSIOp>(code.make<arith::SubIOp>(x, places), zero);
  // From the last place downwards.
  Value number = code.make<arith::SubIOp>(code.make<arith::SubIOp>(places, one), x);
  Value isThere = is(CmpIPredicate::sge, number, zero);
  number = code.make<arith::MaxSIOp>(number, zero);
  place.isClass = both(is(CmpIPredicate::slt, number, classesHere), isThere);
  place.isOdd = both(both(is(CmpIPredicate::slt, number, code.toIndex(code.load(all, head))),
                          is(CmpIPredicate::sge, number, classesHere)),
                     isThere);
  Value odd = code.make<arith::MaxSIOp>(code.make<arith::SubIOp>(number, classesHere), zero);
  odd = code.toIndex(code.load(oddKeys, at(head, {odd})));
  place.odd = code.make<arith::SelectOp>(place.isOdd, odd, zero);
  place.number =
      code.make<arith::MinSIOp>(number, code.make<arith::SubIOp>(code.extent(mostClasses()), one));
  return place;
}

/// The key of a place that is no class, in a block; behind the last key that one.
Value KeyClasses::keyOfPlace(Code &code, ValueRange head, Value block, const Place &place) {
  Value own =
      code.make<arith::AddIOp>(code.toIndex(code.load(blockKeys, at(head, {block}))), place.own);
  Value last = code.make<arith::SubIOp>(code.extent(numKeys()), code.index(1));
  return code.make<arith::SelectOp>(place.isOwn, code.make<arith::MinSIOp>(own, last), place.odd);
}

std::pair<KeyClasses::Extents, KeyClasses::Extents> KeyClasses::blocked(StringRef name,
                                                                        const SymExpr &extent) {
  auto axes = headed("p", SymExpr(kBlocks));
  axes.first.push_back(editor.text(name));
  axes.second.push_back(editor.text(extent));
  return axes;
}

/// The keys of each block, and how often they count.
void KeyClasses::addBlockKeys() {
  using arith::CmpIPredicate;
  Builder b(kernel.getContext());
  SymExpr blocks(kBlocks);
  members = addArray("members", {blocks, blockPlaces()}, b.getF32Type());
  auto [names, extents] = blocked("x", blockPlaces());
  editor.addNest(names, extents, &sampled, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back(2);
    Value p = indices.drop_back().back();
    Place place = readPlace(code, head, indices.back());
    Value sum = code.fold("q", blocks, [&](Code &in, Value q, Value &present) {
      present = in.make<arith::CmpIOp>(CmpIPredicate::sle, q, p);
      return SmallVector<Code::Term>{
          {Monoid::add, "members", in.load(counts, at(head, {q, place.number}))}};
    })[0];
    // A key of the block is there, or an odd one in front of it.
    Value first = code.toIndex(code.load(blockKeys, at(head, {p})));
    Value own = code.make<arith::AddIOp>(first, place.own);
    Value isKey = code.make<arith::CmpIOp>(CmpIPredicate::slt, own, code.extent(numKeys()));
    Value isBefore = code.make<arith::CmpIOp>(CmpIPredicate::slt, place.odd, first);
    isKey = code.make<arith::OrIOp>(code.make<arith::AndIOp>(isKey, place.isOwn),
                                    code.make<arith::AndIOp>(isBefore, place.isOdd));
    Value number = code.make<arith::SelectOp>(place.isClass, sum, code.real(0));
    code.store(code.make<arith::SelectOp>(isKey, code.real(1), number), members, indices);
  });
  // What has no member is the first key of all.
  Value keys = addArray("all_keys", {blocks, blockPlaces(), depth()},
                        score().key.load.getResult().getType());
  editor.addNest(names, extents, &sampled, [&](Code &code, ValueRange indices) {
    ValueRange head = indices.drop_back(2);
    Place place = readPlace(code, head, indices.back());
    Value isAny = code.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, code.load(members, indices),
                                           code.real(0));
    Value isClass = code.make<arith::AndIOp>(place.isClass, isAny);
    Value key = keyOfPlace(code, head, indices.drop_back().back(), place);
    isAny = code.make<arith::OrIOp>(isAny, place.isOwn);
    key = code.make<arith::SelectOp>(isAny, key, code.index(0));
    code.loops({editor.text("k")}, {editor.text(depth())}, [&](Code &in, ValueRange k) {
      Value mean = in.load(classKeys, at(head, {place.number, k[0]}));
      in.store(in.make<arith::SelectOp>(isClass, mean, loadKey(in, head, key, k[0])), keys,
               at(indices, {k[0]}));
    });
  });
  classKeys = keys;
}

/// What stands along the keys: means of the members of classes in front of the block, and behind
/// them the block's own.
void KeyClasses::addBlockValues() {
  SymExpr blocks(kBlocks);
  for (auto [k, sum] : llvm::enumerate(sums)) {
    SymExpr width = widthOf(sum);
    Value values =
        addArray("values", {blocks, blockPlaces(), width}, sum.load.getResult().getType());
    Value mean = means[k];
    const WeightedSum &of = sum;
    auto [names, extents] = headed("x", blockPlaces());
    names.push_back(editor.text("d"));
    extents.push_back(editor.text(width));
    // Each mean is read once for all blocks.
    editor.addNest(names, extents, &sampled, [&](Code &code, ValueRange indices) {
      ValueRange head = indices.drop_back(2);
      Value x = indices.drop_back().back(), d = indices.back();
      Place place = readPlace(code, head, x);
      Value part, one, number;
      // Of all blocks, and of those up to each.
      Code::Values parts = code.fold(
          "q", blocks,
          [&](Code &in, Value q, Value &present) {
            present = place.isClass;
            number = q;
            Value count = in.load(counts, at(head, {q, place.number}));
            part =
                in.make<arith::MulFOp>(count, in.loadFloat(mean, at(head, {q, place.number, d})));
            one = in.real(1);
            return SmallVector<Code::Term>{{Monoid::add, "all", part}};
          },
          [&](Code &) {
            // What is infinite or no number stays away from blocks in front of it.
            auto along = [q = number, part](Code &term, Value p) {
              Value isBefore = term.make<arith::CmpIOp>(arith::CmpIPredicate::sle, q, p);
              return term.make<arith::SelectOp>(isBefore, part, term.real(0));
            };
            return SmallVector<Code::Sum>{
                {"before", editor.text("p"), editor.text(blocks), one, along, Type()}};
          });
      Value isKey = code.make<arith::OrIOp>(place.isOwn, place.isOdd);
      code.loops({editor.text("p")}, {editor.text(blocks)}, [&](Code &in, ValueRange p) {
        Value count = in.load(members, at(head, {p[0], x}));
        Value isNone = in.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, count, in.real(0));
        Value isLast =
            in.make<arith::CmpIOp>(arith::CmpIPredicate::eq, p[0], in.index(kBlocks - 1));
        Value total = in.make<onf::AtOp>(in.b.getF32Type(), parts[1], p);
        total = in.make<arith::SelectOp>(isLast, parts[0], total);
        Value found =
            in.make<arith::DivFOp>(total, in.make<arith::SelectOp>(isNone, in.real(1), count));
        Value own = in.widen(valueAt(in, of, head, keyOfPlace(in, head, p[0], place), d));
        found = in.make<arith::SelectOp>(isKey, own, found);
        in.store(in.make<arith::SelectOp>(isNone, in.real(0), found), values,
                 at(head, {p[0], x, d}));
      });
    });
    classValues.push_back(values);
  }
}

/// The rows of each block; behind the last one that one.
void KeyClasses::addBlockRows() {
  auto type = cast<ArrayType>(score().row.array().getType());
  Attribute width = type.getShape()[score().row.axis];
  blockRows = addArray(
      "block_rows",
      {SymExpr(kBlocks), blockLength(), *SymExpr::parse(cast<StringAttr>(width).getValue())},
      type.getElementType());
  auto [names, extents] = blocked("t", blockLength());
  editor.addNest(names, extents, &sampled, [&](Code &code, ValueRange indices) {
    Value start = code.make<arith::MulIOp>(indices.drop_back().back(), code.extent(blockLength()));
    Value row = code.make<arith::AddIOp>(start, indices.back());
    row = code.make<arith::MinSIOp>(row,
                                    code.make<arith::SubIOp>(code.extent(rows()), code.index(1)));
    IRMapping map = headMap(indices.drop_back(2), row);
    code.loops({editor.text("k")}, {width}, [&](Code &in, ValueRange k) {
      in.store(loadAt(in, score().row, score().row.array(), k[0], map), blockRows,
               at(indices, {k[0]}));
    });
  });
}

//===----------------------------------------------------------------------===//
// The nest
//===----------------------------------------------------------------------===//

/// A nest over rows, or over the sample, becomes one over blocks and rows of one, or all of the
/// sample.
void KeyClasses::enterBlocks(Copy &copy, bool isSample) {
  Builder b(kernel.getContext());
  Block &body = copy.nest.getBody().front();
  unsigned last = body.getNumArguments() - 1;
  auto insert = [&](ArrayAttr list, StringRef text) {
    SmallVector<Attribute> all(list.begin(), list.end());
    all.insert(all.begin() + last, b.getStringAttr(text));
    return b.getArrayAttr(all);
  };
  copy.nest.setNamesAttr(insert(copy.nest.getNames(), "p"));
  copy.nest.setExtentsAttr(insert(copy.nest.getExtents(), std::to_string(kBlocks)));
  BlockArgument block = body.insertArgument(last, b.getIndexType(), copy.nest.getLoc());
  ValueRange head = body.getArguments().drop_back();
  BlockArgument place = body.getArgument(last + 1);
  auto outer = cast<onf::FoldOp>(copy.map.lookup(score().outer.getOperation()));
  if (!isSample) {
    SmallVector<Attribute> extents(copy.nest.getExtents().begin(), copy.nest.getExtents().end());
    extents.back() = editor.text(blockLength());
    copy.nest.setExtentsAttr(b.getArrayAttr(extents));
    // The number of the row, of those behind the last one that one's, stands for the place.
    Code front(kernel, OpBuilder::atBlockBegin(&body), copy.nest.getLoc());
    Value end = front.make<arith::SubIOp>(front.extent(rows()), front.index(1));
    Value start = front.make<arith::MulIOp>(block, front.extent(blockLength()));
    Value number = front.make<arith::AddIOp>(start, place);
    copy.row = front.make<arith::MinSIOp>(number, end);
    place.replaceUsesWithIf(
        copy.row, [&](OpOperand &use) { return use.getOwner() != number.getDefiningOp(); });
    readSampledRows(copy, score(), blockRows);
  }
  Code before(kernel, OpBuilder(outer), outer.getLoc());
  Value start = before.toIndex(before.load(blockStart, head)),
        end = before.toIndex(before.load(blockEnd, head));
  if (isSample)
    end = before.make<arith::SubIOp>(
        end, before.make<arith::MulIOp>(block, before.extent(blockLength())));
  end = before.make<arith::AddIOp>(isSample ? copy.row : Value(place), end);
  outer.setExtentAttr(editor.text(blockPlaces()));
  auto guard = cast<onf::GuardOp>(copy.map.lookup(bound.guard.getOperation()));
  Code in(kernel, OpBuilder(guard), guard.getLoc());
  Value x = outer.getBody().getArgument(0);
  Value isBehind = in.make<arith::CmpIOp>(arith::CmpIPredicate::sge, x, start);
  Value isBefore = in.make<arith::CmpIOp>(arith::CmpIPredicate::sle, x, end);
  guard.getConditionMutable().assign(in.make<arith::AndIOp>(isBehind, isBefore));
  // What the condition was made of, users first.
  SmallVector<Operation *> unused;
  for (Operation *op : bound.ops)
    unused.push_back(copy.map.lookup(op));
  while (!unused.empty()) {
    auto next = llvm::find_if(unused, [](Operation *op) { return op->use_empty(); });
    (*next)->erase();
    unused.erase(next);
  }
}

/// Results of the rows of blocks go where those of rows do.
void KeyClasses::leaveBlocks(Copy &copy, unsigned plan) {
  SmallVector<Value> arrays;
  for (Result &result : results) {
    SmallVector<Attribute> extents(copy.nest.getExtents().begin(), copy.nest.getExtents().end());
    llvm::append_range(extents, result.extents);
    Type element = cast<ArrayType>(result.store.getArray().getType()).getElementType();
    arrays.push_back(editor.addTemporary(kernel.getArrayName(numberOf(result.store)) + "_blocks",
                                         extents, element));
  }
  storeIn(copy, arrays);
  Choice choice{chosen.array, chosen.axes, int64_t(plan)};
  editor.addNest(SmallVector<Attribute>(nest.getNames().begin(), nest.getNames().end()),
                 SmallVector<Attribute>(nest.getExtents().begin(), nest.getExtents().end()),
                 &choice, [&](Code &code, ValueRange indices) {
                   Value length = code.extent(blockLength());
                   Value block = code.make<arith::FloorDivSIOp>(indices.back(), length);
                   Value place = code.make<arith::SubIOp>(indices.back(),
                                                          code.make<arith::MulIOp>(block, length));
                   for (auto [result, array] : llvm::zip_equal(results, arrays)) {
                     onf::StoreOp store = result.store;
                     auto write = [&](Code &in, ValueRange inner) {
                       IRMapping map = headMap(indices.drop_back(), indices.back());
                       size_t next = inner.size();
                       for (auto loop = store->getParentOfType<onf::ForOp>(); loop != nest;
                            loop = loop->getParentOfType<onf::ForOp>())
                         for (BlockArgument index : llvm::reverse(loop.getBody().getArguments()))
                           map.map(index, inner[--next]);
                       SmallVector<Value> terms, from = at(indices.drop_back(), {block, place});
                       for (Value term : store.getTerms())
                         terms.push_back(copyOf(in, term, map));
                       llvm::append_range(from, inner);
                       onf::StoreOp::create(in.b, in.loc, in.load(array, from), store.getArray(),
                                            terms, store.getCoefficients(), store.getConstant());
                     };
                     if (result.names.empty())
                       write(code, {});
                     else
                       code.loops(result.names, result.extents, write);
                   }
                 });
}

/// All rows of the sample at every block, whose tiles they are a part of, and of each those of its
/// own block.
SmallVector<Value> KeyClasses::addSample(unsigned plan, StringRef name, Type element) {
  if (!plan || !isBounded())
    return Chooser::addSample(plan, name, element);
  SmallVector<Value> samples = addSampleArrays(name + Twine(plan), picked.extents, element);
  Copy copy = copySample(sampled);
  rewrite(copy, plan, copy.nest.getBody().getArguments());
  SmallVector<Attribute> outer(copy.nest.getExtents().begin(), copy.nest.getExtents().end());
  SmallVector<Value> arrays = addSampleArrays("_block_sample", outer);
  storeIn(copy, arrays);
  splitSample(copy, kPartLength);
  editor.addNest(picked.names, picked.extents, &sampled, [&](Code &code, ValueRange indices) {
    Value row = code.toIndex(code.load(picked.numbers, indices));
    Value block = code.make<arith::FloorDivSIOp>(row, code.extent(blockLength()));
    for (auto [result, from, to] : llvm::zip_equal(results, arrays, samples)) {
      auto write = [&](Code &in, ValueRange inner) {
        SmallVector<Value> place = at(indices.drop_back(), {block, indices.back()}), row(indices);
        llvm::append_range(place, inner);
        llvm::append_range(row, inner);
        in.store(in.load(from, place), to, row);
      };
      if (result.names.empty())
        write(code, {});
      else
        code.loops(result.names, result.extents, write);
    }
  });
  return samples;
}

} // namespace moa::precision

//===- LevelWordsTest.cpp - messages in the words of the levels -----------===//
#include "lib/Support/LevelWords.h"
#include "gtest/gtest.h"

using namespace moa;

TEST(LevelWords, Text) {
  const std::pair<const char *, const char *> cases[] = {
      {"custom op 'moa.iot' is unknown (tried 'func.moa.iot' as well)", "there is no operation 'moa.iot'"},
      {"Dialect `mao' not found for custom op 'mao.iota' ", "there is no operation 'mao.iota'"},
      {"unregistered operation 'moa.x' found in dialect ('moa') that does not allow unknown "
       "operations",
       "there is no operation 'moa.x'"},
      {"unknown  type `arry` in dialect `moa`", "there is no type '!moa.arry'"},
      {"unknown attribute `fn` in dialect `moa`", "there is no attribute '#moa.fn'"},
      {"use of undeclared SSA value name", "this value is not defined; a value is the result of an "
                                           "operation or an argument of a block"},
      {"use of value '%0' expects different type than prior uses: 'f32' vs 'index'",
       "the value '%0' has the type f32 here, but index elsewhere"},
      {"prior use here", "it is defined or used with the other type here"},
      {"definition of SSA value '%0#0' has type 'f32'",
       "the value '%0' is defined with the type 'f32', but is used with another one"},
      {"previously used here with type 'index'", "it is used here with the type 'index'"},
      {"redefinition of SSA value '%0'", "the value '%0' is defined twice"},
      {"redefinition of block '^bb0'", "'^bb0' is defined twice"},
      {"redefinition of symbol named 'k'", "the name 'k' is given twice"},
      {"see existing symbol definition here", "it is given here first"},
      {"previously defined here", "it is defined here before"},
      {"reference to an undefined block", "this block is not defined"},
      {"reference to invalid result number", "the operation has no result of this number"},
      {"operation defines 1 result but was provided 2 to bind", "results of the operation: 1; names for them: 2"},
      {"cannot name an operation with no results", "the operation has no result that could have a name"},
      {"expected SSA operand", "expects a value, as in '%x'"},
      {"unexpected ssa identifier", "expects no value here"},
      {"invalid block name", "expects a block, as in '^bb0'"},
      {"unbalanced '<' character in pretty dialect name", "the bracket '<' of this type or attribute has no partner"},
      {"unexpected nul or EOF in pretty dialect name", "the text ends inside of a type or an attribute"},
      {"attribute 'axes' occurs more than once in the attribute list", "the attribute 'axes' is given twice"},
      {"undefined symbol alias id 'map'", "'map' is not defined"},
      {"expected non-function type", "expects a type, as in 'f32' or '!moa.array<[N], f32>'"},
      {"expected valid keyword", "expects a word"},
      {"unexpected character", "this character has no meaning here"},
      {"empty block: expect at least a terminator",
       "the block is empty; its last operation is to be one that ends a block, as 'moa.return'"},
      {"block with no terminator, has \n\n\"moa.iota\"()",
       "the block does not end in an operation that ends a block, as 'moa.return'"},
      {"operand #1 does not dominate this use", "operand 1 is a value that is not defined before this use"},
      {"operation being parsed with an unregistered dialect. If this is intended, please use",
       "there is no operation of this name"},
      {"attribute created with unregistered dialect. If this is intended",
       "this attribute is of no level that is known"},
      {"#foo<\"x\"> : 'none' attribute created with unregistered dialect. If this is intended",
       "this attribute is of no level that is known"},
      {"expected operation name in quotes", "expects an operation, as in '%x = moa.iota \"N\"'"},
      {"redefinition of type alias id 'a'", "'a' is defined twice"},
      {"expected attribute value", "expects the value of an attribute"},
      {"operand defined here (op in the same block)", "the value is defined here"},
      {"failed to parse MoA_MonoidAttr parameter 'value' which is to be a `::moa::Monoid`",
       "the parameter 'value' cannot be read here"},
      {"expected string or keyword containing one of the following enum values for attribute "
       "'predicate' [eq, ne]",
       "expects the attribute 'predicate' to be one of: eq, ne"},
      {"number of operands and types do not match: got 1 operands and 0 types", "operands: 1; types for them: 0"},
      {"invalid kind of attribute specified", "expects another kind of attribute here"},
      {"expected valid '@'-identifier for symbol name", "expects a name, as in '@max'"},
      {"expected valid keyword or string", "expects a word or a text in quotes"},
      {"expected integer value", "expects an integer"},
      {"expected '}' in attribute dictionary", "expects ',' or '}' in the attributes"},
      {"expected ':' and type for SSA operand", "expects ':' and the type of the value"},
      {"unexpected EOF behind the successors", "unexpected end of the text behind the next blocks"},
      {"expected ::moa::Monoid to be one of: add, mul", "expects one of: add, mul"},
      {"custom op 'moa.map' expected '('", "'moa.map' expects '('"},
      {"custom op 'moa.inner' 'moa.inner' op attribute 'rank' failed to satisfy constraint: bool "
       "attribute",
       "'moa.inner' expects the attribute 'rank' to be: bool attribute"},
      // Without a translation: the words, but none in quotes.
      {"the op 'op' of this dialect has a SSA value in a region",
       "the operation 'op' of this level has a value in a body"},
  };
  for (auto [message, words] : cases)
    EXPECT_EQ(rewordMessage(message), words);
}

TEST(LevelWords, Checks) {
  const std::pair<const char *, const char *> cases[] = {
      {"'moa.map' op expects one list per operand (C2), but got 3",
       "'moa.map' expects one list per operand (C2), but got 3"},
      {"'moa.map' op requires attribute 'axes'", "'moa.map' expects the attribute 'axes', which is missing"},
      {"'onf.for' op operand #0 must be index, but got 'f32'", "'onf.for' expects operand 0 to be index, but got f32"},
      {"'dnf.psi' op expected 2 or more operands, but found 1", "'dnf.psi' expects 2 or more operands, but got 1"},
      {"'dnf.yield' op expects parent op to be one of 'dnf.let', 'dnf.reduce'",
       "'dnf.yield' may stand directly in 'dnf.let', 'dnf.reduce' only"},
      {"'dnf.yield' op must be the last operation in the parent block",
       "'dnf.yield' is to be the last operation of its block"},
      {"'arith.addf' op failed to verify that all of {lhs, rhs} have the same type",
       "'arith.addf' expects that all of {lhs, rhs} have the same type"},
      {"'moa.cast' op requires a single operand", "'moa.cast' expects one operand"},
      {"'moa.return' op requires zero results", "'moa.return' expects no results"},
      {"'dnf.let' op requires one region", "'dnf.let' expects one body"},
      {"'moa.cast' op requires zero regions", "'moa.cast' expects no body"},
      {"'dnf.psi' op expected 2 operands, but found 1", "'dnf.psi' expects 2 operands, but got 1"},
      {"'moa.map' op result #0 must be array, but got 'f32'", "'moa.map' expects result 0 to be array, but got f32"},
      {"'onf.for' op region #0 ('body') failed to verify constraint: region with 1 blocks",
       "'onf.for' expects its body ('body') to have blocks: 1"},
      {"'arith.addi' op operand #1 does not dominate this use",
       "'arith.addi' has a value as operand 1 that is not defined before it"},
      {"'moa.map' op inferred type(s) 'f32' are incompatible with return type(s) of operation "
       "'f64'",
       "'moa.map' has results of the types 'f32', but 'f64' are written"},
      {"'x.y' op has a region", "'x.y' has a body"},
      // What the compiler says stays as it is.
      {"expected ')', but got '}'", "expected ')', but got '}'"},
      {"unknown setting 'E'", "unknown setting 'E'"},
  };
  for (auto [message, words] : cases)
    EXPECT_EQ(rewordCheck(message), words);
}

TEST(LevelWords, Operations) {
  EXPECT_EQ(getNamedOperation("there is no operation 'moa.iot'"), "moa.iot");
  EXPECT_EQ(getNamedOperation("'moa.map' expects '('"), "moa.map");
  EXPECT_EQ(getNamedOperation("expects ')'"), "");
  EXPECT_TRUE(isUnknownOperation("there is no operation 'moa.iot'"));
  EXPECT_FALSE(isUnknownOperation("'moa.map' expects '('"));
}

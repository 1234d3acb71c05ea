//===- LevelWords.h - messages in the words of the levels -------*- C++ -*-===//
#ifndef MOA_SUPPORT_LEVELWORDS_H
#define MOA_SUPPORT_LEVELWORDS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace moa {

/// What MLIR's parser, or one of the checks that it makes by itself, says of the text
/// of a level, in the words of docs/Dialects: operations, operands, attributes, values,
/// blocks. Of a message that has no translation only the words change.
std::string rewordMessage(llvm::StringRef message);

/// The same for messages that may be the compiler's own: of these only the mark of an
/// operation, `'NAME' op`, is taken away.
std::string rewordCheck(llvm::StringRef message);

/// The operation that a message of rewordMessage begins with or names as unknown, or
/// nothing.
llvm::StringRef getNamedOperation(llvm::StringRef message);
bool isUnknownOperation(llvm::StringRef message);

} // namespace moa

#endif // MOA_SUPPORT_LEVELWORDS_H

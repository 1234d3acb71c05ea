//===- LevelWords.h - messages in the words of the levels -------*- C++ -*-===//
#ifndef MOA_SUPPORT_LEVELWORDS_H
#define MOA_SUPPORT_LEVELWORDS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace moa {

/// Rewords a message of MLIR's parser or of its generated checks on the text of a level. The words
/// are those of docs/Dialects: operations, operands, attributes, values, blocks. Without a
/// translation of the whole message, single words are replaced.
std::string rewordMessage(llvm::StringRef message);

/// Does the same for messages that may be the compiler's own. Those only lose the prefix `'NAME'
/// op`.
std::string rewordCheck(llvm::StringRef message);

/// Returns the operation that a message of rewordMessage begins with or names as unknown, or an
/// empty string.
llvm::StringRef getNamedOperation(llvm::StringRef message);
bool isUnknownOperation(llvm::StringRef message);

} // namespace moa

#endif // MOA_SUPPORT_LEVELWORDS_H

//===- EmittedText.cpp - files in C that are emitted as text --------------===//
#include "lib/Target/EmittedText.h"

namespace moa {

static llvm::StringRef getText(const unsigned char *bytes, unsigned long size) {
  return llvm::StringRef(reinterpret_cast<const char *>(bytes), size);
}

llvm::StringRef getBindingCalls() { return getText(kBindingCalls, kBindingCallsSize); }

llvm::StringRef getEntryDeclarations() { return getText(kDLPack, kDLPackSize).split("#include <stdint.h>\n\n").second; }

llvm::StringRef getLauncherPart(llvm::StringRef name) {
  std::string part = "MOA_PART_" + name.str();
  llvm::StringRef text = getText(kLauncher, kLauncherSize).split("#ifdef " + part + "\n").second;
  return text.split("#endif /* " + part + " */\n").first;
}

} // namespace moa

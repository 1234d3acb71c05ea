//===- Cpu.cpp - calls of kernels in a shared library ---------------------===//
//
// The entry points take their arguments as C does (docs/Calling.md): pointers to descriptors,
// scalars by value, and then those of the entry point, such as the workspace. Their number and types
// are known at run time only, so a few instructions place them as the System V ABI of x86-64 asks.
//
//===----------------------------------------------------------------------===//
#include "lib/Runtime/Program.h"
#include <alloca.h>
#include <cstring>
#include <dlfcn.h>

#if defined(__x86_64__)
// moa_runtime_invoke(function, integers[6], floats[8], stack, count) places `count` words on the
// stack, fills the registers and calls.
__asm__(R"(
        .text
        .p2align 4
        .hidden moa_runtime_invoke
        .globl  moa_runtime_invoke
        .type   moa_runtime_invoke, @function
moa_runtime_invoke:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        movq    %rdi, %r11
        movq    %rsi, %r10
        leaq    1(%r8), %rax
        andq    $-2, %rax
        shlq    $3, %rax
        subq    %rax, %rsp
        xorl    %eax, %eax
1:      cmpq    %r8, %rax
        jae     2f
        movq    (%rcx,%rax,8), %r9
        movq    %r9, (%rsp,%rax,8)
        incq    %rax
        jmp     1b
2:      movsd   (%rdx), %xmm0
        movsd   8(%rdx), %xmm1
        movsd   16(%rdx), %xmm2
        movsd   24(%rdx), %xmm3
        movsd   32(%rdx), %xmm4
        movsd   40(%rdx), %xmm5
        movsd   48(%rdx), %xmm6
        movsd   56(%rdx), %xmm7
        movq    (%r10), %rdi
        movq    8(%r10), %rsi
        movq    16(%r10), %rdx
        movq    24(%r10), %rcx
        movq    32(%r10), %r8
        movq    40(%r10), %r9
        movl    $8, %eax
        callq   *%r11
        leave
        .cfi_def_cfa %rsp, 8
        retq
        .cfi_endproc
        .size   moa_runtime_invoke, . - moa_runtime_invoke
)");
extern "C" int64_t moa_runtime_invoke(void *function, const uint64_t *integers, const uint64_t *floats,
                                      const uint64_t *stack, size_t count);
#define MOA_HAS_INVOKE 1
#else
static int64_t moa_runtime_invoke(void *, const uint64_t *, const uint64_t *, const uint64_t *, size_t) {
  return MOA_PROCESSOR;
}
#define MOA_HAS_INVOKE 0
#endif

namespace moa::runtime::cpu {

namespace {

constexpr size_t kMore = 5; ///< workspace, bytes, stream, message, n

/// The arguments of one call, in registers and on the stack.
class CallWords {
public:
  explicit CallWords(uint64_t *room) : stack(room) {}
  void add(uint64_t word, bool isFloat = false) {
    if (isFloat ? numFloats < 8 : numIntegers < 6)
      (isFloat ? floats[numFloats++] : integers[numIntegers++]) = word;
    else
      stack[count++] = word;
  }
  template <typename T> void add(T *pointer) { add(uint64_t(reinterpret_cast<uintptr_t>(pointer))); }
  int64_t call(void *function) const { return moa_runtime_invoke(function, integers, floats, stack, count); }

private:
  uint64_t integers[6] = {}, floats[8] = {};
  uint64_t *stack;
  size_t numIntegers = 0, numFloats = 0, count = 0;
};

/// Adds the arguments of all entry points: the inputs, the scalars, the outputs.
int32_t addArguments(CallWords &words, const Function &f, Message m, const Arguments &given, uint64_t *bits) {
  if (int32_t code = readScalars(f, bits, m, given.scalars))
    return code;
  if (!given.arrays && !f.arrays.empty())
    return moa_refuse(&m, MOA_NULL_DESCRIPTOR, "the list of arrays is NULL");
  for (size_t k = 0; k < f.arrays.size(); ++k) {
    if (k == f.numInputs)
      for (size_t s = 0; s < f.scalars.size(); ++s) {
        char kind = f.parameters[f.scalars[s]].type->scalar;
        words.add(bits[s], kind == 'd' || kind == 'f' || kind == 's');
      }
    words.add(given.arrays[k]);
  }
  return MOA_OK;
}

} // namespace

#define MOA_MAKE_WORDS(words)                                                                                          \
  clear(m);                                                                                                            \
  CallWords words(static_cast<uint64_t *>(alloca(sizeof(uint64_t) * (f.parameters.size() + kMore))));                  \
  uint64_t *bits = static_cast<uint64_t *>(alloca(sizeof(uint64_t) * (f.scalars.size() + 1)));                         \
  int32_t wrong = addArguments(words, f, m, given, bits)

int32_t check(const Function &f, Message m, const Arguments &given) {
  MOA_MAKE_WORDS(words);
  if (wrong)
    return wrong;
  words.add(m.text);
  words.add(uint64_t(m.size));
  return int32_t(words.call(f.check));
}

int64_t workspace(const Function &f, Message m, const Arguments &given) {
  MOA_MAKE_WORDS(words);
  if (wrong)
    return -int64_t(wrong);
  int64_t bytes = words.call(f.workspaceEntry);
  if (bytes < 0 && m.text)
    check(f, m, given);
  return bytes;
}

int32_t call(const Function &f, Message m, const Arguments &given) {
  MOA_MAKE_WORDS(words);
  if (wrong)
    return wrong;
  words.add(given.workspace);
  words.add(uint64_t(given.bytes));
  words.add(given.stream);
  int32_t code = int32_t(words.call(f.call));
  if (!code || code == MOA_NOT_SHOWN || !m.text)
    return code;
  // The entry point has no message. NAME_check gives the reason, unless it is the workspace.
  if (!check(f, m, given) && code == MOA_WORKSPACE)
    moa_refuse(&m, code, "the workspace at %p has %zu bytes, but %lld are needed", given.workspace, given.bytes,
               static_cast<long long>(workspace(f, {}, given)));
  return code;
}

int32_t shown(const Function &f, Message m, const Arguments &given) {
  if (!f.shownEntry)
    return check(f, m, given);
  MOA_MAKE_WORDS(words);
  if (wrong)
    return wrong;
  words.add(given.workspace);
  words.add(uint64_t(given.bytes));
  words.add(given.stream);
  words.add(m.text);
  words.add(uint64_t(m.size));
  return int32_t(words.call(f.shownEntry));
}

int32_t prepare(const Function &f, Message m, int32_t device) {
  clear(m);
  CallWords words(nullptr);
  words.add(uint64_t(int64_t(device)));
  int32_t code = int32_t(words.call(f.prepare));
  if (code)
    moa_refuse(&m, code, "%s_prepare returns %d for device %d", f.name.c_str(), code, device);
  return code;
}

std::string findEntryPoints(Program &program, moa_finder finder, void *context, const std::string &where) {
  if (!MOA_HAS_INVOKE)
    return "kernels for CPUs are for x86-64, and this library is not";
  for (const auto &function : program.functions) {
    auto find = [&](const char *suffix, void *&place) {
      place = finder(context, (function->name + suffix).c_str());
      return place != nullptr;
    };
    find("_shown", function->shownEntry);
    function->hasShown = function->shownEntry != nullptr;
    for (auto [suffix, place] : {std::pair<const char *, void **>{"", &function->call},
                                 {"_check", &function->check},
                                 {"_workspace", &function->workspaceEntry},
                                 {"_prepare", &function->prepare}})
      if (!find(suffix, *place))
        return where + " has no function '" + function->name + suffix + "' of the manifest";
  }
  return "";
}

std::string load(Program &program, const char *path) {
  program.file = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!program.file) {
    const char *why = dlerror();
    return why ? why : std::string(path) + " cannot be loaded";
  }
  return findEntryPoints(program, dlsym, program.file, path);
}

} // namespace moa::runtime::cpu

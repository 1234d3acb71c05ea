//===- ProtectedPages.h - memory that ends the process elsewhere -*- C++ -*-===//
#ifndef MOA_TEST_RANDOM_PROTECTEDPAGES_H
#define MOA_TEST_RANDOM_PROTECTEDPAGES_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace moa::random {

/// Where bytes stand between the two protected pages.
enum class Placement { AtEnd, AtBegin };

/// Bytes between two pages that nobody may read or write. They end at the second page or begin
/// right after the first one, so that a kernel that reads or writes outside of its arrays ends the
/// process.
class ProtectedPages {
public:
  ProtectedPages(size_t size, Placement placement, unsigned char fill, size_t alignment = 1) {
    size_t page = sysconf(_SC_PAGESIZE);
    auto roundUp = [](size_t value, size_t to) { return (value + to - 1) / to * to; };
    size_t room = roundUp(size, alignment), inner = roundUp(room ? room : 1, page);
    mapped = inner + 2 * page;
    void *memory = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      std::abort();
    base = static_cast<unsigned char *>(memory);
    if (mprotect(base + page, inner, PROT_READ | PROT_WRITE) != 0)
      std::abort();
    first = base + page;
    last = first + inner;
    std::memset(first, fill, inner);
    data = placement == Placement::AtEnd ? last - room : first;
  }
  ~ProtectedPages() { munmap(base, mapped); }
  ProtectedPages(const ProtectedPages &) = delete;
  ProtectedPages &operator=(const ProtectedPages &) = delete;

  unsigned char *getData() const { return data; }
  /// All bytes that may be written: the data and what is left of its pages.
  unsigned char *begin() const { return first; }
  unsigned char *end() const { return last; }

private:
  unsigned char *base = nullptr, *first = nullptr, *last = nullptr, *data = nullptr;
  size_t mapped = 0;
};

} // namespace moa::random

#endif // MOA_TEST_RANDOM_PROTECTEDPAGES_H

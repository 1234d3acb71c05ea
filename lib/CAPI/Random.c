/*===- Random.c - random numbers of the wheel ---------------------*- C -*-===*\
 *
 * LLVM and libstdc++ call arc4random, which glibc has from 2.36 on. With this
 * definition the libraries work with glibc 2.35 too. Only the wheel links it.
 *
\*===----------------------------------------------------------------------===*/
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof value, 0) != sizeof value)
    if (errno != EINTR)
      abort();
  return value;
}

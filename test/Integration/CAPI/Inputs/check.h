/* Checks of the programs of this test: a check that fails is printed, and the program fails. */
#ifndef CHECK_H
#define CHECK_H

#include "moa-c/moa.h"
#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(condition) check((condition) != 0, #condition, __FILE__, __LINE__)
#define CHECK_TEXT(text, expected) checkText(text, expected, #text, __FILE__, __LINE__)
/* The text has the part. */
#define CHECK_PART(text, part) checkPart(text, part, __FILE__, __LINE__)

static void check(int holds, const char *condition, const char *file, int line) {
  if (holds)
    return;
  ++failures;
  printf("%s:%d: failed: %s\n", file, line, condition);
}

static inline void checkText(const char *text, const char *expected, const char *name, const char *file, int line) {
  if (text && !strcmp(text, expected))
    return;
  check(0, name, file, line);
  printf("  expects '%s', but got '%s'\n", expected, text ? text : "NULL");
}

static inline void checkPart(const char *text, const char *part, const char *file, int line) {
  if (!text || !strstr(text, part)) {
    check(0, part, file, line);
    printf("  got %s\n", text ? text : "NULL");
  }
}

/* Checks the kind and a part of an error, and destroys it. */
static inline void checkError(moa_error **error, moa_status status, const char *part, int line) {
  check(moa_error_code(*error) == status, "the kind of the error", __FILE__, line);
  checkPart(moa_error_message(*error), part, __FILE__, line);
  moa_error_destroy(*error);
  *error = NULL;
}
#define CHECK_ERROR(status, part) checkError(&error, status, part, __LINE__)

#endif

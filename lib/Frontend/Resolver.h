//===- Resolver.h - names, arities and the order of definitions -*- C++ -*-===//
#ifndef MOA_FRONTEND_RESOLVER_H
#define MOA_FRONTEND_RESOLVER_H

#include "lib/Frontend/Reporter.h"

namespace moa::frontend {

/// Binds every name of the program to its declaration, checks the number of arguments of every
/// call, orders the definitions of every body, and rejects recursion. Reports the first error and
/// then fails.
mlir::LogicalResult resolveNames(Program &program, const Reporter &reporter);

} // namespace moa::frontend

#endif // MOA_FRONTEND_RESOLVER_H

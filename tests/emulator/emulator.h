/*
  emulator.h: what the emulator's two halves, memory and streams (memory.cc) and threads of a block (fibers.cc), know of
  each other.
*/
#ifndef EMULATOR_H
#define EMULATOR_H
#include "cuda_runtime.h"
#include <string>

namespace emu {
/* What runs now: empty on the host */
struct Running {
  const char *kernel, *file; /* a kernel's name and where it was launched, or the name of another operation */
  int         line;
  bool        threads; /* a kernel: threads and blocks mean something */
};
extern Running running;

void              RunKernel(dim3 grid, dim3 block, size_t dynamic, const std::function<void()> &thread);
bool              OnStackGuard(const void *address);
unsigned          Seed(void);
void              Repair(void *p, size_t bytes);       /* poison */
bool              Intact(const void *p, size_t bytes); /* is it still poison? */
std::string       Where(const void *pc);               /* "function at file:line" of a code address */
[[noreturn]] void FailAt(const void *pc, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Data may be that by chance, one word in 2^32: a mantissa of gamg_problems's problem 16 ends in 0xa5c3a5c3 */
static const uint32_t Poison = 0xa5c3a5cbu;
} // namespace emu
#endif

/*
  counts.cc: how often each of CUDA's functions was called and each kernel launched, for tests that compare what steps
  of a program cost. A kernel that a graph launches is not counted again.
*/
#include "memory.h"
using namespace emu;

namespace {
struct Calls {
  unsigned long long n, bytes;
};
/* it outlives all that is destroyed at the end */
std::map<std::string, Calls> &calls_ = *new std::map<std::string, Calls>;
} // namespace

void emu::Count(const char *what, size_t bytes)
{
  Calls &c = calls_[what];
  c.n++;
  c.bytes += bytes;
}

/* the k-th name, in an order of their own, with its calls so far and the bytes of all of them; NULL: there are no more
 */
extern "C" __attribute__((visibility("default"))) const char *HybEmulatorCount(int k, unsigned long long *n, unsigned long long *bytes)
{
  auto at = calls_.begin();
  while (k-- > 0 && at != calls_.end()) ++at;
  if (at == calls_.end()) return nullptr;
  *n     = at->second.n;
  *bytes = at->second.bytes;
  return at->first.c_str();
}

/* HYB_EMULATOR_LAUNCHES: a file that gets, at the process's end, how many kernels ran */
static struct Launches {
  ~Launches()
  {
    const char *name = getenv("HYB_EMULATOR_LAUNCHES");
    FILE       *f    = name ? fopen(name, "a") : nullptr;

    if (!f) return;
    fprintf(f, "%llu launches\n", launches_);
    fclose(f);
  }
} launches_at_end_;

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

/*
  How a pool that keeps all its memory would grow: pieces of 32 MiB and more, of which an allocation takes the smallest
  stretch that holds it. CUDA's own rule is not told; that one is close enough to see whether a step finds what the
  steps before it have left.
*/
namespace {
struct Stretch {
  int    chunk;
  size_t at, bytes;
};
struct Pool {
  std::vector<std::map<size_t, size_t>> free; /* of each piece: stretches by where they begin */
  std::map<const void *, Stretch>       taken;
};
std::map<const void *, Pool> &pools_of_ = *new std::map<const void *, Pool>;
const size_t                  Line = 512, Piece = (size_t)32 << 20;
} // namespace

void emu::PoolTakes(const void *pool, const void *p, size_t bytes)
{
  Pool  &pl   = pools_of_[pool];
  size_t need = (std::max<size_t>(bytes, 1) + Line - 1) / Line * Line, best = SIZE_MAX, at = 0;
  int    chunk = -1;
  for (size_t c = 0; c < pl.free.size(); c++)
    for (auto &f : pl.free[c])
      if (f.second >= need && f.second < best) {
        best  = f.second;
        at    = f.first;
        chunk = (int)c;
      }
  if (chunk < 0) {
    best  = (need + Piece - 1) / Piece * Piece;
    chunk = (int)pl.free.size();
    pl.free.push_back({{0, best}});
    Count("a pool grows", best);
  }
  pl.free[(size_t)chunk].erase(at);
  if (best > need) pl.free[(size_t)chunk][at + need] = best - need;
  pl.taken[p] = Stretch{chunk, at, need};
}

void emu::PoolGets(const void *pool, const void *p)
{
  Pool &pl = pools_of_[pool];
  auto  t  = pl.taken.find(p);
  if (t == pl.taken.end()) return;
  Stretch s    = t->second;
  auto   &free = pl.free[(size_t)s.chunk];
  pl.taken.erase(t);
  auto next = free.lower_bound(s.at);
  if (next != free.end() && next->first == s.at + s.bytes) {
    s.bytes += next->second;
    next = free.erase(next);
  }
  if (next != free.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == s.at) {
      before->second += s.bytes;
      return;
    }
  }
  free[s.at] = s.bytes;
}

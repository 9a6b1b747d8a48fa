/*
  races.cc: every load and store of a kernel, checked.

  The kernels are compiled with -fsanitize=thread, whose calls come here instead of to libtsan. Each four bytes of shared and global memory remember their
  last write and two last reads. Two accesses of different threads, of which one writes, must have something between them that orders them:
    threads of one block    a barrier
    lanes of one warp       a barrier, or __syncwarp calls that both took part in (vector clocks). Shuffles and votes order no writes, but what was
                            read before one is in a register: a write after it does not race with that read
    different blocks        a __threadfence of the first block after its access, and an atomic operation of the second before its own
  Atomic and volatile accesses do not race with each other, nor does a plain read with an atomic write (the probe of a hash table). A write of the value that
  is already there is no race with an earlier write, nor with what another block has read.

  On the way: accesses outside arrays that guard pages cannot see, and reads of words that nobody wrote.
*/
#include "races.h"

#if defined(EMU_RACES)
namespace
{
struct Access {
  uint32_t    kernel, block, phase, stamp, time;
  uint16_t    thread;
  uint8_t     mask, atomic;
  const void *pc;
};
struct Cell {
  Access write, read[2];
};
struct Overwrite { /* a write whose value is not known yet */
  bool        open;
  char       *p;
  size_t      bytes;
  char        old[16];
  Access      earlier;
  emu::Region region;
  int         thread;
  const void *pc;
};

uint32_t              kernel_ = 1, block_, phase_, time_, first_block_, acquired_;
uint32_t              clock_[2][32][32][32]; /* of each warp: what lane k knows of lane l; of its writes, by __syncwarp, and of its reads, by any operation of the warp */
std::vector<uint32_t> fence_;             /* for each block of this kernel: when it last passed a __threadfence */
Overwrite             pending_;

bool Ordered(const Access &a, int thread, bool shared, bool read)
{
  if (a.kernel != kernel_ || (shared && a.block != block_)) return true;
  if (a.block == block_) {
    if (a.thread == thread || a.phase < phase_) return true;
    return a.thread / 32 == thread / 32 && clock_[read][thread / 32][thread & 31][a.thread & 31] >= a.stamp;
  }
  return fence_[a.block - first_block_] > a.time && acquired_ > fence_[a.block - first_block_];
}

std::string Text(const Access &a, const char *what, const emu::Region &r, const char *p, int thread)
{
  char text[512];
  snprintf(text, sizeof(text), "race: %s of byte %td of %s and an earlier %s by thread %d of %s block, with nothing between them that orders them (this is thread %d). The earlier one at ", what, p - r.start, emu::RegionName(r).c_str(), a.atomic ? "atomic access" : "access", a.thread, a.block == block_ ? "this" : "another", thread);
  return text + emu::Where((const char *)a.pc - 1);
}

void Settle(void)
{
  pending_.open = false;
  if (memcmp(pending_.p, pending_.old, pending_.bytes)) emu::FailAt((const char *)pending_.pc - 1, "%s", Text(pending_.earlier, "write", pending_.region, pending_.p, pending_.thread).c_str());
}

/* a write that is a race unless it leaves what is there: what it wrote is known at the next access */
void Suspect(const Access &earlier, const emu::Region &r, char *p, size_t bytes, int thread, const void *pc)
{
  pending_.open    = true;
  pending_.p       = p;
  pending_.bytes   = bytes;
  pending_.earlier = earlier;
  pending_.region  = r;
  pending_.thread  = thread;
  pending_.pc      = pc;
  memcpy(pending_.old, p, bytes);
}

void Touch(const void *address, size_t bytes, bool write, bool atomic, const void *pc)
{
  if (!emu::running.threads) return;
  if (pending_.open) Settle();
  emu::Region r;
  char       *p = (char *)address;
  if (!emu::SharedRegion(p, r) && !emu::DeviceRegion(p, r)) return; /* a thread's own, or a constant */
  if (!r.start || p < r.start || p + bytes > r.start + r.bytes) emu::FailAt((const char *)pc - 1, "%s out of bounds of %s, %zu bytes at byte %td", write ? "write" : "read", emu::RegionName(r).c_str(), bytes, p - r.start);
  const int    thread = emu::RunningThread(), warp = thread / 32, lane = thread & 31;
  const bool   shared = emu::RegionIsShared(r);
  const size_t cells  = r.bytes / 4 + 2;
  if (!*r.shadow) *r.shadow = calloc(cells, sizeof(Cell));
  Cell *cell = (Cell *)*r.shadow;
  time_++;
  for (size_t at = (size_t)(p - r.start), end = at + bytes; at < end;) {
    const size_t  word = at / 4, upto = std::min(end, word * 4 + 4);
    const uint8_t mask = (uint8_t)(((1u << (upto - at)) - 1) << (at & 3));
    Cell         &c    = cell[word];
    if (!write && !atomic && mask == 15 && *(const uint32_t *)(r.start + word * 4) == emu::Poison && (((uintptr_t)r.start) & 3) == 0) emu::FailAt((const char *)pc - 1, "byte %zu of %s is read, and nobody has written it", word * 4, emu::RegionName(r).c_str());
    if ((c.write.mask & mask) && !Ordered(c.write, thread, shared, false) && !(atomic && c.write.atomic) && !(!write && c.write.atomic)) {
      if (!write || atomic || bytes > sizeof(pending_.old)) emu::FailAt((const char *)pc - 1, "%s", Text(c.write, write ? "write" : "read", r, p, thread).c_str());
      Suspect(c.write, r, p, bytes, thread, pc);
    }
    if (write)
      for (const Access &a : c.read)
        if ((a.mask & mask) && !Ordered(a, thread, shared, true) && !atomic && !a.atomic) {
          /* within a block such a write is strange enough */
          if (a.block == block_ || bytes > sizeof(pending_.old)) emu::FailAt((const char *)pc - 1, "%s", Text(a, "write", r, p, thread).c_str());
          Suspect(a, r, p, bytes, thread, pc);
        }
    const Access me = {kernel_, block_, phase_, clock_[!write][warp][lane][lane], time_, (uint16_t)thread, mask, (uint8_t)atomic, pc};
    if (write) c.write = me;
    else {
      if (c.read[0].kernel != kernel_ || c.read[0].block != block_ || c.read[0].thread != thread) c.read[1] = c.read[0];
      c.read[0] = me;
    }
    at = upto;
  }
}
} // namespace

namespace emu
{
void RaceKernel(void)
{
  kernel_++;
  first_block_ = block_ + 1;
  acquired_ = time_ = 0;
  fence_.clear();
}

void RaceBlock(int warps)
{
  if (pending_.open) Settle();
  block_++;
  phase_    = 0;
  acquired_ = 0;
  fence_.push_back(0);
  for (int w = 0; w < warps; w++) {
    for (int c = 0; c < 2; c++) {
      memset(clock_[c][w], 0, sizeof(clock_[c][w]));
      for (int l = 0; l < 32; l++) clock_[c][w][l][l] = 1;
    }
  }
}

void RaceEnd(void)
{
  if (pending_.open) Settle();
}

void RaceBarrier(void)
{
  if (pending_.open) Settle();
  phase_++;
}

void RaceWarp(int warp, unsigned set, bool memory)
{
  for (int c = memory ? 0 : 1; c < 2; c++) {
    uint32_t all[32] = {0};
    for (unsigned s = set; s; s &= s - 1)
      for (int k = 0; k < 32; k++) all[k] = std::max(all[k], clock_[c][warp][__builtin_ctz(s)][k]);
    for (unsigned s = set; s; s &= s - 1) {
      const int l = __builtin_ctz(s);
      memcpy(clock_[c][warp][l], all, sizeof(all));
      clock_[c][warp][l][l]++;
    }
  }
}

void RaceFence(void)
{
  if (running.threads) fence_[block_ - first_block_] = ++time_;
}

void RaceAtomic(const void *p, size_t bytes)
{
  if (running.threads) acquired_ = ++time_;
  Touch(p, bytes, true, true, __builtin_return_address(0));
}
} // namespace emu

/* What the compiler calls */
#define PC __builtin_return_address(0)
extern "C" {
void __tsan_init(void) { }
void __tsan_func_entry(void *) { }
void __tsan_func_exit(void) { }
void __tsan_vptr_update(void **, void *) { }
void __tsan_vptr_read(void **) { }
#define EMU_TSAN(n) \
  void __tsan_read##n(void *p) { Touch(p, n, false, false, PC); } \
  void __tsan_write##n(void *p) { Touch(p, n, true, false, PC); } \
  void __tsan_unaligned_read##n(void *p) { Touch(p, n, false, false, PC); } \
  void __tsan_unaligned_write##n(void *p) { Touch(p, n, true, false, PC); } \
  void __tsan_volatile_read##n(void *p) { Touch(p, n, false, true, PC); } \
  void __tsan_volatile_write##n(void *p) { Touch(p, n, true, true, PC); } \
  void __tsan_unaligned_volatile_read##n(void *p) { Touch(p, n, false, true, PC); } \
  void __tsan_unaligned_volatile_write##n(void *p) { Touch(p, n, true, true, PC); }
EMU_TSAN(1)
EMU_TSAN(2)
EMU_TSAN(4)
EMU_TSAN(8)
EMU_TSAN(16)
void __tsan_read_range(void *p, size_t n) { Touch(p, n, false, false, PC); }
void __tsan_write_range(void *p, size_t n) { Touch(p, n, true, false, PC); }
}
#endif

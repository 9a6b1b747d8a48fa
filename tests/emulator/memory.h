/*
  memory.h: arrays, streams and clocks, as memory.cc keeps them and as the runtime's entry points (runtime.cc) use them.
*/
#ifndef EMULATOR_MEMORY_H
#define EMULATOR_MEMORY_H
#include "races.h"
#include <deque>
#include <map>
#include <memory>

namespace emu {
static const int    Streams = 16; /* one more is the default stream, number 0 */
static const size_t Page = 4096, Align = 64, SpaceBytes = (size_t)1 << 42;

struct Clock {
  uint32_t at[Streams];
  void     Join(const Clock &o)
  {
    for (int s = 0; s < Streams; s++) at[s] = std::max(at[s], o.at[s]);
  }
};
struct Array {
  char  *page, *ptr;
  size_t bytes, room; /* asked for; whole pages */
  bool   managed, open, fresh, freeing, freed;
  size_t poisoned; /* of its pages, from the first on */
  /* of a range of addresses that memory is mapped behind: bytes of it, and how many of those have memory; else 0 */
  size_t   reserved, mapped;
  int      protection; /* of a managed array, for the host */
  EmuPool *pool;
  int      card;
  int      stream; /* of the allocation */
  /* number of the allocation, of the last write, of the last use on each stream */
  uint32_t    born, written, last[Streams];
  int         writer;        /* stream of the last write */
  int         reads, writes; /* queued */
  std::string name, user;    /* as the last kernel called it, and that kernel */
  void       *shadow;        /* the race detector's */
};
struct Operation {
  std::string           what, file;
  int                   line, stream, card;
  Clock                 clock;
  bool                  kernel;
  dim3                  grid, block;
  size_t                dynamic;
  std::vector<emu::Use> uses;
  std::vector<Array *>  arrays;
  std::function<void()> run;
  /* of a graph: 0: it runs, 1: the event of a slot is recorded, 2: waited for; on the stream that is branch's */
  int turn, branch, slot;
};
} // namespace emu

struct EmuPool {
  bool   managed;
  size_t used, reserved, threshold;
  int    card;
};
struct EmuStream {
  int                          number, card; /* the default stream is that of whichever card is current */
  bool                         blocking;
  emu::Clock                   clock;
  std::deque<emu::Operation *> queue;
  struct EmuGraph             *graph; /* what is launched now becomes a part of it */
  int                          branch;
};
#define EMU_BRANCHES 4
struct EmuGraph {
  std::vector<emu::Operation> operations;
  int                         branches, slots;
  bool                        open[EMU_BRANCHES]; /* no other stream waits for what is at its end */
};
struct EmuEvent {
  struct EmuGraph        *graph; /* it was recorded on a stream that was being captured, */
  int                     slot, branch;
  emu::Clock              clock;
  bool                    timing; /* when it was passed is noted */
  std::shared_ptr<double> passed; /* in seconds, 0: not yet; of the last record */
};

namespace emu {
extern EmuStream stream_[Streams];
extern bool      taken_[Streams];
extern Clock     host_; /* what the host has waited for */
/* of shared memory, where a kernel has been given more than the usual */
extern std::map<const void *, int> dynamic_limit_;
extern EmuPool                     plain_[2]; /* cudaMalloc and cudaMallocAsync; cudaMallocManaged */
extern std::vector<EmuPool *>      pools_;
extern size_t                      total_; /* of the card */
extern cudaError_t                 error_;
extern unsigned long long          bytes_to_host_, bytes_to_device_, launches_; /* copied so far; kernels that ran */
extern thread_local int            card_;                                       /* the thread's current one */

void        Start(void);
void        Watch(void); /* accesses by the host */
int         Cards(void); /* HYB_EMULATOR_CARDS; without it: one */
EmuStream  *Get(cudaStream_t);
void        Legacy(EmuStream *, bool before);
Operation  *Queue(EmuStream *, const char *what, std::vector<Use> &&, std::function<void()> &&);
void        Drain(const Clock &); /* does all that comes before this clock */
void        DrainAll(void);
bool        Before(int stream, uint32_t number, const Clock &);
Array      *New(size_t bytes, EmuPool *, EmuStream *); /* NULL: the card is full */
Array      *NewRange(size_t bytes);                    /* addresses without memory; NULL: no more of them */
Array      *Find(const void *);
void        Open(Array *);
void        CloseAll(void);
void        Share(Array *);
void        Protect(Array *, int protection);
void        Retire(Array *); /* freed: its addresses stay forbidden for a while */
std::string Name(const Array *);
void        Count(const char *what, size_t bytes = 0); /* a call of CUDA's, or a kernel by name: counts.cc */
void        PoolTakes(const void *pool, const void *p, size_t bytes);
void        PoolGets(const void *pool, const void *p);
void        Unshare(Array *); /* before it is retired: its pages are no other process's any more */
} // namespace emu
#endif

/*
  crew.h: threads that copy memory together, or go along an array. One core copies into a pinned buffer several times
  more slowly than the bus takes it from there.
*/
#ifndef AIJHYBRIDGPU_CREW_H
#define AIJHYBRIDGPU_CREW_H
#include <stddef.h>

#if defined(__cplusplus)
extern "C" {
#endif
/* The crew stands ready (spinning) between Begin and End, and sleeps otherwise. share: processes that divide this
   process's cores among them. */
extern void HybCrewBegin(int share);
extern void HybCrewEnd(void);
/* work(job, from, to) for parts of 0 to n-1, all of which begin at multiples of unit, by all of the crew at once; of
   all by the caller alone outside Begin and End, where there is one core for each process, or if n is below two
   units */
extern void HybCrewDo(void (*work)(void *job, size_t from, size_t to), void *job, size_t n, size_t unit);
/* memcpy() in this way */
extern void HybCrewCopy(void *dst, const void *src, size_t bytes);
/* a byte of each page is written, by which fresh memory gets its pages; dst is a page's beginning */
extern void HybCrewTouch(void *dst, size_t bytes);
/* Another thread makes fresh memory of so many bytes from here on, with all its pages, for who will soon want it, and
   then calls there(memory, bytes), if not NULL. Once, until that memory is taken; not where there is one core. */
extern void HybCrewAhead(size_t bytes, int (*there)(void *memory, size_t bytes));
/* that memory, if so much was asked for, when it is ready: the caller's to free; else NULL. *said: what there() was */
extern void *HybCrewAheadTake(size_t bytes, int *said);
/* until there() has returned, if it was called: what it calls must still be there. The memory is there for who takes
   it */
extern void HybCrewAheadWait(void);
/* how much was asked for and not taken */
extern size_t HybCrewAheadBytes(void);
/* how many work, the caller included */
extern int HybCrewSize(void);
#if defined(__cplusplus)
}
#endif
#endif

/*
  Threads that copy memory together: every byte arrives and none beside it, over many rounds and sizes, with and without
  a session, and in the child of a fork, which has no threads. The device plays no part.
*/
#include "hybtest.h"
#include "../../src/sparse/device/crew.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST ((size_t)6 << 20)

static PetscBool Copied(size_t bytes, size_t from, size_t to, unsigned char *src, unsigned char *dst)
{
  for (size_t k = 0; k < bytes + 64; k++) dst[to + k] = 0xEE;
  HybCrewCopy(dst + to, src + from, bytes);
  for (size_t k = 0; k < bytes; k++)
    if (dst[to + k] != src[from + k]) return PETSC_FALSE;
  for (size_t k = bytes; k < bytes + 64; k++)
    if (dst[to + k] != 0xEE) return PETSC_FALSE;
  return PETSC_TRUE;
}

static size_t there_; /* bytes that There() was called with */

static int There(void *memory, size_t bytes)
{
  there_ = memory ? bytes : 0;
  return 7;
}

static PetscErrorCode Body(void)
{
  unsigned char *src, *dst;
  size_t         sizes[] = {0, 1, 4095, 4096, 4097, 65536, 131071, 1000003, 4 << 20, MOST - 200};
  pid_t          child;
  int            status = 0, said;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(MOST, &src));
  PetscCall(PetscMalloc1(MOST, &dst));
  for (size_t k = 0; k < MOST; k++) src[k] = (unsigned char)(k * 2654435761u >> 13);
  for (int session = 0; session < 6; session++) {
    HybTestBegin("session %d", session);
    if (session % 3) HybCrewBegin(1);
    for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(sizes); s++) HybTestCheck(Copied(sizes[s], 17 * (s % 4), 3 * (s % 5), src, dst), "%zu bytes by %d threads", sizes[s], HybCrewSize());
    /* whole pages for each, and a few bytes that the division leaves */
    for (size_t left = 0; left <= (size_t)HybCrewSize(); left++) HybTestCheck(Copied((size_t)HybCrewSize() * 20480 + left, 0, 0, src, dst), "%zu bytes more than whole pages for each of %d threads", left, HybCrewSize());
    for (int round = 0; round < 50; round++) HybTestCheck(Copied(300000 + 7 * (size_t)round, (size_t)round, 0, src, dst), "round %d", round);
    /* one byte of each page is zero afterwards, and no other one */
    for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(sizes); s++) {
      unsigned char *page = (unsigned char *)(((size_t)dst + 4095) / 4096 * 4096);
      size_t         n = PetscMin(sizes[s], MOST - 8192), wrong = 0;

      for (size_t k = 0; k < n + 64; k++) page[k] = 0xEE;
      HybCrewTouch(page, n);
      for (size_t k = 0; k < n + 64; k++) wrong += page[k] != (k < n && k % 4096 == 0 ? 0 : 0xEE);
      HybTestCheck(!wrong, "%zu bytes touched by %d threads: %zu wrong", n, HybCrewSize(), wrong);
    }
    if (session % 3) HybCrewEnd();
  }
  HybTestBegin("memory made ahead");
  for (int round = 0; round < 3; round++) {
    const size_t bytes = MOST + 4096 * (size_t)round;
    char        *block;

    there_ = 0;
    HybCrewAhead(bytes, round ? There : NULL);
    HybCrewAhead(2 * bytes, There); /* one at a time */
    HybTestCheck(HybCrewAheadBytes() == (sysconf(_SC_NPROCESSORS_ONLN) < 2 ? 0 : bytes), "%zu bytes are under way, not %zu", HybCrewAheadBytes(), bytes);
    HybTestCheck(!HybCrewAheadTake(2 * bytes, &said) && !HybCrewAheadTake(0, &said) && !said, "other memory is given");
    if (round) {
      HybCrewAheadWait();
      HybTestCheck(there_ == bytes || sysconf(_SC_NPROCESSORS_ONLN) < 2, "what was to be done with the memory was not waited for");
      HybCrewAheadWait();
    }
    block = (char *)HybCrewAheadTake(bytes, &said);
    HybTestCheck(!block || (said == (round ? 7 : 0) && there_ == (round ? bytes : 0)), "what was to be done with the memory said %d of %zu bytes", said, there_);
    HybTestCheck(block || sysconf(_SC_NPROCESSORS_ONLN) < 2, "no memory");
    HybTestCheck(!HybCrewAheadBytes() && !HybCrewAheadTake(bytes, &said) && !said, "it is given twice");
    if (block) memset(block, round, bytes);
    free(block);
  }
  HybCrewAhead(MOST, NULL); /* and whoever has no threads takes none */
  HybTestBegin("after a fork");
  child = fork();
  if (child == 0) {
    HybCrewBegin(1);
    _exit(Copied(1000000, 0, 0, src, dst) && !HybCrewAheadBytes() && !HybCrewAheadTake(MOST, &said) ? 0 : 1);
  }
  free(HybCrewAheadTake(MOST, &said));
  HybTestCheck(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child copies alone");
  PetscCall(PetscFree(src));
  PetscCall(PetscFree(dst));
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

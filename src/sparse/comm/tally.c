/*
  tally.c: what this process's exchanges sent, and how long its host waited for others: figures that are shown, by which
  nothing is decided.
*/
#include "commimpl.h"

static HybCommTally HybTally;

HybCommTally *HybCommTallyGet(void)
{
  return &HybTally;
}

void HybCommTallySent(PetscBool cards, size_t bytes)
{
  if (!bytes) return;
  if (cards) {
    HybTally.cards++;
    HybTally.cardbytes += (double)bytes;
  } else {
    HybTally.messages++;
    HybTally.messagebytes += (double)bytes;
  }
}

double HybCommWaitBegin(void)
{
  return HybTally.timing ? MPI_Wtime() : 0;
}

void HybCommWaitEnd(double began)
{
  if (!HybTally.timing) return;
  HybTally.waits++;
  HybTally.seconds += MPI_Wtime() - began;
}

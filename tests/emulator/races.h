/*
  races.h: what fibers.cc tells the race detector (races.cc), and where an address belongs. Compiled in with EMU_RACES
  only.
*/
#ifndef EMULATOR_RACES_H
#define EMULATOR_RACES_H
#include "emulator.h"

namespace emu {
#if defined(EMU_RACES)
struct Region { /* the array that holds an address; shadow: the detector's own, one for each array */
  char       *start;
  size_t      bytes;
  void      **shadow;
  const void *owner;
};
std::string DeviceName(const void *owner);
std::string RegionName(const Region &);
bool        RegionIsShared(const Region &);
bool        SharedRegion(const void *p, Region &);
bool        DeviceRegion(const void *p, Region &);
void        RaceKernel(void);     /* a kernel starts */
void        RaceBlock(int warps); /* a block starts */
void        RaceEnd(void);        /* a kernel has ended */
void        RaceBarrier(void);    /* all threads of the block are past a barrier */
/* these lanes are past an operation of the warp, memory: a __syncwarp */
void RaceWarp(int warp, unsigned set, bool memory);
int  RunningThread(void);
#endif
} // namespace emu
#endif

/*
  hyb.h: what every room below src/mat stands on, by subject: hybmemory.h (scalars, where memory lives, arenas,
  counters), hybarrays.h (CSR matrices and elementary operations on them), hybbackend.h (the table of entry points
  through which host and device are reached alike, and how a device library is opened), hybtuning.h (options).

  Nothing here knows of Mat. Private headers compile as plain C and as C++ (nvcc, the tests' emulator).
*/
#ifndef AIJHYBRIDGPU_HYB_H
#define AIJHYBRIDGPU_HYB_H

#include "hybbackend.h"
#include "hybtuning.h"

#endif

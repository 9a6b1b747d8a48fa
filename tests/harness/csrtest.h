/* csrtest.h: what tests of elementary operations on CSR arrays share: where they compute, and three arenas */
#ifndef CSRTEST_H
#define CSRTEST_H
#include "hybtest.h"
#include <aijhybridgpu/private/hybparprod.h>
#include <stdlib.h>
#include <string.h>

static const HybExec   *exec;
static const HybCSROps *ops;
static HybArena         mine, keep, work;

static inline PetscErrorCode Start(void)
{
  PetscFunctionBegin;
  exec = HybTestExec();
  ops  = exec->backend->csr;
  PetscCall(HybTestArenas(exec, &mine, &keep, &work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode Forget(void)
{
  PetscFunctionBegin;
  PetscCall(HybTestReset(&mine, &keep, &work));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

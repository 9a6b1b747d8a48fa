/*
  The one struct of the process, and what is counted in it: events, products by method, setups of multigrid.
*/
#include "process.h"

HybGlue HybGlueState;

/* before a registration */
void HybGlueClear(void)
{
  const PetscBool   atexit    = HybGlueState.atexit;  /* that the process will call it stands */
  const HybBackend  watched   = HybGlueState.watched; /* memory of before, that is freed later, goes through it */
  const HybBackend *unwatched = HybGlueState.unwatched;

  memset(&HybGlueState, 0, sizeof(HybGlueState));
  HybGlueState.atexit    = atexit;
  HybGlueState.watched   = watched;
  HybGlueState.unwatched = unwatched;
}

PetscErrorCode HybEventsRegister(void)
{
  PetscFunctionBegin;
  PetscCall(PetscLogEventRegister("HybProdSym", MAT_CLASSID, &HybGlueState.event.productsymbolic));
  PetscCall(PetscLogEventRegister("HybProdNum", MAT_CLASSID, &HybGlueState.event.productnumeric));
  PetscCall(PetscLogEventRegister("HybAdopt", MAT_CLASSID, &HybGlueState.event.adopt));
  PetscCall(PetscLogEventRegister("HybCheck", MAT_CLASSID, &HybGlueState.event.check));
  PetscCall(PetscLogEventRegister("HybCopyTo", MAT_CLASSID, &HybGlueState.event.copyto));
  PetscCall(PetscLogEventRegister("HybCopyFr", MAT_CLASSID, &HybGlueState.event.copyfrom));
  PetscCall(PetscLogEventRegister("HybHostDup", MAT_CLASSID, &HybGlueState.event.hostduplicate));
  PetscCall(PetscLogEventRegister("HybTranspose", MAT_CLASSID, &HybGlueState.event.transpose));
  PetscCall(PetscLogEventRegister("HybNarrow", MAT_CLASSID, &HybGlueState.event.narrow));
  {
    /* in HybOp's order */
    static const char *const names[HYB_OPS] = {"HybMult", "HybScale", "HybZero", "HybDiagScale", "HybGetDiag", "HybDiagSet", "HybNorm", "HybDuplicate", "HybCopy", "HybAXPY", "HybMatTrans", "HybSubMat", "HybCOOPattern", "HybCOOValues", "HybConvert", "HybDense", "HybZeros", "HybNoise"};

    for (int op = 0; op < HYB_OPS; op++) PetscCall(PetscLogEventRegister(names[op], MAT_CLASSID, &HybGlueState.event.op[op]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGlueCountProduct(const char *method)
{
  HybCounts *c = &HybGlueState.counts;
  char      *found;
  size_t     length;

  PetscFunctionBegin;
  c->products++;
  PetscCall(PetscStrlen(method, &length));
  for (found = c->methods; (found = strstr(found, method)); found += length)
    if ((found == c->methods || found[-1] == ':') && (found[length] == ':' || !found[length])) PetscFunctionReturn(PETSC_SUCCESS);
  if (c->methods[0]) PetscCall(PetscStrlcat(c->methods, ":", sizeof(c->methods)));
  PetscCall(PetscStrlcat(c->methods, method, sizeof(c->methods)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCountGAMG(HybGAMGCount which)
{
  PetscFunctionBegin;
  HybGlueState.counts.gamg[which]++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

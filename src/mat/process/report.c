/*
  What is counted and told: events, products by method, bytes held and moved, and what the process says of itself at the end.
*/
#include "process.h"

HybGlue       HybGlueState;
PetscLogEvent HYB_ProductSymbolic, HYB_ProductNumeric, HYB_Adopt, HYB_Check, HYB_CopyTo, HYB_CopyFrom, HYB_HostDuplicate, HYB_Transpose;
PetscLogEvent HYB_Op[HYB_OPS];

PetscErrorCode HybEventsRegister(void)
{
  PetscFunctionBegin;
  PetscCall(PetscLogEventRegister("HybProdSym", MAT_CLASSID, &HYB_ProductSymbolic));
  PetscCall(PetscLogEventRegister("HybProdNum", MAT_CLASSID, &HYB_ProductNumeric));
  PetscCall(PetscLogEventRegister("HybAdopt", MAT_CLASSID, &HYB_Adopt));
  PetscCall(PetscLogEventRegister("HybCheck", MAT_CLASSID, &HYB_Check));
  PetscCall(PetscLogEventRegister("HybCopyTo", MAT_CLASSID, &HYB_CopyTo));
  PetscCall(PetscLogEventRegister("HybCopyFr", MAT_CLASSID, &HYB_CopyFrom));
  PetscCall(PetscLogEventRegister("HybHostDup", MAT_CLASSID, &HYB_HostDuplicate));
  PetscCall(PetscLogEventRegister("HybTranspose", MAT_CLASSID, &HYB_Transpose));
  {
    /* in HybOp's order */
    static const char *const names[HYB_OPS] = {"HybMult", "HybScale", "HybZero", "HybDiagScale", "HybGetDiag", "HybDiagSet", "HybNorm", "HybDuplicate", "HybCopy", "HybAXPY", "HybMatTrans", "HybSubMat", "HybCOOPattern", "HybCOOValues", "HybConvert", "HybDense", "HybZeros", "HybNoise"};

    for (int op = 0; op < HYB_OPS; op++) PetscCall(PetscLogEventRegister(names[op], MAT_CLASSID, &HYB_Op[op]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGlueCountProduct(const char *method)
{
  HybGlue *g = &HybGlueState;
  char    *found;
  size_t   length;

  PetscFunctionBegin;
  g->products++;
  PetscCall(PetscStrlen(method, &length));
  for (found = g->methods; (found = strstr(found, method)); found += length)
    if ((found == g->methods || found[-1] == ':') && (found[length] == ':' || !found[length])) PetscFunctionReturn(PETSC_SUCCESS);
  if (g->methods[0]) PetscCall(PetscStrlcat(g->methods, ":", sizeof(g->methods)));
  PetscCall(PetscStrlcat(g->methods, method, sizeof(g->methods)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCountGAMG(HybGAMGCount which)
{
  PetscFunctionBegin;
  HybGlueState.gamg[which]++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every byte that the plugin holds or held is counted at its allocation. any, which may be NULL: whether there ever was one. */
PetscErrorCode HybGlueDescribeMemory(char text[], size_t length, PetscBool *any)
{
  HybMemoryReport host, device;
  char            where[64] = "";

  PetscFunctionBegin;
  PetscCall(HybBackendHost.usage(&host, PETSC_FALSE));
  PetscCall(PetscMemzero(&device, sizeof(device)));
  if (HybGlueState.device) PetscCall(HybGlueState.device->usage(&device, PETSC_FALSE));
  if (device.cards) PetscCall(PetscSNPrintf(where, sizeof(where), "card %d of %d at %s, ", device.card, device.cards, device.bus));
  PetscCall(PetscSNPrintf(text, length, "%sbytes now / at most: device %zu / %zu, managed %zu / %zu of a share of %zu, kept of it for later %zu, pinned %zu / %zu, host arenas %zu / %zu; over the bus to the device %.0f, to the host %.0f", where, device.device_bytes, device.device_peak, device.managed_bytes, device.managed_peak, device.managed_share, device.managed_kept, device.pinned_bytes,
                          device.pinned_peak, host.device_bytes, host.device_peak, (double)HybGlueState.todevice, (double)HybGlueState.tohost));
  if (any) *any = host.device_peak || device.device_peak || device.managed_peak || device.pinned_peak ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs before PETSc's own finalization of Mat. A second PetscInitialize() registers again. */
PetscErrorCode HybGlueFinalize(void)
{
  HybGlue *g = &HybGlueState;

  PetscFunctionBegin;
  if (g->options.viewcounts[0]) {
    PetscMPIInt rank;
    FILE       *f = fopen(g->options.viewcounts, "a");

    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot append to %s (-mat_aijhybridgpu_view_counts)", g->options.viewcounts);
    fprintf(f, "%d mult=%td assemblyend=%td products=%td fallback=%td fallbackasked=%td device=%td gamg=%td gamgleft=%td gamglevels=%td gamglevelsleft=%td methods=%s\n", (int)rank, g->mults, g->assemblies, g->products, g->fallbacks, g->fallbacksasked, g->deviceops,
            g->gamg[HYB_GAMG_SETUPS], g->gamg[HYB_GAMG_SETUPS_LEFT], g->gamg[HYB_GAMG_LEVELS], g->gamg[HYB_GAMG_LEVELS_LEFT], g->methods);
    fclose(f);
  }
  {
    char      text[512];
    PetscBool any;

    PetscCall(HybGlueDescribeMemory(text, sizeof(text), &any));
    if (any) PetscCall(PetscInfo(NULL, "Memory: %s\n", text));
    if (g->options.viewmemory) {
      PetscMPIInt rank;

      PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
      PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, "aijhybridgpu, process %d: %s\n", (int)rank, text));
      PetscCall(PetscSynchronizedFlush(PETSC_COMM_WORLD, PETSC_STDOUT));
    }
  }
  PetscCall(PetscMemzero(g, sizeof(*g)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The one struct of the process, and what is counted in it: events, products by method, setups of multigrid, memory; and
  what the process says of that at the end (-mat_aijhybridgpu_view_counts, -mat_aijhybridgpu_view_memory).
*/
#include "process.h"

HybGlue HybGlueState;

/* before a registration */
void HybGlueClear(void)
{
  const PetscBool atexit = HybGlueState.report.atexit; /* that the process will call it stands */
  /* memory of before, that is freed later, goes through it */
  const HybBackend  watched   = HybGlueState.report.watched;
  const HybBackend *unwatched = HybGlueState.report.unwatched;

  memset(&HybGlueState, 0, sizeof(HybGlueState));
  HybGlueState.report.atexit    = atexit;
  HybGlueState.report.watched   = watched;
  HybGlueState.report.unwatched = unwatched;
}

PetscErrorCode HybEventsRegister(void)
{
#define EVENT(op, event, text) event,
  static const char *const names[HYB_OPS] = {HYB_OP_LIST(EVENT)};
#undef EVENT

  PetscFunctionBegin;
  for (int op = 0; op < HYB_OPS; op++) PetscCall(PetscLogEventRegister(names[op], MAT_CLASSID, &HybGlueState.event.op[op]));
  PetscCall(PetscLogEventRegister("HybNarrow", MAT_CLASSID, &HybGlueState.event.narrow));
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

void HybMatPlanned(size_t bytes)
{
  HybGlueState.counts.planned = PetscMax(HybGlueState.counts.planned, bytes);
}

/* Every byte that the plugin holds or held is counted at its allocation. any, which may be NULL: whether there ever was
   one. */
PetscErrorCode HybGlueDescribeMemory(char text[], size_t length, PetscBool *any)
{
  const HybGlue  *g = &HybGlueState;
  HybMemoryReport host, device;
  char            where[64] = "", planned[64] = "";

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&device, sizeof(device)));
  PetscCall(HybBackendHost.usage(&host, PETSC_FALSE));
  if (g->device) PetscCall(g->device->usage(&device, PETSC_FALSE));
  if (device.cards) PetscCall(PetscSNPrintf(where, sizeof(where), "card %d of %d at %s, ", device.card, device.cards, device.bus));
  if (g->counts.planned) PetscCall(PetscSNPrintf(planned, sizeof(planned), ", planned for multigrid %zu", g->counts.planned));
  PetscCall(PetscSNPrintf(text, length, "%sbytes now / at most: device %zu / %zu, managed %zu / %zu of a share of %zu, kept of it for later %zu, pinned %zu / %zu, host arenas %zu / %zu%s; over the bus to the device %.0f, to the host %.0f", where, device.device_bytes, device.device_peak, device.managed_bytes, device.managed_peak,
                          device.managed_share, device.managed_kept, device.pinned_bytes, device.pinned_peak, host.device_bytes, host.device_peak, planned, (double)g->counts.todevice, (double)g->counts.tohost));
  if (any) *any = (PetscBool)(host.device_peak || device.device_peak || device.managed_peak || device.pinned_peak);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybGlueViewCounts(PetscMPIInt rank)
{
  const HybCounts *c = &HybGlueState.counts;
  FILE            *f = fopen(HybGlueState.options.viewcounts, "a");

  PetscFunctionBegin;
  PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot append to %s (-mat_aijhybridgpu_view_counts)", HybGlueState.options.viewcounts);
  fprintf(f, "%d mult=%td assemblyend=%td products=%td fallback=%td fallbackasked=%td device=%td gamg=%td gamgleft=%td gamglevels=%td gamglevelsleft=%td cycles=%td cyclesleft=%td solves=%td columns=%td methods=%s\n", (int)rank, c->mults, c->assemblies, c->products, c->fallbacks, c->fallbacksasked, c->deviceops,
          c->gamg[HYB_GAMG_SETUPS], c->gamg[HYB_GAMG_SETUPS_LEFT], c->gamg[HYB_GAMG_LEVELS], c->gamg[HYB_GAMG_LEVELS_LEFT], c->gamg[HYB_CYCLES], c->gamg[HYB_CYCLES_LEFT], c->gamg[HYB_SOLVES], c->gamg[HYB_COLUMNS_SOLVED], c->methods);
  fclose(f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs before PETSc's own finalization of Mat. A second PetscInitialize() registers again, and that clears the rest:
   matrices that others' finalizers destroy after this one need the parents' functions and places. */
PetscErrorCode HybGlueFinalize(void)
{
  HybGlue    *g = &HybGlueState;
  PetscBool   any;
  char        text[512];
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (g->options.viewcounts[0]) PetscCall(HybGlueViewCounts(rank));
  PetscCall(HybOptionsTellUnknown());
  PetscCall(HybGlueDescribeMemory(text, sizeof(text), &any));
  if (any) PetscCall(PetscInfo(NULL, "Memory: %s\n", text));
  if (g->options.viewmemory) {
    PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, "aijhybridgpu, process %d: %s\n", (int)rank, text));
    PetscCall(PetscSynchronizedFlush(PETSC_COMM_WORLD, PETSC_STDOUT));
  }
  if (g->report.end) PetscCall((*g->report.end)());
  PetscCall(HybCommRestore(&g->world));
  PetscCall(PetscFree(g->spare));
  for (; g->rowblocks.n; g->rowblocks.n--) PetscCall(PetscFree(g->rowblocks.kept[g->rowblocks.n - 1].at));
  if (g->given.kept) PetscCall(HybArenaReset(&g->given.arrays));
  if (g->given.kept) PetscCall(HybArenaReset(&g->given.moved));
  PetscCall(PetscMemzero(&g->given, sizeof(g->given)));
  g->registered = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* count.c: is a product of so many nonzeros possible? Asked on a lower bound before any work, and on the exact count
   before C's arrays are taken. */
#include <aijhybridgpu/private/hybspgemm.h>
#include <unistd.h>

/* bytes from which the backend is asked what is free although indices could count the nonzeros: asking a card takes up
   to a millisecond, filling so many bytes longer */
#define COUNT_ASK ((size_t)1 << 30)

/* what is free, and of a device what there is in all */
static PetscErrorCode CountFree(const HybExec *exec, HybMemoryReport *report)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(report, sizeof(*report)));
  if (exec->backend->device) {
    PetscCall(exec->backend->memory(report));
  } else {
#if defined(_SC_AVPHYS_PAGES)
    const long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    if (pages > 0 && size > 0) report->free_bytes = (size_t)pages * (size_t)size;
#endif
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Can so many bytes be had on a device? Plans that their products can do without are not free, but are given back to
   who finds no memory: where too little is free, but not more is asked for than there is, a trial tells. */
static PetscErrorCode CountFits(const HybExec *exec, double need, HybMemoryReport *report, PetscBool *fits)
{
  void *trial = NULL;

  PetscFunctionBegin;
  PetscCall(CountFree(exec, report));
  *fits = (PetscBool)(need <= (double)report->free_bytes);
  if (*fits || need > (double)report->total_bytes) PetscFunctionReturn(PETSC_SUCCESS);
  *fits = (PetscBool)!HYB_QUIETLY(exec->backend->alloc(exec, HYB_MEM_DEVICE, (size_t)need, &trial));
  if (*fits)
    PetscCall(exec->backend->free(exec, HYB_MEM_DEVICE, (size_t)need, trial));
  else /* of what was given back for it */
    PetscCall(CountFree(exec, report));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSpGEMMCheckCount(const HybExec *exec, const HybCSR *A, const HybCSR *B, PetscCount nnz, PetscBool atleast)
{
  const double    entry = (double)(sizeof(PetscInt) + sizeof(HybScalar));
  HybMemoryReport report;

  PetscFunctionBegin;
  PetscCheck(nnz >= 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A negative number of nonzeros, %" PetscCount_FMT, nnz);
  if (nnz > (PetscCount)PETSC_MAX_INT) {
    PetscCall(CountFree(exec, &report));
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "The product of a %" PetscInt_FMT " x %" PetscInt_FMT " and a %" PetscInt_FMT " x %" PetscInt_FMT " matrix has %s%" PetscCount_FMT " nonzeros, more than the %" PetscInt_FMT " that %zu-bit indices can count: configure PETSc using --with-64-bit-indices; it needs %.0f bytes, %zu are free", A->m, A->n, B->m, B->n,
            atleast ? "at least " : "", nnz, (PetscInt)PETSC_MAX_INT, 8 * sizeof(PetscInt), (double)nnz * entry, report.free_bytes);
  }
  PetscCall(HybCheckEntries(exec, PetscMax(nnz, PetscMax(A->nnz, B->nnz)), "An operand or the product"));
  /* memory that holds nothing yet can also be had from elsewhere on a host: it decides when it is asked */
  if (exec->backend->device && (double)nnz * entry > (double)COUNT_ASK) {
    PetscBool fits;

    PetscCall(CountFits(exec, (double)nnz * entry, &report, &fits));
    PetscCheck(fits, PETSC_COMM_SELF, PETSC_ERR_MEM, "Out of memory on the device: the product's %s%" PetscCount_FMT " nonzeros need %.0f bytes, %zu are free" HYB_MEMORY_HINT, atleast ? "at least " : "", nnz, (double)nnz * entry, report.free_bytes);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybSpGEMMEntries(const HybExec *exec, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  PetscFunctionBegin;
  if (exec->backend->early) PetscCall(exec->backend->early(exec, C->i));
  PetscCall(HybSpGEMMCheckCount(exec, A, B, C->nnz, PETSC_FALSE));
  PetscCall(HybArenaAlloc(out, exec->result, C->nnz, sizeof(PetscInt), &C->j));
  if ((A->a || !A->nnz) && (B->a || !B->nnz)) PetscCall(HybArenaAlloc(out, exec->result, C->nnz, sizeof(HybScalar), &C->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* toy.c: SpGEMM method "toy", for tests/build/run.sh: a dense row for each row of C. */
#include <aijhybridgpu/private/hybspgemm.h>

/* the columns of row r, ascending; values too where a is not NULL */
static PetscInt Row(const HybCSR *A, const HybCSR *B, PetscInt r, HybScalar *sum, PetscInt *seen, PetscInt *columns, HybScalar *a)
{
  PetscInt n = 0;

  for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
    for (PetscInt l = B->i[A->j[k]]; l < B->i[A->j[k] + 1]; l++) {
      const PetscInt c = B->j[l];

      if (a) sum[c] = seen[c] == r + 1 ? sum[c] + A->a[k] * B->a[l] : A->a[k] * B->a[l];
      seen[c] = r + 1;
    }
  }
  for (PetscInt c = 0; c < B->n; c++) {
    if (seen[c] != r + 1) continue;
    if (columns) columns[n] = c;
    if (a) a[n] = sum[c];
    n++;
  }
  return n;
}

static PetscErrorCode Rows(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, PetscInt *columns, HybScalar *a, const HybCSR *C)
{
  HybScalar *sum;
  PetscInt  *seen;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, B->n, sizeof(*sum), &sum));
  PetscCall(HybArenaCalloc(&mm->work, HYB_MEM_HOST, B->n, sizeof(*seen), &seen));
  for (PetscInt r = 0; r < A->m; r++) {
    const PetscInt n = Row(A, B, r, sum, seen, columns ? columns + C->i[r] : NULL, a ? a + C->i[r] : NULL);

    if (!columns && !a) C->i[r + 1] = n;
  }
  PetscCall(HybArenaFree(&mm->work, &sum, &seen));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Symbolic(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(out, mm->exec.result, (PetscCount)C->m + 1, sizeof(PetscInt), &C->i));
  PetscCall(Rows(mm, A, B, NULL, NULL, C));
  for (PetscInt r = 0; r < C->m; r++) {
    C->nnz += C->i[r + 1];
    PetscCall(HybSpGEMMCheckCount(&mm->exec, A, B, C->nnz, PETSC_FALSE));
    C->i[r + 1] = (PetscInt)C->nnz;
  }
  PetscCall(HybArenaAlloc(out, mm->exec.result, C->nnz, sizeof(PetscInt), &C->j));
  PetscCall(Rows(mm, A, B, C->j, NULL, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numeric(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  PetscFunctionBegin;
  PetscCall(Rows(mm, A, B, NULL, C->a, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern const HybSpGEMMMethod HybSpGEMM_Toy;
const HybSpGEMMMethod        HybSpGEMM_Toy = {.name = "toy", .symbolic = Symbolic, .numeric = Numeric};

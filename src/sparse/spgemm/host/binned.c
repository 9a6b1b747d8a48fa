/*
  binned.c: SpGEMM by rows.

  Symbolic: the columns of a row of C are collected in a bitmap over the columns, with two levels of summary above it, so that they come out
  sorted by walking the set bits. They go to a list of chunks until the exact count is known, then to C->j.
  Numeric: a dense accumulator over the columns; the row is gathered by C->j. It starts at -0, which is neutral for every first product.
*/
#include <aijhybridgpu/private/hybspgemm.h>
#include <stdint.h>

typedef struct {
  uint64_t *l0, *l1, *l2;
  PetscInt  n2;
} HybBits;

static PetscErrorCode HybBitsCreate(HybArena *work, PetscInt n, HybBits *s)
{
  const PetscInt n0 = n / 64 + 1, n1 = n0 / 64 + 1;

  PetscFunctionBegin;
  s->n2 = n1 / 64 + 1;
  PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, n0, sizeof(uint64_t), &s->l0));
  PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, n1, sizeof(uint64_t), &s->l1));
  PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, s->n2, sizeof(uint64_t), &s->l2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline void HybBitsSet(const HybBits *s, PetscInt w, uint64_t mask)
{
  const uint64_t old = s->l0[w];

  s->l0[w] = old | mask;
  if (!old) {
    const uint64_t old1 = s->l1[w >> 6];

    s->l1[w >> 6] = old1 | (uint64_t)1 << (w & 63);
    if (!old1) s->l2[w >> 12] |= (uint64_t)1 << ((w >> 6) & 63);
  }
}

/* writes the set columns in order, clears the set */
static inline PetscInt HybBitsTake(const HybBits *s, PetscInt *cols)
{
  PetscInt n = 0;

  for (PetscInt w2 = 0; w2 < s->n2; w2++) {
    for (uint64_t b2 = s->l2[w2]; b2; b2 &= b2 - 1) {
      const PetscInt w1 = 64 * w2 + __builtin_ctzll(b2);

      for (uint64_t b1 = s->l1[w1]; b1; b1 &= b1 - 1) {
        const PetscInt w0 = 64 * w1 + __builtin_ctzll(b1);

        for (uint64_t b0 = s->l0[w0]; b0; b0 &= b0 - 1) cols[n++] = 64 * w0 + __builtin_ctzll(b0);
        s->l0[w0] = 0;
      }
      s->l1[w1] = 0;
    }
    s->l2[w2] = 0;
  }
  return n;
}

typedef struct _HybChunk *HybChunk;
struct _HybChunk {
  HybChunk   next;
  PetscCount used, size;
  PetscInt   cols[];
};

#define HYB_CHUNK ((PetscCount)1 << 18)

static PetscErrorCode HybSpGEMMSymbolic_Binned(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybArena *out, HybCSR *C)
{
  HybArena  *work = &mm->work;
  HybBits    bits;
  HybChunk   head = NULL, tail = NULL;
  PetscCount nnz = 0;
  PetscInt   innz;

  PetscFunctionBegin;
  PetscCall(HybBitsCreate(work, B->n, &bits));
  PetscCall(HybArenaAlloc(out, mm->exec.result, (PetscCount)A->m + 1, sizeof(PetscInt), &C->i));
  C->i[0] = 0;
  for (PetscInt r = 0; r < A->m; r++) {
    const PetscCount most = PetscMin(mm->rowproducts[r], (PetscCount)B->n);

    if (!tail || tail->size - tail->used < most) {
      const PetscCount size = PetscMax(HYB_CHUNK, most);
      HybChunk         chunk;

      PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)sizeof(*chunk) + size * (PetscCount)sizeof(PetscInt), 1, &chunk));
      chunk->next = NULL;
      chunk->used = 0;
      chunk->size = size;
      if (tail) tail->next = chunk;
      else head = chunk;
      tail = chunk;
    }
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      for (PetscInt l = B->i[A->j[k]]; l < B->i[A->j[k] + 1]; l++) HybBitsSet(&bits, B->j[l] >> 6, (uint64_t)1 << (B->j[l] & 63));
    }
    if (most) {
      const PetscInt n = HybBitsTake(&bits, tail->cols + tail->used);

      tail->used += n;
      nnz += n;
    }
    /* refused below when it does not fit: then this entry is never read */
    C->i[r + 1] = (PetscInt)nnz;
  }
  PetscCall(HybIntCast(nnz, "The product", &innz));
  C->nnz = nnz;
  PetscCall(HybArenaAlloc(out, mm->exec.result, nnz, sizeof(PetscInt), &C->j));
  for (nnz = 0; head;) {
    HybChunk chunk = head;

    if (chunk->used) memcpy(C->j + nnz, chunk->cols, (size_t)chunk->used * sizeof(PetscInt));
    nnz += chunk->used;
    head = chunk->next;
    PetscCall(HybArenaFree(work, &chunk));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybSpGEMMNumeric_Binned(HybSpGEMM *mm, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
#if PetscDefined(USE_COMPLEX)
  const HybScalar neutral = PetscCMPLX((PetscReal)-0.0, (PetscReal)-0.0);
#else
  const HybScalar neutral = (PetscReal)-0.0;
#endif
  HybScalar *acc;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(&mm->work, HYB_MEM_HOST, C->n, sizeof(HybScalar), &acc));
  for (PetscInt c = 0; c < C->n; c++) acc[c] = neutral;
  for (PetscInt r = 0; r < A->m; r++) {
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
      const HybScalar a = A->a[k];

      for (PetscInt l = B->i[A->j[k]]; l < B->i[A->j[k] + 1]; l++) acc[B->j[l]] += a * B->a[l];
    }
    for (PetscInt t = C->i[r]; t < C->i[r + 1]; t++) {
      C->a[t]      = acc[C->j[t]];
      acc[C->j[t]] = neutral;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybSpGEMMMethod HybSpGEMM_Binned = {
  .name     = "binned",
  .symbolic = HybSpGEMMSymbolic_Binned,
  .numeric  = HybSpGEMMNumeric_Binned,
};

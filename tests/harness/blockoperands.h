/* Operands of which some consist of blocks or of few diagonals, and some but nearly: for methods that ask
   (block_method) */
#ifndef AIJHYBRIDGPU_BLOCKOPERANDS_H
#define AIJHYBRIDGPU_BLOCKOPERANDS_H
#include "spgemmtest.h"

enum {
  WHOLE,   /* nothing else than blocks */
  SEEN,    /* but for an entry of the first row */
  UNSEEN,  /* but for an entry of a row that a sample does not ask */
  FAR,     /* columns far apart */
  FEW,     /* few entries */
  SCALAR,  /* no blocks, but 2 and 4 divide the numbers of rows and entries */
  SMALLER, /* blocks of 2 in blocks of 4, but for one that moved in rows that a sample does not ask */
  GRID,    /* few diagonals, no blocks, but 2 divides */
  BLOCKS,  /* few diagonals of blocks of 2 */
  WIDE,    /* few diagonals of blocks of 2, far apart: 10 to 20 words of bits to a pair of blocks */
  BOTH,    /* few diagonals of blocks of 2, of which a sample of rows has not met all */
  NEARLY,  /* the same, but for an entry of a row that a sample does not ask, on a diagonal that others have */
  MISSED,  /* few diagonals, of which a sample of rows has not met all */
  BAND,    /* few diagonals, no blocks, but 2 divides and rows are long */
  GAPS     /* the same, of which a sample of rows has not met all */
};

/* the first block of each row names a row that has entries, the second one is far to the right of all these; the rows
   behind are empty */
static void FarApart(PetscInt bs, PetscInt m, PetscInt n, RefMat *A)
{
  PetscInt *i = (PetscInt *)RefAlloc((PetscCount)n + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc(2 * m, sizeof(PetscInt));
  RefMat    P;

  for (PetscInt r = 0; r < n; r++) i[r + 1] = PetscMin(2 * (r + 1), 2 * m);
  for (PetscInt r = 0; r < m; r++) {
    j[2 * r]     = HybTestRandomInt(0, m);
    j[2 * r + 1] = HybTestRandomInt(m, n);
  }
  HybTestMatArrays(n, n, i, j, NULL, &P);
  HybTestMatBlock(&P, bs, A);
  RefMatDestroy(&P);
  RefFree(i, j);
}

/* the rows t with t % 3 == 0 are asked where there are 8192 to 12287; the last entries of other rows, of one block row,
   move to the matrix' end */
static void Move(RefMat *A, PetscInt first, PetscInt rows, PetscInt entries)
{
  for (PetscInt t = first; t < first + rows; t++) {
    HybTestCheck(t % 3, "row %" PetscInt_FMT " is asked", t);
    for (PetscInt q = 1; q <= entries; q++) A->csr.j[A->csr.i[t + 1] - q] = A->csr.n - q;
  }
}

/* ten times three diagonals beside each other: rows longer than usual stencils' */
static void Lines(PetscInt m, RefMat *A)
{
  PetscInt *i = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt)), *j = (PetscInt *)RefAlloc(30 * (PetscCount)m, sizeof(PetscInt));

  for (PetscInt r = 0; r < m; r++) {
    i[r + 1] = i[r];
    for (PetscInt k = 0; k < 30; k++) {
      const PetscInt c = r + 8 * (k / 3) - 36 + k % 3 - 1;

      if (c >= 0 && c < m) j[i[r + 1]++] = c;
    }
  }
  HybTestMatArrays(m, m, i, j, NULL, A);
  RefFree(i, j);
}

/* the last entry of each of three rows that a sample does not ask, `apart` rows apart, goes as far to the right */
static void Astray(RefMat *A, PetscInt first, PetscInt apart)
{
  for (PetscInt r = first; r < first + 3 * apart; r += apart) A->csr.j[A->csr.i[r] - 1] += first;
}

static void Operand(PetscInt kind, RefMat *A)
{
  RefMat P;

  switch (kind) {
  case FAR:
    FarApart(2, 4000, HybTestSize(900000, 30000), A);
    return;
  case SCALAR:
    HybTestMatRandom(1200, 1200, 20, 20, A);
    return;
  case GRID:
    HybTestMatStencil(9, 50, 40, 1, A);
    return;
  case MISSED:
    HybTestMatStencil(9, 100, 50, 1, A);
    Astray(A, 1001, 50);
    return;
  case BAND:
  case GAPS:
    Lines(5000, A);
    if (kind == GAPS) Astray(A, 1001, 50);
    return;
  case BLOCKS:
    HybTestMatStencil(9, 25, 20, 1, &P);
    break;
  case WIDE:
    HybTestMatStencil(5, 2400, 4, 1, &P);
    break;
  case BOTH:
    HybTestMatStencil(9, 100, 50, 1, &P);
    Astray(&P, 501, 25);
    break;
  case NEARLY:
    HybTestMatStencil(9, 70, 65, 1, &P);
    break;
  case FEW:
    HybTestMatRandom(40, 40, 20, 30, &P);
    break;
  case UNSEEN:
    HybTestMatRandom(4500, 4500, 2, 2, &P);
    break;
  case SMALLER:
    HybTestMatRandom(2200, 2200, 2, 2, &P);
    break;
  default:
    HybTestMatRandom(300, 300, 10, 16, &P);
  }
  HybTestMatBlock(&P, kind == UNSEEN || kind == BLOCKS || kind == WIDE || kind == BOTH || kind == NEARLY ? 2 : kind == SMALLER ? 4
                                                                                                                               : 3,
                  A);
  RefMatDestroy(&P);
  if (kind == SEEN) { /* the last three columns of the first row are 3 c - 1, 3 c + 1, 3 c + 2 */
    PetscInt *j = A->csr.j + A->csr.i[1] - 3;

    if (j[0] == j[-1] + 1) j[-1]--, j[-2]--, j[-3]--; /* makes room; no block either */
    j[0]--;
  }
  if (kind == UNSEEN) Move(A, 4001, 1, 1);
  if (kind == SMALLER) Move(A, 4006, 2, 2);
  if (kind == NEARLY) A->csr.j[A->csr.i[4002] - 1]++; /* row 4001 */
}
#endif

/*
  hybarrays.h: matrices as arrays, and elementary operations on them.
*/
#ifndef AIJHYBRIDGPU_HYBARRAYS_H
#define AIJHYBRIDGPU_HYBARRAYS_H

#include "hybmemory.h"

HYB_EXTERN_C_BEGIN

/* A compressed sparse row matrix by reference: it owns nothing, and its pointers are valid for the backend that
   executes. Columns ascend within each row. a may be NULL where only the pattern is used. i[0] = 0, i[m] = nnz. */
typedef struct {
  PetscInt   m, n; /* rows, columns */
  PetscCount nnz;
  PetscInt  *i; /* m+1 row offsets */
  PetscInt  *j; /* nnz column indices */
  HybScalar *a; /* nnz values */
} HybCSR;

/* the first position in begin..end-1 whose column is not below col */
static inline PetscInt HybCSRPlace(const PetscInt *j, PetscInt begin, PetscInt end, PetscInt col)
{
  while (begin < end) {
    const PetscInt mid = begin + (end - begin) / 2;

    if (j[mid] < col)
      begin = mid + 1;
    else
      end = mid;
  }
  return begin;
}

static inline HybCSR HybCSROf(PetscInt m, PetscInt n, PetscCount nnz, PetscInt *i, PetscInt *j, HybScalar *a)
{
  const HybCSR A = {m, n, nnz, i, j, a};

  return A;
}

/* NormType is petscvec.h's, which no room includes */
typedef enum {
  HYB_NORM_1,         /* the largest column sum */
  HYB_NORM_FROBENIUS, /* sqrt(sum |a|^2) */
  HYB_NORM_INFINITY   /* the largest row sum */
} HybNorm;

/* Elementary operations on CSR arrays. All pointers live where the backend executes; scalars are passed by pointer to
   host memory. Results do not depend on the run. */
typedef struct {
  /* perm[k] = position in A of entry k of T = A^T; T->i, T->j (memory exec->result) and perm are taken from keep; rows
     of T come out sorted */
  PetscErrorCode (*transposesymbolic)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *T, PetscInt **perm);
  /* The same with values: T->a (memory exec->result) = A->a[perm], conjugated if asked. perm may be NULL. */
  PetscErrorCode (*transpose)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscBool conjugate, HybCSR *T, PetscInt **perm);
  /* dst[k] = src[perm[k]], conjugated if asked */
  PetscErrorCode (*gather)(const HybExec *, PetscCount n, const PetscInt *perm, PetscBool conjugate, const HybScalar *src, HybScalar *dst);
  PetscErrorCode (*set)(const HybExec *, PetscCount n, const HybScalar *alpha, HybScalar *a);
  PetscErrorCode (*scale)(const HybExec *, PetscCount n, const HybScalar *alpha, HybScalar *a);
  /* y += alpha x */
  PetscErrorCode (*axpy)(const HybExec *, PetscCount n, const HybScalar *alpha, const HybScalar *x, HybScalar *y);
  /* A = diag(l) A diag(r); l or r may be NULL */
  PetscErrorCode (*diagonalscale)(const HybExec *, HybCSR *A, const HybScalar *l, const HybScalar *r);
  /* d[i] = A(i,i), 0 where the pattern has none; min(m,n) entries */
  PetscErrorCode (*getdiagonal)(const HybExec *, const HybCSR *A, HybScalar *d);
  /* A(i,i) = d[i] or += d[i] (alpha in place of d[i] where d is NULL); *missing = number of rows < min(m,n) without a
     diagonal entry; if any, A is unchanged */
  PetscErrorCode (*diagonalset)(const HybExec *, HybArena *work, HybCSR *A, const HybScalar *d, const HybScalar *alpha, PetscBool add, PetscCount *missing);
  /* Y += alpha X where the pattern of X is within Y's; *missing = entries of X not in Y; if any, Y is unchanged.
     missing NULL: it is known that there are none; nothing is asked or waited for then, and work may be NULL. */
  PetscErrorCode (*axpysubset)(const HybExec *, HybArena *work, const HybScalar *alpha, const HybCSR *X, HybCSR *Y, PetscCount *missing);
  /* C has the union of two patterns: C->i, C->j from keep (memory exec->result); PETSC_ERR_ARG_OUTOFRANGE if C's
     nonzeros do not fit PetscInt */
  PetscErrorCode (*addsymbolic)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, const HybCSR *B, HybCSR *C);
  /* C = alpha A + beta B on the union pattern */
  PetscErrorCode (*addnumeric)(const HybExec *, const HybScalar *alpha, const HybCSR *A, const HybScalar *beta, const HybCSR *B, HybCSR *C);
  /* hash[k] = a hash of i and j of A[k], k < n, by which patterns are compared. The host waits once for all of them.
     The values are the same on every backend. */
  PetscErrorCode (*patternhash)(const HybExec *, HybArena *work, PetscInt n, const HybCSR *const A[], uint64_t hash[]);
  /* *nbad = rows whose columns are not strictly ascending within 0..n-1 or whose offsets descend; *badrow = the first
     such row or -1. An offset outside 0..nnz, i[0] != 0 or i[m] != nnz makes the row bad that it bounds. Only j[0] to
     j[nnz-1] are read, so any arrays may be checked. */
  PetscErrorCode (*check)(const HybExec *, HybArena *work, const HybCSR *A, PetscCount *nbad, PetscInt *badrow);
  /* Of offsets in host memory, on every backend; of many rows a device library's is done by several threads: *longest =
     entries of the longest row,
     *nonempty = rows that have entries, length[0][r] and length[1][r], two arrays, = entries of row r. length may be
     NULL. Does not wait for the device. */
  PetscErrorCode (*rowlengths)(const HybExec *, PetscInt m, const PetscInt *i, PetscInt *const length[2], PetscCount *longest, PetscCount *nonempty);
  /* place[r] = k where j[k] = r in row r, i[r+1] where the row has no such entry */
  PetscErrorCode (*diagonalplaces)(const HybExec *, const HybCSR *A, PetscInt *place);
  /* same[r] = 1 where row r has the columns of row r-1, else 0, as for the first row */
  PetscErrorCode (*samerows)(const HybExec *, const HybCSR *A, unsigned char *same);
  PetscErrorCode (*norm)(const HybExec *, HybArena *work, const HybCSR *A, HybNorm type, PetscReal *norm);
  /* COO: C has the entries (ci[k], cj[k]), k < ncoo. Negative ones are ignored; one beyond C->m or C->n, which the
     caller sets, is PETSC_ERR_ARG_OUTOFRANGE. C->i, C->j from keep (memory exec->result). Entry e of C is the sum of
     the values at map[mapptr[e]] .. map[mapptr[e+1]-1], ascending in k. */
  PetscErrorCode (*coosymbolic)(const HybExec *, HybArena *keep, HybArena *work, PetscCount ncoo, const PetscInt *ci, const PetscInt *cj, HybCSR *C, PetscCount **mapptr, PetscCount **map);
  /* a[e] = (add ? a[e] : 0) + sum of v over the entry's list */
  PetscErrorCode (*coonumeric)(const HybExec *, PetscCount nnz, const PetscCount *mapptr, const PetscCount *map, const HybScalar *v, PetscBool add, HybScalar *a);
  /* Splits, in place, the coordinates of a process that owns rows rstart to rend-1 and columns cstart to cend-1.
     Entries in owned rows and columns count from (0,0) afterwards, all others become negative. *nother = entries in
     owned rows and other columns; *place, *oi, *oj (from work): for each of these its k, ascending, its row counted
     from rstart, and its global column. */
  PetscErrorCode (*coosplit)(const HybExec *, HybArena *work, PetscCount ncoo, PetscInt *ci, PetscInt *cj, PetscInt rstart, PetscInt rend, PetscInt cstart, PetscInt cend, PetscCount *nother, PetscCount **place, PetscInt **oi, PetscInt **oj);
  /* map[k] = place[map[k]] */
  PetscErrorCode (*coocompose)(const HybExec *, PetscCount n, const PetscCount *place, PetscCount *map);
  /* S = A(rows, cstart:cend-1), columns renumbered to start at 0; rows in any order, also repeatedly; S->a = A->a[perm]
     by gather */
  PetscErrorCode (*submatrixsymbolic)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt nrows, const PetscInt *rows, PetscInt cstart, PetscInt cend, HybCSR *S, PetscInt **perm);
  /* The same with any columns; rows NULL: all rows. Column c of A becomes column colmap[c] of S, which has ncols
     columns, or is left out if colmap[c] is negative; no two become one. ascending: the columns that stay keep their
     order, so rows need no sorting. */
  PetscErrorCode (*submatrixmapped)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt nrows, const PetscInt *rows, PetscInt ncols, const PetscInt *colmap, PetscBool ascending, HybCSR *S, PetscInt **perm);
  /* C = A B for dense B and C of p columns, stored by columns ldb and ldc apart */
  PetscErrorCode (*multdense)(const HybExec *, const HybCSR *A, PetscInt p, const HybScalar *B, PetscCount ldb, HybScalar *C, PetscCount ldc);
} HybCSROps;

extern const HybCSROps HybCSROpsHost;

/* nnz as PetscInt, or PETSC_ERR_ARG_OUTOFRANGE naming the count, the limit and --with-64-bit-indices */
extern PetscErrorCode HybIntCast(PetscCount nnz, const char *what, PetscInt *);

/* Entries that kernels may go beyond a row's end before they stop. The offset there must fit a PetscInt. */
#define HYB_ENTRIES_BEYOND 4096
/* Called before kernels go along the rows of a matrix: PETSC_ERR_ARG_OUTOFRANGE, naming the counts and
   --with-64-bit-indices, where nnz + HYB_ENTRIES_BEYOND does not fit a PetscInt. On the host all is allowed. */
extern PetscErrorCode HybCheckEntries(const HybExec *, PetscCount nnz, const char *what);

HYB_EXTERN_C_END
#endif

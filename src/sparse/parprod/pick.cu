/*
  pick.cu: rows picked from the blocks that one process has of a parallel matrix, and what of two matrices meets, on the
  device. Contracts: hybparprod.h.

  What is picked is of few rows, and its kernels take as long as they take to start: so each step starts few, and the
  host waits once for all that it counts.
*/
#include "../csr/csrops.cuh"
#include "locallist.h"

/* others' columns to the left, own ones, others' to the right */
template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void PickFill(PetscInt n, const PetscInt *__restrict__ rows, PetscInt nleft, PetscInt first, const PetscInt *__restrict__ garray, const PetscInt *__restrict__ id, const PetscInt *__restrict__ jd, const PetscInt *__restrict__ io, const PetscInt *__restrict__ jo, const PetscInt *__restrict__ is, PetscInt *__restrict__ js, PetscInt *__restrict__ from)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(s, n, W)
  {
    if (s < n) {
      const PetscInt r = rows[s], d0 = id[r], d1 = id[r + 1], o0 = io[r], o1 = io[r + 1], to = is[s];
      const PetscInt split = o0 == o1 ? o0 : RowLowerBound(jo, o0, o1, nleft);
      for (PetscInt o = o0 + lane; o < o1; o += W) {
        const PetscInt k = to + (o - o0) + (o < split ? 0 : d1 - d0);
        js[k]            = garray[jo[o]];
        from[k]          = -1 - o;
      }
      for (PetscInt d = d0 + lane; d < d1; d += W) {
        const PetscInt k = to + (split - o0) + (d - d0);
        js[k]            = jd[d] + first;
        from[k]          = d;
      }
    }
  }
}

PetscErrorCode HybCSRPickRows_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *D, const HybCSR *O, PetscInt nleft, PetscInt first, const PetscInt *garray, PetscInt n, const PetscInt *rows, PetscInt *begin, HybCSR *S, PetscInt **from)
{
  PetscInt  *length, *is, *js, *where, nnz;
  PetscCount total = 0;

  PetscFunctionBegin;
  PetscCall(HybCheckEntries(exec, PetscMax(D->nnz, O->nnz), "A block that rows are picked of"));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n, sizeof(*length), &length));
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)n + 1, sizeof(*is), &is));
  HYB_FOR_EACH(exec, n, [length, rows, id = D->i, io = O->i] __device__(PetscCount s) {
    const PetscInt r = rows[s];

    length[s] = (id[r + 1] - id[r]) + (io[r + 1] - io[r]);
  });
  PetscCall(HybScanCounts(exec, work, n, length, is, NULL, NULL));
  begin[0] = 0;
  PetscCall(CSRFetch(exec, begin + 1, length, sizeof(*begin) * (size_t)n));
  for (PetscInt k = 1; k <= n; k++) total += begin[k];
  PetscCall(HybIntCast(total, "Rows that are picked", &nnz));
  for (PetscInt k = 1; k <= n; k++) begin[k] += begin[k - 1];
  PetscCall(HybArenaFree(work, &length));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(*js), &js));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nnz, sizeof(*where), &where));
  HYB_LAUNCH_ROWS(exec, RowWidth(nnz, n, 1), (PickFill<WIDTH>), n, rows, nleft, first, garray, D->i, D->j, O->i, O->j, is, js, where);
  *S    = HybCSROf(n, 0, nnz, is, js, NULL);
  *from = where;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRPickValues_CUDA(const HybExec *exec, PetscCount n, const PetscInt *from, const HybScalar *d, const HybScalar *o, HybScalar *a)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) {
    const PetscInt f = from[k];

    a[k] = f < 0 ? o[-1 - f] : d[f];
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rows NULL: row s of S is the one of A that map says, if there is one */
template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void PickCopy(PetscInt n, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ map, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ is, PetscInt *__restrict__ js, PetscInt *__restrict__ perm)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(s, n, W)
  {
    if (s < n) {
      const PetscInt row = map ? map[s] : (PetscInt)s;
      if (row >= 0) {
        const PetscInt from = i[rows ? rows[s] : (PetscInt)s], to = is[row], len = is[row + 1] - to;
        for (PetscInt k = lane; k < len; k += W) {
          js[to + k]   = j[from + k];
          perm[to + k] = from + k;
        }
      }
    }
  }
}

PetscErrorCode HybCSRPickBoth_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *const A[2], const PetscCount nnz[2], PetscInt nrows, const PetscInt *rows, HybCSR S[2], PetscInt *perm[2])
{
  PetscInt   *length[2], *is[2], *js, *where, nz;
  PetscCount *there, total[2] = {nnz[0], nnz[1]};

  PetscFunctionBegin;
  PetscCall(HybCheckEntries(exec, PetscMax(A[0]->nnz, A[1]->nnz), "A matrix that rows are picked of"));
  for (int p = 0; p < 2; p++) {
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nrows, sizeof(*length[p]), &length[p]));
    PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)nrows + 1, sizeof(*is[p]), &is[p]));
  }
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), 2, sizeof(*there), &there));
  HYB_FOR_EACH(exec, nrows, [rows, i0 = A[0]->i, i1 = A[1]->i, length0 = length[0], length1 = length[1]] __device__(PetscCount s) {
    const PetscInt r = rows[s];

    length0[s] = i0[r + 1] - i0[r];
    length1[s] = i1[r + 1] - i1[r];
  });
  for (int p = 0; p < 2; p++) PetscCall(HybScanCounts(exec, work, nrows, length[p], is[p], there + p, NULL));
  if (total[0] < 0 || total[1] < 0) PetscCall(CSRFetch(exec, total, there, sizeof(total)));
  PetscCall(HybArenaFree(work, &there));
  for (int p = 0; p < 2; p++) {
    PetscCall(HybIntCast(total[p], "Rows that are picked", &nz));
    PetscCall(HybArenaFree(work, &length[p]));
    PetscCall(HybArenaAlloc(keep, exec->result, nz, sizeof(*js), &js));
    PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nz, sizeof(*where), &where));
    if (nz)
      HYB_LAUNCH_ROWS(exec, RowWidth(nz, nrows, 1), (PickCopy<WIDTH>), nrows, rows, nullptr, A[p]->i, A[p]->j, is[p], js, where);
    S[p]    = HybCSROf(nrows, A[p]->n, nz, is[p], js, NULL);
    perm[p] = where;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* flags and lengths of m rows each become offsets, and the host knows both sums */
static PetscErrorCode PickCount(const HybExec *exec, HybArena *work, PetscInt m, PetscInt *flag, PetscInt *length, PetscCount total[2])
{
  PetscCount *there;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), 2, sizeof(*there), &there));
  PetscCall(HybScanCounts(exec, work, m, flag, flag, there, NULL));
  PetscCall(HybScanCounts(exec, work, m, length, length, there + 1, NULL));
  PetscCall(CSRFetch(exec, total, there, 2 * sizeof(*there)));
  PetscCall(HybArenaFree(work, &there));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRPickMet_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, const HybCSR *X, HybCSR *Y, PetscInt **perm, PetscInt **map)
{
  PetscInt  *flag, *length, *place, *yi, *yj, *where;
  PetscCount total[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(HybCheckEntries(exec, X->nnz, "A matrix that rows are picked of"));
  PetscCall(HybArenaCalloc(work, HYB_WORK(exec), (PetscCount)X->m + 1, sizeof(*flag), &flag));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), (PetscCount)X->m + 1, sizeof(*length), &length));
  /* whoever writes writes the same */
  HYB_FOR_EACH(exec, A->nnz, [flag, j = A->j] __device__(PetscCount k) { flag[j[k]] = 1; });
  HYB_FOR_EACH(exec, X->m, [flag, length, i = X->i] __device__(PetscCount c) {
    const PetscInt l = flag[c] ? i[c + 1] - i[c] : 0;

    length[c] = l;
    flag[c]   = l > 0;
  });
  PetscCall(PickCount(exec, work, X->m, flag, length, total));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), X->m, sizeof(*place), &place));
  PetscCall(HybArenaAlloc(keep, exec->result, total[0] + 1, sizeof(*yi), &yi));
  if (X->m == 0) PetscCall(exec->backend->zero(exec, yi, sizeof(*yi)));
  /* row flag[r] of the result for each r that has one, which place tells */
  HYB_FOR_EACH(exec, X->m, [flag, length, place, yi, m = X->m] __device__(PetscCount r) {
    const PetscInt p     = flag[r];
    const bool     there = flag[r + 1] > p;

    place[r] = there ? p : (PetscInt)-1;
    if (there) yi[p] = length[r];
    if (r == m - 1) yi[flag[m]] = length[m];
  });
  *Y    = *X;
  Y->m  = (PetscInt)total[0];
  Y->i  = yi;
  *map  = place;
  *perm = NULL;
  if (total[1] < X->nnz) {
    PetscCall(HybArenaAlloc(keep, exec->result, total[1], sizeof(*yj), &yj));
    PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), total[1], sizeof(*where), &where));
    HYB_LAUNCH_ROWS(exec, RowWidth(total[1], X->m, 1), (PickCopy<WIDTH>), X->m, nullptr, place, X->i, X->j, yi, yj, where);
    Y->nnz = total[1];
    Y->j   = yj;
    Y->a   = NULL;
    *perm  = where;
  }
  PetscCall(HybArenaFree(work, &flag, &length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void PickMappedLengths(PetscInt m, const PetscInt *__restrict__ colmap, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, PetscInt *__restrict__ flag, PetscInt *__restrict__ length)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(r, m, W)
  {
    PetscInt n = 0;
    if (r < m) {
      const PetscInt end = i[r + 1];
      for (PetscInt k = i[r] + lane; k < end; k += W) n += colmap[j[k]] >= 0;
    }
    n = HybSubwarpSum<W>(n);
    if (r < m && lane == 0) {
      length[r] = n;
      flag[r]   = n > 0;
    }
  }
}

/* And the rows' list and offsets. Lanes look at neighbours, and a ballot tells each one how many stay before it. */
template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void PickMappedFill(PetscInt m, const PetscInt *__restrict__ colmap, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ place, const PetscInt *__restrict__ at, PetscInt *__restrict__ list, PetscInt *__restrict__ ic, PetscInt *__restrict__ jc, PetscInt *__restrict__ perm)
{
  const int      lane = HybLane() & (W - 1), first = HybLane() & ~(W - 1);
  const unsigned mask = HybSubwarpMask<W>();
  ROW_LOOP(r, m, W)
  {
    if (r < m) {
      const PetscInt p = place[r], end = i[r + 1];
      PetscInt       to = at[r];
      if (place[r + 1] > p) {
        if (lane == 0) {
          list[p] = (PetscInt)r;
          ic[p]   = to;
        }
        for (PetscInt k = i[r]; k < end; k += W) {
          const PetscInt c    = k + lane < end ? colmap[j[k + lane]] : (PetscInt)-1;
          const unsigned stay = (__ballot_sync(mask, c >= 0) & mask) >> first;
          if (c >= 0) {
            const PetscInt e = to + (PetscInt)__popc(stay & ((1u << lane) - 1u));
            jc[e]            = c;
            perm[e]          = k + lane;
          }
          to += (PetscInt)__popc(stay);
        }
      }
      if (r == m - 1 && lane == 0) ic[place[m]] = at[m];
    }
  }
}

PetscErrorCode HybCSRPickMapped_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt ncols, const PetscInt *colmap, HybCSR *C, PetscInt **rows, PetscInt **perm)
{
  const int  w = RowWidth(A->nnz, A->m, 1);
  PetscInt  *flag, *length, *ci, *cj, *list, *where;
  PetscCount total[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(HybCheckEntries(exec, A->nnz, "A matrix that columns are picked of"));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), (PetscCount)A->m + 1, sizeof(*flag), &flag));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), (PetscCount)A->m + 1, sizeof(*length), &length));
  HYB_LAUNCH_ROWS(exec, w, (PickMappedLengths<WIDTH>), A->m, colmap, A->i, A->j, flag, length);
  PetscCall(PickCount(exec, work, A->m, flag, length, total));
  PetscCall(HybArenaAlloc(keep, exec->result, total[0] + 1, sizeof(*ci), &ci));
  PetscCall(HybArenaAlloc(keep, exec->result, total[1], sizeof(*cj), &cj));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), total[1], sizeof(*where), &where));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), total[0], sizeof(*list), &list));
  if (A->m == 0) PetscCall(exec->backend->zero(exec, ci, sizeof(*ci)));
  HYB_LAUNCH_ROWS(exec, w, (PickMappedFill<WIDTH>), A->m, colmap, A->i, A->j, flag, length, list, ci, cj, where);
  PetscCall(HybArenaFree(work, &flag, &length));
  *C    = HybCSROf((PetscInt)total[0], ncols, total[1], ci, cj, NULL);
  *rows = list;
  *perm = where;
  PetscFunctionReturn(PETSC_SUCCESS);
}

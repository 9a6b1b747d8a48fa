/*
  Operations on two patterns, and on parts of one, on the device: the union of two matrices, adding a matrix within
  another's pattern, rows and column ranges of a matrix, and the check of an untrusted one.

  The union of two sorted rows without merging them one by one: the place of an entry of A in the union is its place p
  in A's row, plus the number q of entries of B's row with smaller columns (a binary search), less the number of columns
  that both have before it; the same holds for the entries that B alone has. So the lanes of a sub-warp place their
  entries independently, and a ballot counts the common ones.

    for each row (W lanes):
      for p in A's row: q = lowerbound(B's row, column); common = (B[q] == column)
                        place = p + q - #common before p
      for q in B's row: p = lowerbound(A's row, column); common = (A[p] == column)
                        place = p + q - #common before q, unless common

  Work: O(l log l) for a row of l entries. Memory: none but the results.
*/
#include "csrops.cuh"

/* one row of a union: ENTRY(p or -1, q or -1, place) for each of its entries, places from 0; returns their number */
template <int W, class F>
static __device__ __forceinline__ PetscInt UnionRow(bool valid, PetscInt a0, PetscInt a1, const PetscInt *ja, PetscInt b0, PetscInt b1, const PetscInt *jb, F entry)
{
  const int      lane = HybLane() & (W - 1);
  const unsigned mask = HybSubwarpMask<W>(), below = HybLanesBelow() & mask;
  PetscInt       common = 0;

  if (!valid) return 0; /* the same for all lanes of the sub-warp */
  for (PetscInt base = a0; base < a1; base += W) {
    const PetscInt p   = base + lane;
    bool           hit = false;
    PetscInt       q   = b0;
    if (p < a1) {
      q   = RowLowerBound(jb, b0, b1, ja[p]);
      hit = q < b1 && jb[q] == ja[p];
    }
    const unsigned hits = __ballot_sync(mask, hit) & mask;
    if (p < a1) entry(p, hit ? q : (PetscInt)-1, (p - a0) + (q - b0) - common - __popc(hits & below));
    common += __popc(hits);
  }
  const PetscInt both = common;
  common              = 0;
  for (PetscInt base = b0; base < b1; base += W) {
    const PetscInt q   = base + lane;
    bool           hit = false;
    PetscInt       p   = a0;
    if (q < b1) {
      p   = RowLowerBound(ja, a0, a1, jb[q]);
      hit = p < a1 && ja[p] == jb[q];
    }
    const unsigned hits = __ballot_sync(mask, hit) & mask;
    if (q < b1 && !hit) entry((PetscInt)-1, q, (p - a0) + (q - b0) - common - __popc(hits & below));
    common += __popc(hits);
  }
  return (a1 - a0) + (b1 - b0) - both;
}

template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void AddCount(PetscInt m, const PetscInt *__restrict__ ia, const PetscInt *__restrict__ ja, const PetscInt *__restrict__ ib, const PetscInt *__restrict__ jb, PetscInt *__restrict__ count)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(r, m, W)
  {
    PetscInt common = 0, a0 = 0, a1 = 0, b0 = 0, b1 = 0;
    if (r < m) {
      a0 = ia[r];
      a1 = ia[r + 1];
      b0 = ib[r];
      b1 = ib[r + 1];
      for (PetscInt p = a0 + lane; p < a1; p += W) {
        const PetscInt q = RowLowerBound(jb, b0, b1, ja[p]);
        common += q < b1 && jb[q] == ja[p];
      }
    }
    common = HybSubwarpSum<W>(common);
    if (lane == 0 && r < m) count[r] = (a1 - a0) + (b1 - b0) - common;
  }
}

template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void AddColumns(PetscInt m, const PetscInt *__restrict__ ia, const PetscInt *__restrict__ ja, const PetscInt *__restrict__ ib, const PetscInt *__restrict__ jb, const PetscInt *__restrict__ ic, PetscInt *__restrict__ jc)
{
  ROW_LOOP(r, m, W)
  {
    const bool     valid = r < m;
    const PetscInt c0    = valid ? ic[r] : 0;
    (void)UnionRow<W>(valid, valid ? ia[r] : 0, valid ? ia[r + 1] : 0, ja, valid ? ib[r] : 0, valid ? ib[r + 1] : 0, jb, [&](PetscInt p, PetscInt q, PetscInt place) { jc[c0 + place] = p >= 0 ? ja[p] : jb[q]; });
  }
}

template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void AddValues(PetscInt m, HybScalar alpha, const PetscInt *__restrict__ ia, const PetscInt *__restrict__ ja, const HybScalar *__restrict__ va, HybScalar beta, const PetscInt *__restrict__ ib, const PetscInt *__restrict__ jb, const HybScalar *__restrict__ vb, const PetscInt *__restrict__ ic, HybScalar *__restrict__ vc)
{
  ROW_LOOP(r, m, W)
  {
    const bool     valid = r < m;
    const PetscInt c0    = valid ? ic[r] : 0;
    (void)UnionRow<W>(valid, valid ? ia[r] : 0, valid ? ia[r + 1] : 0, ja, valid ? ib[r] : 0, valid ? ib[r + 1] : 0, jb, [&](PetscInt p, PetscInt q, PetscInt place) {
      HybScalar v;
      if (p < 0)
        v = HybMul(beta, vb[q]);
      else {
        v = HybMul(alpha, va[p]);
        if (q >= 0) v = HybMulAdd(beta, vb[q], v);
      }
      vc[c0 + place] = v;
    });
  }
}

PetscErrorCode HybCSRAddSymbolic_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, const HybCSR *B, HybCSR *C)
{
  const int  w = RowWidth(PetscMax(A->nnz, B->nnz), A->m, 1);
  PetscInt  *count, *ic, *jc, nz;
  PetscCount nnz = 0;

  PetscFunctionBegin;
  PetscCheck(A->m == B->m && A->n == B->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Cannot add a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT " to one of %" PetscInt_FMT " x %" PetscInt_FMT, B->m, B->n, A->m, A->n);
  PetscCall(HybCheckEntries(exec, PetscMax(A->nnz, B->nnz), "One of two matrices to add"));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), A->m, sizeof(*count), &count));
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->m + 1, sizeof(*ic), &ic));
  HYB_LAUNCH_ROWS(exec, w, (AddCount<WIDTH>), A->m, A->i, A->j, B->i, B->j, count);
  PetscCall(HybScanCounts(exec, work, A->m, count, ic, NULL, &nnz));
  PetscCall(HybIntCast(nnz, "The sum of two matrices", &nz));
  PetscCall(HybArenaAlloc(keep, exec->result, nz, sizeof(*jc), &jc));
  HYB_LAUNCH_ROWS(exec, w, (AddColumns<WIDTH>), A->m, A->i, A->j, B->i, B->j, ic, jc);
  PetscCall(HybArenaFree(work, &count));
  *C = HybCSROf(A->m, A->n, nnz, ic, jc, NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRAddNumeric_CUDA(const HybExec *exec, const HybScalar *alpha, const HybCSR *A, const HybScalar *beta, const HybCSR *B, HybCSR *C)
{
  PetscFunctionBegin;
  PetscCall(HybCheckEntries(exec, PetscMax(A->nnz, B->nnz), "One of two matrices to add"));
  HYB_LAUNCH_ROWS(exec, RowWidth(PetscMax(A->nnz, B->nnz), A->m, 1), (AddValues<WIDTH>), A->m, *alpha, A->i, A->j, A->a, *beta, B->i, B->j, B->a, C->i, C->a);
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void SubsetFindAdd(PetscInt m, const PetscInt *__restrict__ ix, const PetscInt *__restrict__ jx, const PetscInt *__restrict__ iy, const PetscInt *__restrict__ jy, HybScalar alpha, const HybScalar *x, HybScalar *y)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(r, m, W)
  {
    if (r < m) {
      const PetscInt end = ix[r + 1], y1 = iy[r + 1];
      PetscInt       q = iy[r];
      for (PetscInt k = ix[r] + lane; k < end; k += W) {
        q = RowLowerBound(jy, q, y1, jx[k]);
        if (q < y1) y[q] = HybMulAdd(alpha, x[k], y[q]);
      }
    }
  }
}

template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void SubsetFind(PetscInt m, const PetscInt *__restrict__ ix, const PetscInt *__restrict__ jx, const PetscInt *__restrict__ iy, const PetscInt *__restrict__ jy, PetscInt *__restrict__ position, PetscCount *missing)
{
  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  const int lane = HybLane() & (W - 1);
  PetscInt  mis  = 0;
  ROW_LOOP(r, m, W)
  {
    if (r < m) {
      const PetscInt end = ix[r + 1], y1 = iy[r + 1];
      PetscInt       q = iy[r];
      for (PetscInt k = ix[r] + lane; k < end; k += W) {
        q              = RowLowerBound(jy, q, y1, jx[k]); /* columns ascend: from the last place on */
        const bool hit = q < y1 && jy[q] == jx[k];
        position[k]    = hit ? q : (PetscInt)-1;
        mis += !hit;
      }
    }
  }
  mis = HybBlockSum<CSR_THREADS>(mis, scratch);
  if (threadIdx.x == 0 && mis) HybAtomicAdd(missing, (PetscCount)mis);
}

PetscErrorCode HybCSRAXPYSubset_CUDA(const HybExec *exec, HybArena *work, const HybScalar *alpha, const HybCSR *X, HybCSR *Y, PetscCount *missing)
{
  const int   w = RowWidth(X->nnz, X->m, 1);
  PetscInt   *position;
  PetscCount *devmissing;

  PetscFunctionBegin;
  PetscCheck(X->m == Y->m && X->n == Y->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Cannot add a matrix of size %" PetscInt_FMT " x %" PetscInt_FMT " to one of %" PetscInt_FMT " x %" PetscInt_FMT, X->m, X->n, Y->m, Y->n);
  if (missing) *missing = 0;
  if (X->nnz == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybCheckEntries(exec, PetscMax(X->nnz, Y->nnz), "One of two matrices to add"));
  if (!missing) {
    HYB_LAUNCH_ROWS(exec, w, (SubsetFindAdd<WIDTH>), X->m, X->i, X->j, Y->i, Y->j, *alpha, X->a, Y->a);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), X->nnz, sizeof(*position), &position));
  PetscCall(HybArenaCalloc(work, HYB_WORK(exec), 1, sizeof(*devmissing), &devmissing));
  HYB_LAUNCH_ROWS(exec, w, (SubsetFind<WIDTH>), X->m, X->i, X->j, Y->i, Y->j, position, devmissing);
  PetscCall(CSRFetch(exec, missing, devmissing, sizeof(*missing)));
  if (!*missing) {
    HYB_FOR_EACH(exec, X->nnz, [position, alpha = *alpha, x = X->a, y = Y->a] __device__(PetscCount k) {
      const PetscInt q = position[k];

      y[q] = HybMulAdd(alpha, x[k], y[q]);
    });
  }
  PetscCall(HybArenaFree(work, &position, &devmissing));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscCount nbad;
  PetscInt   first;
} CheckResult;

/* trusts nothing: offsets are looked at before anything is read through them */
template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void CheckRows(PetscInt m, PetscInt n, PetscCount nnz, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, CheckResult *result)
{
  HYB_SHARED(PetscInt, scratch, HYB_WARP);
  const int lane = HybLane() & (W - 1);
  PetscInt  nbad = 0, least = PETSC_MAX_INT;
  ROW_LOOP(r, m, W)
  {
    int bad = 0;
    if (r < m) {
      const PetscInt start = i[r], end = i[r + 1];
      if (start < 0 || end < start || end > nnz || (r == 0 && start != 0) || (r == m - 1 && end != nnz))
        bad = 1;
      else {
        for (PetscInt k = start + lane; k < end; k += W) {
          const PetscInt c = j[k];
          if (c < 0 || c >= n || (k > start && j[k - 1] >= c)) bad = 1;
        }
      }
    }
    bad = HybSubwarpMax<W>(bad);
    if (bad && lane == 0) {
      nbad++;
      if ((PetscInt)r < least) least = (PetscInt)r;
    }
  }
  nbad  = HybBlockSum<CSR_THREADS>(nbad, scratch);
  least = HybBlockMin<CSR_THREADS>(least, scratch);
  if (threadIdx.x == 0 && nbad) {
    HybAtomicAdd(&result->nbad, (PetscCount)nbad);
    HybAtomicMin(&result->first, least);
  }
}

PetscErrorCode HybCSRCheck_CUDA(const HybExec *exec, HybArena *work, const HybCSR *A, PetscCount *nbad, PetscInt *badrow)
{
  CheckResult host = {0, PETSC_MAX_INT}, *device;

  PetscFunctionBegin;
  *nbad   = 0;
  *badrow = -1;
  if (A->m == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybCheckEntries(exec, A->nnz, "The matrix to check"));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), 1, sizeof(*device), &device));
  PetscCall(exec->backend->copy(exec, device, &host, sizeof(host), HYB_COPY_HOST_TO_DEVICE));
  HYB_LAUNCH_ROWS(exec, RowWidth(A->nnz, A->m, 1), (CheckRows<WIDTH>), A->m, A->n, A->nnz, A->i, A->j, device);
  PetscCall(CSRFetch(exec, &host, device, sizeof(host)));
  PetscCall(HybArenaFree(work, &device));
  *nbad = host.nbad;
  if (host.nbad) *badrow = host.first;
  PetscFunctionReturn(PETSC_SUCCESS);
}

struct RowLengthsJob {
  const PetscInt  *i;
  PetscInt *const *length;
  PetscCount       longest, nonempty;
};

static void RowLengths(void *arg, size_t from, size_t to)
{
  RowLengthsJob *job = (RowLengthsJob *)arg;
  PetscInt       longest, nonempty;
  PetscCount     seen = __atomic_load_n(&job->longest, __ATOMIC_RELAXED);

  HybCSRRowLengthsPart((PetscInt)from, (PetscInt)to, job->i, job->length, &longest, &nonempty);
  while (seen < longest && !__atomic_compare_exchange_n(&job->longest, &seen, (PetscCount)longest, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
  (void)__atomic_add_fetch(&job->nonempty, (PetscCount)nonempty, __ATOMIC_RELAXED);
}

PetscErrorCode HybCSRRowLengths_CUDA(const HybExec *, PetscInt m, const PetscInt *i, PetscInt *const length[2], PetscCount *longest, PetscCount *nonempty)
{
  RowLengthsJob job = {i, length, 0, 0};

  PetscFunctionBegin;
  HybDeviceCrew(RowLengths, &job, (size_t)m, CSR_CREW, (size_t)m * sizeof(PetscInt));
  *longest  = job.longest;
  *nonempty = job.nonempty;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRDiagonalPlaces_CUDA(const HybExec *exec, const HybCSR *A, PetscInt *place)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, A->m, [place, A = *A] __device__(PetscCount r) { place[r] = RowPlace(A.j, A.i[r], A.i[r + 1], (PetscInt)r); });
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a thread a row: rows that differ do so at once, mostly */
PetscErrorCode HybCSRSameRows_CUDA(const HybExec *exec, const HybCSR *A, unsigned char *same)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, A->m, [same, A = *A] __device__(PetscCount r) {
    const PetscInt begin = A.i[r], n = A.i[r + 1] - begin, before = r > 0 ? A.i[r - 1] : 0;
    PetscInt       k = 0;

    if (r > 0 && begin - before == n)
      while (k < n && A.j[before + k] == A.j[begin + k]) k++;
    else
      k = -1;
    same[r] = k == n;
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void SubMatrixFill(PetscInt nrows, PetscInt cstart, const PetscInt *__restrict__ first, const PetscInt *__restrict__ j, const PetscInt *__restrict__ is, PetscInt *__restrict__ js, PetscInt *__restrict__ perm)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(s, nrows, W)
  {
    if (s < nrows) {
      const PetscInt from = first[s], to = is[s], len = is[s + 1] - to;
      for (PetscInt k = lane; k < len; k += W) {
        js[to + k]   = j[from + k] - cstart;
        perm[to + k] = from + k;
      }
    }
  }
}

PetscErrorCode HybCSRSubMatrixSymbolic_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt nrows, const PetscInt *rows, PetscInt cstart, PetscInt cend, HybCSR *S, PetscInt **perm)
{
  PetscInt  *first, *count, *is, *js, *p, nz;
  PetscCount nnz = 0;

  PetscFunctionBegin;
  PetscCheck(cstart >= 0 && cstart <= cend && cend <= A->n, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Columns %" PetscInt_FMT " to %" PetscInt_FMT " are not within 0 to %" PetscInt_FMT, cstart, cend, A->n);
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nrows, sizeof(*first), &first));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nrows, sizeof(*count), &count));
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)nrows + 1, sizeof(*is), &is));
  HYB_FOR_EACH(exec, nrows, [=, A = *A] __device__(PetscCount s) {
    const PetscInt r = rows[s], end = A.i[r + 1], k = RowLowerBound(A.j, A.i[r], end, cstart);

    first[s] = k;
    count[s] = RowLowerBound(A.j, k, end, cend) - k;
  });
  /* a row may be asked for several times: more than nnz(A) */
  PetscCall(HybScanCounts(exec, work, nrows, count, is, NULL, &nnz));
  PetscCall(HybIntCast(nnz, "The submatrix", &nz));
  PetscCall(HybArenaAlloc(keep, exec->result, nz, sizeof(*js), &js));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nz, sizeof(*p), &p));
  HYB_LAUNCH_ROWS(exec, RowWidth(nnz, nrows, 1), (SubMatrixFill<WIDTH>), nrows, cstart, first, A->j, is, js, p);
  PetscCall(HybArenaFree(work, &first, &count));
  *S    = HybCSROf(nrows, cend - cstart, nnz, is, js, NULL);
  *perm = p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static __global__ void SubMatrixMapFill(PetscInt nrows, const PetscInt *__restrict__ rows, const PetscInt *__restrict__ colmap, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ is, PetscInt *__restrict__ js, PetscInt *__restrict__ perm, PetscInt *__restrict__ row)
{
  const PetscCount s = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;
  if (s < nrows) {
    const PetscInt r = rows ? rows[s] : (PetscInt)s, end = i[r + 1];
    PetscInt       to = is[s];
    for (PetscInt k = i[r]; k < end; k++) {
      const PetscInt c = colmap[j[k]];
      if (c < 0) continue;
      js[to]   = c;
      perm[to] = k;
      if (row) row[to] = (PetscInt)s;
      to++;
    }
  }
}

/* A thread has a row. Where columns change their order, the entries are sorted like coordinates (coo.cu): no two are
   the same, so the map is a permutation. */
PetscErrorCode HybCSRSubMatrixMapped_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt nrows, const PetscInt *rows, PetscInt ncols, const PetscInt *colmap, PetscBool ascending, HybCSR *S, PetscInt **perm)
{
  PetscInt   *count, *is, *js, *p, *row = NULL, nz;
  PetscCount *mapptr, *map, nnz = 0;

  PetscFunctionBegin;
  *perm = NULL;
  *S    = HybCSROf(nrows, ncols, 0, NULL, NULL, NULL);
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nrows, sizeof(*count), &count));
  PetscCall(HybArenaAlloc(ascending ? keep : work, ascending ? exec->result : HYB_WORK(exec), (PetscCount)nrows + 1, sizeof(*is), &is));
  HYB_FOR_EACH(exec, nrows, [=, A = *A] __device__(PetscCount s) {
    const PetscInt r = rows ? rows[s] : (PetscInt)s, end = A.i[r + 1];
    PetscInt       n = 0;

    for (PetscInt k = A.i[r]; k < end; k++) n += colmap[A.j[k]] >= 0;
    count[s] = n;
  });
  /* a row may be asked for several times: more than nnz(A) */
  PetscCall(HybScanCounts(exec, work, nrows, count, is, NULL, &nnz));
  PetscCall(HybIntCast(nnz, "The submatrix", &nz));
  PetscCall(HybArenaFree(work, &count));
  PetscCall(HybArenaAlloc(ascending ? keep : work, ascending ? exec->result : HYB_WORK(exec), nz, sizeof(*js), &js));
  PetscCall(HybArenaAlloc(ascending ? keep : work, HYB_WORK(exec), nz, sizeof(*p), &p));
  if (!ascending) PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nz, sizeof(*row), &row));
  HYB_LAUNCH(SubMatrixMapFill, HybBlocks(nrows, CSR_THREADS), CSR_THREADS, 0, exec->stream, nrows, rows, colmap, A->i, A->j, is, js, p, row);
  if (ascending) {
    S->nnz = nnz;
    S->i   = is;
    S->j   = js;
    *perm  = p;
  } else {
    PetscInt *sorted;

    PetscCall(HybCSRCOOSymbolic_CUDA(exec, keep, work, nnz, row, js, S, &mapptr, &map));
    PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nz, sizeof(*sorted), &sorted));
    HYB_FOR_EACH(exec, nnz, [sorted, p, map] __device__(PetscCount e) { sorted[e] = p[map[e]]; });
    PetscCall(HybArenaFree(keep, &mapptr, &map));
    PetscCall(HybArenaFree(work, &row, &p, &js, &is));
    *perm = sorted;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

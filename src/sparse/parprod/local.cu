/*
  local.cu: the part of a parallel matrix that one process has, on the device. Idea and contracts: local.c and
  hybparprod.h.

  A row of merged blocks is two pieces of the off-diagonal block's row with the diagonal block's between them, so a
  binary search in a short row says where each entry goes and no map is kept: patterns and values are copied by the same
  kernel. Lists (columns of others, columns in use, rows with entries) are made as always on a device: flags, their
  scan, and each one writes to its place.

  Work: O(entries), and one radix sort of as many columns as lie outside. Memory: the results, and a few integers for
  each entry of a list.
*/
#include "../csr/csrops.cuh"
#include "locallist.h"

/* VALUES: M's pattern is there, and its values are wanted */
template <int W, bool VALUES>
static __global__ __launch_bounds__(CSR_THREADS) void Merge(PetscInt m, PetscInt n, PetscInt nleft, const PetscInt *__restrict__ id, const PetscInt *__restrict__ jd, const HybScalar *__restrict__ ad, const PetscInt *__restrict__ io, const PetscInt *__restrict__ jo, const HybScalar *__restrict__ ao, PetscInt *__restrict__ im, PetscInt *__restrict__ jm, HybScalar *__restrict__ am)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(r, m, W)
  {
    if (r < m) {
      const PetscInt d0 = id[r], d1 = id[r + 1], o0 = io[r], o1 = io[r + 1];
      const PetscInt s = o0 == o1 ? o0 : RowLowerBound(jo, o0, o1, nleft), to = d0 + o0;
      if (!VALUES && lane == 0) {
        im[r] = to;
        if (r == m - 1) im[m] = d1 + o1;
      }
      for (PetscInt o = o0 + lane; o < o1; o += W) {
        const PetscInt k = o < s ? to + (o - o0) : to + (o - o0) + (d1 - d0);
        if (VALUES)
          am[k] = ao[o];
        else
          jm[k] = o < s ? jo[o] : jo[o] + n;
      }
      for (PetscInt d = d0 + lane; d < d1; d += W) {
        const PetscInt k = to + (s - o0) + (d - d0);
        if (VALUES)
          am[k] = ad[d];
        else
          jm[k] = jd[d] + nleft;
      }
    }
  }
}

PetscErrorCode HybCSRMergeBlocks_CUDA(const HybExec *exec, HybArena *keep, const HybCSR *D, const HybCSR *O, PetscInt nleft, HybCSR *M)
{
  PetscInt *im, *jm, nnz;

  PetscFunctionBegin;
  PetscCheck(D->m == O->m, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "A diagonal block of %" PetscInt_FMT " rows and another one of %" PetscInt_FMT, D->m, O->m);
  PetscCall(HybIntCast(D->nnz + O->nnz, "nonzeros of the rows of a process", &nnz));
  PetscCall(HybCheckEntries(exec, D->nnz + O->nnz, "The rows of a process"));
  PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)D->m + 1, sizeof(*im), &im));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(*jm), &jm));
  if (D->m == 0) PetscCall(exec->backend->zero(exec, im, sizeof(*im)));
  HYB_LAUNCH_ROWS(exec, RowWidth(D->nnz + O->nnz, D->m, 1), (Merge<WIDTH, false>), D->m, D->n, nleft, D->i, D->j, nullptr, O->i, O->j, nullptr, im, jm, nullptr);
  *M = HybCSROf(D->m, D->n + O->n, nnz, im, jm, NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRMergeValues_CUDA(const HybExec *exec, const HybCSR *D, const HybCSR *O, PetscInt nleft, HybCSR *M)
{
  PetscFunctionBegin;
  HYB_LAUNCH_ROWS(exec, RowWidth(D->nnz + O->nnz, D->m, 1), (Merge<WIDTH, true>), D->m, D->n, nleft, D->i, D->j, D->a, O->i, O->j, O->a, nullptr, nullptr, M->a);
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void SplitFill(PetscInt m, PetscInt cstart, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ begin, const PetscInt *__restrict__ ii, PetscInt *__restrict__ ji, PetscInt *__restrict__ pi, const PetscInt *__restrict__ io, PetscInt *__restrict__ jo, PetscInt *__restrict__ po)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(r, m, W)
  {
    if (r < m) {
      const PetscInt first = i[r], last = i[r + 1], c = begin[r], d = c + (ii[r + 1] - ii[r]);
      for (PetscInt k = first + lane; k < last; k += W) {
        if (k >= c && k < d) {
          ji[ii[r] + (k - c)] = j[k] - cstart;
          pi[ii[r] + (k - c)] = k;
        } else {
          const PetscInt to = io[r] + (k - first) - (k < c ? 0 : d - c);
          jo[to]            = j[k];
          po[to]            = k;
        }
      }
    }
  }
}

PetscErrorCode HybCSRSplitColumns_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt cstart, PetscInt cend, HybCSR part[2], PetscInt *perm[2])
{
  PetscInt  *begin, *count[2];
  PetscCount nnz[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(HybCheckEntries(exec, A->nnz, "A matrix that is split by columns"));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), A->m, sizeof(*begin), &begin));
  for (int p = 0; p < 2; p++) {
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), A->m, sizeof(PetscInt), &count[p]));
    PetscCall(HybArenaAlloc(keep, exec->result, (PetscCount)A->m + 1, sizeof(PetscInt), &part[p].i));
  }
  HYB_FOR_EACH(exec, A->m, [cstart, cend, begin, in = count[0], out = count[1], A = *A] __device__(PetscCount r) {
    const PetscInt first = A.i[r], last = A.i[r + 1], c = RowLowerBound(A.j, first, last, cstart), d = RowLowerBound(A.j, c, last, cend);

    begin[r] = c;
    in[r]    = d - c;
    out[r]   = (last - first) - (d - c);
  });
  for (int p = 0; p < 2; p++) {
    PetscCall(HybScanCounts(exec, work, A->m, count[p], part[p].i, NULL, p ? NULL : &nnz[0]));
    if (p) nnz[1] = A->nnz - nnz[0];
    part[p] = HybCSROf(A->m, p ? A->n : cend - cstart, nnz[p], part[p].i, NULL, NULL);
    PetscCall(HybArenaAlloc(keep, exec->result, nnz[p], sizeof(PetscInt), &part[p].j));
    PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), nnz[p], sizeof(PetscInt), &perm[p]));
  }
  HYB_LAUNCH_ROWS(exec, RowWidth(A->nnz, A->m, 1), (SplitFill<WIDTH>), A->m, cstart, A->i, A->j, begin, part[0].i, part[0].j, perm[0], part[1].i, part[1].j, perm[1]);
  PetscCall(HybArenaFree(work, &begin));
  for (int p = 0; p < 2; p++) PetscCall(HybArenaFree(work, &count[p]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRStackRows_CUDA(const HybExec *exec, HybArena *keep, PetscInt n, const HybCSR *const piece[], const PetscInt begin[], const PetscInt end[], HybCSR *C, PetscCount first[], PetscCount place[])
{
  PetscInt   bound[4][2], *ci, *cj, nnz, row = 1;
  PetscCount m     = 0;
  PetscBool  waits = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCheck(n <= 4, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " matrices one below the other; 4 at most", n);
  for (PetscInt p = 0; p < n; p++) {
    const PetscInt at[2] = {begin[p], end[p]};

    for (int e = 0; e < 2; e++) {
      bound[p][e] = at[e] == 0 ? 0 : (PetscInt)piece[p]->nnz;
      if (at[e] == 0 || at[e] == piece[p]->m) continue;
      PetscCall(exec->backend->copy(exec, &bound[p][e], piece[p]->i + at[e], sizeof(PetscInt), HYB_COPY_DEVICE_TO_HOST));
      waits = PETSC_TRUE;
    }
  }
  if (waits) PetscCall(exec->backend->sync(exec));
  place[0] = 0;
  for (PetscInt p = 0; p < n; p++) {
    m += end[p] - begin[p];
    first[p]     = bound[p][0];
    place[p + 1] = place[p] + bound[p][1] - bound[p][0];
  }
  PetscCall(HybIntCast(m, "rows of matrices one below the other", &C->m));
  PetscCall(HybIntCast(place[n], "nonzeros of matrices one below the other", &nnz));
  PetscCall(HybArenaAlloc(keep, exec->result, m + 1, sizeof(PetscInt), &ci));
  PetscCall(HybArenaAlloc(keep, exec->result, nnz, sizeof(PetscInt), &cj));
  PetscCall(exec->backend->zero(exec, ci, sizeof(PetscInt)));
  for (PetscInt p = 0; p < n; p++) {
    const PetscInt k = end[p] - begin[p];

    HYB_FOR_EACH(exec, k, [from = piece[p]->i + begin[p] + 1, to = ci + row, add = (PetscInt)(place[p] - first[p])] __device__(PetscCount r) { to[r] = from[r] + add; });
    if (place[p + 1] > place[p]) PetscCall(exec->backend->copy(exec, cj + place[p], piece[p]->j + first[p], sizeof(PetscInt) * (size_t)(place[p + 1] - place[p]), HYB_COPY_DEVICE_TO_DEVICE));
    row += k;
  }
  *C = HybCSROf(C->m, n ? piece[0]->n : 0, place[n], ci, cj, NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* those that are flagged, one behind the other */
static PetscErrorCode Pack(const HybExec *exec, PetscCount n, const PetscInt *j, const PetscCount *place, PetscInt *packed)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) {
    if (place[k + 1] > place[k]) packed[place[k]] = j[k];
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* nothing is within an empty range, and nothing need be left out then */
PetscErrorCode HybCSROutsideColumns_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, PetscCount n, const PetscInt *j, PetscInt cstart, PetscInt cend, PetscInt *count, PetscInt **list)
{
  PetscCount     *place, nout = n, ndistinct = 0;
  PetscInt       *packed  = NULL, *sorted, *perm, *out;
  const PetscInt *outside = j;

  PetscFunctionBegin;
  *count = 0;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), n + 1, sizeof(*place), &place));
  if (cstart < cend) {
    HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) { place[k] = j[k] < cstart || j[k] >= cend; });
    PetscCall(HybScanCounts64(exec, work, n, place, place, NULL, &nout));
    PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nout, sizeof(*packed), &packed));
    PetscCall(Pack(exec, n, j, place, packed));
    outside = packed;
  }
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nout, sizeof(*sorted), &sorted));
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), nout, sizeof(*perm), &perm));
  PetscCall(HybSortPairsInt(exec, work, nout, outside, sorted, NULL, perm, 8 * (int)sizeof(PetscInt)));
  HYB_FOR_EACH(exec, nout, [=] __device__(PetscCount k) { place[k] = k == 0 || sorted[k] != sorted[k - 1]; });
  PetscCall(HybScanCounts64(exec, work, nout, place, place, NULL, &ndistinct));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), ndistinct, sizeof(*out), &out));
  PetscCall(Pack(exec, nout, sorted, place, out));
  PetscCall(HybArenaFree(work, &place, &packed, &sorted, &perm));
  PetscCall(HybIntCast(ndistinct, "columns of other processes", count));
  *list = out;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRNumberColumns_CUDA(const HybExec *exec, PetscCount n, PetscInt *j, PetscInt cstart, PetscInt cend, PetscInt nlist, PetscInt nleft, const PetscInt *list)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) {
    const PetscInt c = j[k];

    if (c < cstart)
      j[k] = RowLowerBound(list, 0, nleft, c);
    else if (c < cend)
      j[k] = c + (nleft - cstart);
    else
      j[k] = RowLowerBound(list, nleft, nlist, c) + (cend - cstart);
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRMapColumns_CUDA(const HybExec *exec, PetscCount n, const PetscInt *map, PetscInt *j)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) {
    if (j[k] >= 0) j[k] = map[j[k]];
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* list and map of those that are flagged; i, if given, has offsets, which follow them to ci */
static PetscErrorCode ListOf(const HybExec *exec, PetscInt n, const PetscInt *place, PetscInt *list, PetscInt *map, const PetscInt *i, PetscInt *ci)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount r) {
    const PetscInt p     = place[r];
    const bool     there = place[r + 1] > p;

    map[r] = there ? p : (PetscInt)-1;
    if (there) {
      list[p] = (PetscInt)r;
      if (i) ci[p] = i[r];
    }
    if (i && r == n - 1) ci[place[n]] = i[n];
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRUsedColumns_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt *count, PetscInt **list, PetscInt **map)
{
  PetscInt  *place;
  PetscCount n = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaCalloc(work, HYB_WORK(exec), (PetscCount)A->n + 1, sizeof(*place), &place));
  /* whoever writes writes the same */
  HYB_FOR_EACH(exec, A->nnz, [place, j = A->j] __device__(PetscCount k) {
    if (place[j[k]] == 0) (void)HybAtomicOr(&place[j[k]], 1);
  });
  PetscCall(HybScanCounts(exec, work, A->n, place, place, NULL, &n));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), n, sizeof(PetscInt), list));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), A->n, sizeof(PetscInt), map));
  PetscCall(ListOf(exec, A->n, place, *list, *map, NULL, NULL));
  PetscCall(HybArenaFree(work, &place));
  *count = (PetscInt)n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRCompressRows_CUDA(const HybExec *exec, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *C, PetscInt **rows, PetscInt **map)
{
  PetscInt  *place, *ci;
  PetscCount n = 0;

  PetscFunctionBegin;
  PetscCall(HybArenaAlloc(work, HYB_WORK(exec), (PetscCount)A->m + 1, sizeof(*place), &place));
  HYB_FOR_EACH(exec, A->m, [place, i = A->i] __device__(PetscCount r) { place[r] = i[r + 1] > i[r]; });
  PetscCall(HybScanCounts(exec, work, A->m, place, place, NULL, &n));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), n, sizeof(PetscInt), rows));
  PetscCall(HybArenaAlloc(keep, HYB_WORK(exec), A->m, sizeof(PetscInt), map));
  PetscCall(HybArenaAlloc(keep, exec->result, n + 1, sizeof(PetscInt), &ci));
  if (A->m == 0) PetscCall(exec->backend->zero(exec, ci, sizeof(PetscInt)));
  PetscCall(ListOf(exec, A->m, place, *rows, *map, A->i, ci));
  PetscCall(HybArenaFree(work, &place));
  *C   = *A;
  C->m = (PetscInt)n;
  C->i = ci;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRExpandRows_CUDA(const HybExec *exec, PetscInt m, PetscInt n, const PetscInt *rows, const PetscInt *ci, PetscInt *i)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, (PetscCount)m + 1, [=] __device__(PetscCount r) { i[r] = ci[RowLowerBound(rows, 0, n, (PetscInt)r)]; });
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lanes look at a row together, and stop where one has found what they look for; a row that meets sets its bit */
template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void MeetRows(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscInt *__restrict__ oi, const PetscInt *__restrict__ bi, int *mask)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(r, m, W)
  {
    int meets = 0;
    if (r < m) {
      const PetscInt end = i[r + 1];
      meets              = oi[r + 1] > oi[r];
      for (PetscInt k = i[r] + lane; bi && !meets && k < end; k += W) meets = bi[j[k] + 1] > bi[j[k]];
    }
    meets = HybSubwarpMax<W>(meets);
    if (meets && lane == 0) (void)HybAtomicOr(mask + r / 32, (int)(1u << (r % 32)));
  }
}

PetscErrorCode HybCSRMeetRows_CUDA(const HybExec *exec, const HybCSR *D, const PetscInt *oi, const PetscInt *bi, unsigned *mask)
{
  PetscFunctionBegin;
  PetscCall(HybCheckEntries(exec, D->nnz, "A block whose rows may meet others"));
  PetscCall(exec->backend->zero(exec, mask, sizeof(*mask) * (((size_t)D->m + 31) / 32)));
  HYB_LAUNCH_ROWS(exec, RowWidth(bi ? D->nnz : 0, D->m, 1), (MeetRows<WIDTH>), D->m, D->i, D->j, oi, bi, (int *)mask);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCSRSequence_CUDA(const HybExec *exec, PetscCount n, PetscInt first, PetscInt *v)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) { v[k] = first + (PetscInt)k; });
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <int W>
static __global__ __launch_bounds__(CSR_THREADS) void RowsOfEntries(PetscInt m, const PetscInt *__restrict__ i, const PetscInt *__restrict__ rows, PetscInt *__restrict__ row)
{
  const int lane = HybLane() & (W - 1);
  ROW_LOOP(r, m, W)
  {
    if (r < m) {
      const PetscInt end = i[r + 1], is = rows ? rows[r] : (PetscInt)r;
      for (PetscInt k = i[r] + lane; k < end; k += W) row[k] = is;
    }
  }
}

PetscErrorCode HybCSRRowsOfEntries_CUDA(const HybExec *exec, const HybCSR *A, const PetscInt *rows, PetscInt *row)
{
  PetscFunctionBegin;
  PetscCall(HybCheckEntries(exec, A->nnz, "A matrix whose entries are to be told by their rows"));
  HYB_LAUNCH_ROWS(exec, RowWidth(A->nnz, A->m, 1), (RowsOfEntries<WIDTH>), A->m, A->i, rows, row);
  PetscFunctionReturn(PETSC_SUCCESS);
}

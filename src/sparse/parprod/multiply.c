/*
  C = A B, all distributed by rows.

  What one process computes is its rows of C. For these it needs the rows of B that its rows of A name: its own, and
  those of other processes (one fetch, as hypre does). All else is two sequential products of matrices whose columns and
  rows are in their global order, those of others to the left, its own, those of others to the right:

      L = [O left | D | O right] of A                                  its rows of A as one matrix
      R = [F left ; D ; F right]                                       in the columns that it owns of B; F: others' rows
      X = the same rows in all other columns: [F left ; O ; F right]   mostly empty

      D of C = L R                                                     straight into the result
      O of C = L X                                                     the few rows of L and X that meet: Z Y, whose
                                                                       arrays j and a are O's own

  Each entry of C is a sum over one row of A in its order, so it has the bits that one process gets. And since columns
  keep their order, slabs of a stencil stay banded and blocks stay blocks: the sequential methods that live by that
  still take the product.

    symbolic: halo of A's columns of others; rows of B that others need, picked, sent; F's columns split; two products
    on patterns; X's columns numbered, which are C's columns of others
    numeric:  values of these rows go out; meanwhile L's and R's are put in their places; F's come in; two products
              where B has the values of the last numeric phase on all processes: L's, two products

  A numeric phase moves values alone: of the rows sent, eight bytes an entry. A process without columns of others merges
  and copies nothing: L is A's and R is B's. Nor does one for a run of rows that meet nobody else's, three quarters of a
  large A or more (inner.c): then A, B and C are those of the others here.

  Memory: what is kept for numeric phases is L, R (a copy of A and of B each), F, X, and the two products' plans.
*/
#include "parprodimpl.h"

PetscErrorCode HybParMultiplyStart(HybParMultiply *s, HybComm comm, const HybExec *result, PetscBool reuse, PetscInt blocksize)
{
  const PetscErrorCode ierr = HybParMultiplyDestroy(s);

  PetscFunctionBegin;
  s->comm        = comm;
  s->reuse       = reuse;
  s->blocksize   = blocksize;
  s->exec        = *result;
  s->exec.result = HYB_WORK(result);
  s->keep        = HybArenaOn(&s->exec);
  s->work        = HybArenaOn(&s->exec);
  s->inner.keep  = HybArenaOn(&s->exec);
  s->made        = PETSC_TRUE;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParMultiplySent(HybParMultiply *s, const HybParCSR *B, PetscInt **begin)
{
  const HybExec *x     = &s->exec;
  const PetscInt first = B->columns[s->comm->rank];
  PetscInt      *garray;

  PetscFunctionBegin;
  PetscCall(HybHaloThere(s->halo));
  PetscCall(HybArenaAlloc(&s->work, HYB_MEM_HOST, (PetscCount)s->halo->nsend + 1, sizeof(PetscInt), begin));
  PetscCall(HybArenaAlloc(&s->work, HYB_WORK(x), B->O.n, sizeof(PetscInt), &garray));
  PetscCall(x->backend->copy(x, garray, B->garray, sizeof(PetscInt) * (size_t)B->O.n, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(x->backend->local->pickrows(x, &s->keep, &s->work, &B->D, &B->O, HybCountBelow(B->O.n, B->garray, first), first, garray, s->halo->nsend, s->halo->there, *begin, &s->sent.row, &s->sent.from));
  s->sent.row.n = B->columns[s->comm->size];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* L and R, where they are no blocks of A's and B's */
static PetscErrorCode HybParMultiplyMerge(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B)
{
  const HybExec     *x     = &s->exec;
  const HybLocalOps *ops   = x->backend->local;
  const PetscInt     first = B->columns[s->comm->rank];
  HybCSR             part[2];

  PetscFunctionBegin;
  s->apart = (PetscBool)(A->O.n > 0);
  s->nleft = HybCountBelow(A->O.n, A->garray, A->columns[s->comm->rank]);
  PetscCall(ops->splitcolumns(x, &s->keep, &s->work, &s->F, first, first + B->D.n, part, s->perm));
  s->own    = part[0];
  s->others = part[1];
  if (s->apart) {
    const HybCSR  *piece[3] = {&s->own, &B->D, &s->own};
    const PetscInt begin[3] = {0, 0, s->nleft}, end[3] = {s->nleft, B->D.m, s->F.m};

    PetscCall(ops->mergeblocks(x, &s->keep, &A->D, &A->O, s->nleft, &s->L));
    PetscCall(HybArenaAlloc(&s->keep, x->result, s->L.nnz, sizeof(HybScalar), &s->L.a));
    PetscCall(ops->stackrows(x, &s->keep, 3, piece, begin, end, &s->R, s->first[0], s->place[0]));
    PetscCall(HybArenaAlloc(&s->keep, x->result, s->R.nnz, sizeof(HybScalar), &s->R.a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What of the result lies in this process's columns */
static PetscErrorCode HybParMultiplyOwn(HybParMultiply *s, const HybExec *result, const char *method, PetscInt width, const HybParCSR *A, const HybParCSR *B, HybArena *out, HybCSR *C)
{
  PetscFunctionBegin;
  PetscCall(HybParMultiplyMerge(s, A, B));
  PetscCall(HybParMultiplyProduct(s, HYB_PAR_OWN, result, PETSC_FALSE, method, width, s->apart ? &s->L : &A->D, s->apart ? &s->R : &B->D, out, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* X, and of it the rows that L has columns for and that have entries: Y. *colmap: their places. */
static PetscErrorCode HybParMultiplyRight(HybParMultiply *s, const HybCSR *L, const HybParCSR *B, PetscInt **colmap)
{
  const HybExec     *x        = &s->exec;
  const HybLocalOps *ops      = x->backend->local;
  const HybCSR      *piece[3] = {&s->others, &B->O, &s->others};
  const PetscInt     begin[3] = {0, 0, s->nleft}, end[3] = {s->nleft, B->O.m, s->F.m};
  PetscInt          *garray;

  PetscFunctionBegin;
  PetscCall(ops->stackrows(x, &s->keep, 3, piece, begin, end, &s->X, s->first[1], s->place[1]));
  PetscCall(HybArenaAlloc(&s->keep, x->result, s->X.nnz, sizeof(HybScalar), &s->X.a));
  PetscCall(HybArenaAlloc(&s->work, x->result, B->O.n, sizeof(PetscInt), &garray));
  PetscCall(x->backend->copy(x, garray, B->garray, sizeof(PetscInt) * (size_t)B->O.n, HYB_COPY_HOST_TO_DEVICE));
  PetscCall(ops->mapcolumns(x, B->O.nnz, garray, s->X.j + s->place[1][1]));
  s->X.n = B->columns[s->comm->size];
  /* a row of B that no row of A names adds no columns to the result */
  PetscCall(ops->pickmet(x, &s->keep, &s->work, L, &s->X, &s->Y, &s->xperm, colmap));
  if (s->xperm) PetscCall(HybArenaAlloc(&s->keep, x->result, s->Y.nnz, sizeof(HybScalar), &s->Y.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What of the result lies in the columns of others */
static PetscErrorCode HybParMultiplyOthers(HybParMultiply *s, const HybExec *result, const char *method, PetscInt width, const HybParCSR *A, const HybParCSR *B, HybArena *out, HybParCSR *C)
{
  const HybExec     *x      = &s->exec;
  const HybLocalOps *ops    = x->backend->local;
  const HybCSR      *L      = s->apart ? &s->L : &A->D;
  PetscInt          *colmap = NULL, *list, *rows, n;

  PetscFunctionBegin;
  C->O.m   = A->D.m;
  C->O.n   = 0;
  C->O.nnz = 0;
  s->some  = PETSC_FALSE;
  PetscCall(HybArenaAlloc(out, result->result, (PetscCount)A->D.m + 1, sizeof(PetscInt), &C->O.i));
  if (s->others.nnz + B->O.nnz > 0) {
    PetscCall(HybParMultiplyRight(s, L, B, &colmap));
    s->some = (PetscBool)(s->Y.nnz > 0);
  }
  if (!s->some) {
    PetscCall(x->backend->zero(x, C->O.i, sizeof(PetscInt) * ((size_t)A->D.m + 1)));
    PetscCall(HybArenaAlloc(out, result->result, 0, sizeof(PetscInt), &C->O.j));
    PetscCall(HybArenaAlloc(out, result->result, 0, sizeof(HybScalar), &C->O.a));
    PetscCall(PetscMalloc1(1, &s->garray));
    C->garray = s->garray;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(ops->outsidecolumns(x, &s->keep, &s->work, s->Y.nnz, s->Y.j, 0, 0, &n, &list));
  PetscCall(ops->numbercolumns(x, s->Y.nnz, s->Y.j, 0, 0, n, 0, list));
  s->Y.n = n;
  PetscCall(ops->pickmapped(x, &s->keep, &s->work, L, s->Y.m, colmap, &s->Z, &rows, &s->zperm));
  PetscCall(HybArenaAlloc(&s->keep, x->result, s->Z.nnz, sizeof(HybScalar), &s->Z.a));
  PetscCall(PetscMalloc1(n + 1, &s->garray));
  PetscCall(x->backend->copy(x, s->garray, list, sizeof(PetscInt) * (size_t)n, HYB_COPY_DEVICE_TO_HOST));
  PetscCall(HybParMultiplyProduct(s, HYB_PAR_OTHERS, result, PETSC_FALSE, method, width, &s->Z, &s->Y, out, &s->C));
  PetscCall(HybArenaMove(out, &s->keep, s->C.i));
  PetscCall(ops->expandrows(x, C->O.m, s->Z.m, rows, s->C.i, C->O.i));
  C->O.n    = n;
  C->O.nnz  = s->C.nnz;
  C->O.j    = s->C.j;
  C->O.a    = s->C.a;
  C->garray = s->garray;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* both blocks of the result */
static PetscErrorCode HybParMultiplyBlocks(HybParMultiply *s, const HybExec *result, const char *method, PetscInt width, const HybParCSR *A, const HybParCSR *B, HybArena out[2], HybParCSR *C)
{
  HybParCSR *border = &s->inner.result;

  PetscFunctionBegin;
  PetscCall(HybParInnerLook(s, A, B));
  if (!s->inner.made) {
    PetscCall(HybParMultiplyOwn(s, result, method, width, A, B, &out[0], &C->D));
    PetscCall(HybParMultiplyOthers(s, result, method, width, A, B, &out[1], C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HybParInnerOperands(s, A, B));
  PetscCall(HybParMultiplyMerge(s, &s->inner.left, &s->inner.right));
  PetscCall(HybParInnerBands(s, method, width));
  PetscCall(HybParMultiplyOthers(s, result, method, width, &s->inner.left, &s->inner.right, &out[1], border));
  PetscCall(HybParInnerSymbolic(s, result, method, width, A, B, out, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParMultiplySymbolic(HybParMultiply *s, const HybExec *result, const char *method, PetscInt width, const HybParCSR *A, const HybParCSR *B, HybArena out[2], HybParCSR *C)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = HybArenaFree(&s->keep, &s->sent.row.j, &s->sent.row.i); /* values alone are sent from now on */
  if (!ierr) ierr = HybArenaAlloc(&s->keep, s->exec.result, s->sent.row.nnz, sizeof(HybScalar), &s->sent.row.a);
  if (!ierr) ierr = HybArenaAlloc(&s->keep, s->exec.result, s->F.nnz, sizeof(HybScalar), &s->F.a);
  C->rows    = A->rows;
  C->columns = B->columns;
  if (!ierr) ierr = HybParMultiplyBlocks(s, result, method, width, A, B, out, C);
  PetscCall(HybErrorFirst(ierr, HybArenaReset(&s->work)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParMultiplyAdopt(HybParMultiply *s, const HybParCSR *A, HybParCSR *B, HybArena from[2])
{
  PetscFunctionBegin;
  if (s->inner.made || HybParCollectTakes(s, A, B)) PetscFunctionReturn(PETSC_SUCCESS);
  if (s->apart) {
    PetscCall(HybArenaFree(&from[0], &B->D.a));
    B->D.a = s->R.a + s->place[0][1];
  }
  if (s->some) {
    PetscCall(HybArenaFree(&from[1], &B->O.a));
    B->O.a = s->X.a + s->place[1][1];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what is to be sent, and, where that is one launch, L and Z too; stays: nothing is sent, R and Y are as they were */
static PetscErrorCode HybParMultiplyPick(HybParMultiply *s, PetscBool sameA, PetscBool stays, const HybParCSR *A, const HybParCSR *B)
{
  PetscFunctionBegin;
  if (!s->inner.made) PetscCall(HybParCollectMake(s, A, B));
  if (s->collect.made)
    PetscCall(HybParCollectOwn(s, sameA, stays, A, B));
  else if (!stays)
    PetscCall(HybParMultiplySendValues(s, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the same, and it goes out; before: an error that others are to get too instead of waiting */
static PetscErrorCode HybParMultiplyBegin(HybParMultiply *s, PetscErrorCode before, PetscBool sameA, PetscBool stays, const HybParCSR *A, const HybParCSR *B)
{
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  if (!ierr) ierr = HybParMultiplyPick(s, sameA, stays, A, B);
  if (stays) { /* nobody waits for this process */
    PetscCall(ierr);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  s->Rcurrent = PETSC_FALSE;
  if (ierr) HybRowsAbandon(s->rows, &s->exec);
  PetscCall(ierr);
  PetscCall(HybRowsValuesBegin(s->rows, &s->exec, s->sent.row.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* others' rows: F, or where collect.c is to find them */
static PetscErrorCode HybParMultiplyReceive(HybParMultiply *s, PetscBool sameA, const HybParCSR *A, const HybParCSR *B)
{
  const HybScalar *came = s->F.a;
  PetscErrorCode   ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!s->collect.made) ierr = HybParMultiplyPlaceOwn(s, sameA, PETSC_FALSE, A, B);
  if (s->collect.made)
    PetscCall(HybRowsValuesEndThere(s->rows, &s->exec, ierr, s->F.a, &came));
  else
    PetscCall(HybRowsValuesEnd(s->rows, &s->exec, ierr, s->F.a));
  if (s->collect.made)
    PetscCall(HybParCollectCame(s, A, B, came));
  else
    PetscCall(HybParMultiplyPlaceCame(s));
  s->Rcurrent = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* no product took memory in the last phase, and so none does in this one */
static PetscBool HybParMultiplyMayFork(const HybParMultiply *s)
{
  if (!s->exec.backend->device || s->numerics < 2) return PETSC_FALSE;
  for (int q = 0; q < HYB_PAR_PRODUCTS; q++)
    if (s->product[q] && !HybProductWasFrugal(s->product[q])) return PETSC_FALSE;
  return PETSC_TRUE;
}

static PetscErrorCode HybParMultiplyComputeOwn(HybParMultiply *s, const HybParCSR *A, const HybParCSR *B, HybParCSR *C)
{
  PetscFunctionBegin;
  if (s->inner.made)
    PetscCall(HybParInnerBandsNumeric(s, C));
  else
    PetscCall(HybProductNumeric(s->product[HYB_PAR_OWN], s->apart ? &s->L : &A->D, s->apart ? &s->R : &B->D, NULL, &C->D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Others' columns: few rows, which leave most of a device idle. So they are computed beside the other product, once
   both took no memory, which would be taken and given back in the order of one stream. Should it be otherwise this
   time, the other product waits: what was given back is still in use. */
static PetscErrorCode HybParMultiplyCompute(HybParMultiply *s, PetscBool maybeside, const HybParCSR *A, const HybParCSR *B, HybParCSR *C)
{
  const HybExec  *x      = &s->exec;
  const PetscBool beside = (PetscBool)(maybeside && s->some && HybParMultiplyMayFork(s));
  HybExec         side;
  PetscBool       joined;
  PetscErrorCode  ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  s->C.j = C->O.j;
  s->C.a = C->O.a;
  if (!beside) {
    PetscCall(HybParMultiplyComputeOwn(s, A, B, C));
    if (s->some) PetscCall(HybProductNumeric(s->product[HYB_PAR_OTHERS], &s->Z, &s->Y, NULL, &s->C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(x->backend->comm->fork(x, &side));
  HybProductSetStream(s->product[HYB_PAR_OTHERS], side.stream);
  ierr = HybProductNumeric(s->product[HYB_PAR_OTHERS], &s->Z, &s->Y, NULL, &s->C);
  HybProductSetStream(s->product[HYB_PAR_OTHERS], x->stream);
  joined = (PetscBool)(!ierr && !HybProductWasFrugal(s->product[HYB_PAR_OTHERS]));
  if (joined) ierr = x->backend->comm->join(x);
  if (!ierr) ierr = HybParMultiplyComputeOwn(s, A, B, C);
  PetscCall(HybErrorFirst(ierr, joined ? PETSC_SUCCESS : x->backend->comm->join(x)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the border's rows of the result, and the end of an exchange, if there is one, whatever has happened; stays: there is
   none */
static PetscErrorCode HybParMultiplyBorder(HybParMultiply *s, PetscErrorCode before, PetscBool maybeside, PetscBool sameA, PetscBool stays, const HybParCSR *A, const HybParCSR *B, HybParCSR *C)
{
  const HybParCSR *left = &s->inner.left, *right = &s->inner.right;
  PetscErrorCode   ierr = before;

  PetscFunctionBegin;
  if (!ierr) ierr = HybParInnerPick(s, sameA, stays, A, B);
  if (!ierr) ierr = HybParMultiplyPlaceOwn(s, sameA, stays, left, right);
  if (!stays) {
    PetscCall(HybRowsValuesEnd(s->rows, &s->exec, ierr, s->F.a));
    PetscCall(HybParMultiplyPlaceCame(s));
    s->Rcurrent = PETSC_TRUE;
  }
  PetscCall(ierr);
  PetscCall(HybParMultiplyCompute(s, maybeside, left, right, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void HybParMultiplySetStream(HybParMultiply *s, void *stream)
{
  s->exec.stream = stream;
  for (int q = 0; q < HYB_PAR_PRODUCTS; q++)
    if (s->product[q] && q != HYB_PAR_INNER) HybProductSetStream(s->product[q], stream);
}

/* what others need goes out, inner rows are multiplied unless they are already, and the border */
static PetscErrorCode HybParMultiplyApartHere(HybParMultiply *s, PetscErrorCode before, PetscBool inner, PetscBool maybeside, PetscBool sameA, PetscBool stays, const HybParCSR *A, const HybParCSR *B, HybParCSR *C)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HybParMultiplyBegin(s, before, sameA, stays, A, B));
  ierr = inner ? HybParInnerNumeric(s, A, B, C) : PETSC_SUCCESS;
  PetscCall(HybParMultiplyBorder(s, ierr, maybeside, sameA, stays, A, B, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Inner rows on the operation's stream, by the same rule as others' columns, and all else beside them. Where the inner
   rows' product gives memory back this time, that waits for it. */
static PetscErrorCode HybParMultiplyApart(HybParMultiply *s, PetscErrorCode before, PetscBool sameA, PetscBool stays, const HybParCSR *A, const HybParCSR *B, HybParCSR *C)
{
  const HybExec   own    = s->exec;
  const PetscBool fork   = (PetscBool)(!before && HybParMultiplyMayFork(s) && (stays || HybRowsSettled(s->rows)));
  PetscBool       beside = PETSC_FALSE;
  HybExec         side;
  PetscErrorCode  ierr = before;

  PetscFunctionBegin;
  if (fork) {
    ierr   = own.backend->comm->fork(&own, &side);
    beside = (PetscBool)!ierr;
    if (!ierr) ierr = HybParInnerNumeric(s, A, B, C);
  }
  if (beside && (ierr || !HybProductWasFrugal(s->product[HYB_PAR_INNER]))) {
    ierr   = HybErrorFirst(ierr, own.backend->comm->join(&own));
    beside = PETSC_FALSE;
  }
  if (beside) HybParMultiplySetStream(s, side.stream);
  ierr = HybParMultiplyApartHere(s, ierr, (PetscBool)!fork, (PetscBool)!beside, sameA, stays, A, B, C);
  if (beside) {
    HybParMultiplySetStream(s, own.stream);
    ierr = HybErrorFirst(ierr, own.backend->comm->join(&own));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParMultiplyNumeric(HybParMultiply *s, PetscErrorCode before, PetscBool sameA, PetscBool allB, const HybParCSR *A, const HybParCSR *B, HybParCSR *C)
{
  const PetscBool stays = (PetscBool)(allB && s->Rcurrent); /* on all processes or on none */
  PetscErrorCode  ierr  = before;

  PetscFunctionBegin;
  if (!ierr && stays) ierr = HybRowsCheck(s->rows);
  if (s->inner.made)
    PetscCall(HybParMultiplyApart(s, ierr, sameA, stays, A, B, C));
  else {
    PetscCall(HybParMultiplyBegin(s, ierr, sameA, stays, A, B));
    if (!stays)
      PetscCall(HybParMultiplyReceive(s, sameA, A, B));
    else if (!s->collect.made)
      PetscCall(HybParMultiplyPlaceOwn(s, sameA, PETSC_TRUE, A, B));
    PetscCall(HybParMultiplyCompute(s, PETSC_TRUE, A, B, C));
  }
  if (s->numerics < 2) s->numerics++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParMultiplyDestroy(HybParMultiply *s)
{
  PetscErrorCode ierr[HYB_PAR_PRODUCTS + 5];
  int            n = 0;

  PetscFunctionBegin;
  if (!s->made) PetscFunctionReturn(PETSC_SUCCESS);
  while (n < HYB_PAR_PRODUCTS) {
    ierr[n] = HybProductDestroy(&s->product[n]);
    n++;
  }
  ierr[n++] = HybRowsDestroy(&s->rows);
  ierr[n++] = HybHaloDestroy(&s->halo);
  PetscCall(PetscFree(s->garray));
  ierr[n++] = HybArenaReset(&s->work);
  ierr[n++] = HybArenaReset(&s->inner.keep);
  ierr[n++] = HybArenaReset(&s->keep);
  PetscCall(PetscMemzero(s, sizeof(*s)));
  for (int k = 0; k < n; k++) PetscCall(ierr[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

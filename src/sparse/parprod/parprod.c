/*
  Products of distributed matrices as stages.

  As in one process, each of PETSc's sparse products is a short list of transposes and multiplications:

    AB    C = A B
    AtB   T = A^T,  C = T B
    ABt   T = B^T,  C = A T
    PtAP  W = A P,  T = P^T,    C = T W
    RARt  T = R^T,  W = A T,    C = R W
    ABC   W = A B,  C = W C'

  Here both are distributed (multiply.c, transpose.c). hypre and PETSc form P^T W where W's rows are, and send what
  falls into others' rows to be added there. Here P^T's few entries of others are sent instead, and then the rows of W
  that meet them: one mechanism for all six, nothing is added up from several processes, and every entry is the sum that
  one process would form, bit for bit. What is sent is W's rows at the border, somewhat more than the other way's rows
  of C.

  An error of one process: in the symbolic phase each stage gets it handed over and comes to the agreements with which
  its halo and its exchange are made, before anybody waits for what it would send. In the numeric phase it sends nothing
  in each exchange that is left, so that its neighbours get an error too. At the end of either all agree, once, which
  the caller does together with what it does itself.
*/
#include "parprodimpl.h"
#include <string.h>

struct _HybParProduct {
  HybExec         exec;
  HybComm         comm;
  HybProductType  type;
  char            method[32];
  PetscInt        width, blocksize;
  HybParTranspose transpose;
  HybParMultiply  stage[2];
  int             nstages;
  HybParCSR       W;
  HybArena        warena[2];
  PetscBool       same[3], all[3];
};

static const char *const HybParProductTypes[] = {"AB", "AtB", "ABt", "PtAP", "RARt", "ABC"};

PetscErrorCode HybParProductCreate(MPI_Comm comm, PetscErrorCode before, HybProductType type, PetscInt n, PetscInt64 *v, HybParProduct *product)
{
  HybParProduct  p     = NULL;
  HybComm        inner = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *product = NULL;
  ierr     = HybCommGet(comm, &inner); /* first: it counts PETSc's tags, of which all must have taken as many */
  if (!ierr) ierr = before;
  if (!ierr) ierr = PetscCalloc1(1, &p);
  ierr = HybAgreeMax(comm, ierr, "A parallel product", n, v);
  if (ierr) {
    if (inner) (void)HybCommRestore(&inner);
    (void)PetscFree(p);
  }
  PetscCall(ierr);
  *product = p;
  p->comm  = inner;
  p->type  = type;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParProductSetExec(HybParProduct p, const HybExec *x, const char *method, PetscInt width)
{
  PetscFunctionBegin;
  p->exec  = *x;
  p->width = width;
  PetscCall(PetscStrncpy(p->method, method && method[0] ? method : "auto", sizeof(p->method)));
  for (int k = 0; k < 2; k++) p->warena[k] = HybArenaOn(x);
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybParProductSetBlockSize(HybParProduct p, PetscInt bs)
{
  p->blocksize = bs;
}

/* Frees what an earlier symbolic phase left: all of it, and then reports the first error. Other processes do so too,
   and meet in it. */
static PetscErrorCode HybParProductReset(HybParProduct p)
{
  PetscErrorCode ierr = HybParTransposeDestroy(&p->transpose);

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    ierr = HybErrorFirst(ierr, HybParMultiplyDestroy(&p->stage[k]));
    ierr = HybErrorFirst(ierr, HybArenaReset(&p->warena[k]));
  }
  p->nstages = 0;
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParProductDestroy(HybParProduct *product)
{
  PetscErrorCode ierr, later = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!*product) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = HybParProductReset(*product);
  if ((*product)->comm) later = HybCommRestore(&(*product)->comm);
  PetscCall(PetscFree(*product));
  PetscCall(HybErrorFirst(ierr, later));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: what moves before C = A B, by s, and before the transpose of M; either may be NULL. The two together meet
   as often as one. */
static PetscErrorCode HybParProductMove(HybParProduct p, PetscErrorCode before, const HybExec *x, HybParMultiply *s, const HybParCSR *A, const HybParCSR *B, HybParTranspose *t, const HybParCSR *M)
{
  const PetscBool reuse = (PetscBool)(p->type == HYB_PRODUCT_PTAP || p->type == HYB_PRODUCT_RART);
  const int       n = (s != NULL) + (t != NULL), last = n - 1;
  HybHaloWish     wish[2];
  HybRowsWish     rows[2];
  HybHalo         halo[2];
  PetscInt       *begin[2] = {NULL, NULL};
  PetscErrorCode  ierr     = before;

  PetscFunctionBegin;
  if (s) {
    ierr    = HybErrorFirst(ierr, HybParMultiplyStart(s, p->comm, x, reuse, p->blocksize));
    wish[0] = (HybHaloWish){B->rows, A->O.n, A->garray};
  }
  if (t) {
    ierr       = HybErrorFirst(ierr, HybParTransposeStart(t, p->comm, x));
    wish[last] = (HybHaloWish){M->columns, M->O.n, M->garray};
  }
  PetscCall(HybHalosCreateRows(p->comm, s ? &s->exec : &t->exec, ierr, n, wish, halo));
  for (int k = 0; k < n; k++) halo[k]->lasting = PETSC_TRUE;
  if (s) {
    s->halo = halo[0];
    ierr    = HybParMultiplySent(s, B, &begin[0]);
    rows[0] = (HybRowsWish){s->halo, PETSC_FALSE, &s->keep, &s->sent.row, begin[0], NULL, B->columns[p->comm->size], PETSC_TRUE, &s->F, &s->rows};
  }
  if (t) {
    t->halo = halo[last];
    if (!ierr) ierr = HybParTransposeSent(t, M, &begin[last]);
    rows[last] = (HybRowsWish){t->halo, PETSC_TRUE, &t->keep, &t->S, begin[last], NULL, M->rows[p->comm->size], PETSC_TRUE, &t->R, &t->rows};
  }
  PetscCall(HybRowsMove(p->comm, s ? &s->exec : &t->exec, ierr, n, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the rest of each, which no other process waits for */
static PetscErrorCode HybParProductMultiply(HybParProduct p, int k, PetscErrorCode before, const HybExec *x, const HybParCSR *A, const HybParCSR *B, HybArena out[2], HybParCSR *C)
{
  PetscFunctionBegin;
  PetscCall(before);
  PetscCall(HybParMultiplySymbolic(&p->stage[k], x, p->method, p->width, A, B, out, C));
  p->nstages = k + 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParProductStage(HybParProduct p, int k, PetscErrorCode before, const HybExec *x, const HybParCSR *A, const HybParCSR *B, HybArena out[2], HybParCSR *C)
{
  const PetscErrorCode ierr = HybParProductMove(p, before, x, &p->stage[k], A, B, NULL, NULL);

  PetscFunctionBegin;
  PetscCall(HybParProductMultiply(p, k, ierr, x, A, B, out, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybParProductTranspose(HybParProduct p, PetscErrorCode before, const HybExec *x, const HybParCSR *M)
{
  const PetscErrorCode ierr = HybParProductMove(p, before, x, NULL, NULL, NULL, &p->transpose, M);

  PetscFunctionBegin;
  PetscCall(ierr);
  PetscCall(HybParTransposeSymbolic(&p->transpose, M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParProductSymbolic(HybParProduct p, PetscErrorCode before, const HybParCSR *A, const HybParCSR *B, const HybParCSR *C, HybArena out[2], HybParCSR *result)
{
  const HybExec   *x    = &p->exec;
  HybExec          temp = p->exec;
  const HybParCSR *T    = &p->transpose.T;
  PetscErrorCode   ierr = before;

  PetscFunctionBegin;
  ierr        = HybErrorFirst(ierr, HybParProductReset(p));
  temp.result = HYB_WORK(x);
  switch (p->type) {
  case HYB_PRODUCT_AB:
    ierr = HybParProductStage(p, 0, ierr, x, A, B, out, result);
    break;
  case HYB_PRODUCT_ATB:
    ierr = HybParProductTranspose(p, ierr, &temp, A);
    ierr = HybParProductStage(p, 0, ierr, x, T, B, out, result);
    break;
  case HYB_PRODUCT_ABT:
    ierr = HybParProductTranspose(p, ierr, &temp, B);
    ierr = HybParProductStage(p, 0, ierr, x, A, T, out, result);
    break;
  case HYB_PRODUCT_PTAP:
    ierr = HybParProductMove(p, ierr, &temp, &p->stage[0], A, B, &p->transpose, B);
    ierr = HybParProductMultiply(p, 0, ierr, &temp, A, B, p->warena, &p->W);
    if (!ierr) ierr = HybParTransposeSymbolic(&p->transpose, B);
    ierr = HybParProductStage(p, 1, ierr, x, T, &p->W, out, result);
    if (!ierr) ierr = HybParMultiplyAdopt(&p->stage[1], T, &p->W, p->warena);
    break;
  case HYB_PRODUCT_RART:
    ierr = HybParProductTranspose(p, ierr, &temp, B);
    ierr = HybParProductStage(p, 0, ierr, &temp, A, T, p->warena, &p->W);
    ierr = HybParProductStage(p, 1, ierr, x, B, &p->W, out, result);
    if (!ierr) ierr = HybParMultiplyAdopt(&p->stage[1], B, &p->W, p->warena);
    break;
  case HYB_PRODUCT_ABC:
    ierr = HybParProductStage(p, 0, ierr, &temp, A, B, p->warena, &p->W);
    ierr = HybParProductStage(p, 1, ierr, x, &p->W, C, out, result);
    break;
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParProductUnchanged(HybParProduct p, const PetscBool same[3], const PetscBool all[3])
{
  PetscFunctionBegin;
  PetscCall(PetscArraycpy(p->same, same, 3));
  PetscCall(PetscArraycpy(p->all, all, 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybParProductNumeric(HybParProduct p, PetscErrorCode before, const HybParCSR *A, const HybParCSR *B, const HybParCSR *C, HybParCSR *result)
{
  const HybParCSR *T = &p->transpose.T;
  PetscBool        same[3], all[3]; /* here; everywhere, as of what comes of them on several processes */
  PetscErrorCode   ierr = before;

  PetscFunctionBegin;
  PetscCheck(p->nstages > 0, PETSC_COMM_SELF, PETSC_ERR_ORDER, "The numeric phase of the product %s was called before its symbolic phase", HybParProductTypes[p->type]);
  PetscCall(PetscArraycpy(same, p->same, 3));
  PetscCall(PetscArraycpy(all, p->all, 3));
  PetscCall(PetscArrayzero(p->same, 3));
  PetscCall(PetscArrayzero(p->all, 3));
  switch (p->type) {
  case HYB_PRODUCT_AB:
    ierr = HybParMultiplyNumeric(&p->stage[0], ierr, same[0], all[1], A, B, result);
    break;
  case HYB_PRODUCT_ATB:
    ierr = HybParTransposeNumeric(&p->transpose, ierr, same[0], all[0], A);
    ierr = HybParMultiplyNumeric(&p->stage[0], ierr, all[0], all[1], T, B, result);
    break;
  case HYB_PRODUCT_ABT:
    ierr = HybParTransposeNumeric(&p->transpose, ierr, same[1], all[1], B);
    ierr = HybParMultiplyNumeric(&p->stage[0], ierr, same[0], all[1], A, T, result);
    break;
  case HYB_PRODUCT_PTAP:
    ierr = HybParTransposeNumeric(&p->transpose, ierr, same[1], all[1], B);
    ierr = HybParMultiplyNumeric(&p->stage[0], ierr, same[0], all[1], A, B, &p->W);
    ierr = HybParMultiplyNumeric(&p->stage[1], ierr, all[1], PETSC_FALSE, T, &p->W, result);
    break;
  case HYB_PRODUCT_RART:
    ierr = HybParTransposeNumeric(&p->transpose, ierr, same[1], all[1], B);
    ierr = HybParMultiplyNumeric(&p->stage[0], ierr, same[0], all[1], A, T, &p->W);
    ierr = HybParMultiplyNumeric(&p->stage[1], ierr, same[1], PETSC_FALSE, B, &p->W, result);
    break;
  case HYB_PRODUCT_ABC:
    ierr = HybParMultiplyNumeric(&p->stage[0], ierr, same[0], all[1], A, B, &p->W);
    ierr = HybParMultiplyNumeric(&p->stage[1], ierr, PETSC_FALSE, all[2], &p->W, C, result);
    break;
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybParProductForget(HybParProduct p)
{
  HybRowsForget(p->transpose.rows);
  for (int k = 0; k < p->nstages; k++) HybRowsForget(p->stage[k].rows);
}

void HybParProductSetStream(HybParProduct p, void *stream)
{
  p->exec.stream           = stream;
  p->transpose.exec.stream = stream;
  for (int k = 0; k < p->nstages; k++) {
    p->stage[k].exec.stream = stream;
    for (int q = 0; q < HYB_PAR_PRODUCTS; q++)
      if (p->stage[k].product[q]) HybProductSetStream(p->stage[k].product[q], stream);
  }
}

void HybParProductGetInfo(HybParProduct p, PetscLogDouble *flops, size_t *bytes)
{
  *flops = 0;
  *bytes = p->transpose.keep.bytes + p->warena[0].bytes + p->warena[1].bytes;
  for (int k = 0; k < p->nstages; k++) {
    *bytes += p->stage[k].keep.bytes + p->stage[k].inner.keep.bytes;
    for (int q = 0; q < HYB_PAR_PRODUCTS; q++) {
      PetscLogDouble f;
      size_t         b, most;

      if (!p->stage[k].product[q]) continue;
      HybProductGetInfo(p->stage[k].product[q], &f, &b, &most);
      *flops += f;
      *bytes += b;
    }
  }
}

PetscErrorCode HybParProductDescribe(HybParProduct p, char text[], size_t length)
{
  static const char *const columns[HYB_PAR_PRODUCTS] = {"own columns", "others' columns", "inner rows", "last rows"};
  char                     one[512];
  size_t                   bytes;
  PetscLogDouble           flops;

  PetscFunctionBegin;
  text[0] = 0;
  for (int k = 0; k < p->nstages; k++) {
    for (int q = 0; q < HYB_PAR_PRODUCTS; q++) {
      if (!p->stage[k].product[q]) continue;
      PetscCall(PetscSNPrintf(one, sizeof(one), "%s%s %d, %s: ", k || q ? "; " : "", HybParProductTypes[p->type], k + 1, columns[q]));
      PetscCall(PetscStrlcat(text, one, length));
      PetscCall(HybProductDescribe(p->stage[k].product[q], one, sizeof(one)));
      PetscCall(PetscStrlcat(text, one, length));
    }
  }
  HybParProductGetInfo(p, &flops, &bytes);
  PetscCall(PetscSNPrintf(one, sizeof(one), "; bytes kept in all %zu", bytes));
  PetscCall(PetscStrlcat(text, one, length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const char *HybParProductGetMethod(HybParProduct p)
{
  const HybParMultiply *last = p->nstages ? &p->stage[p->nstages - 1] : NULL;

  return last ? HybProductGetMethod(last->product[last->inner.made ? HYB_PAR_INNER : HYB_PAR_OWN]) : "none";
}

PetscCount HybParProductGetCounter(HybParProduct p, const char *name)
{
  PetscCount value = 0;

  for (int k = 0; k < p->nstages; k++) {
    if (p->stage[k].inner.made && !strcmp(name, "inner rows")) value += p->stage[k].inner.A.m;
    if (p->stage[k].inner.made && !strcmp(name, "border bands")) value += p->stage[k].inner.nbands;
    for (int q = 0; q < HYB_PAR_PRODUCTS; q++)
      if (p->stage[k].product[q]) value += HybProductGetCounter(p->stage[k].product[q], name);
  }
  return value;
}

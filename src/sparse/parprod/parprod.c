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

/* A product's operands, and what is made of them on the way */
enum {
  PAR_A,
  PAR_B,
  PAR_C,
  PAR_T, /* the transpose of one of them */
  PAR_W, /* what the first of two multiplications makes */
  PAR_MATRICES
};

/* What the types of products do: which operand is transposed, -1: none, and what each multiplication's factors are */
static const struct {
  const char *name;
  int         transposed, nstages, factor[2][2];
} Steps[] = {
  [HYB_PRODUCT_AB]   = {"AB",   -1,    1, {{PAR_A, PAR_B}}                },
  [HYB_PRODUCT_ATB]  = {"AtB",  PAR_A, 1, {{PAR_T, PAR_B}}                },
  [HYB_PRODUCT_ABT]  = {"ABt",  PAR_B, 1, {{PAR_A, PAR_T}}                },
  [HYB_PRODUCT_PTAP] = {"PtAP", PAR_B, 2, {{PAR_A, PAR_B}, {PAR_T, PAR_W}}},
  [HYB_PRODUCT_RART] = {"RARt", PAR_B, 2, {{PAR_A, PAR_T}, {PAR_B, PAR_W}}},
  [HYB_PRODUCT_ABC]  = {"ABC",  -1,    2, {{PAR_A, PAR_B}, {PAR_W, PAR_C}}},
};

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

PetscErrorCode HybParProductSymbolic(HybParProduct p, PetscErrorCode before, const HybParCSR *A, const HybParCSR *B, const HybParCSR *C, HybArena out[2], HybParCSR *result)
{
  const HybParCSR *const M[PAR_MATRICES] = {A, B, C, &p->transpose.T, &p->W};
  const int              of = Steps[p->type].transposed, nstages = Steps[p->type].nstages;
  const int(*const factor)[2] = Steps[p->type].factor;
  /* a transpose that the first multiplication does not need moves beside it */
  const PetscBool beside = (PetscBool)(of >= 0 && factor[0][0] != PAR_T && factor[0][1] != PAR_T);
  HybExec         temp   = p->exec;
  PetscErrorCode  ierr   = before;

  PetscFunctionBegin;
  ierr        = HybErrorFirst(ierr, HybParProductReset(p));
  temp.result = HYB_WORK(&temp);
  if (of >= 0 && !beside) {
    ierr = HybParProductMove(p, ierr, &temp, NULL, NULL, NULL, &p->transpose, M[of]);
    if (!ierr) ierr = HybParTransposeSymbolic(&p->transpose, M[of]);
  }
  for (int k = 0; k < nstages; k++) {
    const HybParCSR *const left = M[factor[k][0]], *const right = M[factor[k][1]];
    const PetscBool      last = (PetscBool)(k + 1 == nstages), too = (PetscBool)(beside && !k);
    const HybExec *const x = last ? &p->exec : &temp;

    ierr = HybParProductMove(p, ierr, x, &p->stage[k], left, right, too ? &p->transpose : NULL, too ? M[of] : NULL);
    /* the rest, which no other process waits for */
    if (!ierr) ierr = HybParMultiplySymbolic(&p->stage[k], x, p->method, p->width, left, right, last ? out : p->warena, last ? result : &p->W);
    if (!ierr) p->nstages = k + 1;
    if (!ierr && too) ierr = HybParTransposeSymbolic(&p->transpose, M[of]);
  }
  if (!ierr && factor[1][1] == PAR_W) ierr = HybParMultiplyAdopt(&p->stage[1], M[factor[1][0]], &p->W, p->warena);
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
  const HybParCSR *const M[PAR_MATRICES] = {A, B, C, &p->transpose.T, &p->W};
  const int              of              = Steps[p->type].transposed;
  const int(*const factor)[2]            = Steps[p->type].factor;
  /* here; everywhere, as of what comes of them on several processes */
  PetscBool      same[PAR_MATRICES] = {PETSC_FALSE}, all[PAR_MATRICES] = {PETSC_FALSE};
  PetscErrorCode ierr = before;

  PetscFunctionBegin;
  PetscCheck(p->nstages > 0, PETSC_COMM_SELF, PETSC_ERR_ORDER, "The numeric phase of the product %s was called before its symbolic phase", Steps[p->type].name);
  PetscCall(PetscArraycpy(same, p->same, 3));
  PetscCall(PetscArraycpy(all, p->all, 3));
  PetscCall(PetscArrayzero(p->same, 3));
  PetscCall(PetscArrayzero(p->all, 3));
  if (of >= 0) {
    ierr        = HybParTransposeNumeric(&p->transpose, ierr, same[of], all[of], M[of]);
    same[PAR_T] = all[PAR_T] = all[of];
  }
  for (int k = 0; k < Steps[p->type].nstages; k++) {
    const int l = factor[k][0], r = factor[k][1];

    ierr = HybParMultiplyNumeric(&p->stage[k], ierr, same[l], all[r], M[l], M[r], k + 1 == Steps[p->type].nstages ? result : &p->W);
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
      PetscCall(PetscSNPrintf(one, sizeof(one), "%s%s %d, %s: ", k || q ? "; " : "", Steps[p->type].name, k + 1, columns[q]));
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

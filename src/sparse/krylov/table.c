/*
  table.c: operations of Krylov methods on the host. A block of w, small enough for the first-level cache, is met by all
  vectors before the next block is.
*/
#include <aijhybridgpu/private/hybkrylov.h>

#define HYB_KRYLOV_BLOCK 1024

/* what PETSc's noise is made of: the rounds of an integer hash on the lower 32 bits, centred and scaled to about -1 to
   1 */
static PetscErrorCode HybKrylovNoise_Host(const HybExec *exec, PetscCount first, PetscCount n, HybScalar *x)
{
  PetscFunctionBegin;
  for (PetscCount i = 0; i < n; i++) {
    uint32_t v = (uint32_t)(uint64_t)(first + i);

    v    = (v ^ (v >> 16)) * UINT32_C(0x45d9f3b);
    v    = (v ^ (v >> 16)) * UINT32_C(0x45d9f3b);
    v    = v ^ (v >> 16);
    x[i] = (HybScalar)((PetscReal)((double)((int64_t)v - INT64_C(2147483648)) * 5.e-10));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovReciprocal_Host(const HybExec *exec, HybArena *work, PetscCount n, const HybScalar *d, PetscReal ofzero, HybScalar *inv, PetscCount *zeros)
{
  PetscCount count = 0;

  PetscFunctionBegin;
  for (PetscCount i = 0; i < n; i++) {
    const HybScalar v = d[i];

    count += v == (HybScalar)0;
    if (inv) inv[i] = v == (HybScalar)0 ? (HybScalar)ofzero : (HybScalar)1 / v;
  }
  if (zeros) *zeros = count;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* four sums, so that an addition need not wait for the one before it */
HYB_MULTIVERSION static HybScalar Dot(PetscCount n, const HybScalar *v, const HybScalar *w)
{
  HybScalar  s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  PetscCount i = 0;

  for (; i + 4 <= n; i += 4) {
    s0 += PetscConj(v[i]) * w[i];
    s1 += PetscConj(v[i + 1]) * w[i + 1];
    s2 += PetscConj(v[i + 2]) * w[i + 2];
    s3 += PetscConj(v[i + 3]) * w[i + 3];
  }
  for (; i < n; i++) s0 += PetscConj(v[i]) * w[i];
  return (s0 + s1) + (s2 + s3);
}

HYB_MULTIVERSION static void AXPY(PetscCount n, HybScalar alpha, const HybScalar *v, HybScalar *w)
{
  for (PetscCount i = 0; i < n; i++) w[i] -= alpha * v[i];
}

HYB_MULTIVERSION static void Scale(PetscCount n, PetscReal s, const HybScalar *d, HybScalar *w)
{
  if (d)
    for (PetscCount i = 0; i < n; i++) w[i] = d[i] * w[i] * s;
  else
    for (PetscCount i = 0; i < n; i++) w[i] = w[i] * s;
}

/* the norm of vector k */
static void HybKrylovNorm(const HybKrylovBasis *B, PetscInt k, PetscReal squares)
{
  const PetscReal norm = PetscSqrtReal(squares);

  B->scale[k] = 1 / norm;
  if (k)
    B->h[k + (size_t)(k - 1) * (B->steps + 1)] = norm;
  else
    B->scale[B->steps + 1] = norm;
}

static PetscErrorCode HybKrylovStart_Host(const HybExec *exec, const HybKrylovBasis *B, const HybScalar *b)
{
  PetscReal squares = 0;

  PetscFunctionBegin;
  PetscCall(PetscArraycpy(B->u, b, (size_t)B->n));
  for (PetscCount i = 0; i < B->n; i += HYB_KRYLOV_BLOCK) {
    const PetscCount n = PetscMin(HYB_KRYLOV_BLOCK, B->n - i);

    Scale(n, 1, B->dinv ? B->dinv + i : NULL, B->u + i);
    squares += PetscRealPart(Dot(n, B->u + i, B->u + i));
  }
  HybKrylovNorm(B, 0, squares);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovStep_Host(const HybExec *exec, const HybKrylovBasis *B, PetscInt k)
{
  HybScalar *h = B->h + (size_t)k * (B->steps + 1), *w = B->u + (k + 1) * B->ld;
  PetscReal  squares = 0;

  PetscFunctionBegin;
  for (PetscCount i = 0; i < B->n; i += HYB_KRYLOV_BLOCK) {
    const PetscCount n = PetscMin(HYB_KRYLOV_BLOCK, B->n - i);

    Scale(n, B->scale[k], B->dinv ? B->dinv + i : NULL, w + i);
    for (PetscInt l = 0; l <= k; l++) h[l] += Dot(n, B->u + l * B->ld + i, w + i);
  }
  for (PetscInt l = 0; l <= k; l++) h[l] *= B->scale[l];
  for (PetscCount i = 0; i < B->n; i += HYB_KRYLOV_BLOCK) {
    const PetscCount n = PetscMin(HYB_KRYLOV_BLOCK, B->n - i);

    for (PetscInt l = 0; l <= k; l++) AXPY(n, h[l] * B->scale[l], B->u + l * B->ld + i, w + i);
    squares += PetscRealPart(Dot(n, w + i, w + i));
  }
  HybKrylovNorm(B, k + 1, squares);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* where the sum of squares of u_k is kept: with the products of the step that needs it */
static HybScalar *HybKrylovSquares(const HybKrylovBasis *B, PetscInt k)
{
  return B->h + (k < B->steps ? (size_t)k * (B->steps + 1) + k + 1 : (size_t)B->steps * (B->steps + 1));
}

/* s dinv w, n entries from i on */
static void Form(const HybKrylovBasis *B, PetscCount i, PetscCount n, PetscReal s, const HybScalar *w, HybScalar *formed)
{
  for (PetscCount k = 0; k < n; k++) formed[k] = w[i + k];
  Scale(n, s, B->dinv ? B->dinv + i : NULL, formed);
}

static PetscErrorCode HybKrylovProject_Host(const HybExec *exec, const HybKrylovBasis *B, PetscInt k, const HybScalar *w, HybScalar *g)
{
  HybScalar formed[HYB_KRYLOV_BLOCK];

  PetscFunctionBegin;
  for (PetscInt l = 0; l <= k; l++) g[l] = 0;
  for (PetscCount i = 0; i < B->n; i += HYB_KRYLOV_BLOCK) {
    const PetscCount n = PetscMin(HYB_KRYLOV_BLOCK, B->n - i);

    Form(B, i, n, 1, w, formed);
    for (PetscInt l = 0; l <= k; l++) g[l] += Dot(n, B->u + l * B->ld + i, formed);
  }
  g[k + 1] = *HybKrylovSquares(B, k);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybKrylovUpdate_Host(const HybExec *exec, const HybKrylovBasis *B, PetscInt k, PetscReal s, const HybScalar *c, const HybScalar *w)
{
  HybScalar  formed[HYB_KRYLOV_BLOCK];
  HybScalar *u       = B->u + (k + 1) * B->ld;
  PetscReal  squares = 0;

  PetscFunctionBegin;
  for (PetscCount i = 0; i < B->n; i += HYB_KRYLOV_BLOCK) {
    const PetscCount n = PetscMin(HYB_KRYLOV_BLOCK, B->n - i);

    Form(B, i, n, s, w, formed);
    for (PetscInt l = 0; l <= k; l++) AXPY(n, c[l], B->u + l * B->ld + i, formed);
    squares += PetscRealPart(Dot(n, formed, formed));
    if (k + 1 < B->steps) PetscCall(PetscArraycpy(u + i, formed, (size_t)n));
  }
  *HybKrylovSquares(B, k + 1) = squares;
  PetscFunctionReturn(PETSC_SUCCESS);
}

const HybKrylovOps HybKrylovHost = {
  .noise      = HybKrylovNoise_Host,
  .reciprocal = HybKrylovReciprocal_Host,
  .start      = HybKrylovStart_Host,
  .step       = HybKrylovStep_Host,
  .project    = HybKrylovProject_Host,
  .update     = HybKrylovUpdate_Host,
};

/*
  bench_problems.h: what bench_mat.c and bench_steps.c share: their matrices as MATAIJ: stencils, and linear elasticity
  with its rigid-body modes; of the sizes in their variables.
*/
#ifndef BENCH_PROBLEMS_H
#define BENCH_PROBLEMS_H

#include "bench_wait.h"

/* of a grid: 9 points are a square's */
static PetscInt Vertices(void)
{
  return points == 9 ? n * n : n * n * n;
}

/* the stencil as MATAIJ, arrays first: assembly is not what is measured */
static PetscErrorCode Stencil(Mat *A)
{
  const PetscInt N = Vertices(), depth = N / (n * n);
  PetscInt       m = PETSC_DECIDE, rows = N, first, *i, *j;
  PetscScalar   *a;
  PetscCount     nnz = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &m, &rows));
  PetscCallMPI(MPI_Scan(&m, &first, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  first -= m;
  PetscCall(PetscMalloc1(m + 1, &i));
  PetscCall(PetscMalloc1((size_t)m * points, &j));
  PetscCall(PetscMalloc1((size_t)m * points, &a));
  i[0] = 0;
  for (PetscInt r = first; r < first + m; r++) {
    PetscInt x = r % n, y = (r / n) % n, z = r / (n * n);

    for (PetscInt dz = -1; dz <= 1; dz++)
      for (PetscInt dy = -1; dy <= 1; dy++)
        for (PetscInt dx = -1; dx <= 1; dx++) {
          PetscInt taxi = PetscAbsInt(dx) + PetscAbsInt(dy) + PetscAbsInt(dz);

          if ((points == 7 && taxi > 1) || x + dx < 0 || x + dx >= n || y + dy < 0 || y + dy >= n || z + dz < 0 || z + dz >= depth) continue;
          j[nnz]   = r + dx + dy * n + dz * n * n;
          a[nnz++] = taxi ? -1.0 : (PetscScalar)(points - 1);
        }
    i[r - first + 1] = (PetscInt)nnz;
  }
  if (size == 1)
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, N, N, i, j, a, A));
  else {
    PetscCall(MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, m, m, N, N, i, j, a, A)); /* a copy */
    PetscCall(PetscFree(i));
    PetscCall(PetscFree(j));
    PetscCall(PetscFree(a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the stiffness of a trilinear element, a cube of side 1, by two points in each direction: corner a, unknown i, corner
   b, unknown j */
static void ElementStiffness(PetscReal K[8][3][8][3])
{
  const PetscReal g = 0.5 / PetscSqrtReal(3.0), mu = 1.0, lambda = 0.6;

  PetscCallVoid(PetscMemzero(K, 576 * sizeof(PetscReal)));
  for (int p = 0; p < 8; p++) {
    PetscReal d[8][3];

    for (int a = 0; a < 8; a++) {
      for (int i = 0; i < 3; i++) {
        d[a][i] = a >> i & 1 ? 1 : -1;
        for (int o = 0; o < 3; o++) {
          const PetscReal x = p >> o & 1 ? 0.5 + g : 0.5 - g;

          if (o != i) d[a][i] *= a >> o & 1 ? x : 1 - x;
        }
      }
    }
    for (int a = 0; a < 8; a++)
      for (int b = 0; b < 8; b++)
        for (int i = 0; i < 3; i++)
          for (int j = 0; j < 3; j++) K[a][i][b][j] += (lambda * d[a][i] * d[b][j] + mu * d[a][j] * d[b][i] + (i == j ? mu * (d[a][0] * d[b][0] + d[a][1] * d[b][1] + d[a][2] * d[b][2]) : 0)) / 8;
  }
}

/* the 3 x 27 x 3 coefficients of the vertex at v, as the elements round it give them; held at x = 0 */
static void VertexStiffness(PetscReal K[8][3][8][3], const PetscInt v[3], PetscReal c[3][27][3])
{
  PetscCallVoid(PetscMemzero(c, 243 * sizeof(PetscReal)));
  for (int a = 0; a < 8; a++) { /* the corner of an element that the vertex is */
    PetscBool inside = PETSC_TRUE;

    for (int o = 0; o < 3; o++) {
      const PetscInt e = v[o] - (a >> o & 1);

      if (e < 0 || e >= n - 1) inside = PETSC_FALSE;
    }
    for (int b = 0; inside && b < 8; b++) {
      int place = 13;

      for (int o = 0, stride = 1; o < 3; o++, stride *= 3) place += stride * ((b >> o & 1) - (a >> o & 1));
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) c[i][place][j] += K[a][i][b][j];
    }
  }
  if (!v[0])
    for (int i = 0; i < 3; i++) c[i][13][i] += 20;
}

/* as Stencil(), of elasticity: one process */
static PetscErrorCode Elasticity(Mat *A)
{
  const PetscInt N = 3 * n * n * n;
  PetscInt      *i, *j;
  PetscScalar   *a;
  PetscCount     nnz = 0;
  PetscReal      K[8][3][8][3], c[3][27][3];

  PetscFunctionBeginUser;
  PetscCheck(size == 1, PETSC_COMM_WORLD, PETSC_ERR_SUP, "-points 81 is for one process");
  PetscCall(PetscMalloc1(N + 1, &i));
  PetscCall(PetscMalloc1((size_t)N * points, &j));
  PetscCall(PetscMalloc1((size_t)N * points, &a));
  ElementStiffness(K);
  i[0] = 0;
  for (PetscInt r = 0; r < N; r += 3) {
    const PetscInt v[3] = {r / 3 % n, r / 3 / n % n, r / 3 / (n * n)};

    VertexStiffness(K, v, c);
    for (PetscInt u = 0; u < 3; u++) {
      for (PetscInt place = 0; place < 27; place++) {
        const PetscInt d[3]   = {place % 3 - 1, place / 3 % 3 - 1, place / 9 - 1};
        PetscBool      inside = PETSC_TRUE;

        for (int o = 0; o < 3; o++)
          if (v[o] + d[o] < 0 || v[o] + d[o] >= n) inside = PETSC_FALSE;
        for (PetscInt w = 0; inside && w < 3; w++) {
          j[nnz]   = r + 3 * (d[0] + d[1] * n + d[2] * n * n) + w;
          a[nnz++] = c[u][place][w];
        }
      }
      i[r + u + 1] = (PetscInt)nnz;
    }
  }
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, N, N, i, j, a, A));
  PetscCall(MatSetBlockSize(*A, 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AttachRigidBodyModes(Mat A)
{
  MatNullSpace near;
  Vec          x;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(VecGetArrayWrite(x, &a));
  for (PetscInt v = 0; v < n * n * n; v++) {
    a[3 * v]     = (PetscReal)(v % n);
    a[3 * v + 1] = (PetscReal)(v / n % n);
    a[3 * v + 2] = (PetscReal)(v / (n * n));
  }
  PetscCall(VecRestoreArrayWrite(x, &a));
  PetscCall(MatNullSpaceCreateRigidBody(x, &near));
  PetscCall(MatSetNearNullSpace(A, near));
  PetscCall(MatNullSpaceDestroy(&near));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

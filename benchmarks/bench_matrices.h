/*
  bench_matrices.h: the matrices of bench_spmv.c and bench_spgemm.c, on the host: stencils, linear elasticity on
  structured and on renumbered meshes, a lattice of four dimensions, aggregates and their modes, Matrix Market files.
*/
#ifndef BENCH_MATRICES_H
#define BENCH_MATRICES_H
#include <aijhybridgpu/private/hyb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static HybArena hostkeep;
static char     matrices[PETSC_MAX_PATH_LEN];

static inline PetscErrorCode HostCSR(PetscInt m, PetscInt n, PetscCount nnz, HybCSR *A)
{
  PetscFunctionBegin;
  memset(A, 0, sizeof(*A));
  A->m   = m;
  A->n   = n;
  A->nnz = nnz;
  PetscCall(HybArenaAlloc(&hostkeep, HYB_MEM_HOST, (PetscCount)m + 1, sizeof(PetscInt), &A->i));
  PetscCall(HybArenaAlloc(&hostkeep, HYB_MEM_HOST, nnz, sizeof(PetscInt), &A->j));
  PetscCall(HybArenaAlloc(&hostkeep, HYB_MEM_HOST, nnz, sizeof(HybScalar), &A->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* values that no sum rounds away: small multiples of 1/8 would hide an order; these do not */
static inline HybScalar Value(PetscCount k)
{
  return (HybScalar)(((double)((unsigned long long)(k + 1) * 2654435761ull % 1000003ull) + 1) / 1000003.0 - 0.25);
}

/* 5-, 9-, 7- or 27-point stencil on an nx x ny x nz grid */
static inline PetscErrorCode Stencil(int points, PetscInt nx, PetscInt ny, PetscInt nz, HybCSR *A)
{
  PetscCount nnz = 0;

  PetscFunctionBegin;
  for (int pass = 0; pass < 2; pass++) {
    if (pass) PetscCall(HostCSR(nx * ny * nz, nx * ny * nz, nnz, A));
    nnz = 0;
    for (PetscInt z = 0; z < nz; z++) {
      for (PetscInt y = 0; y < ny; y++) {
        for (PetscInt x = 0; x < nx; x++) {
          const PetscInt row = (z * ny + y) * nx + x;

          if (pass) A->i[row] = (PetscInt)nnz;
          for (int dz = nz > 1 ? -1 : 0; dz <= (nz > 1 ? 1 : 0); dz++) {
            for (int dy = -1; dy <= 1; dy++) {
              for (int dx = -1; dx <= 1; dx++) {
                if ((points == 5 || points == 7) && abs(dx) + abs(dy) + abs(dz) > 1) continue;
                if (x + dx < 0 || x + dx >= nx || y + dy < 0 || y + dy >= ny || z + dz < 0 || z + dz >= nz) continue;
                if (pass) {
                  A->j[nnz] = row + (dz * ny + dy) * nx + dx;
                  A->a[nnz] = Value(nnz);
                }
                nnz++;
              }
            }
          }
        }
      }
    }
  }
  A->i[A->m] = (PetscInt)nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline int CompareInt(const void *a, const void *b)
{
  const PetscInt x = *(const PetscInt *)a, y = *(const PetscInt *)b;

  return x < y ? -1 : x > y;
}

/* what finite element packages number an unstructured mesh by: from point 0, neighbours after neighbours, by their
   degree, those alike in random order (key); backwards at the end */
static inline void CuthillMcKee(const HybCSR *S, const PetscInt *key, PetscInt *order)
{
  unsigned char *seen = (unsigned char *)calloc((size_t)S->m, 1);
  PetscInt       n    = 1;

  if (!seen) abort();
  order[0] = 0;
  seen[0]  = 1;
  for (PetscInt q = 0; q < n; q++) {
    const PetscInt p = order[q], from = n;

    for (PetscInt k = S->i[p]; k < S->i[p + 1]; k++) {
      const PetscInt c = S->j[k], degree = S->i[c + 1] - S->i[c];
      PetscInt       at = n;

      if (seen[c]) continue;
      seen[c] = 1;
      for (; at > from; at--) {
        const PetscInt b = order[at - 1], other = S->i[b + 1] - S->i[b];

        if (other < degree || (other == degree && key[b] < key[c])) break;
        order[at] = b;
      }
      order[at] = c;
      n++;
    }
  }
  for (PetscInt q = 0; q < n / 2; q++) {
    const PetscInt t = order[q];

    order[q]         = order[n - 1 - q];
    order[n - 1 - q] = t;
  }
  free(seen);
}

/* three unknowns at each point of an n^3 grid, 27 neighbours; window > 1: points are renumbered at random within
   windows of that many, as a mesh generator's numbering that keeps neighbours near but in no order; -1: by reverse
   Cuthill-McKee, with alike points in random order */
static inline PetscErrorCode Elasticity(PetscInt n, PetscInt window, HybCSR *A)
{
  const PetscInt points   = n * n * n;
  PetscInt      *newpoint = (PetscInt *)malloc((size_t)points * sizeof(PetscInt)), *oldpoint = (PetscInt *)malloc((size_t)points * sizeof(PetscInt));
  PetscCount     nnz    = 0;
  unsigned       seed   = 12345;
  PetscBool      levels = (PetscBool)(window < 0);
  HybCSR         S;

  PetscFunctionBegin;
  PetscCheck(newpoint && oldpoint, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for a numbering");
  for (PetscInt p = 0; p < points; p++) oldpoint[p] = p;
  if (levels) window = points;
  for (PetscInt w = 0; window > 1 && w < points; w += window) {
    const PetscInt len = PetscMin(window, points - w);

    for (PetscInt k = len - 1; k > 0; k--) {
      const PetscInt q = (PetscInt)((seed = seed * 1664525u + 1013904223u) >> 8) % (k + 1), t = oldpoint[w + k];

      oldpoint[w + k] = oldpoint[w + q];
      oldpoint[w + q] = t;
    }
  }
  for (PetscInt p = 0; p < points; p++) newpoint[oldpoint[p]] = p;
  PetscCall(Stencil(27, n, n, n, &S));
  if (levels) {
    CuthillMcKee(&S, newpoint, oldpoint);
    for (PetscInt p = 0; p < points; p++) newpoint[oldpoint[p]] = p;
  }
  PetscCall(HostCSR(3 * points, 3 * points, 9 * S.nnz, A));
  for (PetscInt p = 0; p < points; p++) {
    const PetscInt o = oldpoint[p], len = S.i[o + 1] - S.i[o];
    PetscInt       neighbour[27];

    for (PetscInt k = 0; k < len; k++) neighbour[k] = newpoint[S.j[S.i[o] + k]];
    if (window > 1) qsort(neighbour, (size_t)len, sizeof(PetscInt), CompareInt);
    for (int c = 0; c < 3; c++) {
      A->i[3 * p + c] = (PetscInt)nnz;
      for (PetscInt k = 0; k < len; k++) {
        for (int d = 0; d < 3; d++) {
          A->j[nnz] = 3 * neighbour[k] + d;
          A->a[nnz] = Value(nnz);
          nnz++;
        }
      }
    }
  }
  A->i[A->m] = (PetscInt)nnz;
  free(newpoint);
  free(oldpoint);
  PetscCall(HybArenaFree(&hostkeep, &S.i));
  PetscCall(HybArenaFree(&hostkeep, &S.j));
  PetscCall(HybArenaFree(&hostkeep, &S.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* T(r, g) = 1 where r belongs to aggregate g: a row none of whose neighbours has an aggregate founds one with them, the
   others join a neighbour's */
static inline PetscErrorCode Aggregates(const HybCSR *A, HybCSR *T)
{
  PetscInt *of = (PetscInt *)malloc(((size_t)A->m + 1) * sizeof(PetscInt)), n = 0;

  PetscFunctionBegin;
  PetscCheck(of, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for aggregates");
  for (PetscInt r = 0; r < A->m; r++) of[r] = -1;
  for (PetscInt r = 0; r < A->m; r++) {
    PetscBool alone = PETSC_TRUE;

    for (PetscInt k = A->i[r]; k < A->i[r + 1] && alone; k++) alone = (PetscBool)(of[A->j[k]] < 0);
    if (!alone) continue;
    for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) of[A->j[k]] = n;
    n++;
  }
  for (PetscInt r = 0; r < A->m; r++) {
    for (PetscInt k = A->i[r]; k < A->i[r + 1] && of[r] < 0; k++) {
      const PetscInt c = A->j[k];

      if (of[c] >= 0) of[r] = -2 - of[c]; /* nobody joins through r */
    }
  }
  PetscCall(HostCSR(A->m, n, A->m, T));
  for (PetscInt r = 0; r < A->m; r++) {
    T->i[r] = r;
    T->j[r] = of[r] >= 0 ? of[r] : of[r] < -1 ? -2 - of[r]
                                              : 0;
    T->a[r] = Value(r);
  }
  T->i[A->m] = A->m;
  free(of);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NAME.mtx or NAME.mtx.xz; *found false if there is neither */
static inline PetscErrorCode ReadMatrixMarket(const char *name, HybCSR *A, PetscBool *found)
{
  char       path[PETSC_MAX_PATH_LEN + 64], command[PETSC_MAX_PATH_LEN + 96], line[1024], kind[64] = "", symmetry[64] = "";
  FILE      *f;
  PetscBool  piped = PETSC_FALSE;
  long       m, n, entries;
  PetscInt  *ci, *cj;
  double    *cv;
  PetscCount nnz = 0;

  PetscFunctionBegin;
  snprintf(path, sizeof(path), "%s/%s.mtx", matrices, name);
  f = fopen(path, "r");
  if (!f) {
    snprintf(path, sizeof(path), "%s/%s.mtx.xz", matrices, name);
    f = fopen(path, "r");
    if (f) {
      fclose(f);
      snprintf(command, sizeof(command), "xz -dc '%s'", path);
      f     = popen(command, "r");
      piped = PETSC_TRUE;
    }
  }
  *found = (PetscBool)(f != NULL);
  if (!f) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(fgets(line, sizeof(line), f) && sscanf(line, "%%%%MatrixMarket matrix coordinate %63s %63s", kind, symmetry) == 2, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s is no coordinate Matrix Market file", path);
  do PetscCheck(fgets(line, sizeof(line), f), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s ends in its header", path);
  while (line[0] == '%');
  PetscCheck(sscanf(line, "%ld %ld %ld", &m, &n, &entries) == 3, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s has no line of sizes", path);
  ci = (PetscInt *)malloc(2 * (size_t)entries * sizeof(PetscInt) + 1);
  cj = (PetscInt *)malloc(2 * (size_t)entries * sizeof(PetscInt) + 1);
  cv = (double *)malloc(2 * (size_t)entries * sizeof(double) + 1);
  PetscCheck(ci && cj && cv, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for the entries of %s", path);
  for (long k = 0; k < entries; k++) {
    char  *p = line;
    long   r, c;
    double v = 1;

    PetscCheck(fgets(line, sizeof(line), f), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s ends after %ld of %ld entries", path, k, entries);
    r = strtol(p, &p, 10);
    c = strtol(p, &p, 10);
    if (strcmp(kind, "pattern")) v = strtod(p, &p);
    PetscCheck(r >= 1 && r <= m && c >= 1 && c <= n, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: entry %ld is outside the matrix", path, k + 1);
    ci[nnz]   = (PetscInt)(r - 1);
    cj[nnz]   = (PetscInt)(c - 1);
    cv[nnz++] = v;
    if (strcmp(symmetry, "general") && r != c) {
      ci[nnz]   = (PetscInt)(c - 1);
      cj[nnz]   = (PetscInt)(r - 1);
      cv[nnz++] = v;
    }
  }
  if (piped)
    pclose(f);
  else
    fclose(f);
  /* by columns, then by rows, stable: rows come out sorted */
  {
    PetscInt   *start = (PetscInt *)calloc((size_t)PetscMax(m, n) + 2, sizeof(PetscInt));
    PetscCount *order = (PetscCount *)malloc((size_t)nnz * sizeof(PetscCount) + 1);

    PetscCheck(start && order, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for the entries of %s", path);
    for (PetscCount k = 0; k < nnz; k++) start[cj[k] + 1]++;
    for (long c = 0; c < n; c++) start[c + 1] += start[c];
    for (PetscCount k = 0; k < nnz; k++) order[start[cj[k]]++] = k;
    PetscCall(HostCSR((PetscInt)m, (PetscInt)n, nnz, A));
    memset(A->i, 0, ((size_t)m + 1) * sizeof(PetscInt));
    for (PetscCount k = 0; k < nnz; k++) A->i[ci[k] + 1]++;
    for (long r = 0; r < m; r++) A->i[r + 1] += A->i[r];
    memcpy(start, A->i, ((size_t)m + 1) * sizeof(PetscInt));
    for (PetscCount q = 0; q < nnz; q++) {
      const PetscCount k = order[q];

      A->j[start[ci[k]]]   = cj[k];
      A->a[start[ci[k]]++] = (HybScalar)cv[k];
    }
    free(start);
    free(order);
  }
  free(ci);
  free(cj);
  free(cv);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the Wilson operator's hopping term on an L^4 periodic lattice: 4 spins and 3 colours, 39 entries a row in 3 x 3
   blocks */
static inline PetscErrorCode Lattice(PetscInt L, HybCSR *A)
{
  const PetscInt sites     = L * L * L * L;
  PetscInt       stride[4] = {1, L, L * L, L * L * L};

  PetscFunctionBegin;
  PetscCall(HostCSR(12 * sites, 12 * sites, 39 * 12 * (PetscCount)sites, A));
  for (PetscInt site = 0; site < sites; site++) {
    for (PetscInt spin = 0; spin < 4; spin++) {
      for (PetscInt colour = 0; colour < 3; colour++) {
        const PetscInt row = 12 * site + 3 * spin + colour;
        PetscInt       n   = 39 * row;

        A->i[row] = n;
        for (int d = 0; d < 4; d++) {
          for (int s = -1; s <= 1; s += 2) {
            const PetscInt x = site / stride[d] % L, other = site + (((x + s + L) % L) - x) * stride[d];

            for (PetscInt q = 0; q < 4; q++) {
              if (d < 3 ? q == spin || q == (d < 2 ? 3 - spin : (spin + 2) % 4) : q == spin && (spin < 2) == (s > 0)) {
                for (PetscInt c = 0; c < 3; c++) A->j[n++] = 12 * other + 3 * q + c;
              }
            }
          }
        }
        qsort(A->j + A->i[row], (size_t)(n - A->i[row]), sizeof(PetscInt), CompareInt);
      }
    }
  }
  A->i[A->m] = (PetscInt)A->nnz;
  for (PetscCount k = 0; k < A->nnz; k++) A->a[k] = Value(k);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the tentative prolongator of aggregates: boxes of 3^3 grid points, or the neighbours of points at least three steps
   from each other, met in random order */
static inline PetscErrorCode Tentative(const HybCSR *A, PetscInt n, PetscBool boxes, HybCSR *T)
{
  PetscInt *aggregate, c = (n + 2) / 3, coarse = 0;

  PetscFunctionBegin;
  PetscCall(HostCSR(A->m, c * c * c, A->m, T));
  aggregate = T->j;
  if (boxes) {
    for (PetscInt r = 0; r < A->m; r++) aggregate[r] = ((r / n / n) / 3 * c + (r / n % n) / 3) * c + r % n / 3;
  } else {
    PetscInt          *order = (PetscInt *)malloc((size_t)A->m * sizeof(PetscInt));
    signed char       *state = (signed char *)calloc((size_t)A->m, 1); /* 0 free, 1 too near to a root, 2 root */
    unsigned long long seed  = 4711;

    PetscCheck(order && state, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for aggregates");
    for (PetscInt r = 0; r < A->m; r++) {
      const PetscInt at = (PetscInt)((seed = seed * 6364136223846793005ull + 1442695040888963407ull) >> 33) % (r + 1);

      order[r]  = order[at];
      order[at] = r;
    }
    for (PetscInt q = 0; q < A->m; q++) {
      const PetscInt r = order[q];

      if (state[r]) continue;
      for (PetscInt k = A->i[r]; k < A->i[r + 1]; k++) {
        const PetscInt near = A->j[k];

        for (PetscInt l = A->i[near]; l < A->i[near + 1]; l++) state[A->j[l]] = 1;
      }
      state[r] = 2;
    }
    for (PetscInt r = 0; r < A->m; r++) aggregate[r] = state[r] == 2 ? coarse++ : -1;
    for (int pass = 0; pass < 2; pass++) { /* neighbours of roots, then theirs */
      for (PetscInt r = 0; r < A->m; r++) {
        PetscInt k = A->i[r];

        if (aggregate[r] >= 0) continue;
        while (k < A->i[r + 1] && (state[A->j[k]] == 0 || state[A->j[k]] != (pass ? 3 : 2))) k++;
        if (k < A->i[r + 1]) {
          aggregate[r] = aggregate[A->j[k]];
          state[r]     = (signed char)(pass ? 4 : 3);
        }
      }
    }
    T->n = coarse;
    free(order);
    free(state);
  }
  for (PetscInt r = 0; r < A->m; r++) {
    T->i[r] = r;
    T->a[r] = 1;
  }
  T->i[T->m] = T->m;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* six modes to an aggregate of points of three unknowns: each entry of T becomes 3 x 6 of them */
static inline PetscErrorCode Modes(const HybCSR *T, HybCSR *M)
{
  PetscFunctionBegin;
  PetscCall(HostCSR(3 * T->m, 6 * T->n, 18 * T->nnz, M));
  for (PetscInt r = 0; r < M->m; r++) {
    M->i[r] = 6 * r;
    for (PetscInt c = 0; c < 6; c++) {
      M->j[6 * r + c] = 6 * T->j[r / 3] + c;
      M->a[6 * r + c] = Value(6 * (PetscCount)r + c);
    }
  }
  M->i[M->m] = (PetscInt)M->nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

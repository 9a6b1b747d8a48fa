#include "ref.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(PETSC_USE_COMPLEX)
typedef long double _Complex Wide;
#else
typedef long double Wide;
#endif

/* One sum, formed twice */
typedef struct {
  Wide        wide;
  PetscScalar plain;
  PetscReal   mag;
  PetscCount  terms;
} Sum;

static void SumTerm(Sum *s, PetscScalar a, PetscScalar b, PetscReal mag, PetscCount terms)
{
  s->wide += (Wide)a * (Wide)b;
  s->plain += a * b;
  s->mag += mag;
  s->terms += 1 + terms;
}

static PetscScalar SumValue(const Sum *s)
{
  const PetscScalar v = (PetscScalar)s->wide;

  if (PetscIsInfOrNanScalar(s->plain) || PetscIsInfOrNanScalar(v)) return s->plain;
  if (PetscAbsScalar(v - s->plain) > 4 * (s->terms + 1) * PETSC_MACHINE_EPSILON * s->mag + (PetscReal)PETSC_SMALL * PETSC_SMALL) {
    fprintf(stderr, "the reference contradicts itself: %g and %g from %td terms of modulus %g\n", (double)PetscRealPart(v), (double)PetscRealPart(s->plain), s->terms, (double)s->mag);
    abort();
  }
  return v;
}

void *RefAlloc(PetscCount count, size_t size)
{
  void *p = calloc(count > 0 ? (size_t)count : 1, size);

  if (!p) {
    fprintf(stderr, "the reference has no memory for %td items of %zu bytes\n", count, size);
    abort();
  }
  return p;
}

void RefMatCreate(PetscInt m, PetscInt n, PetscCount nnz, RefMat *A)
{
  memset(A, 0, sizeof(*A));
  A->csr.m   = m;
  A->csr.n   = n;
  A->csr.nnz = nnz;
  A->csr.i   = (PetscInt *)RefAlloc((PetscCount)m + 1, sizeof(PetscInt));
  A->csr.j   = (PetscInt *)RefAlloc(nnz, sizeof(PetscInt));
  A->csr.a   = (PetscScalar *)RefAlloc(nnz, sizeof(PetscScalar));
}

static void RefMatCreateBounds(RefMat *A)
{
  A->mag   = (PetscReal *)RefAlloc(A->csr.nnz, sizeof(PetscReal));
  A->terms = (PetscCount *)RefAlloc(A->csr.nnz, sizeof(PetscCount));
}

void RefFreeAll(void *const arrays[], size_t n)
{
  for (size_t k = 0; k < n; k++) free(arrays[k]);
}

void RefMatDestroyAll(RefMat *const matrices[])
{
  for (; *matrices; matrices++) {
    RefMat *A = *matrices;

    RefFree(A->csr.i, A->csr.j, A->csr.a, A->mag, A->terms);
    memset(A, 0, sizeof(*A));
  }
}

void RefMatCopy(const RefMat *A, RefMat *C)
{
  const size_t nnz = (size_t)A->csr.nnz;

  RefMatCreate(A->csr.m, A->csr.n, A->csr.nnz, C);
  memcpy(C->csr.i, A->csr.i, ((size_t)A->csr.m + 1) * sizeof(PetscInt));
  memcpy(C->csr.j, A->csr.j, nnz * sizeof(PetscInt));
  memcpy(C->csr.a, A->csr.a, nnz * sizeof(PetscScalar));
  if (A->mag) {
    RefMatCreateBounds(C);
    memcpy(C->mag, A->mag, nnz * sizeof(PetscReal));
    memcpy(C->terms, A->terms, nnz * sizeof(PetscCount));
  }
}

static PetscReal Mag(const RefMat *A, PetscCount k)
{
  return A->mag ? A->mag[k] : PetscAbsScalar(A->csr.a[k]);
}

static PetscCount Terms(const RefMat *A, PetscCount k)
{
  return A->terms ? A->terms[k] : 0;
}

typedef struct {
  PetscInt   i, j;
  PetscCount k;
} Place;

static int PlaceCompare(const void *a, const void *b)
{
  const Place *p = (const Place *)a, *q = (const Place *)b;

  if (p->i != q->i) return p->i < q->i ? -1 : 1;
  if (p->j != q->j) return p->j < q->j ? -1 : 1;
  return p->k < q->k ? -1 : p->k > q->k;
}

void RefCOO(PetscInt m, PetscInt n, PetscCount ncoo, const PetscInt *ci, const PetscInt *cj, const PetscScalar *v, RefMat *C)
{
  Place     *p  = (Place *)RefAlloc(ncoo, sizeof(Place));
  PetscCount np = 0, nnz = 0, e = -1;
  Sum        s;

  for (PetscCount k = 0; k < ncoo; k++) {
    if (ci[k] < 0 || cj[k] < 0) continue;
    p[np].i   = ci[k];
    p[np].j   = cj[k];
    p[np++].k = k;
  }
  qsort(p, (size_t)np, sizeof(Place), PlaceCompare);
  for (PetscCount q = 0; q < np; q++) nnz += q == 0 || p[q].i != p[q - 1].i || p[q].j != p[q - 1].j;
  RefMatCreate(m, n, nnz, C);
  RefMatCreateBounds(C);
  memset(&s, 0, sizeof(s));
  for (PetscCount q = 0; q < np; q++) {
    if (q == 0 || p[q].i != p[q - 1].i || p[q].j != p[q - 1].j) {
      memset(&s, 0, sizeof(s));
      e++;
      C->csr.i[p[q].i + 1]++;
      C->csr.j[e] = p[q].j;
    }
    if (v) SumTerm(&s, v[p[q].k], 1.0, PetscAbsScalar(v[p[q].k]), 0);
    C->csr.a[e] = SumValue(&s);
    C->mag[e]   = s.mag;
    C->terms[e] = s.terms;
  }
  for (PetscInt r = 0; r < m; r++) C->csr.i[r + 1] += C->csr.i[r];
  free(p);
}

void RefTranspose(const RefMat *A, PetscBool conjugate, RefMat *T)
{
  const HybCSR *a    = &A->csr;
  PetscInt     *next = (PetscInt *)RefAlloc(a->n, sizeof(PetscInt));

  RefMatCreate(a->n, a->m, a->nnz, T);
  RefMatCreateBounds(T);
  for (PetscCount k = 0; k < a->nnz; k++) T->csr.i[a->j[k] + 1]++;
  for (PetscInt c = 0; c < a->n; c++) T->csr.i[c + 1] += T->csr.i[c];
  for (PetscInt c = 0; c < a->n; c++) next[c] = T->csr.i[c];
  for (PetscInt r = 0; r < a->m; r++) {
    for (PetscInt k = a->i[r]; k < a->i[r + 1]; k++) {
      const PetscInt t = next[a->j[k]]++;

      T->csr.j[t] = r;
      T->csr.a[t] = conjugate ? PetscConj(a->a[k]) : a->a[k];
      T->mag[t]   = Mag(A, k);
      T->terms[t] = Terms(A, k);
    }
  }
  free(next);
}

static int IntCompare(const void *a, const void *b)
{
  const PetscInt p = *(const PetscInt *)a, q = *(const PetscInt *)b;

  return p < q ? -1 : p > q;
}

void RefSpGEMM(const RefMat *A, const RefMat *B, RefMat *C)
{
  const HybCSR *a = &A->csr, *b = &B->csr;
  Sum          *sum  = (Sum *)RefAlloc(b->n, sizeof(Sum));
  PetscInt     *mark = (PetscInt *)RefAlloc(b->n, sizeof(PetscInt)), *list = (PetscInt *)RefAlloc(b->n, sizeof(PetscInt));
  PetscCount    nnz = 0;

  if (a->n != b->m) abort();
  for (int pass = 0; pass < 2; pass++) { /* first count, then compute */
    if (pass) {
      RefMatCreate(a->m, b->n, nnz, C);
      RefMatCreateBounds(C);
    }
    nnz = 0;
    for (PetscInt c = 0; c < b->n; c++) mark[c] = -1;
    for (PetscInt r = 0; r < a->m; r++) {
      PetscInt len = 0;

      for (PetscInt k = a->i[r]; k < a->i[r + 1]; k++) {
        for (PetscInt l = b->i[a->j[k]]; l < b->i[a->j[k] + 1]; l++) {
          const PetscInt c = b->j[l];
          PetscCount     t = Terms(A, k) > Terms(B, l) ? Terms(A, k) : Terms(B, l);

          if (mark[c] != r) {
            mark[c]     = r;
            list[len++] = c;
            memset(&sum[c], 0, sizeof(Sum));
          }
          if (pass) SumTerm(&sum[c], a->a[k], b->a[l], Mag(A, k) * Mag(B, l), t);
        }
      }
      if (pass) {
        qsort(list, (size_t)len, sizeof(PetscInt), IntCompare);
        for (PetscInt q = 0; q < len; q++) {
          C->csr.j[nnz + q] = list[q];
          C->csr.a[nnz + q] = SumValue(&sum[list[q]]);
          C->mag[nnz + q]   = sum[list[q]].mag;
          C->terms[nnz + q] = sum[list[q]].terms;
        }
      }
      nnz += len;
      if (nnz > PETSC_MAX_INT) abort();
      if (pass) C->csr.i[r + 1] = (PetscInt)nnz;
    }
  }
  RefFree(sum, mark, list);
}

static PetscScalar *InOrder(PetscBool fused, const RefMat *A, const RefMat *B, const RefMat *C)
{
  PetscScalar *sum = (PetscScalar *)RefAlloc(C->csr.n, sizeof(PetscScalar)), *a = (PetscScalar *)RefAlloc(C->csr.nnz, sizeof(PetscScalar));
  PetscInt    *row = (PetscInt *)RefAlloc(C->csr.n, sizeof(PetscInt));

  for (PetscInt r = 0; r < A->csr.m; r++) {
    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) {
      for (PetscInt l = B->csr.i[A->csr.j[k]]; l < B->csr.i[A->csr.j[k] + 1]; l++) {
        const PetscScalar product = A->csr.a[k] * B->csr.a[l];
        const PetscInt    c       = B->csr.j[l];

        sum[c] = row[c] != r + 1 ? product : fused ? (PetscScalar)fma((double)PetscRealPart(A->csr.a[k]), (double)PetscRealPart(B->csr.a[l]), (double)PetscRealPart(sum[c]))
                                                   : sum[c] + product;
        row[c] = r + 1;
      }
    }
    for (PetscInt t = C->csr.i[r]; t < C->csr.i[r + 1]; t++) a[t] = sum[C->csr.j[t]];
  }
  RefFree(sum, row);
  return a;
}

PetscScalar *RefProductInOrder(const RefMat *A, const RefMat *B, const RefMat *C)
{
  return InOrder(PETSC_FALSE, A, B, C);
}

PetscScalar *RefProductFused(const RefMat *A, const RefMat *B, const RefMat *C)
{
  return InOrder(PETSC_TRUE, A, B, C);
}

void RefPtAP(const RefMat *A, const RefMat *P, RefMat *C)
{
  RefMat R;

  RefTranspose(P, PETSC_FALSE, &R);
  RefABC(&R, A, P, C);
  RefMatDestroy(&R);
}

void RefRARt(const RefMat *A, const RefMat *R, RefMat *C)
{
  RefMat P;

  RefTranspose(R, PETSC_FALSE, &P);
  RefABC(R, A, &P, C);
  RefMatDestroy(&P);
}

void RefABC(const RefMat *A, const RefMat *B, const RefMat *C, RefMat *D)
{
  RefMat AB;

  RefSpGEMM(A, B, &AB);
  RefSpGEMM(&AB, C, D);
  RefMatDestroy(&AB);
}

void RefAdd(PetscScalar alpha, const RefMat *A, PetscScalar beta, const RefMat *B, RefMat *C)
{
  const HybCSR *a = &A->csr, *b = &B->csr;
  PetscCount    nnz = 0;

  if (a->m != b->m || a->n != b->n) abort();
  for (int pass = 0; pass < 2; pass++) {
    if (pass) {
      RefMatCreate(a->m, a->n, nnz, C);
      RefMatCreateBounds(C);
    }
    nnz = 0;
    for (PetscInt r = 0; r < a->m; r++) {
      PetscInt k = a->i[r], l = b->i[r];

      while (k < a->i[r + 1] || l < b->i[r + 1]) {
        const PetscBool ina = (PetscBool)(k < a->i[r + 1] && (l >= b->i[r + 1] || a->j[k] <= b->j[l]));
        const PetscBool inb = (PetscBool)(l < b->i[r + 1] && (k >= a->i[r + 1] || b->j[l] <= a->j[k]));

        if (pass) {
          Sum s;

          memset(&s, 0, sizeof(s));
          if (ina) SumTerm(&s, alpha, a->a[k], PetscAbsScalar(alpha) * Mag(A, k), Terms(A, k));
          if (inb) SumTerm(&s, beta, b->a[l], PetscAbsScalar(beta) * Mag(B, l), Terms(B, l));
          C->csr.j[nnz] = ina ? a->j[k] : b->j[l];
          C->csr.a[nnz] = SumValue(&s);
          C->mag[nnz]   = s.mag;
          C->terms[nnz] = s.terms;
        }
        nnz++;
        k += ina;
        l += inb;
      }
      if (pass) C->csr.i[r + 1] = (PetscInt)nnz;
    }
  }
}

void RefSubmatrix(const RefMat *A, PetscInt nrows, const PetscInt *rows, PetscInt cstart, PetscInt cend, RefMat *S)
{
  const HybCSR *a   = &A->csr;
  PetscCount    nnz = 0;

  for (int pass = 0; pass < 2; pass++) {
    if (pass) {
      RefMatCreate(nrows, cend - cstart, nnz, S);
      RefMatCreateBounds(S);
    }
    nnz = 0;
    for (PetscInt r = 0; r < nrows; r++) {
      for (PetscInt k = a->i[rows[r]]; k < a->i[rows[r] + 1]; k++) {
        if (a->j[k] < cstart || a->j[k] >= cend) continue;
        if (pass) {
          S->csr.j[nnz] = a->j[k] - cstart;
          S->csr.a[nnz] = a->a[k];
          S->mag[nnz]   = Mag(A, k);
          S->terms[nnz] = Terms(A, k);
        }
        nnz++;
      }
      if (pass) S->csr.i[r + 1] = (PetscInt)nnz;
    }
  }
}

void RefSpMV(const RefMat *A, const PetscScalar *x, int sign, const PetscScalar *y, PetscScalar *z, PetscReal *mag, PetscCount *terms)
{
  const HybCSR *a = &A->csr;

  for (PetscInt r = 0; r < a->m; r++) {
    Sum s;

    memset(&s, 0, sizeof(s));
    if (y) SumTerm(&s, y[r], 1.0, PetscAbsScalar(y[r]), 0);
    for (PetscInt k = a->i[r]; k < a->i[r + 1]; k++) SumTerm(&s, sign < 0 ? -a->a[k] : a->a[k], x[a->j[k]], Mag(A, k) * PetscAbsScalar(x[a->j[k]]), Terms(A, k));
    z[r] = SumValue(&s);
    if (mag) mag[r] = s.mag;
    if (terms) terms[r] = s.terms;
  }
}

PetscReal RefNorm(const RefMat *A, HybNorm type)
{
  const HybCSR *a    = &A->csr;
  long double   norm = 0, *sum = (long double *)RefAlloc(a->n > a->m ? a->n : a->m, sizeof(long double));

  for (PetscInt r = 0; r < a->m; r++) {
    for (PetscInt k = a->i[r]; k < a->i[r + 1]; k++) {
      const long double v = PetscAbsScalar(a->a[k]);

      if (type == HYB_NORM_FROBENIUS)
        norm += v * v;
      else
        sum[type == HYB_NORM_1 ? a->j[k] : r] += v;
    }
  }
  if (type == HYB_NORM_FROBENIUS)
    norm = PetscSqrtReal((PetscReal)norm);
  else
    for (PetscInt q = 0; q < (type == HYB_NORM_1 ? a->n : a->m); q++) norm = sum[q] > norm ? sum[q] : norm;
  free(sum);
  return (PetscReal)norm;
}

PetscScalar RefGet(const RefMat *A, PetscInt row, PetscInt col, PetscBool *stored)
{
  if (stored) *stored = PETSC_FALSE;
  for (PetscInt k = A->csr.i[row]; k < A->csr.i[row + 1]; k++) {
    if (A->csr.j[k] != col) continue;
    if (stored) *stored = PETSC_TRUE;
    return A->csr.a[k];
  }
  return 0;
}

PetscCount RefProducts(const RefMat *A, const RefMat *B, PetscCount *rowproducts)
{
  PetscCount total = 0;

  for (PetscInt r = 0; r < A->csr.m; r++) {
    PetscCount products = 0;

    for (PetscInt k = A->csr.i[r]; k < A->csr.i[r + 1]; k++) products += B->csr.i[A->csr.j[k] + 1] - B->csr.i[A->csr.j[k]];
    if (rowproducts) rowproducts[r] = products;
    total += products;
  }
  return total;
}

/*
  aggtest.h: what the tests of aggregation share: PETSc's sequential loops, followed one by one (the shuffle by the C
  library's own generator, the independent set on a squared graph that is formed, the lists and what moves between
  them), PETSc's LAPACK, and graphs.
*/
#ifndef AGGTEST_H
#define AGGTEST_H
#include "hybtest.h"
#include <aijhybridgpu/private/hybagg.h>
#include <petscblaslapack.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define NAME_(x) #x
#define NAME(x)  NAME_(x)

typedef void (*GeqrfFn)(PetscBLASInt *, PetscBLASInt *, PetscScalar *, PetscBLASInt *, PetscScalar *, PetscScalar *, PetscBLASInt *, PetscBLASInt *);
typedef void (*OrgqrFn)(PetscBLASInt *, PetscBLASInt *, PetscBLASInt *, PetscScalar *, PetscBLASInt *, PetscScalar *, PetscScalar *, PetscBLASInt *, PetscBLASInt *);

/* numbers whose squares are none, and one whose inverse is none */
#if defined(PETSC_USE_REAL_SINGLE)
  #define TINY     1e-25
  #define HUGE     1e25
  #define DENORMAL 1e-40
#else
  #define TINY     1e-180
  #define HUGE     1e200
  #define DENORMAL 1e-310
#endif

/* aggregates as PETSc keeps them: a linked list for each vertex, empty but for roots */
typedef struct {
  PetscInt  n, nc;
  PetscInt *head, *tail, *next;
  PetscInt *parent, *ptr, *member; /* what comes of them: numbers of aggregates, and their lists one behind the other */
} Lists;

static inline void ListsCreate(PetscInt n, Lists *l)
{
  l->n      = n;
  l->nc     = 0;
  l->head   = (PetscInt *)RefAlloc(n, sizeof(PetscInt));
  l->tail   = (PetscInt *)RefAlloc(n, sizeof(PetscInt));
  l->next   = (PetscInt *)RefAlloc(n, sizeof(PetscInt));
  l->parent = (PetscInt *)RefAlloc(n, sizeof(PetscInt));
  l->ptr    = (PetscInt *)RefAlloc(n + 1, sizeof(PetscInt));
  l->member = (PetscInt *)RefAlloc(n, sizeof(PetscInt));
  for (PetscInt v = 0; v < n; v++) l->head[v] = l->tail[v] = l->next[v] = l->parent[v] = -1;
}

static inline void ListsDestroy(Lists *l)
{
  RefFree(l->head, l->tail, l->next, l->parent, l->ptr, l->member);
}

static inline void ListsAppend(Lists *l, PetscInt root, PetscInt v)
{
  if (l->head[root] < 0)
    l->head[root] = v;
  else
    l->next[l->tail[root]] = v;
  l->tail[root] = v;
  l->next[v]    = -1;
}

static inline void ListsRemove(Lists *l, PetscInt root, PetscInt v)
{
  PetscInt before = -1;

  for (PetscInt u = l->head[root]; u != v; u = l->next[u]) before = u;
  if (before < 0)
    l->head[root] = l->next[v];
  else
    l->next[before] = l->next[v];
  if (l->tail[root] == v) l->tail[root] = before;
}

static inline int CompareInts(const void *a, const void *b)
{
  const PetscInt x = *(const PetscInt *)a, y = *(const PetscInt *)b;

  return x < y ? -1 : x > y;
}

/* numbers follow the roots, ascending; where the lists come from a transposed matrix they ascend */
static inline void ListsFinish(Lists *l, PetscBool sorted)
{
  PetscInt k = 0;

  l->nc = 0;
  for (PetscInt root = 0; root < l->n; root++) {
    if (l->head[root] < 0) continue;
    l->ptr[l->nc] = k;
    for (PetscInt v = l->head[root]; v >= 0; v = l->next[v]) {
      l->parent[v]   = l->nc;
      l->member[k++] = v;
    }
    if (sorted) qsort(l->member + l->ptr[l->nc], (size_t)(k - l->ptr[l->nc]), sizeof(PetscInt), CompareInts);
    l->nc++;
  }
  l->ptr[l->nc] = k;
}

/* the order of the vertices: slot k and a random one are exchanged, unless that was the target of an exchange before */
static inline PetscInt *Shuffle(PetscInt n)
{
  unsigned short state[3] = {0x330e, 0x5678, 0x1234};
  PetscInt      *order    = (PetscInt *)RefAlloc(n, sizeof(PetscInt));
  char          *target   = (char *)RefAlloc(n, 1);

  for (PetscInt k = 0; k < n; k++) order[k] = k;
  for (PetscInt k = 0; k < n; k++) {
    /* of a PetscReal, as PETSc's draw is */
    const PetscInt t = (PetscInt)((PetscReal)erand48(state) * (PetscReal)n) % n;

    if (!target[t] && t != k) {
      const PetscInt v = order[t];

      order[t]  = order[k];
      order[k]  = v;
      target[t] = 1;
    }
  }
  free(target);
  return order;
}

/* a maximal independent set of S in this order; a vertex that is taken goes into the list of who took it */
static inline void IndependentSet(const HybCSR *S, const PetscInt *order, Lists *l, char *state)
{
  for (PetscInt k = 0; k < S->m; k++) {
    const PetscInt v = order[k];

    if (state[v] || S->i[v + 1] - S->i[v] < 2) continue;
    state[v] = 'r';
    ListsAppend(l, v, v);
    for (PetscInt e = S->i[v]; e < S->i[v + 1]; e++) {
      if (state[S->j[e]]) continue;
      state[S->j[e]] = 'd';
      ListsAppend(l, v, S->j[e]);
    }
  }
}

/* that order, or it sorted by the lengths of rows, by PETSc's sort */
static inline PetscInt *Ordered(const HybCSR *G, HybAggOrder kind)
{
  PetscInt *order = kind == HYB_AGG_NATURAL ? (PetscInt *)RefAlloc(G->m, sizeof(PetscInt)) : Shuffle(G->m), *degree;

  for (PetscInt k = 0; k < G->m && kind == HYB_AGG_NATURAL; k++) order[k] = k;
  if (kind != HYB_AGG_DEGREES) return order;
  degree = (PetscInt *)RefAlloc(G->m, sizeof(PetscInt));
  for (PetscInt k = 0; k < G->m; k++) degree[k] = G->i[order[k] + 1] - G->i[order[k]];
  HybTestCall(PetscSortIntWithArray(G->m, degree, order));
  free(degree);
  return order;
}

static inline void CoarsenOnce(const RefMat *G, int hops, HybAggOrder kind, Lists *l)
{
  const PetscInt n     = G->csr.m;
  PetscInt      *order = Ordered(&G->csr, kind);
  char          *state = (char *)RefAlloc(n, 1);

  ListsCreate(n, l);
  if (hops == 1)
    IndependentSet(&G->csr, order, l, state);
  else {
    PetscInt *parent = (PetscInt *)RefAlloc(n, sizeof(PetscInt));
    RefMat    S;

    RefSpGEMM(G, G, &S);
    IndependentSet(&S.csr, order, l, state);
    RefMatDestroy(&S);
    for (PetscInt v = 0; v < n; v++) parent[v] = -1;
    for (PetscInt root = 0; root < n; root++)
      for (PetscInt v = l->head[root]; v >= 0; v = l->next[v]) parent[v] = root;
    /* A root takes its neighbours from the others' lists to the end of its own, and those in none, which are alone in
       the square where rows lack their own entry. A neighbour may be a root there. */
    for (PetscInt root = 0; root < n; root++) {
      if (state[root] != 'r') continue;
      for (PetscInt e = G->csr.i[root]; e < G->csr.i[root + 1]; e++) {
        const PetscInt v = G->csr.j[e];

        if (state[v] == 'r' || parent[v] == root) continue;
        if (parent[v] >= 0) ListsRemove(l, parent[v], v);
        ListsAppend(l, root, v);
        parent[v] = root;
      }
    }
    free(parent);
  }
  ListsFinish(l, (PetscBool)(hops == 1));
  RefFree(order, state);
}

/* P^T G P, P having an entry for each vertex that is in a list */
static inline void Project(const RefMat *G, const Lists *l, RefMat *Q)
{
  PetscInt *row = (PetscInt *)RefAlloc(l->n, sizeof(PetscInt));
  RefMat    P, R, GP;

  for (PetscInt v = 0; v < l->n; v++) row[v] = v;
  RefCOO(l->n, l->nc, l->n, row, l->parent, NULL, &P);
  RefTranspose(&P, PETSC_FALSE, &R);
  RefSpGEMM(G, &P, &GP);
  RefSpGEMM(&R, &GP, Q);
  RefMatDestroy(&P, &R, &GP);
  free(row);
}

/* the lists of vertices of these aggregates' aggregates, ascending */
static inline void ListsOfLists(Lists *l, const Lists *next)
{
  PetscInt k = 0;

  for (PetscInt v = 0; v < l->n; v++) l->parent[v] = l->parent[v] < 0 ? -1 : next->parent[l->parent[v]];
  l->nc = next->nc;
  for (PetscInt c = 0; c < l->nc; c++) {
    l->ptr[c] = k;
    for (PetscInt v = 0; v < l->n; v++)
      if (l->parent[v] == c) l->member[k++] = v;
  }
  l->ptr[l->nc] = k;
}

static inline void Coarsen(const RefMat *G, const HybAggRules *rules, Lists *l)
{
  Lists  last, next;
  RefMat Q, R;

  CoarsenOnce(G, rules->hops, rules->order, l);
  for (int k = 1; k < rules->distance; k++) {
    Project(k > 1 ? &Q : G, k > 1 ? &last : l, &R);
    CoarsenOnce(&R, 1, HYB_AGG_NATURAL, &next);
    ListsOfLists(l, &next);
    if (k > 1) {
      RefMatDestroy(&Q);
      ListsDestroy(&last);
    }
    Q    = R;
    last = next;
  }
  if (rules->distance > 1) {
    RefMatDestroy(&Q);
    ListsDestroy(&last);
  }
}

/* rules of every kind; the first two are PETSc's default ones */
static const HybAggRules Rules[] = {
  {1, 1, HYB_AGG_SHUFFLED, 0},
  {2, 1, HYB_AGG_SHUFFLED, 0},
  {1, 2, HYB_AGG_SHUFFLED, 0},
  {1, 1, HYB_AGG_DEGREES,  0},
  {1, 3, HYB_AGG_DEGREES,  0},
  {2, 1, HYB_AGG_DEGREES,  0},
  {1, 4, HYB_AGG_SHUFFLED, 0},
  {1, 2, HYB_AGG_NATURAL,  0}
};

/* what is said of them */
static inline const char *Said(const HybAggRules *rules)
{
  static char              text[64];
  static const char *const orders[HYB_AGG_ORDERS] = {"", ", by degrees", ", in the natural order"};

  snprintf(text, sizeof(text), "%d steps%s, distance %d", rules->hops, orders[rules->order], rules->distance);
  return text;
}

/* edges on both sides, every vertex with its diagonal */
static inline void Graph(PetscInt n, PetscInt nedges, const PetscInt *from, const PetscInt *to, RefMat *G)
{
  PetscInt *ci = (PetscInt *)RefAlloc(2 * nedges + n, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc(2 * nedges + n, sizeof(PetscInt)), k = 0;
  RefMat    pattern;

  for (PetscInt e = 0; e < nedges; e++) {
    ci[k]   = from[e];
    cj[k++] = to[e];
    ci[k]   = to[e];
    cj[k++] = from[e];
  }
  for (PetscInt v = 0; v < n; v++) ci[k + v] = cj[k + v] = v;
  RefCOO(n, n, k + n, ci, cj, NULL, &pattern);
  HybTestMatArrays(n, n, pattern.csr.i, pattern.csr.j, NULL, G);
  RefMatDestroy(&pattern);
  RefFree(ci, cj);
}

/* the same of a matrix's pattern, its vertices relabelled at random if asked */
static inline void GraphOf(const RefMat *A, PetscBool relabel, RefMat *G)
{
  PetscInt *from = (PetscInt *)RefAlloc(A->csr.nnz, sizeof(PetscInt)), *to = (PetscInt *)RefAlloc(A->csr.nnz, sizeof(PetscInt)), *label = (PetscInt *)RefAlloc(A->csr.m, sizeof(PetscInt)), k = 0;

  for (PetscInt v = 0; v < A->csr.m; v++) label[v] = v;
  for (PetscInt v = 1; relabel && v < A->csr.m; v++) {
    const PetscInt u = HybTestRandomInt(0, v + 1), t = label[v];

    label[v] = label[u];
    label[u] = t;
  }
  for (PetscInt r = 0; r < A->csr.m; r++)
    for (PetscInt e = A->csr.i[r]; e < A->csr.i[r + 1]; e++) {
      from[k] = label[r];
      to[k++] = label[A->csr.j[e]];
    }
  Graph(A->csr.m, k, from, to, G);
  RefFree(from, to, label);
}

/*
  Shape 0: a chain, 1: a star, 2: a clique, 3: no edges, 4: random edges, 5: pairs, 6: a chain in the order of the
  shuffle, whose independent set can only be found one vertex after the other.
*/
static inline void SmallGraph(int shape, PetscInt n, RefMat *G)
{
  const PetscInt most = shape == 2 ? n * (n - 1) / 2 : 3 * n;
  PetscInt      *from = (PetscInt *)RefAlloc(most, sizeof(PetscInt)), *to = (PetscInt *)RefAlloc(most, sizeof(PetscInt)), *order = Shuffle(n), k = 0;
  const PetscInt hub = n > 0 ? HybTestRandomInt(0, n) : 0;

  for (PetscInt v = 0; v < n; v++) {
    switch (shape) {
    case 0:
    case 6:
      if (v + 1 == n) break;
      from[k] = shape ? order[v] : v;
      to[k++] = shape ? order[v + 1] : v + 1;
      break;
    case 1:
      from[k] = hub;
      to[k++] = v;
      break;
    case 2:
      for (PetscInt u = 0; u < v; u++) {
        from[k] = u;
        to[k++] = v;
      }
      break;
    case 4:
      for (PetscInt e = HybTestRandomInt(0, 4); e > 0; e--) {
        from[k] = v;
        to[k++] = HybTestRandomInt(0, n);
      }
      break;
    case 5:
      if (v % 2 == 0 || v % 5 == 0) break;
      from[k] = v - 1;
      to[k++] = v;
      break;
    default: break;
    }
  }
  Graph(n, k, from, to, G);
  RefFree(from, to, order);
}

/* bs unknowns for each vertex of G; of the entries between two vertices all, or one at least */
static inline void Unknowns(const RefMat *G, PetscInt bs, PetscBool full, RefMat *A)
{
  const PetscCount most = G->csr.nnz * bs * bs + (PetscCount)G->csr.m * bs;
  PetscInt        *ci = (PetscInt *)RefAlloc(most, sizeof(PetscInt)), *cj = (PetscInt *)RefAlloc(most, sizeof(PetscInt));
  PetscCount       nnz = 0;
  RefMat           pattern;

  for (PetscInt v = 0; v < G->csr.m; v++)
    for (PetscInt e = G->csr.i[v]; e < G->csr.i[v + 1]; e++) {
      const PetscInt u = G->csr.j[e], one = HybTestRandomInt(0, bs * bs);

      for (PetscInt k = 0; k < bs * bs; k++) {
        if (!full && k != one && HybTestRandomInt(0, 4) && (u != v || k % (bs + 1))) continue;
        ci[nnz]   = v * bs + k / bs;
        cj[nnz++] = u * bs + k % bs;
      }
    }
  RefCOO(G->csr.m * bs, G->csr.m * bs, nnz, ci, cj, NULL, &pattern);
  HybTestMatArrays(G->csr.m * bs, G->csr.m * bs, pattern.csr.i, pattern.csr.j, NULL, A);
  RefMatDestroy(&pattern);
  RefFree(ci, cj);
}

/* every allocation fails in turn: the matrix, and a vector where one is given; the reference's matrix is the caller's
   until FaultsEnd() */
static HybArena     FaultMine, FaultKeep, FaultWork;
static HybCSR       FaultMatrix;
static PetscScalar *FaultVector;
static RefMat       FaultRef;

static inline PetscErrorCode FaultsBegin(PetscInt n, PetscScalar *vector)
{
  PetscFunctionBegin;
  PetscCall(HybTestArenas(HybTestExec(), &FaultMine, &FaultKeep, &FaultWork));
  PetscCall(HybTestUpload(&FaultMine, &FaultRef.csr, &FaultMatrix));
  if (vector) PetscCall(HybTestUploadArray(&FaultMine, n, sizeof(PetscScalar), vector, &FaultVector));
  free(vector);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode FaultClean(void *ctx)
{
  PetscFunctionBegin;
  PetscCall(HybTestReset(&FaultKeep, &FaultWork));
  HybTestSameMatrix(&FaultMatrix, &FaultRef, 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode FaultsEnd(void)
{
  PetscFunctionBegin;
  PetscCall(HybArenaReset(&FaultMine));
  RefMatDestroy(&FaultRef);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif

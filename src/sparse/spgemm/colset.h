/*
  colset.h: a set of columns that gives its members in ascending order without sorting them, for the symbolic phases on
  the host.

  One bit a column; above it, one bit for each word that holds any, and the same once more: one word of the top stands
  for 262144 columns. Adding touches one word as a rule, three when a word gains its first member. Taking walks the set
  bits, top down, and clears them. Both cost nothing for what is not there. Memory: n/8 bytes and a sixty-third of that.

  A few columns are put in order by their ranks: how many of the others are smaller, counted a vector at a time.

  And a list of columns, row after row, that grows by chunks until their number is known; then it becomes an array of
  exactly that size, chunk after chunk, so that twice the columns are the most that is held.
*/
#ifndef AIJHYBRIDGPU_COLSET_H
#define AIJHYBRIDGPU_COLSET_H
#include <aijhybridgpu/private/hyb.h>
#include <stdint.h>

/* columns compared at once: as many as a register of AVX2 has; of longer vectors it compares one by one */
#define HYB_COL_LANES (32 / (int)sizeof(PetscInt))
#define HYB_COL_FEW   64 /* columns, at most, that are put in order by their ranks */
typedef PetscInt HybColLanes __attribute__((vector_size(HYB_COL_LANES * sizeof(PetscInt))));

/* n columns, all different, no more than these vectors hold */
static inline __attribute__((always_inline)) void HybColSort_Inline(int vectors, PetscInt n, const PetscInt *restrict cols, PetscInt *restrict sorted)
{
  HybColLanes key[HYB_COL_FEW / HYB_COL_LANES], rank[HYB_COL_FEW / HYB_COL_LANES];
  PetscInt    place[HYB_COL_FEW];

  for (int q = 0; q < vectors; q++) key[q] = rank[q] = (HybColLanes){0};
  memcpy(key, cols, (size_t)n * sizeof(PetscInt));
  for (PetscInt k = 0; k < n; k++) {
    for (int q = 0; q < vectors; q++) rank[q] -= key[q] > cols[k];
  }
  for (int q = 0; q < vectors; q++) memcpy(place + q * HYB_COL_LANES, &rank[q], sizeof(rank[q]));
  for (PetscInt k = 0; k < n; k++) sorted[place[k]] = cols[k];
}

/* sorted: up to HYB_COL_FEW different columns in order */
static inline __attribute__((always_inline)) void HybColSortFew(PetscInt n, const PetscInt *restrict cols, PetscInt *restrict sorted)
{
  const int vectors = HYB_COL_FEW / HYB_COL_LANES;

  if (n <= HYB_COL_FEW / 8)
    HybColSort_Inline(vectors / 8, n, cols, sorted);
  else if (n <= HYB_COL_FEW / 4)
    HybColSort_Inline(vectors / 4, n, cols, sorted);
  else if (n <= HYB_COL_FEW / 2)
    HybColSort_Inline(vectors / 2, n, cols, sorted);
  else
    HybColSort_Inline(vectors, n, cols, sorted);
}

typedef struct {
  uint64_t *l0, *l1, *l2;
} HybColSet;

/* for members 0..n-1; the set may have been created before (l0 is NULL if not). The three are one block. */
static inline PetscErrorCode HybColSetCreate(HybArena *work, PetscInt n, HybColSet *s)
{
  const PetscInt n0 = n / 64 + 2, n1 = n0 / 64 + 1;

  PetscFunctionBegin;
  PetscCall(HybArenaFree(work, &s->l0));
  PetscCall(HybArenaCalloc(work, HYB_MEM_HOST, (PetscCount)n0 + n1 + n1 / 64 + 1, sizeof(uint64_t), &s->l0));
  s->l1 = s->l0 + n0;
  s->l2 = s->l1 + n1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the members 64*w + (bits of mask) */
static inline void HybColSetAdd(const HybColSet *s, PetscInt w, uint64_t mask)
{
  const uint64_t old = s->l0[w];

  s->l0[w] = old | mask;
  if (!old) {
    const uint64_t old1 = s->l1[w >> 6];

    s->l1[w >> 6] = old1 | (uint64_t)1 << (w & 63);
    if (!old1) s->l2[w >> 12] |= (uint64_t)1 << ((w >> 6) & 63);
  }
}

/* writes base + each member in order, empties the set, returns their number; last: no member is larger */
static inline PetscInt HybColSetTake(const HybColSet *s, PetscInt base, PetscInt last, PetscInt *cols)
{
  const PetscInt end = (last >> 18) + 1;
  PetscInt      *p   = cols;

  for (PetscInt w2 = 0; w2 < end; w2++) {
    for (uint64_t b2 = s->l2[w2]; b2; b2 &= b2 - 1) {
      const PetscInt w1 = 64 * w2 + __builtin_ctzll(b2);

      for (uint64_t b1 = s->l1[w1]; b1; b1 &= b1 - 1) {
        const PetscInt w0 = 64 * w1 + __builtin_ctzll(b1), first = base + 64 * w0;

        for (uint64_t b0 = s->l0[w0]; b0; b0 &= b0 - 1) *p++ = first + __builtin_ctzll(b0);
        s->l0[w0] = 0;
      }
      s->l1[w1] = 0;
    }
    s->l2[w2] = 0;
  }
  return (PetscInt)(p - cols);
}

typedef struct _HybColChunk *HybColChunk;
struct _HybColChunk {
  HybColChunk next;
  PetscCount  used, size;
  PetscInt    cols[];
};

typedef struct {
  HybColChunk head, tail;
  PetscCount  chunk; /* columns of the next chunk */
} HybColList;

/* expected: columns that may come; it only shapes the chunks, of which a small product's has room for these */
static inline void HybColListInit(HybColList *list, PetscCount expected)
{
  list->head = list->tail = NULL;
  list->chunk             = PetscMin(PetscMax(expected / 16, PetscMin(expected + HYB_COL_FEW, (PetscCount)1 << 12)), (PetscCount)1 << 22);
}

/* makes sure of room for n more in one piece, which begins at HybColListEnd() */
static inline PetscErrorCode HybColListReserve(HybArena *work, HybColList *list, PetscCount n)
{
  PetscFunctionBegin;
  if (!list->tail || list->tail->size - list->tail->used < n) {
    const PetscCount size = PetscMax(list->chunk, n);
    HybColChunk      chunk;

    PetscCall(HybArenaAlloc(work, HYB_MEM_HOST, (PetscCount)sizeof(*chunk) + size * (PetscCount)sizeof(PetscInt), 1, &chunk));
    chunk->next = NULL;
    chunk->used = 0;
    chunk->size = size;
    if (list->tail)
      list->tail->next = chunk;
    else
      list->head = chunk;
    list->tail = chunk;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscInt *HybColListEnd(const HybColList *list)
{
  return list->tail->cols + list->tail->used;
}

/* cols (with room for all) = the list, which is empty then */
static inline PetscErrorCode HybColListMove(HybArena *work, HybColList *list, PetscInt *cols)
{
  PetscFunctionBegin;
  while (list->head) {
    HybColChunk chunk = list->head;

    if (chunk->used) memcpy(cols, chunk->cols, (size_t)chunk->used * sizeof(PetscInt));
    cols += chunk->used;
    list->head = chunk->next;
    PetscCall(HybArenaFree(work, &chunk));
  }
  list->tail = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

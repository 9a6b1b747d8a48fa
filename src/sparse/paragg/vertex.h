/*
  vertex.h: what the rules of aggregation on several processes say of one vertex (or entry, or row); one text for the
  host's loops and for kernels with a thread for each, which table.c and table.cu make of the list at the end. Each step
  only writes what belongs to its own k, or what no other one writes, so their order does not matter. What a step reads
  and writes is in its struct: constant arrays are read. aggregates.c, nested.c, tentative.c,
  prolong.c and graph.c say when which step comes and why.

  A process's vertices come first, 0..n-1, those of others that have an edge to one of them follow, n..all-1, ascending
  by their global numbers gid. The graph has a row for each: of an own vertex its neighbours and as a rule itself, of
  another's the own vertices that it is joined to, and, where weak edges were left out, itself.

    n; all          own vertices; others' too
    begin, end      the own vertices' global numbers are begin..end-1
    gi, gj, gid     the graph
    place           n: in the order of the shuffle
    now; told       n: states;  all: those at the end of the last sweep, as others know them
    parent          all: the root's global number, then the aggregate's; -1: none
    key             all: as of HybParAggOps.roots
    near            all: the own vertex that became a root beside this one in this sweep, -1: none
    far             2 all: of those beside it and itself the last undecided one, the root; -1
    number          n: of a root among the own ones
    cbegin, cend    the own aggregates' numbers are cbegin..cend-1
    coarse          all: of a root its aggregate, else -1
    beside          all: of the root beside this vertex, or itself, its aggregate; -1: none
    length          all: entries of each row, or NULL: rows have their own entries, or there is one hop
    asks; kept      2 all; all: see below; kept NULL: rows have their own entries
    lead, first     of each own aggregate the first of PETSc's list: here, its global number
    kind            n: see below, or NULL
    member          own aggregates, counted from 0, of own vertices and then of others' that are members
    list            nlist aggregates of others, by their numbers, ascending
*/
#ifndef AIJHYBRIDGPU_PARAGG_VERTEX_H
#define AIJHYBRIDGPU_PARAGG_VERTEX_H
#include "aijhybridgpu/private/hybparagg.h"

#if defined(__cplusplus)
  #define HYB_VERTEX_FUNCTION static __host__ __device__ __forceinline__
#else
  #define HYB_VERTEX_FUNCTION static inline
#endif

/* states; those of roots are their global numbers */
#define HYB_VERTEX_UNDECIDED (-2)
#define HYB_VERTEX_OUT       (-1)
#define HYB_VERTEX_ALONE     (-3)

/* The kinds of an aggregate's members, in the order of PETSc's list. Two hops: the root; own vertices that the root
   itself took; others' that it took and that are beside no root; own ones that are beside it and were handed over;
   others' beside it. One hop: what precedes the own vertices, these, what follows. */
#define HYB_VERTEX_KINDS 5

/* HYB_STEP(name, k, members of its struct s) { what it does to k }; the list of all is at the end */
#define HYB_STEP(Name, k, ...) \
  typedef struct {             \
    __VA_ARGS__;               \
  } HybStep##Name;             \
  HYB_VERTEX_FUNCTION void HybVertex##Name(const HybStep##Name *s, PetscInt k)

/* where x is among a[0..n-1], ascending; -1: nowhere */
HYB_VERTEX_FUNCTION PetscInt HybVertexFind(PetscInt n, const PetscInt *a, PetscInt x)
{
  PetscInt from = 0, to = n;

  while (from < to) {
    const PetscInt mid = from + (to - from) / 2;

    if (a[mid] < x)
      from = mid + 1;
    else
      to = mid;
  }
  return from < n && a[from] == x ? from : -1;
}

/* the kind of a member of aggregate c, of one hop */
HYB_VERTEX_FUNCTION PetscInt HybVertexKindOfOne(PetscInt cbegin, PetscInt cend, PetscInt c)
{
  return c >= cbegin && c < cend ? 1 : c < cbegin ? 2
                                                  : 0;
}

/* A vertex that has no neighbour belongs to no aggregate; of others nothing is known yet. Where rows lack their own
   entry, one of one hop is alone with an own neighbour, not with another process's; of two hops, length being given,
   with neighbours that have no other one. */
HYB_STEP(Start, v, PetscInt n, *now, *told, *parent; const PetscInt *gi, *gj, *length)
{
  PetscBool alone = PETSC_TRUE;

  s->parent[v] = -1;
  s->told[v]   = HYB_VERTEX_UNDECIDED;
  if (v >= s->n) return;
  if (s->length)
    for (PetscInt e = s->gi[v]; e < s->gi[v + 1] && alone; e++) alone = (PetscBool)(s->length[s->gj[e]] < 2);
  else
    alone = (PetscBool)(s->gi[v + 1] - s->gi[v] < 2 && (s->gi[v + 1] == s->gi[v] || s->gj[s->gi[v]] < s->n));
  s->now[v] = alone ? HYB_VERTEX_ALONE : HYB_VERTEX_UNDECIDED;
}

HYB_STEP(Length, v, PetscInt *length; const PetscInt *gi)
{
  s->length[v] = s->gi[v + 1] - s->gi[v];
}

/* by what was told. Two hops: of own vertices' rows, others tell of theirs. One: the neighbour itself. */
HYB_STEP(Reach, w, PetscInt n, *far; int hops; const PetscInt *gi, *gj, *gid, *told)
{
  PetscInt last = -1, root = -1;

  if (s->hops == 2) {
    for (PetscInt e = s->gi[w]; e < s->gi[w + 1]; e++) {
      const PetscInt u = s->gj[e], state = s->told[u];

      if (state == HYB_VERTEX_UNDECIDED && s->gid[u] > last) last = s->gid[u];
      if (state >= 0) root = state;
    }
  } else if (w >= s->n) {
    if (s->told[w] == HYB_VERTEX_UNDECIDED) last = s->gid[w];
    if (s->told[w] >= 0) root = s->told[w];
  }
  s->far[2 * (size_t)w]     = last;
  s->far[2 * (size_t)w + 1] = root;
}

/* a vertex within reach of an undecided one of a later process has to wait */
HYB_STEP(Key, v, PetscInt n, end, *key; const PetscInt *gi, *gj, *place, *now, *far)
{
  PetscBool open = (PetscBool)(v < s->n && s->now[v] == HYB_VERTEX_UNDECIDED);

  if (open)
    for (PetscInt e = s->gi[v]; e < s->gi[v + 1]; e++)
      if (s->far[2 * (size_t)s->gj[e]] >= s->end) open = PETSC_FALSE;
  s->key[v] = open ? s->place[v] + 1 : PETSC_MAX_INT;
}

/* no two new roots are `hops` steps apart, so there is one beside a vertex at most (two hops), or itself (one) */
HYB_STEP(Near, w, PetscInt n, *near; int hops; const PetscInt *gi, *gj, *key)
{
  PetscInt root = s->hops == 1 && w < s->n && s->key[w] == 0 ? w : -1;

  if (s->hops == 2)
    for (PetscInt e = s->gi[w]; e < s->gi[w + 1]; e++)
      if (s->key[s->gj[e]] == 0) root = s->gj[e];
  s->near[w] = root;
}

/* An undecided vertex within reach of new roots belongs to the one that comes first in the shuffle, and so does one
   alone, of one hop. flag, or NULL: was it alone when its turn came? */
HYB_STEP(Take, v, PetscInt begin, *now, *told, *parent, *flag; const PetscInt *gi, *gj, *place, *key, *near)
{
  const PetscBool alone = (PetscBool)(s->now[v] == HYB_VERTEX_ALONE);
  PetscInt        first = -1;

  if (s->now[v] == HYB_VERTEX_UNDECIDED || alone) {
    if (s->key[v] == 0) {
      s->now[v]    = s->begin + v;
      s->parent[v] = s->begin + v;
    } else {
      for (PetscInt e = s->gi[v]; e < s->gi[v + 1]; e++) {
        const PetscInt r = s->near[s->gj[e]];

        if (r >= 0 && (first < 0 || s->place[r] < s->place[first])) first = r;
      }
      if (first >= 0) {
        s->now[v]    = HYB_VERTEX_OUT;
        s->parent[v] = s->begin + first;
      }
    }
  }
  if (s->flag) s->flag[v] = alone && (first < 0 || s->place[first] > s->place[v]);
  s->told[v] = s->now[v];
}

/* so does one within reach of another process's roots, to the first of them; flag: still undecided */
HYB_STEP(Leave, v, const PetscInt *gi, *gj, *far; PetscInt * now, *parent, *flag)
{
  if (s->now[v] == HYB_VERTEX_UNDECIDED) {
    PetscInt root = -1;

    for (PetscInt e = s->gi[v]; e < s->gi[v + 1]; e++) {
      const PetscInt r = s->far[2 * (size_t)s->gj[e] + 1];

      if (r >= 0 && (root < 0 || r < root)) root = r;
    }
    if (root >= 0) {
      s->now[v]    = HYB_VERTEX_OUT;
      s->parent[v] = root;
    }
  }
  s->flag[v] = s->now[v] == HYB_VERTEX_UNDECIDED;
}

/* own vertices of one sort: those without neighbours, or roots */
HYB_STEP(Mark, v, PetscBool alone; const PetscInt *now; PetscInt * flag)
{
  s->flag[v] = s->alone ? s->now[v] == HYB_VERTEX_ALONE : s->now[v] >= 0;
}

HYB_STEP(Coarse, v, PetscInt cbegin, *coarse; const PetscInt *now, *number)
{
  s->coarse[v] = s->now[v] >= 0 ? s->cbegin + s->number[v] : -1;
}

/* two hops: by what others told of their roots; a root's is its own, though one may be beside it where rows lack their
   own entry */
HYB_STEP(Beside, w, PetscInt n, *beside; int hops; const PetscInt *gi, *gj, *coarse)
{
  PetscInt c = s->coarse[w];

  if (s->hops == 2 && w < s->n && c < 0)
    for (PetscInt e = s->gi[w]; e < s->gi[w + 1]; e++)
      if (s->coarse[s->gj[e]] >= 0) c = s->coarse[s->gj[e]];
  s->beside[w] = c;
}

/* Two hops, where rows lack their own entry: PETSc's process of a root takes a vertex beside it from another process
   only if that is a ghost of its part of the square graph. So who has one asks whether two steps lead from it to any
   vertex of that process, whose vertices are from..to-1; -1: nothing is asked. */
HYB_STEP(Ask, v, PetscInt size, cbegin, cend, *asks; const PetscInt *ranges, *cranges, *now, *beside)
{
  const PetscInt c    = s->now[v] >= 0 ? -1 : s->beside[v];
  PetscInt       rank = 0;

  s->asks[2 * (size_t)v]     = -1;
  s->asks[2 * (size_t)v + 1] = -1;
  if (c < 0 || (c >= s->cbegin && c < s->cend)) return;
  while (rank + 1 < s->size && s->cranges[rank + 1] <= c) rank++;
  s->asks[2 * (size_t)v]     = s->ranges[rank];
  s->asks[2 * (size_t)v + 1] = s->ranges[rank + 1];
}

/* by way of own vertices */
HYB_STEP(Answer, w, PetscInt n, *kept; const PetscInt *gi, *gj, *gid, *asks)
{
  const PetscInt from = s->asks[2 * (size_t)w], to = s->asks[2 * (size_t)w + 1];
  PetscInt       found = 0;

  for (PetscInt e = s->gi[w]; e < s->gi[w + 1] && from >= 0 && !found; e++) {
    const PetscInt y = s->gj[e];

    for (PetscInt d = s->gi[y]; y < s->n && d < s->gi[y + 1]; d++) found |= s->gid[s->gj[d]] >= from && s->gid[s->gj[d]] < to;
  }
  s->kept[w] = found;
}

/* from roots to aggregates. Two hops: a neighbour of a root is that root's, whoever took it; a root of another process
   that took this vertex is beside one of its neighbours. One hop: it is one of them. */
HYB_STEP(Parent, v, PetscInt begin, end, cbegin, cend, *parent, *kind; int hops; const PetscInt *gi, *gj, *now, *far, *coarse, *beside, *kept)
{
  const PetscInt root = s->parent[v];
  PetscInt       c    = -1;

  if (s->hops == 2 && s->beside[v] >= 0)
    c = s->kept && s->now[v] < 0 && (s->beside[v] < s->cbegin || s->beside[v] >= s->cend) && !s->kept[v] ? -1 : s->beside[v];
  else if (root >= s->begin && root < s->end)
    c = s->coarse[root - s->begin];
  else if (root >= 0)
    for (PetscInt e = s->gi[v]; e < s->gi[v + 1]; e++)
      if (s->far[2 * (size_t)s->gj[e] + 1] == root) c = s->beside[s->gj[e]];
  if (s->kind && c >= 0 && s->hops == 1)
    s->kind[v] = HybVertexKindOfOne(s->cbegin, s->cend, c);
  else if (s->kind && c >= 0) {
    const PetscBool own = (PetscBool)(c >= s->cbegin && c < s->cend), beside = (PetscBool)(s->beside[v] == c);

    if (!own)
      s->kind[v] = beside ? 4 : 2;
    else if (s->now[v] >= 0)
      s->kind[v] = 0;
    else /* taken over, if it is beside its root */
      s->kind[v] = beside && !(root >= s->begin && root < s->end && s->coarse[root - s->begin] == c) ? 3 : 1;
  }
  s->parent[v] = c;
}

/* PETSc's list begins with the root, or (one hop) with the smallest member: all members are beside the root then */
HYB_STEP(Lead, v, PetscInt n, *lead, *first; int hops; const PetscInt *gi, *gj, *gid, *now, *number, *parent, *coarse)
{
  PetscInt least = v;

  if (s->now[v] < 0) return;
  if (s->hops == 1)
    for (PetscInt e = s->gi[v]; e < s->gi[v + 1]; e++)
      if (s->parent[s->gj[e]] == s->coarse[v] && s->gid[s->gj[e]] < s->gid[least]) least = s->gj[e];
  s->lead[s->number[v]]  = least < s->n ? least : -1;
  s->first[s->number[v]] = s->gid[least];
}

/* from aggregates, by this process's numbers (local), to those of which table[] of them are members: of one hop */
HYB_STEP(Compose, v, PetscInt n, cbegin, cend, *parent, *kind; const PetscInt *local, *table)
{
  const PetscInt c = s->local[v] < 0 ? -1 : s->table[s->local[v]];

  if (s->kind && v < s->n && c >= 0) s->kind[v] = HybVertexKindOfOne(s->cbegin, s->cend, c);
  s->parent[v] = c;
}

/* row c of p: the members, ascending */
HYB_STEP(Smallest, c, PetscInt begin, end, *lead, *first; const PetscInt *pi, *pj)
{
  const PetscInt first = s->pj[s->pi[c]];

  s->first[c] = first;
  s->lead[c]  = first >= s->begin && first < s->end ? first - s->begin : -1;
}

/* numbers of begin..end-1, counted from there; -1 for others */
HYB_STEP(Within, k, PetscInt begin, end, *to; const PetscInt *from)
{
  s->to[k] = s->from[k] >= s->begin && s->from[k] < s->end ? s->from[k] - s->begin : -1;
}

/* member n+k, which is another process's vertex, may be the first of its aggregate */
HYB_STEP(First, k, PetscInt n, *lead; const PetscInt *member, *others, *first)
{
  const PetscInt c = s->member[s->n + k];

  if (s->others[k] == s->first[c]) s->lead[c] = s->n + k;
}

/* Q's entry, where the aggregate is another process's by its R: column.h has the rules, which say that R is 0 where
   nothing but zeros follows a first entry that is 0 */
HYB_STEP(Entry, v, PetscInt nlist; const PetscInt *gid, *parent, *member, *list, *listfirst; const HybScalar *b, *r, *listr; HybScalar * q)
{
  const PetscInt c = s->parent[v], k = s->member[v] >= 0 || c < 0 ? -1 : HybVertexFind(s->nlist, s->list, c);

  if (s->member[v] >= 0)
    s->q[v] = s->r[v];
  else if (k < 0)
    s->q[v] = 0;
  else if (!s->b)
    s->q[v] = (PetscReal)1 / HYB_AGG_REAL(s->listr[k]);
  else if (HYB_AGG_REAL(s->listr[k]) == 0)
    s->q[v] = s->listfirst[k] == s->gid[v] ? 1 : 0;
  else
    s->q[v] = HYB_AGG_REAL(s->b[v]) / HYB_AGG_REAL(s->listr[k]);
}

/* the number of its aggregate here: own ones first, then those of others that are listed */
HYB_STEP(Local, v, PetscInt cbegin, cend, nlist, *local; const PetscInt *parent, *list)
{
  const PetscInt c = s->parent[v];

  if (c < 0)
    s->local[v] = -1;
  else
    s->local[v] = c >= s->cbegin && c < s->cend ? c - s->cbegin : s->cend - s->cbegin + HybVertexFind(s->nlist, s->list, c);
}

/* of the columns of P, own ones first: which are own, which are others' */
HYB_STEP(Column, c, PetscInt columns, *own, *others)
{
  s->own[c]    = c < s->columns ? c : -1;
  s->others[c] = c < s->columns ? -1 : c - s->columns;
}

/* aggregates of vertices that no row of A names are not looked for */
HYB_STEP(Beyond, k, const PetscInt *beyond; PetscInt * parent)
{
  s->parent[s->beyond[k]] = -1;
}

/* flag: how many of the entries that others sent for own row row[k] are not in the off-diagonal block; those that are
   go across */
HYB_STEP(Match, k, const PetscInt *ri, *rj, *row, *oi, *oj, *garray; const HybScalar *ra; PetscInt * flag; HybScalar * across)
{
  PetscInt missing = 0;

  for (PetscInt e = s->ri[k]; e < s->ri[k + 1]; e++) {
    PetscInt from = s->oi[s->row[k]], to = s->oi[s->row[k] + 1];

    while (from < to) {
      const PetscInt mid = from + (to - from) / 2;

      if (s->garray[s->oj[mid]] < s->rj[e])
        from = mid + 1;
      else
        to = mid;
    }
    if (!(from < s->oi[s->row[k] + 1] && s->garray[s->oj[from]] == s->rj[e]))
      missing++;
    else if (s->across)
      s->across[from] = s->ra[e];
  }
  s->flag[k] = missing;
}

/* flag: rows of P0 whose aggregate no entry of A's row leads to, by this process's numbers */
HYB_STEP(Outside, r, PetscInt bs, *flag; const PetscInt *ai, *aj, *local)
{
  const PetscInt c     = s->local[r / s->bs];
  PetscBool      found = (PetscBool)(c < 0);

  for (PetscInt e = s->ai[r]; e < s->ai[r + 1] && !found; e++) found = (PetscBool)(s->local[s->aj[e] / s->bs] == c);
  s->flag[r] = !found;
}

/* its kind as a number that goes with a row's entries */
HYB_STEP(Kind, v, const PetscInt *parent, *kind; HybScalar * to)
{
  s->to[v] = s->parent[v] >= 0 ? (HybScalar)s->kind[v] : (HybScalar)0;
}

HYB_STEP(Translations, r, PetscInt rows; HybAggBlock block; HybScalar * to)
{
  for (PetscInt t = 0; t < s->block.nvec; t++) s->to[t * (size_t)s->rows + r] = (HybScalar)(r % s->block.bs == t ? 1 : 0);
}

HYB_STEP(ToColumns, r, PetscInt rows, nvec; const HybScalar *from; HybScalar * to)
{
  for (PetscInt t = 0; t < s->nvec; t++) s->to[t * (size_t)s->rows + r] = s->from[r * (size_t)s->nvec + t];
}

HYB_STEP(ToRows, r, PetscInt rows, nvec; const HybScalar *from; HybScalar * to)
{
  for (PetscInt t = 0; t < s->nvec; t++) s->to[r * (size_t)s->nvec + t] = s->from[t * (size_t)s->rows + r];
}

/* all steps */
#define HYB_VERTEX_STEPS(STEP) STEP(Start) STEP(Length) STEP(Reach) STEP(Key) STEP(Near) STEP(Take) STEP(Leave) STEP(Mark) STEP(Coarse) STEP(Beside) STEP(Ask) STEP(Answer) STEP(Parent) STEP(Lead) STEP(Compose) STEP(Smallest) STEP(Within) STEP(First) STEP(Entry) STEP(Local) STEP(Column) STEP(Beyond) STEP(Match) STEP(Outside) STEP(Kind) STEP(Translations) STEP(ToColumns) STEP(ToRows)

#define HYB_STEP_NUMBER(Step) HYB_STEP_##Step,
enum {
  HYB_VERTEX_STEPS(HYB_STEP_NUMBER)
};
#endif

/*
  vertex.h: what the rules of aggregation on several processes say of one vertex (or entry, or row); one text for the
  host's loops and for kernels with a thread for each. Each step only writes what belongs to its own k, or what no other
  one writes, so their order does not matter. aggregates.c, tentative.c, tentativeblocks.c, prolong.c and graph.c say
  when which step comes and why.

  A process's vertices come first, 0..n-1, those of others that have an edge to one of them follow, n..all-1, ascending
  by their global numbers gid. The graph has a row for each: of an own vertex all its neighbours and itself, of
  another's the own vertices that it is joined to, and, where weak edges were left out, itself.
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

enum {
  /* aggregates.c */
  HYB_STEP_START,
  HYB_STEP_REACH,
  HYB_STEP_KEY,
  HYB_STEP_NEAR,
  HYB_STEP_TAKE,
  HYB_STEP_LEAVE,
  HYB_STEP_ROOT,
  HYB_STEP_COARSE,
  HYB_STEP_BESIDE,
  HYB_STEP_PARENT,
  HYB_STEP_LEAD,
  HYB_STEP_ALONE,
  /* nested.c */
  HYB_STEP_COMPOSE,
  HYB_STEP_SMALLEST,
  /* tentative.c */
  HYB_STEP_OWN,
  HYB_STEP_FIRST,
  HYB_STEP_ENTRY,
  /* prolong.c */
  HYB_STEP_LOCAL,
  HYB_STEP_APART,
  HYB_STEP_COLUMN,
  HYB_STEP_BEYOND,
  /* graph.c */
  HYB_STEP_MATCH,
  /* tentativeblocks.c */
  HYB_STEP_KIND,
  HYB_STEP_TRANSLATIONS,
  HYB_STEP_TOCOLUMNS,
  HYB_STEP_TOROWS
};

/* The kinds of an aggregate's members, in the order of PETSc's list. Two hops: the root; own vertices that the root
   itself took; others' that it took and that are beside no root; own ones that are beside it and were handed over;
   others' beside it. One hop: what precedes the own vertices, these, what follows. */
#define HYB_VERTEX_KINDS 5

typedef struct _HybParAggStep {
  PetscInt        n, all, begin, end; /* begin..end-1: the own vertices' global numbers */
  int             hops;
  const PetscInt *gi, *gj, *gid; /* the graph */
  const PetscInt *place;         /* n: in the order of the shuffle */
  PetscInt       *now;           /* n: states */
  PetscInt       *told;          /* all: states at the end of the last sweep, as others know them */
  PetscInt       *parent;        /* all: the root's global number, then the aggregate's; -1: none */
  PetscInt       *key;           /* all: as of HybParAggOps.roots */
  PetscInt       *near;          /* all: the own vertex that became a root beside this one in this sweep, -1: none */
  PetscInt       *far;           /* 2 all: of those beside it and itself the last undecided one, the root; -1 */
  PetscInt       *flag;          /* n */
  const PetscInt *number;        /* n: of a root among the own ones; nested.c: of aggregates their aggregates */
  PetscInt        cbegin, cend;  /* the own aggregates' numbers */
  PetscInt       *coarse;        /* all: of a root its aggregate, else -1 */
  PetscInt       *beside;        /* all: of the root beside this vertex, or itself, its aggregate; -1: none */
  PetscInt       *lead, *first;  /* of each own aggregate the first of PETSc's list: here, its global number */
  PetscInt       *kind;          /* n: see above, or NULL */
  /* members of own aggregates: own vertices, then others' */
  const PetscInt *others; /* global numbers of the latter */
  PetscInt       *member; /* own aggregates, counted from 0 */
  /* aggregates of others */
  PetscInt         nlist;
  const PetscInt  *list, *listfirst; /* their numbers, ascending; first[] of each */
  const HybScalar *listr;            /* and R */
  const HybScalar *b, *r;            /* the vector, or NULL; r: entries of Q of own aggregates' members */
  HybScalar       *q;
  const PetscInt  *pi, *pj; /* of each own aggregate its members, ascending */
  PetscInt        *local;   /* see the steps */
  PetscInt         columns; /* the own ones of them */
  /* vectors of several unknowns a vertex, by columns `rows` apart, and by rows */
  HybAggBlock      block;
  PetscInt         rows;
  const HybScalar *from;
  HybScalar       *to;
  /* the symmetry of what is between processes */
  const PetscInt  *ri, *rj, *row;    /* rows that others sent, and whose they are */
  const PetscInt  *oi, *oj, *garray; /* the off-diagonal block */
  const HybScalar *ra;               /* with values, or NULL */
  HybScalar       *across;           /* of each entry of the off-diagonal block the one across the diagonal */
} HybParAggStep;

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

/* a vertex that has no neighbour belongs to no aggregate; of others nothing is known yet */
HYB_VERTEX_FUNCTION void HybVertexStart(const HybParAggStep *s, PetscInt v)
{
  s->parent[v] = -1;
  s->told[v]   = HYB_VERTEX_UNDECIDED;
  if (v < s->n) s->now[v] = s->gi[v + 1] - s->gi[v] < 2 ? HYB_VERTEX_ALONE : HYB_VERTEX_UNDECIDED;
}

/* by what was told. Two hops: of own vertices' rows, others tell of theirs. One: the neighbour itself. */
HYB_VERTEX_FUNCTION void HybVertexReach(const HybParAggStep *s, PetscInt w)
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
HYB_VERTEX_FUNCTION void HybVertexKey(const HybParAggStep *s, PetscInt v)
{
  PetscBool open = (PetscBool)(v < s->n && s->now[v] == HYB_VERTEX_UNDECIDED);

  if (open)
    for (PetscInt e = s->gi[v]; e < s->gi[v + 1]; e++)
      if (s->far[2 * (size_t)s->gj[e]] >= s->end) open = PETSC_FALSE;
  s->key[v] = open ? s->place[v] + 1 : PETSC_MAX_INT;
}

/* new roots are more than `hops` steps apart, so there is one beside a vertex at most (two hops), or itself (one) */
HYB_VERTEX_FUNCTION void HybVertexNear(const HybParAggStep *s, PetscInt w)
{
  PetscInt root = w < s->n && s->key[w] == 0 ? w : -1;

  if (s->hops == 2)
    for (PetscInt e = s->gi[w]; e < s->gi[w + 1]; e++)
      if (s->key[s->gj[e]] == 0) root = s->gj[e];
  s->near[w] = root;
}

/* an undecided vertex within reach of new roots belongs to the one that comes first in the shuffle */
HYB_VERTEX_FUNCTION void HybVertexTake(const HybParAggStep *s, PetscInt v)
{
  if (s->now[v] == HYB_VERTEX_UNDECIDED) {
    PetscInt first = -1;

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
  s->told[v] = s->now[v];
}

/* so does one within reach of another process's roots, to the first of them; flag: still undecided */
HYB_VERTEX_FUNCTION void HybVertexLeave(const HybParAggStep *s, PetscInt v)
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

HYB_VERTEX_FUNCTION void HybVertexCoarse(const HybParAggStep *s, PetscInt v)
{
  s->coarse[v] = s->now[v] >= 0 ? s->cbegin + s->number[v] : -1;
}

/* two hops: by what others told of their roots */
HYB_VERTEX_FUNCTION void HybVertexBeside(const HybParAggStep *s, PetscInt w)
{
  PetscInt c = s->coarse[w];

  if (s->hops == 2 && w < s->n)
    for (PetscInt e = s->gi[w]; e < s->gi[w + 1]; e++)
      if (s->coarse[s->gj[e]] >= 0) c = s->coarse[s->gj[e]];
  s->beside[w] = c;
}

/* of a member of aggregate c, which took it over if it is beside its root */
HYB_VERTEX_FUNCTION PetscInt HybVertexKind(const HybParAggStep *s, PetscInt v, PetscInt c)
{
  const PetscBool own  = (PetscBool)(c >= s->cbegin && c < s->cend);
  const PetscInt  root = s->parent[v];
  PetscBool       beside;

  if (s->hops == 1) return own ? 1 : c < s->cbegin ? 2
                                                   : 0;
  beside = (PetscBool)(s->beside[v] == c);
  if (!own) return beside ? 4 : 2;
  if (s->now[v] >= 0) return 0;
  return beside && !(root >= s->begin && root < s->end && s->coarse[root - s->begin] == c) ? 3 : 1;
}

/* from roots to aggregates. Two hops: a neighbour of a root is that root's, whoever took it; a root of another process
   that took this vertex is beside one of its neighbours. One hop: it is one of them. */
HYB_VERTEX_FUNCTION void HybVertexParent(const HybParAggStep *s, PetscInt v)
{
  const PetscInt root = s->parent[v];
  PetscInt       c    = -1;

  if (s->hops == 2 && s->beside[v] >= 0)
    c = s->beside[v];
  else if (root >= s->begin && root < s->end)
    c = s->coarse[root - s->begin];
  else if (root >= 0)
    for (PetscInt e = s->gi[v]; e < s->gi[v + 1]; e++)
      if (s->far[2 * (size_t)s->gj[e] + 1] == root) c = s->beside[s->gj[e]];
  if (s->kind && c >= 0) s->kind[v] = HybVertexKind(s, v, c);
  s->parent[v] = c;
}

/* PETSc's list begins with the root, or (one hop) with the smallest member: all members are beside the root then */
HYB_VERTEX_FUNCTION void HybVertexLead(const HybParAggStep *s, PetscInt v)
{
  PetscInt least = v;

  if (s->now[v] < 0) return;
  if (s->hops == 1)
    for (PetscInt e = s->gi[v]; e < s->gi[v + 1]; e++)
      if (s->parent[s->gj[e]] == s->coarse[v] && s->gid[s->gj[e]] < s->gid[least]) least = s->gj[e];
  s->lead[s->number[v]]  = least < s->n ? least : -1;
  s->first[s->number[v]] = s->gid[least];
}

/* from aggregates, by local number, to those of which number[] of them are members */
HYB_VERTEX_FUNCTION void HybVertexCompose(const HybParAggStep *s, PetscInt v)
{
  const PetscInt c = s->local[v] < 0 ? -1 : s->number[s->local[v]];

  if (s->kind && v < s->n && c >= 0) s->kind[v] = HybVertexKind(s, v, c);
  s->parent[v] = c;
}

/* row c of p: the members, ascending */
HYB_VERTEX_FUNCTION void HybVertexSmallest(const HybParAggStep *s, PetscInt c)
{
  const PetscInt first = s->pj[s->pi[c]];

  s->first[c] = first;
  s->lead[c]  = first >= s->begin && first < s->end ? first - s->begin : -1;
}

HYB_VERTEX_FUNCTION void HybVertexOwn(const HybParAggStep *s, PetscInt v)
{
  s->member[v] = s->parent[v] >= s->cbegin && s->parent[v] < s->cend ? s->parent[v] - s->cbegin : -1;
}

/* member n+k, which is another process's vertex, may be the first of its aggregate */
HYB_VERTEX_FUNCTION void HybVertexFirst(const HybParAggStep *s, PetscInt k)
{
  const PetscInt c = s->member[s->n + k];

  if (s->others[k] == s->first[c]) s->lead[c] = s->n + k;
}

/* Q's entry, where the aggregate is another process's by its R: column.h has the rules, which say that R is 0 where
   nothing but zeros follows a first entry that is 0 */
HYB_VERTEX_FUNCTION void HybVertexEntry(const HybParAggStep *s, PetscInt v)
{
  const PetscInt c = s->parent[v], k = s->member[v] >= 0 || c < 0 ? -1 : HybVertexFind(s->nlist, s->list, c);

  if (s->member[v] >= 0)
    s->q[v] = s->r[v];
  else if (k < 0)
    s->q[v] = 0;
  else if (!s->b)
    s->q[v] = (HybScalar)1 / s->listr[k];
  else if (s->listr[k] == (HybScalar)0)
    s->q[v] = s->listfirst[k] == s->gid[v] ? 1 : 0;
  else
    s->q[v] = s->b[v] / s->listr[k];
}

/* the number of its aggregate here: own ones first, then those of others that are listed */
HYB_VERTEX_FUNCTION void HybVertexLocal(const HybParAggStep *s, PetscInt v)
{
  const PetscInt c = s->parent[v];

  if (c < 0)
    s->local[v] = -1;
  else
    s->local[v] = c >= s->cbegin && c < s->cend ? c - s->cbegin : s->cend - s->cbegin + HybVertexFind(s->nlist, s->list, c);
}

/* those of others alone, counted from 0 */
HYB_VERTEX_FUNCTION void HybVertexApart(const HybParAggStep *s, PetscInt v)
{
  const PetscInt own = s->cend - s->cbegin;

  s->member[v] = s->local[v] < own ? -1 : s->local[v] - own;
}

/* of the columns of P, own ones first: which are own (local), which are others' (local + all columns) */
HYB_VERTEX_FUNCTION void HybVertexColumn(const HybParAggStep *s, PetscInt c)
{
  const PetscInt all = s->columns + s->nlist;

  s->local[c]       = c < s->columns ? c : -1;
  s->local[all + c] = c < s->columns ? -1 : c - s->columns;
}

/* flag: how many of the entries that others sent for own row row[k] are not in the off-diagonal block; those that are
   go across */
HYB_VERTEX_FUNCTION void HybVertexMatch(const HybParAggStep *s, PetscInt k)
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

/* its kind as a number that goes with a row's entries */
HYB_VERTEX_FUNCTION void HybVertexKindValue(const HybParAggStep *s, PetscInt v)
{
  s->to[v] = s->parent[v] >= 0 ? (HybScalar)s->kind[v] : (HybScalar)0;
}

HYB_VERTEX_FUNCTION void HybVertexTranslations(const HybParAggStep *s, PetscInt r)
{
  for (PetscInt t = 0; t < s->block.nvec; t++) s->to[t * (size_t)s->rows + r] = (HybScalar)(r % s->block.bs == t ? 1 : 0);
}

HYB_VERTEX_FUNCTION void HybVertexToColumns(const HybParAggStep *s, PetscInt r)
{
  for (PetscInt t = 0; t < s->block.nvec; t++) s->to[t * (size_t)s->rows + r] = s->from[r * (size_t)s->block.nvec + t];
}

HYB_VERTEX_FUNCTION void HybVertexToRows(const HybParAggStep *s, PetscInt r)
{
  for (PetscInt t = 0; t < s->block.nvec; t++) s->to[r * (size_t)s->block.nvec + t] = s->from[t * (size_t)s->rows + r];
}

HYB_VERTEX_FUNCTION void HybVertexStep(int step, const HybParAggStep *s, PetscInt k)
{
  switch (step) {
  case HYB_STEP_START:
    HybVertexStart(s, k);
    break;
  case HYB_STEP_REACH:
    HybVertexReach(s, k);
    break;
  case HYB_STEP_KEY:
    HybVertexKey(s, k);
    break;
  case HYB_STEP_NEAR:
    HybVertexNear(s, k);
    break;
  case HYB_STEP_TAKE:
    HybVertexTake(s, k);
    break;
  case HYB_STEP_LEAVE:
    HybVertexLeave(s, k);
    break;
  case HYB_STEP_ROOT:
    s->flag[k] = s->now[k] >= 0;
    break;
  case HYB_STEP_COARSE:
    HybVertexCoarse(s, k);
    break;
  case HYB_STEP_BESIDE:
    HybVertexBeside(s, k);
    break;
  case HYB_STEP_PARENT:
    HybVertexParent(s, k);
    break;
  case HYB_STEP_LEAD:
    HybVertexLead(s, k);
    break;
  case HYB_STEP_ALONE:
    s->flag[k] = s->now[k] == HYB_VERTEX_ALONE;
    break;
  case HYB_STEP_COMPOSE:
    HybVertexCompose(s, k);
    break;
  case HYB_STEP_SMALLEST:
    HybVertexSmallest(s, k);
    break;
  case HYB_STEP_OWN:
    HybVertexOwn(s, k);
    break;
  case HYB_STEP_FIRST:
    HybVertexFirst(s, k);
    break;
  case HYB_STEP_ENTRY:
    HybVertexEntry(s, k);
    break;
  case HYB_STEP_LOCAL:
    HybVertexLocal(s, k);
    break;
  case HYB_STEP_APART:
    HybVertexApart(s, k);
    break;
  case HYB_STEP_BEYOND: /* no row of A names it */
    s->parent[s->list[k]] = -1;
    break;
  case HYB_STEP_COLUMN:
    HybVertexColumn(s, k);
    break;
  case HYB_STEP_MATCH:
    HybVertexMatch(s, k);
    break;
  case HYB_STEP_KIND:
    HybVertexKindValue(s, k);
    break;
  case HYB_STEP_TRANSLATIONS:
    HybVertexTranslations(s, k);
    break;
  case HYB_STEP_TOCOLUMNS:
    HybVertexToColumns(s, k);
    break;
  case HYB_STEP_TOROWS:
    HybVertexToRows(s, k);
    break;
  }
}
#endif

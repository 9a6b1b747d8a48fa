/*
  hybparprod.h: PETSc's sparse products (AB, AtB, ABt, PtAP, RARt, ABC) of matrices that are distributed by rows, over
  the sequential products of each process and what comm passes between them.
*/
#ifndef AIJHYBRIDGPU_HYBPARPROD_H
#define AIJHYBRIDGPU_HYBPARPROD_H
#include "hybcomm.h"
#include "hybproduct.h"

HYB_EXTERN_C_BEGIN

/* This process's rows of a distributed matrix, by reference. D has the columns that the process owns. O has those
   columns of other processes that have entries; its column k is global column garray[k]. The arrays rows, columns and
   garray are on the
   host: process r owns rows rows[r] to rows[r+1]-1 and columns columns[r] to columns[r+1]-1. */
typedef struct {
  const PetscInt *rows, *columns;
  HybCSR          D, O;
  const PetscInt *garray; /* ascending; O.n of them */
} HybParCSR;

/* What a process does alone with its part of parallel matrices. Arrays live where the backend executes unless it is
   said otherwise; results do not depend on the run. */
typedef struct _HybLocalOps {
  /* The part of a parallel matrix that one process has (local.c). D has its own columns, O those of others, in
     ascending order of their global numbers, the first nleft of them being left of its own. M is both: columns in their
     global order, others' to the left, own, others' to the right. M->i, M->j from keep (memory exec->result). */
  PetscErrorCode (*mergeblocks)(const HybExec *, HybArena *keep, const HybCSR *D, const HybCSR *O, PetscInt nleft, HybCSR *M);
  /* M->a from the two; patterns as in mergeblocks */
  PetscErrorCode (*mergevalues)(const HybExec *, const HybCSR *D, const HybCSR *O, PetscInt nleft, HybCSR *M);
  /* part[0] = A(:, cstart:cend-1), columns counted from cstart; part[1] = all else, columns as they are. Entry k of
     part[p] is A's entry perm[p][k]. part[]->i, j from keep (memory exec->result), perm[] too. */
  PetscErrorCode (*splitcolumns)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt cstart, PetscInt cend, HybCSR part[2], PetscInt *perm[2]);
  /* C = rows begin[p] to end[p]-1 of piece p, p < n <= 4, one below the other; C->i, j from keep (memory exec->result).
     Entries first[p] on of piece p are entries place[p] to place[p+1]-1 of C; first and place are the host's. */
  PetscErrorCode (*stackrows)(const HybExec *, HybArena *keep, PetscInt n, const HybCSR *const piece[], const PetscInt begin[], const PetscInt end[], HybCSR *C, PetscCount first[], PetscCount place[]);
  /* *list (from keep): the *count numbers among j[0..n-1] outside cstart..cend-1, ascending, each once. j[] >= 0. */
  PetscErrorCode (*outsidecolumns)(const HybExec *, HybArena *keep, HybArena *work, PetscCount n, const PetscInt *j, PetscInt cstart, PetscInt cend, PetscInt *count, PetscInt **list);
  /* j[k], a global number, becomes its place among list[0..nleft-1], cstart..cend-1, list[nleft..nlist-1], in which it
     is */
  PetscErrorCode (*numbercolumns)(const HybExec *, PetscCount n, PetscInt *j, PetscInt cstart, PetscInt cend, PetscInt nlist, PetscInt nleft, const PetscInt *list);
  /* j[k] = map[j[k]] where that is not negative */
  PetscErrorCode (*mapcolumns)(const HybExec *, PetscCount n, const PetscInt *map, PetscInt *j);
  /* *list: the *count columns that have entries, ascending; (*map)[c] = c's place in the list, or -1; both from keep */
  PetscErrorCode (*usedcolumns)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt *count, PetscInt **list, PetscInt **map);
  /* C = A without its empty rows, with A's j and a: row k is A's row rows[k], map[rows[k]] = k, -1 of empty ones; C->i
     (memory exec->result), rows and map from keep */
  PetscErrorCode (*compressrows)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, HybCSR *C, PetscInt **rows, PetscInt **map);
  /* i[0..m] = the offsets of a matrix of m rows, of which rows rows[0..n-1], ascending, begin at ci[0..n-1] and all
     others are empty; ci[n] = nnz */
  PetscErrorCode (*expandrows)(const HybExec *, PetscInt m, PetscInt n, const PetscInt *rows, const PetscInt *ci, PetscInt *i);
  /* Sets bit r % 32 of mask[r / 32] if row r has entries in the block with offsets oi, or if D has an entry in row r
     whose column is a row with entries in the block with offsets bi (NULL: no row has). All other bits become 0. */
  PetscErrorCode (*meetrows)(const HybExec *, const HybCSR *D, const PetscInt *oi, const PetscInt *bi, unsigned *mask);
  /* v[k] = first + k */
  PetscErrorCode (*sequence)(const HybExec *, PetscCount n, PetscInt first, PetscInt *v);
  /* row[k] = r of entry k of A's row r, or rows[r] */
  PetscErrorCode (*rowsofentries)(const HybExec *, const HybCSR *A, const PetscInt *rows, PetscInt *row);

  /* The next five pick rows or columns (pick.c); the host waits once, for a count. */
  /* Rows rows[0..n-1] of both blocks (as in mergeblocks), in any order, also repeatedly, one below the other, columns
     by their global numbers: D's counted from first, O's garray[]. begin, on the host: their n+1 offsets, valid on
     return. S->n is left 0, S->i and j are from keep (memory exec->result). Entry k is D's entry from[k] or, if that is
     negative, O's entry -1 - from[k]; from is taken from keep. */
  PetscErrorCode (*pickrows)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *D, const HybCSR *O, PetscInt nleft, PetscInt first, const PetscInt *garray, PetscInt n, const PetscInt *rows, PetscInt *begin, HybCSR *S, PetscInt **from);
  /* a[k]: d[from[k]] or o[-1 - from[k]] */
  PetscErrorCode (*pickvalues)(const HybExec *, PetscCount n, const PetscInt *from, const HybScalar *d, const HybScalar *o, HybScalar *a);
  /* S[p] = A[p](rows, :) for both p, as HybCSROps.submatrixsymbolic. nnz[p]: entries of S[p], or negative if the caller
     does not know. */
  PetscErrorCode (*pickboth)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *const A[2], const PetscCount nnz[2], PetscInt nrows, const PetscInt *rows, HybCSR S[2], PetscInt *perm[2]);
  /* Y: those rows of X, one below the other, that have entries and whose number is a column of A with entries. Row c of
     X is row map[c] of Y, or none if that is -1; entry k of Y is X's entry perm[k]. perm NULL on return: Y has all
     entries of X, and shares X->j and X->a. Y->i and j (memory exec->result) and perm from keep, map from work. */
  PetscErrorCode (*pickmet)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, const HybCSR *X, HybCSR *Y, PetscInt **perm, PetscInt **map);
  /* C: A's columns c with colmap[c] >= 0, numbered by that, ascending, of ncols, without empty rows: row k is A's row
     rows[k], entry k A's entry perm[k]. C->i and j (memory exec->result) and perm from keep, rows from work. */
  PetscErrorCode (*pickmapped)(const HybExec *, HybArena *keep, HybArena *work, const HybCSR *A, PetscInt ncols, const PetscInt *colmap, HybCSR *C, PetscInt **rows, PetscInt **perm);
} HybLocalOps;

extern const HybLocalOps HybLocalHost;

/*
  A distributed matrix whole, on every process: csr has all rows, or, without a halo, those of this process, with global
  columns. The arrays are the object's.
*/
typedef struct {
  HybCSR csr;
  /* the object's own */
  HybExec  exec;
  HybArena keep;
  /* entries of this process, where they begin in csr, and where those of higher ranks do */
  PetscCount nown, own, right;
  PetscInt  *from; /* own entry k is D's entry from[k], or O's entry -1 - from[k] */
  HybRows    rows; /* others', on their way here; NULL: there are none */
  HybScalar *came; /* room for their values */
} HybParWhole;
/* With a halo, of which each process needs all rows of the others (HybHaloCreateAll()), collective: before is an error
   of this process, which becomes one of all; an error in what comes last is its own, and the caller agrees before
   others wait for it. Create leaves csr.a to Values, which is called with matrices of the same pattern, and tells of
   before those who wait. */
extern PetscErrorCode HybParWholeCreate(HybParWhole *, HybComm, const HybExec *, PetscErrorCode before, const HybParCSR *, HybHalo);
extern PetscErrorCode HybParWholeValues(HybParWhole *, const HybExec *, PetscErrorCode before, const HybParCSR *);
/* not collective, once the device has done what is queued: an error if others sent no values */
extern PetscErrorCode HybParWholeHeard(HybParWhole *);
extern PetscErrorCode HybParWholeDestroy(HybParWhole *); /* one of zero bytes, too */

typedef struct _HybParProduct *HybParProduct;

/* All collective but where it is said. Create: an error of one process, as before, is one of all, and v[0..n-1] are
   agreed upon as by HybAgreeMax(). */
extern PetscErrorCode HybParProductCreate(MPI_Comm, PetscErrorCode before, HybProductType, PetscInt n, PetscInt64 *v, HybParProduct *);
/* not collective, and alike on all processes, before all else */
extern PetscErrorCode HybParProductSetExec(HybParProduct, const HybExec *, const char *method, PetscInt width);
/* Layouts conform. result's D and O come from out[0] and out[1] (memory exec->result), their values allocated, not yet
   computed; result->garray stays until the next symbolic phase, the ranges are the operands'. before: an error that
   this process has had. An error is this process's: no process waits for it here, and the caller agrees upon it with
   what it does itself next. */
extern PetscErrorCode HybParProductSymbolic(HybParProduct, PetscErrorCode before, const HybParCSR *A, const HybParCSR *B, const HybParCSR *C, HybArena out[2], HybParCSR *result);
/* not collective; before the symbolic phase, see HybProductSetBlockSize() */
extern void HybParProductSetBlockSize(HybParProduct, PetscInt bs);
/* Not collective. For the next numeric phase: operand k has the values that the last numeric phase saw, on this process
   (same[k]), and on all processes, all of which ended that phase well (all[k]). Data that depends on such operands
   alone is not sent again. */
extern PetscErrorCode HybParProductUnchanged(HybParProduct, const PetscBool same[3], const PetscBool all[3]);
/* Operands have the patterns given to symbolic, and any values. before, and an error: as above. When all have agreed
   that there was one the caller calls Forget, which is not collective: the next phase does not report it again. */
extern PetscErrorCode HybParProductNumeric(HybParProduct, PetscErrorCode before, const HybParCSR *A, const HybParCSR *B, const HybParCSR *C, HybParCSR *result);
extern void           HybParProductForget(HybParProduct);
/* Not collective: as the functions of HybProduct */
extern void           HybParProductSetStream(HybParProduct, void *stream);
extern void           HybParProductGetInfo(HybParProduct, PetscLogDouble *flops, size_t *bytes);
extern PetscErrorCode HybParProductDescribe(HybParProduct, char text[], size_t length);
extern const char    *HybParProductGetMethod(HybParProduct);
extern PetscCount     HybParProductGetCounter(HybParProduct, const char *name);
extern PetscErrorCode HybParProductDestroy(HybParProduct *);

HYB_EXTERN_C_END
#endif

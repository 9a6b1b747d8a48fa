/*
  Storage: where a sequential matrix's pattern and values live, and the verbs by which all other glue reads and writes
  them. storage.c has the states and who goes where; where.h says where an operation runs, parent.h what is known of
  the parent's own data.
*/
#ifndef AIJHYBRIDGPU_STORAGE_H
#define AIJHYBRIDGPU_STORAGE_H

#include <petscmataijhybridgpu.h>
#include "../../../../petsc/parent.h"

typedef enum {
  HYB_LIVES_HOST,     /* in arrays of the host's, AIJ's own or a product's result */
  HYB_LIVES_COPIED,   /* there too, and the device has a copy */
  HYB_LIVES_LOCKED,   /* the same, AIJ's values being in page-locked memory of ours */
  HYB_LIVES_PROMOTED, /* the pattern as COPIED, the values in managed memory that AIJ and the device use */
  HYB_LIVES_SHARED,   /* born on the device: column indices and values in managed memory that AIJ and the device use */
  HYB_LIVES_MIRRORED, /* born on the device: arrays there, and others beside them on the host, which AIJ uses */
  HYB_LIVES
} HybLives;

/* What a pattern's plan is keyed on: PETSc edits i and j in place here and there, and renumbers the columns of a
   parallel matrix's off-diagonal block after its assembly, in some releases without a new nonzerostate */
typedef struct {
  PetscObjectState nonzerostate;
  const void      *i, *j;
  PetscCount       nnz, generation; /* how often columns were changed where nothing else of this moved */
  /* which private data of ours: states begin anew, arrays come to lie where others lay */
  PetscCount made;
  PetscInt   m, n;
} HybPatternKey;
static inline PetscBool HybPatternKeyEqual(const HybPatternKey *a, const HybPatternKey *b)
{
  return (PetscBool)(a->nonzerostate == b->nonzerostate && a->i == b->i && a->j == b->j && a->nnz == b->nnz && a->generation == b->generation && a->made == b->made && a->m == b->m && a->n == b->n);
}

/* Values of which object state were seen, or left, by us? PETSc's interface functions (MatScale(), MatShift(), ...)
   count the state once more after our operation has returned: that step is not a write, and is taken along once. Who
   calls the operation itself (MPIAIJ's diagonalscale) does not. */
typedef struct {
  PetscObjectState state;
  PetscBool        step; /* one more may come */
} HybStateMark;
static inline PetscBool HybMarkCurrent(HybStateMark *m, PetscObjectState now)
{
  if (m->step && now == m->state + 1) m->state = now;
  m->step = PETSC_FALSE; /* seen from outside: it has come, or never will */
  return (PetscBool)(now == m->state);
}
static inline PetscErrorCode HybMarkSet(Mat A, PetscBool step, HybStateMark *m)
{
  m->step = step;
  return PetscObjectStateGet((PetscObject)A, &m->state);
}

/* The matrix on the device: a copy, or the arrays that it lives in */
typedef struct {
  PetscBool     pattern, values; /* what is there, and up to date but for what mark says */
  HybCSR        csr;
  PetscCount    nonemptyrows, longest; /* of the rows */
  HybPatternKey key;
  HybStateMark  mark;  /* of the values */
  HybArena      arena; /* of a copy's arrays; where the matrix was born there they are in Mat_SeqAIJHybridGPU.arrays */
} HybDeviceCopy;

/* The functions that lend a pattern, of which AIJ has several */
typedef enum {
  HYB_LEND_ROWS,
  HYB_LEND_ROWS_END,
  HYB_LEND_COLUMNS,
  HYB_LENDS
} HybLend;
typedef PetscErrorCode (*HybLendFn)(Mat, PetscInt, PetscBool, PetscBool, PetscInt *, const PetscInt *[], const PetscInt *[], PetscBool *);

/* Arrays that have been left while somebody held them */
typedef struct _HybRetired *HybRetired;

/* A plan of the spmv room, for one pattern on one backend */
typedef struct {
  PetscBool     ready;
  PetscBool     onceonly; /* of a method that plans nothing, for the first products */
  PetscReal     spent;    /* microseconds that these have taken, as HybMultPlanPays() estimates */
  HybSpMV       plan;
  HybPatternKey key;
  PetscCount    nonemptyrows;
  /* beside it, on the device, or NULL; not of a transpose */
  HybMatOrdered *ordered;
  const HybSpMV *by; /* that did the last product there */
} HybMultPlan;

/* An explicit transpose on the device, refreshed by one gather when the values moved */
typedef struct {
  PetscBool        ready, conjugated, stale; /* the values are others than those gathered, whatever their state is */
  HybArena         arena;
  HybCSR           csr;
  PetscInt        *perm;
  HybPatternKey    key;
  PetscObjectState state;
  HybMultPlan      mult;
} HybDeviceTranspose;

/* What an index set held. PETSc's functions that change one leave its state. */
typedef struct {
  PetscBool kept;
  PetscInt  n, first, step; /* of a stride */
  PetscInt *indices;        /* of any other: a copy, else NULL */
} HybIndices;

/* A transpose or a submatrix that was born on the device remembers where its values come from: one gather refreshes
   them while both patterns stand */
typedef struct {
  PetscBool     ready;
  HybArena      arena;
  PetscInt     *perm; /* entry k is the parent's entry perm[k] */
  PetscObjectId parent;
  HybPatternKey parentkey, key;
  HybIndices    is[2]; /* rows and columns of a submatrix */
} HybDerived;

/* Options that AIJ keeps in its data, as the program set them: matrices made from this one on the device get them too.
   Those of a group overrule each other, so the last one of each is kept. */
typedef struct {
  PetscBool said;
  MatOption op;
  PetscBool flg;
} HybAsked;

typedef struct {
  PetscCount made; /* no other one of the process has this number */
  HybChoices choices;
  HybAsked   asked[HYB_ASKED_GROUPS];
  PetscBool  optionsknown; /* every option that AIJ keeps has come by: asked has them */
  PetscBool  block;        /* of a parallel matrix */

  /* storage */
  const void *pass;  /* A->data, where the parent's MatSetValues() may pass the door (door.c) */
  Mat         owner; /* whose header had these data when they were last looked at */
  HybLives    lives;
  PetscCount  entered[HYB_LIVES]; /* how often it came to live there */
  /* i, j, a that the base class uses and this object owns (a result of ours); freed after the parent's destroy */
  HybArena        arrays;
  const PetscInt *adopted; /* the i that the base class got with them */
  PetscBool       narrow;  /* and its data are narrow.c's, whose arrays are as large as that says */
  /* values in page-locked or managed memory, that AIJ's pointer names while movedto is not NULL */
  HybArena     moved;
  PetscScalar *former, *movedto; /* AIJ's own array of values, put aside (NULL where there are none), and ours */
  PetscCount   movednnz;         /* entries of both */
  HybRetired   retired;
  int          readers, writers, rows; /* who holds values, or rows of MatGetRow() */
  int          patterns;               /* who holds i and j, by MatGetRowIJ() */
  HybLendFn    lend[HYB_LENDS];        /* AIJ's, where ours lie over them (inodes.c) */
  int          inside;                 /* operations of ours that call the parent's, which the door is open to */
  PetscBool    hostonly;               /* AIJ's functions stand in its table (hostonly.c) */
  PetscBool    quiet;                  /* nothing that is queued reads the values */
  PetscBool    stored;                 /* MatStoreValues() keeps values beside the arrays */
  PetscBool    hostcopy;               /* what is made of it now is the host's alone */
  /* the search for rows of equal pattern was left out when the device made it */
  PetscBool inodesleft;
  PetscBool aspreallocated;    /* MATAIJ would have preallocated this result row by row */
  PetscBool neverpreallocated; /* AIJ's would not have been, and has nothing to go back to (MatResetPreallocation()) */
  PetscInt *preallocated;      /* with these lengths of rows, where entries came since; or NULL */
  /* the base class's arrays may be the program's own, or somebody remembers where they lie */
  PetscBool     lentarrays;
  PetscBool     inverted;   /* somebody has got inverses of diagonal blocks, which lie in AIJ's data (adopt.c) */
  PetscCount    adoptions;  /* how often this matrix got another pattern as a result */
  PetscCount    generation; /* how often column indices were changed where they are */
  PetscCount    moves;      /* how often the values moved where the object's state may not have */
  HybDeviceCopy copy;
  PetscInt      writes;   /* operations in a row that wrote the values, no host write between them */
  PetscBool     returned; /* from managed memory, which they had moved to, when the host wrote */
  HybStateMark  written;  /* after the last one */
  PetscInt      sendings; /* of values, to a device that has the pattern */
  PetscBool     inserted; /* by MatSetValues(), since the last one */
  PetscBool     locknever;

  /* made from the pattern or the values, of one key each */
  HybPatternKey      checkkey;    /* pattern last seen sorted and in range */
  HybPatternKey      diagonalkey; /* pattern last seen with every entry of the diagonal */
  HybMultPlan        host, device;
  HybDeviceTranspose transpose;
  HybDerived         derived;
  struct {
    PetscObjectId id;
    HybPatternKey own, other;
  } among; /* a matrix whose entries were seen to be among this one's: if as many, of the same pattern */
  struct {
    PetscObjectId id;
    HybPatternKey own, other;
  } transposed; /* a matrix whose transpose the host has written here */

  PetscObjectState assembledstate; /* when the host alone assembled it last */
  PetscObjectState assembling;     /* of values from coordinates that MatAssemblyEnd() is about to count once more */
  PetscCount       coocount;       /* entries of the last MatSetPreallocationCOO() */
  PetscBool        coopattern;     /* which was the last to give it a pattern: its arrays are whole, assembled or not */
  /* products with vectors that the host has done, while it was not decided that the device shall */
  PetscInt  hostmults;
  PetscBool staysonhost; /* the device had no room */
  PetscBool expected;    /* it was made or assembled while a device was in use */
} Mat_SeqAIJHybridGPU;

/* does the matrix live on the device, so that operations on its values run there? */
static inline PetscBool HybBorn(const Mat_SeqAIJHybridGPU *hyb)
{
  return (PetscBool)(hyb->lives >= HYB_LIVES_PROMOTED);
}
/* are its values in memory that AIJ and the device both use? */
static inline PetscBool HybShared(const Mat_SeqAIJHybridGPU *hyb)
{
  return (PetscBool)(hyb->lives == HYB_LIVES_PROMOTED || hyb->lives == HYB_LIVES_SHARED);
}
/* PETSc's solver server (-mpi_linear_solver_server) lets other processes read matrices of this one where AIJ has
   allocated them, in memory that they share, and keeps the addresses. So values stay there, and what AIJ allocates is
   AIJ's to make. It does not allocate the results of products so: the server refuses those of either type. */
static inline PetscBool HybStorageServed(void)
{
#if HYB_HAS_SERVER
  return (PetscBool)(PCMPIServerActive && PCMPIServerUseShmget && !PCMPIServerInSolve);
#else
  return PETSC_FALSE;
#endif
}
/* the host's values are others than before, whatever the object's state says */
static inline void HybStorageMoved(Mat_SeqAIJHybridGPU *hyb)
{
  hyb->copy.values     = PETSC_FALSE;
  hyb->transpose.stale = PETSC_TRUE;
  hyb->moves++;
  hyb->writes = 0;
}
/* what one has is the other's from here on */
static inline void HybArenaGive(HybArena *from, HybArena *to)
{
  *to          = *from;
  from->blocks = NULL;
  from->bytes  = 0;
}
/* Calls a function of the parent's on A, whose accesses are part of an operation of ours */
#define HybInside(A, call)                             \
  do {                                                 \
    Mat_SeqAIJHybridGPU *inside_ = NULL;               \
    PetscErrorCode       ierr_;                        \
                                                       \
    PetscCall(MatSeqAIJHybridGPUGetData(A, &inside_)); \
    inside_->inside++;                                 \
    ierr_ = (call);                                    \
    inside_->inside--;                                 \
    PetscCall(ierr_);                                  \
  } while (0)

/* Is this one of our sequential matrices, by name or only by its operations (-mat_seqaij_type)? Until its first
   assembly a hash table's operations, that to destroy it among them, may lie over ours. */
static inline PetscBool MatIsSeqAIJHybridGPU(Mat A)
{
  if (HybHashActive(A)) return (PetscBool)(A->ops->mult && A->ops->mult == HybGlueState.own.mult);
  return (PetscBool)(A->ops->destroy && A->ops->destroy == HybGlueState.own.destroy);
}

/* A's private data, where A is one of ours that has some which are its own: what MatSeqAIJHybridGPUGetData() would say
   without doing anything. Else NULL. For what is called once for each entry or row. */
static inline Mat_SeqAIJHybridGPU *HybStorageAtHand(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;

  /* a hash table's operations lie over that to destroy it */
  return PetscLikely(A->ops->destroy == HybGlueState.own.destroy && hyb && hyb->owner == A) ? hyb : NULL;
}

/* With -mat_seqaij_type other derived types (MATSEQAIJCUSPARSE) are laid over ours: MatCreate_SeqAIJ(), from which they
   start, makes ours. What they do not override is the parent's from the first such call on. For the beginning of
   operations that the derived types leave alone. */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPULeave(Mat);
#define HybLeaveIfOverlaid(A, op, ...)             \
  do {                                             \
    if (PetscUnlikely(!MatIsSeqAIJHybridGPU(A))) { \
      PetscCall(MatSeqAIJHybridGPULeave(A));       \
      PetscCall((*(A)->ops->op)(__VA_ARGS__));     \
      PetscFunctionReturn(PETSC_SUCCESS);          \
    }                                              \
  } while (0)

/* storage.c; the first: A becomes one of the parent's type, of which ours is made at once: its states count one new
   type, as they do with AIJ */
PETSC_INTERN PetscErrorCode HybSetParentType(Mat A, MatType parent);
/* A's private data: they are made at their first use, and looked at where another header has got them */
PETSC_INTERN PetscErrorCode  HybStorageMake(Mat, Mat_SeqAIJHybridGPU **);
static inline PetscErrorCode MatSeqAIJHybridGPUGetData(Mat A, Mat_SeqAIJHybridGPU **data)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;

  if (PetscUnlikely(!hyb || hyb->owner != A)) return HybStorageMake(A, data);
  *data = hyb;
  return PETSC_SUCCESS;
}
PETSC_INTERN void MatSeqAIJHybridGPULookAtOptions(Mat);
/* A was made or assembled: is a device in use, which may get it? */
PETSC_INTERN void           HybStorageExpect(Mat A, Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode HybStorageGo(Mat_SeqAIJHybridGPU *, HybLives to);
PETSC_INTERN PetscErrorCode HybStorageMoveValues(Mat, Mat_SeqAIJHybridGPU *, HybLives lives, PetscCount nnz, HybScalar *to);
PETSC_INTERN const char    *HybStorageName(const Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode HybStorageView(const Mat_SeqAIJHybridGPU *, PetscViewer);
PETSC_INTERN PetscBool      HybStorageHeld(const Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscBool      HybStorageLent(const Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode HybStorageRetire(Mat_SeqAIJHybridGPU *, HybArena *);
PETSC_INTERN PetscErrorCode HybStorageFreeRetired(Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode HybStorageLeaveRetired(Mat, Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode HybStorageGivenBack(Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode HybStorageQuiet(Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode HybStorageDropMoved(Mat, Mat_SeqAIJHybridGPU *);
/* the parent may have given A arrays of its own */
PETSC_INTERN PetscErrorCode HybStorageSettle(Mat);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUHostWrites(Mat);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUPatternMoved(Mat);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDemote(Mat);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDestroyDevice(Mat_SeqAIJHybridGPU *);
/* The host, or the device, is about to read all of a matrix in the storage of both: it is moved in one go instead of by
   page faults */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUMove(Mat, PetscBool values, PetscBool todevice);
PETSC_INTERN void           MatSeqAIJHybridGPUSetBornOps(Mat, PetscBool);
PETSC_INTERN PetscErrorCode HybMultPlanDestroy(HybMultPlan *);
PETSC_INTERN PetscErrorCode HybDerivedDestroy(HybDerived *);

/* A matrix of the type, opened for one operation: what follows asks nobody again. Nothing in it outlives that, and
   nothing is to be given back. */
typedef struct {
  Mat                  A;
  Mat_SeqAIJHybridGPU *hyb;
  HybExec              x;    /* where the operation runs: who opens it says so */
  HybCSR               host; /* AIJ's arrays; a NULL: of a structure without values */
  HybCSR               csr;  /* those where x executes, after HybViewSend() */
  HybPatternKey        key;
} HybView;
/* lent.c; copy.c: the matrix's arrays on the device of x, sent or refreshed as needed */
PETSC_INTERN PetscErrorCode HybViewOpen(Mat, HybView *);
PETSC_INTERN PetscErrorCode HybViewSend(HybView *, PetscBool values);

/* lent.c */
/* Lends a sequential AIJ matrix's arrays (any type of the family) for reading by the host; values may be left out */
typedef struct {
  HybCSR             csr;
  HybPatternKey      key;
  PetscBool          foreign; /* obtained through MatGetRowIJ(), to be returned */
  const PetscScalar *a;
} HybLent;
PETSC_INTERN PetscErrorCode  HybLentGet(Mat, PetscBool values, HybLent *);
PETSC_INTERN PetscErrorCode  HybLentReturn(Mat, HybLent *);
static inline PetscErrorCode HybLentRestore(Mat A, HybLent *l)
{
  return l->foreign ? HybLentReturn(A, l) : PETSC_SUCCESS;
}
/* of the pattern as it is */
PETSC_INTERN PetscErrorCode HybPatternKeyNow(Mat, HybPatternKey *);
/* rows with entries of a matrix on the host, by which PETSc counts a product's operations, and the entries of the
   longest one */
PETSC_INTERN PetscCount HybCountNonemptyRows(const HybCSR *, PetscCount *longest);
/* how many rows are not sorted, without duplicates, in range. Looked at where the arrays are wanted anyway; remembered
   for ours until the pattern, whose key it is, moves. */
PETSC_INTERN PetscErrorCode HybRowsLook(Mat, const HybPatternKey *, const HybExec *, const HybCSR *, PetscCount *nbad, PetscInt *badrow);
/* Do the columns of each row of A, which csr has on the device, ascend, each once? Arrays that a program handed to
   PETSc need not be so: then the host does what goes by their order, and what makes a matrix, since of those that are
   born on the device it is taken for granted. Looked at once for a pattern. */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPURowsAscend(Mat A, const HybExec *x, const HybCSR *csr, PetscBool *ascend);
/* has the pattern every entry of the diagonal? Looked at once for a pattern. */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDiagonalIsFull(Mat, PetscBool *);

/* inodes.c: rows of equal pattern, which AIJ looks for at each assembly; a matrix whose data were made without that;
   and the search, if it was left out, before anybody goes by it or A gets another pattern */
PETSC_INTERN void           HybInodesSetOps(Mat, PetscBool on);
PETSC_INTERN PetscErrorCode HybInodesLeave(Mat);
/* MatGetRowIJ() and its relatives are ours, over what AIJ has chosen, or AIJ's again */
PETSC_INTERN PetscErrorCode HybInodesLend(Mat, PetscBool on);
PETSC_INTERN PetscErrorCode HybInodesFind(Mat);
/* Asks the device alone. If it finds no inodes, the search is marked as done. */
PETSC_INTERN PetscErrorCode HybInodesLook(Mat);
/* does AIJ look no more for rows of equal pattern in A's data, since it found none or was told so? */
PETSC_INTERN PetscErrorCode HybInodesEnded(Mat A, PetscBool *ended);

/* unsorted.c: csr, A's arrays where x executes, becomes a copy with ascending columns where it has others, or where
   column c is to be to[c]; of a column that is not there an error (73). copies has the copy's arrays; *copied, which
   says so, was true before where -info has been told. */
PETSC_INTERN PetscErrorCode HybLentSort(Mat, const HybLent *, const HybExec *x, const PetscInt *to, const char *role, HybArena *copies, HybCSR *csr, PetscBool *copied);

/* copy.c: a view's arrays where nothing else of it is wanted. The second when what reads them has been queued, and
   nothing waits for it. */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUGetDeviceCSR(Mat, const HybExec *x, PetscBool values, HybCSR *);
/* the same of any AIJ, whose arrays are lent: a copy of one that is not ours comes from sent */
PETSC_INTERN PetscErrorCode HybOperandSend(Mat, const HybLent *, const HybExec *x, PetscBool values, HybArena *sent, HybCSR *);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUReadEnd(Mat, const HybExec *x);

/* locked.c: *from, csr's values, are about to be sent to a device that has had others before; csr is the host's */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUSendFrom(Mat, Mat_SeqAIJHybridGPU *, const HybExec *, const HybCSR *csr, const HybScalar **from);
PETSC_INTERN PetscBool      MatSeqAIJHybridGPULockedTakesValues(const Mat_SeqAIJHybridGPU *);

/* promoted.c and write.c: an operation that writes A's values. *device: it runs there and ends with
   MatSeqAIJHybridGPUDeviceWritten(). Else the parent runs, and between Begin and End, where w.both, the same operation
   on w.csr too; exact: both round alike. From `alone` values on (0: never) the device alone does an exact one, in
   managed memory at once where the host has left the values as the device got them; else w.back: what it wrote is to
   come to the host. interface: PETSc's function of the operation counts the state once more. */
typedef struct {
  PetscBool counts, both, back;
  HybCSR    csr;
} HybWriteThrough;
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUPromotionDue(Mat, Mat_SeqAIJHybridGPU *, const HybExec *, PetscBool first, PetscBool *due);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUPromote(Mat, Mat_SeqAIJHybridGPU *, const HybExec *, PetscBool *done);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUWriteBegin(Mat A, PetscBool exact, PetscCount alone, HybExec *x, PetscBool *device, HybWriteThrough *w);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUWriteEnd(Mat A, HybWriteThrough *w, PetscBool interface);
/* Between Begin and End, where w.back: the device alone has done it, and what it wrote comes to the host */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUWriteBack(Mat A, const HybExec *x, const HybWriteThrough *w);
/* does A live on the device, so that operations on its values run there? */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUWriteOnDevice(Mat, HybExec *x, PetscBool *flg);
/* after an operation that wrote the values on the device: the host may look from now on. interface: PETSc's function of
   the operation counts the state once more after it has returned, see HybStateMark */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDeviceWritten(Mat, const HybExec *x);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDeviceWrittenStep(Mat, const HybExec *x, PetscBool interface);
/* an assembly of what was written on the device, where AIJ's operation ends with one */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUAssembleWritten(Mat);

/* inplace.c: between these the parent writes A, a sequential matrix that is used again, its pattern too if it likes. Of
   others, and of none, nothing is done. The end also follows an error. */
typedef struct {
  Mat      A;
  uint64_t hash;
} HybInPlace;
PETSC_INTERN PetscErrorCode HybInPlaceBegin(Mat A, HybInPlace *);
PETSC_INTERN PetscErrorCode HybInPlaceEnd(Mat A, const HybInPlace *);
/* of patterns, where the arrays are: n <= HYB_HASHES matrices, which are waited for once; who stands there twice is
   gone through once */
#define HYB_HASHES 6
PETSC_INTERN PetscErrorCode HybPatternHash(const HybExec *, PetscInt n, const HybCSR *const[], uint64_t hash[]);

/* door.c: PETSc tells of reads and writes of A's values; door.h has what is called once for each entry */
PETSC_INTERN void           HybDoorOpen(Mat);
PETSC_INTERN PetscErrorCode HybDoorClose(Mat);
PETSC_INTERN PetscErrorCode HybDoorGet(Mat, PetscScalar **);
/* is the door ours, so that what it counts is the truth? */
static inline PetscBool HybDoorIsOurs(Mat A)
{
  return (PetscBool)(HybFrameKnown() && A->data && HybFrameDoor(A)->getarray == HybDoorGet);
}

/* May the host's array of values be another one, or get other values, without a word? Not where its holders are not
   told of, or may be the program: by -mat_seqaij_type a matrix may have lent arrays, unseen. */
static inline PetscBool HybStorageIsOwn(Mat A, const Mat_SeqAIJHybridGPU *hyb)
{
  return (PetscBool)(!hyb->lentarrays && HybDoorIsOurs(A) && strcmp(((PetscObject)A)->type_name, MATSEQAIJ));
}

/* hostonly.c: AIJ's own functions stand in A's table from here on where no device can be meant, and ours again */
PETSC_INTERN PetscErrorCode HybHostOnlyBegin(Mat, Mat_SeqAIJHybridGPU *);
PETSC_INTERN void           HybHostOnlyEnd(Mat, Mat_SeqAIJHybridGPU *);
/* Without the door nobody says who writes A's pattern either, as MatConvert() from MATNEST does into what is used
   again: an assembly of values that did not come by MatSetValues() is taken for one of another pattern. */
static inline void HybHostOnlyAssembled(Mat A, Mat_SeqAIJHybridGPU *hyb, PetscObjectState state)
{
  if (A->insertmode == NOT_SET_VALUES && state != hyb->assembledstate + 1) hyb->generation++;
  hyb->assembledstate = state; /* MatAssemblyEnd() counts one more */
}

/* given.c: arrays that PETSc gives to another matrix as it destroys this one */
PETSC_INTERN PetscErrorCode HybGivenParallel(PetscBool young);
PETSC_INTERN PetscErrorCode HybGivenDrop(void);
/* the values of this matrix are lent for reading */
static inline void HybGivenLent(const Mat_SeqAIJHybridGPU *hyb)
{
  HybGlueState.given.lent = hyb->made;
  HybGlueState.given.made = HybGlueState.made;
}
PETSC_INTERN PetscErrorCode HybGivenKeep(Mat, Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode HybGivenTake(Mat);

/* hostcopy.c: *B = A on the host, by the parent's duplicate but for who copies. Without values the new ones are not
   even zeroed where A is large. */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUHostDuplicate(Mat A, PetscBool values, Mat *B);
/* rowblocks.c: between Begin and End A goes, and its large blocks of row numbers are kept: i, and the others if they
   are narrow.c's; Take gives one of so many bytes or some more, or NULL */
PETSC_INTERN PetscErrorCode HybRowBlocksBegin(Mat A, const PetscInt *i, PetscBool narrow, PetscBool *began);
PETSC_INTERN void           HybRowBlocksEnd(void);
PETSC_INTERN void          *HybRowBlocksTake(size_t bytes);
PETSC_INTERN PetscErrorCode HybRowBlocksDrop(PetscBool *any); /* none is kept any more; any: there were some */
/* between these, what PETSc allocates for a matrix of so many rows gets large pages where it is large */
PETSC_INTERN void HybLargePagesBegin(PetscInt rows);
PETSC_INTERN void HybLargePagesEnd(void);
#define HybWithLargePages(rows, call) \
  do {                                \
    PetscErrorCode ierr_;             \
                                      \
    HybLargePagesBegin(rows);         \
    ierr_ = (call);                   \
    HybLargePagesEnd();               \
    PetscCall(ierr_);                 \
  } while (0)

/* adopt.c: makes csr (arrays in *arrays, which is taken over) the contents of C, a sequential matrix of ours of the
   same sizes. What C was is destroyed. The arrays are where x executes, and csr's pointers are for it. copies: a few
   entries of the host may be copied instead. The second: x is the device's. */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUAdopt(Mat C, const HybExec *x, PetscBool copies, HybArena *arrays, const HybCSR *csr);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUAdoptDevice(Mat C, const HybExec *x, HybArena *arrays, const HybCSR *csr);
/* the base class gets arrays of its own */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDisown(Mat);
/* before MatResetPreallocation() by the parent */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUAsPreallocated(Mat);
/* C takes A's place as by PETSc's MatHeaderMerge(), which old releases hide */
PETSC_INTERN PetscErrorCode HybHeaderMerge(Mat A, Mat *C);

#endif

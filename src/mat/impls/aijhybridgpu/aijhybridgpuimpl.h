/*
  What the glue's files share: the plugin's process-wide state, the sequential type's private data, and the functions
  that lend a Mat's arrays to the rooms of src/sparse and hand results back to the AIJ base class.
*/
#ifndef AIJHYBRIDGPUIMPL_H
#define AIJHYBRIDGPUIMPL_H

#include <petscmataijhybridgpu.h>
#include <petsc/private/matimpl.h>
#include "aijhybridgpu/private/hybcomm.h"
#include "aijhybridgpu/private/hybmat.h"
#include "aijhybridgpu/private/hybparprod.h"
#include "../../process/process.h"
#include "storage/storage.h"

/* What a product's destroy function gets: the context, from 3.25 on its address, spelled void * too */
#if PETSC_VERSION_LT(3, 25, 0)
  #define HYB_PRODUCT_CONTEXT(arg) (arg)
typedef void HybProductCtxArg;
#else
  #define HYB_PRODUCT_CONTEXT(arg) (*(void **)(arg))
typedef void HybProductCtxArg;
#endif

/* A plan of the spmv room, for one pattern on one backend */
typedef struct {
  PetscBool     ready;
  PetscBool     onceonly; /* of a method that plans nothing, for the first product alone */
  HybSpMV       plan;
  HybPatternKey key;
  PetscCount    nonemptyrows;
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

/* A transpose or a submatrix that was born on the device remembers where its values come from: one gather refreshes
   them while both patterns stand */
typedef struct {
  PetscBool        ready;
  HybArena         arena;
  PetscInt        *perm; /* entry k is the parent's entry perm[k] */
  PetscObjectId    parent;
  HybPatternKey    parentkey, key;
  PetscObjectId    is[2]; /* of a submatrix */
  PetscObjectState isstate[2];
} HybDerived;

/* Options that AIJ keeps beside its arrays, as the program set them: matrices made from this one on the device get them
   too. Those of a group overrule each other, so the last one of each is kept. */
typedef enum {
  HYB_ASKED_ROW_ORIENTED,
  HYB_ASKED_KEEP_PATTERN,
  HYB_ASKED_IGNORE_ZEROS,
  HYB_ASKED_NEW_NONZEROS,
  HYB_ASKED_GROUPS
} HybAskedGroup;
typedef struct {
  PetscBool said;
  MatOption op;
  PetscBool flg;
} HybAsked;

typedef struct {
  HybChoices choices;
  HybAsked   asked[HYB_ASKED_GROUPS];
  PetscBool  optionsknown; /* every option that AIJ keeps has come by: asked has them */
  PetscBool  block;        /* of a parallel matrix */

  /* storage */
  Mat             owner; /* whose header had these data when they were last looked at */
  HybLives        lives;
  PetscCount      entered[HYB_LIVES]; /* how often it came to live there */
  HybArena        arrays;             /* i, j, a that the base class uses and this object owns (a result of ours); freed after the parent's destroy */
  const PetscInt *adopted;            /* the i that the base class got with them */
  HybArena        moved;              /* values in page-locked or managed memory, that AIJ's pointer names while movedto is not NULL */
  PetscScalar    *former, *movedto;   /* AIJ's own array of values, put aside (NULL where there are none), and ours */
  PetscCount      movednnz;           /* entries of both */
  HybRetired      retired;
  int             readers, writers, rows; /* who holds values, or rows of MatGetRow() */
  PetscBool       patternheld;            /* a duplicate shares i and j (MAT_SHARE_NONZERO_PATTERN) */
  int             inside;                 /* operations of ours that call the parent's, which the door is open to */
  PetscBool       quiet;                  /* nothing that is queued reads the values */
  PetscBool       stored;                 /* MatStoreValues() keeps values beside the arrays */
  PetscBool       hostcopy;               /* what is made of it now is the host's alone */
  PetscBool       inodesleft;             /* the search for rows of equal pattern was left out when the device made it */
  PetscBool       aspreallocated;         /* AIJ would have made this result by a preallocation of its rows' lengths */
  PetscBool       lentarrays;             /* the base class's arrays may be the program's own, or somebody remembers where they lie */
  PetscCount      adoptions;              /* how often this matrix got another pattern as a result */
  PetscCount      generation;             /* how often column indices were changed where they are */
  PetscCount      moves;                  /* how often the values moved where the object's state may not have */
  HybDeviceCopy   copy;
  PetscInt        writes;   /* operations in a row that wrote the values, no host write between them */
  HybStateMark    written;  /* after the last one */
  PetscInt        sendings; /* of values, to a device that has the pattern */
  PetscBool       inserted; /* by MatSetValues(), since the last one */
  PetscBool       locknever;

  /* made from the pattern or the values, of one key each */
  HybPatternKey      checkkey;    /* pattern last seen sorted and in range */
  HybPatternKey      diagonalkey; /* pattern last seen with every entry of the diagonal */
  HybMultPlan        host, device;
  HybDeviceTranspose transpose;
  HybDerived         derived;
  struct {
    PetscObjectId id;
    HybPatternKey own, other;
  } equal; /* a matrix whose pattern was seen to be this one's */

  PetscObjectState assembling;  /* of values from coordinates that MatAssemblyEnd() is about to count once more */
  PetscCount       coocount;    /* entries of the last MatSetPreallocationCOO() */
  PetscInt         hostmults;   /* products with vectors that the host has done, while it was not decided that the device shall */
  PetscBool        staysonhost; /* the device had no room */
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

/* mpi/halo.c: who sends whom what at a product with a vector. What it was made for changes with the matrix and the
   vectors; whether it serves is decided by all processes together, for each kind of vectors. */
typedef struct {
  PetscInt         setups;              /* how often the parent may have made the blocks anew: the same number on all processes */
  PetscBool        known[2], serves[2]; /* [1]: for vectors on the device */
  PetscInt         knownsetups;
  PetscObjectState knownstate;
  HybComm          comm;
  HybHalo          halo;
  PetscInt        *garray; /* of which it was made */
} HybMPIHalo;

typedef struct {
  HybChoices choices; /* passed on to the blocks */
  PetscBool  lentarrays;
  PetscCount coocount;
  PetscBool  ignoreoffproc; /* MAT_IGNORE_OFF_PROC_ENTRIES */
  PetscBool  bycolumns;     /* MAT_ROW_ORIENTED was set to false */
  PetscBool  assembling;    /* values came from coordinates, and MatAssemblyBegin() and End() follow: nothing else was inserted */
  HybMPIHalo halo;          /* of products with vectors */
} Mat_MPIAIJHybridGPU;

/* seq/ */
PETSC_INTERN PetscErrorCode MatCreate_SeqAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatConvert_SeqAIJ_SeqAIJHybridGPU(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatConvert_SeqAIJHybridGPU_SeqAIJ(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUOperateSeqAIJ(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatDestroy_SeqAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUGetData(Mat, Mat_SeqAIJHybridGPU **);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUOptions(Mat, HybChoices *, HybOptionItems);
/* before entries are set past MatSetValues() */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUSetValuesBegin(Mat, PetscInt m, const PetscInt rows[], PetscInt n, const PetscInt cols[]);

PETSC_INTERN PetscErrorCode MatMult_SeqAIJHybridGPU(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultAdd_SeqAIJHybridGPU(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatResidual_SeqAIJHybridGPU(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTranspose_SeqAIJHybridGPU(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTransposeAdd_SeqAIJHybridGPU(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultHermitianTranspose_SeqAIJHybridGPU(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultHermitianTransposeAdd_SeqAIJHybridGPU(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode HybMultPlanDestroy(HybMultPlan *);
/* the explicit transpose of what csr lends, up to date */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUGetDeviceTranspose(Mat, const HybExec *, const HybCSR *csr, PetscBool conjugate, HybDeviceTranspose **);
/* seq/inodes.c: rows of equal pattern, which AIJ looks for at each assembly; a matrix whose data were made without
   that; and the search, if it was left out */
PETSC_INTERN PetscErrorCode HybInodesSetOps(Mat, PetscBool on);
PETSC_INTERN PetscErrorCode HybInodesLeave(Mat);
PETSC_INTERN PetscErrorCode HybInodesFind(Mat);
/* seq/dense.c */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUComposeDense(Mat, PetscBool on);
/* seq/factor.c */
PETSC_INTERN PetscErrorCode HybGlueRegisterFactors(void);
/* seq/convert.c */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUComposeConversions(Mat, PetscBool on);

PETSC_INTERN PetscErrorCode MatProductSetFromOptions_SeqAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatProductSetFromOptions_AnyHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatProductSetFromOptions_MPIAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode HybMatProductAside(Mat);
PETSC_INTERN PetscErrorCode HybMatProductType(MatProductType, HybProductType *);
/* a method that only the other side has is not for this one, which chooses for itself: "auto" */
PETSC_INTERN const char    *HybMatProductMethod(const HybExec *, const char *method);
PETSC_INTERN PetscErrorCode HybProductIsDerived(Mat, PetscBool seq, PetscBool *derived);
PETSC_INTERN PetscErrorCode HybGlueProductAlgorithm(Mat, PetscBool seq, char method[], size_t, PetscBool *ours, PetscBool *asked);

/* is this one of our sequential matrices, by name or only by its operations (-mat_seqaij_type)? Until its first
   assembly a hash table's operations, that to destroy it among them, may lie over ours. */
static inline PetscBool MatIsSeqAIJHybridGPU(Mat A)
{
#if PETSC_VERSION_GE(3, 19, 0)
  if (A->hash_active) return (PetscBool)(A->ops->mult == MatMult_SeqAIJHybridGPU);
#endif
  return (PetscBool)(A->ops->destroy == MatDestroy_SeqAIJHybridGPU);
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

/* Lends a sequential AIJ matrix's arrays (any type of the family) for reading by the host; values may be left out */
typedef struct {
  HybCSR             csr;
  PetscBool          foreign; /* obtained through MatGetRowIJ(), to be returned */
  PetscInt           m;
  const PetscScalar *a;
} HybLent;
PETSC_INTERN PetscErrorCode HybLentGet(Mat, PetscBool values, HybLent *);
PETSC_INTERN PetscErrorCode HybLentRestore(Mat, HybLent *);
/* rows with entries of a matrix on the host, by which PETSc counts a product's operations, and the entries of the
   longest one */
PETSC_INTERN PetscCount     HybCountNonemptyRows(const HybCSR *, PetscCount *longest);
PETSC_INTERN PetscErrorCode HybPatternKeyGet(Mat, const HybCSR *, HybPatternKey *);
/* columns sorted, without duplicates, in range: else PETSC_ERR_ARG_WRONGSTATE naming the row. Looked at where the
   arrays are wanted anyway; remembered for ours until the pattern moves. */
PETSC_INTERN PetscErrorCode HybLentCheck(Mat, const HybLent *, const HybExec *, const HybCSR *, const char *role);

PETSC_INTERN PetscErrorCode HybVecOnDevice(Vec, PetscBool *);

/* where.c: how to execute an operation on a matrix of these choices with work nonzeros in all operands: on the device
   or on the host */
#define HYB_ANY_SIZE PTRDIFF_MAX /* as work: never too small for the device */
PETSC_INTERN PetscErrorCode HybGlueGetExec(Mat, const HybChoices *, PetscCount work, HybExec *);
/* how many nonzeros an operation on A and others needs to run on the device, if it was not asked for that */
PETSC_INTERN PetscErrorCode HybGlueDeviceMin(Mat A, PetscCount *least);
/* seq/matmult.c: z = A x, y + A x, y - A x or the same of A^T, of arrays on the device; y may be z */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUMultArrays(Mat, const HybExec *, PetscBool transpose, const PetscScalar *, HybSpMVMode, const PetscScalar *, PetscScalar *);
/* a product with vectors */
PETSC_INTERN PetscErrorCode HybWhereMult(Mat, const HybCSR *, PetscBool transpose, HybSpMVMode, Vec xx, Vec zz, HybExec *);
PETSC_INTERN PetscErrorCode HybWhereStaged(Mat, PetscBool xdevice, PetscBool zdevice);
/* the matrix's arrays on the device of x, sent or refreshed as needed; ours only. The second when what reads them has
   been queued, and nothing waits for it. */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUGetDeviceCSR(Mat, const HybExec *x, PetscBool values, HybCSR *);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUReadEnd(Mat, const HybExec *x);
/* after an operation that wrote the values on the device: the host may look from now on. interface: PETSc's function of
   the operation counts the state once more after it has returned, see HybStateMark */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDeviceWritten(Mat, const HybExec *x);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDeviceWrittenStep(Mat, const HybExec *x, PetscBool interface);
/* does A live on the device, so that operations on its values run there? */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUWriteOnDevice(Mat, HybExec *x, PetscBool *flg);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUValuesMoved(Mat);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDestroyDevice(Mat_SeqAIJHybridGPU *);
/* The host, or the device, is about to read all of a matrix in the storage of both: it is moved in one go instead of by
   page faults */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUMove(Mat, PetscBool values, PetscBool todevice);
/* storage/locked.c: *from, csr's values, are about to be sent to a device that has had others before; csr is the
   host's */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUSendFrom(Mat, Mat_SeqAIJHybridGPU *, const HybExec *, const HybCSR *csr, const HybScalar **from);
PETSC_INTERN PetscBool      MatSeqAIJHybridGPULockedTakesValues(const Mat_SeqAIJHybridGPU *);
/* somebody remembers where the values lie: they neither move to page-locked memory nor to managed memory from now on */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUStay(Mat);
/* storage/hostcopy.c: *B = A on the host, by the parent's duplicate but for who copies. Without values the new ones are
   not even zeroed where A is large. */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUHostDuplicate(Mat A, PetscBool values, Mat *B);
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
/* describe.c: for the report of the run */
PETSC_INTERN PetscBool MatSeqAIJHybridGPUDescribe(Mat, HybRecordFacts *);
/* storage/storage.c */
PETSC_INTERN PetscErrorCode HybStorageGo(Mat_SeqAIJHybridGPU *, HybLives to);
PETSC_INTERN PetscErrorCode HybStorageView(const Mat_SeqAIJHybridGPU *, PetscViewer);
PETSC_INTERN PetscBool      HybStorageHeld(const Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode HybStorageRetire(Mat_SeqAIJHybridGPU *, HybArena *);
PETSC_INTERN PetscErrorCode HybStorageFreeRetired(Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode HybStorageLeaveRetired(Mat, Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode HybStorageGivenBack(Mat_SeqAIJHybridGPU *);
/* the parent may have given A arrays of its own */
PETSC_INTERN PetscErrorCode HybStorageSettle(Mat);
PETSC_INTERN PetscErrorCode HybStorageQuiet(Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode HybStorageDropMoved(Mat, Mat_SeqAIJHybridGPU *);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUHostWrites(Mat);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUPatternMoved(Mat);
/* has the pattern every entry of the diagonal? Looked at once for a pattern. */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDiagonalIsFull(Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUSetDeviceOps(Mat, PetscBool on);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUSetBornOps(Mat, PetscBool);
/* B, just born on the device, takes the place of A, which lives there, where AIJ calls MatHeaderMerge(); same: their
   patterns are */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUMerge(Mat A, Mat *B, PetscBool same);
/* storage/adopt.c: C takes A's place as by PETSc's MatHeaderMerge(), which old releases hide */
PETSC_INTERN PetscErrorCode HybHeaderMerge(Mat A, Mat *C);
/* an assembly of what was written on the device, where AIJ's operation ends with one */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUAssembleWritten(Mat);
/* seq/devicecreate.c: operations that make a matrix from another on the device */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUSetCreateOps(Mat, PetscBool on);
PETSC_INTERN PetscErrorCode HybDerivedDestroy(HybDerived *);
/* a matrix of A's type and choices, without entries, of a result's sizes and block sizes */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUCreateLike(Mat A, PetscInt m, PetscInt n, PetscInt rbs, PetscInt cbs, Mat *B);
/* how to make a matrix from A: on the device where A lives there or is large enough for it */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDeriveExec(Mat A, HybExec *x, PetscBool *device);
PETSC_INTERN PetscErrorCode MatAIJHybridGPUSetVecType(Mat);
/* a result whose arrays are the device's; csr's pointers are for the device */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUAdoptDevice(Mat C, const HybExec *x, HybArena *arrays, const HybCSR *csr);

/* Makes csr (arrays in *arrays, which is taken over) the contents of C, a sequential matrix of ours of the same sizes.
   What C was is destroyed. */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUAdopt(Mat C, HybArena *arrays, const HybCSR *csr);

PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDisown(Mat);

/* between these, no matrix that is made looks for inodes: the search reads all of j on the host. The end cannot fail,
   so that it can follow an error. */
PETSC_INTERN PetscErrorCode HybNoInodeBegin(PetscOptions *);
PETSC_INTERN void           HybNoInodeEnd(PetscOptions *);

/* exchanges what AIJ keeps, and the operations that it has chosen by it */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUExchangeData(Mat, Mat);

/* storage/promoted.c and write.c: an operation that writes A's values. *device: it runs there and ends with
   MatSeqAIJHybridGPUDeviceWritten(). Else the parent runs, and between Begin and End, where w.both, the same operation
   on w.csr too; exact: both round alike. interface: PETSc's function of the operation counts the state once more. */
typedef struct {
  PetscBool counts, both;
  HybCSR    csr;
} HybWriteThrough;
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUPromotionDue(Mat, Mat_SeqAIJHybridGPU *, const HybExec *, PetscBool *due);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUPromote(Mat, Mat_SeqAIJHybridGPU *, const HybExec *, PetscBool *done);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUWriteBegin(Mat A, PetscBool exact, HybExec *x, PetscBool *device, HybWriteThrough *w);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUWriteEnd(Mat A, HybWriteThrough *w, PetscBool interface);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUDemote(Mat A);
/* B's values become A's, a sequential one of any AIJ type and the same pattern, if B lives on the device */
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUCopyValues(Mat A, Mat B, PetscBool *done);
/* compose.c: functions that PETSc finds by name */
PETSC_INTERN PetscErrorCode MatAIJHybridGPUCompose(Mat, PetscBool seq, PetscBool on);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUComposeOver(Mat, PetscBool on);

/* convertfrom.c: ops->convertfrom, and MatConvert() to a type of PETSc's, past -matconvert_type */
PETSC_INTERN PetscErrorCode MatConvertFrom_AIJHybridGPU(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode HybConvertByPETSc(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode HybConvertCopy(Mat A, Mat B, PetscBool assembled);
PETSC_INTERN PetscErrorCode HybConvertCopyToDerived(Mat A, Mat B);

/* coo.c */
/* Where the values of entry e come from, on the device: map[mapptr[e]] to map[mapptr[e+1]-1] of the given ones */
typedef struct {
  PetscCount  ncoo, nnz;
  PetscInt    m, n;
  HybArena    arena, hostarena;
  PetscCount *mapptr, *map, *hostmapptr, *hostmap; /* the host's: NULL until it needs them */
} HybCOO;

PETSC_INTERN PetscErrorCode HybCOOIsOnDevice(const void *, PetscBool *);
PETSC_INTERN PetscErrorCode HybCOOToHost(const void *array, PetscCount count, size_t size, void **host, void **copy);
PETSC_INTERN PetscErrorCode HybCOOToDevice(const HybExec *, HybArena *work, const void *array, PetscCount count, size_t size, void **device);
PETSC_INTERN PetscErrorCode HybCOOSymbolicOnDevice(const HybExec *, HybArena *work, PetscCount ncoo, const PetscInt *di, const PetscInt *dj, HybArena *arrays, HybCOO *, HybCSR *C);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUSetValuesCOOHost(Mat, HybCOO *, const PetscScalar *, PetscBool add);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUSetValuesCOODevice(Mat, HybCOO *, const HybExec *, const PetscScalar *, PetscBool add);
/* mpi/mpicoo.c: not done where a process lacks the device, then the parent's do it */
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUPreallocateCOO(Mat, PetscCount, const PetscInt *, const PetscInt *, PetscBool *done);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUSetValuesCOO(Mat, const PetscScalar *, InsertMode, PetscBool *done);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUGetData(Mat, Mat_MPIAIJHybridGPU **);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUSetBlocks(Mat);
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUSumStates(Mat);
PETSC_INTERN PetscErrorCode MatAIJHybridGPUComposeCOO(Mat, PetscBool seq, PetscBool on);
PETSC_INTERN PetscErrorCode MatAIJHybridGPUGetCOOCount(Mat, PetscCount **);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUShare(Mat A, Mat duplicate);
PETSC_INTERN PetscErrorCode MatSeqAIJHybridGPUForgetCOO(Mat);

/* mpi/ */
PETSC_INTERN PetscErrorCode MatCreate_MPIAIJHybridGPU(Mat);
PETSC_INTERN PetscErrorCode MatConvert_MPIAIJ_MPIAIJHybridGPU(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatConvert_MPIAIJHybridGPU_MPIAIJ(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatConvert_MPIAIJHybridGPU_Derived(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatConvert_Derived_MPIAIJHybridGPU(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatDestroy_MPIAIJHybridGPU(Mat);
/* the host is about to write the values of its blocks, or its own, past all functions */
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUHostWrites(Mat);
/* what computes C, if it is a parallel product of ours */
PETSC_INTERN PetscErrorCode MatMPIAIJHybridGPUGetProduct(Mat C, HybParProduct *);
static inline PetscBool     MatIsMPIAIJHybridGPU(Mat A)
{
#if PETSC_VERSION_GE(3, 19, 0)
  if (A->hash_active) {
    PetscBool flg = PETSC_FALSE;

    (void)PetscObjectTypeCompare((PetscObject)A, MATMPIAIJHYBRIDGPU, &flg);
    return flg;
  }
#endif
  return (PetscBool)(A->ops->destroy == MatDestroy_MPIAIJHybridGPU);
}

#endif

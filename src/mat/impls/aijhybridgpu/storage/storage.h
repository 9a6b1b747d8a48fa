/*
  Storage: where a sequential matrix's pattern and values live, and the verbs by which all other glue reads and writes
  them. storage.c has the states and who goes where.
*/
#ifndef AIJHYBRIDGPU_STORAGE_H
#define AIJHYBRIDGPU_STORAGE_H

#include <petscmat.h>
#include "aijhybridgpu/private/hybspmv.h"

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
  PetscInt         m, n;
} HybPatternKey;
static inline PetscBool HybPatternKeyEqual(const HybPatternKey *a, const HybPatternKey *b)
{
  return (PetscBool)(a->nonzerostate == b->nonzerostate && a->i == b->i && a->j == b->j && a->nnz == b->nnz && a->generation == b->generation && a->m == b->m && a->n == b->n);
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

/* PETSc's Mat_SeqAIJOps (door.c) */
typedef struct {
  PetscErrorCode (*getarray)(Mat, PetscScalar **);
  PetscErrorCode (*restorearray)(Mat, PetscScalar **);
  PetscErrorCode (*getarrayread)(Mat, const PetscScalar **);
  PetscErrorCode (*restorearrayread)(Mat, const PetscScalar **);
  PetscErrorCode (*getarraywrite)(Mat, PetscScalar **);
  PetscErrorCode (*restorearraywrite)(Mat, PetscScalar **);
  PetscErrorCode (*getcsrandmemtype)(Mat, const PetscInt **, const PetscInt **, PetscScalar **, PetscMemType *);
} HybDoor;

/* frame.c */
PETSC_INTERN PetscErrorCode HybFrameFind(void);
PETSC_INTERN PetscBool      HybFrameKnown(void);
PETSC_INTERN size_t         HybFrameBytes(void); /* of a MATSEQAIJ's data */
PETSC_INTERN PetscScalar  **HybFrameValues(Mat);
PETSC_INTERN HybDoor       *HybFrameDoor(Mat);
/* options that AIJ keeps in its data: those of a group share a word there */
typedef enum {
  HYB_ASKED_ROW_ORIENTED,
  HYB_ASKED_KEEP_PATTERN,
  HYB_ASKED_IGNORE_ZEROS,
  HYB_ASKED_NEW_NONZEROS,
  HYB_ASKED_GROUPS, /* those that a duplicate takes over */
  HYB_ASKED_UNUSED = HYB_ASKED_GROUPS,
  HYB_ASKED_INODES, /* the search ends it too, where it found nothing */
  HYB_FRAME_OPTIONS
} HybAskedGroup;
/* no duplicate has this one, which stays where AIJ's data stay */
PETSC_INTERN PetscBool HybUnusedIsError(Mat);
PETSC_INTERN PetscBool HybFrameOption(Mat, HybAskedGroup, MatOption *, PetscBool *);

/* narrow.c */
typedef struct {
  PetscInt  *length;   /* of each row, on the device; NULL: not there */
  PetscInt  *diagonal; /* the diagonal's places, there, where HybNarrowTakesDiagonal() */
  PetscCount longest, nonempty;
} HybRowLengths;
PETSC_INTERN PetscErrorCode HybNarrowFind(Mat);
PETSC_INTERN PetscBool      HybNarrowTakes(PetscInt m);
PETSC_INTERN PetscBool      HybNarrowTakesDiagonal(void);
/* *T = MatCreateSeqAIJWithArrays() round csr, on the host, no inodes looked for; NULL where its loops must run */
PETSC_INTERN PetscErrorCode HybNarrowCreate(const HybExec *, const HybCSR *csr, const HybRowLengths *, Mat *T);

/* door.c */
PETSC_INTERN PetscErrorCode HybDoorOpen(Mat);
PETSC_INTERN PetscErrorCode HybDoorClose(Mat);
PETSC_INTERN PetscBool      HybDoorIsOurs(Mat);

#endif

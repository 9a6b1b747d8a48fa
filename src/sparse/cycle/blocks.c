/*
  blocks.c: a product with a matrix of several processes.

    begin   entries that others need are on their way, beside the next product
    own     the rows' part in columns of this process (in a graph beside `begin` and `end`)
    end     others' entries are there
    others  the part in their columns, added

  and transposed: the part for others' entries first, which begins its way to them; own; then what came is added in the
  order of their ranks. Where all that is short it is one launch (comm/peermult.cu).
*/
#include "cycleimpl.h"

PetscBool HybCycleBlocksTogether(const HybCycleBlocks *m)
{
  HybHaloBeside(m->halo, m->D.nnz);
  return (PetscBool)(HybHaloMultiplies(m->halo, m->transpose) && HybSpMVLanes(m->own) && HybSpMVLanes(m->others) && (!m->transpose || m->O.nnz <= HYB_HALO_BESIDE));
}

/* A method without a step may allocate and wait, but for one that forms each row's sum by lanes, which fills the rows
   that have none by another function where it does not add. */
PetscBool HybCycleBlocksRecordable(const HybCycleBlocks *m)
{
  const PetscBool others = (PetscBool)(HybSpMVHasStep(m->others) || (!m->transpose && HybSpMVLanes(m->others)));

  return (PetscBool)(HybCycleBlocksTogether(m) || (HybHaloRecordable(m->halo, m->transpose) && HybSpMVHasStep(m->own) && others));
}

/* what a product with others' entries ends in: z = M x, y + M x or y - M x, or a smoother's step */
typedef struct {
  HybSpMVMode        mode;
  const HybScalar   *y;
  HybScalar         *z;
  const HybSpMVStep *step; /* NULL: none */
} BlocksEnd;

static PetscErrorCode BlocksInOne(const HybCycleBlocks *m, const HybExec *exec, const HybScalar *x, const BlocksEnd *e)
{
  HybPeerProduct p = {
    .D         = {m->D, HybSpMVLanes(m->own)   },
    .O         = {m->O, HybSpMVLanes(m->others)},
    .transpose = m->transpose,
    .x         = x,
    .y         = e->y,
    .z         = e->z,
    .mode      = (int)e->mode,
    .dinv      = e->step ? e->step->dinv : NULL,
    .w         = e->step ? e->step->w : NULL,
    .c         = e->step ? e->step->c : NULL
  };

  PetscFunctionBegin;
  PetscCall(HybHaloMult(m->halo, exec, &p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlocksOwn(const HybCycleBlocks *m, const HybScalar *x, const BlocksEnd *e)
{
  PetscFunctionBegin;
  if (e->step)
    PetscCall(HybSpMVApplyStep(m->own, &m->D, x, e->step));
  else
    PetscCall(HybSpMVApply(m->own, &m->D, x, e->mode, e->y, e->z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In a graph the exchange is a branch of its own: it takes no longer than the own product. */
static PetscErrorCode BlocksBeside(const HybCycleBlocks *m, const HybExec *exec, const HybScalar *x, const BlocksEnd *e, HybScalar **ghost)
{
  const HybCommOps *ops = exec->backend->comm;
  HybExec           side;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall((*ops->fork)(exec, &side));
  ierr = HybHaloBegin(m->halo, &side, sizeof(HybScalar), x);
  if (!ierr) ierr = HybHaloEnd(m->halo, &side, PETSC_SUCCESS, ghost);
  if (!ierr) ierr = BlocksOwn(m, x, e);
  PetscCall(HybErrorFirst(ierr, (*ops->join)(exec)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlocksForward(const HybCycleBlocks *m, const HybExec *exec, const HybScalar *x, const BlocksEnd *e)
{
  HybScalar *ghost = NULL;

  PetscFunctionBegin;
  if (HybHaloRecords(m->halo, PETSC_FALSE))
    PetscCall(BlocksBeside(m, exec, x, e, &ghost));
  else {
    PetscCall(HybHaloBegin(m->halo, exec, sizeof(HybScalar), x));
    PetscCall(HybHaloEnd(m->halo, exec, BlocksOwn(m, x, e), &ghost));
  }
  if (e->step)
    PetscCall(HybSpMVAmend(m->others, &m->O, ghost, e->step));
  else
    PetscCall(HybSpMVApply(m->others, &m->O, ghost, e->mode == HYB_SPMV_SET ? HYB_SPMV_ADD : e->mode, e->z, e->z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlocksReverse(const HybCycleBlocks *m, const HybExec *exec, const HybScalar *x, const BlocksEnd *e)
{
  HybScalar     *ghost = NULL;
  PetscErrorCode ierr  = HybHaloRoom(m->halo, &ghost);

  PetscFunctionBegin;
  if (!ierr) ierr = HybSpMVApply(m->others, &m->O, x, HYB_SPMV_SET, NULL, ghost);
  if (ierr) HybHaloAbandon(m->halo, exec, sizeof(HybScalar), PETSC_TRUE, ierr);
  PetscCall(ierr);
  PetscCall(HybHaloReverseBegin(m->halo, exec, PETSC_TRUE, ghost));
  ierr = BlocksOwn(m, x, e);
  PetscCall(HybHaloReverseEnd(m->halo, exec, ierr, e->z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BlocksMult(const HybCycleBlocks *m, const HybExec *exec, PetscErrorCode before, const HybScalar *x, const BlocksEnd *e)
{
  PetscFunctionBegin;
  if (before) {
    HybHaloAbandon(m->halo, exec, sizeof(HybScalar), m->transpose, before);
    PetscFunctionReturn(before);
  }
  if (HybCycleBlocksTogether(m))
    PetscCall(BlocksInOne(m, exec, x, e));
  else if (m->transpose)
    PetscCall(BlocksReverse(m, exec, x, e));
  else
    PetscCall(BlocksForward(m, exec, x, e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the plans are other functions' too: they are used on this stream */
static PetscErrorCode BlocksOnStream(HybCycleBlocks *m, const HybExec *exec, PetscErrorCode before, const HybScalar *x, const BlocksEnd *e)
{
  HybSpMV *const plan[2] = {m->own, m->others};
  void          *stream[2];
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(before && !m->halo ? before : PETSC_SUCCESS); /* nobody can be told */
  for (int k = 0; k < 2; k++) {
    stream[k] = plan[k] ? plan[k]->exec.stream : NULL;
    if (plan[k]) plan[k]->exec.stream = exec->stream;
  }
  m->halo->lenient = PETSC_TRUE;
  ierr             = BlocksMult(m, exec, before, x, e);
  m->halo->lenient = PETSC_FALSE;
  for (int k = 0; k < 2; k++)
    if (plan[k]) plan[k]->exec.stream = stream[k];
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybCycleBlocksMult(HybCycleBlocks *m, const HybExec *exec, PetscErrorCode before, const HybScalar *x, HybSpMVMode mode, const HybScalar *y, HybScalar *z)
{
  const BlocksEnd e = {mode, y, z, NULL};

  PetscFunctionBegin;
  PetscCall(BlocksOnStream(m, exec, before, x, &e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool HybCycleBlocksHasStep(const HybCycleBlocks *m)
{
  return (PetscBool)(m->halo && (HybCycleBlocksTogether(m) || (HybSpMVHasStep(m->own) && HybSpMVHasAmend(m->others))));
}

PetscErrorCode HybCycleBlocksStep(HybCycleBlocks *m, const HybExec *exec, PetscErrorCode before, const HybScalar *x, const HybSpMVStep *step)
{
  const BlocksEnd e = {HYB_SPMV_STEP, step->y, step->z, step};

  PetscFunctionBegin;
  PetscCall(BlocksOnStream(m, exec, before, x, &e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The halo of a parallel matrix's products with vectors: the comm room's where all processes have the matrix's blocks
  and a device, PETSc's scatter else. All processes decide together, since messages differ, and again when the parent
  may have numbered the off-diagonal columns anew (on any process): what was made stays where it did not.

  A matrix may be bound to the CPU on some processes alone, by the number of their rows (-mat_bind_below,
  -dm_bind_below): it goes by PETSc's scatter on all, whatever its vectors, which may be the host's on some too. PETSc
  tells the type of no binding that changes nothing, so while processes differ, they do not decide again where one of
  them is bound, or not any more.
*/
#include "mpi.h"
#include "../seq/seq.h"
#include "../storage/where.h"

static PetscBool HybMPIHaloBound(Mat A)
{
#if defined(PETSC_HAVE_DEVICE)
  return A->boundtocpu;
#else
  return PETSC_FALSE;
#endif
}

/* May this process's part of A's products run on the device? And is what was made of its columns right still? */
static PetscErrorCode HybMPIHaloLook(Mat A, HybMPIHalo *m, PetscBool device, Mat blocks[2], const PetscInt *garray, HybExec *x, PetscBool *may, PetscBool *right)
{
  Mat_MPIAIJHybridGPU *hyb = (Mat_MPIAIJHybridGPU *)A->spptr;

  PetscFunctionBegin;
  *may   = PETSC_FALSE;
  *right = PETSC_FALSE;
  if (HybMPIHaloBound(A) || HybTuningGet()->comm == HYB_COMM_PETSC || !blocks[0] || !blocks[1] || !MatIsSeqAIJHybridGPU(blocks[0]) || !MatIsSeqAIJHybridGPU(blocks[1])) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybWhereHalo(A, &hyb->choices, device, blocks[0], x));
  if (!HybExecOnDevice(x)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSortedInt(blocks[1]->cmap->n, garray, may));
  if (m->halo && m->halo->nghost == blocks[1]->cmap->n) PetscCall(PetscArraycmp(m->garray, garray, m->halo->nghost, right));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective, but called by all processes of comm: if it is PETSC_COMM_WORLD its HybComm stays to the end */
PetscErrorCode HybMPIHoldWorld(MPI_Comm comm)
{
  PetscMPIInt how;

  PetscFunctionBegin;
  if (HybGlueState.world) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_compare(comm, PETSC_COMM_WORLD, &how));
  if (how == MPI_IDENT || how == MPI_CONGRUENT) PetscCall(HybCommGet(comm, &HybGlueState.world));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All have m->comm */
static PetscErrorCode HybMPIHaloMake(Mat A, HybMPIHalo *m, const HybExec *x, PetscInt n, const PetscInt *garray)
{
  PetscErrorCode ierr = HybMPIHaloEmpty(m);

  PetscFunctionBegin;
  if (!ierr) ierr = PetscMalloc1(n, &m->garray);
  if (!ierr) ierr = PetscArraycpy(m->garray, garray, n);
  PetscCall(HybHaloCreate(m->comm, x, ierr, A->cmap->range, n, garray, PETSC_TRUE, &m->halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* what its agreements go by, and what a halo needs, unless it is there; *made: it was not. Also after an error: it
   counts PETSc's tags, of which all must have taken as many. */
static PetscErrorCode HybMPIHaloComm(MPI_Comm comm, HybMPIHalo *m, PetscBool made[2])
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  made[0] = (PetscBool)!m->comm;
  made[1] = (PetscBool)!HybGlueState.world;
  if (made[0]) ierr = HybCommGet(comm, &m->comm);
  PetscCall(HybErrorFirst(ierr, HybMPIHoldWorld(comm)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* by which way its products exchange entries, where that is news */
PetscErrorCode MatMPIAIJHybridGPUTellWay(Mat A, PetscBool transpose)
{
  HybMPIHalo      *m      = &((Mat_MPIAIJHybridGPU *)A->spptr)->halo;
  const char      *way    = HybHaloWay(m->halo, transpose);
  const PetscInt64 ghosts = (PetscInt64)m->halo->nghost * (PetscInt64)sizeof(PetscScalar), sent = (PetscInt64)m->halo->nsend * (PetscInt64)sizeof(PetscScalar);

  PetscFunctionBegin;
  if (way == m->told[transpose]) PetscFunctionReturn(PETSC_SUCCESS);
  m->told[transpose] = way;
  PetscCall(PetscInfo(A, "A %sproduct with a vector takes %" PetscInt64_FMT " bytes of other processes' entries to the device and %" PetscInt64_FMT " from it, by %s\n", transpose ? "transposed " : "", transpose ? sent : ghosts, transpose ? ghosts : sent, way));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is true of any process: it cannot use a halo; its halo is not the right one; its matrix is bound to the CPU; its
   matrix is not bound */
enum {
  CANNOT,
  OTHER,
  BOUND,
  FREE,
  ANSWERS
};
static PetscErrorCode HybMPIHaloDecide(Mat A, HybMPIHalo *m, PetscBool device, Mat blocks[2], const PetscInt *garray, HybExec *x)
{
  PetscBool      may = PETSC_FALSE, right = PETSC_FALSE, bound = HybMPIHaloBound(A), made[2];
  PetscInt64     any[ANSWERS];
  PetscErrorCode ierr;
  const int      former = m->known[!device] && m->serves[!device];

  PetscFunctionBegin;
  ierr        = HybMPIHaloLook(A, m, device, blocks, garray, x, &may, &right);
  ierr        = HybErrorFirst(ierr, HybMPIHaloComm(PetscObjectComm((PetscObject)A), m, made));
  any[CANNOT] = !may;
  any[OTHER]  = !right;
  any[BOUND]  = bound;
  any[FREE]   = !bound;
  ierr        = HybAgreeMax(PetscObjectComm((PetscObject)A), ierr, "Multiplying with a part of a matrix", ANSWERS, any);
  if (ierr && made[0]) (void)HybCommRestore(&m->comm);
  if (ierr && made[1]) (void)HybCommRestore(&HybGlueState.world);
  PetscCall(ierr);
  if (!any[CANNOT] && any[OTHER])
    PetscCall(HybMPIHaloMake(A, m, x, blocks[1]->cmap->n, garray));
  /* who was bound may be so no more; PETSc's scatter comes next */
  else if (m->halo && any[CANNOT] && !former && !any[BOUND])
    PetscCall(HybAgree(PetscObjectComm((PetscObject)A), HybMPIHaloDestroy(m), "Giving up a halo"));
  if (!any[CANNOT]) {
    m->told[0] = m->told[1] = NULL;
    PetscCall(MatMPIAIJHybridGPUTellWay(A, PETSC_FALSE));
  } else if (HybGlueState.device && blocks[1] && !bound)
    PetscCall(PetscInfo(A, "A product with a vector takes %" PetscInt64_FMT " bytes of other processes' entries to the device, by PETSc's scatter\n", (PetscInt64)blocks[1]->cmap->n * (PetscInt64)sizeof(PetscScalar)));
  m->bound          = bound; /* alike on all, or mixed says so */
  m->mixed          = (PetscBool)(any[BOUND] && any[FREE]);
  m->known[device]  = PETSC_TRUE;
  m->serves[device] = (PetscBool)!any[CANNOT];
  if (m->mixed) {
    m->known[!device]  = PETSC_TRUE;
    m->serves[!device] = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMPIAIJHybridGPUGetHalo(Mat A, PetscBool device, Mat blocks[2], HybExec *x, HybHalo *halo)
{
  Mat_MPIAIJHybridGPU *hyb = NULL;
  HybMPIHalo          *m;
  const PetscInt      *garray;

  PetscFunctionBegin;
  *halo = NULL;
  if (!A->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJHybridGPUGetData(A, &hyb));
  m = &hyb->halo;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &garray));
  if (m->knownsetups != m->setups || m->knownstate != A->nonzerostate || (!m->mixed && m->bound != HybMPIHaloBound(A))) m->known[0] = m->known[1] = PETSC_FALSE;
  if (!m->known[device]) {
    PetscCall(HybMPIHaloDecide(A, m, device, blocks, garray, x));
    m->knownsetups = m->setups;
    m->knownstate  = A->nonzerostate;
  }
  if (HybMPIHaloBound(A)) blocks[1] = NULL; /* nobody is told that it goes through the host */
  if (!m->serves[device]) PetscFunctionReturn(PETSC_SUCCESS);
  *halo = m->halo; /* set before the calls that may fail: the other processes use the halo even then */
  PetscCall(HybGlueGetExec(A, &hyb->choices, HYB_ANY_SIZE, x));
  PetscCheck(HybExecOnDevice(x), PETSC_COMM_SELF, PETSC_ERR_PLIB, "The device of this process is gone");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The sequential type: what is overridden over MATSEQAIJ, conversion both ways, and the private data.

  The parent's operations are hidden symbols in a shared PETSc, so they are taken as a whole (struct _MatOps) from the
  first pristine object that passes through the converter, and called through that copy.
*/
#include "seq.h"
#include "../storage/where.h"
#include "aijhybridgpu/private/hybproduct.h"

static PetscErrorCode MatSeqAIJHybridGPUDestroyPlans(Mat_SeqAIJHybridGPU *hyb)
{
  PetscFunctionBegin;
  PetscCall(HybMultPlanDestroy(&hyb->host));
  PetscCall(HybMultPlanDestroy(&hyb->device));
  PetscCall(HybMultPlanDestroy(&hyb->transpose.mult));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_SeqAIJHybridGPU(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = (Mat_SeqAIJHybridGPU *)A->spptr;
  HybArena             arrays;
  const PetscInt      *i      = NULL;
  PetscBool            narrow = PETSC_FALSE, began = PETSC_FALSE;
  /* the first error is reported when all else is done */
  PetscErrorCode ierr = PETSC_SUCCESS, parents = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (hyb) {
    HybRecordGone(A);
    ierr = MatSeqAIJHybridGPUDestroyPlans(hyb);
    ierr = HybErrorFirst(ierr, HybGivenKeep(A, hyb));
    ierr = HybErrorFirst(ierr, MatSeqAIJHybridGPUDestroyDevice(hyb));
    /* whoever holds them still, holds nothing from here on */
    hyb->readers = hyb->writers = hyb->rows = hyb->patterns = 0;
    ierr                                                    = HybErrorFirst(ierr, HybStorageDropMoved(A, hyb));
    ierr                                                    = HybErrorFirst(ierr, HybStorageFreeRetired(hyb));
    arrays                                                  = hyb->arrays;
    i                                                       = hyb->adopted;
    narrow                                                  = hyb->narrow;
    PetscCall(PetscFree(hyb->preallocated));
    if (HybMayWatch() && HybGlueState.registered && !HybGlueState.spare) {
      HybGlueState.spare = A->spptr;
      A->spptr           = NULL;
    } else
      PetscCall(PetscFree(A->spptr));
  }
  /* where nobody has A any more, and where MatHeaderMerge() empties a header, which has no type's name then, they go
     by themselves */
  if (((PetscObject)A)->type_name && ((PetscObject)A)->refct > 0) PetscCall((*HybGlueState.compose)(A, PETSC_TRUE, PETSC_FALSE));
  ierr = HybErrorFirst(ierr, HybRowBlocksBegin(A, i, narrow, &began));
  /* none is left where an error ended the first attempt */
  if (A->data) parents = HybComposeGone(A, HybGlueState.seq.destroy);
  /* the base class used them until now */
  if (hyb && !parents) ierr = HybErrorFirst(ierr, HybArenaReset(&arrays));
  if (began) HybRowBlocksEnd();
  PetscCall(parents);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_SeqAIJHybridGPU(Mat A, MatAssemblyType mode)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  PetscObjectState     state;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, assemblyend, A, mode);
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if (HybGlueState.given.kept) PetscCall(HybGivenTake(A));
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (hyb->hostonly) {
    PetscCall((*HybGlueState.seq.assemblyend)(A, mode));
    HybHostOnlyAssembled(A, hyb, state);
    hyb->coopattern = PETSC_FALSE;
    HybGlueState.counts.assemblies += mode == MAT_FINAL_ASSEMBLY;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (hyb->assembling && hyb->assembling == state && hyb->copy.values && hyb->copy.mark.state == state) {
    /* MatSetValuesCOO() wrote on the device and calls this: nothing was inserted, and MatAssemblyEnd() will count the
       values as new ones */
    hyb->copy.mark.state = state + 1;
    hyb->copy.mark.step  = PETSC_FALSE;
  } else {
    PetscCall((*HybGlueState.seq.assemblyend)(A, mode));
    /* the parent has chosen again */
    if (hyb->inodesleft || hyb->arrays.blocks) PetscCall(HybInodesLend(A, PETSC_TRUE));
    /* MatConvert() from MATNEST holds the values of what is used again, which the host made as a rule, and writes its
       pattern too. What lives on the device stays there while somebody holds it. */
    if (hyb->writers && !HybBorn(hyb)) PetscCall(MatSeqAIJHybridGPUPatternMoved(A));
  }
  hyb->assembling = 0;
  hyb->coopattern = PETSC_FALSE;
  if (mode == MAT_FINAL_ASSEMBLY) {
    HybGlueState.counts.assemblies++;
    PetscCall(MatSeqAIJHybridGPUExpect(A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetFromOptions_SeqAIJHybridGPU(Mat A, HybOptionItems items)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  HybChoices           before;

  PetscFunctionBegin;
  if (PetscUnlikely(!MatIsSeqAIJHybridGPU(A))) { /* the parent may have none */
    PetscCall(MatSeqAIJHybridGPULeave(A));
    if (A->ops->setfromoptions) PetscCall((*A->ops->setfromoptions)(A, items));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (HybGlueState.seq.setfromoptions) PetscCall((*HybGlueState.seq.setfromoptions)(A, items));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  before = hyb->choices;
  PetscCall(HybChoicesSetFromOptions(&hyb->choices, items));
  if (memcmp(&before, &hyb->choices, sizeof(before))) PetscCall(MatSeqAIJHybridGPUDestroyPlans(hyb));
  if (before.backend != hyb->choices.backend) HybHostOnlyEnd(A, hyb);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatView_SeqAIJHybridGPU(Mat A, PetscViewer viewer)
{
  PetscBool         isascii;
  PetscViewerFormat format;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, view, A, viewer);
  PetscCall((*HybGlueState.seq.view)(A, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &isascii));
  if (!isascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (format == PETSC_VIEWER_ASCII_INFO_DETAIL) {
    Mat_SeqAIJHybridGPU *hyb = NULL;
    char                 text[512];

    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    PetscCall(HybGlueDescribeMemory(text, sizeof(text), NULL));
    PetscCall(HybStorageView(hyb, viewer));
    PetscCall(PetscViewerASCIIPrintf(viewer, "AIJHybridGPU: %s\n", text));
    PetscCall(PetscViewerASCIIPrintf(viewer, "AIJHybridGPU: SpMV method %s, SpGEMM method %s, %zu bytes adopted from a product\n", hyb->device.ready ? hyb->device.plan.method->name : (hyb->host.ready ? hyb->host.plan.method->name : hyb->choices.spmv), hyb->choices.spgemm, hyb->arrays.bytes));
    if (A->product && A->product->view) PetscCall((*A->product->view)(A, viewer));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The options that a duplicate takes over */
static void HybAskedKeep(Mat_SeqAIJHybridGPU *hyb, MatOption op, PetscBool flg)
{
  HybAskedGroup group;

  switch (op) {
  case MAT_ROW_ORIENTED:
    group = HYB_ASKED_ROW_ORIENTED;
    break;
  case MAT_KEEP_NONZERO_PATTERN:
    group = HYB_ASKED_KEEP_PATTERN;
    break;
  case MAT_IGNORE_ZERO_ENTRIES:
    group = HYB_ASKED_IGNORE_ZEROS;
    break;
  case MAT_NEW_NONZERO_LOCATIONS:
  case MAT_NEW_NONZERO_LOCATION_ERR:
  case MAT_NEW_NONZERO_ALLOCATION_ERR:
    group = HYB_ASKED_NEW_NONZEROS;
    break;
  default:
    return;
  }
  hyb->asked[group] = (HybAsked){PETSC_TRUE, op, flg};
}

static PetscErrorCode MatSetOption_SeqAIJHybridGPU(Mat A, MatOption op, PetscBool flg)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, setoption, A, op, flg);
  if (op == MAT_STRUCTURE_ONLY && flg) PetscCall(MatSeqAIJHybridGPUDisown(A)); /* the parent frees the values */
  PetscCall((*HybGlueState.seq.setoption)(A, op, flg));
  /* the parent has put its own there */
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  if (op == MAT_SORTED_FULL && !flg && !hyb->hostonly) A->ops->setvalues = HybGlueState.own.setvalues;
  HybAskedKeep(hyb, op, flg);
  /* adoption has looked for inodes already, and a numeric phase assembles nothing: a change of mind takes effect
     here */
  if (op != MAT_USE_INODES || !A->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  hyb->inodesleft = PETSC_FALSE; /* the program has its mind made up */
  if (hyb->arrays.blocks && (flg || !HybBorn(hyb))) {
    PetscCall((*HybGlueState.seq.assemblyend)(A, MAT_FINAL_ASSEMBLY));
    PetscCall(HybInodesLend(A, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The base class counts what it allocated: adopted arrays are not among it, and are exactly filled */
static PetscErrorCode MatGetInfo_SeqAIJHybridGPU(Mat A, MatInfoType flag, MatInfo *info)
{
  PetscFunctionBegin;
  PetscCall((*HybGlueState.seq.getinfo)(A, flag, info));
  if (info->nz_allocated < info->nz_used) {
    info->nz_allocated = info->nz_used;
    info->nz_unneeded  = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent preallocates anew past all functions */
static PetscErrorCode MatLoad_SeqAIJHybridGPU(Mat A, PetscViewer viewer)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, load, A, viewer);
  PetscCall(HybInodesFind(A));
  PetscCall(MatSeqAIJHybridGPUDemote(A));
  PetscCall(MatSeqAIJHybridGPUHostWrites(A));
  PetscCall((*HybGlueState.seq.load)(A, viewer));
  if (MatIsSeqAIJHybridGPU(A)) PetscCall(HybStorageSettle(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_DEVICE)
  #define HybBoundToCPU(A) ((A)->boundtocpu = PETSC_TRUE)
#else
  #define HybBoundToCPU(A) ((void)(A))
#endif
/*
  A factorization in place leaves a host's factor, so the matrix is bound to the CPU from then on: otherwise PETSc would
  take the right-hand sides of MatMatSolve() to the device, which this machine need not have.
*/
static PetscErrorCode MatLUFactor_SeqAIJHybridGPU(Mat A, IS row, IS col, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, lufactor, A, row, col, info);
  PetscCall(MatSeqAIJHybridGPUDisown(A));
  PetscCall((*HybGlueState.seq.lufactor)(A, row, col, info));
  HybBoundToCPU(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatILUFactor_SeqAIJHybridGPU(Mat A, IS row, IS col, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  HybLeaveIfOverlaid(A, ilufactor, A, row, col, info);
  PetscCall(MatSeqAIJHybridGPUDisown(A));
  PetscCall((*HybGlueState.seq.ilufactor)(A, row, col, info));
  HybBoundToCPU(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What we put over the parent's operations; restored slot by slot when converting back */
static void MatSeqAIJHybridGPUSetOps(Mat A, PetscBool on)
{
  static const struct _MatOps ours = {
    .destroy                   = MatDestroy_SeqAIJHybridGPU,
    .assemblyend               = MatAssemblyEnd_SeqAIJHybridGPU,
    .setfromoptions            = MatSetFromOptions_SeqAIJHybridGPU,
    .view                      = MatView_SeqAIJHybridGPU,
    .getinfo                   = MatGetInfo_SeqAIJHybridGPU,
    .setoption                 = MatSetOption_SeqAIJHybridGPU,
    .mult                      = MatMult_SeqAIJHybridGPU,
    .multadd                   = MatMultAdd_SeqAIJHybridGPU,
    .multtranspose             = MatMultTranspose_SeqAIJHybridGPU,
    .multtransposeadd          = MatMultTransposeAdd_SeqAIJHybridGPU,
    .multhermitiantranspose    = MatMultHermitianTranspose_SeqAIJHybridGPU,
    .multhermitiantransposeadd = MatMultHermitianTransposeAdd_SeqAIJHybridGPU,
    .residual                  = MatResidual_SeqAIJHybridGPU,
    .lufactor                  = MatLUFactor_SeqAIJHybridGPU,
    .ilufactor                 = MatILUFactor_SeqAIJHybridGPU,
    .load                      = MatLoad_SeqAIJHybridGPU,
  };

  HybOpsOver(A, &ours, &HybGlueState.seq, on);
  A->ops->productsetfromoptions = on ? HybGlueState.productsetfromoptions[0] : HybGlueState.seq.productsetfromoptions;
  if (!on) {
    A->ops->convertfrom = HybGlueState.seq.convertfrom;
    A->ops->convert     = HybGlueState.seq.convert;
  }
  MatSeqAIJHybridGPUSetValuesOps(A, on);
  HybInodesSetOps(A, on);
  MatSeqAIJHybridGPUSetDeviceOps(A, on);
}

/* The common part of both converters: operations, private data and composed functions on an object that is MATSEQAIJ */
static PetscErrorCode MatSeqAIJHybridGPUInstall(Mat B)
{
  HybChoices choices;
  PetscBool  first = (PetscBool)!HybGlueState.captured_seq;

  PetscFunctionBegin;
  if (MatIsSeqAIJHybridGPU(B)) PetscFunctionReturn(PETSC_SUCCESS);
  if (first && B->sortedfull) { /* not pristine: its setvalues is another one */
    Mat T;

    PetscCall(MatCreate(PETSC_COMM_SELF, &T));
    PetscCall(MatSetType(T, MATSEQAIJ)); /* with -mat_seqaij_type this comes here and captures */
    PetscCall(MatSeqAIJHybridGPUInstall(T));
    PetscCall(MatDestroy(&T));
    first = PETSC_FALSE;
  }
  if (first) {
    PetscCall(HybFrameFind());
    PetscCall(HybNarrowFind(B));
    HybGlueState.seq          = *B->ops;
    HybGlueState.captured_seq = PETSC_TRUE;
  }
  if (!first && !memcmp(B->ops, &HybGlueState.seq, sizeof(*B->ops)))
    *B->ops = HybGlueState.own; /* as it comes out for what is new */
  else
    MatSeqAIJHybridGPUSetOps(B, PETSC_TRUE);
  if (first) HybGlueState.own = *B->ops;
  HybDoorOpen(B);
  /* what is wrong with the options is said now; the private data come with their first use */
  PetscCall(HybGlueReadChoices(&choices));
  PetscCall((*HybGlueState.compose)(B, PETSC_TRUE, PETSC_TRUE));
#if defined(PETSC_HAVE_DEVICE)
  B->boundtocpu = PETSC_FALSE; /* MatCreate() binds what does not say otherwise */
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybDuplicateOfParent(Mat A, Mat *B)
{
  PetscFunctionBegin;
  HybWithLargePages(A->rmap->n, MatDuplicate(A, MAT_COPY_VALUES, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatConvert_SeqAIJ_SeqAIJHybridGPU(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;
  Mat                  B;
  /* its arrays may be the program's, see promoted.c; also where its operations are ours by -mat_seqaij_type */
  PetscBool plain;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatSeqAIJHybridGPUTakeValues(*newmat, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INITIAL_MATRIX)
    PetscCall(HybDuplicateOfParent(A, newmat));
  else
    *newmat = A;
  B = *newmat;
  PetscCall(PetscStrcmp(((PetscObject)B)->type_name, MATSEQAIJ, &plain));
  plain = (PetscBool)(plain || !MatIsSeqAIJHybridGPU(B));
  PetscCall(MatSeqAIJHybridGPUInstall(B));
  PetscCall(MatSeqAIJHybridGPUGetData(B, &hyb)); /* now: later it could fail amid a function of the parent's */
  if (plain && reuse == MAT_INPLACE_MATRIX && B->preallocated && !hyb->arrays.blocks) hyb->lentarrays = PETSC_TRUE;
  PetscCall(MatAIJHybridGPUSetVecType(B));
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATSEQAIJHYBRIDGPU));
  /* under our own name alone: a matrix called seqaij is converted to as PETSc does it */
  B->ops->convertfrom = HybGlueState.convertfrom;
  B->ops->convert     = HybGlueState.convertany;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The converter behind -mat_seqaij_type. It overrides the operations and keeps the type name seqaij: with a new name a
  second MatSetType(A, MATSEQAIJ) would destroy the matrix, and PETSc's dispatch by exact name would not know it.
*/
PetscErrorCode MatSeqAIJHybridGPUOperateSeqAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatSeqAIJHybridGPUTakeValues(*newmat, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (reuse == MAT_INITIAL_MATRIX)
    PetscCall(HybDuplicateOfParent(A, newmat));
  else
    *newmat = A;
  if (!MatIsSeqAIJHybridGPU(*newmat)) {
    PetscCall(MatSeqAIJHybridGPUInstall(*newmat));
    PetscCall((*HybGlueState.composeparents)(*newmat, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatConvert_SeqAIJHybridGPU_SeqAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat                  B;
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(MatCopy(A, *newmat, SAME_NONZERO_PATTERN));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* not by way of the device, which may lack the room and whose copy would cross the bus */
  if (reuse == MAT_INITIAL_MATRIX) {
    PetscErrorCode ierr;

    PetscCall(HybInodesLook(A)); /* by the device, which knows nothing of B */
    PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
    hyb->hostcopy = PETSC_TRUE;
    ierr          = MatDuplicate(A, MAT_COPY_VALUES, newmat);
    hyb->hostcopy = PETSC_FALSE;
    PetscCall(ierr);
  } else
    *newmat = A;
  B = *newmat;
  PetscCall(MatSeqAIJHybridGPUGetData(B, &hyb));
  PetscCall(MatSeqAIJHybridGPUDisown(B)); /* the base class must not outlive our arrays */
  PetscCall(HybInodesFind(B));            /* nobody will look for them later */
  PetscCall(HybInodesLend(B, PETSC_FALSE));
  PetscCall(HybStorageLeaveRetired(B, hyb));
  PetscCall(HybDoorClose(B));
  PetscCall(MatSeqAIJHybridGPUDestroyPlans(hyb));
  PetscCall(MatSeqAIJHybridGPUDestroyDevice(hyb));
  PetscCall(PetscFree(hyb->preallocated));
  PetscCall(PetscFree(B->spptr));
  PetscCall((*HybGlueState.compose)(B, PETSC_TRUE, PETSC_FALSE));
  MatSeqAIJHybridGPUSetOps(B, PETSC_FALSE);
  PetscCall(PetscObjectCompose((PetscObject)B, "HybCOO", NULL)); /* the parent's functions know nothing of it */
#if defined(PETSC_HAVE_DEVICE)
  B->boundtocpu = PETSC_TRUE;
  PetscCall(MatAIJHybridGPUSetVecType(B));
#endif
  PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATSEQAIJ));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
   MATAIJHYBRIDGPU - "aijhybridgpu" - sparse matrices in AIJ (compressed row) format whose matrix-vector products,
   sparse products and Galerkin products are computed by the methods of petsc-aijhybridgpu, on the host or on an NVIDIA
   GPU. It is `MATSEQAIJHYBRIDGPU` on one process and `MATMPIAIJHYBRIDGPU` on several.

   Options Database Keys:
+  -mat_type aijhybridgpu - sets the type during `MatSetFromOptions()`
.  -mat_seqaij_type seqaijhybridgpu - gives the operations to every `MATSEQAIJ`, also in programs that name their type
.  -mat_aijhybridgpu_backend <auto, host, cuda> - where operations run; auto: on a GPU where one is found and the matrix
   is large enough; cuda: an error without one; by default auto
.  -mat_aijhybridgpu_report <file.html or file.json> - writes at the end a page, or its data: what ran where, how long,
   and advice
.  -mat_aijhybridgpu_device <the number of a card, 0 or more> - number of the card to use; by default PETSc's, else by
   turns within the node
.  -mat_aijhybridgpu_device_min <a number of nonzeros, 0 or more> - operations on matrices with fewer nonzeros run on
   the host, with -mat_aijhybridgpu_backend auto; by default 10000 if the matrix's vectors are on the card, else 100000
.  -mat_aijhybridgpu_memory <managed, mirror> - where results on the device live: managed: one storage for host and
   device; mirror: device arrays beside host ones; by default managed
.  -mat_aijhybridgpu_memory_limit <a number of bytes, 0 or more> - bytes of the card that this process may use; 0: all;
   by default 0
.  -mat_aijhybridgpu_comm <auto, mpi, peer, petsc, gpuaware> - how the cards of several processes exchange entries;
   auto: by peer access, else by GPU-aware MPI, else by MPI from the host; petsc: PETSc's own scatter; by default auto
.  -mat_aijhybridgpu_comm_aware <auto, no, yes> - is MPI GPU-aware? auto: as -use_gpu_aware_mpi says. If you say yes and
   MPI is not, the program crashes; by default auto
.  -mat_aijhybridgpu_comm_timeout <1 or more> - seconds that a process waits on its card for another's entries before it
   gives up with an error; by default 3600
.  -mat_aijhybridgpu_promote <auto, never> - values of a matrix move to the device once the program changes them by
   operations that run there; never: they stay; by default auto
.  -mat_aijhybridgpu_lock_after <a number of times, 0 or more> - after this number of copies to the card, values of a
   host matrix move to page-locked memory; 0: never; by default 24
.  -mat_aijhybridgpu_smoothers - for matrices of the type, steps of PCJACOBI and KSPCHEBYSHEV that PETSc has only on the
   host run on the device; by default true
.  -mat_aijhybridgpu_spgemm <auto, or a method's name> - the method of sparse products; auto: the fastest by cost rules;
   by default auto
.  -mat_aijhybridgpu_spmv <auto, or a method's name> - the method of products with a vector; by default auto
.  -mat_aijhybridgpu_view_memory - prints at the end how much memory was held and what crossed the bus; by default false
.  -mat_aijhybridgpu_view_counts <file> - a file to which each process appends at the end the counts of what ran
.  -mat_aijhybridgpu_unknown_options - prints at the end, on stderr, the given options that look like the type's own but
   do not exist; by default true
.  -mat_aijhybridgpu_tuning <name=value,name=value> - values for tuning and for tests, by name
.  -mat_aijhybridgpu_cuda_library <path> - the file of the GPU part; by default cuda/libaijhybridgpu_cuda.so beside
   libaijhybridgpu.so
-  -mat_product_algorithm <auto, ...> - method of one product (-matmatmult_via, -matptap_via, ... where the program
   calls MatMatMult(), MatPtAP(), ...)

   Level: beginner

   Notes:
   -mat_aijhybridgpu_backend, _spgemm and _spmv may stand under a matrix's prefix. The others belong to the whole
   process. More options, for tuning and for tests, are in docs/tuning.md and in aijhybridgpu-options(7).

   Everything that `MATAIJ` can do, this type can do: what is not overridden is the parent's. Operands of products whose
   rows are not sorted, as a program's own arrays may be, are copied and sorted each time.

   References:
+ * - W. Liu, B. Vinter, A framework for general sparse matrix-matrix multiplication on GPUs and heterogeneous
   processors, 2015
.  * - F. Gremse et al., GPU-accelerated sparse matrix-matrix multiplication by iterative row merging, 2015
.  * - H. Ji et al., Segmented merge: a new primitive for parallel sparse matrix computations, 2021
- * - W. Liu, B. Vinter, Speculative segmented sum for sparse matrix-vector multiplication on heterogeneous processors,
   2015

.seealso: `MatCreateAIJHybridGPU()`, `MatCreateSeqAIJHybridGPU()`, `MATAIJ`, `MATAIJCUSPARSE`
M*/

/*MC
   MATSEQAIJHYBRIDGPU - "seqaijhybridgpu" - the sequential form of `MATAIJHYBRIDGPU`

   Level: beginner

.seealso: `MATAIJHYBRIDGPU`
M*/

PetscErrorCode MatCreate_SeqAIJHybridGPU(Mat A)
{
  Mat_SeqAIJHybridGPU *hyb = NULL;

  PetscFunctionBegin;
  PetscCall(HybSetParentType(A, MATSEQAIJ));
  PetscCall(MatConvert_SeqAIJ_SeqAIJHybridGPU(A, MATSEQAIJHYBRIDGPU, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatSeqAIJHybridGPUGetData(A, &hyb));
  hyb->optionsknown = PETSC_TRUE; /* those of its birth, and what MatSetOption() brings */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   MatCreateSeqAIJHybridGPU - Creates a sequential sparse matrix of type `MATSEQAIJHYBRIDGPU`

   Collective

   Input Parameters:
+  comm - an MPI communicator of one process
.  m    - number of rows
.  n    - number of columns
.  nz   - number of nonzeros a row (the same for all rows), ignored if `nnz` is given
-  nnz  - array of `m` numbers of nonzeros a row, or `NULL`

   Output Parameter:
.  A - the matrix, preallocated, to be filled with `MatSetValues()` and destroyed with `MatDestroy()`

   Level: intermediate

   Note:
   `MatAIJHybridGPUInitializePackage()` must have been called, or the library loaded with -dll_append: without that the
   type is unknown (`PETSC_ERR_ARG_UNKNOWN_TYPE`).

.seealso: `MATAIJHYBRIDGPU`, `MatCreateAIJHybridGPU()`, `MatCreateSeqAIJ()`
@*/
PetscErrorCode MatCreateSeqAIJHybridGPU(MPI_Comm comm, PetscInt m, PetscInt n, PetscInt nz, const PetscInt nnz[], Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, m, n, m, n));
  PetscCall(MatSetType(*A, MATSEQAIJHYBRIDGPU));
  PetscCall(MatSeqAIJSetPreallocation(*A, nz, nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

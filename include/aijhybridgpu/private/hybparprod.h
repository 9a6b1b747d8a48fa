/*
  hybparprod.h: PETSc's sparse products (AB, AtB, ABt, PtAP, RARt, ABC) of matrices that are distributed by rows, over
  the sequential products of each process and what comm passes between them.
*/
#ifndef AIJHYBRIDGPU_HYBPARPROD_H
#define AIJHYBRIDGPU_HYBPARPROD_H
#include "hybcomm.h"
#include "hybproduct.h"

HYB_EXTERN_C_BEGIN

/* This process's rows of a distributed matrix, by reference as a HybCSR is. D has the columns that it owns, O those of
   others that have entries here, column k being garray[k] of the whole. Ranges and garray are the host's: process r has
   rows rows[r] to rows[r+1]-1, and the columns between columns[r] and columns[r+1]. */
typedef struct {
  const PetscInt *rows, *columns;
  HybCSR          D, O;
  const PetscInt *garray; /* ascending; O.n of them */
} HybParCSR;

typedef struct _HybParProduct *HybParProduct;

/* All collective but where it is said. An error of one process is one of all. */
extern PetscErrorCode HybParProductCreate(MPI_Comm, const HybExec *, HybProductType, const char *method, PetscInt width, HybParProduct *);
/* Layouts conform. result's D and O come from out[0] and out[1] (memory exec->result), their values allocated, not yet
   computed; result->garray stays until the next symbolic phase, the ranges are the operands'. before: an error that
   this process has had, which becomes one of all. */
extern PetscErrorCode HybParProductSymbolic(HybParProduct, PetscErrorCode before, const HybParCSR *A, const HybParCSR *B, const HybParCSR *C, HybArena out[2], HybParCSR *result);
/* not collective; before the symbolic phase, see HybProductSetBlockSize() */
extern PetscErrorCode HybParProductSetBlockSize(HybParProduct, PetscInt bs);
/* Not collective. For the next numeric phase: which operands have the values that the last one saw, here, and on all
   processes, on each of which that one ended well: what follows from these alone is not moved between them again */
extern PetscErrorCode HybParProductUnchanged(HybParProduct, const PetscBool same[3], const PetscBool all[3]);
/* operands of the patterns given to symbolic, any values; before: an error that this process has had, of which the
   others are to know before they wait for it. An error of what a process does at the end alone is its own: the caller
   lets all agree (HybParProductAgree()) when it has done its part as well. */
extern PetscErrorCode HybParProductNumeric(HybParProduct, PetscErrorCode before, const HybParCSR *A, const HybParCSR *B, const HybParCSR *C, HybParCSR *result);
/* Has what each process did alone succeeded for all? See HybCommAgree(). */
extern PetscErrorCode HybParProductAgree(HybParProduct, PetscErrorCode, const char *what);
/* Not collective: as those of HybProduct */
extern PetscErrorCode HybParProductSetStream(HybParProduct, void *stream);
extern PetscErrorCode HybParProductGetInfo(HybParProduct, PetscLogDouble *flops, size_t *bytes);
extern PetscErrorCode HybParProductDescribe(HybParProduct, char text[], size_t length);
extern PetscErrorCode HybParProductGetMethod(HybParProduct, const char **);
extern PetscErrorCode HybParProductGetCounter(HybParProduct, const char *name, PetscCount *);
extern PetscErrorCode HybParProductDestroy(HybParProduct *);

HYB_EXTERN_C_END
#endif

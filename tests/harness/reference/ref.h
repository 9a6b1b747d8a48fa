/*
  ref.h: the reference that every method is compared with. Single-threaded, on the host, as plain as possible, and
  independent of the library: it shares no code with it and takes its memory from malloc().

  Each sum is formed twice, in working precision and in long double; the reference stops the program when the two
  contradict each other. Beside every value it keeps the sum of the moduli of its terms and their number, which is what
  a fair error bound needs.
*/
#ifndef AIJHYBRIDGPU_TESTS_REF_H
#define AIJHYBRIDGPU_TESTS_REF_H
#include <aijhybridgpu/private/hyb.h>

typedef struct {
  HybCSR      csr;   /* host arrays; pass &M.csr to the library on the host, HybTestUpload() it for any backend */
  PetscReal  *mag;   /* of each entry: sum of the moduli of its terms; NULL for a matrix that was not computed */
  PetscCount *terms; /* of each entry: how many roundings, roughly; NULL likewise */
} RefMat;

/* zeroed, never NULL: the program ends without memory. Free with free(), several with RefFree(). */
extern void *RefAlloc(PetscCount count, size_t size);
extern void  RefFreeAll(void *const arrays[], size_t n);
#define RefFree(...) RefFreeAll((void *[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))
extern void RefMatCreate(PetscInt m, PetscInt n, PetscCount nnz, RefMat *);
extern void RefMatDestroyAll(RefMat *const matrices[]); /* the last one is NULL */
#define RefMatDestroy(...) RefMatDestroyAll((RefMat *[]){__VA_ARGS__, NULL})
extern void RefMatCopy(const RefMat *, RefMat *);

/* entries in any order; negative indices are ignored, duplicates summed in their order. v may be NULL (zeros). */
extern void RefCOO(PetscInt m, PetscInt n, PetscCount ncoo, const PetscInt *ci, const PetscInt *cj, const PetscScalar *v, RefMat *C);
extern void RefTranspose(const RefMat *A, PetscBool conjugate, RefMat *T);
extern void RefSpGEMM(const RefMat *A, const RefMat *B, RefMat *C);
/* values of the pattern of C = A*B, summed in A's order from the first product on, in working precision: to the bit
   what a method gives that keeps the order. Free with free(). */
extern PetscScalar *RefProductInOrder(const RefMat *A, const RefMat *B, const RefMat *C);
extern PetscScalar *RefProductFused(const RefMat *A, const RefMat *B, const RefMat *C); /* of reals, a chain of fma() */
extern void         RefPtAP(const RefMat *A, const RefMat *P, RefMat *C);
extern void         RefRARt(const RefMat *A, const RefMat *R, RefMat *C);
extern void         RefABC(const RefMat *A, const RefMat *B, const RefMat *C, RefMat *D);
/* on the union of the patterns */
extern void RefAdd(PetscScalar alpha, const RefMat *A, PetscScalar beta, const RefMat *B, RefMat *C);
extern void RefSubmatrix(const RefMat *A, PetscInt nrows, const PetscInt *rows, PetscInt cstart, PetscInt cend, RefMat *S);
/* z = y + sign*A x, or sign*A x when y is NULL; mag and terms (A->csr.m entries, may be NULL) as in RefMat */
extern void        RefSpMV(const RefMat *A, const PetscScalar *x, int sign, const PetscScalar *y, PetscScalar *z, PetscReal *mag, PetscCount *terms);
extern PetscReal   RefNorm(const RefMat *A, HybNorm type);
extern PetscScalar RefGet(const RefMat *A, PetscInt row, PetscInt col, PetscBool *stored); /* linear search */
/* the number of products of A*B, by rows if rowproducts is not NULL */
extern PetscCount RefProducts(const RefMat *A, const RefMat *B, PetscCount *rowproducts);
#endif

/*
  bench_cusparse.h: cuSPARSE beside our methods. Libraries are opened at run time by path, so that a program starts
  without any and can measure several releases side by side; what a release lacks is left out.

  A program includes this after its `dev`.
*/
#ifndef BENCH_CUSPARSE_H
#define BENCH_CUSPARSE_H
#if defined(__has_include)
  #if __has_include(<cusparse.h>) && !defined(PETSC_USE_COMPLEX) && !defined(PETSC_USE_REAL_SINGLE) && !defined(PETSC_USE_64BIT_INDICES)
    #include <cusparse.h>
    #include <dlfcn.h>
    #define HAVE_CUSPARSE 1
  #endif
#endif

static PetscInt ncusparse;

#if defined(HAVE_CUSPARSE)
  #define CUSPARSE_FUNCTIONS(F)   \
    F(Create)                     \
    F(GetVersion)                 \
    F(CreateCsr)                  \
    F(CreateDnVec)                \
    F(DestroySpMat)               \
    F(DestroyDnVec)               \
    F(SpMV_bufferSize)            \
    F(SpMV_preprocess)            \
    F(SpMV)                       \
    F(Csr2cscEx2_bufferSize)      \
    F(Csr2cscEx2)                 \
    F(SpMatGetSize)               \
    F(CsrSetPointers)             \
    F(SpGEMM_createDescr)         \
    F(SpGEMM_destroyDescr)        \
    F(SpGEMM_workEstimation)      \
    F(SpGEMM_estimateMemory)      \
    F(SpGEMM_compute)             \
    F(SpGEMM_copy)                \
    F(SpGEMMreuse_workEstimation) \
    F(SpGEMMreuse_nnz)            \
    F(SpGEMMreuse_copy)           \
    F(SpGEMMreuse_compute)

typedef struct {
  cusparseHandle_t handle;
  char             name[16]; /* its version */
  #define F(name) __typeof__(cusparse##name) *name;
  CUSPARSE_FUNCTIONS(F)
  #undef F
  /* experimental in 12.9 and in no header of CUDA 13.0: plans and descriptors are opaque pointers, algorithms
     numbers */
  cusparseStatus_t (*SpMVOp_bufferSize)(cusparseHandle_t, cusparseOperation_t, cusparseConstSpMatDescr_t, cusparseConstDnVecDescr_t, cusparseDnVecDescr_t, cusparseDnVecDescr_t, cudaDataType, int, size_t *);
  cusparseStatus_t (*SpMVOp_createDescr)(cusparseHandle_t, void **, cusparseOperation_t, cusparseConstSpMatDescr_t, cusparseConstDnVecDescr_t, cusparseDnVecDescr_t, cusparseDnVecDescr_t, cudaDataType, int, void *);
  cusparseStatus_t (*SpMVOp_createPlan)(cusparseHandle_t, void *, void **, const void *, size_t);
  cusparseStatus_t (*SpMVOp)(cusparseHandle_t, void *, const void *, const void *, cusparseConstDnVecDescr_t, cusparseConstDnVecDescr_t, cusparseDnVecDescr_t);
  cusparseStatus_t (*SpMVOp_destroyDescr)(void *);
  cusparseStatus_t (*SpMVOp_destroyPlan)(void *);
} Cusparse;

static Cusparse cusparses[4];

static PetscErrorCode CusparseOpen(const char *path)
{
  void     *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  Cusparse *cu  = &cusparses[ncusparse];
  int       version, missing = 0;

  PetscFunctionBegin;
  if (!lib) {
    printf("# no cuSPARSE: %s\n", dlerror());
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  #define F(name)                                       \
    *(void **)&cu->name = dlsym(lib, "cusparse" #name); \
    missing += !cu->name;
  CUSPARSE_FUNCTIONS(F)
  #undef F
  if (missing || cu->Create(&cu->handle) || cu->GetVersion(cu->handle, &version)) {
    printf("# no cuSPARSE: %s lacks %d functions, or gives no handle\n", path, missing);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  snprintf(cu->name, sizeof(cu->name), "%d.%d.%d", version / 1000, version / 100 % 10, version % 100);
  #define F(name) *(void **)&cu->name = version >= 12900 ? dlsym(lib, "cusparse" #name) : NULL
  F(SpMVOp_bufferSize);
  F(SpMVOp_createDescr);
  F(SpMVOp_createPlan);
  F(SpMVOp);
  F(SpMVOp_destroyDescr);
  F(SpMVOp_destroyPlan);
  #undef F
  printf("# cuSPARSE %s: %s\n", cu->name, path);
  ncusparse++;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* the libraries of a list of paths; none where that is "none" or the backend has no card; the toolkit's where it is
   empty */
static PetscErrorCode CusparseOpenAll(const char *paths)
{
  PetscFunctionBegin;
#if defined(HAVE_CUSPARSE)
  if (dev.backend->device && strcmp(paths, "none")) {
    static const char *const places[] = {"libcusparse.so.12", "/usr/local/cuda/lib64/libcusparse.so.12", "libcusparse.so"};
    char                     list[4096], *p, *rest = list;

    for (size_t k = 0; !paths[0] && !ncusparse && k < PETSC_STATIC_ARRAY_LENGTH(places); k++) PetscCall(CusparseOpen(places[k]));
    PetscCall(PetscStrncpy(list, paths, sizeof(list)));
    while ((p = strsep(&rest, ",")) && ncusparse < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(cusparses)) {
      if (*p) PetscCall(CusparseOpen(p));
    }
  }
#endif
  if (!ncusparse && strcmp(paths, "none")) printf("# cuSPARSE is not there to compare with\n");
  PetscFunctionReturn(PETSC_SUCCESS);
}

#endif

/*
  Loading: PETSc opens the library (-dll_append, PetscDLLibraryAppend()) and calls
  PetscDLLibraryRegister_aijhybridgpu(), or a program that links it calls MatAIJHybridGPUInitializePackage(). Only
  registrations here: no device is touched before its first use.
*/
#define _GNU_SOURCE /* dl_iterate_phdr() */
#include <dlfcn.h>
#include <link.h>
#include "../impls/aijhybridgpu/family.h"
#include "aijhybridgpu/private/hybmat.h"

typedef struct {
  int n;
  struct {
    const char *name;
    void       *base;
  } library[16];
} LoadedPetsc;

static int HybFindNames(struct dl_phdr_info *info, size_t size, void *ctx)
{
  LoadedPetsc *l    = (LoadedPetsc *)ctx;
  const char  *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

  base = base ? base + 1 : (info->dlpi_name ? info->dlpi_name : "");
  if (!strncmp(base, "libpetsc", 8) && strstr(base, ".so") && l->n < (int)PETSC_STATIC_ARRAY_LENGTH(l->library)) {
    l->library[l->n].name   = info->dlpi_name;
    l->library[l->n++].base = (void *)info->dlpi_addr;
  }
  return 0;
}

/* PETSc may be several libraries (--with-single-library=0), and others' names begin as PETSc's: each PETSc has one
   PetscInitialize() */
static void HybFindPetsc(LoadedPetsc *l)
{
  int n = 0;

  dl_iterate_phdr(HybFindNames, l);
  for (int k = 0; k < l->n; k++) {
    void   *handle = dlopen(l->library[k].name, RTLD_LAZY | RTLD_NOLOAD), *initialize = handle ? dlsym(handle, "PetscInitialize") : NULL;
    Dl_info info;

    if (initialize && dladdr(initialize, &info) && info.dli_fbase == l->library[k].base) l->library[n++] = l->library[k];
    if (handle) dlclose(handle);
  }
  l->n = n;
}

/*
  The private structures that glue must know move between PETSc's minor releases, and types differ between its
  configurations. The library that runs is asked, not its headers.
*/
static PetscErrorCode HybGlueCheckPetsc(void)
{
  union { /* room for that library's PetscInt, whatever ours is; the shorter one fills the lower half */
    PetscInt64 any;
    PetscInt   ours;
  } number[4];
  int           major, minor;
  PetscDataType scalar, real;
  PetscBool     found;
  size_t        sizeofint;
  LoadedPetsc   loaded;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&loaded, sizeof(loaded)));
  PetscCall(PetscMemzero(number, sizeof(number)));
  HybFindPetsc(&loaded);
  PetscCheck(loaded.n < 2, PETSC_COMM_SELF, PETSC_ERR_LIB, "libaijhybridgpu was built for %s, but the program runs %s: two PETSc libraries in one process do not work; build the plugin against the program's PETSc (make PETSC_DIR=... PETSC_ARCH=...)", loaded.library[1].name, loaded.library[0].name);
  PetscCheck(PETSC_COMM_WORLD != MPI_COMM_NULL, PETSC_COMM_SELF, PETSC_ERR_LIB, "libaijhybridgpu was loaded into a program that is linked with a static PETSc, whose types it cannot reach: link the program with PETSc's shared library");
  PetscCall(PetscDataTypeGetSize(PETSC_INT, &sizeofint));
  PetscCall(PetscGetVersionNumber(&number[0].ours, &number[1].ours, &number[2].ours, &number[3].ours));
  major = (int)number[0].any;
  minor = (int)number[1].any;
  PetscCheck(major == PETSC_VERSION_MAJOR && minor == PETSC_VERSION_MINOR, PETSC_COMM_SELF, PETSC_ERR_LIB, "libaijhybridgpu was built for PETSc %d.%d and cannot be loaded into PETSc %d.%d: build it against that one (make PETSC_DIR=... PETSC_ARCH=...)", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, major, minor);
  PetscCall(PetscDataTypeFromString("scalar", &scalar, &found));
  PetscCall(PetscDataTypeFromString("real", &real, &found));
  PetscCheck(sizeofint == sizeof(PetscInt) && scalar == PETSC_SCALAR && real == PETSC_REAL, PETSC_COMM_SELF, PETSC_ERR_LIB, "libaijhybridgpu was built for a PETSc with %d-bit integers and %s scalars (%s), this one has %d-bit integers and scalars of type %s: build it against this one (make PETSC_DIR=... PETSC_ARCH=...)",
             (int)(8 * sizeof(PetscInt)), PetscDefined(USE_COMPLEX) ? "complex" : "real", PetscDataTypes[PETSC_REAL], (int)(8 * sizeofint), PetscDataTypes[scalar]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   MatAIJHybridGPUInitializePackage - Registers the matrix types of petsc-aijhybridgpu

   Logically Collective on `PETSC_COMM_WORLD`

   Level: intermediate

   Notes:
   Needed once after `PetscInitialize()` in programs that link the library; again after another `PetscInitialize()`.
   Further calls do nothing. With -dll_append PETSc does the same.

   `PETSC_ERR_LIB` is raised, and nothing registered, where the library was built for another release of PETSc than the
   one that runs, for other integers or scalars, or where a second PETSc came into the process; the message names both.

.seealso: `MATAIJHYBRIDGPU`, `MatCreateAIJHybridGPU()`
@*/
PetscErrorCode MatAIJHybridGPUInitializePackage(void)
{
  HybGlue *g = &HybGlueState;

  PetscFunctionBegin;
  if (g->registered) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueCheckPetsc());
  HybGlueClear();
  PetscCall(MatRegister(MATSEQAIJHYBRIDGPU, MatCreate_SeqAIJHybridGPU));
  PetscCall(MatRegister(MATMPIAIJHYBRIDGPU, MatCreate_MPIAIJHybridGPU));
  PetscCall(MatRegisterRootName(MATAIJHYBRIDGPU, MATSEQAIJHYBRIDGPU, MATMPIAIJHYBRIDGPU));
  PetscCall(MatSeqAIJRegister(MATSEQAIJHYBRIDGPU, MatSeqAIJHybridGPUOperateSeqAIJ));
  PetscCall(HybGlueRegisterFactors());
  PetscCall(HybEventsRegister());
  PetscCall(HybGAMGRegister());
  PetscCall(HybMGRegister());
  g->compose        = MatAIJHybridGPUCompose;
  g->convertfrom    = MatConvertFrom_AIJHybridGPU;
  g->convertany     = MatConvert_SeqAIJHybridGPU_Any;
  g->convertseq     = MatConvert_SeqAIJ_SeqAIJHybridGPU;
  g->composeparents = MatSeqAIJHybridGPUComposeParents;

  g->productsetfromoptions[0] = MatProductSetFromOptions_SeqAIJHybridGPU;
  g->productsetfromoptions[1] = MatProductSetFromOptions_MPIAIJHybridGPU;
  PetscCall(HybOptionsReadReports());
  PetscCall(HybReportBegin(MatSeqAIJHybridGPUDescribe));
  if (HybGlueState.options.smoothers) PetscCall(HybSmoothersRegister());
  PetscCall(PetscRegisterFinalize(HybGlueFinalize));
  PetscCall(HybOptionsHelp());
  g->registered = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The name that PETSc derives from libaijhybridgpu.so */
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_aijhybridgpu(void)
{
  PetscFunctionBegin;
  PetscCall(MatAIJHybridGPUInitializePackage());
  PetscFunctionReturn(PETSC_SUCCESS);
}

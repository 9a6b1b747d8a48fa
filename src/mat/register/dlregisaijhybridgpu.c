/*
  Loading: PETSc opens the library (-dll_append, PetscDLLibraryAppend()) and calls PetscDLLibraryRegister_aijhybridgpu(), or a program that links it
  calls MatAIJHybridGPUInitializePackage(). Only registrations here: no device is touched before its first use.
*/
#define _GNU_SOURCE /* dl_iterate_phdr() */
#include <link.h>
#include "../impls/aijhybridgpu/aijhybridgpuimpl.h"

HybGlue       HybGlueState;
PetscLogEvent HYB_ProductSymbolic, HYB_ProductNumeric, HYB_Adopt, HYB_Check, HYB_CopyTo, HYB_CopyFrom, HYB_HostDuplicate, HYB_Transpose;
PetscLogEvent HYB_Op[HYB_OPS];

typedef struct {
  int  n;
  char name[2][256];
} LoadedPetsc;

static int HybFindPetsc(struct dl_phdr_info *info, size_t size, void *ctx)
{
  LoadedPetsc *l    = (LoadedPetsc *)ctx;
  const char  *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

  (void)size;
  base = base ? base + 1 : (info->dlpi_name ? info->dlpi_name : "");
  if (!strncmp(base, "libpetsc", 8) && strstr(base, ".so")) {
    if (l->n < 2) snprintf(l->name[l->n], sizeof(l->name[0]), "%s", info->dlpi_name);
    l->n++;
  }
  return 0;
}

/*
  The private structures that glue must know move between PETSc's minor releases, and types differ between its configurations. The
  library that runs is asked, not its headers.
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
  dl_iterate_phdr(HybFindPetsc, &loaded);
  PetscCheck(loaded.n < 2, PETSC_COMM_SELF, PETSC_ERR_LIB, "libaijhybridgpu was built for %s, but the program runs %s: two PETSc libraries in one process do not work; build the plugin against the program's PETSc (make PETSC_DIR=... PETSC_ARCH=...)", loaded.name[1], loaded.name[0]);
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

/* Is this "auto" or a method's name? Else an error that lists the names. */
PetscErrorCode HybGlueCheckMethod(const char *option, const char *value, const char *const *names)
{
  char      text[512];
  PetscBool known;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(value, "auto", &known));
  PetscCall(PetscStrncpy(text, "auto", sizeof(text)));
  for (PetscInt n = 0; names[n] && !known; n++) {
    PetscCall(PetscStrcmp(value, names[n], &known));
    PetscCall(PetscStrlcat(text, ", ", sizeof(text)));
    PetscCall(PetscStrlcat(text, names[n], sizeof(text)));
  }
  PetscCheck(known, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown method \"%s\" for %s: it is one of %s", value, option, text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Defaults of every matrix: the process-wide options, read once */
PetscErrorCode HybGlueReadChoices(HybChoices *choices)
{
  HybGlue *g = &HybGlueState;

  PetscFunctionBegin;
  if (!g->choicesread) {
    const char *const  backends[] = {"auto", "host", "cuda", "HybBackendChoice", "HYB_BACKEND_", NULL};
    PetscEnum          backend    = (PetscEnum)HYB_BACKEND_AUTO;
    const char *const *names;

    PetscCall(PetscStrncpy(g->choices.spgemm, "auto", sizeof(g->choices.spgemm)));
    PetscCall(PetscStrncpy(g->choices.spmv, "auto", sizeof(g->choices.spmv)));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_spgemm", g->choices.spgemm, sizeof(g->choices.spgemm), NULL));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_spmv", g->choices.spmv, sizeof(g->choices.spmv), NULL));
    PetscCall(HybSpGEMMGetNames(&names));
    PetscCall(HybGlueCheckMethod("-mat_aijhybridgpu_spgemm", g->choices.spgemm, names));
    PetscCall(HybSpMVGetNames(&names));
    PetscCall(HybGlueCheckMethod("-mat_aijhybridgpu_spmv", g->choices.spmv, names));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_aijhybridgpu_rowmerge_width", &g->choices.width, NULL));
    PetscCall(PetscOptionsGetEnum(NULL, NULL, "-mat_aijhybridgpu_backend", backends, &backend, NULL));
    g->choices.backend = (HybBackendChoice)backend;
    {
      char      promote[32] = "auto";
      PetscBool flg, never;

      PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_promote", promote, sizeof(promote), NULL));
      PetscCall(PetscStrcmp(promote, "never", &never));
      PetscCall(PetscStrcmp(promote, "auto", &flg));
      PetscCheck(flg || never, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown value \"%s\" for -mat_aijhybridgpu_promote: auto or never", promote);
      g->promotenever = never;
      g->planmin      = 1000000;
      PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_aijhybridgpu_plan_min", &g->planmin, NULL));
      PetscCheck(g->planmin >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_aijhybridgpu_plan_min %" PetscInt_FMT " is not a number of nonzeros", g->planmin);
      g->lockafter = 24; /* see locked.c */
      PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_aijhybridgpu_lock_after", &g->lockafter, NULL));
      PetscCheck(g->lockafter >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_aijhybridgpu_lock_after %" PetscInt_FMT " is not a number of times", g->lockafter);
      g->lockmin = 2 << 20;
      PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_aijhybridgpu_lock_min", &g->lockmin, NULL));
      PetscCheck(g->lockmin >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_aijhybridgpu_lock_min %" PetscInt_FMT " is not a number of bytes", g->lockmin);
      PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_aijhybridgpu_device_min", &g->devicemin, &g->deviceminset));
      PetscCheck(g->devicemin >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_aijhybridgpu_device_min %" PetscInt_FMT " is not a number of nonzeros", g->devicemin);
    }
    PetscCall(HybTuningRead());
    g->choicesread = PETSC_TRUE;
  }
  *choices = g->choices;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybGlueCountProduct(const char *method)
{
  HybGlue *g = &HybGlueState;
  char    *found;
  size_t   length;

  PetscFunctionBegin;
  g->products++;
  PetscCall(PetscStrlen(method, &length));
  for (found = g->methods; (found = strstr(found, method)); found += length)
    if ((found == g->methods || found[-1] == ':') && (found[length] == ':' || !found[length])) PetscFunctionReturn(PETSC_SUCCESS);
  if (g->methods[0]) PetscCall(PetscStrlcat(g->methods, ":", sizeof(g->methods)));
  PetscCall(PetscStrlcat(g->methods, method, sizeof(g->methods)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every byte that the plugin holds or held is counted at its allocation. any, which may be NULL: whether there ever was one. */
PetscErrorCode HybGlueDescribeMemory(char text[], size_t length, PetscBool *any)
{
  HybMemoryReport host, device;
  char            where[64] = "";

  PetscFunctionBegin;
  PetscCall(HybBackendHost.usage(&host, PETSC_FALSE));
  PetscCall(PetscMemzero(&device, sizeof(device)));
  if (HybGlueState.device) PetscCall(HybGlueState.device->usage(&device, PETSC_FALSE));
  if (device.cards) PetscCall(PetscSNPrintf(where, sizeof(where), "card %d of %d at %s, ", device.card, device.cards, device.bus));
  PetscCall(PetscSNPrintf(text, length, "%sbytes now / at most: device %zu / %zu, managed %zu / %zu of a share of %zu, kept of it for later %zu, pinned %zu / %zu, host arenas %zu / %zu; over the bus to the device %.0f, to the host %.0f", where, device.device_bytes, device.device_peak, device.managed_bytes, device.managed_peak, device.managed_share, device.managed_kept, device.pinned_bytes,
                          device.pinned_peak, host.device_bytes, host.device_peak, (double)HybGlueState.todevice, (double)HybGlueState.tohost));
  if (any) *any = host.device_peak || device.device_peak || device.managed_peak || device.pinned_peak ? PETSC_TRUE : PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs before PETSc's own finalization of Mat. A second PetscInitialize() registers again. */
static PetscErrorCode HybGlueFinalize(void)
{
  HybGlue *g = &HybGlueState;

  PetscFunctionBegin;
  if (g->countsfile[0]) {
    PetscMPIInt rank;
    FILE       *f = fopen(g->countsfile, "a");

    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot append to %s (-mat_aijhybridgpu_view_counts)", g->countsfile);
    fprintf(f, "%d mult=%td assemblyend=%td products=%td fallback=%td fallbackasked=%td device=%td methods=%s\n", (int)rank, g->mults, g->assemblies, g->products, g->fallbacks, g->fallbacksasked, g->deviceops, g->methods);
    fclose(f);
  }
  {
    char      text[512];
    PetscBool any;

    PetscCall(HybGlueDescribeMemory(text, sizeof(text), &any));
    if (any) PetscCall(PetscInfo(NULL, "Memory: %s\n", text));
    if (g->viewmemory) {
      PetscMPIInt rank;

      PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
      PetscCall(PetscSynchronizedPrintf(PETSC_COMM_WORLD, "aijhybridgpu, process %d: %s\n", (int)rank, text));
      PetscCall(PetscSynchronizedFlush(PETSC_COMM_WORLD, PETSC_STDOUT));
    }
  }
  PetscCall(PetscMemzero(g, sizeof(*g)));
  HybFrameForget();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The process-wide options, for -help: each is read where it is needed, the first time. Those that matrices read under their prefix show themselves. */
static PetscErrorCode HybGlueHelp(void)
{
  static const char *const options[][3] = {
    {"-mat_aijhybridgpu_cuda_library", "The library that drives the device", "cuda/libaijhybridgpu_cuda.so beside this one"},
    {"-mat_aijhybridgpu_device", "The card's number", "PETSc's, else by turns within the node"},
    {"-mat_aijhybridgpu_device_min", "Operands of fewer nonzeros stay on the host with -mat_aijhybridgpu_backend auto", "10000 where the matrix has its vectors on the card, else 100000"},
    {"-mat_aijhybridgpu_memory", "Where results on the device live: managed or mirror", "managed"},
    {"-mat_aijhybridgpu_managed_limit", "Managed memory of this node's processes, a share of the card's free memory", "0.5"},
    {"-mat_aijhybridgpu_memory_limit", "Bytes of the card that may be used, 0: all", "0"},
    {"-mat_aijhybridgpu_lock_after", "Values of a host matrix that were sent so many times move to page-locked memory; 0: never", "24"},
    {"-mat_aijhybridgpu_lock_min", "Fewer bytes of values than this stay where they are", "2097152"},
    {"-mat_aijhybridgpu_lock_limit", "Page-locked memory of this node's processes for such values, a share of the host's memory", "0.25"},
    {"-mat_aijhybridgpu_promote", "Matrices that the program writes on the device move there: auto or never", "auto"},
    {"-mat_aijhybridgpu_plan_min", "Patterns of so many nonzeros are planned for at their second product with a vector, others at their first", "1000000"},
    {"-mat_aijhybridgpu_segsum_repair", "Who puts the sums of dirty tiles of segsum in order on a device: device or cpu", "device"},
    {"-mat_aijhybridgpu_view_memory", "Shows at the end what was held and what crossed the bus", ""},
    {"-mat_aijhybridgpu_view_counts", "A file to which each process appends at the end what ran", ""}};
  PetscBool help;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasHelp(NULL, &help));
  if (!help) PetscFunctionReturn(PETSC_SUCCESS);
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Options of libaijhybridgpu, for the whole process", "Mat");
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options); k++) {
    char value[PETSC_MAX_PATH_LEN];

    PetscCall(PetscOptionsString(options[k][0], options[k][1], "MATAIJHYBRIDGPU", options[k][2], value, sizeof(value), NULL));
  }
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
   MatAIJHybridGPUInitializePackage - Registers the matrix types of petsc-aijhybridgpu

   Logically Collective on `PETSC_COMM_WORLD`

   Level: intermediate

   Notes:
   Needed once after `PetscInitialize()` in programs that link the library; again after another `PetscInitialize()`. Further calls do nothing. With -dll_append
   PETSc does the same.

   `PETSC_ERR_LIB` is raised, and nothing registered, where the library was built for another release of PETSc than the one that runs, for other integers or
   scalars, or where a second PETSc came into the process; the message names both.

.seealso: `MATAIJHYBRIDGPU`, `MatCreateAIJHybridGPU()`
@*/
PetscErrorCode MatAIJHybridGPUInitializePackage(void)
{
  HybGlue *g = &HybGlueState;

  PetscFunctionBegin;
  if (g->registered) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HybGlueCheckPetsc());
  PetscCall(MatRegister(MATSEQAIJHYBRIDGPU, MatCreate_SeqAIJHybridGPU));
  PetscCall(MatRegister(MATMPIAIJHYBRIDGPU, MatCreate_MPIAIJHybridGPU));
  PetscCall(MatRegisterRootName(MATAIJHYBRIDGPU, MATSEQAIJHYBRIDGPU, MATMPIAIJHYBRIDGPU));
  PetscCall(MatSeqAIJRegister(MATSEQAIJHYBRIDGPU, MatSeqAIJHybridGPUOperateSeqAIJ));
  PetscCall(HybGlueRegisterFactors());
  PetscCall(PetscLogEventRegister("HybProdSym", MAT_CLASSID, &HYB_ProductSymbolic));
  PetscCall(PetscLogEventRegister("HybProdNum", MAT_CLASSID, &HYB_ProductNumeric));
  PetscCall(PetscLogEventRegister("HybAdopt", MAT_CLASSID, &HYB_Adopt));
  PetscCall(PetscLogEventRegister("HybCheck", MAT_CLASSID, &HYB_Check));
  PetscCall(PetscLogEventRegister("HybCopyTo", MAT_CLASSID, &HYB_CopyTo));
  PetscCall(PetscLogEventRegister("HybCopyFr", MAT_CLASSID, &HYB_CopyFrom));
  PetscCall(PetscLogEventRegister("HybHostDup", MAT_CLASSID, &HYB_HostDuplicate));
  PetscCall(PetscLogEventRegister("HybTranspose", MAT_CLASSID, &HYB_Transpose));
  {
    /* in HybOp's order */
    static const char *const names[HYB_OPS] = {"HybMult", "HybScale", "HybZero", "HybDiagScale", "HybGetDiag", "HybDiagSet", "HybNorm", "HybDuplicate", "HybCopy", "HybAXPY", "HybMatTrans", "HybSubMat", "HybCOOPattern", "HybCOOValues", "HybConvert", "HybDense"};

    for (int op = 0; op < HYB_OPS; op++) PetscCall(PetscLogEventRegister(names[op], MAT_CLASSID, &HYB_Op[op]));
  }
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-mat_aijhybridgpu_view_memory", &g->viewmemory, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_aijhybridgpu_view_counts", g->countsfile, sizeof(g->countsfile), NULL));
  PetscCall(PetscRegisterFinalize(HybGlueFinalize));
  PetscCall(HybGlueHelp());
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

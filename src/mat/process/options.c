/*
  All options in one list: those of the process and of a matrix, which stand here, and those of the kernels
  (src/sparse/device/tuning.c). What -help prints, what is read and checked, and what the documents and the manual page
  say (docs/options.md, docs/tuning.md, MATAIJHYBRIDGPU, by conf/optionstable) comes from it. Options of a matrix are
  read for the process too, as defaults of all matrices.
*/
#include "process.h"
#include "aijhybridgpu/private/hybproduct.h"
#include <unistd.h>

#define AT(member)        offsetof(HybOptions, member)
#define AT_CHOICE(member) offsetof(HybChoices, member)

/* clang-format would put the fields of unequal rows into columns */
/* clang-format off */
static const HybOption list[] = {
  {.name = "-mat_aijhybridgpu_tuning", .kind = HYB_OPTION_PATH, .at = AT(tuning), .words = "name=value,name=value",
   .text = "Values for tuning and for tests, by name"},
  {.name = "-mat_aijhybridgpu_backend", .kind = HYB_OPTION_WORD, .ofmatrix = PETSC_TRUE, .at = AT_CHOICE(backend), .words = "auto host cuda",
   .text = "Where operations run; auto: on a GPU where one is found and the matrix is large enough; cuda: an error without one"},
  {.name = "-mat_aijhybridgpu_spgemm", .kind = HYB_OPTION_METHOD, .ofmatrix = PETSC_TRUE, .at = AT_CHOICE(spgemm), .names = HybSpGEMMGetNames,
   .text = "The method of sparse products; auto: the fastest by cost rules"},
  {.name = "-mat_aijhybridgpu_spmv", .kind = HYB_OPTION_METHOD, .ofmatrix = PETSC_TRUE, .at = AT_CHOICE(spmv), .names = HybSpMVGetNames,
   .text = "The method of products with a vector"},
  {.name = "-mat_aijhybridgpu_rowmerge_width", .tuning = PETSC_TRUE, .kind = HYB_OPTION_NUMBER, .ofmatrix = PETSC_TRUE, .at = AT_CHOICE(width), .least = 2, .most = 32,
   .text = "Rows that the method rowmerge merges at once; 0: it chooses"},
  {.name = "-mat_aijhybridgpu_cuda_library", .kind = HYB_OPTION_PATH, .at = AT(cudalibrary), .words = "path", .shown = "cuda/libaijhybridgpu_cuda.so beside libaijhybridgpu.so",
   .text = "The file of the GPU part"},
  {.name = "-mat_aijhybridgpu_device", .kind = HYB_OPTION_NUMBER, .at = AT(device), .value = -1, .words = "the number of a card", .shown = "PETSc's, else by turns within the node",
   .text = "Number of the card to use"},
  {.name = "-mat_aijhybridgpu_device_min", .kind = HYB_OPTION_NUMBER, .at = AT(devicemin), .value = -1, .words = "a number of nonzeros", .shown = "10000 if the matrix's vectors are on the card, else 100000",
   .text = "Operations on matrices with fewer nonzeros run on the host, with -mat_aijhybridgpu_backend auto"},
  {.name = "-mat_aijhybridgpu_memory", .kind = HYB_OPTION_WORD, .at = AT(mirror), .words = "managed mirror",
   .text = "Where results on the device live: managed: one storage for host and device; mirror: device arrays beside host ones"},
  {.name = "-mat_aijhybridgpu_managed_limit", .tuning = PETSC_TRUE, .kind = HYB_OPTION_REAL, .at = AT(managedlimit), .value = 0.5, .most = 1, .words = "a share of the card's free memory",
   .text = "Managed memory that this node's processes may use together, a share of the card's free memory"},
  {.name = "-mat_aijhybridgpu_memory_limit", .kind = HYB_OPTION_REAL, .at = AT(memorylimit), .words = "a number of bytes",
   .text = "Bytes of the card that this process may use; 0: all"},
  {.name = "-mat_aijhybridgpu_lock_after", .kind = HYB_OPTION_NUMBER, .at = AT(lockafter), .value = 24, .words = "a number of times",
   .text = "After this number of copies to the card, values of a host matrix move to page-locked memory; 0: never"},
  {.name = "-mat_aijhybridgpu_lock_min", .tuning = PETSC_TRUE, .kind = HYB_OPTION_NUMBER, .at = AT(lockmin), .value = 2097152, .words = "a number of bytes",
   .text = "Matrices with fewer bytes of values do not move to page-locked memory"},
  {.name = "-mat_aijhybridgpu_lock_limit", .tuning = PETSC_TRUE, .kind = HYB_OPTION_REAL, .at = AT(locklimit), .value = 0.25, .most = 1, .words = "a share of the host's memory",
   .text = "Page-locked memory that this node's processes may use together for values, a share of the host's memory"},
  {.name = "-mat_aijhybridgpu_promote", .kind = HYB_OPTION_WORD, .at = AT(promotenever), .words = "auto never",
   .text = "Values of a matrix move to the device once the program changes them by operations that run there; never: they stay"},
  {.name = "-mat_aijhybridgpu_plan_min", .tuning = PETSC_TRUE, .kind = HYB_OPTION_NUMBER, .at = AT(planmin), .value = 1000000, .words = "a number of nonzeros",
   .text = "Patterns with this many nonzeros or more get their plan after some products with a vector, others at the first"},
  {.name = "-mat_aijhybridgpu_mult_ordered", .tuning = PETSC_TRUE, .kind = HYB_OPTION_NUMBER, .at = AT(multordered), .value = 24, .words = "a number of products",
   .text = "Products with a vector with the same values after which a large matrix has a copy of them in the order in which kernels read them; 0: never"},
  {.name = "-mat_aijhybridgpu_narrow_min", .tuning = PETSC_TRUE, .kind = HYB_OPTION_NUMBER, .at = AT(narrowmin), .value = 4096, .words = "a number of rows",
   .text = "Results of the device with fewer rows become AIJ's by PETSc's own loops over rows"},
  {.name = "-mat_aijhybridgpu_row_blocks_min", .tuning = PETSC_TRUE, .kind = HYB_OPTION_NUMBER, .at = AT(rowblocksmin), .value = 0, .words = "a number of bytes",
   .text = "The smallest block of row numbers of a device's result that is kept for the next one; 0: 16 MiB"},
  {.name = "-mat_aijhybridgpu_ahead", .tuning = PETSC_TRUE, .kind = HYB_OPTION_FLAG, .at = AT(ahead), .value = 1,
   .text = "One more thread loads kernels as soon as a card is in use"},
  {.name = "-mat_aijhybridgpu_smoothers", .kind = HYB_OPTION_FLAG, .at = AT(smoothers), .value = 1,
   .text = "For matrices of the type, steps of PCJACOBI and KSPCHEBYSHEV that PETSc has only on the host run on the device"},
  {.name = "-mat_aijhybridgpu_parallel_products", .tuning = PETSC_TRUE, .kind = HYB_OPTION_FLAG, .at = AT(parallelproducts), .value = 1,
   .text = "Products of parallel matrices run where the matrices are; false: PETSc's own algorithms make them, on the host"},
  {.name = "-mat_aijhybridgpu_comm_aware", .kind = HYB_OPTION_WORD, .at = AT(commaware), .words = "auto no yes",
   .text = "Is MPI GPU-aware? auto: as -use_gpu_aware_mpi says. If you say yes and MPI is not, the program crashes"},
  {.name = "-mat_aijhybridgpu_unknown_options", .kind = HYB_OPTION_FLAG, .at = AT(unknownoptions), .value = 1,
   .text = "Prints at the end, on stderr, the given options that look like the type's own but do not exist"},
  {.name = "-mat_aijhybridgpu_view_memory", .kind = HYB_OPTION_FLAG, .at = AT(viewmemory),
   .text = "Prints at the end how much memory was held and what crossed the bus"},
  {.name = "-mat_aijhybridgpu_report", .kind = HYB_OPTION_PATH, .at = AT(report), .words = "file.html or file.json",
   .text = "Writes at the end a page, or its data: what ran where, how long, and advice"},
  {.name = "-mat_aijhybridgpu_view_counts", .kind = HYB_OPTION_PATH, .at = AT(viewcounts), .words = "file",
   .text = "A file to which each process appends at the end the counts of what ran"}
};
/* clang-format on */

#define HYB_OPTIONS          ((PetscInt)PETSC_STATIC_ARRAY_LENGTH(list))
#define HYB_EACH_OPTION(o)   for (const HybOption *o = list; o < list + HYB_OPTIONS; o++)
#define HYB_TUNING           HYB_OPTION_PREFIX "tuning"
#define HYB_OPTION_SHORT(o)  ((o)->name + sizeof(HYB_OPTION_PREFIX) - 1)
#define HYB_OPTION_STRUCT(o) ((o)->ofmatrix ? (void *)&HybGlueState.choices : (void *)&HybGlueState.options)

const HybOption *HybOptionAt(PetscInt k)
{
  return k < HYB_OPTIONS ? &list[k] : HybTuningOption(k - HYB_OPTIONS);
}

static const HybOption *HybOptionFind(const char *name, size_t length)
{
  const HybOption *o;

  for (PetscInt k = 0; (o = HybOptionAt(k)); k++)
    if (!strncmp(HYB_OPTION_SHORT(o), name, length) && !HYB_OPTION_SHORT(o)[length]) return o;
  return NULL;
}

/* What -mat_aijhybridgpu_tuning says of this name; the last time counts */
static PetscErrorCode HybTuningValue(const HybOption *o, char value[], size_t length, PetscBool *set)
{
  const char  *name = HYB_OPTION_SHORT(o);
  const size_t own  = strlen(name);

  PetscFunctionBegin;
  for (const char *p = HybGlueState.options.tuning; *p;) {
    const size_t here = strcspn(p, ",");

    if (here > own && !strncmp(p, name, own) && p[own] == '=') {
      PetscCall(PetscStrncpy(value, p + own + 1, PetscMin(length, here - own)));
      *set = PETSC_TRUE;
    }
    p += here + (p[here] ? 1 : 0);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The names in it, checked. Each value is checked as it is taken. */
static PetscErrorCode HybTuningCheck(void)
{
  PetscFunctionBegin;
  for (const char *p = HybGlueState.options.tuning; *p;) {
    const size_t     here = strcspn(p, ","), own = PetscMin(here, strcspn(p, "="));
    const HybOption *o = HybOptionFind(p, own), *nearest = NULL;
    char             name[64];
    int              least = 2 * HYB_OPTION_LENGTH;

    PetscCall(PetscStrncpy(name, p, PetscMin(sizeof(name), own + 1)));
    PetscCheck(own < here && own, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, HYB_TUNING " takes name=value,name=value, not %.*s", (int)here, p);
    PetscCheck(!o || o->tuning, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, HYB_TUNING " %s: that is an option of its own, %s", name, o->name);
    for (PetscInt k = 0; HybOptionAt(k); k++) {
      const int distance = HybOptionAt(k)->tuning ? HybOptionDistance(name, HYB_OPTION_SHORT(HybOptionAt(k))) : least;

      if (distance >= least) continue;
      least   = distance;
      nearest = HybOptionAt(k);
    }
    PetscCheck(o, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, HYB_TUNING " knows no %s; the nearest name is %s, and -help shows all", name, HYB_OPTION_SHORT(nearest));
    p += here + (p[here] ? 1 : 0);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the user says: the option, or the value of -mat_aijhybridgpu_tuning, which has been read before */
static PetscErrorCode HybOptionGiven(const HybOption *o, char value[], size_t length, PetscBool *set)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, o->name, value, length, set));
  if (*set && o->tuning && !HybGlueState.optionsread) PetscCall(PetscInfo(NULL, "%s %s is now " HYB_TUNING " %s=%s; the old name goes with the next release\n", o->name, value, HYB_OPTION_SHORT(o), value));
  if (o->tuning) PetscCall(HybTuningValue(o, value, length, set));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybOptionRead(const HybOption *o)
{
  char      value[PETSC_MAX_PATH_LEN];
  PetscBool set;

  PetscFunctionBegin;
  HybOptionDefault(o, HYB_OPTION_STRUCT(o));
  PetscCall(HybOptionGiven(o, value, sizeof(value), &set));
  if (set) PetscCall(HybOptionTake(o, HYB_OPTION_STRUCT(o), value));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybOptionsRead(void)
{
  PetscFunctionBegin;
  HYB_EACH_OPTION(o)
    if (!o->ofmatrix) PetscCall(HybOptionRead(o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is told at the end is told without any matrix too */
PetscErrorCode HybOptionsReadReports(void)
{
  PetscFunctionBegin;
  HYB_EACH_OPTION(o)
    if (o->kind == HYB_OPTION_FLAG || o->kind == HYB_OPTION_PATH) PetscCall(HybOptionRead(o));
  /* for tests alone, and in no list: places in PETSc's data are not looked for, as with a release that nobody knows */
  PetscCall(PetscOptionsHasName(NULL, NULL, "-hyb_test_frame_unknown", &HybGlueState.frame.hidden));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Shows the option with what it is now, or, at NULL, by default; set: it is given, and value what */
static PetscErrorCode HybOptionHelp(const HybOption *o, const void *at, HybOptionItems PetscOptionsObject, char value[PETSC_MAX_PATH_LEN], PetscBool *set)
{
  char text[1024], allowed[512], shown[512];

  PetscFunctionBegin;
  PetscCall(HybOptionShow(o, at, shown, sizeof(shown)));
  PetscCall(HybOptionAllowed(o, allowed, sizeof(allowed)));
  PetscCall(PetscSNPrintf(text, sizeof(text), "%s: %s", o->text, allowed));
  PetscCall(PetscOptionsString(o->name, text, "MATAIJHYBRIDGPU", shown, value, PETSC_MAX_PATH_LEN, set));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is of a matrix shows itself with it */
PetscErrorCode HybOptionsHelp(void)
{
  const HybOption *o;
  char             value[PETSC_MAX_PATH_LEN], allowed[512];
  PetscBool        help, set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasHelp(NULL, &help));
  if (!help) PetscFunctionReturn(PETSC_SUCCESS);
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Options of libaijhybridgpu, for the whole process", "Mat");
  for (PetscInt k = 0; (o = HybOptionAt(k)); k++)
    if (!o->ofmatrix && !o->tuning) PetscCall(HybOptionHelp(o, NULL, PetscOptionsObject, value, &set));
  PetscOptionsEnd();
  PetscCall((*PetscHelpPrintf)(PETSC_COMM_WORLD, "  Values of " HYB_TUNING ", as name=value,name=value:\n"));
  for (PetscInt k = 0; (o = HybOptionAt(k)); k++) {
    if (!o->tuning) continue;
    PetscCall(HybOptionShow(o, NULL, value, sizeof(value)));
    PetscCall(HybOptionAllowed(o, allowed, sizeof(allowed)));
    PetscCall((*PetscHelpPrintf)(PETSC_COMM_WORLD, "    %s <%s>: %s: %s\n", HYB_OPTION_SHORT(o), value, o->text, allowed));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Those of a matrix under its prefix: shown, read and checked */
PetscErrorCode HybChoicesSetFromOptions(HybChoices *choices, HybOptionItems PetscOptionsObject)
{
  /* else nobody reads what they are now, and may be */
  const PetscBool shown = (PetscBool)(PetscOptionsObject->printhelp || PetscOptionsObject->count != 1);
  char            value[PETSC_MAX_PATH_LEN];
  PetscBool       set;

  PetscFunctionBegin;
  if (shown) PetscOptionsHeadBegin(PetscOptionsObject, "AIJHybridGPU options");
  HYB_EACH_OPTION(o) {
    if (!o->ofmatrix) continue;
    if (shown && !o->tuning)
      PetscCall(HybOptionHelp(o, choices, PetscOptionsObject, value, &set));
    else
      PetscCall(PetscOptionsGetString(PetscOptionsObject->options, PetscOptionsObject->prefix, o->name, value, sizeof(value), &set));
    if (set) PetscCall(HybOptionTake(o, choices, value));
  }
  if (shown) PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybOptionString(const char option[], char value[], size_t length, PetscBool *set)
{
  return HybOptionGiven(HybOptionFind(option + sizeof(HYB_OPTION_PREFIX) - 1, strlen(option) - sizeof(HYB_OPTION_PREFIX) + 1), value, length, set);
}

/* Defaults of every matrix, read once, with all options of the process */
PetscErrorCode HybGlueReadChoices(HybChoices *choices)
{
  HybGlue *g = &HybGlueState;

  PetscFunctionBegin;
  if (!g->optionsread) {
    HYB_EACH_OPTION(o)
      PetscCall(HybOptionRead(o));
    PetscCall(HybTuningCheck());
    PetscCall(HybTuningRead(HybOptionString));
    PetscCheck(!g->options.cudalibrary[0] || !access(g->options.cudalibrary, R_OK), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-mat_aijhybridgpu_cuda_library %s: there is no such file, or it cannot be read. Without the option the plugin takes the one beside itself", g->options.cudalibrary);
    g->optionsread = PETSC_TRUE;
  }
  *choices = g->choices;
  PetscFunctionReturn(PETSC_SUCCESS);
}

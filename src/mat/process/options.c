/*
  Options in one list: what -help prints, what is read and checked, and what the documents and the manual page say
  (docs/options.md, MATAIJHYBRIDGPU, by conf/optionstable). Those of a matrix are read for the process too, as defaults
  of all matrices. Values, defaults and texts of the kernels' own are those of src/sparse/device/tuning.c.
*/
#include "process.h"
#include "aijhybridgpu/private/hybproduct.h"
#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

typedef enum {
  HYB_OPTION_NUMBER, /* a PetscInt from least to most, where there is one, or 0 where that is its default */
  HYB_OPTION_REAL,   /* a PetscReal from 0 to most; most 0: no end */
  HYB_OPTION_WORD,   /* a PetscInt: which of the words */
  HYB_OPTION_METHOD, /* auto, or one of the names */
  HYB_OPTION_PATH,
  HYB_OPTION_FLAG,
  HYB_OPTION_TUNING /* of HybTuning */
} HybOptionKind;

#define AT(member)        offsetof(HybOptions, member)
#define AT_CHOICE(member) offsetof(HybChoices, member)
typedef struct {
  const char   *name;
  HybOptionKind kind;
  PetscBool     ofmatrix; /* it may stand under the matrix's prefix, and is one of HybChoices; else of HybOptions */
  size_t        at;
  double        value, least, most;
  PetscErrorCode (*names)(const char *const **);
  const char *words; /* or what the value is, for the message */
  const char *shown; /* the default, where it is not the value or the first word */
  const char *text;
} HybOption;

/* clang-format would put the fields of unequal rows into columns */
/* clang-format off */
static const HybOption list[] = {
  {.name = "-mat_aijhybridgpu_backend", .kind = HYB_OPTION_WORD, .ofmatrix = PETSC_TRUE, .at = AT_CHOICE(backend), .words = "auto host cuda",
   .text = "Where operations run; auto: on a GPU where one is found and the matrix is large enough; cuda: an error without one"},
  {.name = "-mat_aijhybridgpu_spgemm", .kind = HYB_OPTION_METHOD, .ofmatrix = PETSC_TRUE, .at = AT_CHOICE(spgemm), .names = HybSpGEMMGetNames,
   .text = "The method of sparse products; auto: the fastest by cost rules"},
  {.name = "-mat_aijhybridgpu_spmv", .kind = HYB_OPTION_METHOD, .ofmatrix = PETSC_TRUE, .at = AT_CHOICE(spmv), .names = HybSpMVGetNames,
   .text = "The method of products with a vector"},
  {.name = "-mat_aijhybridgpu_rowmerge_width", .kind = HYB_OPTION_NUMBER, .ofmatrix = PETSC_TRUE, .at = AT_CHOICE(width), .least = 2, .most = 32, .words = "0 or within 2 to 32",
   .text = "Rows that the method rowmerge merges at once; 0: it chooses"},
  {.name = "-mat_aijhybridgpu_cuda_library", .kind = HYB_OPTION_PATH, .at = AT(cudalibrary), .words = "path", .shown = "cuda/libaijhybridgpu_cuda.so beside this one",
   .text = "The file of the GPU part"},
  {.name = "-mat_aijhybridgpu_device", .kind = HYB_OPTION_NUMBER, .at = AT(device), .value = -1, .words = "the number of a card", .shown = "PETSc's, else by turns within the node",
   .text = "Number of the card to use"},
  {.name = "-mat_aijhybridgpu_device_min", .kind = HYB_OPTION_NUMBER, .at = AT(devicemin), .value = -1, .words = "a number of nonzeros", .shown = "10000 where the matrix has its vectors on the card, else 100000",
   .text = "Operations on matrices with fewer nonzeros run on the host, with -mat_aijhybridgpu_backend auto"},
  {.name = "-mat_aijhybridgpu_memory", .kind = HYB_OPTION_WORD, .at = AT(mirror), .words = "managed mirror",
   .text = "Where results on the device live: managed: one storage for host and device; mirror: device arrays beside host ones"},
  {.name = "-mat_aijhybridgpu_managed_limit", .kind = HYB_OPTION_REAL, .at = AT(managedlimit), .value = 0.5, .most = 1, .words = "a share of the card's free memory",
   .text = "Managed memory that this node's processes may use together, a share of the card's free memory"},
  {.name = "-mat_aijhybridgpu_memory_limit", .kind = HYB_OPTION_REAL, .at = AT(memorylimit), .words = "a number of bytes",
   .text = "Bytes of the card that this process may use; 0: all"},
  {.name = "-mat_aijhybridgpu_lock_after", .kind = HYB_OPTION_NUMBER, .at = AT(lockafter), .value = 24, .words = "a number of times",
   .text = "After so many sendings, values of a host matrix move to page-locked memory; 0: never"},
  {.name = "-mat_aijhybridgpu_lock_min", .kind = HYB_OPTION_NUMBER, .at = AT(lockmin), .value = 2097152, .words = "a number of bytes",
   .text = "Matrices with fewer bytes of values do not move to page-locked memory"},
  {.name = "-mat_aijhybridgpu_lock_limit", .kind = HYB_OPTION_REAL, .at = AT(locklimit), .value = 0.25, .most = 1, .words = "a share of the host's memory",
   .text = "Page-locked memory that this node's processes may use together for such values, a share of the host's memory"},
  {.name = "-mat_aijhybridgpu_promote", .kind = HYB_OPTION_WORD, .at = AT(promotenever), .words = "auto never",
   .text = "Values of a matrix move to the device once the program writes them by operations of the device; never: they stay"},
  {.name = "-mat_aijhybridgpu_plan_min", .kind = HYB_OPTION_NUMBER, .at = AT(planmin), .value = 1000000, .words = "a number of nonzeros",
   .text = "Patterns with so many nonzeros get their plan at the second product with a vector, others at the first"},
  {.name = "-mat_aijhybridgpu_segsum_repair", .kind = HYB_OPTION_TUNING},
  {.name = "-mat_aijhybridgpu_tile_precision", .kind = HYB_OPTION_TUNING},
  {.name = "-mat_aijhybridgpu_hash_places", .kind = HYB_OPTION_TUNING},
  {.name = "-mat_aijhybridgpu_narrow_min", .kind = HYB_OPTION_NUMBER, .at = AT(narrowmin), .value = 4096, .words = "a number of rows",
   .text = "Results of the device with fewer rows become AIJ's by PETSc's own loops over rows"},
  {.name = "-mat_aijhybridgpu_frame_unknown", .kind = HYB_OPTION_FLAG, .at = AT(frameunknown),
   .text = "For tests: treat PETSc as an unknown release, so values never move and object states tell of host writes"},
  {.name = "-mat_aijhybridgpu_ahead", .kind = HYB_OPTION_FLAG, .at = AT(ahead), .value = 1,
   .text = "One more thread loads kernels and starts cuBLAS as soon as a card is in use"},
  {.name = "-mat_aijhybridgpu_smoothers", .kind = HYB_OPTION_FLAG, .at = AT(smoothers), .value = 1,
   .text = "Steps of PCJACOBI and KSPCHEBYSHEV that PETSc has for the host alone run on the device, for matrices of the type"},
  {.name = "-mat_aijhybridgpu_parallel_products", .kind = HYB_OPTION_FLAG, .at = AT(parallelproducts), .value = 1,
   .text = "Products of parallel matrices run where the matrices are; false: PETSc's own algorithms make them, on the host"},
  {.name = "-mat_aijhybridgpu_comm", .kind = HYB_OPTION_TUNING},
  {.name = "-mat_aijhybridgpu_comm_aware", .kind = HYB_OPTION_WORD, .at = AT(commaware), .words = "auto no yes",
   .text = "Is MPI GPU-aware? auto: what PETSc was told (-use_gpu_aware_mpi). With yes, an MPI that is not crashes"},
  {.name = "-mat_aijhybridgpu_comm_aware_min", .kind = HYB_OPTION_TUNING},
  {.name = "-mat_aijhybridgpu_comm_timeout", .kind = HYB_OPTION_TUNING},
  {.name = "-mat_aijhybridgpu_comm_segment", .kind = HYB_OPTION_TUNING},
  {.name = "-mat_aijhybridgpu_comm_after", .kind = HYB_OPTION_TUNING},
  {.name = "-mat_aijhybridgpu_unknown_options", .kind = HYB_OPTION_FLAG, .at = AT(unknownoptions), .value = 1,
   .text = "Names at the end, on stderr, the options that look like the type's own and are none"},
  {.name = "-mat_aijhybridgpu_view_memory", .kind = HYB_OPTION_FLAG, .at = AT(viewmemory),
   .text = "Prints at the end how much memory was held and what crossed the bus"},
  {.name = "-mat_aijhybridgpu_report", .kind = HYB_OPTION_PATH, .at = AT(report), .words = "file.html or file.json",
   .text = "Writes at the end a page, or its data: what ran where, how long, and advice"},
  {.name = "-mat_aijhybridgpu_view_counts", .kind = HYB_OPTION_PATH, .at = AT(viewcounts), .words = "file",
   .text = "A file to which each process appends at the end the counts of what ran"}
};
/* clang-format on */

#define HYB_EACH_OPTION(o) for (const HybOption *o = list; o < list + PETSC_STATIC_ARRAY_LENGTH(list); o++)

const char *HybOptionName(PetscInt k, PetscBool *ofmatrix)
{
  if (k >= (PetscInt)PETSC_STATIC_ARRAY_LENGTH(list)) return NULL;
  *ofmatrix = list[k].ofmatrix;
  return list[k].name;
}

/* which of the words this is, -1: none */
static PetscErrorCode HybOptionWord(const char *words, const char *value, PetscInt *which)
{
  char    **word;
  int       n;
  PetscBool flg = PETSC_FALSE;

  PetscFunctionBegin;
  *which = -1;
  PetscCall(PetscStrToArray(words, ' ', &n, &word));
  for (int k = 0; k < n && !flg; k++) {
    PetscCall(PetscStrcasecmp(value, word[k], &flg));
    if (flg) *which = k;
  }
  PetscCall(PetscStrToArrayDestroy(n, word));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is this "auto" or a method's name? Else an error that lists the names. */
static PetscErrorCode HybOptionMethod(const HybOption *o, const char *value)
{
  const char *const *names;
  char               text[512];
  PetscBool          known;

  PetscFunctionBegin;
  PetscCall((*o->names)(&names));
  PetscCall(PetscStrcmp(value, "auto", &known));
  PetscCall(PetscStrncpy(text, "auto", sizeof(text)));
  for (PetscInt n = 0; names[n] && !known; n++) {
    PetscCall(PetscStrcmp(value, names[n], &known));
    PetscCall(PetscStrlcat(text, ", ", sizeof(text)));
    PetscCall(PetscStrlcat(text, names[n], sizeof(text)));
  }
  PetscCheck(known, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown method \"%s\" for %s: it is one of %s", value, o->name, text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void HybOptionDefault(const HybOption *o, void *member)
{
  switch (o->kind) {
  case HYB_OPTION_REAL:
    *(PetscReal *)member = (PetscReal)o->value;
    break;
  case HYB_OPTION_METHOD:
    strcpy((char *)member, "auto");
    break;
  case HYB_OPTION_PATH:
    *(char *)member = 0;
    break;
  default:
    *(PetscInt *)member = (PetscInt)o->value;
  }
}

/* Is the whole of it a number? PETSc's own message does not name the option. */
static PetscBool HybOptionIsNumber(const char *value, PetscBool whole)
{
  char *end;

  if (whole)
    (void)strtoll(value, &end, 10);
  else
    (void)strtod(value, &end);
  return (PetscBool)(end != value && !*end);
}

/* What was asked for, checked; a number without a value is as if nothing had been asked */
static PetscErrorCode HybOptionTake(const HybOption *o, void *member, const char *value)
{
  PetscInt  n    = 0;
  PetscReal x    = 0;
  PetscBool flag = PETSC_TRUE, fits = PETSC_TRUE;

  PetscFunctionBegin;
  switch (o->kind) {
  case HYB_OPTION_NUMBER:
    if (!value[0]) break;
    PetscCheck(HybOptionIsNumber(value, PETSC_TRUE), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "%s %s is no integer: it takes %s", o->name, value, o->words);
    PetscCall(PetscOptionsStringToInt(value, &n));
    fits                = (PetscBool)((n == 0 && o->value == 0) || (n >= (PetscInt)o->least && (o->most == 0 || n <= (PetscInt)o->most)));
    *(PetscInt *)member = n;
    break;
  case HYB_OPTION_REAL:
    if (!value[0]) break;
    PetscCheck(HybOptionIsNumber(value, PETSC_FALSE), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "%s %s is no number: it takes %s", o->name, value, o->words);
    PetscCall(PetscOptionsStringToReal(value, &x));
    fits                 = (PetscBool)(x >= 0 && (o->most == 0 || x <= (PetscReal)o->most));
    *(PetscReal *)member = x;
    break;
  case HYB_OPTION_WORD:
    PetscCall(HybOptionWord(o->words, value, &n));
    PetscCheck(n >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown value \"%s\" for %s: one of %s", value, o->name, o->words);
    *(PetscInt *)member = n;
    break;
  case HYB_OPTION_METHOD:
    PetscCall(HybOptionMethod(o, value));
    PetscCall(PetscStrncpy((char *)member, value, HYB_NAME_LENGTH));
    break;
  case HYB_OPTION_PATH:
    PetscCall(PetscStrncpy((char *)member, value, PETSC_MAX_PATH_LEN));
    break;
  default:
    if (value[0]) PetscCall(PetscOptionsStringToBool(value, &flag));
    *(PetscInt *)member = flag;
  }
  PetscCheck(fits, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%s %s is not %s%s", o->name, value, o->words, o->kind == HYB_OPTION_REAL && o->most > 0 ? ", within 0 to 1" : "");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybOptionRead(const HybOption *o)
{
  void     *member = (char *)(o->ofmatrix ? (void *)&HybGlueState.choices : (void *)&HybGlueState.options) + o->at;
  char      value[PETSC_MAX_PATH_LEN];
  PetscBool set;

  PetscFunctionBegin;
  if (o->kind == HYB_OPTION_TUNING) PetscFunctionReturn(PETSC_SUCCESS); /* HybTuningRead() does */
  HybOptionDefault(o, member);
  PetscCall(PetscOptionsGetString(NULL, NULL, o->name, value, sizeof(value), &set));
  if (set) PetscCall(HybOptionTake(o, member, value));
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
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A choice of a matrix in words */
static PetscErrorCode HybOptionNow(const HybOption *o, const void *member, char text[], size_t length)
{
  char **word;
  int    n;

  PetscFunctionBegin;
  if (o->kind == HYB_OPTION_METHOD)
    PetscCall(PetscStrncpy(text, (const char *)member, length));
  else if (o->kind == HYB_OPTION_NUMBER)
    PetscCall(PetscSNPrintf(text, length, "%" PetscInt_FMT, *(const PetscInt *)member));
  else {
    PetscCall(PetscStrToArray(o->words, ' ', &n, &word));
    PetscCall(PetscStrncpy(text, word[*(const PetscInt *)member], length));
    PetscCall(PetscStrToArrayDestroy(n, word));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What stands for the default in -help and in the documents */
static PetscErrorCode HybOptionDefaultText(const HybOption *o, char text[], size_t length)
{
  const char *end = o->words ? strchr(o->words, ' ') : NULL;

  PetscFunctionBegin;
  if (o->shown)
    PetscCall(PetscStrncpy(text, o->shown, length));
  else if (o->kind == HYB_OPTION_NUMBER || o->kind == HYB_OPTION_REAL)
    PetscCall(PetscSNPrintf(text, length, "%.8g", o->value));
  else if (o->kind == HYB_OPTION_WORD)
    PetscCall(PetscSNPrintf(text, length, "%.*s", end ? (int)(end - o->words) : 0, o->words));
  else
    PetscCall(PetscStrncpy(text, o->kind != HYB_OPTION_FLAG ? "" : o->value != 0 ? "true"
                                                                                 : "false",
                           length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Shows the option with what it is now, or, now NULL, by default; set: it is given, and value what */
static PetscErrorCode HybOptionShow(const HybOption *o, const char *now, HybOptionItems PetscOptionsObject, char value[PETSC_MAX_PATH_LEN], PetscBool *set)
{
  const char *const *names;
  char               text[1024], takes[512] = "", shown[512] = "";

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(text, o->text ? o->text : "", sizeof(text)));
  PetscCall(HybOptionDefaultText(o, shown, sizeof(shown)));
  if (o->kind == HYB_OPTION_TUNING) PetscCall(HybTuningDescribe(o->name, shown, takes, text, sizeof(shown)));
  text[0] = (char)toupper(text[0]);
  if (o->kind == HYB_OPTION_WORD) PetscCall(PetscSNPrintf(takes, sizeof(takes), "one of %s", o->words));
  if (o->kind == HYB_OPTION_METHOD) {
    PetscCall((*o->names)(&names));
    PetscCall(PetscStrncpy(takes, "one of auto", sizeof(takes)));
    for (PetscInt n = 0; names[n]; n++) {
      PetscCall(PetscStrlcat(takes, " ", sizeof(takes)));
      PetscCall(PetscStrlcat(takes, names[n], sizeof(takes)));
    }
  }
  if (takes[0]) PetscCall(PetscStrlcat(text, ": ", sizeof(text)));
  PetscCall(PetscStrlcat(text, takes, sizeof(text)));
  PetscCall(PetscOptionsString(o->name, text, "MATAIJHYBRIDGPU", now ? now : shown, value, PETSC_MAX_PATH_LEN, set));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is of a matrix shows itself with it */
PetscErrorCode HybOptionsHelp(void)
{
  char      value[PETSC_MAX_PATH_LEN];
  PetscBool help, set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasHelp(NULL, &help));
  if (!help) PetscFunctionReturn(PETSC_SUCCESS);
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Options of libaijhybridgpu, for the whole process", "Mat");
  HYB_EACH_OPTION(o)
  if (!o->ofmatrix) PetscCall(HybOptionShow(o, NULL, PetscOptionsObject, value, &set));
  PetscOptionsEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Those of a matrix under its prefix: shown, read and checked */
PetscErrorCode HybChoicesSetFromOptions(HybChoices *choices, HybOptionItems PetscOptionsObject)
{
  char      now[32], value[PETSC_MAX_PATH_LEN];
  PetscBool set;

  PetscFunctionBegin;
  /* nobody reads what they are now, and may be */
  if (!PetscOptionsObject->printhelp && PetscOptionsObject->count == 1) {
    HYB_EACH_OPTION(o)
    {
      if (!o->ofmatrix) continue;
      PetscCall(PetscOptionsGetString(PetscOptionsObject->options, PetscOptionsObject->prefix, o->name, value, sizeof(value), &set));
      if (set) PetscCall(HybOptionTake(o, (char *)choices + o->at, value));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscOptionsHeadBegin(PetscOptionsObject, "AIJHybridGPU options");
  HYB_EACH_OPTION(o)
  {
    if (!o->ofmatrix) continue;
    PetscCall(HybOptionNow(o, (char *)choices + o->at, now, sizeof(now)));
    PetscCall(HybOptionShow(o, now, PetscOptionsObject, value, &set));
    if (set) PetscCall(HybOptionTake(o, (char *)choices + o->at, value));
  }
  PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybOptionString(const char option[], char value[], size_t length, PetscBool *set)
{
  return PetscOptionsGetString(NULL, NULL, option, value, length, set);
}

/* Defaults of every matrix, read once, with all options of the process */
PetscErrorCode HybGlueReadChoices(HybChoices *choices)
{
  HybGlue *g = &HybGlueState;

  PetscFunctionBegin;
  if (!g->optionsread) {
    HYB_EACH_OPTION(o)
    PetscCall(HybOptionRead(o));
    PetscCall(HybTuningRead(HybOptionString));
    PetscCheck(!g->options.cudalibrary[0] || !access(g->options.cudalibrary, R_OK), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-mat_aijhybridgpu_cuda_library %s: there is no such file, or it cannot be read. Without the option the plugin takes the one beside itself", g->options.cudalibrary);
    g->optionsread = PETSC_TRUE;
  }
  *choices = g->choices;
  PetscFunctionReturn(PETSC_SUCCESS);
}

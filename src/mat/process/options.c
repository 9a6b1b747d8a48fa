/*
  Options of the process, in one list: what -help prints, what is read and checked, and (docs/options.md, made by
  conf/optionstable) what the documents say. Those of a matrix, which may stand under its prefix, are read with the
  matrix too (MatSeqAIJHybridGPUOptions()); here are their defaults for all matrices.
*/
#include "process.h"
#include "aijhybridgpu/private/hybproduct.h"

typedef enum {
  HYB_OPTION_NUMBER, /* a PetscInt of least or more */
  HYB_OPTION_REAL,   /* a PetscReal from 0 to most; most 0: no end */
  HYB_OPTION_WORD,   /* a PetscInt: which of the words */
  HYB_OPTION_PATH,
  HYB_OPTION_FLAG,
  HYB_OPTION_OTHER /* read elsewhere, told of here */
} HybOptionKind;

#define AT(member) offsetof(HybOptions, member)
static const struct {
  const char   *name;
  HybOptionKind kind;
  size_t        at;
  double        value, most;
  const char   *words; /* or what the value is, for the message */
  const char   *shown; /* the default, in words where it is no number */
  const char   *text;
} list[] = {
  {"-mat_aijhybridgpu_cuda_library",      HYB_OPTION_PATH,   AT(cudalibrary),      0,       0, "path",                              "cuda/libaijhybridgpu_cuda.so beside this one",                    "The library that drives the device"                                                                                                                                                         },
  {"-mat_aijhybridgpu_device",            HYB_OPTION_NUMBER, AT(device),           -1,      0, "the number of a card",              "PETSc's, else by turns within the node",                          "The card's number"                                                                                                                                                                          },
  {"-mat_aijhybridgpu_device_min",        HYB_OPTION_NUMBER, AT(devicemin),        -1,      0, "a number of nonzeros",              "10000 where the matrix has its vectors on the card, else 100000", "Operands of fewer nonzeros stay on the host with -mat_aijhybridgpu_backend auto"                                                                                                            },
  {"-mat_aijhybridgpu_memory",            HYB_OPTION_WORD,   AT(mirror),           0,       0, "managed mirror",                    "managed",                                                         "Where results on the device live: one storage valid on both sides, or device arrays beside host ones"                                                                                       },
  {"-mat_aijhybridgpu_managed_limit",     HYB_OPTION_REAL,   AT(managedlimit),     0.5,     1, "a share of the card's free memory", "0.5",                                                             "Managed memory of this node's processes, a share of the card's free memory"                                                                                                                 },
  {"-mat_aijhybridgpu_memory_limit",      HYB_OPTION_REAL,   AT(memorylimit),      0,       0, "a number of bytes",                 "0",                                                               "Bytes of the card that may be used, 0: all"                                                                                                                                                 },
  {"-mat_aijhybridgpu_lock_after",        HYB_OPTION_NUMBER, AT(lockafter),        24,      0, "a number of times",                 "24",                                                              "Values of a host matrix that were sent so many times move to page-locked memory; 0: never"                                                                                                  },
  {"-mat_aijhybridgpu_lock_min",          HYB_OPTION_NUMBER, AT(lockmin),          2097152, 0, "a number of bytes",                 "2097152",                                                         "Fewer bytes of values than this stay where they are"                                                                                                                                        },
  {"-mat_aijhybridgpu_lock_limit",        HYB_OPTION_REAL,   AT(locklimit),        0.25,    1, "a share of the host's memory",      "0.25",                                                            "Page-locked memory of this node's processes for such values, a share of the host's memory"                                                                                                  },
  {"-mat_aijhybridgpu_promote",           HYB_OPTION_WORD,   AT(promotenever),     0,       0, "auto never",                        "auto",                                                            "Whether the values of matrices that the program writes by the device's operations move there"                                                                                               },
  {"-mat_aijhybridgpu_plan_min",          HYB_OPTION_NUMBER, AT(planmin),          1000000, 0, "a number of nonzeros",              "1000000",                                                         "Patterns of so many nonzeros are planned for at their second product with a vector, others at their first"                                                                                  },
  {"-mat_aijhybridgpu_segsum_repair",     HYB_OPTION_OTHER,  0,                    0,       0, "device cpu",                        "device",                                                          "Who puts the sums of dirty tiles of segsum in order on a device"                                                                                                                            },
  {"-mat_aijhybridgpu_tile_precision",    HYB_OPTION_OTHER,  0,                    0,       0, "double half",                       "double",                                                          "What the product of matrices by the method tile multiplies in; half: values of 16 bits, sums of 32"                                                                                         },
  {"-mat_aijhybridgpu_narrow_min",        HYB_OPTION_NUMBER, AT(narrowmin),        4096,    0, "a number of rows",                  "4096",                                                            "The device's results of fewer rows become AIJ's by PETSc's loops over their rows"                                                                                                           },
  {"-mat_aijhybridgpu_frame_unknown",     HYB_OPTION_FLAG,   AT(frameunknown),     0,       0, "",                                  "",                                                                "Do as in a PETSc whose matrices' places are not known: values never move, host writes are told by states"                                                                                   },
  {"-mat_aijhybridgpu_smoothers",         HYB_OPTION_FLAG,   AT(smoothers),        1,       0, "",                                  "true",                                                            "What PETSc's Jacobi and Chebyshev do on the host alone is done on the device, for matrices of the type"                                                                                     },
  {"-mat_aijhybridgpu_parallel_products", HYB_OPTION_FLAG,   AT(parallelproducts), 1,       0, "",                                  "true",                                                            "Products of parallel matrices are made of CSR arrays where these are; otherwise by PETSc's own algorithms, on the host"                                                                     },
  {"-mat_aijhybridgpu_comm",              HYB_OPTION_OTHER,  0,                    0,       0, "auto mpi peer petsc",               "auto",                                                            "How devices of several processes exchange entries of vectors and rows: by peer access where it can be, by MPI from page-locked buffers; petsc: products with vectors by PETSc's own scatter"},
  {"-mat_aijhybridgpu_comm_timeout",      HYB_OPTION_OTHER,  0,                    0,       0, "1 to the largest PetscInt",         "3600",                                                            "Seconds after which a process that waits on its card for another's entries gives up, with an error"                                                                                         },
  {"-mat_aijhybridgpu_comm_segment",      HYB_OPTION_OTHER,  0,                    0,       0, "1 to 65536",                        "32",                                                              "MiB of each card that the node's other processes can reach, for peer access"                                                                                                                },
  {"-mat_aijhybridgpu_comm_after",        HYB_OPTION_OTHER,  0,                    0,       0, "0 to the largest PetscInt",         "2",                                                               "Exchanges of a halo, or of a product's rows, that go by messages before peer access is made ready for them"                                                                                 },
  {"-mat_aijhybridgpu_view_memory",       HYB_OPTION_FLAG,   AT(viewmemory),       0,       0, "",                                  "",                                                                "Shows at the end what was held and what crossed the bus"                                                                                                                                    },
  {"-mat_aijhybridgpu_report",            HYB_OPTION_PATH,   AT(report),           0,       0, "file.html or file.json",            "",                                                                "A page, or its data, that tells at the end what ran where, how long, and what could be done about it"                                                                                       },
  {"-mat_aijhybridgpu_view_counts",       HYB_OPTION_PATH,   AT(viewcounts),       0,       0, "file",                              "",                                                                "A file to which each process appends at the end what ran"                                                                                                                                   }
};

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
    PetscCall(PetscStrcmp(value, word[k], &flg));
    if (flg) *which = k;
  }
  PetscCall(PetscStrToArrayDestroy(n, word));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybOptionsReadOne(size_t k)
{
  void     *member    = (char *)&HybGlueState.options + list[k].at;
  char      value[64] = "";
  PetscBool set;

  PetscFunctionBegin;
  switch (list[k].kind) {
  case HYB_OPTION_NUMBER:
    *(PetscInt *)member = (PetscInt)list[k].value;
    PetscCall(PetscOptionsGetInt(NULL, NULL, list[k].name, (PetscInt *)member, &set));
    PetscCheck(!set || *(PetscInt *)member >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%s %" PetscInt_FMT " is not %s", list[k].name, *(PetscInt *)member, list[k].words);
    break;
  case HYB_OPTION_REAL:
    *(PetscReal *)member = (PetscReal)list[k].value;
    PetscCall(PetscOptionsGetReal(NULL, NULL, list[k].name, (PetscReal *)member, NULL));
    PetscCheck(*(PetscReal *)member >= 0 && (list[k].most == 0 || *(PetscReal *)member <= (PetscReal)list[k].most), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%s %g is not %s%s", list[k].name, (double)*(PetscReal *)member, list[k].words, list[k].most > 0 ? ", within 0 to 1" : "");
    break;
  case HYB_OPTION_WORD:
    *(PetscInt *)member = (PetscInt)list[k].value;
    PetscCall(PetscOptionsGetString(NULL, NULL, list[k].name, value, sizeof(value), &set));
    if (set) PetscCall(HybOptionWord(list[k].words, value, (PetscInt *)member));
    PetscCheck(*(PetscInt *)member >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown %s \"%s\" for %s: one of %s", list[k].at == AT(mirror) ? "memory mode" : "value", value, list[k].name, list[k].words);
    break;
  case HYB_OPTION_PATH:
    *(char *)member = 0;
    PetscCall(PetscOptionsGetString(NULL, NULL, list[k].name, (char *)member, PETSC_MAX_PATH_LEN, NULL));
    break;
  case HYB_OPTION_FLAG:
    set = (PetscBool)(list[k].value != 0);
    PetscCall(PetscOptionsGetBool(NULL, NULL, list[k].name, &set, NULL));
    *(PetscInt *)member = set;
    break;
  default:
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybOptionsRead(void)
{
  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(list); k++) PetscCall(HybOptionsReadOne(k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is told at the end is told without any matrix too */
PetscErrorCode HybOptionsReadReports(void)
{
  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(list); k++)
    if (list[k].kind == HYB_OPTION_FLAG || list[k].kind == HYB_OPTION_PATH) PetscCall(HybOptionsReadOne(k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Those that matrices read under their prefix show themselves */
PetscErrorCode HybOptionsHelp(void)
{
  PetscBool help;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasHelp(NULL, &help));
  if (!help) PetscFunctionReturn(PETSC_SUCCESS);
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Options of libaijhybridgpu, for the whole process", "Mat");
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(list); k++) {
    char value[PETSC_MAX_PATH_LEN], text[256];

    PetscCall(PetscSNPrintf(text, sizeof(text), "%s%s%s", list[k].text, list[k].kind == HYB_OPTION_WORD ? ": one of " : "", list[k].kind == HYB_OPTION_WORD ? list[k].words : ""));
    PetscCall(PetscOptionsString(list[k].name, text, "MATAIJHYBRIDGPU", list[k].shown, value, sizeof(value), NULL));
  }
  PetscOptionsEnd();
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
    PetscCheck(g->choices.width == 0 || (g->choices.width >= 2 && g->choices.width <= 32), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_aijhybridgpu_rowmerge_width %" PetscInt_FMT " is not 0 or within 2 to 32", g->choices.width);
    PetscCall(PetscOptionsGetEnum(NULL, NULL, "-mat_aijhybridgpu_backend", backends, &backend, NULL));
    g->choices.backend = (HybBackendChoice)backend;
    PetscCall(HybOptionsRead());
    PetscCall(HybTuningRead(HybOptionString));
    g->optionsread = PETSC_TRUE;
  }
  *choices = g->choices;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Every kind of advice of a report, by made-up figures of a run: it is given where it is worth a line, and not where
  little is lost; the heaviest comes first, and there are five at most. Compiled together with the plugin's own objects,
  since nothing of a report is exported. tests/plugin/report.sh has runs that are given advice.
*/
#include "../../src/mat/report/report.h"
#include <unistd.h>

static int           passed, failed;
static HybAccount    account[2];
static HybRecordKind kind[2];
static const char   *way; /* of an exchange, of a factorization */

static void Check(int ok, const char *what, const HybReport *r)
{
  if (ok) {
    passed++;
    return;
  }
  failed++;
  printf("FAILED: %s\n", what);
  for (int k = 0; k < r->nadvice; k++) printf("  | %s (%s)\n", r->advice[k].text, r->advice[k].option);
}

/* a run of 100 s on two processes with a device, of which there is nothing to say */
static void Begin(HybReport *r)
{
  memset(r, 0, sizeof(*r));
  memset(account, 0, sizeof(account));
  memset(kind, 0, sizeof(kind));
  account[0].status = account[1].status = HYB_DEVICE_READY;
  snprintf(kind[0].key.name, sizeof(kind[0].key.name), "A");
  kind[0].key.rows = kind[0].key.cols = 1000;
  kind[0].matrices                    = 1;
  kind[0].nnz                         = 5000;
  r->known = r->size = 2;
  r->seconds         = 100;
  r->accounts        = account;
  r->kinds           = kind;
  r->nkinds          = 2;
  r->choice          = HYB_BACKEND_AUTO;
}

static HybRecordLine *Line(HybRecordOp op, const char *where, const char *method, PetscInt64 calls, double seconds)
{
  HybRecordLine *l = &kind[0].lines[kind[0].nlines++];

  l->op      = op;
  l->calls   = calls;
  l->seconds = seconds;
  snprintf(l->where, sizeof(l->where), "%s", where);
  snprintf(l->method, sizeof(l->method), "%s", method);
  return l;
}

/* the one line that is expected, or none */
static void Expect(HybReport *r, const char *what, const char *text, const char *option)
{
  HybReportAdvise(r);
  if (text)
    Check(r->nadvice == 1 && strstr(r->advice[0].text, text) && strstr(r->advice[0].option, option), what, r);
  else
    Check(!r->nadvice, what, r);
}

static void NoDevice(double much)
{
  account[0].status = HYB_DEVICE_NONE;
  snprintf(account[0].why, sizeof(account[0].why), "there is no driver");
  Line(HYB_RECORD_MULT, "host", "csr", 10, 20 * much);
}

static void HostVectors(double much)
{
  account[1].counts.stagedmults = 1000;
  account[1].counts.todevice    = much * 4e11; /* 20 s of the bus */
}

static void BelowMin(double much)
{
  account[1].counts.belowmin     = (PetscCount)(much * 250000); /* 5 s */
  account[0].counts.belowminmost = 4321;
}

static void Parents(double much)
{
  account[0].counts.fallbacksasked = (PetscCount)(7 * much);
  snprintf(account[0].counts.parents, sizeof(account[0].counts.parents), "sorted");
  Line(HYB_RECORD_MULT, "host", "csr", 10, 3);
  Line(HYB_RECORD_MULT, "device", "shape", 10, 4);
}

static void Sent(double much)
{
  kind[0].sendings = (PetscInt64)(much * 100000); /* 2 s */
  Line(HYB_RECORD_MULT, "device", "rowgroup", 77, 1);
}

static void OnHost(double much)
{
  Line(HYB_RECORD_MULTADD, "host", "csr", 1000, 10 * much);
  Line(HYB_RECORD_MULT, "device", "shape", 10, 9 * much);
}

/* a solve of 40 s in the second process */
static HybRun *Solve(void)
{
  HybRun *run = &account[1].run;

  run->calls[HYB_PART_SOLVE]   = 4;
  run->iterations              = 50;
  run->seconds[HYB_PART_SOLVE] = run->seconds[HYB_PART_APPLY] = 20;
  run->ours[HYB_PART_APPLY]                                   = 20;
  return run;
}

static void Copies(double much)
{
  (void)Solve();
  account[1].spent.solvecalls[HYB_SPENT_TOHOST]   = 200;
  account[1].spent.solveseconds[HYB_SPENT_TOHOST] = 8 * much;
}

static void Alone(HybReport *r)
{
  r->known = r->size = 1;
  account[0]         = account[1];
}

static void Waits(double much)
{
  (void)Solve();
  account[1].spent.solvecalls[HYB_SPENT_DEVICE] = (PetscCount)(1000000 * much); /* 20 s */
}

static void OtherLoops(double much)
{
  Solve()->ours[HYB_PART_APPLY] = 0;
  account[1].run.seconds[HYB_PART_APPLY] *= 2 * much;
  account[1].counts.gamg[HYB_CYCLES_LEFT] = 55;
}

static void Exchanged(double much)
{
  account[1].counts.hosthalos     = much < 1 ? 2 : 2000;
  account[1].counts.hosthalobytes = much * 2e11; /* 10 s */
  snprintf(account[1].counts.halofrom, sizeof(account[1].counts.halofrom), "%s", way);
}

static void Factored(double much)
{
  Line(HYB_RECORD_FACTOR, "host", way, 3, 6 * much);
}

static void Nothing(double much)
{
}

static const struct {
  const char *what;
  void (*loss)(double);      /* what is lost, much or little of it */
  const char *text, *option; /* of the line where it is much; NULL: none */
  const char *way;
} cases[] = {
  {"a run of which there is nothing to say",    Nothing,     NULL,                                                                                                                               NULL,                                                                  NULL                                                                                               },
  {"vectors of the host",                       HostVectors, "1000 products on the device had vectors on the host; 400 GB crossed the bus",                                                      PetscDefined(HAVE_CUDA) ? "-vec_type cuda" : "configured --with-cuda", NULL                                                                                               },
  {"operands that are too small",               BelowMin,    "250000 operations stayed on the host for their operands' size: the largest had 4321 nonzeros",                                     "-mat_aijhybridgpu_device_min",                                        NULL                                                                                               },
  {"an algorithm of the parent's",              Parents,     "7 products were left to AIJ, whose algorithm sorted was asked for",                                                                "-mat_product_algorithm",                                              NULL                                                                                               },
  {"values sent again and again",               Sent,        "New values of A 1000 x 1000 were sent to the device 50000 times",                                                                  "MatSetValuesCOO()",                                                   NULL                                                                                               },
  {"operations of the host",                    OnHost,      "There is a device, but the host took 10 s of 19 s in operations of the type, most for MatMultAdd of A 1000 x 1000",                "-mat_aijhybridgpu_backend cuda",                                      NULL                                                                                               },
  {"copies in a solve",                         Copies,      "200 copies over the bus in solves took 8 s of their 40 s",                                                                         PetscDefined(HAVE_CUDA) ? "-vec_type cuda" : "configured --with-cuda", NULL                                                                                               },
  {"waits in a solve",                          Waits,       "In solves the host waited for the device 20000 times in each of 50 iterations",                                                    "-ksp_type cg",                                                        NULL                                                                                               },
  {"PETSc's loops of multigrid",                OtherLoops,  "PCApply() without operations of the type took 40 s of the solves' 60 s: multigrid by PETSc's own loops",                           "-info :pc",                                                           NULL                                                                                               },
  {"MPI that is not GPU-aware",                 Exchanged,   "2000 products with vectors got other processes' entries through the host, 200 GB, by PETSc's scatter, since MPI is not GPU-aware", "-use_gpu_aware_mpi 1",                                                "PETSc's scatter, since MPI is not GPU-aware"                                                      },
  {"entries by MPI",                            Exchanged,   "by MPI: peer access is not possible",                                                                                              "a card for each process; with a GPU-aware MPI",                       "MPI: peer access is not possible"                                                                 },
  {"entries by MPI, each halo a few times",     Exchanged,   "by MPI from page-locked buffers: too few times for peer access",                                                                   "-mat_aijhybridgpu_tuning comm_after=0",                               "MPI from page-locked buffers: too few times for peer access (-mat_aijhybridgpu_tuning comm_after)"},
  {"factorizations on the host",                Factored,    "3 factorizations ran on the host, 6 s",                                                                                            "-pc_factor_mat_solver_type cusparse",                                 "petsc"                                                                                            },
  {"a factorization that another package does", Factored,    NULL,                                                                                                                               NULL,                                                                  "mumps"                                                                                            },
};

int main(void)
{
  HybReport r;

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    for (int worth = 1; worth >= 0; worth--) { /* where little is lost, nothing is said */
      Begin(&r);
      way = cases[k].way;
      (*cases[k].loss)(worth ? 1 : 1e-6);
      if (cases[k].loss == Waits || cases[k].loss == OtherLoops) Alone(&r); /* what is told of one process */
      Expect(&r, cases[k].what, worth ? cases[k].text : NULL, cases[k].option);
    }
  }
  for (int asked = 0; asked < 2; asked++) { /* whatever it took */
    Begin(&r);
    NoDevice(1);
    if (asked) r.choice = HYB_BACKEND_HOST;
    Expect(&r, asked ? "the host was asked for" : "no device", asked ? NULL : "No device was used, so the host took 20 s for products: there is no driver", "-mat_aijhybridgpu_backend host");
  }

  { /* built without the GPU part: of interest where there is a card */
    const PetscBool card = (PetscBool)!access("/proc/driver/nvidia/version", R_OK);

    Begin(&r);
    NoDevice(1);
    snprintf(r.accounts[0].why, sizeof(r.accounts[0].why), "There is no device library /x/libaijhybridgpu_cuda.so");
    Expect(&r, "no GPU part", card ? "This machine has a GPU, but the plugin was built without its GPU part, so the host took 20 s for products" : NULL, "make, where");
  }

  Begin(&r); /* 20, 10, 8, 6, 5 s; what weighs less is left out */
  HostVectors(1);
  BelowMin(1);
  Sent(1);
  Copies(1);
  way = "MPI: peer access is not possible";
  Exchanged(1);
  way = "petsc";
  Factored(1);
  HybReportAdvise(&r);
  Check(r.nadvice == HYB_ADVICE && HYB_ADVICE == 5, "five lines at most", &r);
  Check(strstr(r.advice[0].text, "vectors on the host") && strstr(r.advice[1].text, "through the host") && strstr(r.advice[2].text, "in solves") && strstr(r.advice[3].text, "factorizations") && strstr(r.advice[4].text, "size"), "the heaviest first", &r);
  printf("%d passed, %d failed, 0 skipped\n", passed, failed);
  return failed > 0;
}

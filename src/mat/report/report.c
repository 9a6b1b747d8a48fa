/*
  The report of a run, from its beginning at load to its end in PetscFinalize(), or in an error: what each process says
  of itself, put together on the first one, and written.
*/
#include "report.h"
#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <locale.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* a word of a file of the system's, after what stands before it */
static void HybSystemWord(const char *path, const char *after, const char *end, char *text, size_t length)
{
  char  line[256], *at;
  FILE *f = fopen(path, "r");

  while (f && fgets(line, sizeof(line), f)) {
    if (!(at = strstr(line, after))) continue;
    at += strlen(after);
    at += strspn(at, " \t");
    at[strcspn(at, end)] = 0;
    snprintf(text, length, "%s", at);
    break;
  }
  if (f) fclose(f);
}

/* The card's name and the driver's version, as the driver tells everybody: no call of CUDA's is needed */
static void HybCardName(const HybMemoryReport *r, char card[], size_t ncard, char driver[], size_t ndriver)
{
  /* CUDA's domain has eight digits, the system's four */
  const char *bus = strlen(r->bus) > 12 ? r->bus + strlen(r->bus) - 12 : r->bus;
  char        path[128];

  /* "NVIDIA UNIX x86_64 Kernel Module  535.54.03  date", or "Open Kernel Module for x86_64  535.54.03  Release ..." */
  HybSystemWord("/proc/driver/nvidia/version", "Kernel Module for x86_64", " \n", driver, ndriver);
  if (!driver[0]) HybSystemWord("/proc/driver/nvidia/version", "Kernel Module", " \n", driver, ndriver);
  snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", bus);
  for (char *c = path + strlen("/proc/driver/nvidia/gpus/"); *c && *c != '/'; c++) *c = (char)(*c >= 'A' && *c <= 'F' ? *c + 32 : *c);
  HybSystemWord(path, "Model:", "\n", card, ncard);
}

/* What this process can say of itself, of the kinds of its matrices among other things. Neither PETSc nor MPI is asked,
   nor is the card. */
static void HybAccountGet(HybAccount *a, const HybRecordKind *kinds, int n, PetscLogDouble seconds)
{
  const HybGlue    *g = &HybGlueState;
  const HybRecords *r = g->report.records;

  memset(a, 0, sizeof(*a));
  a->rank   = r->rank;
  a->nkinds = n;
  a->counts = g->counts;
  a->status = g->devicestatus;
  (void)HybBackendHost.usage(&a->host, PETSC_FALSE);
  if (g->device) (void)g->device->usage(&a->device, PETSC_FALSE);
  snprintf(a->backend, sizeof(a->backend), "%s", g->device ? g->device->name : "host");
  snprintf(a->why, sizeof(a->why), "%.*s", (int)sizeof(a->why) - 1, g->whynodevice);
  if (gethostname(a->node, sizeof(a->node) - 1)) a->node[0] = 0;
  a->moments                            = r->moments;
  a->spent                              = r->spent;
  a->sent                               = *HybCommTallyGet();
  a->spent.calls[HYB_SPENT_PROCESSES]   = a->sent.waits;
  a->spent.seconds[HYB_SPENT_PROCESSES] = a->sent.seconds;
  HybRunGet(&r->run, r->began + seconds, &a->run);
  for (int k = 0; k < n; k++) {
    for (int l = 0; l < kinds[k].nlines; l++)
      for (int p = 0; p < HYB_PARTS && !HybOpIsNested((int)kinds[k].lines[l].op); p++) a->run.ours[p] += kinds[k].lines[l].in[p];
  }
  if (a->device.cards) HybCardName(&a->device, a->card, sizeof(a->card), a->driver, sizeof(a->driver));
}

static PetscBool HybEndsIn(const char *text, const char *end)
{
  const size_t n = strlen(text), m = strlen(end);

  return (PetscBool)(n >= m && !strcmp(text + n - m, end));
}

static PetscBool HybReportWriteFile(const char *name, const HybReport *report)
{
  FILE     *f = fopen(name, "w");
  PetscBool ok;

  if (!f) return PETSC_FALSE;
  if (HybEndsIn(name, ".json"))
    HybReportJSON(f, report);
  else
    HybReportHTML(f, report);
  ok = (PetscBool)!ferror(f);
  return (PetscBool)(!fclose(f) && ok);
}

/* A file that cannot be written any more: the page goes to the folder for temporary ones, and the user is told. The
   program's own results are not touched by this. */
static void HybReportWrite(HybRecords *r, const HybReport *report)
{
  const char *folder = getenv("TMPDIR");
  char        name[PETSC_MAX_PATH_LEN];
  int         why;

  errno = 0;
  if (HybReportWriteFile(r->file, report)) return;
  why = errno;
  snprintf(name, sizeof(name), "%s/aijhybridgpu-report-%ld.%s", folder && folder[0] ? folder : "/tmp", (long)getpid(), HybEndsIn(r->file, ".json") ? "json" : "html");
  fprintf(stderr, "aijhybridgpu: -mat_aijhybridgpu_report cannot write %s (%s)", r->file, strerror(why));
  if (HybReportWriteFile(name, report))
    fprintf(stderr, ": the report is in %s\n", name);
  else
    fprintf(stderr, ", nor %s (%s)\n", name, strerror(errno));
}

/* What holds for all processes, advice, and the file. Numbers have a point, whatever language the program speaks: a
   comma would end them, in the data and in pictures. */
static void HybReportMake(HybRecords *r, HybReport *report)
{
  static const char *const choices[] = {"auto", "host", "cuda"};
  const locale_t           plain     = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  const locale_t           own       = plain ? uselocale(plain) : (locale_t)0;
  const time_t             t         = time(NULL);
  struct tm                utc;

  report->program = r->program;
  report->options = r->options ? r->options : "";
  report->petsc   = r->petsc;
  report->scalar  = PetscDefined(USE_COMPLEX) ? "complex" : "real";
  report->ended   = r->ended;
  report->size    = r->size;
  report->choice  = (HybBackendChoice)HybGlueState.choices.backend;
  report->asked   = choices[report->choice];
  if (gmtime_r(&t, &utc)) (void)strftime(report->date, sizeof(report->date), "%Y-%m-%d %H:%M UTC", &utc);
  for (int k = 0; k < report->nkinds; k++)
    for (int l = 0; l < report->kinds[k].nlines; l++) report->kinds[k].lines[l].mean /= report->known;
  HybReportAdvise(report);
  HybReportWrite(r, report);
  if (plain) {
    (void)uselocale(own);
    freelocale(plain);
  }
}

/* The page of what this process knows, by the first one: the run ends by an error, or without PetscFinalize(). ended:
   NULL: as was told before. */
static void HybReportWriteAlone(HybRecords *r, const char *ended)
{
  HybReport  report;
  HybAccount account;
  char       former[400];

  if (r->rank || r->busy || r->process != getpid()) return; /* a child's end is not the run's */
  r->busy = PETSC_TRUE;
  memset(&report, 0, sizeof(report));
  snprintf(former, sizeof(former), "%.399s", r->ended);
  if (!ended) ended = former[0] ? former : "an error"; /* that began where another handler was above this one */
  if (former[0] && strcmp(former, ended) && strncmp(ended, "error ", 6))
    snprintf(r->ended, sizeof(r->ended), "%s; then %s", former, ended);
  else
    snprintf(r->ended, sizeof(r->ended), "%s", ended);
  report.nkinds = HybRecordsNow(r);
  report.kinds  = r->merged;
  (void)PetscTime(&report.seconds);
  report.seconds -= r->began;
  HybAccountGet(&account, report.kinds, report.nkinds, report.seconds);
  report.known    = 1;
  report.complete = (PetscBool)(r->size == 1);
  report.accounts = &account;
  HybReportMake(r, &report);
  r->written++;
  r->busy = PETSC_FALSE;
}

/*
  An error may end the run, or be caught by somebody further up; who catches errors on purpose has a handler of his own
  above this one. So the page is written where an error begins, a few times at most, and in main(), where PETSc ends the
  program; a run that goes on writes it anew at its end. What PETSc's signal handler comes here with may have stopped an
  allocation in its midst, and a page needs some: none is written from there on, nor in exit().
*/
static PetscErrorCode HybReportOnError(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode n, PetscErrorType p, const char *message, void *ctx)
{
  HybRecords    *r = HybGlueState.report.records;
  char           ended[400];
  PetscErrorCode ierr;

  if (r && n == PETSC_ERR_SIG)
    r->busy = PETSC_TRUE;
  else if (r && p == PETSC_ERROR_INITIAL && r->written < 8) {
    snprintf(ended, sizeof(ended), "error %d in %s(): %.300s", (int)n, function ? function : "?", message ? message : "");
    HybReportWriteAlone(r, ended);
  } else if (r && function && !strcmp(function, "main"))
    HybReportWriteAlone(r, NULL);
  /* PETSc keeps the handler below this one to itself */
  (void)PetscPopErrorHandler();
  ierr = message ? PetscError(comm, line, function, file, n, p, "%s", message) : PetscError(comm, line, function, file, n, p, NULL);
  if (n != PETSC_ERR_SIG) (void)PetscPushErrorHandler(HybReportOnError, NULL); /* which allocates */
  return ierr;
}

static void HybReportAtExit(void)
{
  if (HybGlueState.report.records) HybReportWriteAlone(HybGlueState.report.records, "the program ended without PetscFinalize()");
}

/* Bad places are told of before the work, not after it */
static PetscErrorCode HybReportCheckFile(const char *name)
{
  char        path[PETSC_MAX_PATH_LEN];
  struct stat s;
  PetscBool   there;

  PetscFunctionBegin;
  PetscCheck(HybEndsIn(name, ".html") || HybEndsIn(name, ".json"), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "-mat_aijhybridgpu_report %s: a file's name that ends in .html or .json is needed", name);
  there = (PetscBool)!stat(name, &s);
  PetscCheck(!there || !S_ISDIR(s.st_mode), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-mat_aijhybridgpu_report %s is a folder: a file's name is needed", name);
  PetscCall(PetscStrncpy(path, name, sizeof(path)));
  PetscCheck(!access(there ? name : dirname(path), W_OK), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-mat_aijhybridgpu_report cannot write %s: %s", name, strerror(errno));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The processes' accounts and kinds, one process after the other so that the first one holds no more than two at a
   time */
static PetscErrorCode HybReportGather(HybRecords *r, HybReport *report)
{
  const PetscMPIInt tag = 7701; /* of a communicator of its own */
  HybAccount        own;
  HybRecordKind    *mine;
  MPI_Comm          comm;

  PetscFunctionBegin;
  HybAccountGet(&own, r->merged, HybRecordsNow(r), report->seconds);
  PetscCall(HybRateMeasure(&own));
  PetscCallMPI(MPI_Comm_dup(PETSC_COMM_WORLD, &comm));
  if (r->rank) {
    char token;

    /* the first process is ready for this one */
    PetscCallMPI(MPI_Recv(&token, 1, MPI_BYTE, 0, tag, comm, MPI_STATUS_IGNORE));
    PetscCallMPI(MPI_Send(&own, (PetscMPIInt)sizeof(own), MPI_BYTE, 0, tag, comm));
    PetscCallMPI(MPI_Send(r->merged, own.nkinds * (PetscMPIInt)sizeof(HybRecordKind), MPI_BYTE, 0, tag, comm));
  } else {
    PetscCall(PetscCalloc1(r->size, &report->accounts));
    PetscCall(PetscCalloc1(HYB_RECORD_KINDS, &mine));
    report->accounts[0] = own;
    report->kinds       = r->merged;
    /* the kinds that were of no use any more hold the sum: nothing is recorded from here on */
    memcpy(mine, r->merged, sizeof(*mine) * (size_t)own.nkinds);
    for (PetscMPIInt from = 0; from < r->size; from++) {
      HybAccount *a = &report->accounts[from];

      if (from) {
        PetscCallMPI(MPI_Send("", 1, MPI_BYTE, from, tag, comm));
        PetscCallMPI(MPI_Recv(a, (PetscMPIInt)sizeof(*a), MPI_BYTE, from, tag, comm, MPI_STATUS_IGNORE));
        PetscCallMPI(MPI_Recv(mine, a->nkinds * (PetscMPIInt)sizeof(HybRecordKind), MPI_BYTE, from, tag, comm, MPI_STATUS_IGNORE));
      }
      for (int k = 0; k < a->nkinds; k++) HybKindsMerge(report->kinds, &report->nkinds, &mine[k], PETSC_TRUE);
    }
    PetscCall(PetscFree(mine));
    report->known    = r->size;
    report->complete = PETSC_TRUE;
  }
  PetscCallMPI(MPI_Comm_free(&comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: in PetscFinalize(), while MPI is there */
static PetscErrorCode HybReportEnd(void)
{
  HybRecords *r = HybGlueState.report.records;
  HybReport   report;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&report, sizeof(report)));
  HybRecordsCollect(r, HYB_TIMERS);
  PetscCall(PetscTime(&report.seconds)); /* what comes now is the report's own work */
  report.seconds -= r->began;
  PetscCall(HybReportGather(r, &report));
  if (!r->rank) {
    PetscCall(PetscFree(r->options)); /* programs add options of their own */
    PetscCall(PetscOptionsGetAll(NULL, &r->options));
    PetscCall(PetscStrncpy(r->ended, "PetscFinalize", sizeof(r->ended)));
    HybReportMake(r, &report);
    PetscCall(PetscFree(report.accounts));
    PetscCall(PetscPopErrorHandler());
  }
  HybCommTallyGet()->timing = PETSC_FALSE;
  PetscCall(HybRunEnd(r));
  PetscCall(HybRecordsDestroy(&HybGlueState.report.records));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* At load, where all processes are: from here on records are kept, if the option was given */
PetscErrorCode HybReportBegin(HybRecordDescribe describe)
{
  HybGlue    *g = &HybGlueState;
  HybRecords *r;
  PetscMPIInt rank;

  PetscFunctionBegin;
  if (!g->options.report[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (!rank) PetscCall(HybReportCheckFile(g->options.report));
  PetscCall(HybRecordsCreate(&r));
  r->rank    = rank;
  r->process = getpid();
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &r->size));
  PetscCall(PetscStrncpy(r->file, g->options.report, sizeof(r->file)));
  PetscCall(PetscGetProgramName(r->program, sizeof(r->program)));
  PetscCall(PetscGetVersion(r->petsc, sizeof(r->petsc)));
  for (size_t n = strlen(r->petsc); n && isspace((unsigned char)r->petsc[n - 1]); n--) r->petsc[n - 1] = 0;
  PetscCall(PetscOptionsGetAll(NULL, &r->options));
  PetscCall(PetscMemzero(HybCommTallyGet(), sizeof(HybCommTally)));
  HybCommTallyGet()->timing = PETSC_TRUE;
  r->describe               = describe;
  g->report.records         = r;
  g->report.watch           = HybBackendWatch;
  g->report.end             = HybReportEnd;
  PetscCall(PetscTime(&r->began));
  PetscCall(HybRunBegin(r));
  if (!rank) {
    PetscCall(PetscPushErrorHandler(HybReportOnError, NULL));
    if (!g->report.atexit && !atexit(HybReportAtExit)) g->report.atexit = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

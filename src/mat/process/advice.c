/*
  What a run's figures say could be done better, in five lines at most, each with its figure and the option to change.
  The heaviest come first: the weight is the time that is lost, measured or from the bytes at 20 GB/s of the bus and 20
  microseconds for each time. What took less than half a per cent of the run is not worth a line.
*/
#include "report.h"
#include <unistd.h>

#define HYB_BUS_RATE 2e10
#define HYB_BUS_EACH 2e-5
#define HYB_WORTH    5e-3

static const char *HybAdviceBytes(double bytes, char text[], size_t length)
{
  snprintf(text, length, bytes < 1e9 ? "%.3g MB" : "%.3g GB", bytes < 1e9 ? 1e-6 * bytes : 1e-9 * bytes);
  return text;
}

static void HybAdviceAdd(HybReport *r, PetscLogDouble weight, const char *option, const char *format, ...)
{
  HybAdvice a;
  va_list   args;
  int       at;

  memset(&a, 0, sizeof(a));
  va_start(args, format);
  (void)vsnprintf(a.text, sizeof(a.text), format, args);
  va_end(args);
  snprintf(a.option, sizeof(a.option), "%s", option);
  a.weight = weight;
  for (at = r->nadvice; at > 0 && r->advice[at - 1].weight < weight; at--)
    if (at < HYB_ADVICE) r->advice[at] = r->advice[at - 1];
  if (at < HYB_ADVICE) r->advice[at] = a;
  if (r->nadvice < HYB_ADVICE) r->nadvice++;
}

/* calls and seconds of one operation over all kinds, on the host or on the device */
static double HybReportSum(const HybReport *r, int op, const char *where, PetscInt64 *calls)
{
  double sum = 0;

  *calls = 0;
  for (int k = 0; k < r->nkinds; k++) {
    for (int i = 0; i < r->kinds[k].nlines; i++) {
      const HybRecordLine *l = &r->kinds[k].lines[i];

      if ((int)l->op != op || strcmp(l->where, where)) continue;
      if (op == HYB_RECORD_FACTOR && strcmp(l->method, "petsc")) continue;
      *calls += l->calls;
      sum += l->seconds;
    }
  }
  return sum;
}

static double HybReportHostSeconds(const HybReport *r)
{
  double     sum = 0;
  PetscInt64 calls;

  for (int op = 0; op <= (int)HYB_RECORD_AGAIN; op++) sum += HybReportSum(r, op, "host", &calls);
  return sum;
}

/* a method that was asked for, where auto's was timed beside it: the kind that lost most by it */
static void HybAdviseMethod(HybReport *r)
{
  const HybRecordLine *worst = NULL;
  double               lost  = HYB_WORTH * r->seconds;
  char                 label[160];
  int                  kind = 0;

  for (int k = 0; k < r->nkinds; k++) {
    for (int i = 0; i < r->kinds[k].nlines; i++) {
      const HybRecordLine *l = &r->kinds[k].lines[i];

      if (!l->other[0] || l->otheronce > 0.9 * l->ownonce || (double)l->calls * (l->ownonce - l->otheronce) < lost) continue;
      lost  = (double)l->calls * (l->ownonce - l->otheronce);
      kind  = k;
      worst = l;
    }
  }
  if (!worst) return;
  HybKindLabel(&r->kinds[kind].key, label, sizeof(label));
  HybAdviceAdd(r, lost, "-mat_aijhybridgpu_spmv auto",
               "%s of %s by %s, which was asked for, takes %.3g ms a time, by %s, which auto takes, %.3g ms: %.3g s more in %lld calls",
               HybRecordOpName((int)worst->op), label, worst->method, 1e3 * worst->ownonce, worst->other, 1e3 * worst->otheronce, lost, (long long)worst->calls);
}

/* what helps, by why they went through the host */
static const char *HybAdviceOfHalo(const char *from)
{
  if (strstr(from, "not GPU-aware")) return "-mat_aijhybridgpu_comm auto, or an MPI that is GPU-aware and -use_gpu_aware_mpi 1";
  if (strstr(from, "too few times")) return "-mat_aijhybridgpu_tuning comm_after=0";
  if (strstr(from, "long enough")) return "-mat_aijhybridgpu_comm auto and a card for each process; -mat_aijhybridgpu_tuning comm_aware_min=0 where that is faster";
  if (strstr(from, "segment is full")) return "-mat_aijhybridgpu_tuning comm_segment of more MiB";
  return "-mat_aijhybridgpu_comm auto and a card for each process; with a GPU-aware MPI -mat_aijhybridgpu_comm_aware yes";
}

/* others' entries for products with vectors */
static void HybAdviseExchange(HybReport *r)
{
  const HybCounts *most = &r->accounts[0].counts;
  double           weight;
  char             text[32];

  for (PetscMPIInt p = 1; p < r->known; p++)
    if (r->accounts[p].counts.hosthalos > most->hosthalos) most = &r->accounts[p].counts;
  /* to one host, and from another */
  weight = most->hosthalobytes / HYB_BUS_RATE + 2.0 * (double)most->hosthalos * HYB_BUS_EACH;
  if (!most->hosthalos || weight < HYB_WORTH * r->seconds) return;
  HybAdviceAdd(r, weight, HybAdviceOfHalo(most->halofrom),
               "%lld products with vectors got other processes' entries through the host, %s, by %s", (long long)most->hosthalos,
               HybAdviceBytes(most->hosthalobytes, text, sizeof(text)), most->halofrom);
}

/* of the process that shows each figure most */
void HybReportAdvise(HybReport *r)
{
  const HybAccount *first = &r->accounts[0];
  HybCounts         most;
  PetscInt64        calls, mults;
  double            seconds, weight;
  char              label[160], text[32];

  memset(&most, 0, sizeof(most));
  for (PetscMPIInt p = 0; p < r->known; p++) {
    const HybCounts *c = &r->accounts[p].counts;

    if (c->stagedmults > most.stagedmults) most.stagedmults = c->stagedmults, most.todevice = c->todevice, most.tohost = c->tohost;
    if (c->belowmin > most.belowmin) most.belowmin = c->belowmin;
    if (c->belowminmost > most.belowminmost) most.belowminmost = c->belowminmost;
    if (c->fallbacksasked > most.fallbacksasked) {
      most.fallbacksasked = c->fallbacksasked;
      memcpy(most.parents, c->parents, sizeof(most.parents));
    }
  }
  /* without the GPU part that is the builder's choice, unless there is a card */
  if (r->choice == HYB_BACKEND_AUTO && first->status == HYB_DEVICE_NONE && strstr(first->why, "here is no device library")) {
    if (!access("/proc/driver/nvidia/version", R_OK)) HybAdviceAdd(r, HybReportHostSeconds(r), "make, where CUDA's nvcc is found", "This machine has a GPU, but the plugin was built without its GPU part, so the host took %.3g s for products", HybReportHostSeconds(r));
  } else if (r->choice == HYB_BACKEND_AUTO && first->status == HYB_DEVICE_NONE)
    HybAdviceAdd(r, HybReportHostSeconds(r), "-mat_aijhybridgpu_backend host, if no GPU is to be used: then this line goes", "No device was used, so the host took %.3g s for products: %s", HybReportHostSeconds(r), first->why);
  weight = (most.todevice + most.tohost) / HYB_BUS_RATE + (double)most.stagedmults * HYB_BUS_EACH;
  if (most.stagedmults && weight > HYB_WORTH * r->seconds)
    HybAdviceAdd(r, weight, PetscDefined(HAVE_CUDA) ? "-vec_type cuda, or -dm_vec_type cuda" : "a PETSc that was configured --with-cuda", "%lld products on the device had vectors on the host; %s crossed the bus in all",
                 (long long)most.stagedmults, HybAdviceBytes(most.todevice + most.tohost, text, sizeof(text)));
  if (most.belowmin && first->status == HYB_DEVICE_READY && (double)most.belowmin * HYB_BUS_EACH > HYB_WORTH * r->seconds)
    HybAdviceAdd(r, (double)most.belowmin * HYB_BUS_EACH, "-mat_aijhybridgpu_device_min", "%lld operations stayed on the host for their operands' size: the largest had %lld nonzeros", (long long)most.belowmin, (long long)most.belowminmost);
  if (most.fallbacksasked)
    HybAdviceAdd(r, HybReportHostSeconds(r) + 1e-3 * (double)most.fallbacksasked, "-mat_product_algorithm, -matmatmult_via, -matptap_via: default", "%lld products were left to AIJ, whose algorithm %s was asked for", (long long)most.fallbacksasked, most.parents);
  for (int k = 0; k < r->nkinds; k++) {
    const HybRecordKind *kind  = &r->kinds[k];
    double               bytes = 0;

    mults = 0;
    for (int i = 0; i < kind->nlines; i++)
      if (HybOpIsMult((int)kind->lines[i].op)) mults += kind->lines[i].calls;
    bytes  = (double)kind->sendings * (double)kind->nnz * sizeof(PetscScalar) / r->known / (double)PetscMax(1, kind->matrices);
    weight = bytes / HYB_BUS_RATE + (double)kind->sendings * HYB_BUS_EACH;
    if (kind->sendings < 3 * (PetscInt64)r->known || weight < HYB_WORTH * r->seconds) continue;
    HybKindLabel(&kind->key, label, sizeof(label));
    HybAdviceAdd(r, weight, "-mat_aijhybridgpu_lock_after, or MatSetValuesCOO() with values on the device", "New values of %s were sent to the device %lld times, %s, for %lld products with vectors", label, (long long)(kind->sendings / r->known), HybAdviceBytes(bytes, text, sizeof(text)), (long long)mults);
  }
  HybAdviseMethod(r);
  HybAdviseExchange(r);
  seconds = HybReportSum(r, HYB_RECORD_FACTOR, "host", &calls);
  if (calls && first->status == HYB_DEVICE_READY && seconds > HYB_WORTH * r->seconds) HybAdviceAdd(r, seconds, "-pc_factor_mat_solver_type cusparse, or -mg_coarse_pc_type jacobi", "%lld factorizations ran on the host, %.3g s", (long long)calls, seconds);
}

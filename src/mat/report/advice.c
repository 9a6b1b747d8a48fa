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

/* as the page writes them */
static const char *HybAdviceSeconds(double s, char text[], size_t length)
{
  snprintf(text, length, s < 0.9995 ? "%.3g ms" : "%.3g s", s < 0.9995 ? 1e3 * s : s);
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

/* calls and seconds of some operations on the host, over all kinds; factorizations: of PETSc's own */
static double HybReportHostSum(const HybReport *r, HybRecordOp first, HybRecordOp last, PetscInt64 *calls)
{
  double sum = 0;

  *calls = 0;
  for (int k = 0; k < r->nkinds; k++) {
    for (int i = 0; i < r->kinds[k].nlines; i++) {
      const HybRecordLine *l = &r->kinds[k].lines[i];

      if (l->op < first || l->op > last || strcmp(l->where, "host")) continue;
      if (l->op == HYB_RECORD_FACTOR && strcmp(l->method, "petsc")) continue;
      *calls += l->calls;
      sum += l->seconds;
    }
  }
  return sum;
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

/* There is a device, and yet most of the type's time is operations of the host */
static void HybAdviseHost(HybReport *r)
{
  const HybRecordLine *top  = NULL;
  int                  kind = 0;
  double               host = 0, all = 0;
  char                 label[160], one[32], both[32];

  if (r->accounts[0].status != HYB_DEVICE_READY) return;
  for (int k = 0; k < r->nkinds; k++) {
    for (int i = 0; i < r->kinds[k].nlines; i++) {
      const HybRecordLine *l = &r->kinds[k].lines[i];

      if (HybOpIsNested((int)l->op) || l->op == HYB_RECORD_FACTOR || !l->where[0]) continue;
      all += l->seconds;
      if (l->where[0] != 'h') continue;
      host += l->seconds;
      if (!top || l->seconds > top->seconds) top = l, kind = k;
    }
  }
  if (!top || host < 0.5 * all || host < HYB_WORTH * r->seconds) return;
  HybKindLabel(&r->kinds[kind].key, label, sizeof(label));
  HybAdviceAdd(r, host, "-mat_aijhybridgpu_backend cuda, or vectors on the device", "There is a device, but the host took %s of %s in operations of the type, most for %s of %s", HybAdviceSeconds(host, one, sizeof(one)), HybAdviceSeconds(all, both, sizeof(both)), HybRecordOpName((int)top->op), label);
}

/* What a solve on the device does besides: copies over the bus, waits that each cost some time of their own, and a
   preconditioner that is the host's. Of the process with the longest solves. */
static void HybAdviseSolve(HybReport *r)
{
  const HybAccount *a = &r->accounts[0];
  double            copies, waits, solve, apply;
  PetscInt64        ncopies, each;
  char              one[32], all[32];

  for (PetscMPIInt p = 1; p < r->known; p++)
    if (HybRunSolves(&r->accounts[p].run) > HybRunSolves(&a->run)) a = &r->accounts[p];
  if (a->status != HYB_DEVICE_READY) return;
  solve = HybRunSolves(&a->run);
  HybAdviceSeconds(solve, all, sizeof(all));
  copies  = a->spent.solveseconds[HYB_SPENT_TODEVICE] + a->spent.solveseconds[HYB_SPENT_TOHOST];
  ncopies = (PetscInt64)(a->spent.solvecalls[HYB_SPENT_TODEVICE] + a->spent.solvecalls[HYB_SPENT_TOHOST]);
  if (ncopies > 2 * a->run.calls[HYB_PART_SOLVE] && copies > HYB_WORTH * r->seconds)
    HybAdviceAdd(r, copies, PetscDefined(HAVE_CUDA) ? "-vec_type cuda, and what works on the device: -pc_type gamg, -mg_levels_pc_type jacobi" : "a PETSc that was configured --with-cuda, whose vectors stay on the device", "%lld copies over the bus in solves took %s of their %s",
                 (long long)ncopies, HybAdviceSeconds(copies, one, sizeof(one)), all);
  each  = (PetscInt64)a->spent.solvecalls[HYB_SPENT_DEVICE] / PetscMax(1, a->run.iterations);
  waits = (double)a->spent.solvecalls[HYB_SPENT_DEVICE] * HYB_BUS_EACH;
  if (r->size == 1 && each > 2 && waits > HYB_WORTH * r->seconds)
    HybAdviceAdd(r, waits, "-ksp_type cg with -pc_type gamg, which waits once; -info :ksp,pc says what stays PETSc's", "In solves the host waited for the device %lld times in each of %lld iterations", (long long)each, (long long)a->run.iterations);
  apply = a->run.seconds[HYB_PART_APPLY] - a->run.ours[HYB_PART_APPLY];
  if (r->size == 1 && !a->counts.gamg[HYB_CYCLES] && apply > 0.5 * solve && apply > HYB_WORTH * r->seconds)
    HybAdviceAdd(r, apply, a->counts.gamg[HYB_CYCLES_LEFT] ? "-info :pc says why; docs/solve.md has what is covered" : "-pc_type gamg, whose cycle the type makes on the device", "PCApply() without operations of the type took %s of the solves' %s%s", HybAdviceSeconds(apply, one, sizeof(one)), all, a->counts.gamg[HYB_CYCLES_LEFT] ? ": multigrid by PETSc's own loops" : "");
}

/* of the process that shows each figure most */
void HybReportAdvise(HybReport *r)
{
  const HybAccount *first = &r->accounts[0];
  HybCounts         most;
  PetscInt64        calls, mults;
  double            seconds, weight;
  char              label[160], text[32];
  const double      host = HybReportHostSum(r, HYB_RECORD_MULT, HYB_RECORD_AGAIN, &calls);

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
    if (!access("/proc/driver/nvidia/version", R_OK)) HybAdviceAdd(r, host, "make, where CUDA's nvcc is found", "This machine has a GPU, but the plugin was built without its GPU part, so the host took %s for products", HybAdviceSeconds(host, text, sizeof(text)));
  } else if (r->choice == HYB_BACKEND_AUTO && first->status == HYB_DEVICE_NONE)
    HybAdviceAdd(r, host, "what the cause asks for; or -mat_aijhybridgpu_backend host, where no GPU is wanted", "No device was used, so the host took %s for products: %s", HybAdviceSeconds(host, text, sizeof(text)), first->why);
  weight = (most.todevice + most.tohost) / HYB_BUS_RATE + (double)most.stagedmults * HYB_BUS_EACH;
  if (most.stagedmults && weight > HYB_WORTH * r->seconds)
    HybAdviceAdd(r, weight, PetscDefined(HAVE_CUDA) ? "-vec_type cuda, or -dm_vec_type cuda" : "a PETSc that was configured --with-cuda", "%lld products on the device had vectors on the host; %s crossed the bus in all",
                 (long long)most.stagedmults, HybAdviceBytes(most.todevice + most.tohost, text, sizeof(text)));
  if (most.belowmin && first->status == HYB_DEVICE_READY && (double)most.belowmin * HYB_BUS_EACH > HYB_WORTH * r->seconds)
    HybAdviceAdd(r, (double)most.belowmin * HYB_BUS_EACH, "-mat_aijhybridgpu_device_min", "%lld operations stayed on the host for their operands' size: the largest had %lld nonzeros", (long long)most.belowmin, (long long)most.belowminmost);
  if (most.fallbacksasked)
    HybAdviceAdd(r, host + 1e-3 * (double)most.fallbacksasked, "-mat_product_algorithm, -matmatmult_via, -matptap_via: default", "%lld products were left to AIJ, whose algorithm %s was asked for", (long long)most.fallbacksasked, most.parents);
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
  if (!most.fallbacksasked && !most.belowmin) HybAdviseHost(r); /* else it is told above why */
  HybAdviseSolve(r);
  HybAdviseExchange(r);
  seconds = HybReportHostSum(r, HYB_RECORD_FACTOR, HYB_RECORD_FACTOR, &calls);
  if (calls && first->status == HYB_DEVICE_READY && seconds > HYB_WORTH * r->seconds) HybAdviceAdd(r, seconds, "-pc_factor_mat_solver_type cusparse, or -mg_coarse_pc_type jacobi", "%lld factorizations ran on the host, %s", (long long)calls, HybAdviceSeconds(seconds, text, sizeof(text)));
}

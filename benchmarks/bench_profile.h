/*
  bench_profile.h: where the time of a call goes, gathered by the fault hook, which the device library asks before each
  allocation, CUDA call and launch.

  -profile 1: the time between any two of these is charged to the first of them: what the host waits for and where.
  -profile 2 waits for the stream at each: what the device does, the way to and from it included (about 10 us a call). A
  program includes this after its `dev` and gives Charge as HybServices.fault.
*/
#ifndef AIJHYBRIDGPU_BENCH_PROFILE_H
#define AIJHYBRIDGPU_BENCH_PROFILE_H

#define PROFILE_MAX 256
static PetscInt  profile, nprofile, current = -1;
static PetscBool profiling;
static double    since;
static struct {
  char   what[96];
  double seconds;
  long   calls;
} charged[PROFILE_MAX];

static int Charge(const char *what)
{
  static PetscBool inside;
  PetscLogDouble   now;
  PetscInt         k;

  if (!profiling || inside) return 0;
  inside = PETSC_TRUE;
  if (profile > 1) (void)dev.backend->sync(&dev);
  (void)PetscTime(&now);
  if (current >= 0) charged[current].seconds += (double)now - since;
  for (k = 0; k < nprofile && strncmp(charged[k].what, what, sizeof(charged[k].what) - 1); k++) {}
  if (k == nprofile && nprofile < PROFILE_MAX) {
    snprintf(charged[k].what, sizeof(charged[k].what), "%s", what);
    charged[k].seconds = 0;
    charged[k].calls   = 0;
    nprofile++;
  }
  current = k < PROFILE_MAX ? k : -1;
  if (current >= 0) charged[current].calls++;
  (void)PetscTime(&now);
  since  = (double)now;
  inside = PETSC_FALSE;
  return 0;
}

static void ProfileBegin(void)
{
  nprofile  = 0;
  current   = -1;
  profiling = PETSC_TRUE;
}

static int CompareCharge(const void *a, const void *b)
{
  const double x = charged[*(const int *)a].seconds, y = charged[*(const int *)b].seconds;

  return x > y ? -1 : x < y;
}

static void ProfileEnd(const char *name, const char *what)
{
  int    order[PROFILE_MAX];
  double sum   = 0;
  long   calls = 0;

  (void)Charge("end");
  profiling = PETSC_FALSE;
  for (int k = 0; k < nprofile; k++) {
    order[k] = k;
    sum += charged[k].seconds;
    calls += charged[k].calls;
  }
  qsort(order, (size_t)nprofile, sizeof(int), CompareCharge);
  printf("# profile %d of %s, %s: %.3f ms in %ld calls\n", (int)profile, name, what, sum * 1e3, calls - 1);
  for (int k = 0; k < nprofile && k < 40; k++) {
    printf("#   %8.1f us %5ld x %s\n", charged[order[k]].seconds * 1e6, charged[order[k]].calls, charged[order[k]].what);
  }
}

#endif

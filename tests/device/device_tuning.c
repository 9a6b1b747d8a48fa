/* What may be chosen of how kernels run (device/tuning.c): what is allowed is taken, all else is refused and changes
   nothing, and the options of the process are read */
#include "hybtest.h"
#include <string.h>

static char message[1024];

static PetscErrorCode Handler(MPI_Comm comm, int line, const char *func, const char *file, PetscErrorCode n, PetscErrorType type, const char *text, void *ctx)
{
  if (type == PETSC_ERROR_INITIAL) (void)PetscStrncpy(message, text, sizeof(message));
  return n;
}

/* refused with this error, the message holding the three texts */
static void Refused(const char *name, const char *value, PetscErrorCode expected, const char *allowed)
{
  const HybTuning before = *HybTuningGet();
  PetscErrorCode  ierr;

  message[0] = 0;
  PetscCallAbort(PETSC_COMM_SELF, PetscPushErrorHandler(Handler, NULL));
  ierr = HybTuningSet(name, value);
  PetscCallAbort(PETSC_COMM_SELF, PetscPopErrorHandler());
  HybTestCheck(ierr == expected, "error %d, expected %d, for %s %s", (int)ierr, (int)expected, name, value);
  HybTestCheck(strstr(message, name) && strstr(message, allowed), "\"%s\" does not name %s and %s", message, name, allowed);
  HybTestCheck(!memcmp(&before, HybTuningGet(), sizeof(before)), "something was changed");
}

static PetscErrorCode Body(void)
{
  const HybTuning *t = HybTuningGet(), usual = *HybTuningGet();

  PetscFunctionBegin;
  HybTestBegin("lanes that kernels by masks do not have");
  for (int k = 1; k < 40; k++) {
    char value[8];

    if (k == 4 || k == 8 || k == 16) continue;
    PetscCall(PetscSNPrintf(value, sizeof(value), "%d", k));
    Refused("masks_lanes", value, PETSC_ERR_ARG_OUTOFRANGE, "one of 0 4 8 16");
  }
  Refused("masks_lanes", "-4", PETSC_ERR_ARG_OUTOFRANGE, "not -4");
  HybTestBegin("numbers outside of what is allowed");
  Refused("segsum_items", "4", PETSC_ERR_ARG_OUTOFRANGE, "one of 3 5 7");
  Refused("segsum_threads", "0", PETSC_ERR_ARG_OUTOFRANGE, "one of 64 128 256");
  Refused("rowgroup_lanes", "3", PETSC_ERR_ARG_OUTOFRANGE, "32");
  Refused("diagonal_rows", "48", PETSC_ERR_ARG_OUTOFRANGE, "one of 0 32 64 128");
  Refused("hash_lists", "65", PETSC_ERR_ARG_OUTOFRANGE, "0 to 64");
  Refused("hash_lists", "-1", PETSC_ERR_ARG_OUTOFRANGE, "0 to 64");
  Refused("rowstream_run", "-2", PETSC_ERR_ARG_OUTOFRANGE, "-1 or more, not -2");
  HybTestBegin("words that are none of them");
  Refused("segsum_repair", "gpu", PETSC_ERR_ARG_OUTOFRANGE, "takes one of device cpu, not gpu");
  Refused("segsum_repair", "device cpu", PETSC_ERR_ARG_OUTOFRANGE, "one of device cpu");
  Refused("rowgroup_way", "bin", PETSC_ERR_ARG_OUTOFRANGE, "one of auto stream direct bins");
  Refused("diagonal_runs", "perhaps", PETSC_ERR_ARG_OUTOFRANGE, "true or false, not perhaps");
  Refused("rowgroup_near", "perhaps", PETSC_ERR_ARG_OUTOFRANGE, "one of auto no yes");
  Refused("hash_lists", "three", PETSC_ERR_ARG_OUTOFRANGE, "0 to 64, not three");
  Refused("hash_lists", "3x", PETSC_ERR_ARG_OUTOFRANGE, "0 to 64, not 3x");
  HybTestBegin("a name that there is not");
  Refused("nonesuch", "1", PETSC_ERR_ARG_UNKNOWN_TYPE, "There is no");
  HybTestBegin("what is allowed");
  HybTestCall(HybTuningSet("masks_lanes", "8"));
  HybTestCall(HybTuningSet("rowgroup_way", "bins"));
  HybTestCall(HybTuningSet("rowgroup_near", "no"));
  HybTestCall(HybTuningSet("diagonal_runs", "false"));
  HybTestCall(HybTuningSet("segsum_repair", "cpu"));
  HybTestCall(HybTuningSet("rowstream_run", "0"));
  HybTestCheck(t->masks_lanes == 8 && t->rowgroup_way == 2 && t->rowgroup_near == 0 && t->diagonal_runs == 0 && t->segsum_repair == 1 && t->rowstream_run == 0, "not what was set");
  HybTestCall(HybTuningSet("diagonal_runs", "TRUE"));
  HybTestCall(HybTuningSet("rowgroup_near", "auto"));
  HybTestCheck(t->diagonal_runs == 1 && t->rowgroup_near == -1, "not what was set");
  HybTestCall(HybTuningSet("masks_lanes", NULL));
  HybTestCall(HybTuningSet("rowgroup_way", NULL));
  HybTestCall(HybTuningSet("segsum_repair", NULL));
  HybTestCall(HybTuningSet("rowstream_run", NULL));
  HybTestCheck(!memcmp(t, &usual, sizeof(usual)), "not all are what they were");
  HybTestBegin("what is told of one");
  {
    char             value[64], allowed[64];
    const HybOption *o;
    int              n = 0;

    for (PetscInt k = 0; (o = HybTuningOption(k)); k++) {
      HybTestCall(HybOptionShow(o, NULL, value, sizeof(value)));
      HybTestCall(HybOptionAllowed(o, allowed, sizeof(allowed)));
      /* what is shown of a default is taken again */
      HybTestCall(HybTuningSet(o->name + strlen(HYB_OPTION_PREFIX), value));
      HybTestCheck(!memcmp(t, &usual, sizeof(usual)), "%s: %s is not its default", o->name, value);
      if (!strcmp(o->name, "-mat_aijhybridgpu_rowgroup_way")) n += !strcmp(value, "auto") && !strcmp(allowed, "one of auto stream direct bins");
      if (!strcmp(o->name, "-mat_aijhybridgpu_rowshape_words")) n += !strcmp(value, "true") && !strcmp(allowed, "true or false");
      if (!strcmp(o->name, "-mat_aijhybridgpu_comm_segment")) n += !strcmp(value, "128") && !strcmp(allowed, "1 to 65536") && !strncmp(o->text, "MiB of each card", 16);
    }
    HybTestCheck(n == 3, "%d of three are told as they are", n);
  }
  HybTestBegin("the options of the process");
  HybTestCall(PetscOptionsSetValue(NULL, "-mat_aijhybridgpu_masks_lanes", "16"));
  HybTestCheck(t->masks_lanes == usual.masks_lanes, "read before it was asked");
  HybTestCall(HybTuningRead(HybTestOption));
  HybTestCheck(t->masks_lanes == 16, "lanes are %" PetscInt_FMT, t->masks_lanes);
  HybTestCall(PetscOptionsSetValue(NULL, "-mat_aijhybridgpu_masks_lanes", "5"));
  HybTestCallFails(PETSC_ERR_ARG_OUTOFRANGE, HybTuningRead(HybTestOption));
  HybTestCall(PetscOptionsClearValue(NULL, "-mat_aijhybridgpu_masks_lanes"));
  HybTestCall(HybTuningRead(HybTestOption));
  HybTestCheck(!memcmp(t, &usual, sizeof(usual)), "not all are what they were");
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

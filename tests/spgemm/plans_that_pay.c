/*
  When a product that is repeated gets a plan for its numeric phases though nobody has said that there will be many.
*/
#include "spgemmtest.h"

/* When a plan is made where nobody has said that phases follow: when those without it have cost as much, by what the
   method says of sizes; by -mat_aijhybridgpu_tuning plan_after, after so many; and the bits stay */
static void Paid(void)
{
  if (!Is("hash") && !Is("rowmerge")) return;
  for (PetscInt kind = 0; kind < 4; kind++) {
    Product   p    = {.expected = NULL};
    PetscReal plan = 0, phase = 0;
    PetscInt  first = kind < 2 ? 0 : 2 * kind - 1; /* phases without a plan */

    HybTestBegin("%s: a plan that has to pay, kind %" PetscInt_FMT, method->name, kind);
    if (Is("hash"))
      HybTestMatRandom(300, 300, 4, kind == 1 ? 60 : 8, &p.A);
    else
      HybTestMatBanded(400, 400, 3, 3, &p.A);
    if (kind > 1) HybTestCall(HybTuningSet("plan_after", kind == 2 ? "3" : "5"));
    if (Open(&p, method->name) && HybTestCall(Multiply(&p.mm, &p.DA, &p.DB, &p.DC))) {
      HybTestCheck(p.mm.method->plancost != NULL, "the method does not say what a plan costs");
      (*p.mm.method->plancost)(&p.mm, &p.DA, &p.DB, &p.DC, &plan, &phase);
      HybTestCheck(phase > 0 && plan > phase, "a plan costs %g, a phase %g", (double)plan, (double)phase);
      if (kind < 2)
        while (first * phase < plan) first++;
      for (PetscInt k = 0; k < first + 2; k++) {
        Numeric(&p);
        HybTestCheck(p.mm.planned == (k >= first), "%s plan at phase %" PetscInt_FMT " of which %" PetscInt_FMT " are to go without", p.mm.planned ? "a" : "no", k, first);
      }
    }
    HybTestCall(HybTuningSet("plan_after", NULL));
    Close(&p);
  }
}

static PetscErrorCode Body(void)
{
  const HybExec *exec = HybTestExec();
  PetscInt       n    = 0;

  PetscFunctionBegin;
  PetscCall(HybTestArenas(exec, &keep, &out));
  for (const HybSpGEMMMethod *const *table = exec->backend->spgemm; table && *table && exec->backend->device; table++) {
    method = *table;
    n++;
    if (HybTestMine()) Paid();
  }
  if (!n) {
    HybTestBegin("plans that pay");
    HybTestSkip("the %s backend's methods have none", exec->backend->name);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

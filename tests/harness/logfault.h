/*
  logfault.h: events of PETSc's log that fail where they begin, as its own allocations may, or where they end: what
  comes between a process and those who wait for it.
*/
#ifndef LOGFAULT_H
#define LOGFAULT_H
#include "mattest.h"

static struct {
  PetscLogEvent event[2];
  const char   *name[2];
  int (*ask)(const char *name); /* does this one fail? */
  PetscBool ends;               /* where it ends */
} LogFault;

static inline PetscErrorCode LogFaultEvent(PetscLogEvent event)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < 2; k++) PetscCheck(!LogFault.name[k] || event != LogFault.event[k] || !(*LogFault.ask)(LogFault.name[k]), PETSC_COMM_SELF, PETSC_ERR_LIB, "%s is made to fail", LogFault.name[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode LogFaultBegin(PetscLogEvent event, int t, PetscObject a, PetscObject b, PetscObject c, PetscObject d)
{
  return LogFault.ends ? PETSC_SUCCESS : LogFaultEvent(event);
}

static inline PetscErrorCode LogFaultEnd(PetscLogEvent event, int t, PetscObject a, PetscObject b, PetscObject c, PetscObject d)
{
  return LogFault.ends ? LogFaultEvent(event) : PETSC_SUCCESS;
}

/* from now on; the second may be NULL */
static inline PetscErrorCode LogFaultWatch(const char *first, const char *second, int (*ask)(const char *))
{
  PetscFunctionBeginUser;
  LogFault.ask     = ask;
  LogFault.name[0] = first;
  LogFault.name[1] = second;
  for (int k = 0; k < 2; k++)
    if (LogFault.name[k]) PetscCall(PetscLogEventGetId(LogFault.name[k], &LogFault.event[k]));
#if PETSC_VERSION_GE(3, 20, 0)
  PetscCall(PetscLogLegacyCallbacksBegin(LogFaultBegin, LogFaultEnd, NULL, NULL));
#else
  PetscCall(PetscLogSet(LogFaultBegin, LogFaultEnd));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

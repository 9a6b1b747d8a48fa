/* patternhash: the same for the same pattern whatever the values and the backend; another one for any small change */
#include "hybtest.h"
#include <stdlib.h>
#include <string.h>

static PetscErrorCode Hash(const HybCSR *A, PetscBool host, uint64_t *hash)
{
  const HybExec *exec = HybTestExec();
  HybExec        onhost;
  HybArena       mine, work;
  HybCSR         there;
  HybCSR         none;
  const HybCSR  *list[3] = {&there, &none, &there};
  uint64_t       of[3];

  PetscFunctionBegin;
  if (host) {
    memset(&onhost, 0, sizeof(onhost));
    onhost.backend = &HybBackendHost;
    onhost.result  = HYB_MEM_HOST;
    exec           = &onhost;
  }
  PetscCall(HybTestArenas(exec, &mine, &work));
  PetscCall(HybTestUpload(&mine, A, &there));
  none     = there; /* without rows and entries */
  none.m   = 0;
  none.nnz = 0;
  PetscCall(exec->backend->csr->patternhash(exec, &work, 1, list, hash));
  PetscCall(exec->backend->csr->patternhash(exec, &work, 3, list, of));
  HybTestCheck(of[0] == *hash && of[2] == *hash && (of[1] != *hash || (!there.m && !there.nnz)), "three at once have other hashes");
  PetscCall(HybTestReset(&mine, &work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all patterns of few rows, columns and entries: no two have one hash */
static void Changed(void)
{
  enum {
    M   = 3,
    N   = 5,
    NNZ = 4
  };
  uint64_t *all  = (uint64_t *)RefAlloc(1 << M * N, sizeof(uint64_t));
  PetscInt  nall = 0;

  HybTestBegin("all patterns of %d x %d with %d entries", M, N, NNZ);
  for (unsigned bits = 0; bits < 1u << M * N; bits++) {
    HybExec             onhost;
    HybArena            work;
    HybCSR              A        = {M, N, 0, NULL, NULL, NULL};
    PetscInt            i[M + 1] = {0}, j[M * N];
    const HybCSR *const one      = &A;

    for (int k = 0; k < M * N; k++) {
      if (bits >> k & 1) j[A.nnz++] = k % N;
      i[k / N + 1] = (PetscInt)A.nnz;
    }
    if (A.nnz != NNZ) continue;
    A.i = i;
    A.j = j;
    memset(&onhost, 0, sizeof(onhost));
    onhost.backend = &HybBackendHost;
    onhost.result  = HYB_MEM_HOST;
    work           = HybArenaOn(&onhost);
    HybTestCall(onhost.backend->csr->patternhash(&onhost, &work, 1, &one, &all[nall]));
    for (PetscInt k = 0; k < nall; k++) HybTestCheck(all[k] != all[nall], "pattern %x has the hash of number %" PetscInt_FMT, bits, k);
    nall++;
  }
  free(all);
}

static PetscErrorCode Body(void)
{
  char     name[64];
  uint64_t all[64], hash, other;
  PetscInt nall = 0;
  RefMat   A, B;

  PetscFunctionBegin;
  for (PetscInt k = 0; HybTestZoo(k, PETSC_FALSE, name, &A); k++) {
    if (HybTestSlow() && k % 4) { /* a sum over many blocks takes the emulator long */
      RefMatDestroy(&A);
      continue;
    }
    HybTestBegin("hash of %s", name);
    HybTestCall(Hash(&A.csr, PETSC_FALSE, &hash));
    HybTestCall(Hash(&A.csr, PETSC_TRUE, &other));
    HybTestCheck(hash == other, "the backend's %llx, the host's %llx", (unsigned long long)hash, (unsigned long long)other);
    HybTestRandomize(&A);
    HybTestCall(Hash(&A.csr, PETSC_FALSE, &other));
    HybTestCheck(hash == other, "other values gave another hash");
    for (PetscInt l = 0; l < nall; l++) HybTestCheck(all[l] != hash, "the same as matrix %" PetscInt_FMT, l);
    if (nall < 64) all[nall++] = hash;
    RefMatDestroy(&A);
  }
  HybTestMatRandom(60, 300, 3, 9, &A);
  HybTestCall(Hash(&A.csr, PETSC_FALSE, &hash));
  HybTestBegin("small changes");
  for (PetscInt k = 0; k < HybTestSize(200, 8); k++) {
    const PetscInt q = HybTestRandomInt(0, (PetscInt)A.csr.nnz), r = HybTestRandomInt(1, 60);

    RefMatCopy(&A, &B);
    switch (k % 4) {
    case 0: /* one column */
      B.csr.j[q] = (B.csr.j[q] + 1) % 300;
      break;
    case 1: /* an entry moves to the row beside it */
      B.csr.i[r]++;
      break;
    case 2: /* two columns change places */
      B.csr.j[q]                   = A.csr.j[(q + 1) % A.csr.nnz];
      B.csr.j[(q + 1) % A.csr.nnz] = A.csr.j[q];
      if (A.csr.j[q] == B.csr.j[q]) B.csr.j[q]++;
      break;
    default: /* a wider matrix */
      B.csr.n += 1 + k;
    }
    HybTestCall(Hash(&B.csr, PETSC_FALSE, &other));
    HybTestCheck(other != hash, "change %" PetscInt_FMT " was not seen", k);
    RefMatDestroy(&B);
  }
  RefMatDestroy(&A);
  Changed();
  PetscFunctionReturn(PETSC_SUCCESS);
}

HYB_TEST_MAIN(Body)

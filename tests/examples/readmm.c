/*
  readmm.c: the Matrix Market reader of examples/, alone.

    readmm FILE                prints what was read: sizes and each entry; exit 1 with the reader's message if it
                               refuses
    readmm -mutate N FILE... feeds N mutations of these files to the reader: it may refuse them, it may not crash, leak,
    or hand out an
                               entry that lies outside the matrix

  With -DMM_LIBFUZZER it is a target for a coverage-guided fuzzer instead.
*/
#include "../../examples/mmreader.h"
#include <stdlib.h>
#include <string.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

/* returns 0 if the reader refused, 1 if it took it; aborts if what it hands out is not what it promises */
static int ReadBytes(const char *bytes, size_t length)
{
  MMEntries e;
  int       taken;
  FILE     *f = fmemopen((void *)bytes, length ? length : 1, "r");

  if (!f) return 0;
  if (!length) getc(f);
  taken = MMEntriesRead(f, "mutation", &e) == PETSC_SUCCESS;
  fclose(f);
  if (taken)
    for (PetscCount k = 0; k < e.nz; k++)
      if (e.i[k] < 0 || e.i[k] >= e.m || e.j[k] < 0 || e.j[k] >= e.n) abort();
  if (MMEntriesDestroy(&e)) abort();
  return taken;
}

static PetscErrorCode Quiet(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  return n;
}

#if defined(MM_LIBFUZZER)
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  if (PetscInitializeNoArguments() || PetscPushErrorHandler(Quiet, NULL)) abort();
  return 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length)
{
  (void)ReadBytes((const char *)bytes, length);
  return 0;
}
#else

static PetscErrorCode Message(MPI_Comm comm, int line, const char *fun, const char *file, PetscErrorCode n, PetscErrorType p, const char *mess, void *ctx)
{
  if (p == PETSC_ERROR_INITIAL) fprintf(stderr, "%s\n", mess);
  return n;
}

static unsigned long long state;
static unsigned           Random(unsigned below)
{
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (unsigned)((state >> 11) % below);
}

static PetscErrorCode Mutate(long n, int nfiles, char **files)
{
  static const char *const bits[] = {"-1", "0", "1", "2147483647", "2147483648", "9223372036854775807", "99999999999999999999", "1e309", "nan", "inf", "0x10", "\n", " ", "%", "%%MatrixMarket", "array", "complex", "hermitian", "skew-symmetric", "pattern", "1 1 1\n"};
  long                     taken  = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscPushErrorHandler(Quiet, NULL));
  state = 88172645463325252ull;
  for (long k = 0; k < n; k++) {
    static char bytes[1 << 16];
    size_t      length;
    FILE       *f = fopen(files[k % nfiles], "rb");

    PetscCheck(f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "Cannot open %s", files[k % nfiles]);
    length = fread(bytes, 1, sizeof bytes / 2, f);
    fclose(f);
    for (unsigned changes = Random(4); changes > 0; changes--) {
      size_t      at   = Random((unsigned)length + 1), cut;
      const char *bit  = bits[Random(PETSC_STATIC_ARRAY_LENGTH(bits))];
      size_t      nbit = strlen(bit);

      switch (Random(4)) {
      case 0: /* another byte */
        if (at < length) bytes[at] = (char)Random(256);
        break;
      case 1: /* cut off */
        length = at;
        break;
      case 2: /* take something out */
        cut = Random(8);
        cut = PetscMin(length - at, cut);
        memmove(bytes + at, bytes + at + cut, length - at - cut);
        length -= cut;
        break;
      default: /* put something in */
        if (length + nbit > sizeof bytes) break;
        memmove(bytes + at + nbit, bytes + at, length - at);
        memcpy(bytes + at, bit, nbit);
        length += nbit;
      }
    }
    taken += ReadBytes(bytes, length);
  }
  PetscCall(PetscPopErrorHandler());
  printf("%ld mutations, %ld of them read\n", n, taken);
  PetscCheck(taken > 0 && taken < n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Some mutations are valid files and some are not");
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscErrorCode ierr = PetscInitializeNoArguments();

  if (ierr) return 2;
  if (argc > 3 && !strcmp(argv[1], "-mutate"))
    ierr = Mutate(atol(argv[2]), argc - 3, argv + 3);
  else {
    MMEntries e;
    FILE     *f = argc == 2 ? fopen(argv[1], "r") : NULL;

    if (!f) return 2;
    ierr = PetscPushErrorHandler(Message, NULL);
    if (!ierr) ierr = MMEntriesRead(f, "FILE", &e);
    fclose(f);
    if (!ierr) {
      printf("%lld x %lld, %lld stored\n", (long long)e.m, (long long)e.n, (long long)e.stored);
      for (PetscCount k = 0; k < e.nz; k++) {
        printf("%lld %lld %g", (long long)e.i[k], (long long)e.j[k], (double)PetscRealPart(e.a[k]));
        if (PetscImaginaryPart(e.a[k]) != 0) printf(" %g", (double)PetscImaginaryPart(e.a[k]));
        printf("\n");
      }
    }
    if (MMEntriesDestroy(&e)) ierr = (PetscErrorCode)1;
  }
  if (PetscFinalize()) return 2;
  return ierr ? 1 : 0;
}
#endif

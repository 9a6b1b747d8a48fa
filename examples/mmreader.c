/*
  mmreader.c: see mmreader.h for what it takes and what it promises.
*/
#include "mmreader.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS 0
#endif

/* the format allows 1024 */
#define MM_LINE 4096
/* PETSC_MAX_INT was renamed in 3.23 */
#define MM_MAX_INT ((PetscInt)(sizeof(PetscInt) == sizeof(long long) ? LLONG_MAX : INT_MAX))

typedef struct {
  FILE       *f;
  const char *name;
  long long   line;
  char        text[MM_LINE];
} MMSource;

#define MMCheck(src, cond, ...)                                                                                    \
  do {                                                                                                             \
    if (PetscUnlikely(!(cond))) {                                                                                  \
      char mm_what[256];                                                                                           \
      (void)snprintf(mm_what, sizeof mm_what, __VA_ARGS__);                                                        \
      SETERRQ(PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s, line %lld: %s", (src)->name, (src)->line, mm_what); \
    }                                                                                                              \
  } while (0)

/* what the file says, fit for a message; only its first word where a word is what is wrong */
static const char *Printable_Private(const char *text, PetscBool word, char out[48])
{
  size_t k;

  while (isspace((unsigned char)*text)) text++;
  for (k = 0; k < 40 && text[k] && text[k] != '\n' && text[k] != '\r' && !(word && isspace((unsigned char)text[k])); k++) out[k] = isprint((unsigned char)text[k]) ? text[k] : '?';
  if (k == 40) {
    memcpy(out + k, "...", 3);
    k += 3;
  }
  out[k] = 0;
  return out;
}

static const char *Printable(const char *text, char out[48])
{
  return Printable_Private(text, PETSC_FALSE, out);
}

static const char *Word(const char *text, char out[48])
{
  return Printable_Private(text, PETSC_TRUE, out);
}

/* the next line into src->text; *more false at the end of the file. Comments may have any length, other lines may
   not. */
static PetscErrorCode NextLine(MMSource *src, PetscBool comments, PetscBool *more)
{
  PetscFunctionBegin;
  for (;;) {
    size_t len;
    char  *p;

    *more = PETSC_FALSE;
    if (!fgets(src->text, MM_LINE, src->f)) {
      PetscCheck(!ferror(src->f), PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s, after line %lld: %s", src->name, src->line, strerror(errno));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    src->line++;
    len = strlen(src->text);
    if (len == MM_LINE - 1 && src->text[len - 1] != '\n') {
      int c;

      MMCheck(src, src->text[0] == '%', "longer than %d characters", MM_LINE - 2);
      while ((c = getc(src->f)) != EOF && c != '\n') {}
    }
    MMCheck(src, feof(src->f) || len == MM_LINE - 1 || (len && src->text[len - 1] == '\n'), "a null byte: this is not a text file");
    *more = PETSC_TRUE;
    if (!comments) PetscFunctionReturn(PETSC_SUCCESS);
    for (p = src->text; isspace((unsigned char)*p); p++) {}
    if (*p == '%' || !*p) continue;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
}

static PetscErrorCode ReadInteger(MMSource *src, char **at, const char *what, long long low, long long high, PetscInt *value)
{
  char     *end, shown[48];
  long long v;

  PetscFunctionBegin;
  errno = 0;
  v     = strtoll(*at, &end, 10);
  MMCheck(src, end != *at && (!*end || isspace((unsigned char)*end)), "%s: an integer is expected, not \"%s\"", what, Word(*at, shown));
  MMCheck(src, !errno && v <= (long long)MM_MAX_INT, "%s: %s does not fit PETSc's %d-bit integers%s", what, Word(*at, shown), (int)(8 * sizeof(PetscInt)), sizeof(PetscInt) < 8 ? " (configure PETSc with --with-64-bit-indices)" : "");
  MMCheck(src, v >= low && v <= high, "%s: %lld lies outside %lld to %lld", what, v, low, high);
  *at    = end;
  *value = (PetscInt)v;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReadReal(MMSource *src, char **at, const char *what, PetscReal *value)
{
  char  *end, shown[48];
  double v;

  PetscFunctionBegin;
  v = strtod(*at, &end);
  MMCheck(src, end != *at && (!*end || isspace((unsigned char)*end)), "%s: a number is expected, not \"%s\"", what, Word(*at, shown));
  *value = (PetscReal)v;
  MMCheck(src, isfinite(v) && isfinite((double)*value), "%s: %s is not a finite number", what, Word(*at, shown));
  *at = end;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AtEnd(MMSource *src, const char *at, const char *expected)
{
  char shown[48];

  PetscFunctionBegin;
  while (isspace((unsigned char)*at)) at++;
  MMCheck(src, !*at, "\"%s\" is more than expected: %s", Printable(at, shown), expected);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Append(MMEntries *e, PetscInt i, PetscInt j, PetscScalar a)
{
  PetscFunctionBegin;
  if (e->nz == e->capacity) {
    PetscCount capacity = PetscMax(1024, e->capacity + e->capacity / 2);

    PetscCheck((size_t)capacity <= SIZE_MAX / 4 / sizeof(PetscScalar), PETSC_COMM_SELF, PETSC_ERR_MEM, "More than %" PetscInt64_FMT " entries", (PetscInt64)e->nz);
    PetscCall(PetscRealloc((size_t)capacity * sizeof(PetscInt), &e->i));
    PetscCall(PetscRealloc((size_t)capacity * sizeof(PetscInt), &e->j));
    PetscCall(PetscRealloc((size_t)capacity * sizeof(PetscScalar), &e->a));
    e->capacity = capacity;
  }
  e->i[e->nz] = i;
  e->j[e->nz] = j;
  e->a[e->nz] = a;
  e->nz++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MMEntriesDestroy(MMEntries *e)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(e->i));
  PetscCall(PetscFree(e->j));
  PetscCall(PetscFree(e->a));
  e->nz = e->capacity = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int Lookup(const char *word, const char *const names[])
{
  for (int k = 0; names[k]; k++)
    if (!strcmp(word, names[k])) return k;
  return -1;
}

static const char *const MMSymmetries[] = {"general", "symmetric", "skew-symmetric", "hermitian", NULL};
typedef enum {
  FIELD_REAL,
  FIELD_INTEGER,
  FIELD_COMPLEX,
  FIELD_PATTERN
} MMField;

/* the first line: format, field, symmetry */
static PetscErrorCode ReadHeader(MMSource *src, MMEntries *e, MMField *field)
{
  static const char *const formats[] = {"coordinate", "array", NULL}, *const fields[] = {"real", "integer", "complex", "pattern", NULL};
  PetscBool more;
  char      word[5][32], shown[48];
  int       format, which, symmetry, nwords;

  PetscFunctionBegin;
  PetscCall(NextLine(src, PETSC_FALSE, &more));
  PetscCheck(more, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s, line 1: the file is empty", src->name);
  nwords = sscanf(src->text, "%31s %31s %31s %31s %31s", word[0], word[1], word[2], word[3], word[4]);
  for (int k = 0; k < nwords; k++)
    for (char *c = word[k]; *c; c++) *c = (char)tolower((unsigned char)*c);
  MMCheck(src, nwords > 0 && !strcmp(word[0], "%%matrixmarket"), "\"%s\" is not a Matrix Market file's first line (%%%%MatrixMarket matrix coordinate real general)", Printable(src->text, shown));
  MMCheck(src, nwords == 5, "%d words, but %%%%MatrixMarket is followed by four: matrix, format, field, symmetry", nwords);
  MMCheck(src, !strcmp(word[1], "matrix"), "the object is a \"%s\", not a matrix", Printable(word[1], shown));
  MMCheck(src, (format = Lookup(word[2], formats)) >= 0, "the format \"%s\" is neither coordinate nor array", Printable(word[2], shown));
  MMCheck(src, (which = Lookup(word[3], fields)) >= 0, "the field \"%s\" is none of real, integer, complex, pattern", Printable(word[3], shown));
  MMCheck(src, (symmetry = Lookup(word[4], MMSymmetries)) >= 0, "the symmetry \"%s\" is none of general, symmetric, skew-symmetric, hermitian", Printable(word[4], shown));
  MMCheck(src, PetscDefined(USE_COMPLEX) || which != FIELD_COMPLEX, "complex values, but this PETSc was built with real scalars");
  MMCheck(src, format == 0 || which != FIELD_PATTERN, "an array file has values: pattern goes with coordinate");
  *field      = (MMField)which;
  e->array    = format == 1 ? PETSC_TRUE : PETSC_FALSE;
  e->symmetry = (MMSymmetry)symmetry;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* the line of sizes, and how many entries follow */
static PetscErrorCode ReadSizes(MMSource *src, MMEntries *e, PetscCount *expected)
{
  PetscBool more;
  PetscInt  declared = 0;
  char     *at;

  PetscFunctionBegin;
  PetscCall(NextLine(src, PETSC_TRUE, &more));
  MMCheck(src, more, "the file ends before the line of sizes");
  at = src->text;
  PetscCall(ReadInteger(src, &at, "rows", 0, MM_MAX_INT, &e->m));
  PetscCall(ReadInteger(src, &at, "columns", 0, MM_MAX_INT, &e->n));
  if (!e->array) PetscCall(ReadInteger(src, &at, "entries", 0, MM_MAX_INT, &declared));
  PetscCall(AtEnd(src, at, e->array ? "the sizes of an array are two numbers, rows and columns" : "the sizes are three numbers: rows, columns, entries"));
  MMCheck(src, e->symmetry == MM_GENERAL || e->m == e->n, "%" PetscInt_FMT " rows and %" PetscInt_FMT " columns, but a %s matrix is square", e->m, e->n, MMSymmetries[e->symmetry]);
  if (e->array) {
    MMCheck(src, !e->n || e->m <= MM_MAX_INT / e->n, "%" PetscInt_FMT " x %" PetscInt_FMT " values of a dense matrix do not fit PETSc's %d-bit integers", e->m, e->n, (int)(8 * sizeof(PetscInt)));
    *expected = (PetscCount)e->m * (PetscCount)e->n;
    if (e->symmetry == MM_SKEW_SYMMETRIC)
      *expected = (*expected - (PetscCount)e->m) / 2;
    else if (e->symmetry != MM_GENERAL)
      *expected = (*expected - (PetscCount)e->m) / 2 + (PetscCount)e->m;
  } else {
    MMCheck(src, !declared || (e->m && e->n), "%" PetscInt_FMT " entries in a matrix of %" PetscInt_FMT " rows and %" PetscInt_FMT " columns", declared, e->m, e->n);
    *expected = declared;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MMEntriesRead(FILE *f, const char name[], MMEntries *e)
{
  MMSource   source, *src = &source;
  MMField    field = FIELD_REAL;
  PetscBool  more;
  char       shown[48], *at;
  PetscInt   row = 0, col = 0;
  PetscCount lower = 0, upper = 0, expected = 0;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(e, sizeof *e));
  src->f    = f;
  src->name = name;
  src->line = 0;
  PetscCall(ReadHeader(src, e, &field));
  PetscCall(ReadSizes(src, e, &expected));
  if (e->array && e->symmetry == MM_SKEW_SYMMETRIC) row = 1;

  for (e->stored = 0; e->stored < expected; e->stored++) {
    PetscInt    i, j;
    PetscReal   re = 1, im = 0;
    PetscScalar a;

    PetscCall(NextLine(src, PETSC_TRUE, &more));
    MMCheck(src, more, "the file ends after %" PetscInt64_FMT " of %" PetscInt64_FMT " entries", (PetscInt64)e->stored, (PetscInt64)expected);
    at = src->text;
    if (e->array) {
      i = row;
      j = col;
      if (++row == e->m) {
        col++;
        row = e->symmetry == MM_GENERAL ? 0 : e->symmetry == MM_SKEW_SYMMETRIC ? col + 1
                                                                               : col;
      }
    } else {
      PetscCall(ReadInteger(src, &at, "row", 1, (long long)e->m, &i));
      PetscCall(ReadInteger(src, &at, "column", 1, (long long)e->n, &j));
      i--;
      j--;
    }
    if (field != FIELD_PATTERN) PetscCall(ReadReal(src, &at, "value", &re));
    if (field == FIELD_COMPLEX) PetscCall(ReadReal(src, &at, "imaginary part", &im));
    PetscCall(AtEnd(src, at, "a line has one entry"));
#if defined(PETSC_USE_COMPLEX)
    a = PetscCMPLX(re, im);
#else
    a = re;
    (void)im;
#endif
    if (e->symmetry != MM_GENERAL) {
      /* the format stores the lower triangle; files that hold the upper one instead exist, and mean the same. Both
         together would be summed. */
      if (i > j) lower++;
      if (i < j) upper++;
      MMCheck(src, !lower || !upper, "the entry (%" PetscInt_FMT ", %" PetscInt_FMT ") lies in the other triangle than the entries before it: a %s file holds one triangle", i + 1, j + 1, MMSymmetries[e->symmetry]);
      MMCheck(src, i != j || e->symmetry != MM_SKEW_SYMMETRIC || a == (PetscScalar)0, "the diagonal entry %" PetscInt_FMT " of a skew-symmetric matrix is %g, not zero", i + 1, (double)re);
      MMCheck(src, i != j || e->symmetry != MM_HERMITIAN || im == 0, "the diagonal entry %" PetscInt_FMT " of a Hermitian matrix has the imaginary part %g", i + 1, (double)im);
    }
    PetscCall(Append(e, i, j, a));
    if (e->symmetry != MM_GENERAL && i != j) PetscCall(Append(e, j, i, e->symmetry == MM_SYMMETRIC ? a : e->symmetry == MM_SKEW_SYMMETRIC ? -a
                                                                                                                                          : PetscConj(a)));
  }
  PetscCall(NextLine(src, PETSC_TRUE, &more));
  MMCheck(src, !more, "\"%s\" follows the last of %" PetscInt64_FMT " entries", Printable(src->text, shown), (PetscInt64)expected);
  PetscFunctionReturn(PETSC_SUCCESS);
}

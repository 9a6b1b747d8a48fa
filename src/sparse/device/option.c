/*
  option.c: a value of an option, from text and into text, and what is allowed of it. Nothing here reads the options
  database.
*/
#include "aijhybridgpu/private/hyb.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void HybOptionDefault(const HybOption *o, void *at)
{
  void *member = (char *)at + o->at;

  switch (o->kind) {
  case HYB_OPTION_REAL:
    *(PetscReal *)member = (PetscReal)o->value;
    break;
  case HYB_OPTION_METHOD:
    strcpy((char *)member, "auto");
    break;
  case HYB_OPTION_PATH:
    *(char *)member = 0;
    break;
  default:
    *(PetscInt *)member = (PetscInt)o->value;
  }
}

/* numbers that are allowed one by one */
static PetscBool OptionIsList(const HybOption *o)
{
  return (PetscBool)(o->kind == HYB_OPTION_NUMBER && o->words && isdigit((unsigned char)o->words[0]));
}

/* which of the words this is, -1: none of them; whatever the case */
static PetscInt OptionWord(const char *words, const char *word)
{
  const size_t length = strlen(word);
  PetscInt     n      = 0;

  for (const char *p = words; length; n++) {
    const size_t here = strcspn(p, " ");

    if (here == length && !strncasecmp(p, word, length)) return n;
    if (!p[here]) break;
    p += here + 1;
  }
  return -1;
}

/* what PETSc's own options take for no and yes, -1: neither */
static PetscInt OptionBool(const char *value)
{
  const PetscInt k = OptionWord("no yes false true 0 1 off on", value);

  return value[0] ? (k < 0 ? -1 : k % 2) : 1;
}

PetscErrorCode HybOptionAllowed(const HybOption *o, char text[], size_t length)
{
  const char *const *names;
  const PetscBool    own = (PetscBool)(!o->shown && (o->value < o->least || (o->most > 0 && o->value > o->most)));

  PetscFunctionBegin;
  text[0] = 0;
  switch (o->kind) {
  case HYB_OPTION_METHOD:
    PetscCall((*o->names)(&names));
    PetscCall(PetscStrncpy(text, "one of auto", length));
    for (PetscInt n = 0; names[n]; n++) {
      PetscCall(PetscStrlcat(text, ", ", length));
      PetscCall(PetscStrlcat(text, names[n], length));
    }
    break;
  case HYB_OPTION_FLAG:
    PetscCall(PetscStrncpy(text, "true or false", length));
    break;
  case HYB_OPTION_PATH:
    PetscCall(PetscStrncpy(text, o->words, length));
    break;
  case HYB_OPTION_WORD:
    PetscCall(PetscSNPrintf(text, length, "one of %s", o->words));
    break;
  default:
    if (OptionIsList(o))
      PetscCall(PetscSNPrintf(text, length, "one of %s", o->words));
    else {
      char end[32] = " or more";

      if (o->most > 0) PetscCall(PetscSNPrintf(end, sizeof(end), " to %.8g", o->most));
      PetscCall(PetscSNPrintf(text, length, "%s%s", o->words ? o->words : "", o->words ? ", " : ""));
      if (own) PetscCall(PetscSNPrintf(text + strlen(text), length - strlen(text), "%.8g, or ", o->value));
      PetscCall(PetscSNPrintf(text + strlen(text), length - strlen(text), "%.8g%s", o->least, end));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* a number, checked; false: it is none, or not allowed */
static PetscErrorCode OptionNumber(const HybOption *o, const char *value, void *member, PetscBool *fits)
{
  const PetscBool whole = (PetscBool)(o->kind == HYB_OPTION_NUMBER);
  double          x     = 0;
  char           *end, digits[32];
  PetscInt        n = 0;

  PetscFunctionBegin;
  *fits = PETSC_FALSE;
  if (whole)
    (void)strtoll(value, &end, 10);
  else
    (void)strtod(value, &end);
  if (end == value || *end) PetscFunctionReturn(PETSC_SUCCESS);
  if (whole) {
    PetscCall(PetscOptionsStringToInt(value, &n)); /* PETSc's error if it is no PetscInt */
    x = (double)n;
  } else {
    PetscReal real;

    PetscCall(PetscOptionsStringToReal(value, &real));
    x = (double)real;
  }
  if (OptionIsList(o)) {
    PetscCall(PetscSNPrintf(digits, sizeof(digits), "%" PetscInt_FMT, n));
    *fits = (PetscBool)(OptionWord(o->words, digits) >= 0);
  } else
    *fits = (PetscBool)(x == o->value || (x >= o->least && (o->most <= 0 || x <= o->most)));
  if (*fits && whole) *(PetscInt *)member = n;
  if (*fits && !whole) *(PetscReal *)member = (PetscReal)x;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybOptionTake(const HybOption *o, void *at, const char *value)
{
  void              *member = (char *)at + o->at;
  const char *const *names;
  char               allowed[512];
  PetscBool          fits = PETSC_TRUE;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(HybOptionAllowed(o, allowed, sizeof(allowed)));
  switch (o->kind) {
  case HYB_OPTION_NUMBER:
  case HYB_OPTION_REAL:
    if (value[0]) PetscCall(OptionNumber(o, value, member, &fits));
    break;
  case HYB_OPTION_WORD:
    n = OptionWord(o->words, value);
    /* "yes" of a list that has it is said in all of PETSc's ways */
    if (n < 0 && OptionWord(o->words, "yes") >= 0 && OptionBool(value) >= 0) n = OptionWord(o->words, OptionBool(value) ? "yes" : "no");
    fits = (PetscBool)(n >= 0);
    if (fits) *(PetscInt *)member = (PetscInt)o->least + n;
    break;
  case HYB_OPTION_METHOD:
    PetscCall((*o->names)(&names));
    PetscCall(PetscStrcmp(value, "auto", &fits));
    for (n = 0; names[n] && !fits; n++) PetscCall(PetscStrcmp(value, names[n], &fits));
    PetscCheck(fits, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "Unknown method \"%s\" for %s: it is %s", value, o->name, allowed);
    PetscCall(PetscStrncpy((char *)member, value, HYB_NAME_LENGTH));
    break;
  case HYB_OPTION_PATH:
    PetscCall(PetscStrncpy((char *)member, value, PETSC_MAX_PATH_LEN));
    break;
  default:
    n    = OptionBool(value);
    fits = (PetscBool)(n >= 0);
    if (fits) *(PetscInt *)member = n;
  }
  PetscCheck(fits, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%s%s takes %s, not %s: %s", o->tuning ? HYB_OPTION_PREFIX "tuning " : "", o->name + (o->tuning ? strlen(HYB_OPTION_PREFIX) : 0), allowed, value, o->text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybOptionShow(const HybOption *o, const void *at, char text[], size_t length)
{
  const void *member = at ? (const char *)at + o->at : NULL;
  const char *word   = o->words;

  PetscFunctionBegin;
  switch (o->kind) {
  case HYB_OPTION_NUMBER:
    PetscCall(PetscSNPrintf(text, length, "%" PetscInt_FMT, member ? *(const PetscInt *)member : (PetscInt)o->value));
    break;
  case HYB_OPTION_REAL:
    PetscCall(PetscSNPrintf(text, length, "%.8g", member ? (double)*(const PetscReal *)member : o->value));
    break;
  case HYB_OPTION_WORD:
    for (PetscInt n = (member ? *(const PetscInt *)member : (PetscInt)o->value) - (PetscInt)o->least; n > 0; n--) word += strcspn(word, " ") + 1;
    PetscCall(PetscSNPrintf(text, length, "%.*s", (int)strcspn(word, " "), word));
    break;
  case HYB_OPTION_FLAG:
    PetscCall(PetscStrncpy(text, (member ? *(const PetscInt *)member : o->value != 0) ? "true" : "false", length));
    break;
  default:
    PetscCall(PetscStrncpy(text, member ? (const char *)member : o->kind == HYB_OPTION_METHOD ? "auto"
                                                                                              : "",
                           length));
  }
  if (!member && o->shown) PetscCall(PetscStrncpy(text, o->shown, length));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int HybOptionDistance(const char *a, const char *b)
{
  int row[HYB_OPTION_LENGTH + 1], n = (int)strlen(b);

  if (strlen(a) > HYB_OPTION_LENGTH || n > HYB_OPTION_LENGTH) return HYB_OPTION_LENGTH;
  for (int k = 0; k <= n; k++) row[k] = k;
  for (int i = 1; a[i - 1]; i++) {
    int corner = row[0];

    row[0] = i;
    for (int k = 1; k <= n; k++) {
      int same = corner + (strncasecmp(a + i - 1, b + k - 1, 1) ? 1 : 0), least = row[k - 1] < row[k] ? row[k - 1] : row[k];

      corner = row[k];
      row[k] = same < least + 1 ? same : least + 1;
    }
  }
  return row[n];
}

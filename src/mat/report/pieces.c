/*
  What the page's charts and tables are made of: text, numbers, names.
*/
#include "html.h"

void HybPageText(FILE *f, const char *text, size_t length)
{
  for (const unsigned char *c = (const unsigned char *)text; c < (const unsigned char *)text + length; c++) {
    const int n = HybUTF8(c);

    if (*c == '<')
      fputs("&lt;", f);
    else if (*c == '>')
      fputs("&gt;", f);
    else if (*c == '&')
      fputs("&amp;", f);
    else if (*c == '"')
      fputs("&quot;", f);
    else if (!n)
      fputs("&#65533;", f);
    else {
      fwrite(c, 1, (size_t)n, f);
      c += n - 1;
    }
  }
}

/* 1 234 567, the gaps narrow and unbroken */
static void Count(FILE *f, PetscInt64 n)
{
  char text[32];
  int  length = snprintf(text, sizeof(text), "%lld", (long long)n);

  for (int k = 0; k < length; k++) {
    if (k && (length - k) % 3 == 0 && text[k - 1] != '-') fputs("&#8239;", f);
    fputc(text[k], f);
  }
}

static void Bytes(FILE *f, double bytes)
{
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int                      k       = 0;

  for (; bytes >= 999.5 && k < 5; k++) bytes /= 1000;
  fprintf(f, k ? "%.3g&nbsp;%s" : "%.0f&nbsp;%s", bytes, units[k]);
}

static void Seconds(FILE *f, double s)
{
  if (s >= 99.95)
    fprintf(f, "%.0f&nbsp;s", s);
  else if (s >= 0.9995)
    fprintf(f, "%.3g&nbsp;s", s);
  else if (s >= 0.9995e-3)
    fprintf(f, "%.3g&nbsp;ms", 1e3 * s);
  else
    fprintf(f, "%.3g&nbsp;µs", 1e6 * s);
}

static void Kind(FILE *f, const HybRecordKey *key, PetscBool size)
{
  char label[160];

  if (size)
    HybKindLabel(key, label, sizeof(label));
  else
    HybKindName(key, label, sizeof(label));
  HybPage(f, "<td title=\"%t\">", label);
  for (const char *at = label; *at;) { /* lines break after underscores */
    const size_t n = strcspn(at, "_") + strspn(at + strcspn(at, "_"), "_");

    HybPageText(f, at, n);
    at += n;
    if (*at && at[-1] == '_') fputs("<wbr>", f);
  }
  fputs("</td>", f);
}

/*
  As fprintf(), of these conversions:

    %s, %d, %.2f   as there
    %t             const char *, as a page's text
    %n             a count of 64 bits
    %b, %u         double: bytes, and seconds, with their units
    %k, %K         const HybRecordKey *: a table's cell with the name of a kind of matrices; with its size

  Of %?b, %?u and %?.2f nothing is written where there is nothing, or less.
*/
void HybPage(FILE *f, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  for (const char *at = format; *at; at++) {
    const char *text;
    double      value;
    PetscBool   some;
    int         digits = 0;

    if (*at != '%') {
      fputc(*at, f);
      continue;
    }
    some = (PetscBool)(*++at == '?');
    if (some) at++;
    if (*at == '.') {
      digits = at[1] - '0';
      at += 2;
    }
    switch (*at) {
    case 's':
      fputs(va_arg(args, const char *), f);
      break;
    case 'd':
      fprintf(f, "%d", va_arg(args, int));
      break;
    case 't':
      text = va_arg(args, const char *);
      HybPageText(f, text, strlen(text));
      break;
    case 'n':
      Count(f, va_arg(args, PetscInt64));
      break;
    case 'k':
    case 'K':
      Kind(f, va_arg(args, const HybRecordKey *), (PetscBool)(*at == 'K'));
      break;
    case '%':
      fputc('%', f);
      break;
    default:
      value = va_arg(args, double);
      if (some && !(value > 0)) break;
      if (*at == 'b')
        Bytes(f, value);
      else if (*at == 'u')
        Seconds(f, value);
      else
        fprintf(f, "%.*f", digits, value);
    }
  }
  va_end(args);
}

/* numbers of values, the largest first, equal ones as they stand there */
void HybPageOrder(int n, const double value[], int order[])
{
  for (int k = 0; k < n; k++) {
    int at = k;

    for (; at > 0 && value[order[at - 1]] < value[k]; at--) order[at] = order[at - 1];
    order[at] = k;
  }
}

/*
  What the page's charts and tables are made of: text, numbers, names.
*/
#include "html.h"

void HybPageTextOf(FILE *f, const char *text, size_t length)
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

void HybPageText(FILE *f, const char *text)
{
  HybPageTextOf(f, text, strlen(text));
}

/* 1 234 567, the gaps narrow and unbroken */
void HybPageCount(FILE *f, PetscInt64 n)
{
  char text[32];
  int  length = snprintf(text, sizeof(text), "%lld", (long long)n);

  for (int k = 0; k < length; k++) {
    if (k && (length - k) % 3 == 0 && text[k - 1] != '-') fputs("&#8239;", f);
    fputc(text[k], f);
  }
}

void HybPageBytes(FILE *f, double bytes)
{
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int                      k       = 0;

  for (; bytes >= 999.5 && k < 5; k++) bytes /= 1000;
  fprintf(f, k ? "%.3g&nbsp;%s" : "%.0f&nbsp;%s", bytes, units[k]);
}

void HybPageSeconds(FILE *f, double s)
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

void HybPageKind(FILE *f, const HybRecordKey *key, PetscBool size)
{
  char label[160];

  if (size)
    HybKindLabel(key, label, sizeof(label));
  else
    HybKindName(key, label, sizeof(label));
  fputs("<td title=\"", f);
  HybPageText(f, label);
  fputs("\">", f);
  for (const char *at = label; *at;) { /* lines break after underscores */
    const size_t n = strcspn(at, "_") + strspn(at + strcspn(at, "_"), "_");

    HybPageTextOf(f, at, n);
    at += n;
    if (*at && at[-1] == '_') fputs("<wbr>", f);
  }
  fputs("</td>", f);
}

/*
  The report's page: one file, static, for every screen. Charts are rows of a grid, each with an SVG whose bars are per
  cents of its width, so that text keeps its size wherever the page is read. The data, as json.c writes them, are in a
  script element of type application/json at the end.
*/
#include "report.h"
#include <ctype.h>

static const char style[] =
  ":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#5c6570;--line:#d9dde2;--soft:#f4f6f8;--a:#2563a8;--b:#c2701c;--c:#8a929c;--note:#fff6e0;--noteline:#d9a520}"
  "@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e4e7eb;--dim:#98a2ae;--line:#2d343c;--soft:#1b2026;--a:#5b9be0;--b:#e09a4a;--c:#7d8792;--note:#2a2415;--noteline:#b98a1a}}"
  "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
  "main{max-width:1640px;margin:0 auto;padding:20px 24px 48px}h1{font-size:1.5rem;margin:0 0 2px;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:34px 0 8px}"
  "p{margin:4px 0 10px;max-width:76rem}.dim{color:var(--dim)}code{font:.9em ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;overflow-wrap:anywhere}"
  "dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 18px;margin:16px 0 0}dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}dd span{display:inline-block;max-width:100%}"
  ".note{background:var(--note);border-left:4px solid var(--noteline);padding:8px 12px;margin:14px 0}"
  "ol{margin:0;padding-left:1.4em}li{margin:0 0 8px}"
  /* a shade at the right edge while there is more to the right */
  ".wide{overflow-x:auto;border:1px solid var(--line);border-radius:4px;background:linear-gradient(270deg,var(--bg) 40%,transparent) right/3em 100% no-repeat local,linear-gradient(270deg,rgba(128,128,128,.55),transparent) right/1em 100% no-repeat scroll}table{border-collapse:separate;border-spacing:0;width:100%;font-variant-numeric:tabular-nums lining-nums}"
  "th,td{padding:5px 12px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}tr:last-child td{border-bottom:0}"
  "th{white-space:normal;font-weight:600;color:var(--dim);background:var(--soft);font-size:.86rem;vertical-align:bottom}.l{text-align:left}tr.g:not(:nth-child(2)) td{border-top:1px solid var(--dim)}"
  "td:first-child,th:first-child{text-align:left;position:sticky;left:0;background:var(--bg);white-space:normal;overflow-wrap:anywhere;min-width:15rem;max-width:20rem}th:first-child{background:var(--soft)}"
  ".bars{display:grid;grid-template-columns:minmax(6rem,max-content) 1fr max-content;gap:5px 12px;align-items:center;font-variant-numeric:tabular-nums lining-nums}"
  ".bars svg{display:block;width:100%;height:15px}.bars>.v{text-align:right}.bars>.n{overflow-wrap:anywhere}.a{fill:var(--a)}.b{fill:var(--b)}.c{fill:var(--c)}"
  ".w{white-space:normal;min-width:20rem;font-size:.86rem}.m{display:block;width:100%;height:130px;background:var(--soft)}.s svg{display:inline-block;width:clamp(2.5rem,5.5vw,5.5rem);height:11px;margin-left:8px;vertical-align:-1px}.ends{display:flex;justify-content:space-between}"
  ".key{display:flex;flex-wrap:wrap;gap:4px 20px;margin:0 0 8px}.key svg{width:12px;height:12px;margin-right:6px;vertical-align:-1px}summary{cursor:pointer;color:var(--dim);margin:10px 0}"
  "@media(max-width:640px){body{font-size:14px}main{padding:14px 14px 36px}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:8px}th,td{padding:5px 9px}td:first-child,th:first-child{min-width:7.5rem;max-width:9.5rem}"
  ".bars{grid-template-columns:1fr max-content;grid-auto-flow:row dense;gap:2px 12px}.bars>.n{grid-column:1}.bars>.v{grid-column:2}.bars>svg{grid-column:1/3;margin-bottom:7px}}";

static void TextOf(FILE *f, const char *text, size_t length)
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

static void Text(FILE *f, const char *text)
{
  TextOf(f, text, strlen(text));
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

/* products, products with vectors, all else: what the colours say */
static int Group(int op)
{
  return HybOpIsMult(op) ? 1 : op == HYB_RECORD_SYMBOLIC || op == HYB_RECORD_NUMERIC || op == HYB_RECORD_AGAIN ? 0
                                                                                                               : 2;
}

static void KindSeconds(const HybRecordKind *k, double s[3])
{
  s[0] = s[1] = s[2] = 0;
  for (int l = 0; l < k->nlines; l++)
    if (!HybOpIsNested((int)k->lines[l].op)) s[Group((int)k->lines[l].op)] += k->lines[l].seconds;
}

static double KindAll(const HybRecordKind *k)
{
  double s[3];

  KindSeconds(k, s);
  return s[0] + s[1] + s[2];
}

static void Bar(FILE *f, const double part[3], double most)
{
  static const char colours[] = "abc";
  double            x         = 0;

  fputs("<svg aria-hidden=\"true\">", f);
  for (int k = 0; k < 3; k++) {
    const double w = most > 0 ? 100 * part[k] / most : 0;

    if (w > 0) fprintf(f, "<rect class=\"%c\" x=\"%.3f%%\" width=\"%.3f%%\" height=\"15\"/>", colours[k], x, w);
    x += w;
  }
  fputs("</svg>\n", f);
}

static void Fact(FILE *f, const char *name, const char *value, PetscBool code)
{
  if (!value[0]) return;
  fprintf(f, "<dt>%s</dt><dd>%s", name, code ? "<code>" : "");
  Text(f, value);
  fprintf(f, "%s</dd>\n", code ? "</code>" : "");
}

/* lines break between options */
static void Options(FILE *f, const char *options)
{
  if (!options[0]) return;
  fputs("<dt>Options</dt><dd><code>", f);
  while (*options) {
    size_t n = strcspn(options, " ");

    for (; options[n] && (options[n + 1] != '-' || !isalpha((unsigned char)options[n + 2])); n += 1 + strcspn(options + n + 1, " "))
      ;
    fputs("<span>", f);
    TextOf(f, options, n);
    fputs("</span> ", f);
    options += n + strspn(options + n, " ");
  }
  fputs("</code></dd>\n", f);
}

static void Facts(FILE *f, const HybReport *r)
{
  static const char *const choices[] = {"auto", "host", "cuda"};
  const HybAccount        *a         = &r->accounts[0];
  char                     text[512];

  fputs("<dl>\n", f);
  if (a->device.cards)
    snprintf(text, sizeof(text), "%s, card %d of %d at %s%s%s", a->card[0] ? a->card : a->backend, a->device.card, a->device.cards, a->device.bus, a->driver[0] ? ", driver " : "", a->driver);
  else if (a->status == HYB_DEVICE_NONE)
    snprintf(text, sizeof(text), "none: %s", a->why);
  else
    snprintf(text, sizeof(text), "%s", a->status == HYB_DEVICE_READY ? a->backend : "not asked for");
  Fact(f, "Device", text, PETSC_FALSE);
  if (a->rate > 0) {
    snprintf(text, sizeof(text), "%.0f GB/s read and written, measured at the end by copies", 1e-9 * a->rate);
    Fact(f, "Its memory", text, PETSC_FALSE);
  }
  snprintf(text, sizeof(text), "%s (-mat_aijhybridgpu_backend %s)", a->backend, choices[r->choice]);
  Fact(f, "Backend", text, PETSC_FALSE);
  snprintf(text, sizeof(text), "%d, the first on %s", (int)r->size, a->node);
  Fact(f, "Processes", text, PETSC_FALSE);
  snprintf(text, sizeof(text), "%s; %s scalars of %d bytes, %d-bit integers", r->petsc, r->scalar, (int)sizeof(PetscScalar), (int)(8 * sizeof(PetscInt)));
  Fact(f, "PETSc", text, PETSC_FALSE);
  Fact(f, "Program", r->program, PETSC_TRUE);
  Options(f, r->options);
  fputs("</dl>\n", f);
}

static void Advice(FILE *f, const HybReport *r)
{
  fputs("<h2>What could be done</h2>\n", f);
  if (!r->nadvice) {
    fputs("<p class=\"dim\">Nothing was found.</p>\n", f);
    return;
  }
  fputs("<ol>\n", f);
  for (int k = 0; k < r->nadvice; k++) {
    fputs("<li>", f);
    Text(f, r->advice[k].text);
    fputs("<br><code>", f);
    Text(f, r->advice[k].option);
    fputs("</code></li>\n", f);
  }
  fputs("</ol>\n", f);
}

static void TimeRow(FILE *f, const char *name, PetscInt64 calls, const double part[3], double all, double most)
{
  fprintf(f, "<div class=\"n\">%s", name);
  if (calls) {
    fputs(" <span class=\"dim\">", f);
    Count(f, calls);
    fputs("&times;</span>", f);
  }
  fputs("</div>", f);
  Bar(f, part, most);
  fputs("<div class=\"v\">", f);
  Seconds(f, all);
  fputs("</div>\n", f);
}

/* The whole run: setups and solves by PETSc's own events, of the process where they took longest, and what the type's
   operations are of it */
static void Whole(FILE *f, const HybReport *r)
{
  static const char *const names[HYB_RUN_PHASES] = {"in setups: PCSetUp()", "in solves: KSPSolve()"};
  double                   phase[HYB_RUN_PHASES] = {0}, type = 0, part[3] = {0, 0, 0};
  PetscInt64               calls[HYB_RUN_PHASES] = {0};

  for (PetscMPIInt p = 0; p < r->known; p++)
    for (int k = 0; k < HYB_RUN_PHASES; k++) {
      phase[k] = PetscMax(phase[k], r->accounts[p].phases[k].seconds);
      calls[k] = PetscMax(calls[k], r->accounts[p].phases[k].calls);
    }
  for (int k = 0; k < r->nkinds; k++)
    for (int l = 0; l < r->kinds[k].nlines; l++)
      if (!HybOpIsNested((int)r->kinds[k].lines[l].op)) type += r->kinds[k].lines[l].seconds;
  fputs("<h2>The whole run</h2>\n<p class=\"dim\">From loading the library to the end. Operations of the type are a part of setups and solves; the rest of these is PETSc's vectors, smoothers and other code (-log_view). A solve within a setup, as for estimates of eigenvalues, counts in both.</p>\n<div class=\"bars\">\n", f);
  for (int k = 0; k < HYB_RUN_PHASES; k++) part[k] = calls[k] ? phase[k] : 0;
  part[2] = part[0] + part[1] > 0 ? PetscMax(0, r->seconds - part[0] - part[1]) : 0;
  TimeRow(f, "the run", 0, part, r->seconds, r->seconds);
  for (int k = 0; k < HYB_RUN_PHASES; k++) {
    double one[3] = {0, 0, 0};

    if (!calls[k]) continue;
    one[k] = phase[k];
    TimeRow(f, names[k], calls[k], one, phase[k], r->seconds);
  }
  if (part[2] > 0) TimeRow(f, "before, between and after", 0, (const double[3]){0, 0, part[2]}, part[2], r->seconds);
  TimeRow(f, "in operations of the type, listed below", 0, (const double[3]){type, 0, 0}, type, r->seconds);
  fputs("</div>\n", f);
}

/* operations over all matrices, the longest first */
static void Operations(FILE *f, const HybReport *r)
{
  double     seconds[64] = {0}, most = 0, all = 0, mean = 0;
  PetscInt64 calls[64] = {0};

  for (int k = 0; k < r->nkinds; k++) {
    for (int l = 0; l < r->kinds[k].nlines; l++) {
      const HybRecordLine *line = &r->kinds[k].lines[l];

      if (HybOpIsNested((int)line->op)) continue;
      seconds[line->op] += line->seconds;
      calls[line->op] += line->calls;
      all += line->seconds;
      mean += line->mean;
    }
  }
  for (int op = 0; op < 64; op++) most = PetscMax(most, seconds[op]);
  fputs("<h2>Time by operation</h2>\n<p class=\"dim\">", f);
  Seconds(f, all);
  fprintf(f, " in operations of the type%s, of ", r->known > 1 ? ", by the slowest process of each" : "");
  Seconds(f, r->seconds);
  fputs(" from loading the library to the end.", f);
  if (r->known > 1) {
    fputs(" The mean of all processes is ", f);
    Seconds(f, mean);
    fputs(": the rest is time in which processes with less to do may wait for others.", f);
  }
  if (calls[HYB_RECORD_SYMBOLIC]) fputs(" Symbolic: a matrix product finds the pattern of its result; first values: it computes the numbers; new values: again, with MAT_REUSE_MATRIX.", f);
  fputs("</p>\n<div class=\"bars\">\n", f);
  for (;;) {
    double part[3] = {0, 0, 0};
    int    top     = -1;

    for (int op = 0; op < 64; op++)
      if (calls[op] && (top < 0 || seconds[op] > seconds[top])) top = op;
    if (top < 0) break;
    part[Group(top)] = seconds[top];
    TimeRow(f, HybRecordOpName(top), calls[top], part, seconds[top], most);
    calls[top] = 0;
  }
  fputs("</div>\n", f);
}

static void KindCell(FILE *f, const HybRecordKey *key, PetscBool size)
{
  char label[160];

  if (size)
    HybKindLabel(key, label, sizeof(label));
  else
    HybKindName(key, label, sizeof(label));
  fputs("<td title=\"", f);
  Text(f, label);
  fputs("\">", f);
  Text(f, label);
  fputs("</td>", f);
}

/* One bar of the host's time in something: of the process that took longest */
static void SpendingBar(FILE *f, const HybReport *r, int what, double most)
{
  static const char *const names[] = {"copies to the device", "copies to the host", "waiting for the device", "waiting for other processes"};
  double                   part[3] = {0, 0, 0};
  PetscInt64               calls   = 0;

  for (PetscMPIInt p = 0; p < r->known; p++) {
    const HybAccount *a = &r->accounts[p];
    const double      s = what < HYB_SPENT_KINDS ? (double)a->spent.seconds[what] : a->sent.seconds;

    if (s >= part[2]) calls = (PetscInt64)(what < HYB_SPENT_KINDS ? a->spent.calls[what] : a->sent.waits);
    part[2] = PetscMax(part[2], s);
  }
  if (!calls) return;
  fprintf(f, "<div class=\"n\">%s <span class=\"dim\">", names[what]);
  Count(f, calls);
  fputs("&times;</span></div>", f);
  Bar(f, part, most);
  fputs("<div class=\"v\">", f);
  Seconds(f, part[2]);
  fputs("</div>\n", f);
}

/* what the operations above moved, and what the host waited in them */
static void MovedRow(FILE *f, const HybRecordKey *key, const char *name, const HybMoved *m)
{
  const double bytes[] = {(double)m->todevice, (double)m->tohost, (double)m->tocards};

  fputs("<tr>", f);
  if (key)
    KindCell(f, key, PETSC_TRUE);
  else
    fputs("<td>elsewhere</td>", f);
  fprintf(f, "<td class=\"l\">%s</td>", name);
  for (int k = 0; k < 3; k++) {
    fputs("<td>", f);
    if (bytes[k] > 0) Bytes(f, bytes[k]);
    fputs("</td>", f);
  }
  fputs("<td>", f);
  if (m->waited > 0) Seconds(f, (double)m->waited);
  fputs("</td></tr>\n", f);
}

static PetscBool MovedAny(const HybMoved *m)
{
  return (PetscBool)(m->todevice + m->tohost + m->tocards >= 0.5 || m->waited >= 5e-7);
}

static void Moved(FILE *f, const HybReport *r, const int order[])
{
  HybMoved rest = {0, 0, 0, 0};

  for (PetscMPIInt p = 0; p < r->known; p++) {
    rest.todevice += r->accounts[p].counts.todevice;
    rest.tohost += r->accounts[p].counts.tohost;
    rest.tocards += r->accounts[p].sent.cardbytes;
  }
  fputs("<details><summary>By matrix and operation: bytes of all processes, and the longest wait of one</summary>\n<div class=\"wide\"><table>\n<tr><th>matrix</th><th class=\"l\">operation</th><th>to the device</th><th>to the host</th><th>to other cards</th><th>the host waited</th></tr>\n", f);
  for (int k = 0; k < r->nkinds; k++) {
    const HybRecordKind *kind = &r->kinds[order[k]];

    for (int l = 0; l < kind->nlines; l++) {
      if (HybOpIsNested((int)kind->lines[l].op)) continue;
      HybMovedAdd(&rest, &kind->lines[l].moved, -1);
      if (MovedAny(&kind->lines[l].moved)) MovedRow(f, &kind->key, HybRecordOpName((int)kind->lines[l].op), &kind->lines[l].moved);
    }
  }
  rest.waited = 0;
  if (MovedAny(&rest)) MovedRow(f, NULL, "", &rest);
  fputs("</table></div>\n</details>\n", f);
}

/* What the host was in beside the operations' own work */
static void Spending(FILE *f, const HybReport *r, const int order[])
{
  double most = 0, moved = 0;

  for (PetscMPIInt p = 0; p < r->known; p++) {
    const HybAccount *a = &r->accounts[p];

    for (int k = 0; k < HYB_SPENT_KINDS; k++) most = PetscMax(most, (double)a->spent.seconds[k]);
    most = PetscMax(most, a->sent.seconds);
    moved += (double)a->counts.todevice + (double)a->counts.tohost + a->sent.cardbytes;
  }
  if (!(most + moved > 0)) return;
  fprintf(f, "<h2>Transfers and waiting</h2>\n<p class=\"dim\">What the host did besides computing, within the operations above and between them%s. A copy to the host also waits for what was queued before it; a device works while the host waits. Waits outside the type, as for a norm, are not in it.</p>\n<div class=\"bars\">\n", r->known > 1 ? ", on the process that took longest for each" : "");
  for (int k = 0; k <= HYB_SPENT_KINDS; k++) SpendingBar(f, r, k, most);
  fputs("</div>\n", f);
  Moved(f, r, order);
}

/* kinds by time, the longest first */
static void KindsOrder(const HybReport *r, int order[])
{
  for (int k = 0; k < r->nkinds; k++) {
    int at = k;

    for (; at > 0 && KindAll(&r->kinds[order[at - 1]]) < KindAll(&r->kinds[k]); at--) order[at] = order[at - 1];
    order[at] = k;
  }
}

#define HYB_CHART_ROWS 12

static void MatricesChart(FILE *f, const HybReport *r, const int order[])
{
  static const char *const groups[] = {"products", "products with vectors", "other"};
  const double             most     = r->nkinds ? KindAll(&r->kinds[order[0]]) : 0;

  fputs("<h2>Time by matrix</h2>\n<div class=\"key\">", f);
  for (int k = 0; k < 3; k++) fprintf(f, "<span><svg aria-hidden=\"true\"><rect class=\"%c\" width=\"12\" height=\"12\"/></svg>%s</span>", "abc"[k], groups[k]);
  fputs("</div>\n<div class=\"bars\">\n", f);
  for (int k = 0; k < r->nkinds && k < HYB_CHART_ROWS && KindAll(&r->kinds[order[k]]) > 0; k++) {
    const HybRecordKind *kind = &r->kinds[order[k]];
    char                 label[160];
    double               part[3];

    HybKindLabel(&kind->key, label, sizeof(label));
    KindSeconds(kind, part);
    fputs("<div class=\"n\">", f);
    Text(f, label);
    fputs("</div>", f);
    Bar(f, part, most);
    fputs("<div class=\"v\">", f);
    Seconds(f, part[0] + part[1] + part[2]);
    fputs("</div>\n", f);
  }
  fputs("</div>\n", f);
}

#define HYB_GRIDS 48

/* One level of a hierarchy: the matrices of one key, and the blocks of parallel ones with them */
typedef struct {
  const HybRecordKey *key;
  int                 depth;
  PetscBool           used;  /* a vector was multiplied by it */
  PetscBool           moved; /* PETSc gave it to fewer processes: its own products are counted from it on */
  double              rows, nnz, bytes, seconds;
} Grid;

static PetscBool SameGrid(const HybRecordKey *a, const HybRecordKey *b)
{
  return (PetscBool)(a->depth == b->depth && a->rows == b->rows && a->cols == b->cols && !strcmp(a->name, b->name) && !strcmp(a->prefix, b->prefix) && !strcmp(a->origin, b->origin));
}

/* All of one key, by size, the largest first */
static int GridsOfKeys(const HybReport *r, Grid grids[])
{
  int n = 0;

  for (int k = 0; k < r->nkinds; k++) {
    const HybRecordKind *kind = &r->kinds[k];
    int                  at;

    if (!kind->key.grid || !kind->key.rows || kind->key.rows != kind->key.cols) continue;
    for (at = 0; at < n && !SameGrid(grids[at].key, &kind->key); at++)
      ;
    if (at == n) {
      if (n == HYB_GRIDS) continue;
      for (at = n++; at > 0 && grids[at - 1].rows < (double)kind->key.rows; at--) grids[at] = grids[at - 1];
      memset(&grids[at], 0, sizeof(grids[at]));
      grids[at].key   = &kind->key;
      grids[at].depth = kind->key.depth;
      grids[at].rows  = (double)kind->key.rows;
    }
    grids[at].nnz += (double)kind->nnz;
    grids[at].bytes += kind->hostbytes + kind->devicebytes;
    grids[at].seconds += KindAll(kind);
    for (int l = 0; l < kind->nlines; l++)
      if (HybOpIsMult((int)kind->lines[l].op)) grids[at].used = PETSC_TRUE;
  }
  return n;
}

/*
  Operators by level. Which matrices are operators? Those that vectors were multiplied by, and the coarsest one, which
  is factored. Others of one's size belong to it: its graph, and what it was before PETSc gave it to fewer processes. A
  matrix of no operator's size was a step on the way, as the graph of graphs that aggregates are made from.
  Prolongators' operations are in the tables.
*/
static int GridsFind(const HybReport *r, Grid grids[])
{
  const int all = GridsOfKeys(r, grids);
  int       n   = 0;
  Grid      found[HYB_GRIDS];

  for (int k = 0; k < all; k++)
    if (grids[k].used || (k == all - 1 && (!k || grids[k].rows < grids[k - 1].rows))) found[n++] = grids[k];
  for (int k = 0; k < all; k++) {
    for (int i = 0; i < n && !grids[k].used; i++) {
      if (found[i].rows != grids[k].rows || found[i].key == grids[k].key) continue;
      found[i].seconds += grids[k].seconds;
      if (!found[i].depth && grids[k].depth) {
        found[i].depth = grids[k].depth;
        found[i].moved = PETSC_TRUE;
      }
      if (!found[i].key->name[0] && !found[i].key->prefix[0] && !found[i].key->origin[0]) found[i].key = grids[k].key;
      break;
    }
  }
  for (int i = 0, base = 0; i < n; i++) {
    if (found[i].depth) found[i].depth += base;
    if (found[i].moved) base = found[i].depth;
  }
  memcpy(grids, found, sizeof(found[0]) * (size_t)n);
  return n;
}

static void GridCell(FILE *f, double value, double most, char what)
{
  fputs("<td class=\"s\">", f);
  if (what == 'n')
    Count(f, (PetscInt64)value);
  else if (what == 'b')
    Bytes(f, value);
  else
    Seconds(f, value);
  fprintf(f, "<svg aria-hidden=\"true\"><rect class=\"a\" width=\"%.2f%%\" height=\"11\"/></svg></td>", most > 0 ? 100 * value / most : 0.0);
}

static void Hierarchy(FILE *f, const HybReport *r)
{
  Grid      grids[HYB_GRIDS], most = {NULL, 0, PETSC_FALSE, PETSC_FALSE, 0, 0, 0, 0};
  const int n   = GridsFind(r, grids);
  double    all = 0;

  if (n < 2) return;
  for (int k = 0; k < n; k++) {
    most.rows    = PetscMax(most.rows, grids[k].rows);
    most.nnz     = PetscMax(most.nnz, grids[k].nnz);
    most.bytes   = PetscMax(most.bytes, grids[k].bytes);
    most.seconds = PetscMax(most.seconds, grids[k].seconds);
    all += grids[k].nnz;
  }
  fprintf(f, "<h2>Hierarchy of grids</h2>\n<p class=\"dim\">The operators of multigrid, the finest first; PETSc counts from the coarsest, as in mg_levels_1_. Together they have %.2f times the nonzeros of the largest (the operator complexity). Bytes are of one matrix on host and device. Time is of all operations on matrices of this level, but for those on its prolongator.</p>\n<div class=\"wide\"><table>\n"
             "<tr><th>matrix</th><th>PETSc's level</th><th>level</th><th>rows</th><th>nonzeros</th><th>bytes</th><th>time</th></tr>\n",
          most.nnz > 0 ? all / most.nnz : 0.0);
  for (int k = 0; k < n; k++) {
    fputs("<tr>", f);
    KindCell(f, grids[k].key, PETSC_FALSE);
    fprintf(f, "<td>%d</td><td>%d</td>", n - 1 - k, grids[k].depth);
    GridCell(f, grids[k].rows, most.rows, 'n');
    GridCell(f, grids[k].nnz, most.nnz, 'n');
    GridCell(f, grids[k].bytes, most.bytes, 'b');
    GridCell(f, grids[k].seconds, most.seconds, 's');
    fputs("</tr>\n", f);
  }
  fputs("</table></div>\n", f);
}

/* Of a parallel matrix, which has its entries in blocks that are kinds of their own */
static void MatrixSums(const HybReport *r, const HybRecordKind *kind, double *nnz, double *host, double *device)
{
  *nnz    = (double)kind->nnz;
  *host   = kind->hostbytes;
  *device = kind->devicebytes;
  for (int k = 0; k < r->nkinds && kind->key.role == HYB_ROLE_PARALLEL; k++) {
    const HybRecordKind *block = &r->kinds[k];

    if ((block->key.role != HYB_ROLE_DIAGONAL && block->key.role != HYB_ROLE_OFFDIAGONAL) || !SameGrid(&block->key, &kind->key)) continue;
    *nnz += (double)block->nnz;
    *host += block->hostbytes;
    *device += block->devicebytes;
  }
}

static void MatrixRow(FILE *f, const HybReport *r, PetscBool device, const HybRecordKind *k)
{
  double nnz, hostbytes, devicebytes;

  MatrixSums(r, k, &nnz, &hostbytes, &devicebytes);
  fputs("<tr>", f);
  KindCell(f, &k->key, PETSC_FALSE);
  if (r->size > 1) fprintf(f, "<td class=\"l\">%s</td>", HybRoleName(k->key.role));
  fputs("<td>", f);
  if (k->key.grid)
    fprintf(f, "%d", k->key.depth);
  else if (k->key.level >= 0)
    fprintf(f, "level %d", k->key.level);
  fputs("</td><td>", f);
  if (k->key.rows) Count(f, k->key.rows);
  fputs("</td><td>", f);
  if (k->key.cols) Count(f, k->key.cols);
  fputs("</td><td>", f);
  Count(f, (PetscInt64)nnz);
  if (k->key.rows)
    fprintf(f, "</td><td>%.1f", nnz / (double)k->key.rows);
  else
    fputs("</td><td>", f);
  fprintf(f, "</td><td class=\"l\">%s</td><td>", k->where);
  Bytes(f, hostbytes);
  if (device) {
    fputs("</td><td>", f);
    Bytes(f, devicebytes);
  }
  fputs("</td><td>", f);
  Count(f, k->matrices);
  fputs("</td></tr>\n", f);
}

static void Matrices(FILE *f, const HybReport *r, const int order[])
{
  PetscBool device = PETSC_FALSE;

  for (PetscMPIInt p = 0; p < r->known; p++) device = (PetscBool)(device || r->accounts[p].status == HYB_DEVICE_READY);
  fprintf(f, "<h2>Matrices</h2>\n<details><summary>%d kinds of them: sizes, and where they live</summary>\n<p class=\"dim\">Matrices of one name, prefix, origin and size are one line. Grid: so many products P^T A P from the finest matrix, which is 0. Lives: where the last of them was at its end: on the host; there with a copy on the device (copied, locked, promoted); or made on the device, where the host sees it (shared, mirrored). "
             "Then the bytes of its arrays.%s</p>\n<div class=\"wide\"><table>\n",
          r->nkinds, r->size > 1 ? " The diagonal blocks of a parallel matrix have the columns of a process's own part, the off-diagonal ones all others." : "");
  fprintf(f, "<tr><th>matrix</th>%s<th>grid</th><th>rows</th><th>columns</th><th>nonzeros</th><th>per row</th><th class=\"l\">lives</th><th>host</th>%s<th>how many</th></tr>\n", r->size > 1 ? "<th class=\"l\">role</th>" : "", device ? "<th>device</th>" : "");
  for (int k = 0; k < r->nkinds; k++) MatrixRow(f, r, device, &r->kinds[order[k]]);
  fputs("</table></div></details>\n", f);
}

/* rate: of the device's memory, all processes together; 0: there is none, nor its column */
static void LineRow(FILE *f, const HybRecordKind *kind, const HybRecordLine *l, PetscBool first, double rate)
{
  const char *name = HybRecordOpName((int)l->op);

  fputs(first ? "<tr class=\"g\">" : "<tr>", f);
  if (first)
    KindCell(f, &kind->key, PETSC_TRUE);
  else
    fputs("<td></td>", f);
  if (l->detail[0] && !strncmp(name, "product", 7)) name += 7;
  fprintf(f, "<td class=\"l\">%s%s</td><td class=\"l\">", l->detail, name);
  Text(f, l->method);
  fprintf(f, "</td><td class=\"l\">%s</td><td>", l->where);
  Count(f, l->calls);
  fprintf(f, "</td><td>%.4f</td><td>%.3f</td><td>", (double)l->seconds, l->calls ? 1e3 * (double)l->seconds / (double)l->calls : 0.0);
  if (l->flops > 0 && l->seconds > 0) fprintf(f, "%.2f", (double)(1e-9 * l->flops / l->seconds));
  fputs("</td><td>", f);
  if (l->bytes > 0 && l->seconds > 0) fprintf(f, "%.2f", (double)(1e-9 * l->bytes / l->seconds));
  if (rate > 0) fputs("</td><td>", f);
  if (l->bytes > 0 && l->seconds > 0 && rate > 0 && l->where[0] == 'd') fprintf(f, "%.0f&nbsp;%%", (double)(100 * l->bytes / l->seconds / rate));
  fputs("</td><td class=\"l dim w\">", f);
  Text(f, l->why);
  fputs("</td></tr>\n", f);
}

/* of all processes' cards; 0: there are none */
static double CardsRate(const HybReport *r)
{
  double rate = 0;

  for (PetscMPIInt p = 0; p < r->known; p++) rate += r->accounts[p].rate;
  return rate;
}

static void Lines(FILE *f, const HybReport *r, const int order[], PetscBool nested)
{
  const double rate = CardsRate(r);

  fprintf(f, "<div class=\"wide\"><table>\n<tr><th>matrix</th><th class=\"l\">operation</th><th class=\"l\">method</th><th class=\"l\">where</th><th>calls</th><th>s</th><th>ms a call</th><th>GFLOP/s</th><th>GB/s</th>%s<th class=\"l\">figures</th></tr>\n", rate > 0 ? "<th>of its memory's rate</th>" : "");
  for (int k = 0; k < r->nkinds; k++) {
    const HybRecordKind *kind                   = &r->kinds[order[k]];
    PetscBool            done[HYB_RECORD_LINES] = {PETSC_FALSE}, first = PETSC_TRUE;

    for (int n = 0; n < kind->nlines; n++) {
      int top = -1;

      for (int l = 0; l < kind->nlines; l++)
        if (!done[l] && (top < 0 || kind->lines[l].seconds > kind->lines[top].seconds)) top = l;
      done[top] = PETSC_TRUE;
      if (HybOpIsNested((int)kind->lines[top].op) != nested) continue;
      LineRow(f, kind, &kind->lines[top], first, rate);
      first = PETSC_FALSE;
    }
  }
  fputs("</table></div>\n", f);
}

/* of the process that held most */
static void MemoryChart(FILE *f, const HybReport *r)
{
  static const char *const names[HYB_MOMENT_KINDS] = {"device", "managed: both sides use it", "host arenas"};
  int                      which                   = 0;
  double                   most                    = 0;
  const HybMoments        *m;

  for (PetscMPIInt p = 0; p < r->known; p++) {
    for (int k = 0; k < r->accounts[p].moments.n; k++) {
      const size_t *b   = r->accounts[p].moments.bytes[k];
      const double  all = (double)b[0] + (double)b[1] + (double)b[2];

      if (all > most) which = p, most = all;
    }
  }
  if (!(most > 0)) return;
  m = &r->accounts[which].moments;
  fputs("<h2>Memory over time</h2>\n<div class=\"key\">", f);
  for (int i = 0; i < HYB_MOMENT_KINDS; i++) fprintf(f, "<span><svg aria-hidden=\"true\"><rect class=\"%c\" width=\"12\" height=\"12\"/></svg>%s</span>", "abc"[i], names[i]);
  fprintf(f, "</div>\n<svg class=\"m\" viewBox=\"0 0 %d 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"memory over time\">", m->n);
  for (int i = 0; i < HYB_MOMENT_KINDS; i++) { /* one upon the other */
    fprintf(f, "<path class=\"%c\" d=\"M0 100", "abc"[i]);
    for (int pass = 0; pass < 2; pass++) {
      for (int s = 0; s < m->n; s++) {
        const int k   = pass ? m->n - 1 - s : s;
        double    sum = 0;

        for (int j = 0; j < (pass ? i : i + 1); j++) sum += (double)m->bytes[k][j];
        fprintf(f, "L%d %.2fL%d %.2f", pass ? k + 1 : k, 100 - 100 * sum / most, pass ? k : k + 1, 100 - 100 * sum / most);
      }
    }
    fputs("Z\"/>", f);
  }
  fputs("</svg>\n<p class=\"dim ends\"><span>0 s</span><span>at most ", f);
  Bytes(f, most);
  if (r->known > 1) fprintf(f, ", by process %d", (int)r->accounts[which].rank);
  fputs("</span><span>", f);
  Seconds(f, m->n * m->interval);
  fputs("</span></p>\n", f);
}

static void Processes(FILE *f, const HybReport *r)
{
  fputs("<h2>Memory, bus and messages</h2>\n<p class=\"dim\">The most that each process held of the plugin's own memory, and what it took over the bus, and what it sent to other processes: straight to their cards, or by messages.</p>\n<div class=\"wide\"><table>\n<tr><th>process</th><th class=\"l\">node</th><th class=\"l\">backend</th><th>device peak</th><th>managed peak</th><th>pinned peak</th><th>host arenas "
        "peak</th><th>to the device</th><th>transfers</th><th>to the host</th><th>transfers</th><th>to other cards</th><th>exchanges</th><th>by messages</th><th>exchanges</th></tr>\n",
        f);
  for (int p = 0; p < r->known; p++) {
    const HybAccount *a       = &r->accounts[p];
    const double      moved[] = {(double)a->counts.todevice, (double)a->counts.tohost, a->sent.cardbytes, a->sent.messagebytes};
    const PetscCount  times[] = {a->counts.ntodevice, a->counts.ntohost, a->sent.cards, a->sent.messages};
    const double      bytes[] = {(double)a->device.device_peak, (double)a->device.managed_peak, (double)a->device.pinned_peak, (double)a->host.device_peak};

    fprintf(f, "<tr><td>%d</td><td class=\"l\">", (int)a->rank);
    Text(f, a->node);
    fprintf(f, "</td><td class=\"l\">%s</td>", a->backend);
    for (int k = 0; k < 4; k++) {
      fputs("<td>", f);
      Bytes(f, bytes[k]);
      fputs("</td>", f);
    }
    for (int k = 0; k < 4; k++) {
      fputs("<td>", f);
      Bytes(f, moved[k]);
      fputs("</td><td>", f);
      Count(f, (PetscInt64)times[k]);
      fputs("</td>", f);
    }
    fputs("</tr>\n", f);
  }
  fputs("</table></div>\n", f);
}

void HybReportHTML(FILE *f, const HybReport *r)
{
  const char *slash = strrchr(r->program, '/'), *name = slash ? slash + 1 : r->program;
  int         order[HYB_RECORD_KINDS];

  KindsOrder(r, order);
  fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>", f);
  Text(f, name);
  fprintf(f, ": aijhybridgpu</title>\n<style>%s</style>\n</head>\n<body>\n<main>\n<h1>", style);
  Text(f, name);
  fputs("</h1>\n<p class=\"dim\">One run with MATAIJHYBRIDGPU, ", f);
  Text(f, r->date);
  fputs(", ", f);
  Seconds(f, r->seconds);
  fputs("</p>\n", f);
  if (!r->complete || strcmp(r->ended, "PetscFinalize")) {
    fputs("<p class=\"note\">", f);
    Text(f, r->ended);
    if (!r->complete) fprintf(f, ". This page has what the first of %d processes knew.", (int)r->size);
    fputs("</p>\n", f);
  }
  Facts(f, r);
  Advice(f, r);
  if (r->nkinds) {
    Whole(f, r);
    Operations(f, r);
    Spending(f, r, order);
    MatricesChart(f, r, order);
    Hierarchy(f, r);
    fputs("<h2>Operations</h2>\n", f);
    fprintf(f, "<p class=\"dim\">Figures: what the method was chosen by.%s%s</p>\n", CardsRate(r) > 0 ? " Of its memory's rate: GB/s beside what the card's memory reads and writes in copies, measured at the end." : "",
            r->known > 1 ? " Calls and seconds are of the process with most of them; rates are of all processes together." : "");
    Lines(f, r, order, PETSC_FALSE);
    fputs("<details><summary>Steps within these operations</summary>\n", f);
    Lines(f, r, order, PETSC_TRUE);
    fputs("</details>\n", f);
    Matrices(f, r, order);
  } else
    fputs("<p class=\"note\">No matrix of the type was used: -mat_type aijhybridgpu, or -dm_mat_type aijhybridgpu, makes a program take it.</p>\n", f);
  MemoryChart(f, r);
  Processes(f, r);
  fputs("</main>\n<script type=\"application/json\" id=\"report\">\n", f);
  HybReportJSON(f, r);
  fputs("</script>\n</body>\n</html>\n", f);
}

/*
  The report's page: one file, static, for every screen. Charts are rows of a grid, each with an SVG whose bars are per
  cents of its width, so that text keeps its size wherever the page is read. The data, as json.c writes them, are in a
  script element of type application/json at the end.
*/
#include "html.h"
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
  ".bars svg{display:block;width:100%;height:15px}.bars>.v{text-align:right}.bars>.n{overflow-wrap:anywhere}.a,.A{fill:var(--a)}.b,.B{fill:var(--b)}.c,.C{fill:var(--c)}.A,.B{fill-opacity:.45}"
  ".f>summary{margin:0;color:inherit}.f>div{white-space:normal;width:22rem;font-size:.86rem;color:var(--dim)}.m{display:block;width:100%;height:130px;background:var(--soft)}.s svg{display:inline-block;width:clamp(2.5rem,5.5vw,5.5rem);height:11px;margin-left:8px;vertical-align:-1px}.ends{display:flex;justify-content:space-between}"
  ".key{display:flex;flex-wrap:wrap;gap:4px 20px;margin:0 0 8px}.key svg{width:12px;height:12px;margin-right:6px;vertical-align:-1px}summary{cursor:pointer;color:var(--dim);margin:10px 0}"
  "@media(max-width:640px){body{font-size:14px}main{padding:14px 14px 36px}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:8px}th,td{padding:5px 9px}td:first-child,th:first-child{min-width:7.5rem;max-width:9.5rem}"
  ".bars{grid-template-columns:1fr max-content;grid-auto-flow:row dense;gap:2px 12px}.bars>.n{grid-column:1}.bars>.v{grid-column:2}.bars>svg{grid-column:1/3;margin-bottom:7px}}";

/* products, products with vectors, all else: what the colours say */
static int Group(int op)
{
  return HybOpIsMult(op) ? 1 : op == HYB_RECORD_SYMBOLIC || op == HYB_RECORD_NUMERIC || op == HYB_RECORD_AGAIN ? 0
                                                                                                               : 2;
}

/* a piece of a bar; a colour in capitals is a pale one */
typedef struct {
  char   colour;
  double size;
} Piece;

/* calls: times, or 0: none are shown */
static void TimeRow(FILE *f, const char *name, PetscInt64 calls, const Piece piece[], int n, double all, double most)
{
  double x = 0;

  HybPage(f, "<div class=\"n\">%t", name);
  if (calls) HybPage(f, " <span class=\"dim\">%n&times;</span>", calls);
  fputs("</div><svg aria-hidden=\"true\">", f);
  for (int k = 0; k < n; k++) {
    const double w = most > 0 ? PetscMin(100 - x, 100 * piece[k].size / most) : 0;

    if (w > 0) fprintf(f, "<rect class=\"%c\" x=\"%.3f%%\" width=\"%.3f%%\" height=\"15\"/>", piece[k].colour, x, w);
    x += PetscMax(0, w);
  }
  HybPage(f, "</svg>\n<div class=\"v\">%u</div>\n", all);
}

static void Key(FILE *f, const char *colours, const char *const names[])
{
  fputs("<div class=\"key\">", f);
  for (int k = 0; colours[k]; k++) fprintf(f, "<span><svg aria-hidden=\"true\"><rect class=\"%c\" width=\"12\" height=\"12\"/></svg>%s</span>", colours[k], names[k]);
  fputs("</div>\n", f);
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
    HybPageText(f, options, n);
    fputs("</span> ", f);
    options += n + strspn(options + n, " ");
  }
  fputs("</code></dd>\n", f);
}

static void Facts(FILE *f, const HybReport *r)
{
  const HybAccount *a = &r->accounts[0];

  fputs("<dl>\n<dt>Device</dt><dd>", f);
  if (a->device.cards)
    HybPage(f, "%t, card %d of %d at %t%s%t", a->card[0] ? a->card : a->backend, a->device.card, a->device.cards, a->device.bus, a->driver[0] ? ", driver " : "", a->driver);
  else if (a->status == HYB_DEVICE_NONE)
    HybPage(f, "none: %t", a->why);
  else
    fputs(a->status == HYB_DEVICE_READY ? a->backend : "not asked for", f);
  fputs("</dd>\n", f);
  if (a->rate > 0) HybPage(f, "<dt>Its memory</dt><dd>%.0f GB/s read and written, measured at the end by copies</dd>\n", 1e-9 * a->rate);
  HybPage(f, "<dt>Backend</dt><dd>%s (-mat_aijhybridgpu_backend %s)</dd>\n", a->backend, r->asked);
  HybPage(f, "<dt>Processes</dt><dd>%d, the first on %t</dd>\n", (int)r->size, a->node);
  HybPage(f, "<dt>PETSc</dt><dd>%t; %s scalars of %d bytes, %d-bit integers</dd>\n", r->petsc, r->scalar, (int)sizeof(PetscScalar), (int)(8 * sizeof(PetscInt)));
  if (r->program[0]) HybPage(f, "<dt>Program</dt><dd><code>%t</code></dd>\n", r->program);
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
  for (int k = 0; k < r->nadvice; k++) HybPage(f, "<li>%t<br><code>%t</code></li>\n", r->advice[k].text, r->advice[k].option);
  fputs("</ol>\n", f);
}

/* the process whose set-ups and solves took longest */
static const HybAccount *WholeOf(const HybReport *r)
{
  const HybAccount *a = &r->accounts[0];

  for (PetscMPIInt p = 1; p < r->known; p++) {
    const HybRun *one = &r->accounts[p].run, *most = &a->run;

    if (one->seconds[HYB_PART_SETUP] + HybRunSolves(one) > most->seconds[HYB_PART_SETUP] + HybRunSolves(most)) a = &r->accounts[p];
  }
  return a;
}

/* a part of the run in which there was something: all of it, and the type's operations in it */
static void WholePart(FILE *f, const char *name, PetscInt64 calls, char colour, double ours, double all, double most)
{
  const double own   = PetscMin(ours, all);
  const Piece  bar[] = {
     {colour,                               own      },
     {(char)toupper((unsigned char)colour), all - own}
  };

  if (calls || all > 1e-3 * most) TimeRow(f, name, calls, bar, 2, all, most);
}

/* Of a part of the run, what is ours: the plugin's cycle and iterations are no operations of a matrix, and where these
   did it all, all of PCApply(), or all else of KSPSolve(), is ours */
static double Ours(const HybAccount *a, HybRunPart part)
{
  const HybRun     *run  = &a->run;
  const PetscCount *gamg = a->counts.gamg;

  if (part == HYB_PART_APPLY && gamg[HYB_CYCLES] && !gamg[HYB_CYCLES_LEFT]) return run->seconds[part];
  if (part == HYB_PART_SOLVE && gamg[HYB_SOLVES] && (PetscInt64)gamg[HYB_SOLVES] >= run->calls[part]) return run->seconds[part];
  return PetscMin(run->ours[part], run->seconds[part]);
}

/* what was within the solves */
static void WholeSolve(FILE *f, const HybAccount *a, double most)
{
  const HybRun    *run    = &a->run;
  const PetscCount cycles = a->counts.gamg[HYB_CYCLES], left = a->counts.gamg[HYB_CYCLES_LEFT];
  const double     own = Ours(a, HYB_PART_APPLY);
  char             name[160], made[64] = "", byothers[64] = "";

  snprintf(name, sizeof(name), "in solves: KSPSolve(), %lld iterations%s", (long long)run->iterations, a->counts.gamg[HYB_SOLVES] ? " by the type" : "");
  WholePart(f, name, run->calls[HYB_PART_SOLVE], 'b', own + Ours(a, HYB_PART_SOLVE), HybRunSolves(run), most);
  if (cycles || left) snprintf(made, sizeof(made), ", %td cycles by the type", cycles);
  if (left) snprintf(byothers, sizeof(byothers), ", %td by PETSc", left);
  snprintf(name, sizeof(name), "of these PCApply()%s%s", made, byothers);
  WholePart(f, name, run->calls[HYB_PART_APPLY], 'b', own, run->seconds[HYB_PART_APPLY], most);
}

/*
  The whole run as one bar: set-ups and solves by PETSc's own events, of these the type's operations, and what comes
  before, between and after.
*/
static void Whole(FILE *f, const HybReport *r)
{
  static const char *const names[] = {"set-up, by the type", "by PETSc", "solve, by the type", "by PETSc", "neither"};
  const HybAccount        *a       = WholeOf(r);
  const HybRun            *run     = &a->run;
  const double             all     = PetscMax(r->seconds, run->before + run->after + run->seconds[0] + run->seconds[1] + run->seconds[2] + run->seconds[3]);
  const double             setup   = Ours(a, HYB_PART_SETUP);
  const double             solve   = Ours(a, HYB_PART_SOLVE) + Ours(a, HYB_PART_APPLY);
  const Piece              bar[]   = {
                   {'c', run->before                         },
                   {'a', setup                               },
                   {'A', run->seconds[HYB_PART_SETUP] - setup},
                   {'c', run->seconds[HYB_PART_OUTSIDE]      },
                   {'b', solve                               },
                   {'B', HybRunSolves(run) - solve           },
                   {'c', run->after                          }
  };

  /* another logger was there */
  if (!(run->before + run->seconds[HYB_PART_SETUP] + run->seconds[HYB_PART_SOLVE] > 0)) return;
  fputs("<h2>The whole run</h2>\n<p class=\"dim\">From loading the library to the end", f);
  if (r->known > 1) fprintf(f, ", on process %d, whose set-ups and solves took longest", (int)a->rank);
  fputs(". Set-ups and solves are PETSc's events; of those within others the outermost counts. By the type: operations on its matrices, its cycles of multigrid, its iterations of CG. By PETSc: vectors, other smoothers and other code, which -log_view lists.", f);
  if (a->status == HYB_DEVICE_READY) fputs(" Times are the host's: PCApply() on a device may be no more than launching it, and the wait for it is elsewhere in the solve.", f);
  fputs("</p>\n", f);
  Key(f, "aAbBc", names);
  fputs("<div class=\"bars\">\n", f);
  TimeRow(f, "the run", 0, bar, 7, r->seconds, all);
  WholePart(f, "in set-ups: KSPSetUp(), PCSetUp()", run->calls[HYB_PART_SETUP], 'a', setup, run->seconds[HYB_PART_SETUP], all);
  WholeSolve(f, a, all);
  WholePart(f, run->calls[HYB_PART_SETUP] || run->calls[HYB_PART_SOLVE] ? "before: reading, assembly" : "no set-up, no solve", 0, 'c', run->before, run->before, all);
  WholePart(f, "between", 0, 'c', run->seconds[HYB_PART_OUTSIDE], run->seconds[HYB_PART_OUTSIDE], all);
  WholePart(f, "after", 0, 'c', run->after, run->after, all);
  fputs("</div>\n", f);
}

/* operations over all matrices, the longest first */
static void Operations(FILE *f, const HybReport *r)
{
  double     seconds[HYB_RECORD_OPS] = {0}, all = 0, mean = 0;
  PetscInt64 calls[HYB_RECORD_OPS] = {0};
  int        order[HYB_RECORD_OPS];

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
  HybPageOrder(HYB_RECORD_OPS, seconds, order);
  HybPage(f, "<h2>Time by operation</h2>\n<p class=\"dim\">%u in operations of the type%s, of %u from loading the library to the end.", all, r->known > 1 ? ", by the slowest process of each" : "", r->seconds);
  if (r->known > 1) HybPage(f, " The mean of all processes is %u: the rest is time in which processes with less to do may wait for others.", mean);
  if (calls[HYB_RECORD_SYMBOLIC]) fputs(" Symbolic: a matrix product finds the pattern of its result; first values: it computes the numbers; new values: again, with MAT_REUSE_MATRIX.", f);
  fputs("</p>\n<div class=\"bars\">\n", f);
  for (int k = 0; k < HYB_RECORD_OPS; k++) {
    const int   op    = order[k];
    const Piece piece = {"abc"[Group(op)], seconds[op]};

    if (calls[op]) TimeRow(f, HybRecordOpName(op), calls[op], &piece, 1, seconds[op], seconds[order[0]]);
  }
  fputs("</div>\n", f);
}

/* what the operations above moved, and what the host waited in them; key: NULL: what was moved elsewhere */
static void MovedRow(FILE *f, const HybRecordKey *key, const char *name, const HybMoved *m)
{
  if (m->todevice + m->tohost + m->tocards < 0.5 && m->waited < 5e-7) return;
  HybPage(f, key ? "<tr>%K" : "<tr><td>elsewhere</td>", key);
  HybPage(f, "<td class=\"l\">%s</td><td>%?b</td><td>%?b</td><td>%?b</td><td>%?u</td></tr>\n", name, m->todevice, m->tohost, m->tocards, m->waited);
}

/* all: of the processes */
static void Moved(FILE *f, const HybReport *r, const int order[], HybMoved all)
{
  fputs("<details><summary>By matrix and operation: bytes of all processes, and the longest wait of one</summary>\n<div class=\"wide\"><table>\n<tr><th>matrix</th><th class=\"l\">operation</th><th>to the device</th><th>to the host</th><th>to other cards</th><th>the host waited</th></tr>\n", f);
  for (int k = 0; k < r->nkinds; k++) {
    const HybRecordKind *kind = &r->kinds[order[k]];

    for (int l = 0; l < kind->nlines; l++) {
      if (HybOpIsNested((int)kind->lines[l].op)) continue;
      HybMovedAdd(&all, &kind->lines[l].moved, -1);
      MovedRow(f, &kind->key, HybRecordOpName((int)kind->lines[l].op), &kind->lines[l].moved);
    }
  }
  all.waited = 0;
  MovedRow(f, NULL, "", &all);
  fputs("</table></div>\n</details>\n", f);
}

/* What the host was in beside the operations' own work: each by the process that took longest */
static void Spending(FILE *f, const HybReport *r, const int order[])
{
  static const char *const names[HYB_SPENT_KINDS] = {"copies to the device", "copies to the host", "waiting for the device", "waiting for other processes"};
  HybSpending              longest                = {{0}, {0}, {0}, {0}};
  HybMoved                 moved                  = {0, 0, 0, 0};
  double                   most                   = 0;

  for (PetscMPIInt p = 0; p < r->known; p++) {
    const HybAccount *a = &r->accounts[p];

    for (int k = 0; k < HYB_SPENT_KINDS; k++) {
      if (a->spent.seconds[k] < longest.seconds[k]) continue;
      longest.seconds[k] = a->spent.seconds[k];
      longest.calls[k]   = a->spent.calls[k];
      most               = PetscMax(most, longest.seconds[k]);
    }
    moved.todevice += a->counts.todevice;
    moved.tohost += a->counts.tohost;
    moved.tocards += a->sent.cardbytes;
  }
  if (!(most + moved.todevice + moved.tohost + moved.tocards > 0)) return;
  fprintf(f, "<h2>Transfers and waiting</h2>\n<p class=\"dim\">What the host did besides computing, within the operations above and between them%s. A copy to the host also waits for what was queued before it; a device works while the host waits. Waits outside the type, as for a norm, are not in it.</p>\n<div class=\"bars\">\n", r->known > 1 ? ", on the process that took longest for each" : "");
  for (int k = 0; k < HYB_SPENT_KINDS; k++) {
    const Piece piece = {'c', longest.seconds[k]};

    if (longest.calls[k]) TimeRow(f, names[k], longest.calls[k], &piece, 1, piece.size, most);
  }
  fputs("</div>\n", f);
  Moved(f, r, order, moved);
}

#define HYB_CHART_ROWS 12

/* seconds: of the kinds */
static void MatricesChart(FILE *f, const HybReport *r, const int order[], const double seconds[])
{
  static const char *const groups[] = {"products", "products with vectors", "other"};
  int                      row      = 0;

  fputs("<h2>Time by matrix</h2>\n", f);
  Key(f, "abc", groups);
  fputs("<div class=\"bars\">\n", f);
  for (; row < r->nkinds && seconds[order[row]] > 0; row++) {
    const HybRecordKind *kind    = &r->kinds[order[row]];
    Piece                piece[] = {
                     {'a', 0},
                     {'b', 0},
                     {'c', 0}
    };
    char label[160];

    if (row == HYB_CHART_ROWS) fputs("</div>\n<details><summary>the other matrices</summary>\n<div class=\"bars\">\n", f);
    for (int l = 0; l < kind->nlines; l++)
      if (!HybOpIsNested((int)kind->lines[l].op)) piece[Group((int)kind->lines[l].op)].size += kind->lines[l].seconds;
    HybKindLabel(&kind->key, label, sizeof(label));
    TimeRow(f, label, 0, piece, 3, piece[0].size + piece[1].size + piece[2].size, seconds[order[0]]);
  }
  fputs(row > HYB_CHART_ROWS ? "</div>\n</details>\n" : "</div>\n", f);
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
  fputs("<h2>Memory over time</h2>\n", f);
  Key(f, "abc", names);
  fprintf(f, "<svg class=\"m\" viewBox=\"0 0 %d 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"memory over time\">", m->n);
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
  HybPage(f, "</svg>\n<p class=\"dim ends\"><span>0 s</span><span>at most %b", most);
  if (r->known > 1) fprintf(f, ", by process %d", (int)r->accounts[which].rank);
  HybPage(f, "</span><span>%u</span></p>\n", m->n * m->interval);
}

void HybReportHTML(FILE *f, const HybReport *r)
{
  const char *slash = strrchr(r->program, '/'), *name = slash ? slash + 1 : r->program;
  int         order[HYB_RECORD_KINDS];
  double      seconds[HYB_RECORD_KINDS];

  for (int k = 0; k < r->nkinds; k++) seconds[k] = HybKindSeconds(&r->kinds[k]);
  HybPageOrder(r->nkinds, seconds, order);
  HybPage(f, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>%t: aijhybridgpu</title>\n<style>%s</style>\n</head>\n<body>\n<main>\n", name, style);
  HybPage(f, "<h1>%t</h1>\n<p class=\"dim\">One run with MATAIJHYBRIDGPU, %t, %u</p>\n", name, r->date, r->seconds);
  if (!r->complete || strcmp(r->ended, "PetscFinalize")) {
    HybPage(f, "<p class=\"note\">%t", r->ended);
    if (!r->complete) fprintf(f, ". This page has what the first of %d processes knew.", (int)r->size);
    fputs("</p>\n", f);
  }
  Facts(f, r);
  Advice(f, r);
  if (r->nkinds) {
    Whole(f, r);
    Operations(f, r);
    Spending(f, r, order);
    MatricesChart(f, r, order, seconds);
    HybPageGrids(f, r);
    HybPageOperations(f, r, order);
    HybPageMatrices(f, r, order);
  } else
    fputs("<p class=\"note\">No matrix of the type was used: -mat_type aijhybridgpu, or -dm_mat_type aijhybridgpu, makes a program take it.</p>\n", f);
  MemoryChart(f, r);
  HybPageProcesses(f, r);
  fputs("</main>\n<script type=\"application/json\" id=\"report\">\n", f);
  HybReportJSON(f, r);
  fputs("</script>\n</body>\n</html>\n", f);
}

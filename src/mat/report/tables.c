/*
  The page's tables: grids of multigrid, every operation, the matrices, the processes.
*/
#include "html.h"

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
    grids[at].seconds += HybKindSeconds(kind);
    for (int l = 0; l < kind->nlines; l++)
      if (HybOpIsMult((int)kind->lines[l].op) || HybOpIsCoarsening((int)kind->lines[l].op)) grids[at].used = PETSC_TRUE;
  }
  return n;
}

/*
  Operators by level. Which matrices are operators? Those that vectors were multiplied by or that GAMG's set-up has
  coarsened, and the coarsest one, which is factored. Others of one's size belong to it: its graph, and what it was
  before PETSc gave it to fewer processes. A matrix of no operator's size was a step on the way, as the graph of graphs
  that aggregates are made from. Prolongators' operations are in the tables.
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

void HybPageGrids(FILE *f, const HybReport *r)
{
  static const char bar[] = "<svg aria-hidden=\"true\"><rect class=\"a\" width=\"%.2f%%\" height=\"11\"/></svg></td>";
  Grid              grids[HYB_GRIDS], most = {NULL, 0, PETSC_FALSE, PETSC_FALSE, 0, 0, 0, 0};
  const int         n   = GridsFind(r, grids);
  double            all = 0;

  if (n < 2) return;
  for (int k = 0; k < n; k++) {
    most.rows    = PetscMax(most.rows, grids[k].rows);
    most.nnz     = PetscMax(most.nnz, grids[k].nnz);
    most.bytes   = PetscMax(most.bytes, grids[k].bytes);
    most.seconds = PetscMax(most.seconds, grids[k].seconds);
    all += grids[k].nnz;
  }
  fprintf(f, "<h2>Hierarchy of grids</h2>\n<p class=\"dim\">The operators of multigrid, the finest first; PETSc counts from the coarsest, as in mg_levels_1_. Together they have %.2f times the nonzeros of the largest (the operator complexity). Bytes are of one matrix on host and device. Time is of all operations on matrices of this level, but for those on its prolongator.</p>\n<div class=\"wide\"><table>\n"
             "<tr><th>matrix</th><th>PETSc's level</th><th>grid</th><th>rows</th><th>nonzeros</th><th>bytes</th><th>time</th></tr>\n",
          most.nnz > 0 ? all / most.nnz : 0.0);
  for (int k = 0; k < n; k++) {
    const Grid  *g       = &grids[k];
    const double value[] = {g->rows, g->nnz, g->bytes, g->seconds}, of[] = {most.rows, most.nnz, most.bytes, most.seconds};

    HybPage(f, "<tr>%k<td>%d</td><td>%d</td>", g->key, n - 1 - k, g->depth);
    for (int i = 0; i < 4; i++) {
      fputs("<td class=\"s\">", f);
      if (i < 2)
        HybPage(f, "%n", (PetscInt64)value[i]);
      else
        HybPage(f, i == 2 ? "%b" : "%u", value[i]);
      HybPage(f, bar, of[i] > 0 ? 100 * value[i] / of[i] : 0.0);
    }
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
  const HybRecordKey *key = &k->key;
  double              nnz, hostbytes, devicebytes;

  MatrixSums(r, k, &nnz, &hostbytes, &devicebytes);
  HybPage(f, "<tr>%k", key);
  if (r->size > 1) fprintf(f, "<td class=\"l\">%s</td>", HybRoleName(key->role));
  if (key->grid)
    fprintf(f, "<td>%d</td>", key->depth);
  else
    fprintf(f, key->level >= 0 ? "<td>level %d</td>" : "<td></td>", key->level);
  HybPage(f, key->rows ? "<td>%n</td>" : "<td></td>", key->rows);
  HybPage(f, key->cols ? "<td>%n</td>" : "<td></td>", key->cols);
  HybPage(f, "<td>%n</td>", (PetscInt64)nnz);
  HybPage(f, key->rows ? "<td>%.1f</td>" : "<td></td>", nnz / (double)PetscMax(1, key->rows));
  HybPage(f, "<td class=\"l\">%s</td><td>%b</td>", k->where, hostbytes);
  if (device) HybPage(f, "<td>%b</td>", devicebytes);
  HybPage(f, "<td>%n</td></tr>\n", k->matrices);
}

void HybPageMatrices(FILE *f, const HybReport *r, const int order[])
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
  const char  *name = HybRecordOpName((int)l->op);
  const double each = l->calls ? 1e3 * l->seconds / (double)l->calls : 0, flops = l->seconds > 0 ? l->flops / l->seconds : 0, bytes = l->seconds > 0 ? l->bytes / l->seconds : 0;

  HybPage(f, first ? "<tr class=\"g\">%K" : "<tr><td></td>", &kind->key);
  if (l->detail[0] && !strncmp(name, "product", 7)) name += 7;
  HybPage(f, "<td class=\"l\">%s%s</td>", l->detail, name);
  HybPage(f, l->why[0] ? "<td class=\"l\"><details class=\"f\"><summary>%t</summary><div>%t</div></details></td>" : "<td class=\"l\">%t</td>", l->method, l->why);
  HybPage(f, "<td class=\"l\">%s</td><td>%n</td><td>%.4f</td><td>%.3f</td><td>%?.2f</td><td>%?.2f", l->where, l->calls, l->seconds, each, 1e-9 * flops, 1e-9 * bytes);
  if (rate > 0) fputs("</td><td>", f);
  if (bytes > 0 && rate > 0 && l->where[0] == 'd') HybPage(f, "%.0f&nbsp;%%", 100 * bytes / rate);
  fputs("</td></tr>\n", f);
}

/* of all processes' cards; 0: there are none */
static double CardsRate(const HybReport *r)
{
  double rate = 0;

  for (PetscMPIInt p = 0; p < r->known; p++) rate += r->accounts[p].rate;
  return rate;
}

/* Which lines a table has */
typedef enum {
  LARGE, /* a hundredth of all time, or more */
  SMALL,
  WITHIN /* other operations */
} Which;

static PetscBool LineIs(const HybRecordLine *l, Which which, double all)
{
  if (HybOpIsNested((int)l->op)) return (PetscBool)(which == WITHIN);
  return (PetscBool)(which == (l->seconds < 0.01 * all ? SMALL : LARGE));
}

static void Lines(FILE *f, const HybReport *r, const int kinds[], Which which, double all)
{
  const double rate = CardsRate(r);

  fprintf(f, "<div class=\"wide\"><table>\n<tr><th>matrix</th><th class=\"l\">operation</th><th class=\"l\">method</th><th class=\"l\">where</th><th>calls</th><th>s</th><th>ms a call</th><th>GFLOP/s</th><th>GB/s</th>%s</tr>\n", rate > 0 ? "<th>of its memory's rate</th>" : "");
  for (int k = 0; k < r->nkinds; k++) {
    const HybRecordKind *kind  = &r->kinds[kinds[k]];
    PetscBool            first = PETSC_TRUE;
    double               seconds[HYB_RECORD_LINES];
    int                  order[HYB_RECORD_LINES];

    for (int l = 0; l < kind->nlines; l++) seconds[l] = kind->lines[l].seconds;
    HybPageOrder(kind->nlines, seconds, order);
    for (int l = 0; l < kind->nlines; l++) {
      if (!LineIs(&kind->lines[order[l]], which, all)) continue;
      LineRow(f, kind, &kind->lines[order[l]], first, rate);
      first = PETSC_FALSE;
    }
  }
  fputs("</table></div>\n", f);
}

void HybPageOperations(FILE *f, const HybReport *r, const int order[])
{
  static const char *const more[] = {NULL, "%d more, of less than 1 %% of this time each", "%d steps within these operations"};
  double                   all    = 0;

  for (int k = 0; k < r->nkinds; k++) all += HybKindSeconds(&r->kinds[k]);
  fprintf(f, "<h2>Operations</h2>\n<p class=\"dim\">A click on a method shows the figures that it was chosen by.%s%s</p>\n", CardsRate(r) > 0 ? " Of its memory's rate: GB/s beside what the card's memory reads and writes in copies, measured at the end." : "",
          r->known > 1 ? " Calls and seconds are of the process with most of them; rates are of all processes together." : "");
  for (int which = LARGE; which <= WITHIN; which++) {
    int n = 0;

    for (int k = 0; k < r->nkinds; k++)
      for (int l = 0; l < r->kinds[k].nlines; l++) n += LineIs(&r->kinds[k].lines[l], (Which)which, all);
    if (!n) continue;
    if (more[which]) {
      fputs("<details><summary>", f);
      HybPage(f, more[which], n);
      fputs("</summary>\n", f);
    }
    Lines(f, r, order, (Which)which, all);
    if (more[which]) fputs("</details>\n", f);
  }
}

/* what processes held and moved */
static const struct {
  const char *name;
  PetscBool   bytes;
} columns[] = {
  {"device peak",      PETSC_TRUE },
  {"managed peak",     PETSC_TRUE },
  {"pinned peak",      PETSC_TRUE },
  {"host arenas peak", PETSC_TRUE },
  {"to the device",    PETSC_TRUE },
  {"transfers",        PETSC_FALSE},
  {"to the host",      PETSC_TRUE },
  {"transfers",        PETSC_FALSE},
  {"to other cards",   PETSC_TRUE },
  {"exchanges",        PETSC_FALSE},
  {"by messages",      PETSC_TRUE },
  {"exchanges",        PETSC_FALSE}
};
#define COLUMNS ((int)PETSC_STATIC_ARRAY_LENGTH(columns))

static double ColumnValue(const HybAccount *a, int column)
{
  const double values[] = {(double)a->device.device_peak, (double)a->device.managed_peak, (double)a->device.pinned_peak, (double)a->host.device_peak,
                           a->counts.todevice, (double)a->counts.ntodevice, a->counts.tohost, (double)a->counts.ntohost,
                           a->sent.cardbytes, (double)a->sent.cards, a->sent.messagebytes, (double)a->sent.messages};

  return values[column];
}

void HybPageProcesses(FILE *f, const HybReport *r)
{
  PetscBool some[COLUMNS]; /* a column that all have nothing in is left out */

  fputs("<h2>Memory, bus and messages</h2>\n<p class=\"dim\">The most that each process held of the plugin's own memory, and what it took over the bus, and what it sent to other processes: straight to their cards, or by messages.</p>\n<div class=\"wide\"><table>\n", f);
  fputs("<tr><th>process</th><th class=\"l\">node</th><th class=\"l\">backend</th>", f);
  for (int k = 0; k < COLUMNS; k++) {
    some[k] = PETSC_FALSE;
    for (int p = 0; p < r->known; p++) some[k] = (PetscBool)(some[k] || ColumnValue(&r->accounts[p], k) > 0);
    if (some[k]) fprintf(f, "<th>%s</th>", columns[k].name);
  }
  fputs("</tr>\n", f);
  for (int p = 0; p < r->known; p++) {
    const HybAccount *a = &r->accounts[p];

    HybPage(f, "<tr><td>%d</td><td class=\"l\">%t</td><td class=\"l\">%s</td>", (int)a->rank, a->node, a->backend);
    for (int k = 0; k < COLUMNS; k++) {
      if (some[k] && columns[k].bytes) HybPage(f, "<td>%b</td>", ColumnValue(a, k));
      if (some[k] && !columns[k].bytes) HybPage(f, "<td>%n</td>", (PetscInt64)ColumnValue(a, k));
    }
    fputs("</tr>\n", f);
  }
  fputs("</table></div>\n", f);
}

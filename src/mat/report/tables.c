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

static void GridCell(FILE *f, double value, double most, char what)
{
  fputs("<td class=\"s\">", f);
  if (what == 'n')
    HybPageCount(f, (PetscInt64)value);
  else if (what == 'b')
    HybPageBytes(f, value);
  else
    HybPageSeconds(f, value);
  fprintf(f, "<svg aria-hidden=\"true\"><rect class=\"a\" width=\"%.2f%%\" height=\"11\"/></svg></td>", most > 0 ? 100 * value / most : 0.0);
}

void HybPageGrids(FILE *f, const HybReport *r)
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
             "<tr><th>matrix</th><th>PETSc's level</th><th>grid</th><th>rows</th><th>nonzeros</th><th>bytes</th><th>time</th></tr>\n",
          most.nnz > 0 ? all / most.nnz : 0.0);
  for (int k = 0; k < n; k++) {
    fputs("<tr>", f);
    HybPageKind(f, grids[k].key, PETSC_FALSE);
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
  HybPageKind(f, &k->key, PETSC_FALSE);
  if (r->size > 1) fprintf(f, "<td class=\"l\">%s</td>", HybRoleName(k->key.role));
  fputs("<td>", f);
  if (k->key.grid)
    fprintf(f, "%d", k->key.depth);
  else if (k->key.level >= 0)
    fprintf(f, "level %d", k->key.level);
  fputs("</td><td>", f);
  if (k->key.rows) HybPageCount(f, k->key.rows);
  fputs("</td><td>", f);
  if (k->key.cols) HybPageCount(f, k->key.cols);
  fputs("</td><td>", f);
  HybPageCount(f, (PetscInt64)nnz);
  if (k->key.rows)
    fprintf(f, "</td><td>%.1f", nnz / (double)k->key.rows);
  else
    fputs("</td><td>", f);
  fprintf(f, "</td><td class=\"l\">%s</td><td>", k->where);
  HybPageBytes(f, hostbytes);
  if (device) {
    fputs("</td><td>", f);
    HybPageBytes(f, devicebytes);
  }
  fputs("</td><td>", f);
  HybPageCount(f, k->matrices);
  fputs("</td></tr>\n", f);
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
  const char *name = HybRecordOpName((int)l->op);

  fputs(first ? "<tr class=\"g\">" : "<tr>", f);
  if (first)
    HybPageKind(f, &kind->key, PETSC_TRUE);
  else
    fputs("<td></td>", f);
  if (l->detail[0] && !strncmp(name, "product", 7)) name += 7;
  fprintf(f, "<td class=\"l\">%s%s</td><td class=\"l\">", l->detail, name);
  if (l->why[0]) fputs("<details class=\"f\"><summary>", f);
  HybPageText(f, l->method);
  if (l->why[0]) {
    fputs("</summary><div>", f);
    HybPageText(f, l->why);
    fputs("</div></details>", f);
  }
  fprintf(f, "</td><td class=\"l\">%s</td><td>", l->where);
  HybPageCount(f, l->calls);
  fprintf(f, "</td><td>%.4f</td><td>%.3f</td><td>", (double)l->seconds, l->calls ? 1e3 * (double)l->seconds / (double)l->calls : 0.0);
  if (l->flops > 0 && l->seconds > 0) fprintf(f, "%.2f", (double)(1e-9 * l->flops / l->seconds));
  fputs("</td><td>", f);
  if (l->bytes > 0 && l->seconds > 0) fprintf(f, "%.2f", (double)(1e-9 * l->bytes / l->seconds));
  if (rate > 0) fputs("</td><td>", f);
  if (l->bytes > 0 && l->seconds > 0 && rate > 0 && l->where[0] == 'd') fprintf(f, "%.0f&nbsp;%%", (double)(100 * l->bytes / l->seconds / rate));
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

static int LinesCount(const HybReport *r, Which which, double all)
{
  int n = 0;

  for (int k = 0; k < r->nkinds; k++)
    for (int l = 0; l < r->kinds[k].nlines; l++) n += LineIs(&r->kinds[k].lines[l], which, all);
  return n;
}

static void Lines(FILE *f, const HybReport *r, const int order[], Which which, double all)
{
  const double rate = CardsRate(r);

  fprintf(f, "<div class=\"wide\"><table>\n<tr><th>matrix</th><th class=\"l\">operation</th><th class=\"l\">method</th><th class=\"l\">where</th><th>calls</th><th>s</th><th>ms a call</th><th>GFLOP/s</th><th>GB/s</th>%s</tr>\n", rate > 0 ? "<th>of its memory's rate</th>" : "");
  for (int k = 0; k < r->nkinds; k++) {
    const HybRecordKind *kind                   = &r->kinds[order[k]];
    PetscBool            done[HYB_RECORD_LINES] = {PETSC_FALSE}, first = PETSC_TRUE;

    for (int n = 0; n < kind->nlines; n++) {
      int top = -1;

      for (int l = 0; l < kind->nlines; l++)
        if (!done[l] && (top < 0 || kind->lines[l].seconds > kind->lines[top].seconds)) top = l;
      done[top] = PETSC_TRUE;
      if (!LineIs(&kind->lines[top], which, all)) continue;
      LineRow(f, kind, &kind->lines[top], first, rate);
      first = PETSC_FALSE;
    }
  }
  fputs("</table></div>\n", f);
}

void HybPageOperations(FILE *f, const HybReport *r, const int order[])
{
  double all = 0;
  int    small, within;

  for (int k = 0; k < r->nkinds; k++) all += HybKindSeconds(&r->kinds[k]);
  small  = LinesCount(r, SMALL, all);
  within = LinesCount(r, WITHIN, all);
  fprintf(f, "<h2>Operations</h2>\n<p class=\"dim\">A click on a method shows the figures that it was chosen by.%s%s</p>\n", CardsRate(r) > 0 ? " Of its memory's rate: GB/s beside what the card's memory reads and writes in copies, measured at the end." : "",
          r->known > 1 ? " Calls and seconds are of the process with most of them; rates are of all processes together." : "");
  if (LinesCount(r, LARGE, all)) Lines(f, r, order, LARGE, all);
  if (small) {
    fprintf(f, "<details><summary>%d more, of less than 1 %% of this time each</summary>\n", small);
    Lines(f, r, order, SMALL, all);
    fputs("</details>\n", f);
  }
  if (within) {
    fprintf(f, "<details><summary>%d steps within these operations</summary>\n", within);
    Lines(f, r, order, WITHIN, all);
    fputs("</details>\n", f);
  }
}

/* what processes held and moved; a column that all have nothing in is left out */
void HybPageProcesses(FILE *f, const HybReport *r)
{
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
  enum {
    COLUMNS = PETSC_STATIC_ARRAY_LENGTH(columns)
  };
  double    most[COLUMNS] = {0};
  PetscBool head          = PETSC_TRUE;

  fputs("<h2>Memory, bus and messages</h2>\n<p class=\"dim\">The most that each process held of the plugin's own memory, and what it took over the bus, and what it sent to other processes: straight to their cards, or by messages.</p>\n<div class=\"wide\"><table>\n", f);
  for (int pass = 0; pass < 2; pass++) { /* what there is, and the table */
    for (int p = 0; p < r->known; p++) {
      const HybAccount *a              = &r->accounts[p];
      const double      value[COLUMNS] = {(double)a->device.device_peak, (double)a->device.managed_peak, (double)a->device.pinned_peak, (double)a->host.device_peak, (double)a->counts.todevice, (double)a->counts.ntodevice, (double)a->counts.tohost, (double)a->counts.ntohost, a->sent.cardbytes, (double)a->sent.cards, a->sent.messagebytes, (double)a->sent.messages};

      for (int k = 0; k < COLUMNS && !pass; k++) most[k] = PetscMax(most[k], value[k]);
      if (!pass) continue;
      if (head) {
        fputs("<tr><th>process</th><th class=\"l\">node</th><th class=\"l\">backend</th>", f);
        for (int k = 0; k < COLUMNS; k++)
          if (most[k] > 0) fprintf(f, "<th>%s</th>", columns[k].name);
        fputs("</tr>\n", f);
        head = PETSC_FALSE;
      }
      fprintf(f, "<tr><td>%d</td><td class=\"l\">", (int)a->rank);
      HybPageText(f, a->node);
      fprintf(f, "</td><td class=\"l\">%s</td>", a->backend);
      for (int k = 0; k < COLUMNS; k++) {
        if (!(most[k] > 0)) continue;
        fputs("<td>", f);
        if (columns[k].bytes)
          HybPageBytes(f, value[k]);
        else
          HybPageCount(f, (PetscInt64)value[k]);
        fputs("</td>", f);
      }
      fputs("</tr>\n", f);
    }
  }
  fputs("</table></div>\n", f);
}

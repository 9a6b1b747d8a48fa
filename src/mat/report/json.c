/*
  The report's data: docs/reportdata.md says what each member is. Numbers of a run that had none are 0, words "".
*/
#include "report.h"

/* how many bytes the character of UTF-8 takes that stands here; 0: it is none, as where a label was cut */
int HybUTF8(const unsigned char *c)
{
  const int n = c[0] < 0x80 ? 1 : c[0] >= 0xc2 && c[0] < 0xe0 ? 2
                                : (c[0] & 0xf0) == 0xe0       ? 3
                                : c[0] >= 0xf0 && c[0] < 0xf5 ? 4
                                                              : 0;

  for (int k = 1; k < n; k++)
    if ((c[k] & 0xc0) != 0x80) return 0;
  return n;
}

static void HybJSONText(FILE *f, const char *text)
{
  fputc('"', f);
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (*c == '"' || *c == '\\')
      fprintf(f, "\\%c", *c);
    else if (*c < 32 || *c == '<' || *c == 127)
      fprintf(f, "\\u%04x", *c); /* a page's script cannot be ended by a name */
    else if (!HybUTF8(c))
      fprintf(f, "\\u%04x", *c);
    else {
      for (int n = HybUTF8(c); n > 1; n--) fputc(*c++, f);
      fputc(*c, f);
    }
  }
  fputc('"', f);
}

/*
  Members of an object, each name:type, with a space between. Types:

    t, ?      const char *; int, whether
    i, n, c   int; PetscInt64; PetscCount or size_t
    g, z      double; as a count, without a fraction
*/
static void HybJSONMembers(FILE *f, const char *members, ...)
{
  va_list args;

  va_start(args, members);
  for (const char *name = members, *type; (type = strchr(name, ':')); name = type + 2 + (type[2] == ' ')) {
    fprintf(f, "%s\"%.*s\": ", name == members ? "" : ", ", (int)(type - name), name);
    switch (type[1]) {
    case 't':
      HybJSONText(f, va_arg(args, const char *));
      break;
    case '?':
      fputs(va_arg(args, int) ? "true" : "false", f);
      break;
    case 'i':
      fprintf(f, "%d", va_arg(args, int));
      break;
    case 'n':
      fprintf(f, "%lld", (long long)va_arg(args, PetscInt64));
      break;
    case 'c':
      fprintf(f, "%td", va_arg(args, PetscCount));
      break;
    case 'g':
      fprintf(f, "%.6g", va_arg(args, double));
      break;
    case 'z':
      fprintf(f, "%.0f", va_arg(args, double));
      break;
    }
  }
  va_end(args);
}

static void HybJSONLine(FILE *f, const HybRecordLine *l)
{
  HybJSONMembers(f, "operation:t where:t method:t product:t why:t within:? calls:n timed:n seconds:g seconds_mean:g flops:g bytes:g to_device_bytes:z to_host_bytes:z to_cards_bytes:z host_waited:g",
                 HybRecordOpName((int)l->op), l->where, l->method, l->detail, l->why, HybOpIsNested((int)l->op), l->calls, l->timed, l->seconds, l->mean, l->flops, l->bytes,
                 l->moved.todevice, l->moved.tohost, l->moved.tocards, l->moved.waited);
}

static void HybJSONKind(FILE *f, const HybRecordKind *k)
{
  const HybRecordKey *key = &k->key;

  fputs("    {", f);
  HybJSONMembers(f, "role:t name:t prefix:t made_by:t of:t lives:t grid:? galerkin_depth:i prefix_level:i rows:n columns:n nonzeros:n matrices:n host_bytes:z device_bytes:z values_sent_again:n",
                 HybRoleName(key->role), key->name, key->prefix, key->origin, key->of, k->where, key->grid, key->depth, key->level, key->rows, key->cols, k->nnz, k->matrices, k->hostbytes, k->devicebytes, k->sendings);
  fputs(", \"operations\": [", f);
  for (int l = 0; l < k->nlines; l++) {
    fputs(l ? "},\n        {" : "\n        {", f);
    HybJSONLine(f, &k->lines[l]);
  }
  fputs(k->nlines ? "}\n    ]}" : "\n    ]}", f);
}

static void HybJSONProcess(FILE *f, const HybAccount *a)
{
  static const char *const parts[HYB_PARTS]       = {"between", "setup", "solve", "apply"};
  static const char *const spent[HYB_SPENT_KINDS] = {"copies_to_device", "copies_to_host", "waits_for_device", "waits_for_processes"};
  static const char *const held[HYB_MOMENT_KINDS] = {"device", "managed", "host"};
  const HybCounts         *c                      = &a->counts;

  fputs("    {", f);
  HybJSONMembers(f, "rank:i node:t backend:t card:t driver:t pci:t why_no_device:t methods:t memory_rate:g", (int)a->rank, a->node, a->backend, a->card, a->driver, a->device.bus, a->status == HYB_DEVICE_NONE ? a->why : "", c->methods, a->rate);
  fputs(",\n     \"run\": {", f); /* parts of the run, of each how much the type's operations were */
  HybJSONMembers(f, "before:g after:g iterations:n", a->run.before, a->run.after, a->run.iterations);
  for (int p = 0; p < HYB_PARTS; p++) {
    fprintf(f, ", \"%s\": %.6g, \"%s_type\": %.6g", parts[p], a->run.seconds[p], p ? parts[p] : "outside", a->run.ours[p]);
    if (p) fprintf(f, ", \"%s_calls\": %lld", parts[p], (long long)a->run.calls[p]);
  }
  fputs("},\n     ", f);
  HybJSONMembers(f, "card_number:i cards:i", a->device.card, a->device.cards);
  fputs(",\n     \"counts\": {", f);
  HybJSONMembers(f, "mult:c assemblyend:c products:c fallback:c fallbackasked:c device:c gamg:c gamgleft:c gamglevels:c gamglevelsleft:c cycles:c cyclesleft:c solves:c columns:c host_vectors:c below_device_min:c exchanged_by:t exchanges_through_host:c exchanges_through_host_bytes:z",
                 c->mults, c->assemblies, c->products, c->fallbacks, c->fallbacksasked, c->deviceops, c->gamg[HYB_GAMG_SETUPS], c->gamg[HYB_GAMG_SETUPS_LEFT], c->gamg[HYB_GAMG_LEVELS], c->gamg[HYB_GAMG_LEVELS_LEFT],
                 c->gamg[HYB_CYCLES], c->gamg[HYB_CYCLES_LEFT], c->gamg[HYB_SOLVES], c->gamg[HYB_COLUMNS_SOLVED], c->stagedmults, c->belowmin, c->halofrom, c->hosthalos, c->hosthalobytes);
  fputs("},\n     \"bus\": {", f);
  HybJSONMembers(f, "to_device_bytes:z to_device:c to_host_bytes:z to_host:c", c->todevice, c->ntodevice, c->tohost, c->ntohost);
  fputs("},\n     \"sent\": {", f);
  HybJSONMembers(f, "to_cards_bytes:z to_cards:c messages_bytes:z messages:c", a->sent.cardbytes, a->sent.cards, a->sent.messagebytes, a->sent.messages);
  fputs("},\n     \"host_in\": {", f);
  for (int k = 0; k < HYB_SPENT_KINDS; k++) fprintf(f, "%s\"%s_seconds\": %.6g, \"%s\": %td", k ? ", " : "", spent[k], a->spent.seconds[k], spent[k], a->spent.calls[k]);
  fputs("},\n     \"memory\": {", f);
  HybJSONMembers(f, "device:c device_peak:c managed:c managed_peak:c managed_share:c pinned:c pinned_peak:c host:c host_peak:c",
                 a->device.device_bytes, a->device.device_peak, a->device.managed_bytes, a->device.managed_peak, a->device.managed_share, a->device.pinned_bytes, a->device.pinned_peak, a->host.device_bytes, a->host.device_peak);
  /* over parts of the run of equal length, the first from its beginning on */
  fprintf(f, "},\n     \"memory_over_time\": {\"interval\": %.6g", a->moments.interval);
  for (int i = 0; i < HYB_MOMENT_KINDS; i++) {
    fprintf(f, ", \"%s\": [", held[i]);
    for (int k = 0; k < a->moments.n; k++) fprintf(f, k ? ", %zu" : "%zu", a->moments.bytes[k][i]);
    fputs("]", f);
  }
  fputs("}}", f);
}

void HybReportJSON(FILE *f, const HybReport *r)
{
  fprintf(f, "{\n  \"format\": %d,\n  ", HYB_REPORT_FORMAT);
  HybJSONMembers(f, "program:t options:t petsc:t date:t ended:t scalar:t backend_asked:t complete:? processes_of_the_run:i integer_bits:i scalar_bytes:i device_min:n seconds:g",
                 r->program, r->options, r->petsc, r->date, r->ended, r->scalar, r->asked, r->complete, (int)r->size, (int)(8 * sizeof(PetscInt)), (int)sizeof(PetscScalar), (PetscInt64)HybGlueState.options.devicemin, r->seconds);
  fputs(",\n  \"advice\": [", f);
  for (int k = 0; k < r->nadvice; k++) {
    fputs(k ? "},\n    {" : "\n    {", f);
    HybJSONMembers(f, "text:t option:t", r->advice[k].text, r->advice[k].option);
  }
  fputs(r->nadvice ? "}],\n  \"matrices\": [" : "],\n  \"matrices\": [", f);
  for (int k = 0; k < r->nkinds; k++) {
    fputs(k ? ",\n" : "\n", f);
    HybJSONKind(f, &r->kinds[k]);
  }
  fputs("],\n  \"processes\": [", f);
  for (int k = 0; k < r->known; k++) {
    fputs(k ? ",\n" : "\n", f);
    HybJSONProcess(f, &r->accounts[k]);
  }
  fputs("]\n}\n", f);
}

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

static void HybJSONMember(FILE *f, const char *name, const char *text)
{
  fprintf(f, "\"%s\": ", name);
  HybJSONText(f, text);
  fputs(", ", f);
}

static void HybJSONLine(FILE *f, const HybRecordLine *l)
{
  fputs("        {", f);
  HybJSONMember(f, "operation", HybRecordOpName((int)l->op));
  HybJSONMember(f, "where", l->where);
  HybJSONMember(f, "method", l->method);
  HybJSONMember(f, "product", l->detail);
  HybJSONMember(f, "why", l->why);
  fprintf(f, "\"within\": %s, \"calls\": %lld, \"timed\": %lld, \"seconds\": %.6g, \"seconds_mean\": %.6g, \"flops\": %.6g, \"bytes\": %.6g, ", HybOpIsNested((int)l->op) ? "true" : "false", (long long)l->calls, (long long)l->timed, (double)l->seconds, (double)l->mean, (double)l->flops, (double)l->bytes);
  fprintf(f, "\"to_device_bytes\": %.0f, \"to_host_bytes\": %.0f, \"to_cards_bytes\": %.0f, \"host_waited\": %.6g}", (double)l->moved.todevice, (double)l->moved.tohost, (double)l->moved.tocards, (double)l->moved.waited);
}

static void HybJSONKind(FILE *f, const HybRecordKind *k)
{
  fputs("    {", f);
  HybJSONMember(f, "role", HybRoleName(k->key.role));
  HybJSONMember(f, "name", k->key.name);
  HybJSONMember(f, "prefix", k->key.prefix);
  HybJSONMember(f, "made_by", k->key.origin);
  HybJSONMember(f, "of", k->key.of);
  HybJSONMember(f, "lives", k->where);
  fprintf(f, "\"grid\": %s, \"galerkin_depth\": %d, \"prefix_level\": %d, \"rows\": %lld, \"columns\": %lld, \"nonzeros\": %lld, \"matrices\": %lld, \"host_bytes\": %.0f, \"device_bytes\": %.0f, \"values_sent_again\": %lld, \"operations\": [\n", k->key.grid ? "true" : "false", k->key.depth, k->key.level, (long long)k->key.rows, (long long)k->key.cols,
          (long long)k->nnz, (long long)k->matrices, (double)k->hostbytes, (double)k->devicebytes, (long long)k->sendings);
  for (int l = 0; l < k->nlines; l++) {
    HybJSONLine(f, &k->lines[l]);
    fputs(l + 1 < k->nlines ? ",\n" : "\n", f);
  }
  fputs("    ]}", f);
}

/* over parts of the run of equal length, the first from its beginning on */
static void HybJSONMoments(FILE *f, const HybMoments *m)
{
  static const char *const names[HYB_MOMENT_KINDS] = {"device", "managed", "host"};

  fprintf(f, ",\n     \"memory_over_time\": {\"interval\": %.6g", m->interval);
  for (int i = 0; i < HYB_MOMENT_KINDS; i++) {
    fprintf(f, ", \"%s\": [", names[i]);
    for (int k = 0; k < m->n; k++) fprintf(f, k ? ", %zu" : "%zu", m->bytes[k][i]);
    fputs("]", f);
  }
  fputs("}", f);
}

/* parts of the run, of each how much the type's operations were */
static void HybJSONRun(FILE *f, const HybRun *r)
{
  static const char *const names[HYB_PARTS] = {"between", "setup", "solve", "apply"};

  fprintf(f, "\n     \"run\": {\"before\": %.6g, \"after\": %.6g, \"iterations\": %lld", (double)r->before, (double)r->after, (long long)r->iterations);
  for (int p = 0; p < HYB_PARTS; p++) {
    fprintf(f, ", \"%s\": %.6g, \"%s_type\": %.6g", names[p], (double)r->seconds[p], p ? names[p] : "outside", (double)r->ours[p]);
    if (p) fprintf(f, ", \"%s_calls\": %lld", names[p], (long long)r->calls[p]);
  }
  fputs("},\n     ", f);
}

static void HybJSONProcess(FILE *f, const HybAccount *a)
{
  const HybCounts *c = &a->counts;

  fprintf(f, "    {\"rank\": %d, ", (int)a->rank);
  HybJSONMember(f, "node", a->node);
  HybJSONMember(f, "backend", a->backend);
  HybJSONMember(f, "card", a->card);
  HybJSONMember(f, "driver", a->driver);
  HybJSONMember(f, "pci", a->device.bus);
  HybJSONMember(f, "why_no_device", a->status == HYB_DEVICE_NONE ? a->why : "");
  HybJSONMember(f, "methods", c->methods);
  fprintf(f, "\"memory_rate\": %.4g, ", a->rate);
  HybJSONRun(f, &a->run);
  fprintf(f, "\"card_number\": %d, \"cards\": %d,\n     \"counts\": {\"mult\": %lld, \"assemblyend\": %lld, \"products\": %lld, \"fallback\": %lld, \"fallbackasked\": %lld, \"device\": %lld, \"gamg\": %lld, \"gamgleft\": %lld, \"gamglevels\": %lld, \"gamglevelsleft\": %lld, \"cycles\": %lld, \"cyclesleft\": %lld, \"solves\": %lld, \"columns\": %lld, \"host_vectors\": %lld, \"below_device_min\": %lld, ", a->device.card, a->device.cards, (long long)c->mults, (long long)c->assemblies,
          (long long)c->products, (long long)c->fallbacks, (long long)c->fallbacksasked, (long long)c->deviceops, (long long)c->gamg[HYB_GAMG_SETUPS], (long long)c->gamg[HYB_GAMG_SETUPS_LEFT],
          (long long)c->gamg[HYB_GAMG_LEVELS], (long long)c->gamg[HYB_GAMG_LEVELS_LEFT], (long long)c->gamg[HYB_CYCLES], (long long)c->gamg[HYB_CYCLES_LEFT], (long long)c->gamg[HYB_SOLVES], (long long)c->gamg[HYB_COLUMNS_SOLVED], (long long)c->stagedmults, (long long)c->belowmin);
  HybJSONMember(f, "exchanged_by", c->halofrom);
  fprintf(f, "\"exchanges_through_host\": %lld, \"exchanges_through_host_bytes\": %.0f},\n", (long long)c->hosthalos, (double)c->hosthalobytes);
  fprintf(f, "     \"bus\": {\"to_device_bytes\": %.0f, \"to_device\": %lld, \"to_host_bytes\": %.0f, \"to_host\": %lld},\n", (double)c->todevice, (long long)c->ntodevice, (double)c->tohost, (long long)c->ntohost);
  fprintf(f, "     \"sent\": {\"to_cards_bytes\": %.0f, \"to_cards\": %lld, \"messages_bytes\": %.0f, \"messages\": %lld},\n", a->sent.cardbytes, (long long)a->sent.cards, a->sent.messagebytes, (long long)a->sent.messages);
  fprintf(f, "     \"host_in\": {\"copies_to_device_seconds\": %.6g, \"copies_to_device\": %lld, \"copies_to_host_seconds\": %.6g, \"copies_to_host\": %lld, \"waits_for_device_seconds\": %.6g, \"waits_for_device\": %lld, \"waits_for_processes_seconds\": %.6g, \"waits_for_processes\": %lld},\n", (double)a->spent.seconds[HYB_SPENT_TODEVICE],
          (long long)a->spent.calls[HYB_SPENT_TODEVICE], (double)a->spent.seconds[HYB_SPENT_TOHOST], (long long)a->spent.calls[HYB_SPENT_TOHOST], (double)a->spent.seconds[HYB_SPENT_DEVICE], (long long)a->spent.calls[HYB_SPENT_DEVICE], a->sent.seconds, (long long)a->sent.waits);
  fprintf(f, "     \"memory\": {\"device\": %zu, \"device_peak\": %zu, \"managed\": %zu, \"managed_peak\": %zu, \"managed_share\": %zu, \"pinned\": %zu, \"pinned_peak\": %zu, \"host\": %zu, \"host_peak\": %zu}", a->device.device_bytes, a->device.device_peak, a->device.managed_bytes, a->device.managed_peak,
          a->device.managed_share, a->device.pinned_bytes, a->device.pinned_peak, a->host.device_bytes, a->host.device_peak);
  HybJSONMoments(f, &a->moments);
  fputs("}", f);
}

void HybReportJSON(FILE *f, const HybReport *r)
{
  static const char *const choices[] = {"auto", "host", "cuda"};

  fprintf(f, "{\n  \"format\": %d,\n  ", HYB_REPORT_FORMAT);
  HybJSONMember(f, "program", r->program);
  HybJSONMember(f, "options", r->options);
  HybJSONMember(f, "petsc", r->petsc);
  HybJSONMember(f, "date", r->date);
  HybJSONMember(f, "ended", r->ended);
  HybJSONMember(f, "scalar", r->scalar);
  HybJSONMember(f, "backend_asked", choices[r->choice]);
  fprintf(f, "\"complete\": %s, \"processes_of_the_run\": %d, \"integer_bits\": %d, \"scalar_bytes\": %d, \"device_min\": %lld, \"seconds\": %.6g,\n  \"advice\": [", r->complete ? "true" : "false", (int)r->size, (int)(8 * sizeof(PetscInt)), (int)sizeof(PetscScalar), (long long)r->devicemin, (double)r->seconds);
  for (int k = 0; k < r->nadvice; k++) {
    fputs(k ? ",\n    {" : "\n    {", f);
    HybJSONMember(f, "text", r->advice[k].text);
    fputs("\"option\": ", f);
    HybJSONText(f, r->advice[k].option);
    fputs("}", f);
  }
  fputs("],\n  \"matrices\": [", f);
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

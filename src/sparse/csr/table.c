/* table.c: the host's table of elementary operations */
#include "csrlist.h"

#define HYB_CSR_ENTRY(member, Name) .member = HybCSR##Name##_Host,
const HybCSROps HybCSROpsHost = {HYB_CSR_OPS(HYB_CSR_ENTRY)};

/* csrhost.h: the host's elementary operations on CSR arrays, which the table of table.c joins */
#ifndef AIJHYBRIDGPU_CSRHOST_H
#define AIJHYBRIDGPU_CSRHOST_H
#include "csrlist.h"

#define HYB_CSR_DECLARE(member, Name) extern HYB_CSR_TYPE(member) HybCSR##Name##_Host;
HYB_CSR_OPS(HYB_CSR_DECLARE)
#undef HYB_CSR_DECLARE

#endif

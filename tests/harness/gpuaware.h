/*
  gpuaware.h: for programs of several processes on emulated devices, whose memory the host cannot touch: an MPI that is
  GPU-aware. A message of a card's memory goes through a buffer of the host's, which is filled when it is sent, and read
  when MPI_Waitall() says that it has come. The emulator looks whether the memory can be another process's, and whether
  anything that is queued still uses it (HybEmulatorMessage()).

  Without -mat_aijhybridgpu_comm_aware nobody may give MPI such memory: that ends the program.
*/
#ifndef AIJHYBRIDGPU_TESTS_GPUAWARE_H
#define AIJHYBRIDGPU_TESTS_GPUAWARE_H
#include <petscsys.h>
#include <link.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <stdio.h>
#undef MPI_Isend
#undef MPI_Irecv
#undef MPI_Waitall

typedef struct _GPUAwareMessage *GPUAwareMessage;
struct _GPUAwareMessage {
  MPI_Request     request;
  void           *card, *host; /* card: what comes goes there; NULL: it is sent */
  GPUAwareMessage next;
};
static GPUAwareMessage GPUAwareMessages;
static PetscCount      GPUAwareSent; /* messages of a card's memory */

/* does this memory belong to a card? tocard 0: copied to the host, 1: from there, -1: neither */
static int (*GPUAwareMove)(void *card, void *host, size_t bytes, int tocard);

static int GPUAwareFind(struct dl_phdr_info *info, size_t size, void *context)
{
  void *library = info->dlpi_name && strstr(info->dlpi_name, "emulated") ? dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;

  if (!library) return 0;
  *(void **)&GPUAwareMove = dlsym(library, "HybEmulatorMessage");
  dlclose(library);
  return GPUAwareMove != NULL;
}

static int GPUAwareOfCard(const void *p, void *host, int bytes, int tocard)
{
  PetscBool told = PETSC_FALSE;

  if (!bytes || (!GPUAwareMove && !dl_iterate_phdr(GPUAwareFind, NULL))) return 0;
  if (!(*GPUAwareMove)((void *)p, host, (size_t)bytes, tocard)) return 0;
  (void)PetscOptionsHasName(NULL, NULL, "-mat_aijhybridgpu_comm_aware", &told);
  if (told) return 1;
  fprintf(stderr, "MPI is given memory of a card, and nobody has said that it may be\n");
  abort();
}

static void *GPUAwareNote(const void *card, int bytes, int tocard)
{
  GPUAwareMessage m = (GPUAwareMessage)malloc(sizeof(*m));

  m->host          = malloc((size_t)bytes);
  m->card          = tocard ? (void *)card : NULL;
  m->next          = GPUAwareMessages;
  GPUAwareMessages = m;
  return m->host;
}

int MPI_Isend(const void *buffer, int n, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request)
{
  const int ofcard = type == MPI_BYTE && GPUAwareOfCard(buffer, NULL, n, -1);
  int       err;

  if (ofcard) {
    void *host = GPUAwareNote(buffer, n, 0);

    GPUAwareOfCard(buffer, host, n, 0);
    GPUAwareSent++;
    buffer = host;
  }
  err = PMPI_Isend(buffer, n, type, rank, tag, comm, request);
  if (ofcard) GPUAwareMessages->request = *request;
  return err;
}

int MPI_Irecv(void *buffer, int n, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request)
{
  const int ofcard = type == MPI_BYTE && GPUAwareOfCard(buffer, NULL, n, -1);
  int       err;

  if (ofcard) buffer = GPUAwareNote(buffer, n, 1);
  err = PMPI_Irecv(buffer, n, type, rank, tag, comm, request);
  if (ofcard) GPUAwareMessages->request = *request;
  return err;
}

int MPI_Waitall(int n, MPI_Request request[], MPI_Status status[])
{
  MPI_Request *before = (MPI_Request *)malloc(sizeof(MPI_Request) * (size_t)(n + 1));
  int          err;

  for (int k = 0; k < n; k++) before[k] = request[k];
  err = PMPI_Waitall(n, request, status);
  for (int k = 0; k < n; k++) {
    for (GPUAwareMessage *link = &GPUAwareMessages, m = *link; m; m = *link) {
      int bytes = 0;

      if (m->request != before[k]) {
        link = &m->next;
        continue;
      }
      if (m->card && status != MPI_STATUSES_IGNORE) MPI_Get_count(&status[k], MPI_BYTE, &bytes);
      if (bytes) (*GPUAwareMove)(m->card, m->host, (size_t)bytes, 1);
      *link = m->next;
      free(m->host);
      free(m);
      break;
    }
  }
  free(before);
  return err;
}
#endif

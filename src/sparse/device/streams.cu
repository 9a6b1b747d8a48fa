/*
  streams.cu: work beside the stream of an operation.

  Kernels of one stream run one after the other, so each waits for the longest block of the one before. Where several
  kernels do not depend on each other the later ones go to streams of our own that begin after what the operation's
  stream holds now (HybDeviceFork) and that it waits for afterwards (HybDeviceJoin): two event calls a stream. Between
  the two nothing is freed, allocated or cleared (HybDeviceZero()) that the forked work uses. A failed launch is no
  reason not to join.

  A copy to the host waits for all that is in the stream. Of an array that is whole before, as a product's offsets are
  while its columns are still being written, it goes to a stream of its own, behind an event.
*/
#include "hybchain.cuh"
#include "hybdevicestate.h"

static struct {
  cudaStream_t stream[HYB_SIDE_STREAMS];
  cudaEvent_t  begin, end[HYB_SIDE_STREAMS];
} side_;

/* all that were made, those of other files as well */
static struct {
  cudaStream_t stream[HYB_SIDE_STREAMS + 4]; /* the captured ones of two precisions, one for exchanges, an early one */
  int          n;
} made_;

/* an array that later work does not write, and what comes before it is whole */
static struct {
  const void  *array; /* NULL: none */
  cudaStream_t stream;
  cudaEvent_t  whole;
} early_;

static bool chain_, chains_; /* launches that are captured may wait on the card for each other; the next one does */

extern "C" void HybDeviceChain(bool chains)
{
  chain_ = chains;
}
extern "C" void HybDeviceChainWork(PetscCount work)
{
  chains_ = chain_ && work <= HybDeviceTuning()->chain;
}
extern "C" bool HybDeviceChains(void)
{
  return chains_;
}

PetscBool HybDeviceRecording(const HybExec *exec)
{
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

  /* of the default stream the question is an error where another one is being captured */
  if (cudaStreamIsCapturing((cudaStream_t)exec->stream, &status) == cudaSuccess) return (PetscBool)(status != cudaStreamCaptureStatusNone);
  (void)cudaGetLastError();
  return PETSC_TRUE;
}

extern "C" PetscErrorCode HybDeviceSideStream(bool first, cudaStream_t *stream)
{
  int least, greatest;

  PetscFunctionBegin;
  if (*stream) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(made_.n < (int)(sizeof(made_.stream) / sizeof(*made_.stream)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "More than %d streams beside others", made_.n);
  HybCallCUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  HybCallCUDA(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, first ? greatest : least));
  made_.stream[made_.n++] = *stream;
  PetscFunctionReturn(PETSC_SUCCESS);
}

bool HybDeviceIsSide(cudaStream_t stream)
{
  for (int k = 0; k < made_.n; k++)
    if (made_.stream[k] == stream) return true;
  return false;
}

extern "C" PetscErrorCode HybDeviceFork(const HybExec *exec, int n, HybExec side[])
{
  PetscFunctionBegin;
  PetscCheck(n >= 0 && n <= HYB_SIDE_STREAMS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "There are %d streams beside an operation's own, not %d", HYB_SIDE_STREAMS, n);
  if (n == 0) PetscFunctionReturn(PETSC_SUCCESS);
  if (!side_.begin) HybCallCUDA(cudaEventCreateWithFlags(&side_.begin, cudaEventDisableTiming));
  for (int k = 0; k < n; k++) {
    if (!side_.end[k]) HybCallCUDA(cudaEventCreateWithFlags(&side_.end[k], cudaEventDisableTiming));
    PetscCall(HybDeviceSideStream(false, &side_.stream[k]));
    side[k]        = *exec;
    side[k].stream = side_.stream[k];
  }
  HybCallCUDA(cudaEventRecord(side_.begin, (cudaStream_t)exec->stream));
  for (int k = 0; k < n; k++) HybCallCUDA(cudaStreamWaitEvent(side_.stream[k], side_.begin, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern "C" PetscErrorCode HybDeviceJoin(const HybExec *exec, int n)
{
  PetscErrorCode first = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int k = 0; k < n; k++) {
    cudaError_t err = cudaEventRecord(side_.end[k], side_.stream[k]);

    if (err == cudaSuccess) err = cudaStreamWaitEvent((cudaStream_t)exec->stream, side_.end[k], 0);
    /* then the host waits: what is freed next must not be in use */
    if (err != cudaSuccess) (void)cudaStreamSynchronize(side_.stream[k]);
    /* made to fail after it was done, for the same reason */
    if (err == cudaSuccess && HybDeviceFault("cudaStreamWaitEvent")) err = cudaErrorUnknown;
    if (err != cudaSuccess && !first) first = HybDeviceError(err, "cudaStreamWaitEvent", __FILE__, __LINE__);
  }
  PetscCall(first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HybDeviceEarly(const HybExec *exec, const void *array)
{
  PetscFunctionBegin;
  early_.array = nullptr;
  if (!early_.whole) HybCallCUDA(cudaEventCreateWithFlags(&early_.whole, cudaEventDisableTiming));
  PetscCall(HybDeviceSideStream(true, &early_.stream));
  HybCallCUDA(cudaEventRecord(early_.whole, (cudaStream_t)exec->stream));
  early_.array = array;
  PetscFunctionReturn(PETSC_SUCCESS);
}

void HybDeviceEarlyGone(const void *ptr, size_t bytes)
{
  if (early_.array >= ptr && early_.array < (const void *)((const char *)ptr + bytes)) early_.array = nullptr;
}

PetscErrorCode HybDeviceEarlyStream(const void *array, cudaStream_t *stream)
{
  PetscFunctionBegin;
  if (array != early_.array) PetscFunctionReturn(PETSC_SUCCESS);
  early_.array = nullptr;
  HybCallCUDA(cudaStreamWaitEvent(early_.stream, early_.whole, 0));
  *stream = early_.stream;
  PetscFunctionReturn(PETSC_SUCCESS);
}

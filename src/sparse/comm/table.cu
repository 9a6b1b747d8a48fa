/*
  table.cu: what a device does for an exchange.

  Units are gathered and copied on one stream of the process's own, the side's, which begins after what the operation's
  stream holds and which that stream waits for at the end. So the operation's own kernels run meanwhile, and the host
  waits for the copy to its buffer alone, an event of the side. One stream is enough: what exchanges queue there is
  short, and its order is what keeps buffers from being filled while they are read.
*/
#include "comm.cuh"

static cudaStream_t comm_stream_;

struct CommSide {
  cudaEvent_t begin, out, in; /* what exec's stream held; the copy to the host is done; the copy to the device is */
  bool        sent;
};

static PetscErrorCode HybCommClose_CUDA(const HybExec *exec, void **side)
{
  CommSide   *l = (CommSide *)*side;
  cudaError_t err;

  PetscFunctionBegin;
  if (!l) PetscFunctionReturn(PETSC_SUCCESS);
  *side = nullptr;
  /* given back before the fault hook is asked */
  err = comm_stream_ ? cudaStreamSynchronize(comm_stream_) : cudaSuccess;
  for (cudaEvent_t e : {l->begin, l->out, l->in}) {
    const cudaError_t later = e ? cudaEventDestroy(e) : cudaSuccess;
    if (err == cudaSuccess) err = later;
  }
  PetscCall(PetscFree(l));
  if (err == cudaSuccess && HybDeviceFault("cudaEventDestroy")) err = cudaErrorUnknown;
  PetscCall(HybDeviceError(err, "cudaEventDestroy", __FILE__, __LINE__));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommEvents(CommSide *l)
{
  PetscFunctionBegin;
  if (!comm_stream_) HybCallCUDA(cudaStreamCreateWithFlags(&comm_stream_, cudaStreamNonBlocking));
  HybCallCUDA(cudaEventCreateWithFlags(&l->begin, cudaEventDisableTiming));
  HybCallCUDA(cudaEventCreateWithFlags(&l->out, cudaEventDisableTiming));
  HybCallCUDA(cudaEventCreateWithFlags(&l->in, cudaEventDisableTiming));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommOpen_CUDA(const HybExec *exec, void **side)
{
  CommSide      *l;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *side = nullptr;
  PetscCall(exec->backend->enter());
  PetscCall(PetscNew(&l));
  *side = l;
  ierr  = HybCommEvents(l);
  if (ierr) (void)HybCommClose_CUDA(exec, side);
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* packed[t] = word t % words of unit index[t / words] */
template <typename W, bool ONE>
static __global__ void CommPack(PetscCount n, PetscCount words, const PetscInt *index, const W *src, W *packed)
{
  const PetscCount t = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;

  if (t >= n) return;
  if (ONE)
    packed[t] = src[index[t]];
  else
    packed[t] = src[(PetscCount)index[t / words] * words + t % words];
}

template <typename W>
static PetscErrorCode HybCommPack(PetscCount n, size_t unit, const PetscInt *index, const void *src, void *packed)
{
  const PetscCount words = (PetscCount)(unit / sizeof(W));

  PetscFunctionBegin;
  if (words == 1)
    HYB_LAUNCH((CommPack<W, true>), HybBlocks(n, COMM_THREADS), COMM_THREADS, 0, comm_stream_, n, words, index, (const W *)src, (W *)packed);
  else
    HYB_LAUNCH((CommPack<W, false>), HybBlocks(n * words, COMM_THREADS), COMM_THREADS, 0, comm_stream_, n * words, words, index, (const W *)src, (W *)packed);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommSend_CUDA(const HybExec *exec, void *side, PetscCount n, const PetscInt *index, size_t unit, const void *src, void *packed, void *host)
{
  CommSide    *l     = (CommSide *)side;
  const size_t bytes = (size_t)n * unit;

  PetscFunctionBegin;
  PetscCheck(l, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "An exchange lost its stream by an earlier error");
  PetscCall(exec->backend->enter());
  l->sent = false;
  HybCallCUDA(cudaEventRecord(l->begin, (cudaStream_t)exec->stream));
  HybCallCUDA(cudaStreamWaitEvent(comm_stream_, l->begin, 0));
  if (bytes && index) {
    if (unit % 8 == 0)
      PetscCall(HybCommPack<unsigned long long>(n, unit, index, src, packed));
    else if (unit % 4 == 0)
      PetscCall(HybCommPack<unsigned>(n, unit, index, src, packed));
    else
      PetscCall(HybCommPack<unsigned char>(n, unit, index, src, packed));
  }
  if (bytes && host)
    HybCallCUDA(cudaMemcpyAsync(host, index ? packed : src, bytes, cudaMemcpyDeviceToHost, comm_stream_));
  else if (bytes && !index)
    HybCallCUDA(cudaMemcpyAsync(packed, src, bytes, cudaMemcpyDeviceToDevice, comm_stream_));
  HybCallCUDA(cudaEventRecord(l->out, comm_stream_));
  l->sent = true;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a send() that failed half-way: for all that is queued. Made to fail after it has waited: the caller frees what
   is read. */
static PetscErrorCode HybCommSent_CUDA(const HybExec *exec, void *side)
{
  CommSide   *l   = (CommSide *)side;
  cudaError_t err = cudaSuccess;

  PetscFunctionBegin;
  if (l && l->sent)
    err = cudaEventSynchronize(l->out);
  else if (comm_stream_)
    err = cudaStreamSynchronize(comm_stream_);
  if (err == cudaSuccess && HybDeviceFault("cudaEventSynchronize")) err = cudaErrorUnknown;
  PetscCall(HybDeviceError(err, "cudaEventSynchronize", __FILE__, __LINE__));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommReceive_CUDA(const HybExec *exec, void *side, size_t bytes, const void *host, void *dst, PetscBool after)
{
  CommSide *l = (CommSide *)side;

  PetscFunctionBegin;
  if (after) {
    HybCallCUDA(cudaEventRecord(l->begin, (cudaStream_t)exec->stream));
    HybCallCUDA(cudaStreamWaitEvent(comm_stream_, l->begin, 0));
  }
  HybCallCUDA(cudaMemcpyAsync(dst, host, bytes, cudaMemcpyHostToDevice, comm_stream_));
  /* from here on the copy is queued: what follows frees or reads dst, and has to come after it */
  cudaError_t err = HybDeviceFault("cudaStreamWaitEvent") ? cudaErrorUnknown : cudaEventRecord(l->in, comm_stream_);
  if (err == cudaSuccess) err = cudaStreamWaitEvent((cudaStream_t)exec->stream, l->in, 0);
  if (err != cudaSuccess) (void)cudaStreamSynchronize(comm_stream_);
  PetscCall(HybDeviceError(err, "cudaStreamWaitEvent", __FILE__, __LINE__));
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <typename T>
static PetscErrorCode HybCommAddTo(const HybExec *exec, PetscInt n, const PetscInt *row, const PetscCount *ptr, const PetscInt *place, const T *v, T *to)
{
  PetscFunctionBegin;
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) {
    T sum = to[row[k]];

    for (PetscCount p = ptr[k]; p < ptr[k + 1]; p++) sum = sum + v[place[p]];
    to[row[k]] = sum;
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommAdd_CUDA(const HybExec *exec, PetscInt n, const PetscInt *row, const PetscCount *ptr, const PetscInt *place, PetscBool scalars, const void *v, void *to)
{
  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  if (scalars)
    PetscCall(HybCommAddTo(exec, n, row, ptr, place, (const HybScalar *)v, (HybScalar *)to));
  else
    PetscCall(HybCommAddTo(exec, n, row, ptr, place, (const PetscInt *)v, (PetscInt *)to));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static __global__ void CommCollect(PetscCount n, const PetscInt *__restrict__ from, HybCommSources sources, HybScalar *__restrict__ to)
{
  const PetscCount k = (PetscCount)blockIdx.x * blockDim.x + threadIdx.x;

  if (k >= n) return;
  const PetscInt   number = from[k];
  const HybScalar *a      = sources.a[0];
  PetscInt         first  = 0;
  if (number < 0) return;
#pragma unroll
  for (int s = 1; s < HYB_COMM_SOURCES; s++) { /* by selection: an index into parameters would have them copied */
    if (number >= sources.start[s]) {
      a     = sources.a[s];
      first = sources.start[s];
    }
  }
  to[k] = a[number - first];
}

static PetscErrorCode HybCommCollect_CUDA(const HybExec *exec, PetscCount n, const PetscInt *from, const HybCommSources *sources, HybScalar *to)
{
  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  HYB_LAUNCH(CommCollect, HybBlocks(n, COMM_THREADS), COMM_THREADS, 0, exec->stream, n, from, *sources, to);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommNumber_CUDA(const HybExec *exec, PetscCount n, HybScalar *number, PetscCount m, HybScalar *to)
{
  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  HYB_FOR_EACH(exec, n > m ? n : m, [=] __device__(PetscCount k) {
    if (k < n) number[k] = (HybScalar)(PetscReal)k;
    if (k < m) to[k] = (HybScalar)(PetscReal)-1;
  });
  PetscFunctionReturn(PETSC_SUCCESS);
}

static __device__ __forceinline__ PetscInt CommNumber(const HybScalar &v)
{
#if defined(PETSC_USE_COMPLEX)
  return (PetscInt)v.real();
#else
  return (PetscInt)v;
#endif
}

static PetscErrorCode HybCommNumbered_CUDA(const HybExec *exec, PetscCount n, const HybScalar *to, PetscInt *from)
{
  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  HYB_FOR_EACH(exec, n, [=] __device__(PetscCount k) { from[k] = CommNumber(to[k]); });
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What goes beside is short, and what it goes beside may fill the card for long: so it goes first, block by block */
static struct {
  cudaStream_t stream;
  cudaEvent_t  begin, end;
} beside_;

static PetscErrorCode HybCommFork_CUDA(const HybExec *exec, HybExec *side)
{
  PetscFunctionBegin;
  PetscCall(exec->backend->enter());
  PetscCall(HybDeviceSideStream(true, &beside_.stream));
  if (!beside_.begin) HybCallCUDA(cudaEventCreateWithFlags(&beside_.begin, cudaEventDisableTiming));
  if (!beside_.end) HybCallCUDA(cudaEventCreateWithFlags(&beside_.end, cudaEventDisableTiming));
  HybCallCUDA(cudaEventRecord(beside_.begin, (cudaStream_t)exec->stream));
  HybCallCUDA(cudaStreamWaitEvent(beside_.stream, beside_.begin, 0));
  *side        = *exec;
  side->stream = beside_.stream;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HybCommJoin_CUDA(const HybExec *exec)
{
  cudaError_t err = cudaEventRecord(beside_.end, beside_.stream);

  PetscFunctionBegin;
  if (err == cudaSuccess) err = cudaStreamWaitEvent((cudaStream_t)exec->stream, beside_.end, 0);
  /* then the host waits: what is freed next must not be in use */
  if (err != cudaSuccess) (void)cudaStreamSynchronize(beside_.stream);
  /* made to fail after it was done, for the same reason */
  if (err == cudaSuccess && HybDeviceFault("cudaStreamWaitEvent")) err = cudaErrorUnknown;
  PetscCall(HybDeviceError(err, "cudaStreamWaitEvent", __FILE__, __LINE__));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define PEER_ENTRY(member, Name) .member = HybPeer##Name##_CUDA,
extern const HybCommOps HybCommCUDA;
const HybCommOps        HybCommCUDA = {
         .open    = HybCommOpen_CUDA,
         .close   = HybCommClose_CUDA,
         .send    = HybCommSend_CUDA,
         .sent    = HybCommSent_CUDA,
         .receive = HybCommReceive_CUDA,
         PEER_OPS(PEER_ENTRY)
           .add    = HybCommAdd_CUDA,
         .collect  = HybCommCollect_CUDA,
         .number   = HybCommNumber_CUDA,
         .numbered = HybCommNumbered_CUDA,
         .fork     = HybCommFork_CUDA,
         .join     = HybCommJoin_CUDA,
};

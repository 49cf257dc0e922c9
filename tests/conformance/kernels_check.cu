// Every case's kernel must compile for a GPU. Only compiled here; a GPU's runner runs them.

#include "belfry/device/gda.hpp"
#include "conformance/kernels/atomics.hpp"
#include "conformance/kernels/batches.hpp"
#include "conformance/kernels/calls.hpp"
#include "conformance/kernels/each.hpp"
#include "conformance/kernels/faults.hpp"
#include "conformance/kernels/gda_staged.hpp"
#include "conformance/kernels/laps.hpp"
#include "conformance/kernels/policies.hpp"
#include "conformance/kernels/proof.hpp"
#include "conformance/kernels/proxy_policies.hpp"
#include "conformance/kernels/proxy_staged.hpp"
#include "conformance/kernels/signals.hpp"
#include "conformance/kernels/transfers.hpp"
#include "conformance/kernels/values.hpp"
#include "conformance/kernels/watch.hpp"

namespace belfry::conformance {

/// As a runner launches a kernel: each thread has a copy.
template <class Kernel>
__global__ void run(Kernel kernel) {
  kernel();
}

template <class Kernel>
void launch() {
  run<<<1, 1>>>(Kernel{});
}

template <class Group, class Endpoint>
void launch_group() {
  launch<PutTransfers<Endpoint, Group>>();
  launch<GetTransfers<Endpoint, Group>>();
  launch<LonelyAtomics<Endpoint, Group>>();
  launch<WaitSignal<Endpoint, Group>>();
}

template <class Endpoint>
void launch_all() {
  launch_group<device::Thread, Endpoint>();
  launch_group<device::Warp, Endpoint>();
  launch_group<device::Block, Endpoint>();
  launch<PutValues<Endpoint>>();
  launch<Contend<Endpoint>>();
  launch<WriteRounds<Endpoint>>();
  launch<ReadRounds<Endpoint>>();
  launch<PutEach<Endpoint>>();
  launch<FillRing<Endpoint>>();
  launch<Batches<Endpoint>>();
  launch<OneCall<Endpoint>>();
  launch<Fill<Endpoint>>();
  launch<Fail<Endpoint>>();
  launch<FailBeside<Endpoint>>();
  launch<Laps<Endpoint>>();
  launch<ProveWriting<Endpoint>>();
  launch<ProveReading<Endpoint>>();
}

void launch_each_kind() {
  launch_all<device::gda::Endpoint<ExclusiveNoRecordRing>>();
  launch_all<device::gda::Endpoint<BlockLockCollapsed>>();
  launch_all<device::gda::Endpoint<GpuHandoffRing>>();
  launch_all<device::proxy::Endpoint<SharedTuned>>();
  launch<DelayedStages<GpuHandoffRing>>();
  launch<WatchRising<device::EndpointView>>();
  launch<DelayedDescriptors<SharedTuned>>();
}

}  // namespace belfry::conformance

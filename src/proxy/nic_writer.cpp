#include "proxy/nic_writer.hpp"

#include <array>

namespace belfry::proxy {

namespace {

constexpr std::uint32_t kDepth = 64;
constexpr std::uint32_t kSignalEvery = 16;

host::VerbsQueueOptions options() {
  host::VerbsQueueOptions o;
  o.send_depth = kDepth;
  o.receive_depth = 1;
  o.max_inline = sizeof(std::uint64_t);
  o.remote_access = host::Access::local_write | host::Access::remote_write;
  return o;
}

}  // namespace

NicWriter::NicWriter(const host::ProtectionDomain& domain, const host::ConnectionParameters& parameters)
    : queue_(std::make_unique<host::VerbsQueue>(domain, options())) {
  queue_->connect(queue_->local_address(), parameters);
}

bool NicWriter::write(const host::RemoteAddress& to, std::uint64_t value) {
  if (outstanding_ >= kDepth) reap();
  if (outstanding_ >= kDepth || failed_) return false;
  const bool signaled = since_signal_ + 1 == kSignalEvery;
  const host::LocalSlice local{&value, sizeof value, 0};
  const int code = host::post_write_inline(*queue_, local, to, kSignalEvery,
                                           signaled ? host::Signal::yes : host::Signal::no);
  if (code != 0) return false;
  ++outstanding_;
  since_signal_ = signaled ? 0 : since_signal_ + 1;
  return true;
}

void NicWriter::reap() {
  std::array<ibv_wc, kDepth / kSignalEvery> done;
  const int count = ibv_poll_cq(queue_->send_cq(), static_cast<int>(done.size()), done.data());
  for (int i = 0; i < count; ++i) {
    failed_ = failed_ || done[static_cast<std::size_t>(i)].status != IBV_WC_SUCCESS;
    if (!failed_) outstanding_ -= kSignalEvery;
  }
}

}  // namespace belfry::proxy

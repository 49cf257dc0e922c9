#include "proxy/ring_service.hpp"

#include <algorithm>
#include <cerrno>

namespace belfry::proxy {

namespace {

constexpr std::size_t kMostChain = 64;

/// What a work's id says: with its success, every request of its queue below `covers` is complete; and
/// whether it is the last of its request, so that with its failure all but that one are.
struct WorkId {
  std::uint64_t covers;
  bool final;

  std::uint64_t pack() const { return covers << 1 | (final ? 1 : 0); }
  static WorkId unpack(std::uint64_t id) { return {id >> 1, (id & 1) != 0}; }
};

}  // namespace

using wire::ProxyOperation;
using wire::ProxyRequest;

RingService::RingService(RingReader reader, Routes routes, std::unique_ptr<Counter> counter,
                         const ServiceOptions& options)
    : reader_(reader),
      routes_(std::move(routes)),
      counter_(std::move(counter)),
      options_(options),
      order_(routes_.queues.size()),
      lanes_(routes_.queues.size()),
      completed_(reader.next()) {
  options_.chain = std::clamp<std::uint32_t>(options_.chain, 1, kMostChain);
}

/// A descriptor comes from whoever can write the ring: nothing in it is believed.
BELFRY_INLINE_FN bool RingService::check(const ProxyRequest& r) const {
  if (r.operation == ProxyOperation::fence) return true;
  if (r.peer >= routes_.queues.size() || routes_.queues[r.peer] == Routes::kNoQueue) return false;
  const std::size_t windows = routes_.windows.size();
  if (r.remote_window >= windows || !routes_.windows[r.remote_window].contains(r.remote_offset, r.bytes))
    return false;
  if (wire::proxy_value_form(r.operation)) return r.operation == ProxyOperation::put_value || r.bytes == 8;
  if (wire::proxy_operands(r.operation) != 0 && r.bytes != 8) return false;
  return r.local_window < windows && routes_.windows[r.local_window].contains(r.local_offset, r.bytes);
}

/// The request's first work, or all of it; without an id.
BELFRY_INLINE_FN void RingService::fill(Work& w, const ProxyRequest& r) const {
  const device::RemoteWindow& remote = routes_.remotes[r.remote_window * routes_.queues.size() + r.peer];
  w.signaled = false;
  w.bytes = static_cast<std::uint32_t>(std::min(r.bytes, routes_.max_message));
  w.remote = remote.address + r.remote_offset;
  w.rkey = remote.rkey.get();
  w.value = r.value;
  w.second_value = r.second_value;
  if (wire::proxy_value_form(r.operation)) {
    w.kind = r.operation == ProxyOperation::signal_add ? Work::Kind::fetch_add : Work::Kind::write_value;
    w.local = routes_.sink;
    w.lkey = routes_.sink_lkey;
    return;
  }
  w.kind = r.operation == ProxyOperation::get            ? Work::Kind::read
           : r.operation == ProxyOperation::fetch_add    ? Work::Kind::fetch_add
           : r.operation == ProxyOperation::compare_swap ? Work::Kind::compare_swap
                                                         : Work::Kind::write;
  const device::LocalWindow& local = routes_.windows[r.local_window];
  w.local = local.address + r.local_offset;
  w.lkey = local.lkey.get();
}

/// Cuts a request, whose first work is the lane's last one, into work requests of the device's size. The last
/// of them stands for it.
void RingService::cut(Lane& lane, std::uint64_t bytes) {
  Work work = lane.pending.back();
  work.id = WorkId{lane.covered, false}.pack();
  for (std::uint64_t left = bytes; left > routes_.max_message; left -= routes_.max_message) {
    lane.pending.back() = work;
    work.local += work.bytes;
    work.remote += work.bytes;
    work.bytes = static_cast<std::uint32_t>(std::min(left - routes_.max_message, routes_.max_message));
    lane.pending.push_back(work);
    ++pending_;
  }
}

BELFRY_INLINE_FN void RingService::start(const ProxyRequest& request, std::uint64_t last) {
  if (!check(request)) {
    refuse(last);
    return;
  }
  if (request.operation == ProxyOperation::fence) {
    order_.add_done(last);
    return;
  }
  Lane& lane = lanes_[request.peer];
  // Written where it is posted from: to copy it right away would wait for each of its fields.
  fill(lane.pending.add(), request);
  ++pending_;
  if (request.bytes > routes_.max_message) cut(lane, request.bytes);
  lane.covered = order_.add(request.peer, last) + 1;
  lane.pending.back().id = WorkId{lane.covered, true}.pack();
}

/// \return whether there was one
BELFRY_INLINE_FN bool RingService::take_descriptor() {
  port::Vector16 descriptor;
  if (!reader_.take(descriptor)) return false;
  const std::uint64_t index = reader_.next() - 1;
  if (failed_) return true;  // nobody waits for it any more
  ProxyRequest request;
  if (decoder_.take_whole(descriptor, request)) {
    start(request, index);
  } else {
    take_part(descriptor, index);
  }
  return true;
}

/// A descriptor that is no request by itself.
void RingService::take_part(port::Vector16 descriptor, std::uint64_t index) {
  switch (decoder_.take(descriptor)) {
    case wire::ProxyDecoder::State::more:
      break;
    case wire::ProxyDecoder::State::complete:
      start(decoder_.request(), index);
      break;
    case wire::ProxyDecoder::State::malformed:
      refuse(index);
      break;
  }
}

/// A chain is kept back for each queue, and as much again may wait for room: the ring is the buffer, not we.
bool RingService::has_room() const { return pending_ < 2 * std::size_t{options_.chain}; }

bool RingService::serve(Submitter& submitter) {
  bool moved = false;
  std::uint32_t taken = 0;
  while (taken < options_.descriptors_a_turn && has_room() && take_descriptor()) ++taken;
  if (taken != 0) {
    reader_.give_back();
    moved = true;
    publish();  // requests without work of their own
  }
  for (std::uint32_t peer = 0; pending_ != 0 && peer < lanes_.size(); ++peer)
    moved = flush(submitter, peer) || moved;
  return moved;
}

/// Posts chains as long as the queue takes them. What it does not take stays, in order.
bool RingService::flush(Submitter& submitter, std::uint32_t peer) {
  Lane& lane = lanes_[peer];
  bool moved = false;
  while (!lane.pending.empty() && !failed_) {
    const std::size_t room = submitter.depth() - lane.outstanding;
    const std::size_t count = std::min({lane.pending.size(), room, std::size_t{options_.chain}});
    if (count == 0) break;
    const std::span<Work> chain = lane.pending.first(count);
    chain.back().signaled = true;
    const PostResult result = submitter.post(routes_.queues[peer], chain);
    if (result.accepted != count) chain.back().signaled = false;  // it may not be the next chain's last
    lane.pending.pop_front(result.accepted);
    pending_ -= result.accepted;
    lane.outstanding += static_cast<std::uint32_t>(result.accepted);
    lane.since_signal += static_cast<std::uint32_t>(result.accepted);
    moved = moved || result.accepted != 0;
    if (result.accepted == count) {
      lane.signaled_sizes.push_back(lane.since_signal);
      lane.since_signal = 0;
      continue;
    }
    if (result.error != ENOMEM && result.error != EAGAIN) {
      // What was accepted may still complete, and is counted then.
      const WorkId refused = WorkId::unpack(lane.pending.front().id);
      const std::uint64_t number = refused.final ? refused.covers - 1 : refused.covers;
      fail({.kind = device::Fault::Kind::root,
            .index = order_.first_waiting(peer, number).value_or(completed_),
            .syndrome = wire::Syndrome::local_qp_operation,
            .peer = static_cast<std::uint16_t>(peer),
            .qpn = submitter.qpn(routes_.queues[peer])});
    }
    break;
  }
  return moved;
}

std::uint32_t RingService::peer_of(std::uint32_t queue) const {
  const auto at = std::find(routes_.queues.begin(), routes_.queues.end(), queue);
  return static_cast<std::uint32_t>(at - routes_.queues.begin());
}

void RingService::complete(Submitter& submitter, const WorkCompletion& completion) {
  const std::uint32_t peer = peer_of(completion.queue);
  if (peer >= lanes_.size()) return;
  Lane& lane = lanes_[peer];
  const WorkId id = WorkId::unpack(completion.id);
  const bool good = completion.syndrome == wire::Syndrome::none;
  // A flush says nothing of what came before it.
  if (good || completion.syndrome != wire::Syndrome::flushed)
    order_.complete_below(peer, good || !id.final ? id.covers : id.covers - 1);
  publish();
  if (good) {
    if (lane.signaled_sizes.empty()) return;
    lane.outstanding -= lane.signaled_sizes.front();
    lane.signaled_sizes.pop_front();
    return;
  }
  const bool root = completion.syndrome != wire::Syndrome::flushed;
  fail({.kind = root ? device::Fault::Kind::root : device::Fault::Kind::unknown,
        .index = order_.first_waiting(peer).value_or(completed_),
        .syndrome = completion.syndrome,
        .vendor = completion.vendor,
        .peer = static_cast<std::uint16_t>(peer),
        .qpn = completion.qpn != 0 ? completion.qpn : submitter.qpn(completion.queue)});
}

/// Also of a ring that has failed: the request that failed is never complete, so the count stops at it.
void RingService::publish() {
  if (order_.advance(completed_)) counter_->completed(completed_);
}

void RingService::refuse(std::uint64_t index) {
  fail({.kind = device::Fault::Kind::root, .index = index, .syndrome = wire::Syndrome::local_qp_operation});
}

void RingService::fail(RingFault fault) {
  if (failed_) return;
  failed_ = true;
  for (Lane& lane : lanes_) lane.pending.clear();
  pending_ = 0;
  fault.dropped_from = reader_.next();
  counter_->fault(fault);
}

}  // namespace belfry::proxy

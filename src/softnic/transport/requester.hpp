#pragma once
/// \file
/// The sending half of RC: starts WQEs, puts their packets out, and completes them as answers come.

#include "softnic/firmware/failure.hpp"
#include "softnic/firmware/nic_core.hpp"

namespace belfry::softnic {

/// WQEs (or packets) that one QP may take before the next one has its turn.
inline constexpr std::uint32_t kTurnBudget = 64;
/// Bytes that the direct path moves before another QP has its turn.
inline constexpr std::uint32_t kDirectPartBytes = 256 * 1024;
/// Packets that may be out without an acknowledgement.
inline constexpr std::int32_t kPacketWindow = 192;
/// A NIC thread can be off its core for milliseconds: shorter acknowledgement timeouts would only
/// repeat what has arrived. It stands for the device's own acknowledgement delay.
inline constexpr std::uint64_t kLeastTimeout = 16'000'000;  // ns

/// Runs one QP's send queue for a turn. \return work done; 0 where it waits for something
std::size_t run_send_queue(NicCore& core, QueuePair& qp);

/// Whether the QP still has something to start, emit or await.
bool has_send_work(const QueuePair& qp);

/// An acknowledgement arrived from the peer.
/// \param syndrome AETH syndrome
void on_acknowledge(NicCore& core, QueuePair& qp, std::uint32_t psn, std::uint8_t syndrome);
/// A READ response packet arrived; \param data its payload
void on_read_response(NicCore& core, QueuePair& qp, std::uint32_t psn, const unsigned char* data,
                      std::uint32_t bytes);
void on_atomic_response(NicCore& core, QueuePair& qp, std::uint32_t psn, std::uint64_t original);

// Shared by the direct and the packet path.

/// Fetches the WQE at `block` into core.image and decodes it into core.wqe.
void fetch_wqe(NicCore& core, const QueuePair& qp, std::uint64_t block);
/// Checks the fetched WQE against queue, limits and keys. \return what fails it, none if nothing does
wire::Syndrome check_wqe(NicCore& core, const QueuePair& qp, SpanList& spans, std::uint8_t* vendor);
/// Ends the WQE with what a NAK says. \return how the requester completes it
SendFailure failure_of_nak(const StartedWqe& wqe, wire::NakCode code);
/// \return the acknowledgement deadline counted from now; ~0 where the QP waits for ever
std::uint64_t acknowledge_deadline(NicCore& core, const QueuePair& qp);
/// Takes an RNR NAK: sets the pause. \return false where no retry is left
bool take_rnr(NicCore& core, QueuePair& qp, std::uint8_t timer);
/// Writes an atomic's former value as its size demands.
void deliver_original(NicCore& core, const SpanList& spans, const AtomicOperands& atomic,
                      std::uint64_t original);

/// The QP at the other end, of this process, or null where a packet would be lost.
QueuePair* find_direct_peer(NicCore& core, QueuePair& qp);
std::size_t run_direct(NicCore& core, QueuePair& qp);
std::size_t run_packets(NicCore& core, QueuePair& qp);

}  // namespace belfry::softnic

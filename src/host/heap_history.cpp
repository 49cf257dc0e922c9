#include "host/heap_history.hpp"

#include <cstring>
#include <string>
#include <vector>

#include "belfry/host/errors.hpp"
#include "host/collective.hpp"

namespace belfry::host {

namespace {

using Call = SymmetricHeap::Call;

// Both blobs hold words in the order of this machine; every machine that belfry supports has the same.
static_assert(sizeof(Call) == 32 && sizeof(HistoryDigest) == 24);

template <class T>
std::vector<T> items_of(std::size_t rank, const Blob& blob, std::size_t at_least) {
  if (blob.size() % sizeof(T) != 0 || blob.size() / sizeof(T) < at_least) {
    throw Error(ErrorKind::bad_argument,
                "rank " + std::to_string(rank) + "'s heap is described in another format",
                "Every rank must run the same version of belfry and take the same steps");
  }
  std::vector<T> items(blob.size() / sizeof(T));
  if (!items.empty()) std::memcpy(items.data(), blob.data(), blob.size());
  return items;
}

std::string describe(const Call& call) {
  if (call.kind == Call::Kind::free) return "free of offset " + std::to_string(call.offset);
  std::string text =
      "allocate " + std::to_string(call.bytes) + " B aligned to " + std::to_string(call.alignment);
  if (call.offset == SymmetricHeap::kNone) text += " (which found no room)";
  return text;
}

}  // namespace

std::uint64_t hash_words(std::uint64_t hash, std::initializer_list<std::uint64_t> words) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  for (const std::uint64_t word : words)
    for (unsigned shift = 0; shift < 64; shift += 8) hash = (hash ^ ((word >> shift) & 0xff)) * kPrime;
  return hash;
}

std::string describe_parting(std::size_t usual_rank, std::uint64_t first, std::span<const Call> odd,
                             std::span<const Call> usual) {
  std::size_t at = 0;
  while (at < odd.size() && at < usual.size() && odd[at] == usual[at]) ++at;
  const std::string other = "rank " + std::to_string(usual_rank);
  // Kept histories are equal as far as they go: the difference lies behind them, or before the last check.
  if (at == odd.size() && at == usual.size()) return "in a call that is no longer kept: check more often";
  const std::string where = "at its call " + std::to_string(first + at) + " (counted from 0), ";
  if (at == odd.size())
    return where + "which it did not make, where " + other + " made " + describe(usual[at]);
  if (at == usual.size()) return where + describe(odd[at]) + ", where " + other + " made none";
  return where + describe(odd[at]) + ", where " + other + " made " + describe(usual[at]);
}

void compare_histories(Bootstrap& bootstrap, const HistoryDigest& mine, std::uint64_t first,
                       std::span<const Call> recent, Deadline deadline) {
  std::vector<Blob> blobs = bootstrap.all_gather(std::as_bytes(std::span(&mine, 1)), deadline);
  std::vector<HistoryDigest> digests;
  for (std::size_t rank = 0; rank < blobs.size(); ++rank)
    digests.push_back(items_of<HistoryDigest>(rank, blobs[rank], 1).front());
  const auto rank = find_odd_rank(digests);
  if (!rank) return;
  if (digests[rank->odd].range != digests[rank->usual].range) {
    throw Error(ErrorKind::bad_argument,
                "rank " + std::to_string(rank->odd) + "'s symmetric heap lies in another range than rank " +
                    std::to_string(rank->usual) + "'s",
                "Every rank must make its heap in the same window, with the same offset and size");
  }
  // Every rank comes here or none does, so a second exchange is safe.
  blobs = bootstrap.all_gather(std::as_bytes(recent), deadline);
  const auto odd = items_of<Call>(rank->odd, blobs[rank->odd], 0);
  const auto usual = items_of<Call>(rank->usual, blobs[rank->usual], 0);
  throw Error(ErrorKind::bad_argument,
              "rank " + std::to_string(rank->odd) + "'s symmetric heap has diverged " +
                  describe_parting(rank->usual, first, odd, usual),
              "Every rank must make the same calls of the heap in the same order");
}

}  // namespace belfry::host

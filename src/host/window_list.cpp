#include "host/window_list.hpp"

#include <cstring>
#include <string>

#include "belfry/host/errors.hpp"
#include "belfry/port/byte_order.hpp"
#include "host/collective.hpp"

namespace belfry::host {

namespace {

struct EncodedHead {
  Be32 magic;
  Be32 count;
};
struct EncodedEntry {
  WindowDescription::Encoded description;
  Be32 access;
};
static_assert(sizeof(EncodedHead) == 8 && sizeof(EncodedEntry) == WindowDescription::kEncodedBytes + 4);

constexpr std::uint32_t kMagic = 0x62667773;  // "bfws"

[[noreturn]] void refuse(const std::string& what, const OddRank& rank, const std::string& odd,
                         const std::string& usual) {
  throw Error(ErrorKind::bad_argument, what + ": " + describe_difference(rank, odd, usual),
              "Every rank must make the same windows");
}

std::string describe_access(Access access) {
  struct Name {
    Access bit;
    const char* name;
  };
  static constexpr Name kNames[] = {{Access::local_write, "local_write"},
                                    {Access::remote_write, "remote_write"},
                                    {Access::remote_read, "remote_read"},
                                    {Access::remote_atomic, "remote_atomic"},
                                    {Access::relaxed_ordering, "relaxed_ordering"}};
  std::string text;
  for (const Name& n : kNames)
    if (has(access, n.bit)) text.append(text.empty() ? "" : "+").append(n.name);
  return text.empty() ? "local reads only" : text;
}

}  // namespace

Blob encode_windows(std::span<const WindowEntry> windows) {
  Blob blob(sizeof(EncodedHead) + windows.size() * sizeof(EncodedEntry));
  const EncodedHead head{Be32(kMagic), Be32(static_cast<std::uint32_t>(windows.size()))};
  std::memcpy(blob.data(), &head, sizeof head);
  std::byte* out = blob.data() + sizeof head;
  for (const WindowEntry& window : windows) {
    const EncodedEntry entry{window.description.encode(), Be32(static_cast<std::uint32_t>(window.access))};
    std::memcpy(out, &entry, sizeof entry);
    out += sizeof entry;
  }
  return blob;
}

std::vector<WindowEntry> decode_windows(std::size_t peer, const Blob& blob) {
  EncodedHead head{};
  if (blob.size() >= sizeof head) std::memcpy(&head, blob.data(), sizeof head);
  const std::size_t count = head.count.get();
  if (head.magic.get() != kMagic || (blob.size() - sizeof head) / sizeof(EncodedEntry) != count ||
      (blob.size() - sizeof head) % sizeof(EncodedEntry) != 0) {
    throw Error(ErrorKind::bad_argument,
                "rank " + std::to_string(peer) + "'s windows are described in another format",
                "Every rank must run the same version of belfry and take the same steps");
  }
  std::vector<WindowEntry> windows;
  for (std::size_t i = 0; i < count; ++i) {
    EncodedEntry entry;
    std::memcpy(&entry, blob.data() + sizeof head + i * sizeof entry, sizeof entry);
    windows.push_back(
        {WindowDescription::decode(entry.description), static_cast<Access>(entry.access.get())});
  }
  return windows;
}

void check_windows_agree(const std::vector<std::vector<WindowEntry>>& lists) {
  std::vector<std::size_t> counts;
  for (const auto& list : lists) counts.push_back(list.size());
  if (const auto rank = find_odd_rank(counts)) {
    refuse("the number of windows", *rank, std::to_string(counts[rank->odd]),
           std::to_string(counts[rank->usual]));
  }
  for (std::size_t window = 0; window < counts.front(); ++window) {
    std::vector<std::uint64_t> bytes;
    std::vector<Access> access;
    for (const auto& list : lists) {
      bytes.push_back(list[window].description.length);
      access.push_back(list[window].access);
    }
    const std::string name = " of window " + std::to_string(window);
    // Bytes in full: sizes that differ a little would look the same in a larger unit.
    if (const auto rank = find_odd_rank(bytes)) {
      refuse("the size" + name, *rank, std::to_string(bytes[rank->odd]) + " B",
             std::to_string(bytes[rank->usual]) + " B");
    }
    if (const auto rank = find_odd_rank(access)) {
      refuse("the access" + name, *rank, describe_access(access[rank->odd]),
             describe_access(access[rank->usual]));
    }
  }
}

}  // namespace belfry::host

#include "host/collective.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace belfry::host {

namespace {

// A contribution's first byte; a failure is its kind, message and remedy, NUL between the two.
constexpr std::byte kMade{0};
constexpr std::byte kFirstFailure{1};  // plus the ErrorKind

void append(Blob& blob, std::string_view text) {
  // A message is not worth breaking the exchange for.
  text = text.substr(0, 4096);
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  blob.insert(blob.end(), bytes.begin(), bytes.end());
}

Blob failure(ErrorKind kind, std::string_view message, std::string_view remedy) {
  Blob blob{static_cast<std::byte>(std::to_integer<unsigned>(kFirstFailure) + static_cast<unsigned>(kind))};
  append(blob, message);
  blob.push_back(std::byte{0});
  append(blob, remedy);
  return blob;
}

[[noreturn]] void throw_others_failure(std::size_t rank, std::string_view step, const Blob& blob) {
  const std::string text(reinterpret_cast<const char*>(blob.data()) + 1, blob.size() - 1);
  const std::size_t end = std::min(text.find('\0'), text.size());
  const unsigned code = std::to_integer<unsigned>(blob[0]) - std::to_integer<unsigned>(kFirstFailure);
  const auto kind =
      code <= static_cast<unsigned>(ErrorKind::completion) ? static_cast<ErrorKind>(code) : ErrorKind::system;
  throw Error(kind,
              "rank " + std::to_string(rank) + " could not " + std::string(step) + ": " + text.substr(0, end),
              end < text.size() ? text.substr(end + 1) : "");
}

std::string with_code(const Error& error) {
  return error.code() == 0 ? error.message()
                           : error.message() + " (errno " + std::to_string(error.code()) + ")";
}

}  // namespace

std::vector<Blob> exchange(Bootstrap& bootstrap, std::string_view step, const std::function<Blob()>& make,
                           Deadline deadline) {
  Blob mine{kMade};
  std::exception_ptr problem;
  try {
    const Blob made = make();
    mine.insert(mine.end(), made.begin(), made.end());
  } catch (const Error& error) {
    problem = std::current_exception();
    mine = failure(error.kind(), with_code(error), error.remedy());
  } catch (const std::exception& error) {
    problem = std::current_exception();
    mine = failure(ErrorKind::system, error.what(), "");
  }
  std::vector<Blob> all;
  try {
    all = bootstrap.all_gather(mine, deadline);
  } catch (const Error&) {
    if (problem == nullptr) throw;
  }
  if (problem != nullptr) std::rethrow_exception(problem);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    Blob& blob = all[rank];
    if (blob.empty())
      throw_others_failure(rank, step, failure(ErrorKind::bad_argument, "it took another step", ""));
    if (blob[0] != kMade) throw_others_failure(rank, step, blob);
    blob.erase(blob.begin());
  }
  return all;
}

std::string describe_difference(const OddRank& rank, const std::string& odd, const std::string& usual) {
  return "rank " + std::to_string(rank.odd) + " has " + odd + ", rank " + std::to_string(rank.usual) +
         " has " + usual;
}

}  // namespace belfry::host

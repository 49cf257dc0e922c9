#include "bench/record_sink.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "bench/record_io.hpp"

namespace belfry::bench {
namespace {

std::string render(std::span<const Record> records, RecordFormat format) {
  std::string text;
  if (format == RecordFormat::csv) text = csv_header() + '\n';
  for (const Record& record : records) {
    text += (format == RecordFormat::csv ? to_csv_row(record) : to_json_line(record)) + '\n';
  }
  return text;
}

}  // namespace

RecordSink::RecordSink(const std::string& path, RecordFormat format) : path_(path), format_(format) {
  owned_ = path != "-";
  fd_ = owned_ ? open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : STDOUT_FILENO;
  if (fd_ < 0) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot write records to '" + path + "' (nothing has been measured)");
  }
}

RecordSink::RecordSink(RecordSink&& other) noexcept
    : path_(std::move(other.path_)),
      format_(other.format_),
      fd_(other.fd_),
      owned_(std::exchange(other.owned_, false)) {}

RecordSink::~RecordSink() {
  if (owned_) close(fd_);
}

void RecordSink::write(std::span<const Record> records) {
  const std::string text = render(records, format_);
  struct stat status {};
  // Only a plain file has earlier contents to drop; a pipe or a terminal has none.
  if (owned_ && fstat(fd_, &status) == 0 && S_ISREG(status.st_mode) && ftruncate(fd_, 0) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot empty '" + path_ + "'");
  }
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(fd_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw std::system_error(errno, std::generic_category(), "cannot write records to '" + path_ + "'");
    done += static_cast<std::size_t>(written);
  }
}

}  // namespace belfry::bench

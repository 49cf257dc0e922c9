#pragma once
/// \file
/// The output of one rank, passed on line by line.

#include <string>

namespace belfry::cli {

/// A pipe whose lines come out of another descriptor behind a prefix.
class LinePipe {
 public:
  /// Throws std::system_error. \param out where lines go
  LinePipe(std::string prefix, int out);
  ~LinePipe();
  LinePipe(LinePipe&& other) noexcept;
  LinePipe& operator=(LinePipe&&) = delete;

  int read_end() const { return read_; }  ///< -1 once everything has been read
  int write_end() const { return write_; }
  /// For the parent, once the child has its own.
  void close_write_end();
  /// Passes on what is there now; at the end also a line without an end. Waits for nothing.
  void drain();
  /// No more will come: what is left of a line goes out.
  void finish();

 private:
  void pass_on(bool all);

  std::string prefix_;
  std::string held_;
  int out_;
  int read_ = -1;
  int write_ = -1;
};

}  // namespace belfry::cli

#pragma once
/// \file
/// A reader of words that others count up in.

#include "conformance/kernels/report.hpp"

namespace belfry::conformance {

/// Watches words that only count up, until a word reaches `last`. values[0]: how often one went down;
/// [1]: looks.
template <class View>
struct WatchRising {
  static constexpr std::uint32_t kMost = 64;

  View view;
  device::Place words;
  std::uint32_t count = 0;  ///< kMost at most
  device::Place stop;
  std::uint64_t last = 0;
  Report* reports = nullptr;

  BELFRY_FN void operator()() const {
    Report& report = reports[grid_thread()];
    std::uint64_t seen[kMost] = {};
    port::Patience patience(port::Timeout::seconds(120));
    for (bool over = false; !over;) {
      over = port::poll<port::Scope::system>(local_pointer<std::uint64_t>(view, stop)) >= last;
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto* word = local_pointer<std::uint64_t>(view, words + i * std::uint64_t{8});
        const std::uint64_t now = port::load<port::Scope::system>(word);
        if (now < seen[i]) ++report.values[0];
        seen[i] = now;
      }
      ++report.values[1];
      if (!over && patience.is_over()) {
        report.note(0, device::Status::timed_out);
        return;
      }
    }
  }
};

}  // namespace belfry::conformance

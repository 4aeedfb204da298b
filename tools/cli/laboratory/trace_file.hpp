// A trace in a file: its bytes, compressed as gzip does.
#pragma once

#include <expected>
#include <string>

#include "lab/study/trace.hpp"

namespace via::cli {

/// What a trace may have, uncompressed.
constexpr std::size_t trace_file_max = std::size_t{1} << 30;

std::expected<lab::study::Trace, std::string> load_trace(const std::string& path);
/// Bytes of the file.
std::expected<std::size_t, std::string> save_trace(const std::string& path,
                                                   const lab::study::Trace& trace);

}  // namespace via::cli

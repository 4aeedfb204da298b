// What recorded processes wrote (tools/record), made into one trace.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "lab/study/trace.hpp"

namespace via::cli {

struct Recording {
    lab::study::Trace trace;
    std::size_t alone = 0;       ///< posts of VIs whose other end was not recorded
    std::size_t imports = 0;     ///< of segments, to store into: no trace has what was stored
    std::size_t all_memory = 0;  ///< registrations of all memory, which no trace has
};

/// A text for each process. Connections are found by the discriminators that both ends name: of
/// several with the same ones, in the order of time.
std::expected<Recording, std::string> recording_of(const std::vector<std::string>& processes);

}  // namespace via::cli

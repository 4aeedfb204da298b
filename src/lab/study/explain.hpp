// One message, event by event: what each resource did for it, when, and which of that was its path.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "lab/study/measure.hpp"

namespace via::lab::study {

struct Happening {
    std::int64_t start_ns;  ///< since the post
    std::int64_t end_ns;
    std::string resource;
    Share share;
    const char* what;
    bool on_path;  ///< else beside it: it took no time from the message
};

struct Explanation {
    std::int64_t size = 0;
    std::int64_t total_ns = 0;
    std::vector<Happening> happenings;                 ///< in the order of their starts
    std::array<std::int64_t, share_count> parts_ns{};  ///< their sum is total_ns
    std::string longest;                               ///< the resource most of the path
};

std::expected<Explanation, std::string> explain(const Trial& trial, const Question& question);

}  // namespace via::lab::study

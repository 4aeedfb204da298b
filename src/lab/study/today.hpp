// Questions that none of the papers could ask: what their designs would be on machines of today.
// Each is answered by runs, as curves and sentences.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/study/measure.hpp"

namespace via::lab::study {

struct Curve {
    std::string name;
    std::vector<std::int64_t> x;
    std::vector<double> y;
};

struct Answer {
    std::string title;
    std::string x;
    std::string y;
    bool steep = false;  ///< values over several powers of ten
    std::vector<Curve> curves;
    std::vector<std::string> findings;  ///< sentences; also why a design is nowhere
};

struct Inquiry {
    std::string_view name;
    std::string_view what;
    std::expected<Answer, std::string> (*ask)(const Machine&, std::uint32_t rounds);
};
std::span<const Inquiry> inquiries();

/// `rounds`: messages of which each point is the mean.

std::expected<Answer, std::string> ask_doorbells(const Machine& machine, std::uint32_t rounds);
std::expected<Answer, std::string> ask_translation(const Machine& machine, std::uint32_t rounds);
std::expected<Answer, std::string> ask_queues(const Machine& machine, std::uint32_t rounds);
std::expected<Answer, std::string> ask_interrupt(const Machine& machine, std::uint32_t rounds);
std::expected<Answer, std::string> ask_incast(const Machine& machine, std::uint32_t rounds);
std::expected<Answer, std::string> ask_turns(const Machine& machine, std::uint32_t rounds);
// Of machines with a window; what is measured there is the same each time.
std::expected<Answer, std::string> ask_protocols(const Machine& machine, std::uint32_t rounds);
std::expected<Answer, std::string> ask_processor(const Machine& machine, std::uint32_t rounds);
std::expected<Answer, std::string> ask_ours(const Machine& machine, std::uint32_t rounds);

}  // namespace via::lab::study

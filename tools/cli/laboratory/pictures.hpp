// What `-o DIR` leaves: pictures (SVG), and what they show as columns for other programs (TSV).
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <vector>

#include "lab/study/compare.hpp"
#include "lab/study/explain.hpp"
#include "lab/study/measure.hpp"
#include "lab/study/rows.hpp"
#include "laboratory/svg.hpp"

namespace via::cli {

/// Curves of one kind, by name.
struct Series {
    std::string name;
    std::vector<std::int64_t> x;
    std::vector<double> y;
};

class Pictures {
public:
    /// "": nothing is asked for, and nothing done.
    explicit Pictures(const std::string& folder) : folder_(folder) {}

    using Done = std::expected<void, std::string>;
    Done begin();
    /// `steep`: values over several powers of ten, drawn on a logarithmic axis.
    Done curves(const std::string& name, const std::string& title, const std::string& x,
                const std::string& y, bool steep, const std::vector<Series>& series);
    Done stacks(const std::string& name, const std::string& title,
                const std::vector<Stack>& stacks);
    Done timeline(const std::string& name, const std::string& title,
                  const lab::study::Explanation& explanation);
    /// Any other text.
    Done text(const std::string& file, const std::string& text);

private:
    std::filesystem::path folder_;
};

/// Of latencies or bandwidths of a machine over sizes.
Pictures::Done draw_machine(Pictures& pictures, const lab::study::Trial& trial,
                            const lab::study::Question& question, bool of_latency,
                            const std::vector<std::int64_t>& sizes, const std::string& prefix);
Pictures::Done draw(Pictures& pictures, const lab::study::Comparison& comparison,
                    const std::vector<lab::study::Contender>& contenders, lab::study::Of of,
                    lab::study::Over over);

}  // namespace via::cli

// What all papers' rows need: measurements with short names, of which the first error is kept.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lab/study/explain.hpp"
#include "lab/study/measure.hpp"

namespace via::lab::study {

/// The first number above `low`, up to `high`, from which on `holds(number)`, to `step`; found by
/// halving, so of a curve that goes up and down it is one of several.
template <class Holds>
std::int64_t first_where(std::int64_t low, std::int64_t high, Holds holds, std::int64_t step = 1) {
    while (high - low > step) {
        const std::int64_t middle = (low + high) / 2;
        (holds(middle) ? high : low) = middle;
    }
    return high;
}

class Bench {
public:
    explicit Bench(const Machine& machine, const Without& without = {})
        : machine_(machine), without_(without) {}

    const Machine& machine() const { return machine_; }
    const std::optional<std::string>& error() const { return error_; }

    /// The machine's own design, but for those words, and for what all trials are without.
    Trial trial(std::string_view words = "", std::int64_t vis = 1);
    Latency one_way(const Trial& of, const Question& question);
    double one_way_us(const Trial& of, std::int64_t size, std::int64_t queues = 1);
    /// Of an RDMA write, from the post until its last byte is where it belongs.
    Latency write(const Trial& of, std::int64_t size);
    double rate_mb(const Trial& of, std::int64_t size);
    Explanation one_message(const Trial& of, std::int64_t size, std::uint64_t seed = 1);
    /// A host alone that writes so many words to its NIC.
    std::int64_t pio_ns(std::int64_t words);
    /// A DMA engine alone that fetches so many bytes from its host.
    std::int64_t fetch_ns(std::int64_t bytes);
    /// From the first word of a descriptor that the firmware reads until its packet starts.
    double overhead_ns(std::string_view words, std::int64_t size);

private:
    void fail(const std::string& why) {
        if (!error_) error_ = why;
    }
    const Machine& machine_;
    Without without_;
    std::optional<std::string> error_;
};

}  // namespace via::lab::study

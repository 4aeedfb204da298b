// Our own NIC: what `via bench` measured of it beside what comes out of the costs of its
// operations.
#include <cmath>
#include <cstdio>
#include <optional>

#include "lab/study/figures.hpp"
#include "lab/study/inquiry.hpp"
#include "lab/study/software.hpp"

namespace via::lab::study {
namespace {

constexpr double tolerance = 0.15;

/// docs/benchmarks.md of 2026-11-29, mode near.
constexpr std::pair<std::int64_t, double> measured_latencies[] = {
    {8, 0.0751}, {512, 0.1037}, {4096, 0.2080}, {65'536, 2.51}, {1 << 20, 38.98}};
constexpr std::pair<std::int64_t, double> measured_streams[] = {{65'536, 15'540},
                                                                {1 << 20, 16'690}};
constexpr double measured_rate = 23.95;  ///< million messages of 8 B a second

/// As via bench asks: messages of both ways have two buffers at either end in turn. Between two
/// uses of a buffer as much memory is used one way with four of them. Caches have seen them before.
double one_way_us(Bench& bench, std::int64_t size) {
    Question question;
    question.size = size;
    question.buffers = 4;
    question.warm = 8;
    return bench.one_way(bench.trial(), question).mean_ns / 1e3;
}

class SoftwareRows : Figures {
public:
    SoftwareRows(const Machine& machine, const Without& without) : bench_(machine, without) {}

    Rows all() {
        for (const auto& [size, us] : measured_latencies) {
            const bool held = size > 8;
            add_figure(("latency, " + std::to_string(size) + " B").c_str(), us, "us",
                       "docs/benchmarks.md, latency, near", one_way_us(bench_, size), tolerance,
                       false, held ? "" : "all of a post is counted before its line goes", held);
        }
        constexpr std::int64_t small = 8;
        const double messages = bench_.rate_mb(bench_.trial(), small) / small;
        add_figure("rate, 8 B", measured_rate, "M/s", "docs/benchmarks.md, rate, near", messages,
                   tolerance, false,
                   "a receiver here waits for each line; the real one has several brought", false);
        for (const auto& [size, mb] : measured_streams)
            add_figure(("stream, " + std::to_string(size) + " B").c_str(), mb, "MB/s",
                       "docs/benchmarks.md, goals, near", stream_mb(size), tolerance, false,
                       "16 MB of buffers on either side may come from memory: no limit that was "
                       "measured tells that rate",
                       false);
        if (error_) return std::unexpected(*error_);
        if (bench_.error()) return std::unexpected(*bench_.error());
        return take();
    }

private:
    /// Each message has another buffer, until 16 MB have been used, as via bench has it.
    double stream_mb(std::int64_t size) {
        Question question;
        question.size = size;
        question.buffers = (16 << 20) / size;
        question.stream_bytes = 64 << 20;
        const auto found = bandwidth(bench_.trial(), question);
        if (!found) error_ = found.error();
        return found ? found->bytes_per_second / 1e6 : 0;
    }

    std::optional<std::string> error_;
    Bench bench_;
};

class Ours : Asking {
public:
    std::expected<Answer, std::string> of(const Machine& machine) {
        const auto compared =
            agreements(machine, {std::begin(measured_latencies), std::end(measured_latencies)});
        if (!compared) return std::unexpected(compared.error());
        answer_ = {machine.name + ": one way, by the model and by via bench latency",
                   "bytes",
                   "us",
                   true,
                   {},
                   {}};
        Curve found{"via bench latency", {}, {}}, model{"the model", {}, {}};
        for (const Agreement& one : *compared) {
            for (Curve* curve : {&found, &model}) curve->x.push_back(one.size);
            found.y.push_back(one.measured_us);
            model.y.push_back(one.model_us);
            char text[64];
            std::snprintf(text, sizeof text, "%+.1f %% at ", one.percent());
            find(text + std::to_string(one.size) + " B");
        }
        find(sentence_of(*compared));
        add(std::move(found));
        add(std::move(model));
        return take();
    }
};

}  // namespace

bool Agreement::agrees() const { return std::abs(percent()) <= tolerance * 100; }

std::expected<std::vector<Agreement>, std::string> agreements(
    const Machine& machine, const std::vector<std::pair<std::int64_t, double>>& measured) {
    Bench bench(machine);
    std::vector<Agreement> compared;
    compared.reserve(measured.size());
    for (const auto& [size, us] : measured) compared.push_back({size, us, one_way_us(bench, size)});
    if (bench.error()) return std::unexpected(*bench.error());
    return compared;
}

std::string sentence_of(const std::vector<Agreement>& compared) {
    std::string sizes;
    for (const Agreement& one : compared)
        if (one.agrees()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(one.size);
    const std::string within =
        std::to_string(static_cast<int>(std::lround(tolerance * 100))) + " %";
    if (sizes.empty()) return "The model agrees within " + within + " at no size.";
    return "The model agrees within " + within + " at " + sizes + " B.";
}

std::expected<Answer, std::string> ask_ours(const Machine& machine, std::uint32_t) {
    if (!machine.has(Has::software))
        return std::unexpected(machine.name + " is not our own NIC; --machine shm is");
    return Ours().of(machine);
}

Rows shm_rows(const Machine& machine, const Without& without) {
    return SoftwareRows(machine, without).all();
}

}  // namespace via::lab::study

// The figures of dynamic handle look-up (paper 001), each measured anew: what memory it spares, and
// what a miss costs. What programs miss is another study's (traces).
#include <array>

#include "lab/study/bench.hpp"
#include "lab/study/figures.hpp"
#include "lab/study/handles.hpp"

namespace via::lab::study {
namespace {

constexpr std::array<std::int64_t, 5> shares = {0, 25, 50, 75, 100};

class Handles : Figures {
public:
    Handles(const Machine& machine, const Without& without) : bench_(machine, without) {}

    Rows all() {
        memory();
        service();
        latency_and_bandwidth();
        if (bench_.error()) return std::unexpected(*bench_.error());
        if (error_) return std::unexpected(*error_);
        return take();
    }

private:
    static constexpr std::int64_t registered = 256 << 20;

    /// KB of look-ups: pages alone, or all.
    double kilobytes(std::string_view words, bool pages_alone) {
        Trial trial = bench_.trial(words);
        trial.load.registered = registered;
        const auto made = design::make(trial.machine, trial.design, trial.load);
        if (!made) {
            error_ = made.error();
            return 0;
        }
        const std::int64_t pages = made->translation->nic_memory(trial.load);
        const std::int64_t others = pages_alone ? 0 : made->lookups_memory(trial.load);
        return static_cast<double>(pages + others) / 1024;
    }
    void memory() {
        constexpr const char* fixed = "at=2,cbh=static,pch=static";
        constexpr double rest = 280;  // code and buffers: 800 - 520 KB
        add_figure("table of pages on the NIC, 256 MB registered", 256, "KB", "V.C: more than",
                   kilobytes("at=2", true), 0.05);
        add_figure("cache of pages, C16 L64 A4", 75, "KB", "V.C: about", kilobytes("", true), 0.1);
        const double whole = kilobytes(fixed, false);
        const double cached = kilobytes("", false);
        add_figure("all look-ups, static", 520, "KB", "V.A", whole, 0.01, true,
                   "by the number of buffers, which the paper does not say");
        add_figure("all look-ups, dynamic", 130, "KB", "V.A", cached, 0.2, false,
                   "how large the caches of buffers and processes are it does not say");
        add_figure("of them less", 75, "%", "V.A", (1 - cached / whole) * 100, 0.1);
        add_figure("the NIC's memory in all, static", 800, "KB", "V.A", whole + rest, 0.01, true);
        add_figure("the NIC's memory in all, dynamic", 400, "KB", "V.A", cached + rest, 0.1);
    }

    MissAnswer ask(std::string_view words, std::int64_t size, std::int64_t percent) {
        MissQuestion question;
        question.size = size;
        question.percent = percent;
        const auto found = misses(bench_.trial(words), question);
        if (!found) error_ = found.error();
        return found.value_or(MissAnswer{});
    }
    void service() {
        const auto shortest = ask("line=8", 4, 100).counts;
        const double least =
            static_cast<double>(shortest.serving_ns) / 1e3 /
            static_cast<double>(std::max<std::uint64_t>(shortest.miss_interrupts, 1));
        const double most =
            static_cast<double>(ask("line=128", 4, 10).counts.serving_most_ns) / 1e3;
        add({"a miss takes the thread, from lines of 8, pinned, to 128, not", "5 to 500 us (V.C)",
             text_of(least, "to ") + text_of(most, "us"), "", "within it", false,
             least >= 5 && most <= 500 && most > 10 * least, true,
             "the costs of pinning are those of 003's Locked Memory Manager"});
    }

    /// How far the middle ones are off the line through the first and the last, of its rise.
    double bend_of(const std::array<double, 5>& values) {
        double bend = 0;
        for (std::size_t n = 1; n + 1 < values.size(); ++n) {
            const double part = static_cast<double>(n) / static_cast<double>(values.size() - 1);
            const double line = values.front() + (values.back() - values.front()) * part;
            bend = std::max(bend, std::abs(values[n] - line) / (values.back() - values.front()));
        }
        return bend;
    }
    void latency_and_bandwidth() {
        std::array<double, 5> small{}, page{}, large{};
        for (std::size_t n = 0; n < shares.size(); ++n) {
            small[n] = ask("", 4, shares[n]).latency_us;
            page[n] = ask("", 4096, shares[n]).latency_us;
            large[n] = ask("", 65536, shares[n]).latency_us;
        }
        const double bend = std::max(bend_of(small), bend_of(large)) * 100;
        add({"latency rises linearly with the share that misses", "figure 4, V.B",
             text_of(bend, "% off a line"), "", "10 %", false, bend < 10, true,
             "4 B: " + text_of(small[0], "to ") + text_of(small[4], "us")});
        const double rise_small = small[4] - small[0];
        const double rise_large = large[4] - large[0];
        add({"a miss costs 64 KB more than 4 B", "figure 4, V.B: by retransmission",
             text_of(rise_large / rise_small, "times"), "", "the sign", false,
             rise_large > rise_small, true,
             text_of(rise_small, "us and ") + text_of(rise_large, "us of half a round trip")});
        // The paper's is a ping-pong for both: bytes of half a round trip, by its time.
        const double left = page[0] / page[4] * 100;
        add({"bandwidth falls rapidly: of 4 KB's is left where all miss",
             "figure 4, V.B: no number", text_of(left, "%"), "", "less than half", false, left < 50,
             true, text_of(page[0] / page[1] * 100, "% where a quarter misses")});
        const double lost_page = 4096 / page[0] - 4096 / page[4];
        const double lost_large = 65536 / large[0] - 65536 / large[4];
        add({"bandwidth lost where all miss: 64 KB more than 4 KB", "figure 4, V.B",
             text_of(lost_large / lost_page, "times"), "", "the sign", false,
             lost_large > lost_page, true,
             text_of(lost_page, "MB/s and ") +
                 text_of(lost_large, "MB/s; of what there was, less")});
    }

    Bench bench_;
    std::optional<std::string> error_;
};

}  // namespace

Rows mini_rows(const Machine& machine, const Without& without) {
    return Handles(machine, without).all();
}

}  // namespace via::lab::study

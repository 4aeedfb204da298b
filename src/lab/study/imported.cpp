// Questions about machines with a window into other hosts' memory: which protocol for which length
// of message, and what leaves the processor more time.
#include <algorithm>
#include <array>
#include <utility>

#include "lab/study/bench.hpp"
#include "lab/study/figures.hpp"
#include "lab/study/inquiry.hpp"
#include "lab/study/passing.hpp"
#include "lab/study/storing.hpp"

namespace via::lab::study {
namespace {

constexpr std::int64_t sizes_from = 64;
constexpr std::int64_t sizes_to = 262144;
constexpr std::int64_t switch_step = 16;  // to which switch points are found

// Defaults of via::MessageChannel, made for one host of today.
constexpr std::int64_t layer_stores_max = 8176;
constexpr std::int64_t layer_message_max = 32768;

std::unexpected<std::string> no_window(const Machine& machine) {
    return std::unexpected(machine.name +
                           " imports no memory: its parts have no window; ask of --machine sci");
}

class Protocols : Asking {
public:
    explicit Protocols(const Machine& machine)
        : trial_{machine, machine.design, {1, 1 << 20}, {}} {}

    std::expected<Answer, std::string> all() {
        answer_ = {trial_.machine.name + ": a message and its answer, by CHEMPI and by our layer",
                   "bytes",
                   "MB/s",
                   false,
                   {},
                   {}};
        draw("CHEMPI, ", chempi_ways());
        draw("layer, ", layer_ways());
        switches("CHEMPI, memory registered before: ", chempi_ways(), false);
        switches("CHEMPI, each message's memory registered: ", chempi_ways(), true);
        switches("The message layer, memory registered before: ", layer_ways(), false);
        switches("The message layer, each message's memory registered: ", layer_ways(), true);
        defaults();
        return take();
    }

private:
    double us(const Way& way, std::int64_t size, bool registers) {
        const auto found = passing_ns(trial_, way, size, registers);
        if (!found) refusal_ = found.error();
        return found.value_or(1e18) / 1e3;
    }
    void draw(const char* whose, std::span<const Way> ways) {
        for (const Way& way : ways) {
            Curve curve{whose + std::string(way.name), {}, {}};
            for (std::int64_t size = sizes_from; size <= sizes_to; size *= 4) {
                curve.x.push_back(size);
                curve.y.push_back(static_cast<double>(size) / us(way, size, false));
            }
            add(std::move(curve));
        }
    }
    std::size_t fastest(std::span<const Way> ways, std::int64_t size, bool registers) {
        std::size_t best = 0;
        double least_us = us(ways[0], size, registers);
        for (std::size_t n = 1; n < ways.size(); ++n) {
            const double other = us(ways[n], size, registers);
            if (other < least_us) best = n;
            least_us = std::min(least_us, other);
        }
        return best;
    }
    /// Which way is the fastest up to where, of a curve looked at in powers of two.
    void switches(const char* whose, std::span<const Way> ways, bool registers) {
        std::vector<bool> won(ways.size());
        std::size_t now = fastest(ways, sizes_from, registers);
        won[now] = true;
        std::string sentence = whose + std::string(ways[now].name);
        for (std::int64_t size = 2 * sizes_from; size <= sizes_to; size *= 2) {
            const std::size_t next = fastest(ways, size, registers);
            if (next == now) continue;
            const std::int64_t turn = first_where(
                size / 2, size,
                [&](std::int64_t at) { return fastest(ways, at, registers) != now; }, switch_step);
            now = next;
            won[now] = true;
            sentence += " below " + std::to_string(turn) + " B, " + std::string(ways[now].name);
        }
        sentence += " up to the end";
        for (std::size_t n = 0; n < ways.size(); ++n)
            if (!won[n]) sentence += "; " + std::string(ways[n].name) + " is nowhere the fastest";
        find(sentence + ".");
    }
    void defaults() {
        const auto ways = layer_ways();
        for (const auto& [size, way] : {std::pair{layer_stores_max, 0}, {layer_message_max, 1}}) {
            const double taken = us(ways[static_cast<std::size_t>(way)], size, false);
            const double best = us(ways[fastest(ways, size, false)], size, false);
            find("Its defaults, made for one host of today, take " + text_of(taken, "us") +
                 " for " + std::to_string(size) + " B here, the fastest way " +
                 text_of(best, "us") + ".");
        }
    }

    Trial trial_;
};

class Processor : Asking {
public:
    explicit Processor(const Machine& machine)
        : trial_{machine, machine.design, {1, 1 << 20}, {}} {}

    std::expected<Answer, std::string> all() {
        answer_ = {trial_.machine.name + ": the processor's time while DMA would move the bytes",
                   "bytes",
                   "us left",
                   true,
                   {},
                   {}};
        draw("by DMA, as 003 reckons", left_as_reckoned, &Left::by_dma_ns);
        draw("by stores, as 003 reckons", left_as_reckoned, &Left::by_stores_ns);
        draw("by DMA, its start counted", left, &Left::by_dma_ns);
        draw("by stores, buffers drain", left, &Left::by_stores_ns);
        from("As 003 reckons", left_as_reckoned);
        from("With the start of DMA counted, and with buffers that drain by themselves", left);
        return take();
    }

private:
    template <class Reckon>
    void draw(const char* name, Reckon reckon, double Left::* which) {
        Curve curve{name, {}, {}};
        for (std::int64_t size = sizes_from; size <= 4096; size *= 2) {
            const auto found = reckon(trial_, size);
            if (!found) {
                refusal_ = found.error();
                continue;
            }
            curve.x.push_back(size);
            curve.y.push_back(*found.*which / 1e3);
        }
        add(std::move(curve));
    }
    template <class Reckon>
    void from(const char* how, Reckon reckon) {
        const std::int64_t size = dma_leaves_more_from(trial_, reckon);
        find(std::string(how) + ", DMA leaves the processor more time " +
             (size == 0 ? "nowhere up to 64 KB." : "from " + std::to_string(size) + " B on."));
    }

    Trial trial_;
};

}  // namespace

std::expected<Answer, std::string> ask_protocols(const Machine& machine, std::uint32_t) {
    if (!machine.has(Has::window)) return no_window(machine);
    return Protocols(machine).all();
}
std::expected<Answer, std::string> ask_processor(const Machine& machine, std::uint32_t) {
    if (!machine.has(Has::window)) return no_window(machine);
    return Processor(machine).all();
}

}  // namespace via::lab::study

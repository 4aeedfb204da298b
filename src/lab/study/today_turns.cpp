// Which conclusions of the papers hold on a machine of today, and at which value of which of its
// costs each one turns over.
#include <algorithm>
#include <array>
#include <cstdio>

#include "lab/study/inquiry.hpp"

namespace via::lab::study {
namespace {

/// One design was found better than another one; one cost decides most of it.
struct Conclusion {
    const char* name;
    const char* paper;
    std::string_view better;  ///< words of a design
    std::string_view worse;
    std::int64_t Costs::* cost;
    const char* key;
    std::int64_t vis = 1;
    std::int64_t queues = 1;
    std::int64_t size = 4;
    std::int64_t spread = 0;
};

constexpr std::int64_t everywhere = std::int64_t{1} << 30;

constexpr std::array conclusions = {
    Conclusion{"for 128 VIs a central queue in the kernel, not a polled doorbell each",
               "000 section 6.2.3", "at=2,doorbell=d2", "at=2,doorbell=d1,slots=1",
               &Costs::doorbell_poll, "firmware.doorbell_poll", 128},
    Conclusion{"addresses by the kernel, not by a cache on the NIC where it misses",
               "000 section 6.2.1", "at=1", "at=3", &Costs::dma_start_to_nic, "dma.start_to_nic", 1,
               1, 4, everywhere},
    Conclusion{"work queues are polled up to 20 of them, no entries are written",
               "000 sections 5.5, 6.2.4", "cq=2", "cq=1", &Costs::user_poll, "host.user_poll", 1,
               16},
    Conclusion{"descriptors are written to the NIC, not fetched by it", "000 section 6.2.2",
               "at=2,doorbell=register,descriptors=cached",
               "at=2,doorbell=register,descriptors=fetched", &Costs::dma_start_to_nic,
               "dma.start_to_nic"},
    Conclusion{"16 B of payload by programmed I/O, not by DMA", "000 section 7.1.2",
               "at=2,payload=pio,pio=16", "at=2,payload=dma", &Costs::pio_write, "host.pio_write",
               1, 1, 16},
    Conclusion{"128 B of payload by DMA, not by programmed I/O", "000 section 7.1.2",
               "at=2,payload=dma", "at=2,payload=pio,pio=128", &Costs::pio_write, "host.pio_write",
               1, 1, 128},
    Conclusion{"no descriptors at all: the doorbell names the buffer", "002 section 5.2",
               "at=pinned,descriptors=token,payload=dma",
               "at=pinned,descriptors=fetched,payload=dma", &Costs::dma_start_to_nic,
               "dma.start_to_nic"},
    Conclusion{"a small payload behind its descriptor, fetched with it", "002 section 5.2",
               "at=pinned,descriptors=fetched,payload=merged,pio=64",
               "at=pinned,descriptors=fetched,payload=dma", &Costs::dma_start_to_nic,
               "dma.start_to_nic"},
    Conclusion{"a miss asks a thread of the host, no DMA looks into its tables", "001 section IV",
               "at=dynamic,miss=hold,line=1", "at=3", &Costs::miss_delay, "miss.delay", 1, 1, 4,
               everywhere},
};

class Turns : Asking {
public:
    Turns(const Machine& machine, std::uint32_t rounds) : machine_(machine), rounds_(rounds) {}

    std::expected<Answer, std::string> all() {
        answer_ = {machine_.name + ": what the papers found better, by what they found worse",
                   "% of one cost's value",
                   "time of one by the other",
                   true,
                   {},
                   {}};
        for (const Conclusion& one : conclusions) add_curve(one);
        for (const Conclusion& one : conclusions) judge(one);
        return take();
    }

private:
    /// Of the times of a message, the better one's part of the worse one's; with another cost.
    std::optional<double> ratio(const Conclusion& one, std::int64_t cost) {
        const auto better = time(one, one.better, cost), worse = time(one, one.worse, cost);
        if (!better || !worse) return std::nullopt;
        return *better / *worse;
    }
    std::optional<double> time(const Conclusion& one, std::string_view words, std::int64_t cost) {
        Trial trial = trial_of(machine_, words, one.vis);
        trial.machine.costs.*(one.cost) = cost;
        Question question;
        question.queues = one.queues;
        question.rounds = rounds_;
        question.size = one.size;
        question.spread = one.spread;
        return us(trial, question);
    }
    void add_curve(const Conclusion& one) {
        Curve curve{std::string(one.paper) + ": " + one.key, {}, {}};
        const std::int64_t own = machine_.costs.*(one.cost);
        for (const std::int64_t percent : {1, 10, 30, 100, 300, 1000, 10000}) {
            const auto found = ratio(one, std::max<std::int64_t>(own * percent / 100, 1));
            if (!found) continue;
            curve.x.push_back(percent);
            curve.y.push_back(*found);
        }
        add(std::move(curve));
    }
    void judge(const Conclusion& one) {
        const std::int64_t own = machine_.costs.*(one.cost);
        const auto now = ratio(one, own);
        const std::string head = std::string(one.name) + " (" + one.paper + "): ";
        if (!now) return find(head + "cannot be here: " + refusal_);
        char text[96];
        std::snprintf(text, sizeof text, "%s, %.2f times the other's time; ",
                      *now < 1 ? "holds" : "turned over", *now);
        find(head + text + turn(one, own, *now < 1) + ".");
    }
    /// Where it would be otherwise, upwards or downwards.
    std::string turn(const Conclusion& one, std::int64_t own, bool holds) {
        const auto other = [&](std::int64_t cost) {
            const auto found = ratio(one, cost);
            return found && (*found < 1) != holds;
        };
        std::string other_way = holds ? "turns over" : "holds";
        const std::int64_t most = own * 1000, step = std::max<std::int64_t>(own / 50, 1);
        if (other(most)) {
            const std::int64_t from = first_where(own, most, other, step);
            return other_way + " from " + one.key + " = " + std::to_string(from) + " ns on, here " +
                   std::to_string(own);
        }
        if (other(1)) {
            std::int64_t low = 1, high = own;  // at low it is otherwise
            while (high - low > step) {
                const std::int64_t middle = (low + high) / 2;
                (other(middle) ? low : high) = middle;
            }
            return other_way + " up to " + one.key + " = " + std::to_string(low) + " ns, here " +
                   std::to_string(own);
        }
        return std::string("at no value of ") + one.key + " otherwise";
    }

    const Machine& machine_;
    std::uint32_t rounds_;
};

}  // namespace

std::expected<Answer, std::string> ask_turns(const Machine& machine, std::uint32_t rounds) {
    return Turns(machine, rounds).all();
}

}  // namespace via::lab::study

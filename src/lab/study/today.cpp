#include "lab/study/today.hpp"

#include <array>
#include <cstdio>

#include "lab/study/inquiry.hpp"

namespace via::lab::study {
namespace {

std::string us_text(double us) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f us", us);
    return text;
}

constexpr std::array<Proposal, 4> doorbells = {
    {{"d1: each VI's word is polled", "at=2,doorbell=d1,slots=1"},
     {"d2: central queue, by the kernel", "at=2,doorbell=d2"},
     {"bitmap: 32 VIs a word", "at=2,doorbell=bitmap"},
     {"register: a queue in hardware", "at=2,doorbell=register"}}};

class Doorbells : Asking {
public:
    Doorbells(const Machine& machine, std::uint32_t rounds) : machine_(machine), rounds_(rounds) {}

    std::expected<Answer, std::string> all() {
        answer_ = {machine_.name + ": doorbells, 4 B one way", "VIs", "us", true, {}, {}};
        for (const Proposal& one : doorbells) {
            Curve curve{one.name, {}, {}};
            for (std::int64_t vis = 1; vis <= most; vis *= 4) {
                const auto found = at(one, vis);
                if (!found) continue;
                curve.x.push_back(vis);
                curve.y.push_back(*found);
            }
            add(std::move(curve));
        }
        overtaken(doorbells[0], doorbells[1]);
        overtaken(doorbells[0], doorbells[3]);
        overtaken(doorbells[2], doorbells[1]);
        overtaken(doorbells[2], doorbells[3]);
        return take();
    }

private:
    static constexpr std::int64_t most = 4096;

    std::optional<double> at(const Proposal& one, std::int64_t vis) {
        Question question;
        question.rounds = rounds_;
        return us(trial_of(machine_, one.words, vis), question);
    }
    void overtaken(const Proposal& first, const Proposal& second) {
        const auto slower = [&](std::int64_t vis) {
            const auto one = at(first, vis), other = at(second, vis);
            return other && (!one || *one > *other);
        };
        const std::string names = std::string(first.name) + ", loses to " + second.name;
        if (slower(1)) return find(names + " everywhere.");
        if (!slower(most)) return find(names + " nowhere up to 4096 VIs.");
        find(names + " from " + std::to_string(first_where(1, most, slower)) + " VIs on.");
    }

    const Machine& machine_;
    std::uint32_t rounds_;
};

constexpr std::array<Proposal, 4> translations = {{{"AT1: by the kernel", "at=1"},
                                                   {"AT2: a table on the NIC", "at=2"},
                                                   {"AT3: the NIC's cache", "at=3"},
                                                   {"AT3, 32 entries", "at=3,cache=32,ways=4"}}};

/// 64 GB are registered, and each message's page is drawn from all of them.
class Translations : Asking {
public:
    Translations(const Machine& machine, std::uint32_t rounds)
        : machine_(machine), rounds_(rounds) {}

    std::expected<Answer, std::string> all() {
        answer_ = {machine_.name + ": 64 GB registered, 4 KB from a page anywhere, one way",
                   "bytes of a page",
                   "us",
                   false,
                   {},
                   {}};
        for (const Proposal& one : translations) {
            Curve curve{one.name, {}, {}};
            for (std::int64_t page = 4096; page <= largest; page *= 512) {
                const auto found = at(one, page);
                if (!found) continue;
                curve.x.push_back(page);
                curve.y.push_back(*found);
            }
            add(std::move(curve));
        }
        table_fits();
        cache_wins();
        return take();
    }

private:
    static constexpr std::int64_t registered = std::int64_t{64} << 30;
    static constexpr std::int64_t largest = 1 << 30;

    std::optional<double> at(const Proposal& one, std::int64_t page) {
        Trial trial = trial_of(machine_, one.words, 1);
        trial.machine.costs.page = page;
        trial.load.registered = registered;
        Question question;
        question.size = 4096;
        question.rounds = rounds_;
        question.spread = registered;
        question.warm = warm_;
        return us(trial, question);
    }
    void table_fits() {
        for (std::int64_t page = 4096; page <= largest; page *= 2) {
            Trial trial = trial_of(machine_, translations[1].words, 1);
            trial.machine.costs.page = page;
            trial.load.registered = registered;
            if (!design::make(trial.machine, adapter_words(trial), trial.load)) continue;
            const std::int64_t kilobytes = registered / page * 4 / 1024;
            return find("AT2's table fits the NIC from pages of " + std::to_string(page / 1024) +
                        " KB on, where it takes " + std::to_string(kilobytes) + " KB.");
        }
        find("AT2's table fits the NIC at no size of pages.");
    }
    void cache_wins() {
        for (std::int64_t page = 4096; page <= largest; page *= 512) {
            const auto by_kernel = at(translations[0], page), by_cache = at(translations[2], page);
            if (by_kernel && by_cache)
                find("At pages of " + std::to_string(page / 1024) + " KB the kernel's way takes " +
                     us_text(*by_kernel) + ", that of the NIC's cache " + us_text(*by_cache) + ".");
        }
    }

    const Machine& machine_;
    std::uint32_t rounds_;
    std::uint32_t warm_ = 64 * rounds_;  ///< caches have seen so many messages before
};

constexpr std::array<Proposal, 3> completions = {{{"CQ1: status and entry", "cq=1"},
                                                  {"CQ2: each work queue is polled", "cq=2"},
                                                  {"CQ3: entry alone", "cq=3"}}};

class Queues : Asking {
public:
    Queues(const Machine& machine, std::uint32_t rounds) : machine_(machine), rounds_(rounds) {}

    std::expected<Answer, std::string> all() {
        answer_ = {machine_.name + ": 4 B one way to one of many VIs with one completion queue",
                   "work queues",
                   "us",
                   true,
                   {},
                   {}};
        for (const Proposal& one : completions) {
            Curve curve{one.name, {}, {}};
            for (const std::int64_t queues : {1, 4, 16, 64, 256, 1000}) {
                const auto found = at(one, queues);
                if (!found) continue;
                curve.x.push_back(queues);
                curve.y.push_back(*found);
            }
            add(std::move(curve));
        }
        polled_loses(completions[0]);
        polled_loses(completions[2]);
        return take();
    }

private:
    std::optional<double> at(const Proposal& one, std::int64_t queues) {
        Question question;
        question.queues = queues;
        question.rounds = rounds_;
        return us(trial_of(machine_, one.words, 1), question);
    }
    void polled_loses(const Proposal& other) {
        const auto slower = [&](std::int64_t queues) {
            const auto polled = at(completions[1], queues), written = at(other, queues);
            return polled && written && *polled > *written;
        };
        const std::string names = std::string("CQ2 loses to ") + other.name;
        if (slower(1)) return find(names + ", everywhere.");
        if (!slower(1000)) return find(names + ", nowhere up to 1000 work queues.");
        find(names + ", from " + std::to_string(first_where(1, 1000, slower)) + " work queues on.");
    }

    const Machine& machine_;
    std::uint32_t rounds_;
};

constexpr Inquiry all_inquiries[] = {
    {"doorbells", "which doorbell, up to 4,096 VIs", ask_doorbells},
    {"translation", "which translation, with 64 GB registered", ask_translation},
    {"queues", "which completion queue, up to 1,000 VIs", ask_queues},
    {"interrupt", "polling or sleeping until an interrupt, under load", ask_interrupt},
    {"incast", "256 KB from each of up to 8 hosts to one", ask_incast},
    {"protocols", "which protocol for which message (--machine sci)", ask_protocols},
    {"processor", "stores or DMA: what leaves a processor more time (--machine sci)",
     ask_processor},
    {"turns", "which of the papers' conclusions hold, and what would turn them", ask_turns},
    {"ours", "at which sizes the model of our own NIC (shm) is what via bench measures", ask_ours},
};

}  // namespace

std::span<const Inquiry> inquiries() { return all_inquiries; }

std::expected<Answer, std::string> ask_doorbells(const Machine& machine, std::uint32_t rounds) {
    return Doorbells(machine, rounds).all();
}
std::expected<Answer, std::string> ask_translation(const Machine& machine, std::uint32_t rounds) {
    return Translations(machine, rounds).all();
}
std::expected<Answer, std::string> ask_queues(const Machine& machine, std::uint32_t rounds) {
    return Queues(machine, rounds).all();
}

}  // namespace via::lab::study

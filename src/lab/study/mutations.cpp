#include "lab/study/mutations.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace via::lab::study {
namespace {

constexpr Mechanism all_mechanisms[] = {
    {"page-boundaries", "packets cross pages", &Without::page_boundaries, Has::adapter},
    {"fifo-end", "the Send-FIFO holds everything", &Without::fifo_end, Has::adapter},
    {"refills", "the NIC never asks for descriptors", &Without::refills, Has::adapter},
    {"missed-looks", "the firmware waits for a DMA instead of going round", &Without::missed_looks,
     Has::adapter},
    {"leaving", "a send is over before its last packet has left", &Without::leaving, Has::adapter},
    {"staging", "no packet has to be whole on the NIC before it goes on", &Without::staging,
     Has::adapter},
    {"misses", "every translation is found on the NIC", &Without::misses, Has::adapter},
    {"copies", "the kernel copies nothing", &Without::copies, Has::anything},
    {"cache-end", "processors' caches hold everything", &Without::cache_end, Has::software},
    {"locks", "a second processor makes no lock more expensive", &Without::locks, Has::kernel},
    {"interrupts", "packets come to the kernel without one", &Without::interrupts, Has::kernel},
    {"sleeping", "who waits is never asleep", &Without::sleeping, Has::kernel},
    {"combining", "each word that is stored into a window is a burst", &Without::combining,
     Has::window},
    {"barriers", "stores into a window are in order by themselves", &Without::barriers,
     Has::window},
};

void note_changes(const Mechanism& mechanism, const Machine& machine,
                  const std::vector<Row>& before, const std::vector<Row>& after,
                  std::vector<Change>& changes) {
    for (std::size_t n = 0; n < before.size(); ++n) {
        if (before[n].reproduced && before[n].ours != after[n].ours)
            changes.push_back(
                {mechanism.name, machine.name, before[n], after[n].ours, after[n].reproduced});
    }
}

/// In the order of the mechanisms; of one that some rows depend on, those alone.
std::vector<Change> by_mechanism(std::vector<Change> changes) {
    std::vector<Change> result;
    for (const Mechanism& mechanism : all_mechanisms) {
        const auto is_of = [&](const Change& one) { return one.mechanism == mechanism.name; };
        const bool some_broke = std::ranges::any_of(
            changes, [&](const Change& one) { return is_of(one) && !one.reproduced; });
        std::ranges::copy_if(changes, std::back_inserter(result), [&](const Change& one) {
            return is_of(one) && one.reproduced != some_broke;
        });
    }
    return result;
}

}  // namespace

std::span<const Mechanism> mechanisms() { return all_mechanisms; }

std::expected<std::vector<Change>, std::string> changes_without(std::span<const Mechanism> taken,
                                                                std::span<const Machine> machines) {
    std::vector<Change> changes;
    for (const Machine& machine : machines) {
        const auto applies = [&](const Mechanism& one) { return machine.has(one.of); };
        if (std::ranges::none_of(taken, applies)) continue;
        const auto before = rows_of(machine);
        if (!before) return std::unexpected(machine.name + ": " + before.error());
        for (const Mechanism& mechanism : taken) {
            if (!applies(mechanism)) continue;
            Without without;
            without.*mechanism.place = true;
            const auto after = rows_of(machine, without);
            if (!after) {
                return std::unexpected(machine.name + " without " + std::string(mechanism.name) +
                                       ": " + after.error());
            }
            note_changes(mechanism, machine, *before, *after, changes);
        }
    }
    return by_mechanism(std::move(changes));
}

}  // namespace via::lab::study

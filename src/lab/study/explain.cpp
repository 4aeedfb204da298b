#include "lab/study/explain.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace via::lab::study {
namespace {

struct OneMessage {
    const Question& question;
    Cluster& cluster;
    Time begin{};
    Time end{};
    bool ended = false;

    Task<> run() {
        const Buffer buffer{question.offset, question.size};
        co_await cluster.station(1).post_receive(0, buffer);
        co_await cluster.schedule().sleep(microseconds(100));
        cluster.ledger().clear_entries();
        begin = cluster.schedule().now();
        co_await cluster.station(0).post_send(0, buffer, 1);
        co_await cluster.station(1).receive(0, question.queues);
        end = cluster.schedule().now();
        ended = true;
    }
};

bool same(const Entry& a, const Entry& b) {
    return a.resource == b.resource && a.start == b.start && a.end == b.end;
}

/// Words of a descriptor, or bursts of a DMA, that follow each other are one happening.
bool goes_on(const Happening& last, const Happening& next) {
    return last.what == next.what && last.share == next.share && last.end_ns == next.start_ns &&
           last.on_path == next.on_path &&
           (last.resource == next.resource || next.share == Share::pio);
}

void add(std::vector<Happening>& all, Happening next) {
    if (!all.empty() && goes_on(all.back(), next)) {
        all.back().end_ns = next.end_ns;
    } else {
        all.push_back(std::move(next));
    }
}

}  // namespace

std::expected<Explanation, std::string> explain(const Trial& trial, const Question& question) {
    auto made = Cluster::make(trial, 2, question.seed);
    if (!made) return std::unexpected(made.error());
    Cluster& cluster = **made;
    cluster.connect(1);
    cluster.ledger().record(true);
    OneMessage message{question, cluster};
    cluster.schedule().spawn(message.run());
    if (!cluster.schedule().run_until(message.ended, question.events_max))
        return std::unexpected("the message never arrived");
    const Ledger& ledger = cluster.ledger();
    const std::vector<Entry> path = ledger.path(1, message.begin, message.end);
    std::vector<Entry> entries = path;
    for (const Entry& entry : ledger.entries()) {
        const bool ours = entry.work.message == 1 && entry.start >= message.begin;
        const bool there =
            std::ranges::any_of(path, [&](const Entry& on) { return same(on, entry); });
        if (ours && !there && entry.start < message.end) entries.push_back(entry);
    }
    std::vector<std::tuple<Time, std::size_t>> ordered;  // equal starts: the path's first
    ordered.reserve(entries.size());
    for (std::size_t n = 0; n < entries.size(); ++n) ordered.emplace_back(entries[n].start, n);
    std::ranges::sort(ordered);
    Explanation result;
    result.size = question.size;
    result.total_ns = (message.end - message.begin).ns;
    std::map<std::string, std::int64_t> of_resource;
    for (const auto& [start, n] : ordered) {
        const Entry& entry = entries[n];
        const bool on_path = n < path.size();
        add(result.happenings,
            {(start - message.begin).ns, (entry.end - message.begin).ns,
             ledger.name_of(entry.resource), entry.work.share, entry.work.what, on_path});
        const bool waits = entry.work.share == Share::waiting;
        if (on_path && !waits)
            of_resource[ledger.name_of(entry.resource)] += (entry.end - entry.start).ns;
    }
    const auto parts = ledger.breakdown(1, message.begin, message.end);
    for (std::size_t share = 0; share < share_count; ++share)
        result.parts_ns[share] = parts[share].ns;
    const auto longest = std::ranges::max_element(
        of_resource, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (longest != of_resource.end()) result.longest = longest->first;
    return result;
}

}  // namespace via::lab::study

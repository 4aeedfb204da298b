#include "report/goals.hpp"

#include <algorithm>
#include <array>

#include "bench/channel.hpp"

namespace via::report {

namespace {

// Ours by the other's median, or, where more is better or we say "times faster", as that reads.
enum class Sense { at_most, at_least, times_faster };

struct Goal {
    std::string_view what;
    std::string_view run;  // the suite's question, which is the file's name
    std::string_view bench;
    std::uint64_t size;
    std::string_view against;  // a channel; "peers": the best of the others that send and receive
    Sense sense;
    std::optional<double> near, far;
};

constexpr std::uint64_t kilo = 1024;
constexpr std::string_view peers = "peers";

constexpr std::array<Goal, 21> goals{{
    {"8 B send/receive, to the line", "latency", "latency", 8, "line", Sense::at_most, 1.7, 1.0},
    {"8 B send/receive, ahead of every peer", "latency", "latency", 8, peers, Sense::at_most, 1.0,
     1.0},
    {"8 B RDMA write into an exported segment, polled memory", "latency-exported", "latency", 8,
     "put", Sense::at_most, 1.1, 1.1},
    {"4 KB one way, to two bare copies", "latency", "latency", 4 * kilo, "two-copy", Sense::at_most,
     0.9, 0.9},
    {"64 KB one way, times faster than the best peer", "latency", "latency", 64 * kilo, peers,
     Sense::times_faster, 1.5, 3.0},
    {"64 KB stream, of the best peer's", "bandwidth", "bandwidth", 64 * kilo, peers,
     Sense::at_least, 1.4, 3.0},
    {"1 MB stream, of the best peer's", "bandwidth", "bandwidth", kilo* kilo, peers,
     Sense::at_least, 1.4, 3.0},
    {"64 KB one way in one buffer, times faster than the best peer", "latency-reused", "latency",
     64 * kilo, peers, Sense::times_faster, 1.5, 3.0},
    {"64 KB stream in the same buffers, of the best peer's", "bandwidth-reused", "bandwidth",
     64 * kilo, peers, Sense::at_least, 1.4, 3.0},
    {"1 MB stream in the same buffers, of the best peer's", "bandwidth-reused", "bandwidth",
     kilo* kilo, peers, Sense::at_least, 1.4, 3.0},
    {"1 MB RDMA write into an exported segment, of memcpy", "bandwidth-exported", "bandwidth",
     kilo* kilo, "memcpy", Sense::at_least, 0.95, 0.95},
    {"8 B rate, posts one by one, of a bare queue", "rate", "rate", 8, "spsc", Sense::at_least,
     0.15, 0.15},
    {"8 B rate, vectored posts, of a bare queue", "rate-vectored", "rate", 8, "spsc",
     Sense::at_least, 0.25, 0.25},
    {"8 B rate, of the best peer's", "rate", "rate", 8, peers, Sense::at_least, 1.0, 1.0},
    {"8 B, another of 1,000 VIs each time, through a CQ, to one VI", "latency-1000-vis", "latency",
     8, "plain", Sense::at_most, 1.25, 1.25},
    {"8 B through a CQ, to the queue", "latency-cq", "latency", 8, "plain", Sense::at_most, 1.1,
     1.1},
    {"8 B rate through a CQ, of the queue's", "rate-cq", "rate", 8, "plain", Sense::at_least, 0.9,
     0.9},
    // A wait of ours looks for a while before it sleeps; the others' calls sleep at once.
    {"8 B by waiting calls, to a bare futex", "latency-blocking", "latency", 8, "futex",
     Sense::at_most, 1.1, 1.1},
    {"8 B by waiting calls, ahead of every peer", "latency-blocking", "latency", 8, peers,
     Sense::at_most, 1.0, 1.0},
    {"8 B, one processor shared with a spinner, to the best peer", "latency-one-spinner", "latency",
     8, peers, Sense::at_most, 1.0, 1.0},
    {"8 B, both processors shared with spinners, to the best peer", "latency-two-spinners",
     "latency", 8, peers, Sense::at_most, 1.0, 1.0},
}};

// Whoever sends and receives, by the kernel or by a library: UCX's put has no receiver.
bool is_peer(const std::string& device) {
    const auto& channels = bench::known_channels();
    const auto at = std::find_if(channels.begin(), channels.end(),
                                 [&](const auto& info) { return info.name == device; });
    const bool others =
        at != channels.end() && (at->sort == bench::Sort::kernel || at->sort == bench::Sort::peer);
    return others && device != "ucx-put";
}

bool answers(const Figure& figure, const Goal& goal, std::string_view mode) {
    return figure.bench == goal.bench && figure.size == goal.size && figure.mode == mode;
}

const Figure* ours_in(const Run& run, const Goal& goal, std::string_view mode) {
    for (const Figure& figure : run.figures) {
        if (figure.ours && answers(figure, goal, mode)) return &figure;
    }
    return nullptr;
}

// Is it what ours was asked? Limits always poll; a peer that polls is none of who waits. The tools
// of some have one buffer, which stays in the caches: large messages are copied several times as
// fast there as in buffers that come in turn.
bool is_like(const Figure& peer, const Figure& ours, const Goal& goal) {
    return peer.asked("wait") == ours.asked("wait") &&
           (goal.size < 4 * kilo || peer.asked("reuse") == ours.asked("reuse"));
}

const Figure* other_in(const Run& run, const Goal& goal, std::string_view mode,
                       const Figure& ours) {
    const Figure* best = nullptr;
    for (const Figure& figure : run.figures) {
        if (figure.ours || !answers(figure, goal, mode)) continue;
        const bool fits = goal.against == peers
                              ? is_peer(figure.device) && is_like(figure, ours, goal)
                              : figure.device == goal.against;
        if (!fits) continue;
        const bool better =
            best == nullptr ||
            (figure.more_is_better() ? figure.median > best->median : figure.median < best->median);
        if (better) best = &figure;
    }
    return best;
}

std::string figure_text(const Figure& figure) {
    return fmt::format("{:.4g} {}", figure.median, figure.unit);
}

GoalRow row_of(const std::vector<Run>& runs, const Goal& goal, std::string_view mode,
               std::optional<double> bound) {
    GoalRow row;
    row.what = goal.what;
    row.mode = mode;
    if (bound) {
        row.goal =
            fmt::format("at {} {:.2f}", goal.sense == Sense::at_most ? "most" : "least", *bound);
    }
    const auto run = std::find_if(runs.begin(), runs.end(),
                                  [&](const Run& one) { return one.name == goal.run; });
    if (run == runs.end()) return row;
    const Figure* ours = ours_in(*run, goal, mode);
    const Figure* other = ours == nullptr ? nullptr : other_in(*run, goal, mode, *ours);
    if (ours != nullptr) row.ours = figure_text(*ours);
    if (other != nullptr) row.other = fmt::format("{} {}", other->device, figure_text(*other));
    if (ours == nullptr || other == nullptr || ours->median <= 0 || other->median <= 0) return row;
    row.measured = goal.sense == Sense::times_faster ? other->median / ours->median
                                                     : ours->median / other->median;
    if (!bound) {
        row.reached = Reached::no_goal;
        return row;
    }
    const bool good =
        goal.sense == Sense::at_most ? *row.measured <= *bound : *row.measured >= *bound;
    row.reached = good ? Reached::yes : Reached::no;
    return row;
}

}  // namespace

std::string_view name_of(Reached reached) {
    switch (reached) {
        case Reached::yes:
            return "yes";
        case Reached::no:
            return "no";
        case Reached::inconclusive:
            return "inconclusive";
        case Reached::no_goal:
            return "(no goal)";
    }
    return "?";
}

std::vector<GoalRow> goals_of(const std::vector<Run>& runs) {
    std::vector<GoalRow> rows;
    for (const Goal& goal : goals) {
        rows.push_back(row_of(runs, goal, "near", goal.near));
        rows.push_back(row_of(runs, goal, "far", goal.far));
        const bool nothing = !rows[rows.size() - 2].measured && !rows.back().measured;
        GoalRow between = row_of(runs, goal, "between", std::nullopt);
        if (nothing && between.measured) rows.push_back(std::move(between));
    }
    return rows;
}

std::vector<std::string> goal_head() {
    return {"what", "mode", "ours", "other", "measured", "goal", "reached"};
}

std::vector<std::string> cells_of(const GoalRow& row) {
    const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
    return {row.what,
            row.mode,
            or_dash(row.ours),
            or_dash(row.other),
            row.measured ? fmt::format("{:.2f}", *row.measured) : "-",
            or_dash(row.goal),
            std::string(name_of(row.reached))};
}

std::string text_of(const std::vector<GoalRow>& rows) {
    std::vector<std::vector<std::string>> lines{goal_head()};
    for (const GoalRow& row : rows) lines.push_back(cells_of(row));
    std::vector<std::size_t> widths(lines.front().size());
    for (const auto& line : lines) {
        for (std::size_t i = 0; i < line.size(); ++i) {
            widths[i] = std::max(widths[i], line[i].size());
        }
    }
    std::string text;
    for (const auto& line : lines) {
        std::string shown;
        for (std::size_t i = 0; i < line.size(); ++i) {
            shown += fmt::format("{:<{}}  ", line[i], widths[i]);
        }
        text += shown.substr(0, shown.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
}

}  // namespace via::report

#include "report/goals.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "bench/channel.hpp"
#include "table.hpp"

namespace via::report {

namespace {

// A row of goals.json.
struct Goal {
    std::string what, run, bench, against, sense;
    std::uint64_t size = 0;
    double near = 0, far = 0;
};

const std::vector<Goal>& goals() {
    static const std::vector<Goal> all = [] {
        std::vector<Goal> read;
        for (const auto& row : nlohmann::json::parse(goals_text, nullptr, true, true)) {
            Goal& goal = read.emplace_back();
            row.at("what").get_to(goal.what);
            row.at("run").get_to(goal.run);
            row.at("size").get_to(goal.size);
            row.at("against").get_to(goal.against);
            row.at("sense").get_to(goal.sense);
            row.at("near").get_to(goal.near);
            row.at("far").get_to(goal.far);
            goal.bench = goal.run.substr(0, goal.run.find('-'));
        }
        return read;
    }();
    return all;
}

// What sends and receives, by the kernel or by a library: UCX's put has no receiver.
bool is_peer(const std::string& device) {
    const auto& channels = bench::known_channels();
    const auto at = std::ranges::find(channels, device, &bench::ChannelInfo::name);
    return at != channels.end() && device != "ucx-put" &&
           (at->sort == bench::Sort::kernel || at->sort == bench::Sort::peer);
}

// Is it what ours was asked? Limits always poll; a peer that polls is none of those that wait. The
// tools of some have one buffer, which stays in the caches: large messages are copied several times
// as fast there as in buffers that come in turn.
bool is_like(const Figure& peer, const Figure& ours, const Goal& goal) {
    return peer.asked("wait") == ours.asked("wait") &&
           (goal.size < 4096 || peer.asked("reuse") == ours.asked("reuse"));
}

// Ours, or, beside it, the best of those that the goal is against.
const Figure* best_in(const Run& run, const Goal& goal, std::string_view mode, const Figure* ours) {
    const Figure* best = nullptr;
    for (const Figure& figure : run.figures) {
        if (figure.ours != (ours == nullptr) || figure.bench != goal.bench ||
            figure.size != goal.size || figure.mode != mode)
            continue;
        if (ours == nullptr) return &figure;
        const bool fits = goal.against == "peers"
                              ? is_peer(figure.device) && is_like(figure, *ours, goal)
                              : figure.device == goal.against;
        if (fits && (best == nullptr || figure.is_better_than(*best))) best = &figure;
    }
    return best;
}

std::string figure_text(const Figure& figure) {
    return fmt::format("{:.4g} {}", figure.median, figure.unit);
}

GoalRow row_of(const std::vector<Run>& runs, const Goal& goal, std::string_view mode,
               std::optional<double> bound) {
    const bool at_most = goal.sense == "at most";
    GoalRow row;
    row.what = goal.what;
    row.mode = mode;
    if (bound) row.goal = fmt::format("at {} {:.2f}", at_most ? "most" : "least", *bound);
    const auto run = std::ranges::find(runs, goal.run, &Run::name);
    if (run == runs.end()) return row;
    const Figure* ours = best_in(*run, goal, mode, nullptr);
    const Figure* other = ours == nullptr ? nullptr : best_in(*run, goal, mode, ours);
    if (ours != nullptr) row.ours = figure_text(*ours);
    if (other != nullptr) row.other = fmt::format("{} {}", other->device, figure_text(*other));
    if (other == nullptr || ours->median <= 0 || other->median <= 0) return row;
    row.measured =
        goal.sense == "times faster" ? other->median / ours->median : ours->median / other->median;
    const bool good = at_most ? *row.measured <= bound : *row.measured >= bound;
    row.reached = !bound ? "(no goal)" : good ? "yes" : "no";
    return row;
}

}  // namespace

std::vector<GoalRow> goals_of(const std::vector<Run>& runs) {
    std::vector<GoalRow> rows;
    for (const Goal& goal : goals()) {
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
            row.reached};
}

std::string text_of(const std::vector<GoalRow>& rows) {
    cli::Table table;
    table.add(goal_head());
    for (const GoalRow& row : rows) table.add(cells_of(row));
    return table.text(true);
}

}  // namespace via::report

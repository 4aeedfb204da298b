#include "report/compare.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/stats.hpp"

namespace via::report {

namespace {

constexpr double certain_below = 0.01;

constexpr std::array verdict_names{"noise", "faster", "SLOWER", "too few rounds"};

Change change_of(const Run& run, const Figure& before, const Figure& after, double tolerance) {
    Change change{run.name, &before, &after, 0, 1, Verdict::noise};
    if (before.median > 0) change.ratio = after.median / before.median;
    change.probability = chance_of(before.values, after.values);
    const bool large = std::abs(change.ratio - 1) > tolerance;
    if (std::min(before.values.size(), after.values.size()) < least_rounds) {
        change.verdict = Verdict::too_few;
    } else if (large && change.probability < certain_below) {
        const bool better = (change.ratio > 1) == before.more_is_better();
        change.verdict = better ? Verdict::faster : Verdict::slower;
    }
    return change;
}

const Run* run_like(const Run& wanted, const std::vector<Run>& wanted_in,
                    const std::vector<Run>& runs) {
    if (runs.size() == 1 && wanted_in.size() == 1) return &runs.front();
    const auto at = std::ranges::find(runs, wanted.name, &Run::name);
    return at == runs.end() ? nullptr : &*at;
}

std::size_t figures_in(const std::vector<Run>& runs) {
    std::size_t count = 0;
    for (const Run& run : runs) count += run.figures.size();
    return count;
}

std::string quartiles(const Figure& figure) {
    return fmt::format("{:.4g}-{:.4g}", bench::percentile(figure.values, 25),
                       bench::percentile(figure.values, 75));
}

// "send, poll, depth 16": what is not the usual of a question.
std::string question_of(const Figure& figure) {
    std::string text;
    for (const auto& [name, value] : figure.question) {
        if (value == "false" || value == "0" || value == "1") continue;
        text += text.empty() ? "" : ", ";
        const bool number = value.find_first_not_of("0123456789.") == std::string::npos;
        text += value == "true" ? name : number ? fmt::format("{} {}", name, value) : value;
    }
    return text;
}

std::string line_of(const Change& change) {
    const Figure& before = *change.before;
    return fmt::format(
        "{:<10} {:>5}  {:<13} {:<7} {:>9.4g} {:>9.4g} {:<5}{:>6.3f}  {:<17} "
        "{:<17} {:>7.2g}  {:<14} {}\n",
        before.bench, bench::size_text(before.size), before.device, before.mode, before.median,
        change.after->median, before.unit, change.ratio, quartiles(before),
        quartiles(*change.after), change.probability,
        verdict_names[static_cast<std::size_t>(change.verdict)], question_of(before));
}

}  // namespace

std::size_t Comparison::count(bool ours, Verdict verdict) const {
    return static_cast<std::size_t>(std::ranges::count_if(changes, [&](const Change& change) {
        return change.after->ours == ours && change.verdict == verdict;
    }));
}

bool Comparison::can_tell() const {
    return count(true, Verdict::too_few) == 0 ||
           std::ranges::any_of(changes, [](const Change& change) {
               return change.after->ours && change.verdict != Verdict::too_few;
           });
}

Comparison compare(const std::vector<Run>& before, const std::vector<Run>& after,
                   double tolerance) {
    Comparison comparison;
    comparison.tolerance = tolerance;
    for (const Run& run : before) {
        const Run* other = run_like(run, before, after);
        if (other == nullptr) continue;
        for (const Figure& figure : run.figures) {
            const auto at = std::ranges::find_if(
                other->figures, [&](const Figure& one) { return one.same_question(figure); });
            if (at == other->figures.end()) continue;
            comparison.changes.push_back(change_of(run, figure, *at, tolerance));
        }
    }
    comparison.only_before = figures_in(before) - comparison.changes.size();
    comparison.only_after = figures_in(after) - comparison.changes.size();
    return comparison;
}

std::string text_of(const Comparison& comparison) {
    std::string text;
    std::string run;
    for (const Change& change : comparison.changes) {
        if (text.empty() || change.run != run) {
            run = change.run;
            text += fmt::format(
                "{}{}\n{:<10} {:>5}  {:<13} {:<7} {:>9} {:>9} {:<5}{:>6}  {:<17} "
                "{:<17} {:>7}\n",
                text.empty() ? "" : "\n", run, "bench", "size", "channel", "mode", "before",
                "after", "", "ratio", "spread before", "spread after", "chance");
        }
        text += line_of(change);
    }
    text += fmt::format(
        "\nOf ours {} slower, {} faster; of other channels, which tell what the "
        "machine did, {} slower, {} faster.\n",
        comparison.count(true, Verdict::slower), comparison.count(true, Verdict::faster),
        comparison.count(false, Verdict::slower), comparison.count(false, Verdict::faster));
    if (const std::size_t few = comparison.count(true, Verdict::too_few); few > 0) {
        text +=
            fmt::format("Of {} of ours nothing can be told: {} good rounds a side are needed.\n",
                        few, least_rounds);
    }
    if (comparison.only_before + comparison.only_after > 0) {
        text += fmt::format("Only before: {} figures; only after: {}.\n", comparison.only_before,
                            comparison.only_after);
    }
    return text + fmt::format(
                      "More than noise: the rounds differ by rank (Mann-Whitney, chance "
                      "under {:g} %) and the medians by over {:g} %.\n",
                      certain_below * 100, comparison.tolerance * 100);
}

double chance_of(const std::vector<double>& a, const std::vector<double>& b) {
    if (a.empty() || b.empty()) return 1;
    std::vector<std::pair<double, bool>> all;
    for (const double value : a) all.emplace_back(value, true);
    for (const double value : b) all.emplace_back(value, false);
    std::sort(all.begin(), all.end());
    double rank_sum = 0;  // of a
    double ties = 0;
    for (std::size_t i = 0; i < all.size();) {
        std::size_t end = i;
        while (end < all.size() && all[end].first == all[i].first) ++end;
        const auto same = static_cast<double>(end - i);
        const double rank = static_cast<double>(i + end + 1) / 2;
        for (; i < end; ++i) rank_sum += all[i].second ? rank : 0;
        ties += same * same * same - same;
    }
    const auto m = static_cast<double>(a.size());
    const auto n = static_cast<double>(b.size());
    const double both = m + n;
    const double away = std::abs(rank_sum - m * (both + 1) / 2);
    const double variance = m * n / 12 * (both + 1 - ties / (both * (both - 1)));
    if (variance <= 0) return 1;
    const double z = std::max(away - 0.5, 0.0) / std::sqrt(variance);
    return std::erfc(z / std::sqrt(2.0));
}

}  // namespace via::report

#include "bench/report.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>

#include "json.hpp"

namespace via::bench {

namespace {

constexpr std::array modes{Mode::near, Mode::between, Mode::far, Mode::remote};

template <class What>
std::vector<double> collect(const Series& series, Mode mode, What&& what) {
    std::vector<double> values;
    for (const Sample& sample : series.samples) {
        if (sample.verdict.mode == mode) values.push_back(std::invoke(what, sample));
    }
    return values;
}

Row row_of(const Outcome& outcome, const Series& series, Mode mode) {
    Row row;
    row.device = outcome.channels[series.channel];
    if (series.channel < outcome.versions.size()) row.version = outcome.versions[series.channel];
    row.ours = series.channel == 0;
    row.question = series.asked;
    row.mode = mode;
    row.values = collect(series, mode, &Sample::value);
    row.summary = summarise(row.values);
    if (series.asked.bench == Bench::latency) {
        row.summary.p99 = median(collect(series, mode, &Sample::p99_us));
        row.p999_us = median(collect(series, mode, &Sample::p999_us));
    }
    row.cpu_us =
        median(collect(series, mode, [](const Sample& of) { return of.cpu_us[0] + of.cpu_us[1]; }));
    for (std::size_t side = 0; side < 2; ++side) {
        row.cpu_us_each[side] =
            median(collect(series, mode, [&](const Sample& of) { return of.cpu_us[side]; }));
    }
    for (std::size_t from = 0; from < 2; ++from) {
        row.each[from] =
            median(collect(series, mode, [&](const Sample& of) { return of.each[from]; }));
    }
    row.fairness = median(collect(series, mode, &Sample::fairness));
    row.probe_ns = median(collect(series, mode, &Sample::probe_ns));
    row.rounds = static_cast<std::uint32_t>(kept_in(series, mode));
    row.dropped = static_cast<std::uint32_t>(
        std::count_if(series.samples.begin(), series.samples.end(),
                      [](const Sample& sample) { return sample.verdict.drop != Drop::none; }));
    return row;
}

// Enough digits for the smallest figure, not more than its spread deserves.
std::string figure(double value) {
    if (value >= 1000) return fmt::format("{:.0f}", value);
    if (value >= 100) return fmt::format("{:.1f}", value);
    if (value >= 1) return fmt::format("{:.2f}", value);
    return fmt::format("{:.4f}", value);
}

// A program of others tells no more than its mean.
std::string figure_if_any(double value) { return value > 0 ? figure(value) : "-"; }

// Between machines there is none.
std::string probe_of(const Row& row) {
    return row.mode == Mode::remote ? "-" : fmt::format("{:.0f}", row.probe_ns);
}

std::string heading(const Row& row) {
    const Question& question = row.question;
    std::string text = fmt::format("{}, {}{}", name_of(question.bench), unit_of(question.bench),
                                   question.bench == Bench::latency ? " one way" : "");
    if (is_answered(question.op))
        text += fmt::format(" ({}: there and back)", name_of(question.op));
    text += fmt::format("; {} by {}, wait {}, depth {}", row.device, name_of(question.op),
                        name_of(question.wait), question.depth);
    if (question.cq) text += ", one completion queue";
    if (question.active_vis > 1) text += fmt::format(", {} VIs in turn", question.active_vis);
    const std::uint32_t idle = question.vis + 1 - question.active_vis;
    if (idle > 0) text += fmt::format(", {} more VIs idle", idle);
    if (question.reliability != Reliability::delivery) {
        text += fmt::format(", reliability {}", name_of(question.reliability));
    }
    if (question.immediate) text += ", immediate data";
    if (question.segments > 1) text += fmt::format(", {} segments", question.segments);
    if (question.post_many > 1) text += fmt::format(", {} posted at once", question.post_many);
    if (question.both_ways) text += "; both ways at once, their sum";
    if (question.senders > 1) text += fmt::format("; {} senders to one", question.senders);
    if (question.spinners > 0) {
        text += fmt::format("; {} of the processors shared with a spinner", question.spinners);
    }
    if (row.mode == Mode::remote) text += "; two machines, neither near nor far";
    if (question.reuse) {
        return text + fmt::format("; {} % of messages in the same {} buffers", *question.reuse,
                                  buffers_to_reuse(question));
    }
    return text +
           (is_stream(question) ? "; up to 256 buffers or 16 MB in turn" : "; two buffers in turn");
}

std::string json_line(const Row& row, std::optional<double> ratio, const std::string& against) {
    const Question& question = row.question;
    cli::JsonLine line("via-bench-1");
    line.text("bench", name_of(question.bench)).text("device", row.device);
    line.boolean("ours", row.ours).text("op", name_of(question.op)).number("size", question.size);
    line.text("wait", name_of(question.wait)).boolean("cq", question.cq);
    line.number("depth", question.depth).number("vis", question.vis);
    line.number("active_vis", question.active_vis);
    line.text("reliability", name_of(question.reliability));
    line.number("segments", question.segments).boolean("immediate", question.immediate);
    line.number("post_many", question.post_many);
    if (question.reuse) {
        line.number("reuse", *question.reuse);
    } else {
        line.null("reuse");
    }
    line.boolean("both_ways", question.both_ways).number("senders", question.senders);
    line.number("spinners", question.spinners);
    if (!row.version.empty()) line.text("version", row.version);
    line.text("unit", unit_of(question.bench));
    line.figure("median", row.summary.median).figure("min", row.summary.min);
    line.figure("max", row.summary.max).figure_if_any("p99", row.summary.p99);
    // A program of others tells no more than its mean.
    line.figure_if_any("p999", row.p999_us).figure_if_any("cpu_us", row.cpu_us);
    line.figures("cpu_us_each", row.cpu_us_each);
    if (question.both_ways) line.figures("median_each", row.each);
    if (question.senders > 1) line.figure("fairness", row.fairness);
    line.figures("values", row.values);
    line.number("rounds", row.rounds).number("dropped", row.dropped);
    if (row.mode == Mode::remote) {
        line.null("probe_ns");
    } else {
        line.figure("probe_ns", row.probe_ns);
    }
    line.text("mode", name_of(row.mode));
    if (ratio) {
        line.figure("ratio", *ratio);
    } else {
        line.null("ratio");
    }
    return (against.empty() ? line.null("against") : line.text("against", against)).line();
}

// Columns that only some questions have: their headings, and a row's figures.
std::string more_headings(const Question& question) {
    std::string text;
    if (question.both_ways) text += fmt::format(" {:>9} {:>9}", "there", "back");
    if (question.senders > 1) text += fmt::format(" {:>8}", "fairness");
    return text;
}
std::string more_figures(const Row& row) {
    std::string text;
    if (row.question.both_ways) {
        text += fmt::format(" {:>9} {:>9}", figure(row.each[0]), figure(row.each[1]));
    }
    if (row.question.senders > 1) text += fmt::format(" {:>8.3f}", row.fairness);
    return text;
}

std::string kept_text(const Series& series) {
    return fmt::format("{} near, {} between and {} far", kept_in(series, Mode::near),
                       kept_in(series, Mode::between), kept_in(series, Mode::far));
}

bool same_cell(const Row& a, const Row& b) {
    return a.question.size == b.question.size && a.question.bench == b.question.bench &&
           a.mode == b.mode;
}

}  // namespace

std::uint32_t rounds_needed(std::uint32_t asked) { return std::min(asked, least_rounds); }

std::vector<Row> make_rows(const Outcome& outcome, std::uint32_t rounds_asked) {
    std::vector<Row> rows;
    for (std::size_t q = 0; q < outcome.questions.size(); ++q) {
        for (const Mode mode : modes) {
            std::optional<double> ours;
            for (const Series& series : outcome.series) {
                if (series.question != q || kept_in(series, mode) < rounds_needed(rounds_asked)) {
                    continue;
                }
                Row row = row_of(outcome, series, mode);
                if (row.ours) ours = row.summary.median;
                if (!row.ours && ours && row.summary.median > 0) {
                    row.ratio = *ours / row.summary.median;
                }
                rows.push_back(std::move(row));
            }
        }
    }
    return rows;
}

std::vector<std::string> inconclusive(const Outcome& outcome, std::uint32_t rounds_asked,
                                      Wanted wanted) {
    std::vector<std::string> lines;
    for (std::size_t q = 0; q < outcome.questions.size(); ++q) {
        std::vector<const Series*> together;
        for (const Series& series : outcome.series) {
            if (series.question == q) together.push_back(&series);
        }
        const bool ours_there = !together.empty() && together.front()->channel == 0;
        if (ours_there && is_complete(together, rounds_needed(rounds_asked), wanted)) continue;
        std::string seen;
        for (const Series* series : together) {
            seen += fmt::format("{}{} {} of {}", seen.empty() ? "" : "; ",
                                outcome.channels[series->channel],
                                outcome.remote ? std::to_string(kept_in(*series, Mode::remote))
                                               : kept_text(*series),
                                series->samples.size());
        }
        lines.push_back(fmt::format("{} of {} bytes: not {} good rounds{} ({})",
                                    name_of(outcome.questions[q].bench), outcome.questions[q].size,
                                    rounds_needed(rounds_asked),
                                    outcome.remote           ? ""
                                    : wanted == Wanted::both ? " in the modes wanted"
                                                             : " in the mode wanted",
                                    seen.empty() ? "nothing measured" : seen));
    }
    return lines;
}

std::string probe_text(const Outcome& outcome) {
    std::vector<double> probes;
    for (const Series& series : outcome.series) {
        for (const Sample& sample : series.samples) probes.push_back(sample.probe_ns);
    }
    const Summary told = summarise(probes);
    return fmt::format("the probe read {:.0f} to {:.0f} ns, median {:.0f}", told.min, told.max,
                       told.median);
}

std::string drop_text(const Outcome& outcome) {
    std::array<std::size_t, drop_count> counts{};
    std::size_t all = 0;
    for (const Series& series : outcome.series) {
        for (const Sample& sample : series.samples) {
            ++counts[static_cast<std::size_t>(sample.verdict.drop)];
            ++all;
        }
    }
    const std::size_t dropped = all - counts[static_cast<std::size_t>(Drop::none)];
    if (dropped == 0) return {};
    std::string text = fmt::format("{} of {} samples dropped:", dropped, all);
    bool first = true;
    for (std::size_t drop = 1; drop < drop_count; ++drop) {
        if (counts[drop] == 0) continue;
        text += fmt::format("{} {} {}", first ? "" : ",", counts[drop],
                            reason(static_cast<Drop>(drop)));
        first = false;
    }
    return text;
}

std::string left_out_text(const Outcome& outcome) {
    std::string text = outcome.left_out.empty() ? "" : "\n";
    for (const LeftOut& one : outcome.left_out) {
        text += fmt::format("{} is left out, as it failed: {}\n", one.channel, one.why);
    }
    return text;
}

std::string left_out_json(const Outcome& outcome) {
    std::string text;
    for (const LeftOut& one : outcome.left_out) {
        cli::JsonLine line("via-bench-left-out-1");
        text += line.text("device", one.channel).text("why", one.why).line();
    }
    return text;
}

std::string table(const std::vector<Row>& rows) {
    constexpr auto line =
        "{:>6}  {:<12} {:<7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6} {:>7} {:>6} {:>8}{}\n";
    std::string text;
    const Row* above = nullptr;
    for (const Row& row : rows) {
        if (above == nullptr) {
            text += heading(row) + "\n";
            text += fmt::format(line, "size", "channel", "mode", "median", "min", "max", "p99",
                                "p99.9", "cpu us", "(second)", "rounds", "dropped", "probe",
                                "ratio", more_headings(row.question));
        } else if (!same_cell(*above, row)) {
            text += "\n";
        }
        above = &row;
        text += fmt::format(line, size_text(row.question.size), row.device, name_of(row.mode),
                            figure(row.summary.median), figure(row.summary.min),
                            figure(row.summary.max), figure_if_any(row.summary.p99),
                            row.question.bench == Bench::latency ? figure_if_any(row.p999_us) : "-",
                            figure_if_any(row.cpu_us), figure_if_any(row.cpu_us_each[1]),
                            row.rounds, row.dropped, probe_of(row),
                            row.ratio ? figure(*row.ratio) : "-", more_figures(row));
    }
    return text;
}

std::string json_lines(const std::vector<Row>& rows) {
    std::string text;
    for (const Row& row : rows) {
        if (!row.ours) continue;
        std::size_t compared = 0;
        for (const Row& other : rows) {
            if (other.ours || !same_cell(row, other)) continue;
            text += json_line(row, other.ratio, other.device);
            ++compared;
        }
        if (compared == 0) text += json_line(row, std::nullopt, "");
    }
    for (const Row& row : rows) {
        if (row.ours) continue;
        const auto ours = std::find_if(rows.begin(), rows.end(), [&](const Row& other) {
            return other.ours && same_cell(row, other);
        });
        text += json_line(row, row.ratio, ours == rows.end() ? "" : ours->device);
    }
    return text;
}

}  // namespace via::bench

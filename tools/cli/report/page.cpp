#include "report/page.hpp"

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "bench/stats.hpp"
#include "report/gnuplot.hpp"
#include "report/goals.hpp"

namespace via::report {

namespace {

constexpr std::string_view reading_hint =
    "Medians over rounds in which all channels were asked in turn; the spread is of the middle "
    "half of the rounds. p99 and p99.9 of a latency are of single messages within a round. cpu is "
    "processor time of both processes per message. dropped: samples that other load disturbed or "
    "during which the mode changed. near and far say how long a cache line takes between the two "
    "processors: figures of different modes are never mixed. ratio is ours to the channel's "
    "median.";

std::string figure(double value) {
    if (value >= 1000) return fmt::format("{:.0f}", value);
    if (value >= 100) return fmt::format("{:.1f}", value);
    if (value >= 1) return fmt::format("{:.2f}", value);
    return fmt::format("{:.4f}", value);
}

std::string figure(const std::optional<double>& value) { return value ? figure(*value) : "-"; }

// What is the same in all figures of the group need not stand in its table.
std::string common_words(const Group& group) {
    std::string words;
    const Figure& first = *group.figures.front();
    for (const auto& [name, value] : first.question) {
        const bool same = std::ranges::all_of(group.figures, [&](const Figure* other) {
            return !other->ours || other->asked(name) == value;
        });
        if (!same || value == "false" || value == "0" || (value == "1" && name != "depth"))
            continue;
        words += words.empty() ? "" : ", ";
        words += value == "true" ? name : fmt::format("{} {}", name, value);
    }
    return words;
}

// "ucx-tag: UCX 1.13.1; mpich: MPICH 4.0.2", or nothing.
std::string versions_in(const Run& run) {
    std::string text;
    std::set<std::string> told;
    for (const Figure& figure : run.figures) {
        if (figure.version.empty() || !told.insert(figure.device).second) continue;
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", figure.device, figure.version);
    }
    return text;
}

Table table_of(const Group& group) {
    Table table;
    table.summary = fmt::format("All figures: {}, {}", group.bench, group.mode);
    table.head = {"size",   "channel", group.unit, "spread",  "p99",  "p99.9",
                  "cpu us", "rounds",  "dropped",  "line ns", "ratio"};
    std::vector<const Figure*> figures = group.figures;
    std::ranges::sort(figures, {},
                      [](const Figure* one) { return std::pair(one->size, one->line); });
    for (const Figure* one : figures) {
        table.add({bench::size_text(one->size), label_of(*one, group), figure(one->median),
                   fmt::format("{} to {}", figure(bench::percentile(one->values, 25)),
                               figure(bench::percentile(one->values, 75))),
                   figure(one->p99), figure(one->p999), figure(one->cpu_us),
                   fmt::format("{}", one->values.size()), fmt::format("{}", one->dropped),
                   figure(one->probe_ns), figure(one->ratio)},
                  one->ours);
    }
    return table;
}

// Notes of one schema in one table; its columns are the first one's fields.
Table table_of(const std::vector<const Note*>& notes) {
    Table table;
    table.summary = "All figures: " + notes.front()->schema;
    for (const auto& [name, value] : notes.front()->fields) table.head.push_back(name);
    for (const Note* note : notes) {
        std::vector<std::string> row;
        for (const std::string& name : table.head) row.emplace_back(value_of(note->fields, name));
        table.add(std::move(row));
    }
    return table;
}

template <class Drawn>
Status add_picture(Page& page, const std::optional<Drawn>& drawn, Draw draw) {
    if (!drawn) return {};
    auto svg = draw(drawn->name, script_of(*drawn));
    if (!svg) return std::unexpected(svg.error());
    page.blocks.push_back(Picture{drawn->name, drawn->title, std::move(*svg)});
    return {};
}

Status add_group(Page& page, const Run& run, const Group& group, Draw draw) {
    page.blocks.push_back(
        Heading{3, fmt::format("{}, {}: {}", group.bench, group.unit, group.mode)});
    if (const std::string words = common_words(group); !words.empty()) {
        page.blocks.push_back(Paragraph{words});
    }
    auto added = add_picture(page, chart_over_size(run, group), draw);
    if (added) added = add_picture(page, saturation_chart(run, group), draw);
    if (added) added = add_picture(page, ratio_bars(run, group), draw);
    page.blocks.push_back(table_of(group));
    return added;
}

void add_notes(Page& page, const Run& run) {
    std::vector<std::vector<const Note*>> schemas;  // as they come
    for (const Note& note : run.notes) {
        const auto at = std::ranges::find(schemas, note.schema,
                                          [](const auto& notes) { return notes.front()->schema; });
        if (at == schemas.end())
            schemas.push_back({&note});
        else
            at->push_back(&note);
    }
    for (const auto& notes : schemas) {
        page.blocks.push_back(Heading{3, notes.front()->schema});
        page.blocks.push_back(table_of(notes));
    }
}

// What somebody will want to copy: the commands of the run of this name, or what belongs to none.
void add_commands(Page& page, const Fields& machine, std::string_view run) {
    Commands commands;
    for (const auto& [name, value] : machine) {
        const bool wanted =
            run.empty() ? name == "commands" : name == fmt::format("{}.command", run);
        if (!wanted) continue;
        for (const auto part : std::views::split(value, run.empty() ? '\n' : ';')) {
            const std::string_view line(part.begin(), part.end());
            if (const std::size_t at = line.find_first_not_of(' '); at != std::string_view::npos)
                commands.lines.emplace_back(line.substr(at));
        }
    }
    if (!commands.lines.empty()) page.blocks.push_back(std::move(commands));
}

void add_machine(Page& page, const Fields& machine) {
    if (machine.empty()) return;
    page.blocks.push_back(Heading{2, "Machine"});
    Table table{"The machine", {"what", "is"}, {}, {}};
    for (const auto& [name, value] : machine) {
        // The suite tells of each run its command, its exit code and how long it took.
        const bool of_run = name.ends_with(".command") || name.ends_with(".seconds") ||
                            (name.ends_with(".code") && value == "0");
        if (value.empty() || of_run || name == "commands" || name == "schema") continue;
        std::string text = value;
        std::ranges::replace(text, '\n', ' ');
        table.add({name, text});
    }
    if (!table.rows.empty()) page.blocks.push_back(std::move(table));
    add_commands(page, machine, "");
}

// As the machine's description names them, the others behind, as they come.
std::vector<const Run*> in_order(const std::vector<Run>& runs, const Fields& machine) {
    std::vector<const Run*> order;
    for (const Run& run : runs) order.push_back(&run);
    std::ranges::sort(order, {}, [&](const Run* run) {
        const std::string command = run->name + ".command";
        return std::pair(std::ranges::find(machine, command, &Fields::value_type::first), run);
    });
    return order;
}

// How much of what was tried did not count. A figure of each mode tells the same of what was
// dropped.
std::string drops_in(const Run& run) {
    std::uint64_t kept = 0;
    std::uint64_t dropped = 0;
    for (const Figure& figure : run.figures) {
        kept += figure.values.size();
        const auto first = std::ranges::find_if(
            run.figures, [&](const Figure& other) { return other.same_question(figure, true); });
        if (&*first == &figure) dropped += figure.dropped;
    }
    if (kept == 0) return {};
    return fmt::format("{} samples count, {} were dropped.", kept, dropped);
}

Status add_run(Page& page, const Run& run, const Fields& machine, Draw draw) {
    page.blocks.push_back(Heading{2, run.name});
    add_commands(page, machine, run.name);
    if (run.figures.empty() && run.notes.empty()) {
        page.blocks.push_back(Paragraph{"Nothing was conclusive."});
    }
    if (const std::string versions = versions_in(run); !versions.empty()) {
        page.blocks.push_back(Paragraph{versions});
    }
    if (const std::string drops = drops_in(run); !drops.empty()) {
        page.blocks.push_back(Paragraph{drops});
    }
    for (const Group& group : groups_of(run)) {
        if (auto added = add_group(page, run, group, draw); !added) return added;
    }
    add_notes(page, run);
    return {};
}

// Only of what was measured: a page of one question shows no long list of what it did not ask.
void add_goals(Page& page, const std::vector<Run>& runs) {
    Table table{"Goals", goal_head(), {}, {}};
    for (const GoalRow& row : goals_of(runs)) {
        if (row.ours.empty() && row.other.empty()) continue;
        table.add(cells_of(row), row.reached == "yes");
    }
    if (table.rows.empty()) return;
    page.blocks.push_back(Heading{2, "Goals"});
    page.blocks.push_back(
        Paragraph{"What we want to reach, beside the best of the others or the machine's own "
                  "limit, of one run and mode each. Inconclusive: the mode did not come often "
                  "enough for both."});
    page.blocks.push_back(std::move(table));
}

}  // namespace

Result<Page> page_of(const std::vector<Run>& runs, const Fields& machine, Draw draw) {
    Page page{"Benchmarks", {Paragraph{std::string(reading_hint)}}};
    add_machine(page, machine);
    add_goals(page, runs);
    for (const Run* run : in_order(runs, machine)) {
        if (auto added = add_run(page, *run, machine, draw); !added) {
            return std::unexpected(added.error());
        }
    }
    return page;
}

}  // namespace via::report

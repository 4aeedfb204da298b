// `via lab compare`: designs beside each other, which one wins where, and what turns it.
#include "lab/study/compare.hpp"
#include "commands.hpp"
#include "console/output.hpp"
#include "json.hpp"
#include "laboratory/options.hpp"
#include "laboratory/pictures.hpp"
#include "table.hpp"

namespace via::cli {
namespace {

namespace study = via::lab::study;

const std::vector<std::int64_t> powers = {1, 2, 4, 8, 16, 32, 64, 128};

std::string shown(study::Of of, double value) {
    return of == study::Of::latency ? fmt::format("{:.2f}", value / 1e3)
                                    : fmt::format("{:.2f}", value / 1e6);
}

std::string table_of(const study::Comparison& found,
                     const std::vector<study::Contender>& contenders, study::Of of,
                     const std::string& over) {
    Table table;
    std::vector<std::string> head = {over == "sizes" ? "bytes" : over};
    for (const auto& one : contenders) head.push_back(one.name);
    head.insert(head.end(), {"best", "against the next"});
    table.add(head);
    for (std::size_t point = 0; point < found.points.size(); ++point) {
        std::vector<std::string> row = {std::to_string(found.points[point])};
        for (const auto& sample : found.samples[point])
            row.push_back(sample ? shown(of, sample->value) : "-");
        const auto winner = found.winners[point];
        row.push_back(winner ? contenders[*winner].name : "-");
        row.push_back(found.reasons[point]);
        table.add(row);
    }
    return (of == study::Of::latency ? "us one way\n" : "MB/s\n") + table.text(true);
}

std::string text_of(const study::Comparison& found, const std::vector<study::Contender>& contenders,
                    study::Of of, const std::string& over) {
    std::string text = table_of(found, contenders, of, over) + '\n';
    for (const study::Crossing& one : found.crossings) {
        text += fmt::format("From {} {} on {} is better than {}: of the latter {}\n", one.at,
                            over == "sizes" ? "bytes" : over, contenders[one.after].name,
                            contenders[one.before].name, one.cause);
    }
    if (found.crossings.empty()) text += "No curves cross.\n";
    for (std::size_t n = 0; n < contenders.size(); ++n) {
        if (!found.refusals[n].empty())
            text += fmt::format("-: {}: {}\n", contenders[n].name, found.refusals[n]);
    }
    return text;
}

std::string json_of(const study::Comparison& found, const std::vector<study::Contender>& contenders,
                    study::Of of, const std::string& over) {
    std::string lines;
    const bool latency = of == study::Of::latency;
    for (std::size_t point = 0; point < found.points.size(); ++point) {
        for (std::size_t n = 0; n < contenders.size(); ++n) {
            const auto& sample = found.samples[point][n];
            JsonLine line("via-lab-compare-1");
            line.text("design", contenders[n].name).text("over", over);
            line.number("at", found.points[point]).boolean("possible", sample.has_value());
            if (sample) {
                line.figure(latency ? "us" : "bytes_per_second",
                            latency ? sample->value / 1e3 : sample->value);
                line.text("busiest", sample->busiest);
            } else {
                line.text("why", found.refusals[n]);
            }
            lines += line.boolean("best", found.winners[point] == n).line();
        }
    }
    for (const study::Crossing& one : found.crossings) {
        JsonLine line("via-lab-crossing-1");
        line.text("over", over).number("at", one.at);
        line.text("before", contenders[one.before].name).text("after", contenders[one.after].name);
        lines += line.text("cause", one.cause).line();
    }
    return lines;
}

std::expected<std::vector<study::Contender>, std::string> contenders_of(const LabOptions& options) {
    std::vector<study::Contender> contenders;
    for (const std::string& text : options.designs) {
        const std::size_t colon = text.find(':');
        const std::string words = colon == std::string::npos ? "" : text.substr(colon + 1);
        auto trial = lab_trial_of(options, text.substr(0, colon), words);
        if (!trial) return std::unexpected(text + ": " + trial.error());
        contenders.push_back({text, std::move(*trial)});
    }
    return contenders;
}

std::vector<std::int64_t> points_of(const LabOptions& options) {
    if (options.over != "sizes") return powers;
    std::vector<std::int64_t> points;
    for (const std::string& size : lab_sizes_of(options))
        points.push_back(lab_bytes_of(size, lab_message_max));
    std::ranges::sort(points);
    points.erase(std::unique(points.begin(), points.end()), points.end());
    return points;
}

}  // namespace

void add_lab_compare(CLI::App& lab, LabOptions& options) {
    auto* compare = lab.add_subcommand("compare", "Designs beside each other: who wins where");
    compare
        ->add_option("designs", options.designs,
                     "MACHINE or MACHINE:WORDS, as firmvia:at=2,doorbell=d1")
        ->required()
        ->expected(2, 16);
    compare->add_option("--of", options.what, "latency or bandwidth")
        ->check(CLI::IsMember({"latency", "bandwidth"}));
    compare->add_option("--over", options.over, "What is varied: sizes, vis or queues")
        ->check(CLI::IsMember({"sizes", "vis", "queues"}))
        ->capture_default_str();
    add_lab_sizes(*compare, options);
    add_lab_load(*compare, options);
    add_lab_folder(*compare, options);
}

int run_lab_compare(const LabOptions& options) {
    const auto contenders = contenders_of(options);
    if (!contenders) return lab_failed(contenders.error());
    const study::Of of = options.what == "bandwidth" ? study::Of::bandwidth : study::Of::latency;
    const study::Over over = options.over == "vis"      ? study::Over::vis
                             : options.over == "queues" ? study::Over::queues
                                                        : study::Over::sizes;
    study::Question question = lab_question_of(options);
    const std::vector<std::int64_t> points = points_of(options);
    if (over != study::Over::sizes && !options.sizes.empty())
        question.size = lab_bytes_of(options.sizes[0], lab_message_max);
    const auto found = study::compare(*contenders, of, over, points, question);
    if (!found) return lab_failed(found.error());
    fmt::print("{}", options.json ? json_of(*found, *contenders, of, options.over)
                                  : text_of(*found, *contenders, of, options.over));
    Pictures pictures(options.folder);
    if (auto done = pictures.begin(); !done) return lab_failed(done.error());
    if (options.folder.empty()) return exit_good;
    const auto drawn = draw(pictures, *found, *contenders, of, over);
    return drawn ? exit_good : lab_failed(drawn.error());
}

}  // namespace via::cli

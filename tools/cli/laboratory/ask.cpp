// `via lab ask`: questions about machines of today, each answered by runs.
#include "commands.hpp"
#include "console/output.hpp"
#include "json.hpp"
#include "lab/file/machine_file.hpp"
#include "lab/study/today.hpp"
#include "laboratory/options.hpp"
#include "laboratory/pictures.hpp"
#include "table.hpp"

namespace via::cli {
namespace {

namespace study = via::lab::study;

constexpr std::uint32_t rounds = 32;

std::string cell_of(const study::Curve& curve, std::int64_t x) {
    const auto found = std::ranges::find(curve.x, x);
    if (found == curve.x.end()) return "-";
    return fmt::format("{:.4g}", curve.y[static_cast<std::size_t>(found - curve.x.begin())]);
}

std::vector<std::int64_t> points_of(const study::Answer& answer) {
    std::vector<std::int64_t> points;
    for (const auto& curve : answer.curves)
        points.insert(points.end(), curve.x.begin(), curve.x.end());
    std::ranges::sort(points);
    points.erase(std::unique(points.begin(), points.end()), points.end());
    return points;
}

std::string answer_text(const study::Answer& answer) {
    Table table;
    std::vector<std::string> head = {answer.x};
    for (const auto& curve : answer.curves) head.push_back(curve.name);
    table.add(head);
    for (const std::int64_t point : points_of(answer)) {
        std::vector<std::string> row = {std::to_string(point)};
        for (const auto& curve : answer.curves) row.push_back(cell_of(curve, point));
        table.add(row);
    }
    std::string text = answer.title + ", " + answer.y + '\n' + table.text(true) + '\n';
    for (const std::string& one : answer.findings) text += one + '\n';
    return text;
}

std::string answer_json(const std::string& question, const study::Answer& answer) {
    std::string lines;
    for (const auto& curve : answer.curves) {
        for (std::size_t n = 0; n < curve.x.size(); ++n) {
            JsonLine line("via-lab-answer-1");
            line.text("question", question).text("curve", curve.name).text("over", answer.x);
            line.number("at", curve.x[n]).text("unit", answer.y);
            lines += line.figure("value", curve.y[n]).line();
        }
    }
    for (const std::string& one : answer.findings)
        lines += JsonLine("via-lab-finding-1").text("question", question).text("says", one).line();
    return lines;
}

}  // namespace

void add_lab_ask(CLI::App& lab, LabOptions& options) {
    auto* ask = lab.add_subcommand("ask", "What the papers' designs would be on machines of today");
    std::vector<std::string> names;
    std::string told = "One of";
    for (const auto& one : study::inquiries()) {
        names.emplace_back(one.name);
        told += fmt::format("\n{}: {}", one.name, one.what);
    }
    ask->add_option("question", options.what, told)->required()->check(CLI::IsMember(names));
    ask->add_option("--machine", options.machine, "Of which machine: a name, or a file's path")
        ->default_str("rnic");
    ask->add_flag("--json", options.json, "One JSON object a line");
    add_lab_folder(*ask, options);
}

int run_lab_ask(const LabOptions& options) {
    const auto machine = lab::file::load(options.machine.empty() ? "rnic" : options.machine);
    if (!machine) return lab_failed(machine.error());
    const auto inquiry = std::ranges::find(study::inquiries(), std::string_view(options.what),
                                           &study::Inquiry::name);
    const auto answer = inquiry->ask(*machine, rounds);
    if (!answer) return lab_failed(answer.error());
    fmt::print("{}", options.json ? answer_json(options.what, *answer) : answer_text(*answer));
    Pictures pictures(options.folder);
    if (auto done = pictures.begin(); !done) return lab_failed(done.error());
    std::vector<Series> series;
    for (const auto& curve : answer->curves) series.push_back({curve.name, curve.x, curve.y});
    const auto drawn = pictures.curves(options.what + "-" + machine->name, answer->title, answer->x,
                                       answer->y, answer->steep, series);
    return drawn ? exit_good : lab_failed(drawn.error());
}

}  // namespace via::cli

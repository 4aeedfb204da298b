#include "laboratory/pictures.hpp"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

#include "report/gnuplot.hpp"

namespace via::cli {
namespace {

namespace study = lab::study;

std::string columns_of(const std::string& x, const std::vector<Series>& series) {
    std::string text = x;
    for (const Series& one : series) text += '\t' + one.name;
    text += '\n';
    std::vector<std::int64_t> points;
    for (const Series& one : series) points.insert(points.end(), one.x.begin(), one.x.end());
    std::ranges::sort(points);
    points.erase(std::unique(points.begin(), points.end()), points.end());
    for (const std::int64_t point : points) {
        text += std::to_string(point);
        for (const Series& one : series) {
            const auto found = std::ranges::find(one.x, point);
            text += found == one.x.end()
                        ? "\t"
                        : fmt::format("\t{:.6g}",
                                      one.y[static_cast<std::size_t>(found - one.x.begin())]);
        }
        text += '\n';
    }
    return text;
}

}  // namespace

Pictures::Done Pictures::begin() {
    if (folder_.empty()) return {};
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error)
        return std::unexpected("cannot make " + folder_.string() + " (mkdir): " + error.message());
    return {};
}

Pictures::Done Pictures::text(const std::string& file, const std::string& text) {
    if (folder_.empty()) return {};
    std::ofstream out(folder_ / file);
    out << text;
    out.close();
    if (!out) return std::unexpected("cannot write " + (folder_ / file).string());
    return {};
}

Pictures::Done Pictures::curves(const std::string& name, const std::string& title,
                                const std::string& x, const std::string& y, bool steep,
                                const std::vector<Series>& series) {
    if (folder_.empty()) return {};
    report::Chart chart{name, title, {x, true, true}, {y, steep, false}, {}};
    for (const Series& one : series) {
        report::Curve curve{one.name, chart.curves.empty(), {}};
        for (std::size_t n = 0; n < one.x.size(); ++n) {
            const double value = one.y[n];
            curve.points.push_back({static_cast<double>(one.x[n]), value, value, value});
        }
        chart.curves.push_back(std::move(curve));
    }
    const auto drawn = report::draw(name, report::script_of(chart));
    if (!drawn) return std::unexpected(drawn.error().what);
    if (auto kept = text(name + ".svg", report::fit_for_file(*drawn)); !kept) return kept;
    return text(name + ".tsv", columns_of(x, series));
}

Pictures::Done Pictures::stacks(const std::string& name, const std::string& title,
                                const std::vector<Stack>& stacks) {
    if (auto kept = text(name + ".svg", stacks_svg(title, stacks)); !kept) return kept;
    std::string columns = "what";
    for (std::size_t share = 0; share < lab::share_count; ++share)
        columns += fmt::format("\t{} us", lab::name_of(static_cast<lab::Share>(share)));
    for (const Stack& stack : stacks) {
        columns += '\n' + stack.label;
        for (const double part : stack.parts_ns) columns += fmt::format("\t{:.3f}", part / 1e3);
    }
    return text(name + ".tsv", columns + '\n');
}

Pictures::Done Pictures::timeline(const std::string& name, const std::string& title,
                                  const study::Explanation& explanation) {
    if (auto kept = text(name + ".svg", timeline_svg(title, explanation)); !kept) return kept;
    std::string columns = "start ns\tend ns\tresource\tshare\twhat\ton the way\n";
    for (const auto& one : explanation.happenings) {
        columns += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", one.start_ns, one.end_ns, one.resource,
                               lab::name_of(one.share), one.what, one.on_path ? 1 : 0);
    }
    return text(name + ".tsv", columns);
}

Pictures::Done draw_machine(Pictures& pictures, const study::Trial& trial,
                            const study::Question& question, bool of_latency,
                            const std::vector<std::int64_t>& sizes, const std::string& prefix) {
    Series series{trial.machine.name, {}, {}};
    std::vector<Stack> stacks;
    for (const std::int64_t size : sizes) {
        study::Question one = question;
        one.size = size;
        series.x.push_back(size);
        if (of_latency) {
            const auto found = study::latency(trial, one);
            if (!found) return std::unexpected(found.error());
            series.y.push_back(found->mean_ns / 1e3);
            stacks.push_back({fmt::format("{} B", size), found->parts_ns});
        } else {
            const auto found = study::bandwidth(trial, one);
            if (!found) return std::unexpected(found.error());
            series.y.push_back(found->bytes_per_second / 1e6);
        }
    }
    const char* const what = of_latency ? "latency" : "bandwidth";
    const std::string title = fmt::format("{}: {}", trial.machine.name, what);
    const auto curve = pictures.curves(prefix + what, title, "bytes",
                                       of_latency ? "us one way" : "MB/s", of_latency, {series});
    if (!curve || !of_latency) return curve;
    return pictures.stacks(prefix + "parts", trial.machine.name + ": where the time goes", stacks);
}

Pictures::Done draw(Pictures& pictures, const study::Comparison& comparison,
                    const std::vector<study::Contender>& contenders, study::Of of,
                    study::Over over) {
    const bool latency = of == study::Of::latency;
    const bool sizes = over == study::Over::sizes;
    std::vector<Series> series;
    std::vector<Stack> stacks;
    for (std::size_t n = 0; n < contenders.size(); ++n) {
        Series one{contenders[n].name, {}, {}};
        for (std::size_t point = 0; point < comparison.points.size(); ++point) {
            const auto& sample = comparison.samples[point][n];
            if (!sample) continue;
            one.x.push_back(comparison.points[point]);
            one.y.push_back(sample->value / (latency ? 1e3 : 1e6));
        }
        if (!one.x.empty()) series.push_back(std::move(one));
    }
    for (std::size_t point = 0; point < comparison.points.size(); ++point) {
        for (std::size_t n = 0; n < contenders.size(); ++n) {
            const auto& sample = comparison.samples[point][n];
            if (!sample) continue;
            stacks.push_back({fmt::format("{}, {}", comparison.points[point], contenders[n].name),
                              sample->parts_ns});
        }
    }
    const char* const x = sizes ? "bytes" : over == study::Over::vis ? "VIs" : "work queues";
    const auto curves = pictures.curves("compare", latency ? "Latency" : "Bandwidth", x,
                                        latency ? "us one way" : "MB/s", latency && sizes, series);
    if (!curves || !latency) return curves;
    return pictures.stacks("parts", "Where the time goes", stacks);
}

}  // namespace via::cli

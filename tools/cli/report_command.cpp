// `via bench report` and `via bench compare`: what files of results say.
#include <array>
#include <cstdio>
#include <fstream>

#include <fmt/format.h>

#include "commands.hpp"
#include "console/output.hpp"
#include "given.hpp"
#include "report/compare.hpp"
#include "report/gnuplot.hpp"
#include "report/goals.hpp"
#include "report/page.hpp"
#include "report/results.hpp"

namespace via::cli {

namespace {

using namespace via::report;

int complain(const std::string& what, int code) {
    console::complain("via bench: {}", what);
    return code;
}

// All take files, and some one option.
int refuse_others(const BenchOptions& options, std::string_view own) {
    const std::array<std::string_view, 3> ours{"bench", "places", own};
    const auto fits = gives_only(options, ours);
    return fits ? exit_good : complain(fits.error().what, exit_usage);
}

Status write_file(const std::filesystem::path& path, const std::string& text) {
    std::ofstream file(path);
    if (file << text && file.flush()) return {};
    return bench::fail_errno(path.string());
}

// FILE.md, and FILE/NAME.svg for each picture.
Status write_markdown(const Page& page, const std::filesystem::path& file) {
    const std::filesystem::path folder = file.parent_path() / file.stem();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail("{}: {}", folder.string(), error.message());
    for (const Block& block : page.blocks) {
        const auto* picture = std::get_if<Picture>(&block);
        if (picture == nullptr) continue;
        const auto written =
            write_file(folder / (picture->name + ".svg"), fit_for_file(picture->svg));
        if (!written) return written;
    }
    return write_file(file, markdown_of(page, file.stem().string()));
}

Status make_report(const std::filesystem::path& folder, const std::string& markdown) {
    const auto runs = read_runs(folder);
    if (!runs) return std::unexpected(runs.error());
    const auto machine = read_machine(folder);
    if (!machine) return std::unexpected(machine.error());
    const auto page = page_of(*runs, *machine, draw);
    if (!page) return std::unexpected(page.error());
    if (!markdown.empty()) return write_markdown(*page, markdown);
    return write_file(folder / "index.html", html_of(*page));
}

}  // namespace

int run_bench_report(const BenchOptions& options) {
    if (const int wrong = refuse_others(options, "--markdown"); wrong != 0) return wrong;
    if (options.places.size() != 1)
        return complain("report wants one folder of results", exit_usage);
    if (!options.markdown.empty() && !std::filesystem::path(options.markdown).has_extension()) {
        return complain(fmt::format("--markdown {}: without an extension (.md) it would have the "
                                    "name of its folder of pictures",
                                    options.markdown),
                        exit_usage);
    }
    std::error_code error;
    if (!std::filesystem::is_directory(options.places[0], error)) {
        return complain(options.places[0] + " is no folder", exit_failed);
    }
    const auto made = make_report(options.places[0], options.markdown);
    return made ? exit_good : complain(made.error().what, exit_failed);
}

int run_bench_goals(const BenchOptions& options) {
    if (const int wrong = refuse_others(options, ""); wrong != 0) return wrong;
    if (options.places.size() != 1)
        return complain("goals wants one folder of results", exit_usage);
    const auto runs = read_runs(options.places[0]);
    if (!runs) return complain(runs.error().what, exit_failed);
    fmt::print("{}", text_of(goals_of(*runs)));
    return exit_good;
}

int run_bench_compare(const BenchOptions& options) {
    if (const int wrong = refuse_others(options, "--tolerance"); wrong != 0) return wrong;
    if (options.places.size() != 2) {
        return complain("compare wants two files or folders of results", exit_usage);
    }
    const auto before = read_runs(options.places[0]);
    if (!before) return complain(before.error().what, exit_failed);
    const auto after = read_runs(options.places[1]);
    if (!after) return complain(after.error().what, exit_failed);
    const Comparison comparison = compare(*before, *after, options.tolerance_percent / 100);
    if (comparison.changes.empty()) {
        return complain("the two have no figure in common", exit_failed);
    }
    fmt::print("{}", text_of(comparison));
    if (comparison.slower() > 0) return exit_slower;
    const bool can_tell = comparison.too_few() == 0 || comparison.too_few() < comparison.ours();
    return can_tell ? exit_good : exit_inconclusive;
}

}  // namespace via::cli

// `via bench report` and `via bench compare`: what files of results say.
#include <cstdio>
#include <fstream>

#include <fmt/format.h>

#include "commands.hpp"
#include "console/output.hpp"
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

Status write_file(const std::filesystem::path& path, const std::string& text) {
    std::ofstream file(path);
    if (file << text && file.flush()) return {};
    return bench::fail_errno(fmt::format("cannot write {} (open, write)", path.string()));
}

// FILE.md, and FILE/NAME.svg for each picture.
Status write_markdown(const Page& page, const std::filesystem::path& file) {
    const std::filesystem::path folder = file.parent_path() / file.stem();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail("cannot make {} (mkdir): {}", folder.string(), error.message());
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
    const auto runs = read_runs(options.places[0]);
    if (!runs) return complain(runs.error().what, exit_failed);
    fmt::print("{}", text_of(goals_of(*runs)));
    return exit_good;
}

int run_bench_compare(const BenchOptions& options) {
    const auto before = read_runs(options.places[0]);
    if (!before) return complain(before.error().what, exit_failed);
    const auto after = read_runs(options.places[1]);
    if (!after) return complain(after.error().what, exit_failed);
    const Comparison comparison = compare(*before, *after, options.tolerance_percent / 100);
    if (comparison.changes.empty()) {
        return complain("the two have no figure in common", exit_failed);
    }
    fmt::print("{}", text_of(comparison));
    if (comparison.count(true, Verdict::slower) > 0) return exit_slower;
    return comparison.can_tell() ? exit_good : exit_inconclusive;
}

}  // namespace via::cli

// `via bench operations`: what every basic operation costs, as a table or JSON.
#include <cstdio>

#include "bench/channel.hpp"
#include "bench/cpus.hpp"
#include "bench/progress.hpp"
#include "bench/via_operations.hpp"
#include "commands.hpp"
#include "console/output.hpp"

namespace via::cli {

namespace {

using namespace via::bench;

constexpr std::uint64_t largest_region = std::uint64_t{1} << 30;
constexpr std::size_t most_sizes = 16;

int complain(const std::string& what, int code) {
    console::complain("via bench: {}", what);
    return code;
}

Result<OperationsPlan> plan_of(const BenchOptions& options) {
    if (is_known_channel(options.device)) {
        return fail("--device {}: operations are those of a NIC", options.device);
    }
    OperationsPlan plan;
    plan.device = options.device;
    std::vector<std::string> texts = options.sizes;
    if (texts.empty()) texts = {"4K", "64K", "1M"};
    for (const std::string& text : texts) {
        const auto size = parse_size(text);
        if (!size || *size == 0 || *size > largest_region || plan.sizes.size() == most_sizes) {
            return fail("--size {}: want up to {} sizes to register, from 1 to 1024M", text,
                        most_sizes);
        }
        plan.sizes.push_back(*size);
    }
    if (!options.netns.empty()) {
        if (options.netns.size() != 2) return fail("--netns wants two names: A,B");
        auto places = Places::in_namespaces(options.netns[0], options.netns[1]);
        if (!places) return std::unexpected(places.error());
        plan.places = *places;
    }
    auto cpus = choose_cpus(options.cpus);
    if (!cpus) return std::unexpected(cpus.error());
    plan.cpus = *cpus;
    plan.rounds = options.rounds;
    plan.keep_disturbed = options.keep_disturbed;
    plan.max_seconds = options.max_seconds;
    return plan;
}

}  // namespace

int run_bench_operations(const BenchOptions& options) {
    const auto plan = plan_of(options);
    if (!plan) return complain(plan.error().what, exit_usage);
    ProgressLine progress;
    progress.show(fmt::format("timing the operations of {}", plan->device));
    const auto result = measure_operations(*plan);
    progress.clear();
    if (!result) return complain(result.error().what, exit_failed);
    fmt::print("{}", options.json ? json_lines(*result, plan->device) : table(*result));
    console::flush_output();
    if (result->rounds >= plan->rounds) return exit_good;
    return complain(fmt::format("inconclusive: {} good rounds of {}; try again when the machine is "
                                "quiet, or with --keep-disturbed",
                                result->rounds, plan->rounds),
                    exit_inconclusive);
}

}  // namespace via::cli

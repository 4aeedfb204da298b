// `via bench serve`: what the options mean, and what it tells whom.
#include <cstdio>

#include "bench/control.hpp"
#include "bench/cpus.hpp"
#include "bench/serve.hpp"
#include "commands.hpp"
#include "console/output.hpp"

namespace via::cli {

namespace {

int complain(const std::string& what, int code) {
    console::complain("via bench serve: {}", what);
    return code;
}

}  // namespace

int run_bench_serve(const BenchOptions& options) {
    const auto cpu = bench::choose_cpu(options.cpus);
    if (!cpu) return complain(cpu.error().what, exit_usage);
    const auto address = bench::Address::resolve(options.address, bench::default_control_port);
    if (!address) return complain("--address " + address.error().what, exit_usage);
    bench::ServeOptions serving;
    serving.address = *address;
    serving.cpu = *cpu;
    serving.max_seconds = options.max_seconds;
    serving.tell = [](const std::string& what) {
        fmt::print("via bench serve: {}\n", what);
        console::flush_output();
    };
    return complain(bench::serve(serving).what, exit_failed);
}

}  // namespace via::cli

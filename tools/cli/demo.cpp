// `via demo`: two processes connect over a device, exchange messages of all sizes by send, RDMA
// write and RDMA read with every byte verified, and are then measured beside what the kernel has.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <vector>

#include "bench/clock.hpp"
#include "bench/cpus.hpp"
#include "bench/pair.hpp"
#include "bench/progress.hpp"
#include "bench/report.hpp"
#include "bench/session.hpp"
#include "commands.hpp"
#include "console/output.hpp"

namespace via::cli {

namespace {

using namespace via::bench;

constexpr std::array<std::uint64_t, 8> sizes{0, 1, 8, 64, 512, 4096, 64 << 10, 1 << 20};
constexpr std::array peers{"pipe", "unix-socket", "tcp-socket"};
constexpr std::uint64_t messages_verified = 8;  // each way, per size and operation
constexpr std::uint32_t rounds = 6;             // the first does not count
constexpr int measuring_seconds = 18;
constexpr std::int64_t sample_ns = 2'000'000;
constexpr int verify_timeout_ms = 20'000;

Question question_of(Bench bench, Op op, std::uint64_t size) {
    Question question;
    question.bench = bench;
    question.op = op;
    question.size = size;
    question.depth = is_stream(question) ? 16 : 1;
    return question;
}

// Every size by every operation, both ways. Returns the bytes verified.
Result<std::uint64_t> verify_all(const DemoOptions& options, const std::array<int, 2>& cpus) {
    PairSetup setup;
    setup.cpus = cpus;
    setup.processors = online_processors();
    setup.max_size = sizes.back();
    setup.arena_bytes = arena_bytes_for(question_of(Bench::verify, Op::send, sizes.back()));
    DeviceOptions device;
    device.device = options.device;
    auto pair = Pair::start(make_via_device(device), setup);
    if (!pair) return std::unexpected(pair.error());
    fmt::print("Two processes (pid {} and {}) are connected over {}.\n",
               (*pair)->process(Side::first), (*pair)->process(Side::second), options.device);

    std::uint64_t verified = 0;
    for (const Op op : {Op::send, Op::write, Op::read}) {
        const std::string_view what = op == Op::send    ? "send and receive"
                                      : op == Op::write ? "RDMA write with immediate data"
                                                        : "RDMA read";
        fmt::print("  {:<32}", what);
        for (const std::uint64_t size : sizes) {
            auto done = (*pair)->ask(question_of(Bench::verify, op, size),
                                     {0, messages_verified, 0}, verify_timeout_ms);
            if (!done) {
                fmt::print("\n");
                return std::unexpected(done.error());
            }
            verified += messages_verified * size * (op == Op::read ? 1 : 2);
            fmt::print(" {}", size_text(size));
            console::flush_output();
        }
        fmt::print("  all bytes right\n");
    }
    return verified;
}

Result<Outcome> measure(const DemoOptions& options, const std::array<int, 2>& cpus) {
    Plan plan;
    DeviceOptions device;
    device.device = options.device;
    plan.channels.push_back(make_via_device(device));
    for (const char* name : peers) plan.channels.push_back(make_comparison(name));
    for (const Bench bench : {Bench::latency, Bench::bandwidth}) {
        for (const std::uint64_t size : sizes) {
            if (bench == Bench::latency || size > 0) {
                plan.questions.push_back(question_of(bench, Op::send, size));
            }
        }
    }
    plan.rounds = rounds;
    plan.cpus = cpus;
    plan.sample_ns = sample_ns;
    plan.max_seconds = measuring_seconds;
    ProgressLine line;
    plan.progress = [&](const std::string& what) { line.show("  " + what); };
    Result<Outcome> outcome = run_session(std::move(plan));
    if (!outcome) return outcome;
    // In the first round memory is touched that nobody touched before: 64 KB take seven times as
    // long then. A table of a few samples would show it now and then.
    for (Series& series : outcome->series)
        if (series.samples.size() > 1) series.samples.erase(series.samples.begin());
    return outcome;
}

// Which samples of a question to show: those of one distance of the processors when every channel
// has enough of them, else all, the disturbed ones too; then the table says so.
enum class Kind { near, far, between, noisy };

struct Chosen {
    Kind kind = Kind::noisy;
    std::vector<double> medians;  // by channel, 0: none
};

Kind kind_of(const Sample& sample) {
    if (!sample.verdict.mode) return Kind::noisy;
    switch (*sample.verdict.mode) {
        case Mode::near:
            return Kind::near;
        case Mode::between:
            return Kind::between;
        case Mode::far:
        case Mode::remote:  // both processes are here
            break;
    }
    return Kind::far;
}

const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::near:
            return "near";
        case Kind::far:
            return "far";
        case Kind::between:
            return "between";
        case Kind::noisy:
            break;
    }
    return "noisy";
}

Chosen choose(const Outcome& outcome, std::size_t question) {
    Chosen chosen;
    std::vector<const Series*> together;
    for (const Series& series : outcome.series) {
        if (series.question == question) together.push_back(&series);
    }
    for (const Kind kind : {Kind::between, Kind::far, Kind::near}) {
        const auto full = [&](const Series* series) {
            const auto& samples = series->samples;
            return std::count_if(samples.begin(), samples.end(), [&](const Sample& sample) {
                       return kind_of(sample) == kind;
                   }) >= 2;
        };
        if (std::all_of(together.begin(), together.end(), full)) chosen.kind = kind;
    }
    chosen.medians.resize(outcome.channels.size(), 0);
    for (const Series* series : together) {
        std::vector<double> values;
        for (const Sample& sample : series->samples) {
            const bool fits = chosen.kind == Kind::noisy || kind_of(sample) == chosen.kind;
            if (fits) values.push_back(sample.value);
        }
        chosen.medians[series->channel] = median(values);
    }
    return chosen;
}

std::string figure(double value) {
    if (value <= 0) return "-";
    if (value >= 1000) return fmt::format("{:.0f}", value);
    if (value >= 10) return fmt::format("{:.1f}", value);
    return fmt::format("{:.3f}", value);
}

// How many times better ours is than the best of the others.
std::string ratio_text(const std::vector<double>& medians, Bench bench) {
    double best = 0;
    for (std::size_t channel = 1; channel < medians.size(); ++channel) {
        const double value = medians[channel];
        if (value <= 0) continue;
        const bool better = bench == Bench::latency ? value < best : value > best;
        if (best <= 0 || better) best = value;
    }
    if (best <= 0 || medians[0] <= 0) return "-";
    const double times = bench == Bench::latency ? best / medians[0] : medians[0] / best;
    return fmt::format("{:.1f}x", times);
}

struct Line {
    std::map<Bench, Chosen> chosen;
};

std::string half_line(const Line& line, Bench bench, std::size_t channels) {
    const auto found = line.chosen.find(bench);
    std::string text;
    for (std::size_t channel = 0; channel < channels; ++channel) {
        const double value = found == line.chosen.end() ? 0 : found->second.medians[channel];
        text += fmt::format(" {:>8}", figure(value));
    }
    const bool there = found != line.chosen.end();
    text += fmt::format(" {:>7}", there ? ratio_text(found->second.medians, bench) : "-");
    return text;
}

std::string mode_text(const Line& line) {
    std::string text;
    for (const auto& [bench, chosen] : line.chosen) {
        const std::string name = name_of(chosen.kind);
        if (!text.empty() && text != name) return fmt::format("{}/{}", text, name);
        text = name;
    }
    return text;
}

void print_table(const Outcome& outcome, const std::string& device) {
    std::map<std::uint64_t, Line> lines;
    bool noisy = false;
    for (std::size_t q = 0; q < outcome.questions.size(); ++q) {
        const Question& question = outcome.questions[q];
        Chosen chosen = choose(outcome, q);
        noisy = noisy || chosen.kind == Kind::noisy;
        lines[question.size].chosen[question.bench] = std::move(chosen);
    }
    const std::size_t channels = outcome.channels.size();
    fmt::print("\n{:>6} | {:^44} | {:^44} |\n", "", "one-way latency, us", "bandwidth, MB/s");
    std::string names;
    for (const std::string& name : {device, std::string("pipe"), std::string("unix"),
                                    std::string("tcp"), std::string("ratio")}) {
        names += name == "ratio" ? fmt::format(" {:>7}", name) : fmt::format(" {:>8}", name);
    }
    fmt::print("{:>6} |{} |{} | cores\n", "size", names, names);
    for (const auto& [size, line] : lines) {
        fmt::print("{:>6} |{} |{} | {}\n", size_text(size),
                   half_line(line, Bench::latency, channels),
                   half_line(line, Bench::bandwidth, channels), mode_text(line));
    }
    fmt::print(
        "\nBoth processes poll; medians of interleaved rounds of one run. ratio: how many times\n"
        "{} is better than the best of the three. cores: how near the two processors were;\n"
        "{}. Streams carry 1 byte for a message of 0.\n",
        device, probe_text(outcome));
    if (outcome.out_of_time) {
        fmt::print("-: not reached within {} s; the machine is busy.\n", measuring_seconds);
    }
    if (noisy) {
        fmt::print(
            "noisy: other work left too few clean samples, the disturbed ones are in these "
            "medians.\n"
            "A quiet machine shows other figures.\n");
    }
}

void print_next() {
    fmt::print(
        "\nTry next:\n"
        "  via info\n"
        "  via bench latency --size 8,64,4096 --against unix-socket,tcp-socket,line\n"
        "  via bench bandwidth --size 64K,1M --against ring,cma\n");
}

}  // namespace

int run_demo(const DemoOptions& options) {
    const auto complain = [](const std::string& what) {
        console::complain("via demo: {}", what);
        return exit_failed;
    };
    const std::int64_t start_ns = now_ns();
    auto cpus = choose_cpus({});
    if (!cpus) return complain(cpus.error().what);
    auto verified = verify_all(options, *cpus);
    if (!verified) return complain(verified.error().what);
    fmt::print("{} bytes arrived in the other process and each was checked.\n", *verified);
    fmt::print("Measuring beside pipe, Unix socket and TCP loopback, up to {} s ...\n",
               measuring_seconds);
    console::flush_output();
    auto outcome = measure(options, *cpus);
    if (!outcome) return complain(outcome.error().what);
    print_table(*outcome, options.device);
    fmt::print("Done in {:.0f} s.\n", static_cast<double>(now_ns() - start_ns) / 1e9);
    print_next();
    return exit_good;
}

}  // namespace via::cli

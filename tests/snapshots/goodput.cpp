// Prints what two NICs get through the simulated network: goodput against loss, round trip and
// receive room, and how fairly flows share a link. Virtual time: the same on every machine.
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "flows.hpp"

namespace via::snapshots {
namespace {

constexpr double megabit = 125'000;  // bytes

std::string table;

void print(const char* format, ...) __attribute__((format(printf, 1, 2)));
void print(const char* format, ...) {
    char line[400];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    table += line;
}

device::sim::LinkOptions link(Duration round_trip, std::uint32_t megabits) {
    device::sim::LinkOptions options;
    options.delay_min = options.delay_max = nanoseconds(round_trip.ns / 2);
    options.ns_per_kilobyte = 1024LL * 8 * 1000 / megabits;
    return options;
}

// Goodput -----------------------------------------------------------------------------------------

constexpr std::uint32_t link_megabits = 10'000;
constexpr double packet_bytes = 1'472;
constexpr double wire_share = 0.965;  ///< of a packet of 1472 bytes that is payload, at the best

struct Case {
    std::uint32_t loss;  ///< parts of a million
    Duration round_trip;
    std::uint32_t room;
};

/// Until the flow is in its stride, then until enough has come to tell.
double goodput(const Case& what) {
    Setup setup;
    setup.link = link(what.round_trip, link_megabits);
    setup.link.loss = what.loss;
    setup.receive_room = what.room;
    Flows flows(setup);
    flows.run(what.round_trip * 30 + milliseconds(1));
    const std::uint64_t before = flows.received(0);
    const Time begin = flows.now();
    const Duration longest = what.round_trip * 300 + milliseconds(20);
    while (flows.received(0) - before < 16'000'000 && flows.now() - begin < longest)
        flows.run(what.round_trip);
    return static_cast<double>(flows.received(0) - before) * 1e9 /
           static_cast<double>((flows.now() - begin).ns) / megabit;
}

void print_goodput() {
    print(
        "Goodput of one flow, Mbit/s, on a link of %u Mbit/s. Bounds: of the link and the receive\n"
        "room (one of it for each round trip), and Mathis et al. for loss-driven TCP.\n\n"
        " loss %%  round trip us  room bytes  goodput    bound   Mathis\n",
        link_megabits);
    for (const std::uint32_t loss : {0U, 1'000U, 10'000U, 50'000U, 200'000U})
        for (const std::int64_t round_trip_us : {10, 1'000, 50'000})
            for (const std::uint32_t room : {65'536U, 212'992U, 4'194'304U}) {
                const Case each{loss, microseconds(round_trip_us), room};
                const double seconds = static_cast<double>(each.round_trip.ns) / 1e9;
                const double bound = std::min(link_megabits * wire_share, room / seconds / megabit);
                print("%7.1f %14lld %11u %8.1f %8.1f ", loss / 1e4,
                      static_cast<long long>(round_trip_us), room, goodput(each), bound);
                if (loss == 0)
                    print("       -\n");
                else
                    print("%8.1f\n", std::min(bound, packet_bytes / seconds *
                                                         std::sqrt(1.5e6 / loss) / megabit));
            }
}

// Fairness ----------------------------------------------------------------------------------------

void print_fairness(std::uint32_t count, std::uint32_t queue_bytes) {
    Setup setup;
    setup.flows = count;
    setup.link = link(milliseconds(1), 1'000);
    setup.link.queue_bytes = queue_bytes;
    setup.between_starts = milliseconds(20);
    Flows flows(setup);
    flows.run(milliseconds(500));
    std::vector<double> got;
    for (std::uint32_t flow = 0; flow < count; ++flow)
        got.push_back(-static_cast<double>(flows.received(flow)));
    flows.run(seconds(1));
    double sum = 0;
    double squares = 0;
    double least = 1e9;
    double most = 0;
    for (std::uint32_t flow = 0; flow < count; ++flow) {
        const double rate = (got[flow] + static_cast<double>(flows.received(flow))) / megabit;
        sum += rate;
        squares += rate * rate;
        least = std::min(least, rate);
        most = std::max(most, rate);
    }
    print("%7u %12u %8.1f %8.1f %8.1f %8.3f\n", count, queue_bytes, sum, least, most,
          sum * sum / (count * squares));
}

std::string make_table() {
    print_goodput();
    print(
        "\nFlows that begin 20 ms after each other and share a link of 1000 Mbit/s, round trip 1 "
        "ms,\n"
        "during the second after the first 500 ms: Mbit/s, and Jain's index of fairness.\n\n"
        "  flows  queue bytes      all    least     most     Jain\n");
    for (const std::uint32_t queue : {65'536U, 1'048'576U})
        for (const std::uint32_t count : {2U, 8U}) print_fairness(count, queue);
    return table;
}

}  // namespace
}  // namespace via::snapshots

int main(int argc, char** argv) {
    const std::string text = via::snapshots::make_table();
    std::fputs(text.c_str(), stdout);
    if (argc < 3) return 0;
    if (std::strcmp(argv[1], "--update") == 0) {
        std::ofstream(argv[2]) << text;
        return 0;
    }
    std::ifstream file(argv[2]);
    const std::string kept{std::istreambuf_iterator<char>(file), {}};
    if (kept == text) return 0;
    std::printf(
        "\n%s says otherwise; if that is meant: cmake --build BUILD --target update_goodput\n",
        argv[2]);
    return 1;
}

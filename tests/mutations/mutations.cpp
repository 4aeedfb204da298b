// Breaks the protocol between hosts on purpose, in one way after the other, and runs worlds until a
// checker notices. A checker that catches nothing is no checker.
//   via_mutations            all of the table; exit code 1 if one is not caught in time
//   via_mutations NUMBER N   that mutation on seeds 1 to N: what is found
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "device/datagram/mutation.hpp"
#include "sim/world.hpp"

namespace {

using via::device::datagram::Mutation;

struct Broken {
    Mutation mutation;
    std::uint32_t seeds;  ///< of worlds, from 1 on: within so many
    const char* checker;  ///< that one notices
};

// Not here, because something else stands behind them: skip_packet_duplicate_check (frames have
// numbers, too), double_report (the engine counts each frame once), ignore_window (what a queue
// drops is sent again, only slower: tests/snapshots), skip_address_check (who cannot guess the
// connection's identifier has nothing to say anyway). accept_any_connection showed in one world of
// 160: it needs a peer that was opened again at its old port.
constexpr Broken table[] = {
    {Mutation::skip_frame_duplicate_check, 20, "bytes"},
    {Mutation::ack_what_was_dropped, 30, "liveness"},
    {Mutation::forget_checksum, 40, "state"},
    {Mutation::reuse_packet_number, 30, "liveness"},
    {Mutation::ignore_order, 20, "state"},
    {Mutation::never_report_loss, 20, "liveness"},
    {Mutation::ack_without_gaps, 30, "liveness"},
    {Mutation::skip_attempt_check, 20, "state"},
    {Mutation::skip_cookie_check, 10, "state"},
    {Mutation::forget_probe_timeout, 120, "liveness"},
};

/// What the world's checkers say; empty: nothing.
std::string verdict(std::uint64_t seed) {
    via::sim::World world(via::sim::draw_parameters(seed, via::sim::MediumKind::datagram));
    return world.run().violation;
}

/// The same in a process of its own, which a broken protocol may abort.
std::string verdict_apart(std::uint64_t seed) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) std::abort();
    const pid_t child = fork();
    if (child == 0) {
        std::fclose(stderr);
        const std::string found = verdict(seed);
        const ssize_t written = write(ends[1], found.data(), found.size());
        _exit(written == static_cast<ssize_t>(found.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::array<char, 1000> text{};
    std::string found;
    for (ssize_t count = 0; (count = read(ends[0], text.data(), text.size())) > 0;)
        found.append(text.data(), static_cast<std::size_t>(count));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) return "assertion: the engine noticed";
    return found;
}

bool is_caught(const Broken& broken) {
    via::device::datagram::present_mutation = broken.mutation;
    const std::string name = std::string(broken.checker) + ':';
    for (std::uint32_t seed = 1; seed <= broken.seeds; ++seed) {
        const std::string found = verdict_apart(seed);
        if (!found.starts_with(name)) continue;
        std::printf("%-28s caught by world %3u of %3u: %s\n", to_string(broken.mutation), seed,
                    broken.seeds, found.c_str());
        return true;
    }
    std::printf("%-28s NOT CAUGHT by %s within %u worlds\n", to_string(broken.mutation),
                broken.checker, broken.seeds);
    return false;
}

/// Without a mutation the same worlds are good.
bool is_good() {
    via::device::datagram::present_mutation = Mutation::none;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const std::string found = verdict_apart(seed);
        if (found.empty()) continue;
        std::printf("none: world %llu: %s\n", static_cast<unsigned long long>(seed), found.c_str());
        return false;
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3) {
        via::device::datagram::present_mutation =
            static_cast<Mutation>(std::strtoul(argv[1], nullptr, 10));
        const std::uint64_t seeds = std::strtoull(argv[2], nullptr, 10);
        std::printf("%s\n", to_string(via::device::datagram::present_mutation));
        for (std::uint64_t seed = 1; seed <= seeds; ++seed)
            if (const std::string found = verdict_apart(seed); !found.empty())
                std::printf("%llu %s\n", static_cast<unsigned long long>(seed), found.c_str());
        return 0;
    }
    bool good = is_good();
    for (const Broken& broken : table) good = is_caught(broken) && good;
    return good ? 0 : 1;
}

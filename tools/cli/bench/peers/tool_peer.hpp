// A channel of others that is measured by a program: one of their own, or a small client of ours
// on their library. What differs from program to program is a ToolPeer; tool_channel.cpp makes a
// channel of it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/channel.hpp"
#include "bench/places.hpp"
#include "bench/types.hpp"

namespace via::bench {

// One run of the program, of which each sample has one for each variant.
struct ToolOrder {
    Side side = Side::first;
    Question question;
    std::uint64_t messages = 0;  // of one phase
    std::string variant;
    std::string address;        // of the second side, which is the server
    std::uint16_t port = 0;     // free at the second side
    std::array<int, 2> cpus{};  // that the two sides are pinned to
    int word = 0;               // a number that no other pair has
};

struct ToolCommand {
    std::vector<std::string> arguments;  // the first is the program's file
    std::vector<std::string> settings;   // "NAME=VALUE", added to the environment
};

class ToolPeer {
public:
    virtual ~ToolPeer() = default;

    // Finds the programs, or says what to install. In the parent, before all else.
    virtual Status find() = 0;
    // Of what is measured: "UCX 1.13.1"; after find().
    virtual Result<std::string> version() const = 0;

    // As of Channel.
    virtual Question adapt(const Question& asked) const;
    virtual std::string refuses(const Question& question) const = 0;
    // It goes over shared memory, so that hosts of their own do not have it.
    virtual bool within_host() const { return true; }

    // Ways of asking; each sample tries all, and the best counts.
    virtual std::vector<std::string> variants() const { return {""}; }
    // The second side's program listens at order.port before the first one's is started.
    virtual bool listens() const { return true; }
    // The first side's program stands for both.
    virtual bool is_launcher() const { return false; }
    virtual ToolCommand command(const ToolOrder& order) const = 0;

    // How many times the program measures; 1: it only does so once, and cannot be looked into.
    virtual std::uint64_t phases(const Question&) const { return 1; }
    // What a program of several phases says it lost to others in the one that counts: the longer
    // its two sides were ready and did not run.
    virtual std::int64_t lost_ns(std::string_view) const { return 0; }

    // Nanoseconds of one message one way (latency) or of each message at the receiver, from what
    // the first side's program printed.
    virtual Result<double> message_ns(std::string_view printed, const ToolOrder& order) const = 0;
};

std::unique_ptr<Channel> make_tool_channel(std::string name, std::unique_ptr<ToolPeer> peer,
                                           const Places& places);

// What `program arguments...` prints, for versions.
Result<std::string> printed_by(std::string name, std::vector<std::string> arguments);

inline constexpr std::string_view setup_peers = "./dev setup --peers";

// The peers by file.
enum class Provider : std::uint8_t { tcp, shm };
std::unique_ptr<ToolPeer> make_fi_pingpong(Provider provider);

enum class UcxTest : std::uint8_t { tag, am, put, uct_am, tag_tcp };
std::unique_ptr<ToolPeer> make_ucx_perftest(UcxTest test);

enum class Client : std::uint8_t { openmpi, mpich, zeromq };
std::unique_ptr<ToolPeer> make_client(Client client);

}  // namespace via::bench

// What the two machines of a run say to each other over their control connection.
//
// Every message is 12 bytes of magic, version, kind and length, and a body. These 12 bytes and a
// refusal, which is text, are the same in every version, for ever: so ends of two versions can tell
// each other what is wrong. Everything else is understood by the same version only. Whoever is at
// the other end is not believed: a message that makes no sense is no message.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/address.hpp"
#include "bench/file_handle.hpp"
#include "bench/pair_child.hpp"
#include "bench/types.hpp"

namespace via::bench {

inline constexpr std::uint16_t control_version = 3;
inline constexpr std::uint16_t default_control_port = 9742;
inline constexpr std::size_t control_header_bytes = 12;
inline constexpr std::size_t most_control_bytes = 1024;  // of a body

// What a server does for a client at most. A client keeps to it, and says why if it cannot.
inline constexpr std::uint64_t most_message_bytes = 64ull << 20;
inline constexpr std::uint64_t most_memory_bytes = 1ull << 30;  // of all channels of a client
inline constexpr std::uint32_t most_depth = 1024;
inline constexpr std::uint32_t most_vis = 4096;
inline constexpr std::uint64_t most_messages = 10'000'000;  // of a sample
inline constexpr std::size_t most_channels = 8;
inline constexpr int sample_timeout_ms = 60'000;

enum class Kind : std::uint16_t { hello, welcome, refusal, open, opening, order, answer, close };

struct Message {
    Kind kind = Kind::hello;
    std::vector<std::byte> body;
};

// The first words of a client. Its answer is an empty welcome or a refusal.
struct Hello {
    std::uint32_t seconds = 0;  // its --max-seconds
};

// Opens channel number `channel`; numbers count from 0. Answered by Opening, then, when both
// processes have opened theirs or failed, by a RemoteAnswer.
struct Open {
    std::uint16_t channel = 0;
    std::string name;  // udp, auto, udp-socket, tcp-socket
    Question like;     // any question of the run; what concerns NIC and VIs is the same in all
    std::uint64_t arena_bytes = 0;
    std::uint64_t max_size = 0;
};

// Where the client's process finds the server's, and the word by which it is known there.
struct Opening {
    std::uint16_t port = 0;
    std::uint64_t word = 0;
};

struct RemoteOrder {
    std::uint16_t channel = 0;
    Question question;
    Effort effort;
};

// Of a server's process: what of an Answer the other machine needs.
struct RemoteAnswer {
    std::uint16_t channel = 0;
    Answer answer;
};

struct Close {
    std::uint16_t channel = 0;
};

std::vector<std::byte> to_bytes(Kind kind, std::span<const std::byte> body);
std::vector<std::byte> to_bytes(const Hello& hello);
std::vector<std::byte> to_bytes(const Open& open);
std::vector<std::byte> to_bytes(const Opening& opening);
std::vector<std::byte> to_bytes(const RemoteOrder& order);
std::vector<std::byte> to_bytes(const RemoteAnswer& answer);
std::vector<std::byte> to_bytes(const Close& close);
std::vector<std::byte> refusal(const std::string& why);

struct Header {
    std::uint16_t version = 0;
    Kind kind = Kind::hello;
    std::uint32_t body_bytes = 0;
};

// NULL: not of this protocol, in whatever version.
std::optional<Header> parse_header(std::span<const std::byte> bytes);

// NULL: makes no sense.
std::optional<Hello> parse_hello(std::span<const std::byte> body);
std::optional<Open> parse_open(std::span<const std::byte> body);
std::optional<Opening> parse_opening(std::span<const std::byte> body);
std::optional<RemoteOrder> parse_order(std::span<const std::byte> body);
std::optional<RemoteAnswer> parse_answer(std::span<const std::byte> body);
std::optional<Close> parse_close(std::span<const std::byte> body);
std::string parse_refusal(std::span<const std::byte> body);

// Why a server does not do that; empty when it does. `memory_bytes`: of channels it has already.
std::string objection_to(const Open& open, std::uint64_t memory_bytes);
std::string objection_to(const Question& question, const Effort& effort, const Open& open);

// A connected TCP socket that carries such messages.
class ControlLine {
public:
    ControlLine() = default;
    explicit ControlLine(FileHandle socket);

    int get() const { return socket_.get(); }
    Status send(std::span<const std::byte> message);
    // Waits for a whole message. A refusal is a failure in the other side's words.
    Result<Message> receive(int timeout_ms);
    // The same for one kind alone.
    Result<std::vector<std::byte>> receive(Kind kind, int timeout_ms);

private:
    ParentFile socket_;
};

}  // namespace via::bench

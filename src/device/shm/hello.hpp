// What two NICs say to each other on their Unix socket: a greeting each, with memory attached as
// descriptors; or a refusal; later segments; and at the end perhaps a goodbye. Everything else on
// that socket is one-byte wake-ups. Pure functions over bytes: no system call here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

#include "base/address.hpp"
#include "base/status.hpp"
#include "device/shm/layout.hpp"

namespace via::device::shm {

enum class MessageKind : std::uint32_t { hello = 1, refusal, goodbye, segment };

/// Why a peer is not accepted. The values are part of the protocol.
enum class Refusal : std::uint32_t {
    protocol = 1,  ///< the greeting is not one
    version,       ///< another version of the channel
    features,      ///< one side needs what the other does not know
    sizes,         ///< ring, arena or frame sizes out of bounds
    address,       ///< it is not at the NIC address that it names
    user,          ///< another user
    memory,        ///< the attached memory is missing, not sealed, or of another size
    resources,     ///< no room: descriptors, memory, paths
    count_,
};

const char* to_string(Refusal refusal);
/// What the program that wanted to connect is told.
Status to_status(Refusal refusal);

/// Every message of every version begins like this.
struct MessageHead {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t kind;
};

constexpr std::size_t nic_name_max = 48;  ///< bytes of a NIC's name in the directory

struct Hello {
    MessageHead head;
    std::uint32_t features;
    std::uint32_t required;
    std::uint32_t ring_slots;
    std::uint32_t arena_bytes;
    std::uint32_t payload_max;
    std::uint32_t header_max;
    std::uint64_t memory_bytes;
    std::uint16_t address_length;
    std::uint8_t address[18];
    std::uint8_t name_length;
    char name[nic_name_max];
    std::uint8_t zero[3];
};

/// A refusal or a goodbye.
struct Farewell {
    static constexpr std::size_t text_max = 104;
    MessageHead head;
    std::uint32_t reason;  ///< Refusal; 0 in a goodbye
    std::uint32_t text_length;
    char text[text_max];
};

/// A half of what a program can address.
inline constexpr std::uint64_t segment_bytes_max = 1ULL << 46;

/// Memory of the sender that the receiver may map; its descriptor is attached.
struct SegmentOffer {
    MessageHead head;
    std::uint64_t length;   ///< bytes
    std::uint64_t cookie;   ///< the receiver's own word
    std::uint32_t grant;    ///< index of the word in the sender's memory
    std::uint32_t granted;  ///< what that word is, as long as the right lasts
    std::uint32_t writable;
    std::uint32_t zero;
};

static_assert(sizeof(MessageHead) == 16 && sizeof(SegmentOffer) == 48);
static_assert(offsetof(Hello, features) == 16 && offsetof(Hello, memory_bytes) == 40);
static_assert(offsetof(Hello, address_length) == 48 && offsetof(Hello, name_length) == 68);
static_assert(offsetof(Hello, name) == 69 && sizeof(Hello) == 120);
static_assert(sizeof(Farewell) == 128);
/// No message of this version is longer; a longer one is cut off and refused.
constexpr std::size_t message_max = 256;

/// `features`: those in force here, of features_known.
Hello make_hello(const Layout& layout, const HostAddress& address, std::string_view name,
                 std::uint32_t features = 0);
Farewell make_refusal(Refusal reason, std::string_view text);
Farewell make_goodbye(std::string_view text);

/// What came instead of a greeting, or what is wrong with it.
struct Unwelcome {
    Refusal reason;
    bool by_peer;      ///< it is the peer that refused us
    std::string text;  ///< printable
};

/// Checks the peer's first message. Whether the peer is at the address that it names, and whether
/// the name is its own, is for the caller to find out.
std::expected<Hello, Unwelcome> check_hello(std::span<const std::byte> message);
/// True when `message` is an offer of a segment, as make_segment_offer() makes it.
bool read_segment_offer(std::span<const std::byte> message, SegmentOffer& offer);
SegmentOffer make_segment_offer(std::uint64_t length, std::uint64_t cookie, bool writable);
/// The text of `message` if it is a goodbye, or the refusal of one who could not take our answer to
/// its greeting.
std::expected<std::string, Refusal> check_farewell(std::span<const std::byte> message);

/// A NIC's name in the directory: nic-PID-KEY, PID in decimal, KEY in hexadecimal digits.
std::string make_nic_name(int pid, std::uint64_t key);
/// True when `name` is one; `pid` then tells whose it claims to be.
bool parse_nic_name(std::string_view name, int& pid);

}  // namespace via::device::shm

// Everything that one seed decides before a world begins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.hpp"
#include "device/sim/fabric.hpp"
#include "device/sim/sim_port.hpp"
#include "device/sim/stormy_weather.hpp"
#include "device/sim/weather.hpp"
#include "nic/nic.hpp"

namespace via::sim {

/// VIs of one profile can be connected with each other.
struct Profile {
    engine::Reliability reliability;
    std::uint32_t transfer_length_max;
};

/// How often the workload does what, as parts of their sum.
struct Weights {
    std::uint32_t make_vi;
    std::uint32_t destroy_vi;
    std::uint32_t listen;
    std::uint32_t answer;
    std::uint32_t connect;
    std::uint32_t disconnect;
    std::uint32_t post_receive;
    std::uint32_t post_send;
    std::uint32_t take;
    std::uint32_t memory;
    std::uint32_t queues;
    std::uint32_t close;
    std::uint32_t share;
};

enum class MediumKind : std::uint8_t {
    lossless,  ///< frames arrive, in order
    datagram,  ///< the protocol between hosts over datagrams, in any weather
};

/// Who has keys for the wire.
enum class KeysOf : std::uint8_t {
    nobody,
    cluster,  ///< all have the same
    hosts,    ///< each has its own, and those of all others
};

constexpr std::uint32_t relays_max = 2;

/// A relay passes nothing on for a while.
struct RelayDeath {
    std::uint32_t relay = 0;
    Time begin{};
    Time end{};
    device::sim::Ending ending{};
    bool for_good = false;  ///< once it has died; the world does not wait for its end
};

/// Of worlds whose hosts are of two networks, by turns, and meet over relays.
struct RelayedWorld {
    std::uint32_t count = 0;  ///< 0: all are in one network
    bool in_a_row = false;    ///< one behind the other, instead of side by side
    /// There always is a way that works, and nothing else goes wrong: no connection may break.
    bool steady = false;
    std::vector<RelayDeath> deaths;
};

constexpr std::uint32_t networks_max = 3;

/// Besides the first one, whose weather and length are the world's.
struct OtherNetwork {
    device::sim::StormyOptions weather;
    std::uint32_t datagram_max = 0;
};

/// Of worlds whose hosts have interfaces in several networks.
struct RailedWorld {
    /// By host, the network of each interface; the first one is that of its NICs' addresses. Empty:
    /// all are in one network.
    std::vector<std::vector<std::uint32_t>> interfaces;
    std::vector<OtherNetwork> others;
    bool routed = false;  ///< from one network to another, too
    /// One network always works, and nothing else goes wrong: who met by two parts for nothing.
    bool steady = false;
    /// Where each host has a key: is it known at all of its addresses?
    bool keys_everywhere = true;
};

/// By which the weather of such a world knows an interface.
constexpr device::sim::NodeId number_of_interface(std::uint32_t host, std::uint32_t interface) {
    return host * networks_max + interface;
}

/// Of worlds of datagrams.
struct DatagramWorld {
    std::uint32_t hosts = 1;  ///< NICs beyond are further processes of these
    device::sim::StormyOptions weather;
    device::sim::SimPortOptions port;
    std::uint32_t datagram_min = 0;  ///< interfaces change between this and the port's maximum ...
    std::uint32_t length_changes_permille = 0;  ///< ... at so many of the steps
    Duration silence{};                         ///< patience with a silent peer
    std::uint32_t pauses_permille = 0;          ///< of steps after which a process stands still
    Duration pause_max{};
    std::uint32_t crash_percent = 0;  ///< of closings: without a word
    /// Of steps: a stranger sends something, forged or seen before.
    std::uint32_t strangers_permille = 0;
    std::uint32_t strangers_see = 0;  ///< datagrams that they know; 0: they see nothing
    bool strangers_forge = false;     ///< data, with what they know
    bool calm = false;                ///< nothing is lost, and nobody stands still
    KeysOf keys = KeysOf::nobody;
    std::uint64_t packets_per_key = 0;
    Duration key_age{};
    RelayedWorld relays;
    RailedWorld rails;
};

struct Parameters {
    std::uint64_t seed = 0;
    MediumKind medium = MediumKind::lossless;
    std::uint32_t nics = 2;
    std::uint32_t steps = 0;    ///< of the workload, of all NICs together
    std::uint32_t vis_max = 0;  ///< per NIC
    std::uint64_t arena_length = 0;
    std::uint32_t region_kib_max = 64;
    std::uint32_t refuse_percent = 0;  ///< pressure: reserve() refused
    std::uint32_t short_percent = 0;   ///< pressure: receive() cut short
    std::uint32_t fault_percent = 0;   ///< of posts that are wrong on purpose
    std::uint32_t segments_max = 1;
    std::uint32_t peer_percent = 0;  ///< of requests that are peer to peer
    /// Worlds of fast paths: descriptors are posted together, connections have credits, frames
    /// are sent in one call.
    bool fast_paths = false;
    std::uint32_t together_max = 1;    ///< descriptors that one call posts
    std::uint32_t credit_percent = 0;  ///< of VIs that want to send only what finds a receive
    std::uint32_t share_percent = 0;   ///< of regions are segments that peers may attach to
    std::uint32_t window_percent = 0;  ///< of RDMA that goes by a memory window
    std::uint32_t shared_percent = 0;  ///< of VIs take from their node's shared receive queue
    std::uint32_t atomic_percent = 0;  ///< of sends are atomic operations instead
    std::uint32_t queue_entries_max = 1;
    Duration step_max{};                     ///< between two steps of a NIC
    Duration turn_delay_max{};               ///< from an arrival to the turn that takes it
    Duration listen_max = milliseconds(1);   ///< patience of ConnectWait
    Duration request_max = milliseconds(2);  ///< patience of ConnectRequest
    std::vector<Profile> profiles;
    Weights weights{};
    NicLimits limits;
    memory::CacheShape table;  ///< of the NICs' own tables
    device::sim::FabricOptions fabric;
    device::sim::FairWeatherOptions weather;
    DatagramWorld datagram;
};

/// What the NICs of a world are on: frames that are never lost, or datagrams in any weather; and of
/// the latter with more of something: strangers who see all traffic and forge data, with much
/// coming and going at the same ports; weather in which nothing may be sent for nothing; ways that
/// become narrower while messages longer than a packet are under way; keys for the wire, and
/// strangers who try all that they can without one; relays between two networks, which die; hosts
/// in several networks, whose cables are cut and repaired. Of the former with the pace of NICs that
/// take their time: a carrier brings the frames (World).
enum class WorldKind : std::uint8_t {
    lossless,
    datagram,
    hostile,
    calm,
    narrow,
    lab,
    sealed,
    relays,
    rails
};
/// By kind.
constexpr const char* world_kind_names[] = {"lossless", "datagram", "hostile", "calm", "narrow",
                                            "lab",      "sealed",   "relays",  "rails"};
std::optional<WorldKind> world_kind_of(std::string_view name);

/// The same seed and kind, the same parameters. A lossless world is the same whatever is added to
/// the others.
Parameters draw_parameters(std::uint64_t seed, WorldKind kind = WorldKind::lossless);
/// In one line, for people.
std::string to_text(const Parameters& parameters);

}  // namespace via::sim

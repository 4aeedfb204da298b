// What a UDP port is opened with.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>

#include "base/counters.hpp"
#include "device/udp/interface.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

struct UdpConfig {
    Place place;                 ///< as find_place() answered
    std::string directory;       ///< of this address; exists, is ours, for Listeners::open()
    std::uint64_t instance = 0;  ///< of the NIC, random
    bool shared = false;         ///< the directories of other users lie beside it
    System* system = &System::real();
    /// Datagrams until a peer counts as busy and has a socket connected to it; from 2.
    std::uint32_t busy_after = 512;
    /// Raw Ethernet transmit to a busy peer, where packet sockets may be had.
    bool own_frames = false;
    Counters* counters = nullptr;  ///< of the NIC, outlive the port; nullptr: nobody counts
    /// Hears what people should know.
    std::function<void(const std::string&)> report = {};
    /// Hears what needs nobody: that this NIC answers for its host in place of one that does not.
    std::function<void(const std::string&)> mention = {};
    struct Meeting {
        std::string directory;
        bool shared = false;
    };
    /// Makes the directory anew, when our names in it are gone, or says why it cannot be made.
    /// Empty: `directory` is looked for again.
    std::function<std::expected<Meeting, std::string>()> directory_again = {};
    /// One of several networks of a NIC, and not the first: nobody is looked for there, and it
    /// answers for no host. There is no directory then.
    bool only_data = false;
};

}  // namespace via::device::udp

// Every number that bounds the library, in one place (VIPL 1.9 says the least that must be
// reported; `via info` prints these).
#pragma once

#include <cstdint>

namespace via {

struct NicLimits {
    std::uint32_t vis_max = 65536;
    std::uint32_t completion_queues_max = 1024;
    std::uint32_t completion_queue_entries_max = 65536;
    std::uint32_t protection_tags_max = 65536;
    std::uint32_t regions_max = 1U << 20;
    std::uint32_t windows_max = 1U << 20;  ///< memory windows
    std::uint32_t descriptors_per_queue_max = 1024;
    std::uint32_t segments_per_descriptor_max = 252;
    std::uint32_t transfer_length_max = 1U << 30;  ///< bytes in one message
    std::uint32_t discriminator_length_max = 64;   ///< bytes
    std::uint32_t connections_waiting_max = 1024;  ///< requests handed to ConnectWait, unanswered
    std::uint32_t listeners_max = 1024;            ///< that stand
    std::uint32_t backlog_max = 4096;              ///< requests that wait in one of them
    std::uint32_t shared_receive_queues_max = 256;
    std::uint32_t shared_receives_max = 65536;  ///< posted to one of them, and taken by no VI
    std::uint32_t reads_in_flight_max = 8;      ///< RDMA reads outstanding per VI and direction
    std::uint32_t paths_max = 4096;             ///< peer NICs
    std::uint32_t turn_frames_max = 96;         ///< frames received in one turn, and sent
    std::uint32_t turn_bytes_max = 256 * 1024;  ///< payload bytes moved in one turn
};

}  // namespace via

// Segments of programs: ours are offered to peers over the channel's socket, theirs are mapped.
#pragma once

#include <cstdint>

#include "device/facets.hpp"
#include "device/shm/channels.hpp"
#include "device/shm/message.hpp"
#include "device/shm/reports.hpp"
#include "device/shm/system.hpp"

namespace via::device::shm {

/// Owns the question whether an offer answers one of ours.
class Segments final : public SegmentSharing {
public:
    Segments(System& system, Channels& channels, Reports& reports)
        : system_(system), channels_(channels), reports_(reports) {}

    Status offer(PathId path, const SharedMemory& memory, bool writable, std::uint64_t cookie,
                 GrantId& grant) override;
    void expect_offers(const Expects& expects) override { expects_ = expects; }
    void revoke(PathId path, GrantId grant) override;

    /// An offer of the peer's. False: the message is none, or one that ends the path.
    bool take(Channel& channel, const Message& message);

private:
    bool is_expected(PathId path, std::uint64_t cookie) const;

    System& system_;
    Channels& channels_;
    Reports& reports_;
    Expects expects_;  ///< whether a question stands
};

}  // namespace via::device::shm

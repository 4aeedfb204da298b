// A device that joins a NIC to itself: what is sent on its one path comes back, in order. It needs
// no operating system and no time, so the engine's tests and `via info` can always have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "device/grants.hpp"

namespace via::device::loopback {

struct LoopbackOptions {
    std::uint32_t payload_max = 8192;  ///< bytes of payload in one frame
    std::uint32_t frames_max = 64;     ///< frames on their way at once; a further one must wait
    bool pulls = false;                ///< large messages are pulled from memory, not sent
};

/// The only path; it exists since the device does and leads back.
constexpr PathId own_path = 0;

class LoopbackDevice : public Device, public SmallSends, public SegmentSharing, public Pulling {
public:
    explicit LoopbackDevice(const HostAddress& address, const LoopbackOptions& options = {});

    /// Answers at once: the own address if somebody listens, else no_match; any other address is
    /// not_reachable.
    void resolve(const NetAddress& remote, std::uint64_t cookie) override;
    Status listen(const Discriminator& discriminator) override;
    void unlisten(const Discriminator& discriminator) override;
    HostAddress peer_address(PathId path) const override;

    bool reserve(PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                 FrameSlot& slot) override;
    void transmit(PathId path) override;
    std::uint32_t notify() override { return 0; }

    SmallSends* small_sends() override { return this; }
    std::uint32_t send_small(PathId path, std::uint64_t low, std::uint64_t high,
                             const std::byte* payload, std::uint32_t length, bool alone) override;
    std::uint32_t send_pieces(PathId path, std::uint64_t low, std::uint64_t high,
                              const Pieces& payload) override;

    SegmentSharing* sharing() override { return this; }
    Status offer(PathId path, const SharedMemory& memory, bool writable, std::uint64_t cookie,
                 GrantId& grant) override;
    void revoke(PathId path, GrantId grant) override;
    Pulling* pulling() override { return this; }
    bool prefers_pull(PathId /*path*/, std::uint64_t /*length*/) override { return pulls_; }
    Status pull(PathId path, std::span<const Extent> remote,
                std::span<const Extent> local) override;

    std::size_t receive(std::span<Frame> frames) override;
    bool release() override;
    /// Frames on their way are dropped; after the down event the path can be resolved again.
    void close_for_violation(PathId path, const char* reason) override;

    bool next_event(PathEvent& event) override;
    void set_waiting_for_room(PathId path) override;
    bool has_work() override;

private:
    struct Slot {
        std::byte header[Frame::inline_max];
        std::uint32_t header_length;
        std::uint32_t payload_length;
    };
    struct Listening {
        Discriminator discriminator;
        std::uint32_t count;
    };

    bool listens(const Discriminator& discriminator) const;
    Slot& slot_at(std::uint64_t position) { return slots_[position % slots_.size()]; }
    std::byte* payload_at(std::uint64_t position) {
        return payloads_.get() + position % slots_.size() * capabilities_.payload_max;
    }
    bool has_room() const { return reserved_ - released_ < slots_.size(); }

    bool pulls_;
    std::vector<Slot> slots_;
    std::unique_ptr<std::byte[]> payloads_;
    // How many frames ever reached each station; released <= received <= published <= reserved.
    std::uint64_t reserved_ = 0;
    std::uint64_t published_ = 0;
    std::uint64_t received_ = 0;
    std::uint64_t released_ = 0;
    bool waiting_for_room_ = false;
    bool closed_ = false;
    std::deque<PathEvent> events_;
    std::vector<Listening> listening_;
    std::unique_ptr<Atomic<std::uint32_t>[]> grant_words_;
    Grants grants_;
};

}  // namespace via::device::loopback

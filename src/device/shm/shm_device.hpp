// The device between processes of one user on one host: see README.md.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>

#include "device/device.hpp"
#include "device/shm/channels.hpp"
#include "device/shm/meeting.hpp"
#include "device/shm/pulls.hpp"
#include "device/shm/reports.hpp"
#include "device/shm/segments.hpp"
#include "device/shm/shm_config.hpp"
#include "device/shm/system.hpp"
#include "device/shm/wait_set.hpp"

namespace via::device::shm {

/// Owns the parts of the medium, and polls the channels: which of them is asked for frames, told of
/// them, and looked after. Aligned, so that the polls of two devices in one process do not share a
/// line.
class alignas(128) ShmDevice final : public Device, public SmallSends, public Sleeping {
public:
    /// The error says what failed, why and what to do. Makes system calls.
    static std::expected<std::unique_ptr<ShmDevice>, std::string> open(const ShmConfig& config);
    ShmDevice(const ShmDevice&) = delete;
    ShmDevice& operator=(const ShmDevice&) = delete;

    /// Our name in the directory.
    const std::string& name() const { return meeting_.name(); }

    void resolve(const NetAddress& remote, std::uint64_t cookie) override {
        meeting_.resolve(remote, cookie);
    }
    Status listen(const Discriminator& discriminator) override {
        return meeting_.listen(discriminator);
    }
    void unlisten(const Discriminator& discriminator) override { meeting_.unlisten(discriminator); }
    HostAddress peer_address(PathId path) const override;

    bool reserve(PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                 FrameSlot& slot) override;
    void transmit(PathId path) override;
    std::uint32_t notify() override;
    std::size_t receive(std::span<Frame> frames) override;
    bool release() override;
    void close_for_violation(PathId path, const char* reason) override;
    bool next_event(PathEvent& event) override { return channels_.next_event(event); }
    Time next_deadline() const override;
    void set_waiting_for_room(PathId path) override;
    bool has_work() override;

    SmallSends* small_sends() override { return this; }
    std::uint32_t send_pieces(PathId path, std::uint64_t low, std::uint64_t high,
                              const Pieces& payload) override;
    std::uint32_t send_small(PathId path, std::uint64_t low, std::uint64_t high,
                             const std::byte* payload, std::uint32_t length, bool alone) override;

    SegmentSharing* sharing() override { return &segments_; }
    Pulling* pulling() override { return &pulls_; }

    Sleeping* sleeping() override { return this; }
    void service(Time now) override;
    void arm(Sleep sleep) override;
    int wait_handle() const override { return wait_set_.handle(); }
    std::size_t wake_words(std::span<WakeWord> words) override;
    void woken_by(const WakeWord& word) override;

private:
    explicit ShmDevice(const ShmConfig& config);

    // shm_device.cpp: the polling path
    bool reserve_other(Channel& channel, std::uint32_t header_length, std::uint32_t payload_length,
                       FrameSlot& slot);
    bool reserve_slow(Channel& channel, std::uint32_t header_length, std::uint32_t payload_length,
                      FrameSlot& slot);
    std::uint32_t tell_of_sent(Channel& channel);
    std::uint32_t keep_small(Channel& channel, std::uint64_t low, std::uint64_t high,
                             const std::byte* payload, std::uint32_t length);
    void await_answer(Channel& channel);
    std::size_t receive_fairly(std::span<Frame> frames);
    std::size_t take_nothing(Channel& channel);
    std::size_t take(Channel& channel, std::span<Frame> frames);
    void went_idle(Channel& channel);
    void wake(Channel& channel, bool sent, std::uint32_t& calls);
    [[gnu::noinline]] void wake_sleeper(Channel& channel, std::uint32_t word, bool sent,
                                        std::uint32_t& calls);

    // shm_service.cpp: peers that are there
    void dispatch(const epoll_event& event);
    void read_socket(Channel& channel);
    void look_after(Channel& channel);
    void bring_pages(Channel& channel);
    void give_back_arena(Channel& channel);

    // Destroyed from the last: first our names, so that nobody comes any more.
    ShmConfig config_;
    System& system_;
    Reports reports_;
    WaitSet wait_set_;
    Channels channels_;
    Segments segments_;
    Pulls pulls_;
    Meeting meeting_;
    std::size_t cursor_ = 0;   ///< where in the live ones the next receive() begins
    bool wake_again_ = false;  ///< a wake-up failed for want of memory: service() repeats it
    std::uint32_t sleep_count_ = 0;
    Time now_{};  ///< of the last service()
    Time idle_deadline_ = Time::never();
};

}  // namespace via::device::shm

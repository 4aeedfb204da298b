// The device between processes of one user on one host: see README.md.
#pragma once

#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/shm/channel.hpp"
#include "device/shm/handshake.hpp"
#include "device/shm/message.hpp"
#include "device/shm/rendezvous.hpp"
#include "device/shm/system.hpp"

namespace via::device::shm {

struct ShmConfig {
    /// Exists, mode 0700, ours; within the directory of this machine (boot id, network namespace).
    /// So that NICs of other addresses find it, it is called folder_name(address).
    std::string directory;
    HostAddress address;                          ///< the same for all NICs of the directory
    std::string host;                             ///< the name that `address` stands for, or empty
    std::uint64_t key = 0;                        ///< random: tells the NICs of one process apart
    std::uint32_t ring_slots = 1024;              ///< power of two, 64 bytes each, per peer
    std::uint32_t arena_bytes = 1U << 22;         ///< power of two, per peer, given back when idle
    std::uint32_t paths_max = 4096;               ///< peers
    std::uint32_t paths_per_process_max = 64;     ///< of these, come from one process
    std::uint32_t handshakes_max = 64;            ///< peers that came and have not greeted yet
    std::uint32_t wakeups_per_second_max = 1000;  ///< by one peer, with nothing to show
    Duration handshake_timeout = seconds(5);
    Duration arena_idle_after = seconds(5);
    OneCopy one_copy = OneCopy::measured;  ///< how large messages go
    /// Told once of each thing that people should know (a peer refused, condemned, ...). Called
    /// with the turn, from any of the device's calls; may be empty.
    std::function<void(const std::string&)> report;
    /// Makes the directory anew, when it is gone, and answers its path, or why it cannot be made.
    /// Empty: `directory` is looked for again.
    std::function<std::expected<std::string, std::string>()> directory_again;
    System* system = nullptr;  ///< nullptr: the real one
};

/// Aligned, so that the polls of two devices in one process do not share a line.
class alignas(128) ShmDevice final : public Device {
public:
    /// The error says what failed, why and what to do. Makes system calls.
    static std::expected<std::unique_ptr<ShmDevice>, std::string> open(const ShmConfig& config);
    /// Removes our names and leaves all peers; what was transmitted stays readable for them.
    ~ShmDevice() override;
    ShmDevice(const ShmDevice&) = delete;
    ShmDevice& operator=(const ShmDevice&) = delete;

    const Capabilities& capabilities() const override { return capabilities_; }
    const HostAddress& address() const override { return config_.address; }
    /// Our name in the directory.
    const std::string& name() const { return rendezvous_->name(); }

    void resolve(const NetAddress& remote, std::uint64_t cookie) override;
    Status listen(const Discriminator& discriminator) override;
    void unlisten(const Discriminator& discriminator) override;
    HostAddress peer_address(PathId path) const override;

    bool reserve(PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                 FrameSlot& slot) override;
    void transmit(PathId path) override;
    void abandon(PathId path) override;
    std::uint32_t notify() override;
    std::uint32_t send_pieces(PathId path, std::uint64_t low, std::uint64_t high,
                              const Pieces& payload) override;
    std::uint32_t send_small(PathId path, std::uint64_t low, std::uint64_t high,
                             const std::byte* payload, std::uint32_t length, bool alone) override;
    Status offer(PathId path, const SharedMemory& memory, bool writable, std::uint64_t cookie,
                 GrantId& grant) override;
    void expect_offers(const Expects& expects) override { expects_ = expects; }
    void revoke(PathId path, GrantId grant) override;
    bool prefers_transfer(PathId path, std::uint64_t length) override;
    void transferred(PathId path, bool fetched) override;
    Status transfer(PathId path, std::span<const Extent> remote,
                    std::span<const Extent> local) override;
    std::size_t receive(std::span<Frame> frames) override;
    bool release() override;
    void condemn(PathId path, const char* reason) override;

    bool next_event(PathEvent& event) override;
    Time next_deadline() const override;
    void service(Time now) override;
    void arm(Sleep sleep) override;
    void set_waiting_for_room(PathId path) override;
    bool has_work() override;
    int wait_handle() const override { return epoll_.get(); }
    std::size_t wake_words(std::span<WakeWord> words) override;
    void woken_by(const WakeWord& word) override;

private:
    using Handshakes = std::map<std::uint32_t, Handshake>;

    explicit ShmDevice(const ShmConfig& config);
    Outcome<void> start();

    // shm_device.cpp: the polling path
    bool reserve_other(Channel& channel, std::uint32_t header_length, std::uint32_t payload_length,
                       FrameSlot& slot);
    bool reserve_slow(Channel& channel, std::uint32_t header_length, std::uint32_t payload_length,
                      FrameSlot& slot);
    void push_event(PathEvent event) {
        events_.push_back(std::move(event));
        may_have_events_ = true;
    }
    std::uint32_t tell_of_sent(Channel& channel);
    std::uint32_t keep_small(Channel& channel, std::uint64_t low, std::uint64_t high,
                             const std::byte* payload, std::uint32_t length);
    void await_answer(Channel& channel);
    std::size_t receive_fairly(std::span<Frame> frames);
    std::size_t take_nothing(Channel& channel);
    std::size_t take(Channel& channel, std::span<Frame> frames);
    void went_idle(Channel& channel);
    void announce(Channel& channel);
    void touch(Channel& channel);
    void wake(Channel& channel, bool sent, std::uint32_t& calls);
    [[gnu::noinline]] void wake_sleeper(Channel& channel, std::uint32_t word, bool sent,
                                        std::uint32_t& calls);
    void condemn(Channel& channel, const char* reason);
    void go_live(Channel& channel);
    void end(Channel& channel);
    void destroy(Channel& channel);

    // shm_connect.cpp: peers are found and let in
    void push_unresolved(std::uint64_t cookie, Status status);
    Channel* find_channel(const HostAddress& address, const std::string& name) const;
    void run_handshake(std::uint32_t id);
    void fail_handshake(Handshakes::iterator at, const Breakdown& why);
    void finish_handshake(Handshakes::iterator at);
    bool watch(Handshake& handshake, PathId path, std::uint32_t serial);
    void expire_handshakes();
    void accept_peers();
    void admit(Descriptor socket);
    bool is_crowded(std::int32_t pid) const;
    void drop_oldest_handshake();
    bool is_programs(int descriptor) const;
    void say_short_of_descriptors();
    bool accept_failed(int error);
    int turn_one_away();
    void pause_accepting();
    void look_at_names();
    void make_known();
    void resume_accepting();

    // shm_segments.cpp: segments of peers
    bool take_segment(Channel& channel, const Message& message);
    bool is_expected(PathId path, std::uint64_t cookie) const;

    // shm_service.cpp: peers that are there
    void report(const std::string& text);
    static std::string describe(const Channel& channel);
    bool watch(int fd, std::uint64_t key, int operation);
    void unwatch(int fd);
    void dispatch(const epoll_event& event);
    void read_socket(Channel& channel);
    void depart(Channel& channel);
    void look_after(Channel& channel);
    void bring_pages(Channel& channel);
    void give_back_arena(Channel& channel);

    // The polling path's.
    std::vector<Channel*> live_;                   ///< in no order
    std::size_t cursor_ = 0;                       ///< where in live_ the next receive() begins
    Channel* taken_ = nullptr;                     ///< channels with unreleased frames
    Channel* touched_ = nullptr;                   ///< channels to notify
    std::vector<std::unique_ptr<Channel>> table_;  ///< by path
    std::vector<Channel*> ended_;                  ///< their down events are not taken yet
    std::deque<PathEvent> events_;                 ///< all but down
    bool wake_again_ = false;  ///< a wake-up failed for want of memory: service() repeats it

    std::vector<PathId> free_paths_;
    std::uint32_t serial_ = 0;  ///< tells later users of a path, and handshakes, apart
    Handshakes handshakes_;
    std::uint32_t sleep_count_ = 0;
    Sleep sleep_ = Sleep::awake;
    Time now_{};  ///< of the last service()
    Time idle_deadline_ = Time::never();
    Time accept_deadline_ = Time::never();
    Time names_look_{};  ///< due while somebody may look for us
    bool short_of_descriptors_ = false;
    std::uint32_t reports_left_ = 4;

    ShmConfig config_;
    Expects expects_;  ///< whether a question stands
    System& system_;
    Capabilities capabilities_;
    Layout layout_;
    Descriptor epoll_;
    Descriptor reserve_;  ///< given up to turn away a peer when descriptors run out
    std::unique_ptr<Rendezvous> rendezvous_;
};

}  // namespace via::device::shm

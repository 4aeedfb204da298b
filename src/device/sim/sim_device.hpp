// A device on the simulated network. It keeps no time of its own: what the fabric's clock says has
// arrived is taken in at the next call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "device/grants.hpp"
#include "device/sim/fabric.hpp"

namespace via::device::sim {

/// Owns the paths of one node, what has arrived there and was not taken, and the frames that it has
/// lent.
class SimDevice final : public Device,
                        public SmallSends,
                        public SegmentSharing,
                        public Pulling,
                        private Station {
public:
    /// The fabric outlives the device. Destroying it is a death that peers hear of.
    SimDevice(Fabric& fabric, const HostAddress& address);
    ~SimDevice() override;
    NodeId node() const { return node_; }

    /// Answered by the other node when the question has arrived there: resolved, no_match, or
    /// not_reachable when nobody has the address.
    void resolve(const NetAddress& remote, std::uint64_t cookie) override;
    Status listen(const Discriminator& discriminator) override;
    void unlisten(const Discriminator& discriminator) override;
    HostAddress peer_address(PathId path) const override;

    bool reserve(PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                 FrameSlot& slot) override;
    void transmit(PathId path) override;
    /// The payload of the nth frame that is reserved there lay at that address of its program.
    void name_payload(PathId path, std::size_t nth, std::uint64_t address);
    /// Publishes what send_small() kept; nobody sleeps here.
    std::uint32_t notify() override;

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
    bool prefers_pull(PathId path, std::uint64_t length) override;
    /// Nodes are in one process, so memory is there at once, whatever the weather.
    Status pull(PathId path, std::span<const Extent> remote,
                std::span<const Extent> local) override;

    std::size_t receive(std::span<Frame> frames) override;
    bool release() override;
    void close_for_violation(PathId path, const char* reason) override;

    bool next_event(PathEvent& event) override;
    /// The next arrival, or now when something waits to be taken.
    Time next_deadline() const override;
    void set_waiting_for_room(PathId path) override;
    bool has_work() override;

private:
    enum class Stage : std::uint8_t { free, open, ending };
    struct GrantTable {
        static constexpr std::uint32_t words_max = 64;
        Atomic<std::uint32_t> words[words_max]{};
        Grants grants{words, words_max};
    };
    struct Path {
        Stage stage = Stage::free;
        NodeId peer = no_node;
        bool waiting_for_room = false;
        std::vector<std::unique_ptr<Parcel>> staged;  ///< not published
        std::size_t kept = 0;  ///< of these, which come first: sent in one call, not reserved
        std::shared_ptr<GrantTable> grants;  ///< outlives us at a peer that uses it
    };
    /// What arrived, in order; an event stands between the frames before and behind it.
    struct Arrival {
        PathEvent event{};
        PathId path = 0;
        std::unique_ptr<Parcel> frame;  ///< nullptr: it is the event
    };
    struct Listening {
        Discriminator discriminator;
        std::uint32_t count;
    };

    bool listens(const Discriminator& discriminator) const override;
    void settle();
    void on_frame(std::unique_ptr<Parcel> parcel);
    void on_query(const Parcel& parcel);
    void on_answer(const Parcel& parcel);
    void on_farewell(NodeId peer);
    void on_segment(Parcel& parcel);
    Path* open_path(NodeId peer);
    PathId make_path(NodeId peer);
    PathId id_of(const Path& path) const { return static_cast<PathId>(&path - paths_.data()); }
    void push_event(PathEventKind kind, PathId path, Status status, std::uint64_t cookie);
    void give_back(NodeId peer, std::uint32_t frames);
    void send_simple(ParcelKind kind, NodeId peer, Status status, std::uint64_t cookie);
    void want_room(Path& path, bool wanted);
    bool wanted_room_came() const;
    Parcel* stage(Path& path, std::uint32_t header_length, std::uint32_t payload_length);
    std::byte* stage_small(PathId path, std::uint64_t low, std::uint64_t high, std::uint32_t length,
                           const std::byte* source);
    void drop_staged(Path& path);

    Fabric& fabric_;
    NodeId node_;
    std::vector<Path> paths_;
    int wanting_ = 0;  ///< paths that wait for room
    std::deque<Arrival> arrivals_;
    std::vector<std::unique_ptr<Parcel>> lent_;  ///< frames of the last receive()
    std::vector<Listening> listening_;
    std::uint32_t pulls_ = 0;  ///< asked of us
};

}  // namespace via::device::sim

// The peer's receive room: what is under way never takes more of it.
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::room_test {
namespace {

struct Room : ::testing::Test, Scene {
    static constexpr std::uint32_t room = 6 * 1472;
    std::size_t taken = 0;  ///< by what a sent and nobody received

    void SetUp() override {
        b.port().room = room;
        meet();
        run(milliseconds(1));
        network.weather = [this](const Datagram& datagram) {
            if (datagram.from.bytes[3] == 1)
                taken += std::max<std::size_t>(datagram.bytes.size(), room_taken_least);
            return Fate{};
        };
    }
    /// Makes frames of `length` bytes ready while there is room, then sends them.
    void fill(std::uint32_t length, bool transmits_each) {
        FrameSlot slot;
        for (; a.device->reserve(a.path, End::header_length, length, slot); slot = {}) {
            wire::emit({.kind = wire::FrameKind::send}, slot.header);
            std::memset(slot.payload, 'x', length);
            if (transmits_each) a.device->transmit(a.path);
        }
        a.device->transmit(a.path);
        a.device->notify();
    }
};

TEST_F(Room, packets_filled_at_once_stay_within_it) {
    fill(1000, false);
    EXPECT_LE(taken, room);
    EXPECT_GT(taken, room - 1472);
}

TEST_F(Room, packets_that_grow_by_small_frames_stay_within_it) {
    fill(100, true);
    EXPECT_LE(taken, room + 1472) << "the last one may begin small and grow";
    EXPECT_GT(taken, room - 1472);
}

}  // namespace
}  // namespace via::device::datagram::test::room_test

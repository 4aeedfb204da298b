#include "device/datagram/early_frames.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace via::device::datagram {
namespace early_frames_test {

FrameOrder::Held held(std::uint32_t length) {
    static Share* const share = reinterpret_cast<Share*>(64);  // never followed
    return {nullptr, length, 0, share};
}

TEST(EarlyFrames, AreTakenInTheirOrderAndTheRestIsLetGo) {
    EarlyFrames early;
    early.put(5, held(50));
    early.put(5, held(51));  // twice in one packet: the second has no place
    early.put(7, held(70));
    early.put(9, held(90));
    EXPECT_EQ(early.take(5).length, 50U);
    EXPECT_EQ(early.take(9).length, 90U) << "7 found no place";
    std::vector<std::uint32_t> let_go;
    early.clear([&](const FrameOrder::Held& frame) { let_go.push_back(frame.length); });
    EXPECT_EQ(let_go, (std::vector<std::uint32_t>{51, 70}));
    EXPECT_TRUE(early.empty());
    early.put(0xFFFFFFFF, held(1));
    early.put(0, held(2));
    EXPECT_EQ(early.take(0xFFFFFFFF).length, 1U) << "from the beginning, and numbers go round";
    EXPECT_EQ(early.take(0).length, 2U);
}

TEST(EarlyFrames, NobodyTakesWhatIsNotThere) {
    EarlyFrames early;
    early.put(5, held(50));
    EXPECT_DEATH(early.take(6), "broken invariant");
}

}  // namespace early_frames_test
}  // namespace via::device::datagram

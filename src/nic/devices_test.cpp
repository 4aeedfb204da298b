#include "nic/devices.hpp"

#include <gtest/gtest.h>

#include <new>
#include <utility>

#include "nic/absent_device.hpp"

namespace via::nic::devices_test {
namespace {

struct Asked {
    int listening = 0;
    Status says = Status::success;
    bool has_memory = true;
    bool works = false;
    std::uint32_t wakes = 0;
    Time deadline = Time::never();
};

/// Says what `asked` says, which outlives it.
class Asking final : public AbsentDevice, public device::Retransmission {
public:
    Asking(Asked& asked, bool drops) : asked_(asked), drops_(drops) {}

    Status listen(const Discriminator&) override {
        if (!asked_.has_memory) throw std::bad_alloc();
        if (asked_.says == Status::success) ++asked_.listening;
        return asked_.says;
    }
    void unlisten(const Discriminator&) override { --asked_.listening; }
    std::uint32_t notify() override { return asked_.wakes; }
    bool has_work() override { return asked_.works; }
    Time next_deadline() const override { return asked_.deadline; }
    device::Retransmission* retransmission() override { return drops_ ? this : nullptr; }
    std::size_t reap(std::span<device::Reaped>) override { return 0; }

private:
    Asked& asked_;
    const bool drops_;
};

struct DevicesTest : testing::Test {
    DevicesTest() {
        devices.add(std::make_unique<Asking>(first, false));
        devices.add(std::make_unique<Asking>(second, true));
    }
    Asked first, second;
    Devices devices;
};

TEST_F(DevicesTest, all_listen_or_none) {
    EXPECT_EQ(devices.listen({}), Status::success);
    EXPECT_EQ(first.listening + second.listening, 2);
    devices.unlisten({});
    EXPECT_EQ(first.listening + second.listening, 0);

    second.says = Status::error_not_supported;
    EXPECT_EQ(devices.listen({}), Status::error_not_supported);
    EXPECT_EQ(first.listening, 0);

    second.has_memory = false;
    EXPECT_EQ(devices.listen({}), Status::error_resource);
    EXPECT_EQ(first.listening, 0);
}

TEST_F(DevicesTest, one_with_work_is_enough) {
    EXPECT_FALSE(devices.have_work());
    second.works = true;
    EXPECT_TRUE(devices.have_work());
}

TEST_F(DevicesTest, the_earliest_deadline_is_theirs) {
    EXPECT_TRUE(devices.next_deadline().is_never());
    first.deadline = Time{20};
    second.deadline = Time{10};
    EXPECT_EQ(devices.next_deadline(), Time{10});
}

TEST_F(DevicesTest, calls_that_wake_peers_are_those_of_all) {
    first.wakes = 1;
    second.wakes = 2;
    EXPECT_EQ(devices.notify(), 3U);
}

/// A late post asks, of a path whose device has gone.
TEST_F(DevicesTest, which_drops_frames_is_known_after_they_went) {
    EXPECT_FALSE(devices.drops(0));
    EXPECT_TRUE(devices.drops(1));
    EXPECT_TRUE(devices.may_have_reaped(1));
    devices.clear();
    EXPECT_TRUE(devices.empty());
    EXPECT_FALSE(devices.drops(0));
    EXPECT_TRUE(devices.drops(1));
}

}  // namespace
}  // namespace via::nic::devices_test

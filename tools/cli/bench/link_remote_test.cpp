#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include "bench/bytes.hpp"
#include "bench/file_handle.hpp"
#include "bench/link.hpp"

namespace via::bench::link_remote_test {
namespace {

// Two sides that share nothing but a stream.
class RemoteLink : public testing::Test {
protected:
    RemoteLink() {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) std::abort();
        for (std::size_t side = 0; side < 2; ++side) {
            ends_[side] = FileHandle(ends[side]);
            shared_[side] = std::make_unique<Shared>();
            links_[side] =
                std::make_unique<Link>(*shared_[side], static_cast<Side>(side), ends[side]);
        }
    }

    std::array<FileHandle, 2> ends_;
    std::array<std::unique_ptr<Shared>, 2> shared_;
    std::array<std::unique_ptr<Link>, 2> links_;
};

TEST_F(RemoteLink, WhatEitherPublishedIsSeenAfterMeeting) {
    links_[0]->mine().arena = 11;
    links_[0]->mine().host_bytes = 6;
    links_[0]->mine().host[5] = 9;
    links_[1]->mine().port = 22;
    links_[1]->mine().buffer_bytes = 1ull << 40;
    bool second = false;
    std::thread other([&] { second = links_[1]->meet(); });
    EXPECT_TRUE(links_[0]->meet());
    other.join();
    EXPECT_TRUE(second);
    EXPECT_EQ(links_[1]->theirs().arena, 11u);
    EXPECT_EQ(links_[1]->theirs().host_bytes, 6u);
    EXPECT_EQ(links_[1]->theirs().host[5], 9u);
    EXPECT_EQ(links_[0]->theirs().port, 22u);
    EXPECT_EQ(links_[0]->theirs().buffer_bytes, 1ull << 40);
}

TEST_F(RemoteLink, OneMachinesClocksAreTheSame) {
    ClockGap first;
    ClockGap second{1, 1};
    std::thread other([&] { EXPECT_TRUE(links_[1]->compare_clocks(second)); });
    EXPECT_TRUE(links_[0]->compare_clocks(first));
    other.join();
    EXPECT_GT(first.within_ns, 0);
    EXPECT_LE(std::abs(first.ahead_ns), first.within_ns + 1);
    EXPECT_EQ(second.within_ns, 0);
}

TEST_F(RemoteLink, NobodyThereIsNoMeeting) {
    ends_[1].reset();
    EXPECT_FALSE(links_[0]->meet());
    ClockGap gap;
    EXPECT_FALSE(links_[0]->compare_clocks(gap));
}

TEST_F(RemoteLink, TheParentCallsItOff) {
    shared_[0]->abort.value = 1;
    ::send(ends_[1].get(), "x", 1, 0);
    EXPECT_FALSE(links_[0]->meet());
}

// Number of the meeting, arena, memory handle, bytes of host, host, port, datagram, buffer.
TEST_F(RemoteLink, NonsenseIsNoMeeting) {
    const auto say = [&](std::uint64_t meeting, std::uint32_t host_bytes, std::uint32_t port) {
        Writer writer;
        writer.number(meeting);
        writer.number(std::uint64_t{0});
        writer.number(std::uint32_t{0});
        writer.number(host_bytes);
        writer.text("", 64);
        writer.number(port);
        writer.number(std::uint32_t{0});
        writer.number(std::uint64_t{0});
        ::send(ends_[1].get(), writer.bytes().data(), writer.bytes().size(), 0);
        return links_[0]->meet();
    };
    EXPECT_TRUE(say(1, 64, 65535));
    EXPECT_FALSE(say(3, 6, 1)) << "another meeting";
    EXPECT_FALSE(say(3, 65, 1)) << "a host that does not fit";
    EXPECT_FALSE(say(4, 6, 65536)) << "no port";
    EXPECT_TRUE(say(5, 6, 1));
}

}  // namespace
}  // namespace via::bench::link_remote_test

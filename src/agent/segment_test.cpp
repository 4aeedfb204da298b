// Segments: what a peer can make of the descriptor that it gets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/host_agent.hpp"
#include "agent/quiet_test_support.hpp"
#include "agent/test_support.hpp"

namespace via::agent::test::segment_test {
namespace {

constexpr std::uint64_t bytes = 10000;

/// The descriptors of segments that this process has.
std::vector<int> segment_descriptors() {
    std::vector<int> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;  // the one that lists them
        const std::string target = std::filesystem::read_symlink(entry.path(), gone);
        if (target.find("via-segment") != std::string::npos)
            found.push_back(std::stoi(entry.path().filename()));
    }
    return found;
}

/// A descriptor of the same memory, as whoever has one can get it.
int open_again(int descriptor, int flags) {
    return ::open(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), flags | O_CLOEXEC);
}

struct SegmentTest : testing::Test {
    SegmentTest() {
        auto statistics = Statistics::open(folder_.path(), "quiet");
        EXPECT_TRUE(statistics);
        std::vector<std::unique_ptr<device::Device>> devices;
        devices.push_back(std::make_unique<QuietDevice>(seen_));
        HostAgentOptions options;
        options.name = "quiet";
        auto opened =
            HostAgent::open(std::move(options), std::move(devices), std::move(*statistics));
        EXPECT_TRUE(opened);
        agent = std::move(*opened);
    }

    /// Whether a peer that got a segment of these rights to read it can map it for writing.
    bool can_be_written(const memory::MemoryAttributes& attributes) {
        const auto segment = agent->make_segment(bytes, attributes);
        EXPECT_TRUE(segment);
        const std::vector<int> descriptors = segment_descriptors();
        EXPECT_EQ(descriptors.size(), 1U);
        const int given = open_again(descriptors.front(), O_RDONLY);
        const int again = open_again(given, O_RDWR);
        EXPECT_GE(again, 0);
        void* const read = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, given, 0);
        EXPECT_NE(read, MAP_FAILED);
        std::memset(segment->base, 7, bytes);
        EXPECT_EQ(static_cast<const std::byte*>(read)[bytes - 1], std::byte{7});
        EXPECT_NE(::mprotect(read, bytes, PROT_READ | PROT_WRITE), 0);
        void* const written = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
        const bool can = written != MAP_FAILED;
        if (can) ::munmap(written, bytes);
        EXPECT_EQ(::pwrite(again, "x", 1, 0) == 1, can);
        ::munmap(read, bytes);
        ::close(again);
        ::close(given);
        EXPECT_EQ(agent->destroy_segment(segment->base), Status::success);
        return can;
    }

    TemporaryFolder folder_;
    QuietDevice::Seen seen_;
    std::unique_ptr<Agent> agent;
};

TEST_F(SegmentTest, NobodyElseWritesToOneThatIsNotToBeWritten) {
    EXPECT_FALSE(can_be_written({memory::no_tag, false, true}));
    EXPECT_FALSE(can_be_written({}));
    EXPECT_TRUE(can_be_written({memory::no_tag, true, true}));
}

}  // namespace
}  // namespace via::agent::test::segment_test

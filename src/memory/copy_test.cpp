#include "memory/copy.hpp"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/atomic.hpp"
#include "memory/line_copy.hpp"

namespace via::memory::copy_test {
namespace {

constexpr std::size_t longest = 300;
constexpr std::size_t alignments = 64;
constexpr std::size_t margin = 128;
constexpr std::byte guard{0xEE};

/// A buffer that begins on a cache line, with guard bytes around what is written.
struct alignas(64) Buffer {
    std::byte bytes[margin + alignments + longest + margin];
    std::byte* at(std::size_t offset) { return bytes + margin + offset; }
    void clear() { std::memset(bytes, static_cast<int>(guard), sizeof bytes); }
};

std::vector<std::byte> pattern(std::size_t length) {
    std::vector<std::byte> bytes(length);
    for (std::size_t n = 0; n < length; ++n) bytes[n] = static_cast<std::byte>(n * 7 + n / 256 + 1);
    return bytes;
}

/// Compares with what memcpy would have done, guards included.
template <class Copy>
void check_all(Copy copy) {
    const std::vector<std::byte> source = pattern(longest + alignments);
    Buffer target;
    Buffer expected;
    for (std::size_t length = 0; length <= longest; ++length)
        for (std::size_t to = 0; to < alignments; ++to)
            for (const std::size_t from : {0U, 1U, 3U, 8U, 31U, 63U}) {
                target.clear();
                expected.clear();
                std::memcpy(expected.at(to), source.data() + from, length);
                copy(target.at(to), source.data() + from, length);
                ASSERT_EQ(std::memcmp(target.bytes, expected.bytes, sizeof target.bytes), 0)
                    << length << " bytes from +" << from << " to +" << to;
            }
}

TEST(Place, IsACopyForAllLengthsAndAlignments) { check_all(place); }

TEST(Gather, IsACopyForAllLengthsAndAlignments) {
    check_all([](std::byte* to, const std::byte* from, std::size_t length) {
        gather(to, from, length, false);
    });
}

TEST(Gather, StreamingIsACopyForAllLengthsAndAlignments) {
    check_all([](std::byte* to, const std::byte* from, std::size_t length) {
        gather(to, from, length, true);
    });
}

/// A frame without a payload has no place for one; a read of no bytes names no region.
TEST(Gather, NothingNeedsNoPlace) {
    std::byte one{};
    for (const bool stream : {false, true}) {
        gather(nullptr, &one, 0, stream);
        gather(&one, nullptr, 0, stream);
        gather(nullptr, nullptr, 0, stream);
    }
    place(nullptr, &one, 0);
    place(&one, nullptr, 0);
    EXPECT_EQ(one, std::byte{});
}

/// Lengths around all that is cut: lines, pages, pairs of pages.
template <class Copy>
void check_large(Copy copy) {
    for (const std::size_t about : {2048U, 4096U, 7168U, 8192U, 12288U, 16384U, 1000'000U})
        for (const std::size_t length :
             {about - 65, about - 64, about - 1, about, about + 1, about + 127, about + 128})
            for (const std::size_t to : {1U, 40U, 64U}) {
                const std::vector<std::byte> source = pattern(length);
                std::vector<std::byte> memory(length + 192, guard);
                const std::size_t skew = -reinterpret_cast<std::uintptr_t>(memory.data()) & 63;
                std::byte* const target = memory.data() + skew + to;
                copy(target, source.data(), length);
                ASSERT_EQ(std::memcmp(target, source.data(), length), 0) << length << " to " << to;
                ASSERT_EQ(target[-1], guard);
                ASSERT_EQ(target[length], guard);
            }
}

TEST(Place, LargePayloadsArriveWhole) {
    check_large(
        [](std::byte* to, const std::byte* from, std::size_t length) { place(to, from, length); });
}

TEST(Gather, LargePayloadsArriveWhole) {
    for (const bool stream : {false, true})
        check_large([=](std::byte* to, const std::byte* from, std::size_t length) {
            gather(to, from, length, stream);
        });
}

TEST(LineCopy, EachThatThisProcessorHasIsACopy) {
    for (const LineCopy& line_copy : line_copies()) {
        SCOPED_TRACE(line_copy.name);
        const auto copy = [&](std::byte* to, const std::byte* from, std::size_t length) {
            copy_by(line_copy.past, to, from, length);
        };
        check_all(copy);
        check_large(copy);
    }
}

TEST(Gather, NamesItsStores) {
    const std::string name = streaming_stores();
    EXPECT_TRUE(name == "avx512" || name == "avx2" || name == "sse2" || name == "none") << name;
#if defined(__x86_64__)
    EXPECT_NE(name, "none") << "every x86-64 processor has some";
#endif
}

// The last word
// -------------------------------------------------------------------------------------

sigjmp_buf after_fault;
void* volatile fault_address = nullptr;

void on_fault(int, siginfo_t* info, void*) {
    fault_address = info->si_addr;
    siglongjmp(after_fault, 1);
}

/// Some pages, the last of which cannot be written; a store to it is caught.
class Border {
public:
    Border() : size_(4 * static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
        void* memory =
            mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(memory, MAP_FAILED);
        first_ = static_cast<std::byte*>(memory);
        EXPECT_EQ(mprotect(border(), size_, PROT_READ), 0);
        struct sigaction action{};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &action, &before_);
    }
    ~Border() {
        sigaction(SIGSEGV, &before_, nullptr);
        munmap(first_, 2 * size_);
    }
    Border(const Border&) = delete;
    Border& operator=(const Border&) = delete;

    std::byte* border() const { return first_ + size_; }
    void clear() { std::memset(first_, static_cast<int>(guard), size_); }

    /// Where the first store beyond the border went, or nullptr.
    template <class Store>
    void* first_fault(Store store) {
        fault_address = nullptr;
        if (sigsetjmp(after_fault, 1) == 0) store();
        return fault_address;
    }

private:
    std::size_t size_;  ///< of what can be written, and of what cannot
    std::byte* first_ = nullptr;
    struct sigaction before_{};
};

TEST(Place, WritesTheLastAlignedWordAfterEverythingElse) {
    // The last word lies behind the border: when its store faults, all before it must be there.
    Border pages;
    const std::vector<std::byte> source = pattern(16384);
    std::vector<std::size_t> bodies{7168, 8184, 8192};
    for (std::size_t body = 0; body <= 1024; ++body) bodies.push_back(body);
    for (const std::size_t tail : {1U, 2U, 4U, 8U})
        for (const std::size_t body : bodies) {
            pages.clear();
            std::byte* target = pages.border() - body;
            void* fault = pages.first_fault([&] { place(target, source.data(), body + tail); });
            ASSERT_EQ(fault, pages.border()) << body << " + " << tail;
            ASSERT_EQ(std::memcmp(target, source.data(), body), 0) << body << " + " << tail;
            ASSERT_EQ(target[-1], guard);
        }
}

TEST(Place, NobodySeesTheLastWordBeforeTheBodyNorHalfOfIt) {
    constexpr std::size_t length = 1024;
    constexpr std::uint64_t rounds = 20'000;
    alignas(64) static std::byte target[length];
    std::memset(target, 0, length);
    Atomic<std::uint64_t> seen{0};
    auto* last = reinterpret_cast<std::uint64_t*>(target + length - sizeof(std::uint64_t));
    const auto number_of = [](std::uint64_t round) { return round * 0x0101010101010101ULL; };

    std::thread reader([&] {
        for (std::uint64_t round = 1; round <= rounds; ++round) {
            const std::uint64_t before = number_of(round - 1);
            const std::uint64_t now = number_of(round);
            std::uint64_t word = before;
            for (unsigned spins = 0; word == before; relax(spins++))
                word = atomic_load_at(last, std::memory_order_acquire);
            ASSERT_EQ(word, now) << "half a word";
            for (std::size_t at = 0; at < length; at += sizeof word)
                ASSERT_EQ(atomic_load_at(reinterpret_cast<std::uint64_t*>(target + at),
                                         std::memory_order_relaxed),
                          now)
                    << "the body came after the last word, at " << at;
            seen.store(round, std::memory_order_release);
        }
    });
    std::vector<std::byte> source(length);
    for (std::uint64_t round = 1; round <= rounds && !testing::Test::HasFatalFailure(); ++round) {
        const std::uint64_t number = number_of(round);
        for (std::size_t at = 0; at < length; at += sizeof number)
            std::memcpy(source.data() + at, &number, sizeof number);
        place(target, source.data(), length);
        for (unsigned spins = 0;
             seen.load(std::memory_order_acquire) != round && !testing::Test::HasFatalFailure();)
            relax(spins++);
    }
    reader.join();
}

class YieldWhileSpinning : public ::testing::Environment {
    void SetUp() override {
        set_yield_hook([] { std::this_thread::yield(); });
    }
};
const auto* const yielding = testing::AddGlobalTestEnvironment(new YieldWhileSpinning);

}  // namespace
}  // namespace via::memory::copy_test

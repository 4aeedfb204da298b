// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: long messages that the receiver copies from the sender's process.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <span>
#include <thread>

#include "liar.hpp"

using namespace scene;

namespace rdm_one_copy_test {
namespace {

/// For what is opened meanwhile.
class Variable {
public:
    Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
    ~Variable() { unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
};

constexpr std::size_t long_one = 65536;

constexpr const char* sends_to_port = "VIA_TEST_SENDS_TO_PORT";

std::vector<std::byte> message() { return pattern(long_one, 7); }

/// A process of its own that sends a long message to that port, and waits until that is done. It is
/// this program again, since a forked child has no NIC where its parent has one.
class Sender {
public:
    explicit Sender(const Party& receiver) {
        const Variable told(sends_to_port, std::to_string(ntohs(receiver.name.sin_port)).c_str());
        child_ = fork();
        EXPECT_GE(child_, 0);
        if (child_ != 0) return;
        execl("/proc/self/exe", "sender", nullptr);
        _exit(1);
    }
    ~Sender() {
        if (child_ <= 0 || ended_) return;
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;

    void stop() {
        int status = 0;
        ASSERT_EQ(kill(child_, SIGSTOP), 0);
        EXPECT_EQ(waitpid(child_, &status, WUNTRACED), child_);
        EXPECT_TRUE(WIFSTOPPED(status));
    }
    void go_on() { EXPECT_EQ(kill(child_, SIGCONT), 0); }
    void expect_good_end(Party& receiver) {
        int status = 0;
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
        while (waitpid(child_, &status, WNOHANG) == 0) {
            ASSERT_LT(std::chrono::steady_clock::now(), end);
            receiver.read();
        }
        ended_ = true;
        EXPECT_EQ(status, 0);
    }

private:
    pid_t child_ = -1;
    bool ended_ = false;
};

int send_to(std::uint16_t port) {
    alarm(120);
    Party own;
    const auto bytes = message();
    own.send(own.knows(port), bytes.data(), bytes.size(), 1, 2);
    return own.completion().op_context == word(2) ? 0 : 1;
}

/// In place of the tests.
const bool is_sender = [] {
    const char* const port = std::getenv(sends_to_port);
    if (port != nullptr) _exit(send_to(static_cast<std::uint16_t>(std::atoi(port))));
    return false;
}();

/// Reads until a message with that tag waits for its receive.
void await_message(Party& party, std::uint64_t tag) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    for (;;) {
        ASSERT_LT(std::chrono::steady_clock::now(), end);
        party.search(tag, 9, FI_PEEK);
        fi_cq_tagged_entry entry{};
        if (fi_cq_read(party.queue.get(), &entry, 1) == 1) return;
        fi_cq_err_entry error{};
        EXPECT_EQ(fi_cq_readerr(party.queue.get(), &error, 0), 1);
        EXPECT_EQ(error.err, FI_ENOMSG);
    }
}

/// The sender stands still; is its message received meanwhile?
void receive_from_stopped(bool is_pulled) {
    Party receiver;
    Sender sender(receiver);
    await_message(receiver, 1);
    sender.stop();
    std::vector<std::byte> got(long_one);
    receiver.post(got.data(), got.size(), 1, 3);
    if (!is_pulled) {
        receiver.expect_nothing();
        sender.go_on();
    }
    EXPECT_EQ(receiver.completion().len, long_one);
    EXPECT_EQ(got, message());
    if (is_pulled) sender.go_on();
    sender.expect_good_end(receiver);
}

TEST(OneCopy, NeedsNoProcessorOfTheSenders) {
    const Variable wanted("FI_VIA_ONE_COPY", "1");
    receive_from_stopped(true);
}

/// Two ranks have a processor each on most machines, and frames are faster there.
TEST(OneCopy, IsForRanksThatShareProcessors) {
    receive_from_stopped(std::thread::hardware_concurrency() == 1);
}

TEST(OneCopy, NotWhereTheProgramSaysNo) {
    const Variable wanted("FI_VIA_ONE_COPY", "0");
    receive_from_stopped(false);
}

/// For a peer may hold back the pages of its memory.
TEST(OneCopy, NotWhereTheNicShallPullNothing) {
    const Variable wanted("FI_VIA_ONE_COPY", "1");
    const Variable options("OPENVIA_OPTIONS", "one_copy=never");
    receive_from_stopped(false);
}

TEST(OneCopy, OfAnyLengthIntoAnyRoom) {
    const Variable wanted("FI_VIA_ONE_COPY", "1");
    Couple couple;
    std::uint64_t tag = 1;
    for (const std::size_t length : {16385UL, 65536UL, 1UL << 20, (1UL << 20) + 1}) {
        for (const std::size_t room : {0UL, 1UL, length - 1, length, length + 1}) {
            SCOPED_TRACE(std::to_string(length) + " into " + std::to_string(room));
            const auto bytes = pattern(length, static_cast<unsigned>(tag));
            std::vector<std::byte> got(room + 1, std::byte{9});
            couple.b.post(got.data(), room, ++tag, 3);
            couple.a.send(couple.to_b, bytes.data(), length, tag, 2, &couple.b);
            if (room < length) {
                EXPECT_EQ(couple.b.failure(&couple.a).err, FI_ETRUNC);
            } else {
                EXPECT_EQ(couple.b.completion(&couple.a).len, length);
            }
            EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(2));
            const std::size_t taken = std::min(length, room);
            EXPECT_TRUE(
                std::ranges::equal(std::span(got).first(taken), std::span(bytes).first(taken)));
            EXPECT_EQ(got[room], std::byte{9});
        }
    }
}

/// The send is done though the receiver has not looked, unless it was `offered`.
void send_unseen(Couple& couple, std::size_t length, bool offered) {
    SCOPED_TRACE(length);
    const auto bytes = pattern(length, 5);
    std::vector<std::byte> got(length);
    couple.a.inject(couple.to_b, "x", 1, 1, 0, &couple.b);
    couple.b.post(got.data(), 1, 1, 2);
    couple.b.completion(&couple.a);
    couple.b.post(got.data(), length, 3, 4);
    couple.a.send(couple.to_b, bytes.data(), length, 3, 5);
    if (offered) {
        couple.a.expect_nothing();
    } else {
        EXPECT_EQ(couple.a.completion().op_context, word(5));
    }
    couple.b.completion();
    EXPECT_EQ(got, bytes);
    if (offered) {
        EXPECT_EQ(couple.a.completion(&couple.b).op_context, word(5));
    }
}

TEST(OneCopy, IsOfferedFromFourKilobytesOn) {
    const Variable wanted("FI_VIA_ONE_COPY", "1");
    Couple couple;
    send_unseen(couple, 4096, false);
    send_unseen(couple, 4097, true);
}

TEST(OneCopy, IsOfferedFromWhereTheProgramSays) {
    const Variable wanted("FI_VIA_ONE_COPY", "1");
    const Variable size("FI_VIA_EAGER_SIZE", "8192");
    Couple couple;
    send_unseen(couple, 8192, false);
    send_unseen(couple, 8193, true);
}

TEST(OneCopy, OthersAreOfferedLess) {
    const Variable no("FI_VIA_ONE_COPY", "0");
    Couple couple;
    send_unseen(couple, 16384, false);
    send_unseen(couple, 16385, true);
}

// Peers that lie ---------------------------------------------------------------------------------

constexpr std::size_t whereabouts_at = 64 * (8 + 128);  ///< words: behind all lines and rooms

/// A peer that says itself where it is, and that has nothing registered to be read by RDMA.
class OneCopyByHand : Variable, public testing::Test {
protected:
    OneCopyByHand() : Variable("FI_VIA_ONE_COPY", "1") {}
    void SetUp() override {
        ASSERT_EQ(liar_.connect(Liar::hello(2, true)), VIP_SUCCESS);
        lines_ = liar_.lines();
        ASSERT_NE(lines_, nullptr);
    }
    void says(std::uint64_t process, const void* lines) {
        lines_[whereabouts_at + 8] = process;
        std::atomic_ref(lines_[whereabouts_at + 9])
            .store(reinterpret_cast<std::uintptr_t>(lines), std::memory_order_release);
    }
    void offer(const std::vector<std::byte>& bytes, std::uint64_t number) {
        liar_.say({6, kind(2, 1, number), bytes.size(),
                   reinterpret_cast<std::uintptr_t>(bytes.data()), 77, 12345},
                  48);
    }
    /// It was asked for by RDMA, which that peer does not allow.
    void expect_not_pulled() {
        const auto bytes = pattern(20000, 3);
        std::vector<std::byte> got(bytes.size());
        b_.post(got.data(), got.size(), 6, 1);
        offer(bytes, 0);
        EXPECT_EQ(b_.failure().err, FI_ECONNRESET);
        EXPECT_EQ(got, std::vector<std::byte>(bytes.size()));
        liar_.expect_end();
    }

    Party b_;
    Liar liar_{b_};
    std::uint64_t* lines_ = nullptr;
};

TEST_F(OneCopyByHand, IsToldOfByAnEnd) {
    says(static_cast<std::uint64_t>(getpid()), lines_);
    for (std::uint64_t number = 0; number < 3; ++number) {
        const auto bytes = pattern(20000, static_cast<unsigned>(number));
        std::vector<std::byte> got(bytes.size());
        std::vector<std::uint64_t> heard(4);
        liar_.listen(heard);
        b_.post(got.data(), got.size(), 6, 1);
        offer(bytes, number);
        EXPECT_EQ(b_.completion().len, bytes.size());
        EXPECT_EQ(got, bytes);
        liar_.hear();
        EXPECT_EQ(heard[0], 77U) << "the cookie of what was pulled";
    }
}

TEST_F(OneCopyByHand, NotFromOneThatSaysNothingOfItself) { expect_not_pulled(); }

TEST_F(OneCopyByHand, NotFromWhereTheLinesAreNot) {
    static std::uint64_t elsewhere[whereabouts_at + 16];
    says(static_cast<std::uint64_t>(getpid()), elsewhere);
    expect_not_pulled();
}

TEST_F(OneCopyByHand, NotFromAProcessThatIsNone) {
    says(~std::uint64_t{0}, lines_);
    expect_not_pulled();
}

/// Another one, whose memory may be read as well.
TEST_F(OneCopyByHand, NotFromAProcessThatThePeerNamesInItsPlace) {
    int said[2];
    ASSERT_EQ(pipe2(said, O_CLOEXEC), 0);
    const pid_t other = fork();
    ASSERT_GE(other, 0);
    if (other == 0) {
        execlp("sleep", "sleep", "100", nullptr);
        _exit(1);
    }
    close(said[1]);
    char none = 0;
    EXPECT_EQ(read(said[0], &none, 1), 0) << "until it has no memory of ours any more";
    close(said[0]);
    says(static_cast<std::uint64_t>(other), lines_);
    expect_not_pulled();
    kill(other, SIGKILL);
    EXPECT_EQ(waitpid(other, nullptr, 0), other);
}

}  // namespace
}  // namespace rdm_one_copy_test

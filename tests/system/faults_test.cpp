// Every kind of system call that the library makes fails once, at each place where it is made: the
// calls of VIPL answer with an error that fits and the log says why, or nothing is to be seen; then
// all works as if nothing had been, and nothing is left over.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

#include "support/fault.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::faults_test {

namespace {

constexpr const char* peers_door = "the peer's";
constexpr const char* own_door = "the subject's";
constexpr std::size_t length_max = 20'000;
constexpr int attempts_max = 6;
constexpr double found_max_ms = 10'000;  ///< it listens all the time, but for moments

// The good peers
// ------------------------------------------------------------------------------------

Wants peer_wants() {
    Wants wants;
    wants.length = length_max;
    return wants;
}

/// Sends back what it gets, until the connection is lost.
void echo(End& end) {
    for (;;) {
        const auto outcome = end.wait_received(100);
        if (!outcome) {
            if (end.state() != VIP_STATE_CONNECTED) return;
            continue;
        }
        if (!outcome->ok()) return;
        const std::size_t length = outcome->descriptor->CS.Length;
        std::memcpy(end.send_buffer(0), end.receive_buffer(outcome->slot), length);
        end.post_receive(outcome->slot);
        end.post_send(0, length);
        if (const auto sent = end.wait_sent(VIP_INFINITE); !sent || !sent->ok()) return;
    }
}

/// Accepts one after another.
void be_accepting_peer(Parent& parent) {
    Nic nic;
    parent.say("ready");
    for (;;) {
        End end(nic, peer_wants());
        if (VipConnectAccept(end.wait_request(peers_door), end.vi()) == VIP_SUCCESS) echo(end);
    }
}
const Role accepting_role("accepting-peer", be_accepting_peer);

/// Asks for one connection after another.
void be_asking_peer(Parent& parent) {
    Nic nic;
    parent.say("ready");
    for (;;) {
        End end(nic, peer_wants());
        if (end.request(own_door, 2000) == VIP_SUCCESS)
            echo(end);
        else
            sched_yield();
    }
}
const Role asking_role("asking-peer", be_asking_peer);

// The subject
// -----------------------------------------------------------------------------------------

enum class Step : std::uint8_t { open, request, talk, listen, accept, talk_again, close, count_ };
constexpr std::size_t step_count = static_cast<std::size_t>(Step::count_);
const char* const step_names[step_count] = {"OpenNic",     "ConnectRequest", "talking",
                                            "ConnectWait", "ConnectAccept",  "talking again",
                                            "CloseNic"};

struct FaultPage {
    std::atomic<int> listener;      ///< descriptor and one; negative: errno
    std::atomic<std::uint32_t> go;  ///< 1: begin, 2: end
    std::atomic<std::uint32_t> over;
    std::atomic<std::uint32_t> codes[step_count];  ///< first answer that was not SUCCESS
    std::atomic<std::uint32_t> attempts[step_count];
    std::atomic<std::uint32_t> descriptors_before, descriptors_after;
    std::atomic<std::uint32_t> threads_before, threads_after;
};

/// All its memory is there before the faults begin: a fault is to hit the library.
struct alignas(4096) Room {
    VIP_DESCRIPTOR receives[8];
    VIP_DESCRIPTOR send;
    std::byte in[8][length_max];
    std::byte out[length_max];
};
Room room;

class Subject {
public:
    Subject(FaultPage& page, VIP_NIC_HANDLE nic) : page_(page), nic_(nic) {
        OK(VipQueryNic(nic_, &attributes_));
        OK(VipRegisterMem(nic_, &room, sizeof room, nullptr, &memory_));
    }

    /// A connection to a peer that accepts, and messages to and fro.
    void ask_and_talk() {
        for (int attempt = 0; attempt < attempts_max; ++attempt) {
            make_vi();
            Address local(attributes_, "from");
            Address remote(attributes_, peers_door);
            VIP_VI_ATTRIBUTES theirs{};
            VIP_RETURN code = VIP_NO_MATCH;
            const double start = now_ms();
            while (code == VIP_NO_MATCH) {
                require(now_ms() - start < found_max_ms, "the peer is found");
                code = VipConnectRequest(vi_, local.get(), remote.get(), 10'000, &theirs);
            }
            const bool talked = note(Step::request, code) && talk(Step::talk);
            drop_vi();
            if (talked) return;
        }
        fail("a connection can be made and used after a fault");
    }
    void listen_and_talk() {
        for (int attempt = 0; attempt < attempts_max; ++attempt) {
            make_vi();
            Address local(attributes_, own_door);
            Address remote;
            VIP_VI_ATTRIBUTES theirs{};
            VIP_CONN_HANDLE connection = nullptr;
            const VIP_RETURN code =
                VipConnectWait(nic_, local.get(), 10'000, remote.get(), &theirs, &connection);
            const bool talked = note(Step::listen, code) &&
                                note(Step::accept, VipConnectAccept(connection, vi_)) &&
                                talk(Step::talk_again);
            drop_vi();
            if (talked) return;
        }
        fail("a connection can be taken and used after a fault");
    }

private:
    bool note(Step step, VIP_RETURN code) {
        const auto index = static_cast<std::size_t>(step);
        ++page_.attempts[index];
        std::uint32_t none = 0;
        if (code != VIP_SUCCESS) page_.codes[index].compare_exchange_strong(none, code);
        return code == VIP_SUCCESS;
    }
    void make_vi() {
        VIP_VI_ATTRIBUTES wanted{};
        wanted.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
        wanted.MaxTransferSize = length_max;
        wanted.EnableRdmaWrite = wanted.EnableRdmaRead = VIP_TRUE;
        OK(VipCreateVi(nic_, &wanted, nullptr, nullptr, &vi_));
        for (unsigned slot = 0; slot < 8; ++slot) post_receive(slot);
    }
    void drop_vi() {
        OK(VipDisconnect(vi_));
        VIP_DESCRIPTOR* at = nullptr;
        for (const auto done : {VipSendDone, VipRecvDone})
            while (done(vi_, &at) != VIP_DESCRIPTOR_ERROR || at != nullptr) {
            }
        OK(VipDestroyVi(vi_));
    }
    void post_receive(unsigned slot) {
        VIP_DESCRIPTOR& at = room.receives[slot];
        prepare(at, room.in[slot], length_max);
        OK(VipPostRecv(vi_, &at, memory_));
    }
    void prepare(VIP_DESCRIPTOR& at, std::byte* buffer, std::size_t length) const {
        at = {};
        at.CS.SegCount = 1;
        at.CS.Length = static_cast<VIP_UINT32>(length);
        at.DS[0].Local.Data.Address = buffer;
        at.DS[0].Local.Handle = memory_;
        at.DS[0].Local.Length = static_cast<VIP_UINT32>(length);
    }
    /// False: the connection was lost on the way.
    bool talk(Step step) {
        for (unsigned message = 0; message < 12; ++message) {
            const std::size_t length = message % 3 == 0 ? length_max : 8;
            fill(room.out, length, message);
            prepare(room.send, room.out, length);
            OK(VipPostSend(vi_, &room.send, memory_));
            VIP_DESCRIPTOR* at = nullptr;
            if (!note(step, VipSendWait(vi_, 10'000, &at))) return false;
            if (!note(step, VipRecvWait(vi_, 10'000, &at))) return false;
            require(
                at->CS.Length == length &&
                    holds(static_cast<std::byte*>(at->DS[0].Local.Data.Address), length, message),
                "the echo is whole");
            post_receive(static_cast<unsigned>(at - room.receives));
        }
        return true;
    }

    FaultPage& page_;
    VIP_NIC_HANDLE nic_;
    VIP_NIC_ATTRIBUTES attributes_{};
    VIP_MEM_HANDLE memory_ = 0;
    VIP_VI_HANDLE vi_ = nullptr;
};

/// The whole of it, once.
void live(FaultPage& page) {
    VIP_NIC_HANDLE nic = nullptr;
    for (int attempt = 0; nic == nullptr; ++attempt) {
        require(attempt < attempts_max, "a NIC can be opened after a fault");
        const VIP_RETURN code = VipOpenNic("shm", &nic);
        ++page.attempts[0];
        std::uint32_t none = 0;
        if (code != VIP_SUCCESS) page.codes[0].compare_exchange_strong(none, code);
    }
    Subject subject(page, nic);
    subject.ask_and_talk();
    subject.listen_and_talk();
    OK(VipCloseNic(nic));
}

/// Argument 0: the system call's number.
void be_subject(Parent& parent) {
    auto& page = parent.shared<FaultPage>();
    VIP_NIC_HANDLE none = nullptr;
    VipOpenNic("no such NIC", &none);  // the log is open from now on
    std::memset(static_cast<void*>(&room), 0, sizeof room);
    const int listener = stop_at_calls(static_cast<int>(std::stol(parent.argument(0))));
    page.listener = listener < 0 ? -errno : listener + 1;
    until("the parent is ready", [&] { return page.go == 1; });
    live(page);
    page.over = 1;
    until("the parent counts no more", [&] { return page.go == 2; });
    // And once more without faults: now all is as it was after the first time, or something leaks.
    page.descriptors_before = static_cast<std::uint32_t>(Holdings::now().descriptors);
    page.threads_before = static_cast<std::uint32_t>(Holdings::now().threads);
    live(page);
    page.descriptors_after = static_cast<std::uint32_t>(Holdings::now().descriptors);
    page.threads_after = static_cast<std::uint32_t>(Holdings::now().threads);
    parent.say("done");
}
const Role subject_role("subject", be_subject);

// The test
// --------------------------------------------------------------------------------------------

/// A kind of call and the errors it is made to fail with.
struct Kind {
    const char* name;
    int call;
    std::vector<int> errors;
    std::uint32_t places_max = 40;  ///< how many of its calls fail, one in each run
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

const Kind kinds[] = {
    {"accept4", SYS_accept4, {EMFILE, ENOMEM, EAGAIN, EINTR}},
    {"bind", SYS_bind, {ENOSPC, EACCES}},
    {"clone3", SYS_clone3, {EAGAIN, ENOMEM}},
    {"connect", SYS_connect, {EAGAIN, EINTR, ENOMEM}},
    {"epoll_create1", SYS_epoll_create1, {EMFILE, ENOMEM}},
    {"epoll_ctl", SYS_epoll_ctl, {ENOMEM, ENOSPC}},
    {"epoll_pwait", SYS_epoll_pwait, {EINTR}},
    {"epoll_wait", SYS_epoll_wait, {EINTR}, 12},
    {"eventfd2", SYS_eventfd2, {EMFILE, ENOMEM}},
    {"faccessat2", SYS_faccessat2, {EACCES}},
    {"fcntl", SYS_fcntl, {EMFILE, ENOMEM}},
    {"flock", SYS_flock, {EINTR, EWOULDBLOCK}},
    {"fstatfs", SYS_fstatfs, {ENOMEM}},
    {"ftruncate", SYS_ftruncate, {ENOMEM, EINTR}},
    {"futex", SYS_futex, {EINTR, EAGAIN}, 12},
    {"futex_waitv", 449, {EINTR, EAGAIN, ENOSYS}, 12},
    {"getdents64", SYS_getdents64, {ENOMEM}},
    {"getrandom", SYS_getrandom, {EINTR, ENOSYS}},
    {"getsockopt", SYS_getsockopt, {ENOMEM, ENOPROTOOPT}},
    {"kill", SYS_kill, {EPERM}},
    {"listen", SYS_listen, {ENOMEM}},
    {"madvise", SYS_madvise, {ENOMEM, EINVAL}},
    {"memfd_create", SYS_memfd_create, {EMFILE, ENOMEM, EINVAL}},
    {"mkdirat", SYS_mkdirat, {ENOSPC, EACCES}},
    {"mmap", SYS_mmap, {ENOMEM}},
    {"mprotect", SYS_mprotect, {ENOMEM}},
    {"newfstatat", SYS_newfstatat, {ENOMEM, EIO}},
    {"openat", SYS_openat, {EMFILE, ENOMEM, EINTR}},
    {"pidfd_open", SYS_pidfd_open, {EMFILE, ENOMEM}},
    {"ppoll", SYS_ppoll, {EINTR, ENOMEM}},
    {"read", SYS_read, {EINTR, EIO}, 12},
    {"readlinkat", SYS_readlinkat, {ENOMEM}},
    {"recvmsg", SYS_recvmsg, {ENOMEM, EINTR, EAGAIN}},
    {"renameat", SYS_renameat, {ENOSPC}},
    {"renameat2", SYS_renameat2, {ENOSPC, EEXIST}},
    {"sendmsg", SYS_sendmsg, {ENOMEM, EINTR, EAGAIN, ETOOMANYREFS}},
    {"socket", SYS_socket, {EMFILE, ENOMEM}},
    {"symlinkat", SYS_symlinkat, {ENOSPC, EACCES}},
    {"shutdown", SYS_shutdown, {ENOTCONN}},
    {"unlink", SYS_unlink, {EACCES}},
    {"unlinkat", SYS_unlinkat, {EACCES}},
    {"write", SYS_write, {EAGAIN, EINTR}, 12},
};

bool is_sanitizers_own(int call) {
    for (const int own :
         {SYS_mmap, SYS_mprotect, SYS_madvise, SYS_read, SYS_write, SYS_futex, SYS_openat})
        if (call == own) return true;
    return false;
}

class Faults : public testing::TestWithParam<Kind> {
protected:
    Faults() : accepting_("accepting-peer"), asking_("asking-peer") {
        accepting_.expect("ready");
        asking_.expect("ready");
    }

    struct Result {
        bool allowed = true;  ///< seccomp can be used here
        bool given = false;
        std::uint32_t calls = 0;
    };

    /// Lives once with this fault, and judges.
    Result live_with(const Fault& fault, const std::string& what) {
        SCOPED_TRACE(what);
        const std::string log_path = host_.path() + "/subject.log";
        remove(log_path.c_str());
        Child subject("subject",
                      {.arguments = {std::to_string(fault.call)},
                       .environment = {"OPENVIA_LOG=" + log_path, "OPENVIA_LOG_LEVEL=1"}});
        auto& page = subject.shared<FaultPage>();
        until("the subject is ready", [&] { return page.listener != 0 || subject.ready(); });
        if (page.listener < 0) return {.allowed = false};
        FaultGiver giver(subject, page.listener - 1, fault);
        const std::string before = read_file(log_path);
        giver.arm(true);
        page.go = 1;
        until("the subject survives its fault: " + what,
              [&] { return page.over != 0 || subject.ready(); });
        giver.arm(false);
        if (page.over == 0) {
            ADD_FAILURE() << subject.hear();  // throws with the reason
            return {};
        }
        const std::string log = read_file(log_path).substr(before.size());
        const bool told = judge(page, log);
        if (giver.given() && getenv("VIA_FAULTS_SHOW") != nullptr)
            std::printf("%-40s %s%s", what.c_str(), summary(page).c_str(),
                        log.empty() ? "\n" : ("| " + log).c_str());
        EXPECT_TRUE(told || log.empty() || giver.given()) << "the log without a fault: " << log;
        page.go = 2;
        subject.expect("done");
        EXPECT_EQ(page.descriptors_after, page.descriptors_before);
        EXPECT_EQ(page.threads_after, page.threads_before);
        EXPECT_EQ(page.threads_before, 1U) << "the first NIC's threads are gone";
        subject.join();
        return {true, giver.given(), giver.calls()};
    }

    static std::string summary(const FaultPage& page) {
        std::string text;
        for (std::size_t step = 0; step < step_count; ++step)
            if (page.codes[step] != 0)
                text += std::string(step_names[step]) + ": " +
                        name_of(static_cast<VIP_RETURN>(page.codes[step].load())) + " ";
        return text;
    }

    /// True: a call answered with an error. Then it must be one that fits, and the log must say
    /// why.
    static bool judge(const FaultPage& page, const std::string& log) {
        bool told = false;
        for (std::size_t step = 0; step < step_count; ++step) {
            const auto code = static_cast<VIP_RETURN>(page.codes[step].load());
            if (code == VIP_SUCCESS) continue;
            told = true;
            EXPECT_TRUE(fits(static_cast<Step>(step), code))
                << step_names[step] << " answered " << name_of(code);
            EXPECT_FALSE(log.empty())
                << step_names[step] << " answered " << name_of(code) << " and the log says nothing";
        }
        return told;
    }
    static bool fits(Step step, VIP_RETURN code) {
        switch (step) {
            case Step::open:
                return code == VIP_ERROR_RESOURCE;
            case Step::request:
                return code == VIP_ERROR_RESOURCE || code == VIP_NOT_REACHABLE ||
                       code == VIP_TIMEOUT;
            case Step::listen:
                return code == VIP_ERROR_RESOURCE || code == VIP_TIMEOUT;
            case Step::accept:
                return code == VIP_TIMEOUT;  // the peer's request is no more
            default:
                return code == VIP_DESCRIPTOR_ERROR;  // the connection was lost
        }
    }

    Host host_;
    Child accepting_;
    Child asking_;
};

TEST_P(Faults, AreToldAndLeaveNothing) {
    const Kind& kind = GetParam();
    if (sanitized && is_sanitizers_own(kind.call))
        GTEST_SKIP() << "the sanitizer makes such calls itself and does not expect them to fail";
    const Result none = live_with({kind.call, 0, 0}, "no fault");
    if (!none.allowed) GTEST_SKIP() << "seccomp is not allowed here";
    const std::uint32_t places = std::min(none.calls, kind.places_max);
    std::uint32_t given = 0;
    for (std::uint32_t nth = 1; nth <= places; ++nth)
        for (const int error : kind.errors) {
            const Result result = live_with(
                {kind.call, nth, error}, std::string(kind.name) + " number " + std::to_string(nth) +
                                             ": " + strerrorname_np(error));
            given += result.given;
            if (HasFatalFailure()) return;
        }
    std::printf("%s: %u calls, %u faults given\n", kind.name, none.calls, given);
    EXPECT_TRUE(places == 0 || given > 0);
}

INSTANTIATE_TEST_SUITE_P(Of, Faults, testing::ValuesIn(kinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace

}  // namespace system_test::faults_test

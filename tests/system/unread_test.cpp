// A log that nobody reads keeps no handler from running, nor a NIC from closing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "leaver.hpp"
#include "support/child.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"
#include "support/wait.hpp"

namespace system_test::unread_test {

namespace {

/// Standard error becomes a pipe that is full, and that nobody empties.
void plug_standard_error() {
    static int pipe[2];
    require_call(pipe2(pipe, O_CLOEXEC | O_NONBLOCK) == 0, "pipe");
    const std::string much(4096, 'x');
    while (write(pipe[1], much.data(), much.size()) > 0) continue;
    while (write(pipe[1], "x", 1) > 0) continue;
    require_call(fcntl(pipe[1], F_SETFL, 0) == 0, "who writes to it waits");
    require_call(dup2(pipe[1], STDERR_FILENO) == STDERR_FILENO, "dup2");
}

const Role leaver_role("leaver", be_leaver);

/// Argument 1: "pipe", or it was told of another file. The library has something to say of the
/// first connection that is lost; of the second one a handler of ours hears.
void be_unread(Parent& parent) {
    if (parent.argument(1) == "pipe") plug_standard_error();
    Nic nic(parent.argument(0).c_str());
    OK(VipErrorCallback(nic.handle(), nullptr, nullptr));
    std::atomic<VIP_VI_HANDLE> heard{nullptr};  // of whom last
    for (int connection = 0; connection < 2; ++connection) {
        End end(nic, leavers_wants);
        end.accept(door_of_this_host());
        if (connection == 1)
            OK(VipErrorCallback(nic.handle(), &heard,
                                [](VIP_PVOID of, VIP_ERROR_DESCRIPTOR* error) {
                                    *static_cast<std::atomic<VIP_VI_HANDLE>*>(of) = error->ViHandle;
                                }));
        parent.say("connected");
        end.post_send(0, 8);
        parent.expect("lost");
        until("the connection is lost", [&] { return end.state() == VIP_STATE_ERROR; });
        // It may hear of the first one, too, which the thread that runs it was late to tell.
        if (connection == 1) until("the handler runs", [&] { return heard == end.vi(); });
    }
    nic.close();
    parent.say("closed");
    parent.expect("end");
}
const Role unread_role("unread", be_unread);

class Unread : public testing::TestWithParam<const char*> {
protected:
    /// A program with that log, whose peers are killed, comes to its end.
    static void come_to_the_end(const char* log, const std::vector<std::string>& environment) {
        Child unread("unread", {.arguments = {GetParam(), log}, .environment = environment});
        for (int connection = 0; connection < 2; ++connection) {
            Child leaver("leaver", {.arguments = {GetParam()}});
            unread.expect("connected");
            leaver.expect("connected");
            leaver.kill();
            unread.say("lost");
        }
        unread.expect("closed");
        unread.say("end");
        unread.join();
    }
    Host host;
};

TEST_P(Unread, AFullPipeKeepsNoHandlerFromRunningNorANicFromClosing) {
    come_to_the_end("pipe", {"OPENVIA_LOG_LEVEL=2"});
}

TEST_P(Unread, AFifoAsLogKeepsNoHandlerFromRunningNorANicFromClosing) {
    const std::string fifo = host.path() + "/log";
    require_call(mkfifo(fifo.c_str(), 0600) == 0, "mkfifo");
    come_to_the_end("fifo", {"OPENVIA_LOG_LEVEL=2", "OPENVIA_LOG=" + fifo});
}

TEST_P(Unread, AFullFifoAsLogKeepsNoHandlerFromRunningNorANicFromClosing) {
    const std::string fifo = host.path() + "/log";
    require_call(mkfifo(fifo.c_str(), 0600) == 0, "mkfifo");
    const int full = open(fifo.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    require_call(full >= 0, "open");
    while (write(full, "x", 1) > 0) continue;
    come_to_the_end("fifo", {"OPENVIA_LOG_LEVEL=2", "OPENVIA_LOG=" + fifo});
    close(full);
}

INSTANTIATE_TEST_SUITE_P(Media, Unread, testing::Values("shm", "udp:127.0.0.1"),
                         [](const auto& device) { return std::string(device.param).substr(0, 3); });

}  // namespace

}  // namespace system_test::unread_test

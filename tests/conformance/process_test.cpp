// What only processes can do: die, exit, fork (VIPL 4.2, 4.3, 4.4, 4.18, 4.26).
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "harness/end.hpp"

namespace conformance::process_test {
namespace {

/// For roles that never come to the end of a scope: keeps an object until the process ends.
template <class Object>
Object& keep(Object* object) {
    static auto& kept = *new std::vector<void*>;
    kept.push_back(object);
    return *object;
}

// Death -------------------------------------------------------------------------------------------

struct Death {
    const char* name;
    Ending ending;
    void (*die)();
};

const Death deaths[] = {
    {"killed", killed_by(SIGKILL), [] { raise(SIGKILL); }},
    {"aborts", killed_by(SIGABRT),
     [] {
         signal(SIGABRT, SIG_DFL);
         std::abort();
     }},
    {"exits", exits_with(7), [] { std::exit(7); }},
    {"exits_at_once", exits_with(8), [] { _exit(8); }},
};

/// One death for each test: plans `victim` with it.
void plan_victim(Test& test, const Death& death, void (*live)(Role&)) {
    test.role(
        "victim",
        [=, die = death.die](Role& me) {
            live(me);
            die();
        },
        death.ending);
}

void live_with_delivered_messages(Role& me) {
    End& end = keep(new End(me));
    end.connect("survivor");
    me.hear<char>("survivor");
    for (int n = 0; n < 5; ++n) end.send(end.filled(1000, 1));
    for (int n = 0; n < 5; ++n) end.sent();
}

void survive_with_delivered_messages(Role& me) {
    Cq cq(me.nic(), 32);
    End end(me, {.receive_cq = &cq});
    std::vector<VIP_DESCRIPTOR*> posted;
    std::vector<Piece> rooms;
    for (int n = 0; n < 8; ++n) posted.push_back(end.receive(rooms.emplace_back(end.take(1000))));
    end.accept("victim");
    // A thread waits for ever, and wakes when the peer dies.
    Thread waiter(me, [&] {
        for (std::size_t n = 0; n < 8; ++n) {
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN receive = VIP_FALSE;
            EXPECT_EQ(VIP_SUCCESS, VipCQWait(cq.handle(), VIP_INFINITE, &vi, &receive));
            EXPECT_EQ(posted[n], end.received(n < 5 ? VIP_SUCCESS : VIP_DESCRIPTOR_ERROR));
            if (n < 5)
                EXPECT_TRUE(holds(rooms[n], 1)) << "what was published is delivered first";
            else
                EXPECT_TRUE(flushed(posted[n]));
        }
    });
    me.tell("victim", 'd');
    waiter.join();
    me.nic().wait_error(me, end.vi(), VIP_ERROR_CONN_LOST);
    EXPECT_EQ(VIP_STATE_ERROR, end.state());
    end.disconnect();
    EXPECT_EQ(VIP_STATE_IDLE, end.state());
}

VIPL_TEST(Vipl_4_18_survivor_of_a_kill_has_what_was_delivered_then_flushed_then_conn_lost,
          processes) {
    plan_victim(test, deaths[0], live_with_delivered_messages);
    test.role("survivor", survive_with_delivered_messages);
}

VIPL_TEST(Vipl_4_18_survivor_of_an_abort_has_what_was_delivered_then_flushed_then_conn_lost,
          processes) {
    plan_victim(test, deaths[1], live_with_delivered_messages);
    test.role("survivor", survive_with_delivered_messages);
}

VIPL_TEST(Vipl_4_2_survivor_of_an_exit_has_what_was_delivered_then_flushed_then_conn_lost,
          processes) {
    plan_victim(test, deaths[2], live_with_delivered_messages);
    test.role("survivor", survive_with_delivered_messages);
}

VIPL_TEST(Vipl_4_2_survivor_of_an_exit_without_handlers_is_told_as_well, processes) {
    plan_victim(test, deaths[3], live_with_delivered_messages);
    test.role("survivor", survive_with_delivered_messages);
}

void die_in_a_transfer(Role& me) {
    End& end = keep(new End(me, {.transfer_max = 1 << 20, .memory = 5 << 20}));
    end.connect("survivor");
    const auto target = me.hear<Target>("survivor");
    for (int n = 0; n < 4; ++n) end.write(target, end.take(1 << 20));
    for (int n = 0; n < 4; ++n) end.read(target, end.take(64));
}

VIPL_TEST(Vipl_4_18_a_kill_in_the_midst_of_transfers_both_ways, processes) {
    plan_victim(test, deaths[0], die_in_a_transfer);
    test.role("survivor", [](Role& me) {
        End end(me, {.transfer_max = 1 << 20, .memory = 3 << 20});
        const Piece target = end.take(1 << 20);
        VIP_DESCRIPTOR* receive = end.receive(end.take(64));
        end.accept("victim");
        me.tell("victim", Target(target));
        const VIP_DESCRIPTOR* send = end.send(end.take(1 << 20));  // nobody has a receive for it
        EXPECT_EQ(receive, end.received(VIP_DESCRIPTOR_ERROR));
        EXPECT_TRUE(flushed(receive));
        end.wait_state(VIP_STATE_ERROR);
        EXPECT_EQ(send, end.send_outcome().descriptor);
        me.wait_for_end_of("victim");
    });
}

VIPL_TEST(Vipl_4_18_a_kill_while_its_request_is_kept_waiting, processes) {
    plan_victim(test, deaths[0], [](Role& me) {
        End& end = keep(new End(me));
        const auto holder = me.hear<Address>("holder");
        keep(new Thread(me, [&me, &end, holder] {
            VIP_VI_ATTRIBUTES attributes;
            request(me, end.vi(), me.nic().address("victim"), holder, &attributes, VIP_INFINITE);
        }));
        me.hear<char>("holder");
    });
    test.role("holder", [](Role& me) {
        End end(me);
        Address local = me.nic().address(me.discriminator("holder"));
        me.tell("victim", local);
        Address remote;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE connection = nullptr;
        OK(VipConnectWait(me.nic().handle(), local.net(), patience_ms, remote.net(), &attributes,
                          &connection));
        me.tell("victim", 'h');
        me.wait_for_end_of("victim");
        expect_withdrawn(me, end, connection);
    });
}

VIPL_TEST(Vipl_4_18_a_kill_while_it_keeps_a_request_waiting, processes) {
    plan_victim(test, deaths[0], [](Role& me) {
        Address local = me.nic().address(me.discriminator("victim"));
        me.tell("asker", local);
        Address remote;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE connection = nullptr;
        OK(VipConnectWait(me.nic().handle(), local.net(), patience_ms, remote.net(), &attributes,
                          &connection));
    });
    test.role("asker", [](Role& me) {
        End end(me);
        VIP_VI_ATTRIBUTES attributes;
        EXPECT_NE(VIP_SUCCESS, request(me, end.vi(), me.nic().address("asker"),
                                       me.hear<Address>("victim"), &attributes, VIP_INFINITE));
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
    });
}

VIPL_TEST(Vipl_4_18_death_is_seen_even_while_a_forked_child_of_the_dead_lives_on, processes) {
    test.role(
        "victim",
        [](Role& me) {
            End& end = keep(new End(me));
            end.connect("survivor");
            int pipe[2];
            require(::pipe(pipe) == 0, "a pipe can be made");
            if (fork() == 0) {  // holds what it inherited until the survivor is content
                const bool told = me.hear<char>("survivor") == 'e';
                _exit(told ? 0 : 1);
            }
            raise(SIGKILL);
        },
        killed_by(SIGKILL));
    test.role("survivor", [](Role& me) {
        End end(me);
        VIP_DESCRIPTOR* receive = end.receive(end.take(8));
        end.accept("victim");
        EXPECT_EQ(receive, end.received(VIP_DESCRIPTOR_ERROR));
        me.nic().wait_error(me, end.vi(), VIP_ERROR_CONN_LOST);
        me.tell("victim", 'e');
    });
}

// Exit in a handler -------------------------------------------------------------------------------

void exit_with_nine(VIP_PVOID, VIP_ERROR_DESCRIPTOR*) { std::exit(9); }

VIPL_TEST(Vipl_4_4_a_handler_may_exit, processes) {
    test.role(
        "exits",
        [](Role& me) {
            End& end = keep(new End(me));
            OK(VipErrorCallback(me.nic().handle(), nullptr, exit_with_nine));
            end.receive(end.take(8));
            end.connect("other");
            me.tell("other", 'g');
            // The main thread sits in a wait meanwhile, as programs' do.
            Cq& never = keep(new Cq(me.nic(), 1));
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN receive = VIP_FALSE;
            VipCQWait(never.handle(), VIP_INFINITE, &vi, &receive);
            me.until([] { return false; }, "the handler exits");
        },
        exits_with(9));
    test.role("other", [](Role& me) {
        End end(me);
        end.accept("exits");
        me.hear<char>("exits");
        end.disconnect();
        me.wait_for_end_of("exits");
    });
}

// The last clean-up of a process ------------------------------------------------------------------

struct Last {
    VIP_NIC_HANDLE nic;
    VIP_VI_HANDLE vi;
    VIP_CQ_HANDLE cq;
    char room[64];
    VIP_MEM_HANDLE handle;
    std::atomic<bool> stop{false};
    std::thread looks;
};
Last* last = nullptr;

/// As the destructor of a global object: what was registered before the library's own comes last.
const int registered_early = std::atexit([] {
    if (last == nullptr) return;
    last->stop = true;
    last->looks.join();
    VIP_DESCRIPTOR* flushed = nullptr;
    const bool good = VipDisconnect(last->vi) == VIP_SUCCESS &&
                      VipRecvDone(last->vi, &flushed) == VIP_DESCRIPTOR_ERROR &&
                      flushed != nullptr && VipDestroyVi(last->vi) == VIP_SUCCESS &&
                      VipDeregisterMem(last->nic, last->room, last->handle) == VIP_SUCCESS &&
                      VipDestroyCQ(last->cq) == VIP_SUCCESS &&
                      VipCreateCQ(last->nic, 1, &last->cq) == VIP_SUCCESS &&
                      VipCloseNic(last->nic) == VIP_SUCCESS;
    _exit(good ? 3 : 4);
});

VIPL_TEST(Vipl_4_2_the_last_clean_up_of_a_process_may_call_us, processes) {
    test.role(
        "exits",
        [](Role& me) {
            EXPECT_EQ(0, registered_early);
            End& end = keep(new End(me));
            last = new Last;
            last->nic = me.nic().handle();
            last->vi = end.vi();
            OK(VipCreateCQ(last->nic, 4, &last->cq));
            OK(VipRegisterMem(last->nic, last->room, sizeof last->room, nullptr, &last->handle));
            last->looks = std::thread([] {
                VIP_VI_HANDLE vi = nullptr;
                VIP_BOOLEAN receive = VIP_FALSE;
                while (!last->stop) VipCQWait(last->cq, 10, &vi, &receive);
            });
            end.receive(end.take(8));
            end.connect("other");
            me.tell("other", 'g');
            std::exit(9);
        },
        exits_with(3));
    test.role("other", [](Role& me) {
        End end(me);
        end.accept("exits");
        me.hear<char>("exits");
        end.wait_broken();
        end.disconnect();
    });
}

// Exit in a signal's handler ----------------------------------------------------------------------

volatile VIP_VI_HANDLE interrupted = nullptr;

/// As the destructor of a global object. The program may have been in the midst of anything.
const int registered_for_signals = std::atexit([] {
    if (interrupted == nullptr) return;
    const VIP_RETURN answer = VipDisconnect(interrupted);
    _exit(answer == VIP_SUCCESS || answer == VIP_INVALID_STATE ? 3 : 4);
});

/// One process in two is met while it has the turn: of these at least one, as good as surely.
constexpr int met_by_signals = 8;

VIPL_TEST(Vipl_4_2_the_handler_of_a_signal_may_exit_whatever_it_met, processes) {
    for (int number = 0; number < met_by_signals; ++number) {
        const std::string name = "polls" + std::to_string(number);
        test.role(
            name,
            [name](Role& me) {
                EXPECT_EQ(0, registered_for_signals);
                End& end = keep(new End(me));
                end.receive(end.take(8));
                end.connect("other");
                me.tell("other", 'g');
                interrupted = end.vi();
                signal(SIGALRM, [](int) { std::exit(9); });
                const itimerval soon{{0, 0}, {0, 2000}};
                EXPECT_EQ(0, setitimer(ITIMER_REAL, &soon, nullptr));
                VIP_DESCRIPTOR* done = nullptr;
                while (VipRecvDone(end.vi(), &done) == VIP_NOT_DONE) continue;
                _exit(5);  // the signal did not come
            },
            exits_with(3));
    }
    test.role("other", [](Role& me) {
        std::vector<std::unique_ptr<End>> ends;
        for (int number = 0; number < met_by_signals; ++number) {
            const std::string name = "polls" + std::to_string(number);
            ends.push_back(std::make_unique<End>(me));
            ends.back()->accept(name);
            me.hear<char>(name);
        }
        for (auto& end : ends) {
            end->wait_broken();
            end->disconnect();
        }
    });
}

// Fork --------------------------------------------------------------------------------------------

/// Runs a command as a shell would and gives what it printed.
std::string output_of(const char* command) {
    FILE* pipe = popen(command, "re");
    require(pipe != nullptr, "a shell can be started");
    std::string text;
    std::array<char, 256> line;
    while (std::fgets(line.data(), line.size(), pipe) != nullptr) text += line.data();
    EXPECT_EQ(0, pclose(pipe));
    return text;
}

VIPL_TEST(Vipl_4_3_descriptors_are_closed_on_exec, processes) {
    test.role("server", [](Role& me) {
        const std::string before = output_of("ls /proc/self/fd | wc -l");
        End end(me);
        end.accept("client");
        EXPECT_EQ(before, output_of("ls /proc/self/fd | wc -l"));
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        end.connect("server");
        me.meet();
    });
}

/// Words go both ways.
void talk(Role& me, End& end, bool first, std::string_view peer) {
    for (int n = 0; n < 2; ++n) (n == 0) == first ? end.say(peer, n) : end.expect(peer, n);
    me.meet();
}

VIPL_TEST(Vipl_4_3_system_and_popen_disturb_neither_side, processes) {
    const auto act = [](Role& me, bool accepts, const char* peer) {
        End end(me);
        const Piece room = end.take(1000);
        VIP_DESCRIPTOR* posted = end.receive(room);
        accepts ? end.accept(peer) : end.connect(peer);
        for (int round = 0; round < 5; ++round) {
            EXPECT_EQ(0, std::system("true"));
            EXPECT_EQ("word\n", output_of("echo word"));
        }
        me.meet();
        end.send(end.filled(1000, 5));
        end.sent();
        EXPECT_EQ(posted, end.received());
        EXPECT_TRUE(holds(room, 5));
        talk(me, end, accepts, peer);
    };
    test.role("server", [=](Role& me) { act(me, true, "client"); });
    test.role("client", [=](Role& me) { act(me, false, "server"); });
}

/// Waits for a forked child, which must exit with 0.
void expect_clean_end(pid_t child) {
    int status = 0;
    require(waitpid(child, &status, 0) == child, "the child can be waited for");
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(0, WEXITSTATUS(status));
}

VIPL_TEST(Vipl_4_3_a_forked_child_that_exits_the_whole_way_disturbs_neither_side, processes) {
    test.role("forks", [](Role& me) {
        End end(me);
        end.connect("other");
        for (int round = 0; round < 3; ++round) {
            std::fflush(nullptr);
            const pid_t child = fork();
            if (child == 0) std::exit(0);  // with all that is done at exit
            expect_clean_end(child);
            talk(me, end, true, "other");
        }
    });
    test.role("other", [](Role& me) {
        End end(me);
        end.accept("forks");
        for (int round = 0; round < 3; ++round) talk(me, end, false, "forks");
    });
}

VIPL_TEST(Vipl_4_3_memory_written_by_rdma_after_a_fork_is_the_parents, processes) {
    test.role("forks", [](Role& me) {
        End end(me);
        const Piece room = end.take(10000);
        end.connect("other");
        const pid_t child = fork();
        if (child == 0) {
            const char told = me.hear<char>("other");  // after it has written
            _exit(told == 'w' && holds_only(room, 0) ? 0 : 1);
        }
        me.tell("other", Target(room));
        expect_clean_end(child);
        me.tell("other", 'e');
        end.expect("other", 1);
        EXPECT_TRUE(holds(room, 6));
    });
    test.role("other", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_RELIABLE_DELIVERY});
        end.accept("forks");
        end.write(me.hear<Target>("forks"), end.filled(10000, 6));
        end.sent();
        me.tell("forks", 'w');
        me.hear<char>("forks");
        end.say("forks", 1);
        me.wait_for_end_of("forks");
    });
}

/// Calls everything as a forked child; the name of the first call that does not refuse what is the
/// parent's.
const char* first_that_works(Nic& nic, End& end, Cq& cq, VIP_PROTECTION_HANDLE tag,
                             VIP_DESCRIPTOR* descriptor) {
    const VIP_NIC_HANDLE handle = nic.handle();
    const VIP_VI_HANDLE vi = end.vi();
    Memory& memory = end.memory();
    Address own = nic.address("child");
    Address room;
    VIP_NIC_ATTRIBUTES nic_attributes;
    VIP_VI_ATTRIBUTES attributes = vi_attributes();
    VIP_MEM_ATTRIBUTES memory_attributes = rights(false, false);
    VIP_MEM_HANDLE region;
    VIP_VI_STATE state;
    VIP_BOOLEAN flag;
    VIP_CONN_HANDLE connection;
    VIP_DESCRIPTOR* done;
    VIP_VI_HANDLE found;
    VIP_CQ_HANDLE new_cq;
    VIP_PROTECTION_HANDLE new_tag;
    VIP_VI_HANDLE new_vi;
    char name[64] = "localhost";
    VIP_ULONG length = sizeof name;
    const std::pair<const char*, VIP_RETURN> results[] = {
        {"QueryNic", VipQueryNic(handle, &nic_attributes)},
        {"ErrorCallback", VipErrorCallback(handle, nullptr, nullptr)},
        {"CreatePtag", VipCreatePtag(handle, &new_tag)},
        {"DestroyPtag", VipDestroyPtag(handle, tag)},
        {"RegisterMem", VipRegisterMem(handle, name, 8, nullptr, &region)},
        {"DeregisterMem", VipDeregisterMem(handle, memory.base(), memory.handle())},
        {"SetMemAttributes",
         VipSetMemAttributes(handle, memory.base(), memory.handle(), &memory_attributes)},
        {"QueryMem", VipQueryMem(handle, memory.base(), memory.handle(), &memory_attributes)},
        {"CreateVi", VipCreateVi(handle, &attributes, nullptr, nullptr, &new_vi)},
        {"DestroyVi", VipDestroyVi(vi)},
        {"SetViAttributes", VipSetViAttributes(vi, &attributes)},
        {"QueryVi", VipQueryVi(vi, &state, &attributes, &flag, &flag)},
        {"ConnectWait",
         VipConnectWait(handle, own.net(), 100, room.net(), &attributes, &connection)},
        {"ConnectRequest", VipConnectRequest(vi, own.net(), own.net(), 100, &attributes)},
        {"Disconnect", VipDisconnect(vi)},
        {"ConnectPeerRequest", VipConnectPeerRequest(vi, own.net(), own.net(), 100)},
        {"ConnectPeerDone", VipConnectPeerDone(vi, &attributes)},
        {"ConnectPeerWait", VipConnectPeerWait(vi, &attributes)},
        {"PostSend", VipPostSend(vi, descriptor, memory.handle())},
        {"SendDone", VipSendDone(vi, &done)},
        {"SendWait", VipSendWait(vi, 100, &done)},
        {"PostRecv", VipPostRecv(vi, descriptor, memory.handle())},
        {"RecvDone", VipRecvDone(vi, &done)},
        {"RecvWait", VipRecvWait(vi, 100, &done)},
        {"CreateCQ", VipCreateCQ(handle, 4, &new_cq)},
        {"ResizeCQ", VipResizeCQ(cq.handle(), 8)},
        {"CQDone", VipCQDone(cq.handle(), &found, &flag)},
        {"CQWait", VipCQWait(cq.handle(), 100, &found, &flag)},
        {"DestroyCQ", VipDestroyCQ(cq.handle())},
        {"NSInit", VipNSInit(handle, nullptr)},
        {"NSGetHostByName", VipNSGetHostByName(handle, name, room.net(), 0)},
        {"NSGetHostByAddr", VipNSGetHostByAddr(handle, own.net(), name, &length)},
        {"NSShutdown", VipNSShutdown(handle)},
        {"CloseNic", VipCloseNic(handle)},
    };
    for (const auto& [call, code] : results)
        if (code != VIP_INVALID_STATE) return call;
    return nullptr;
}

VIPL_TEST(
    Vipl_4_3_in_a_forked_child_the_parents_nic_is_invalid_state_with_and_without_one_of_its_own,
    processes) {
    test.role("forks", [](Role& me) {
        VIP_PROTECTION_HANDLE tag = nullptr;
        OK(VipCreatePtag(me.nic().handle(), &tag));
        {
            Cq cq(me.nic(), 4);
            End end(me);
            VIP_DESCRIPTOR* descriptor = end.memory().descriptor();
            make_send(descriptor, {});
            end.connect("other");
            const std::string device = me.device_name();
            int pipe[2];
            require(::pipe(pipe) == 0, "a pipe can be made");
            const pid_t child = fork();
            if (child == 0) {
                alarm(60);
                const char* call = first_that_works(me.nic(), end, cq, tag, descriptor);
                VIP_NIC_HANDLE own = nullptr;
                if (call == nullptr && VipOpenNic(device.c_str(), &own) != VIP_SUCCESS)
                    call = "OpenNic does not work; nothing";
                if (call == nullptr) call = first_that_works(me.nic(), end, cq, tag, descriptor);
                if (call == nullptr && VipCloseNic(own) != VIP_SUCCESS)
                    call = "CloseNic of its own does not work; nothing";
                if (call != nullptr && write(pipe[1], call, strlen(call)) < 0) _exit(2);
                _exit(call == nullptr ? 0 : 1);
            }
            close(pipe[1]);
            char call[64] = {};
            EXPECT_EQ(0, read(pipe[0], call, sizeof call - 1)) << call << " does not refuse";
            close(pipe[0]);
            expect_clean_end(child);
            talk(me, end, true, "other");
        }
        OK(VipDestroyPtag(me.nic().handle(), tag));
    });
    test.role("other", [](Role& me) {
        End end(me);
        end.accept("forks");
        talk(me, end, false, "forks");
    });
}

// Signals -----------------------------------------------------------------------------------------

void ignore(int) {}

VIPL_TEST(Vipl_4_14_a_signal_does_not_end_a_wait, processes) {
    test.role("waits", [](Role& me) {
        struct sigaction action = {};
        action.sa_handler = ignore;  // without SA_RESTART
        require(sigaction(SIGUSR1, &action, nullptr) == 0, "a signal handler can be set");
        End end(me);
        VIP_DESCRIPTOR* posted = end.receive(end.take(8));
        end.accept("signals");
        me.tell("signals", getpid());
        EXPECT_EQ(posted, end.received());
    });
    test.role("signals", [](Role& me) {
        End end(me);
        end.connect("waits");
        const auto pid = me.hear<pid_t>("waits");
        for (int n = 0; n < 200; ++n) {
            require(kill(pid, SIGUSR1) == 0, "the process can be signalled");
            me.pause();
        }
        end.send(end.take(8));
        end.sent();
        me.wait_for_end_of("waits");
    });
}

}  // namespace
}  // namespace conformance::process_test

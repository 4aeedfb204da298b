// Threads and NICs in the process's simulated world: waiting, polling, timeouts, handlers,
// deadlock.
#include "sim/host/sim_agent.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "queue/descriptor.hpp"

namespace via::sim::sim_agent_test {
namespace {

using engine::Reliability;
using engine::ViState;

Discriminator word(const char* text) {
    Discriminator discriminator;
    discriminator.length = static_cast<std::uint16_t>(std::strlen(text));
    std::memcpy(discriminator.bytes.data(), text, discriminator.length);
    return discriminator;
}

bool never(const void*) { return false; }

std::unique_ptr<agent::Agent> open(const char* host) {
    static std::uint32_t generation = 0;
    auto opened = open_sim(host, generation += 1U << 16);
    EXPECT_TRUE(opened.has_value());
    return std::move(*opened);
}

/// What a program has: an open NIC, a VI, memory.
struct Program {
    explicit Program(const char* host, Reliability reliability = Reliability::reception)
        : agent(open(host)), nic(agent->nic()) {
        memory.reset(static_cast<std::byte*>(std::aligned_alloc(64, length)));
        std::memset(memory.get(), 0, length);
        handle = nic.register_memory(at(0), length, {memory::no_tag, true, true}).value();
        engine::ViAttributes attributes;
        attributes.reliability = reliability;
        attributes.transfer_length_max = length;
        attributes.rdma_write = true;
        vi = nic.with_turn([&] { return nic.engine().create_vi(attributes, nullptr, nullptr); })
                 .value();
    }
    ~Program() { agent->close(); }

    std::uint64_t at(std::size_t offset) const {
        return reinterpret_cast<std::uint64_t>(memory.get()) + offset;
    }
    queue::Descriptor& descriptor(std::size_t number) const {
        return *reinterpret_cast<queue::Descriptor*>(memory.get() + number * 64);
    }
    queue::Descriptor& make(std::size_t number, std::size_t offset, std::uint32_t bytes) const {
        queue::Descriptor& made = descriptor(number);
        std::memset(static_cast<void*>(&made), 0, sizeof made);
        made.control.segment_count = 1;
        made.control.length = bytes;
        made.segments[0] = {at(offset), handle, bytes};
        return made;
    }
    void receive(std::size_t number, std::size_t offset, std::uint32_t bytes) {
        EXPECT_EQ(nic.post_receive(*vi, &make(number, offset, bytes), handle), Status::success);
    }
    void send(std::size_t number, std::size_t offset, std::uint32_t bytes) {
        EXPECT_EQ(nic.post_send(*vi, &make(number, offset, bytes), handle), Status::success);
    }
    bool wait_done(engine::ViQueue& queue, Time deadline = Time::never()) {
        const auto has_done = [](const void* subject) {
            return static_cast<const queue::WorkQueue*>(subject)->has_done();
        };
        if (!agent->wait({has_done, &queue.work}, deadline)) return false;
        void* done = nullptr;
        return nic.done(queue, done) == Status::success;
    }
    void accept_one(const char* ear) {
        engine::Listener listener;
        listener.discriminator = word(ear);
        ASSERT_EQ(nic.listen(listener), Status::success);
        const auto is_given = [](const void* subject) {
            return static_cast<const engine::Listener*>(subject)->given.load();
        };
        ASSERT_TRUE(agent->wait({is_given, &listener}, Time::never()));
        ASSERT_TRUE(nic.unlisten(listener));
        ASSERT_EQ(nic.with_turn([&] { return nic.engine().accept(listener.connection, *vi); }),
                  Status::success);
    }
    Status request(const char* host, const char* ear, Time deadline = Time::never()) {
        NetAddress remote;
        remote.discriminator = word(ear);
        if (const Status status = agent->resolve_host(host, 0, remote.host);
            status != Status::success)
            return status;
        EXPECT_EQ(nic.connect(*vi, {}, remote, deadline), Status::success);
        const auto is_decided = [](const void* subject) {
            return static_cast<const engine::Vi*>(subject)->state.load() !=
                   ViState::connect_pending;
        };
        EXPECT_TRUE(agent->wait({is_decided, vi}, Time::never()));
        return vi->connect_status;
    }
    /// Programs ask until somebody listens (VIPL 4.20).
    void request_patiently(const char* host, const char* ear) {
        Status status = Status::no_match;
        while (status == Status::no_match) status = request(host, ear);
        ASSERT_EQ(status, Status::success);
    }

    struct Free {
        void operator()(void* pointer) const { std::free(pointer); }
    };
    static constexpr std::size_t length = 16384;
    std::unique_ptr<agent::Agent> agent;
    nic::Nic& nic;
    std::unique_ptr<std::byte, Free> memory;
    memory::MemoryHandle handle = 0;
    engine::Vi* vi = nullptr;
};

/// Runs the roles as threads in that order; the test's own thread takes no part meanwhile.
void act(const std::vector<std::pair<const char*, std::function<void()>>>& roles) {
    const Away away;
    std::vector<std::thread> threads;
    std::vector<Place> places;
    for (const auto& [name, role] : roles) places.push_back(enlist(name));
    // The system may start them in any order: the last first, here.
    for (std::size_t n = roles.size(); n-- != 0;)
        threads.emplace_back([&, n] {
            join(places[n]);
            roles[n].second();
            leave();
        });
    for (std::thread& thread : threads) thread.join();
}

TEST(SimAgent, waiting_lets_virtual_time_pass_to_the_deadline) {
    Program program("alone");
    const Time start = now();
    EXPECT_FALSE(program.agent->wait({never, nullptr}, start + milliseconds(250)));
    EXPECT_EQ(now(), start + milliseconds(250));
    EXPECT_EQ(program.agent->now(), now());
    leave();
}

TEST(SimAgent, two_threads_meet_and_talk_by_waiting) {
    std::string heard;
    act({{"server",
          [&] {
              Program server("talk-server");
              server.receive(0, 4096, 100);
              server.accept_one("talk");
              ASSERT_TRUE(server.wait_done(server.vi->receive));
              heard.assign(reinterpret_cast<char*>(server.memory.get() + 4096));
              server.send(1, 4096, 100);
              ASSERT_TRUE(server.wait_done(server.vi->send));
          }},
         {"client", [&] {
              Program client("talk-client");
              client.receive(0, 4096, 100);
              client.request_patiently("talk-server", "talk");
              std::strcpy(reinterpret_cast<char*>(client.memory.get() + 8192), "over there?");
              client.send(1, 8192, 100);
              ASSERT_TRUE(client.wait_done(client.vi->send));
              ASSERT_TRUE(client.wait_done(client.vi->receive));
              EXPECT_STREQ(reinterpret_cast<char*>(client.memory.get() + 4096), "over there?");
          }}});
    EXPECT_EQ(heard, "over there?");
}

TEST(SimAgent, programs_that_only_poll_see_time_pass) {
    act({{"server",
          [&] {
              Program server("poll-server");
              server.receive(0, 4096, 100);
              server.accept_one("poll");
              const Time start = now();
              void* done = nullptr;
              while (server.nic.done(server.vi->receive, done) == Status::not_done) {
              }
              EXPECT_EQ(done, &server.descriptor(0));
              EXPECT_GT(now(), start);
          }},
         {"client", [&] {
              Program client("poll-client");
              client.request_patiently("poll-server", "poll");
              client.agent->wait({never, nullptr}, now() + milliseconds(20));
              client.send(0, 4096, 100);
              void* done = nullptr;
              while (client.nic.done(client.vi->send, done) == Status::not_done) {
              }
          }}});
}

TEST(SimAgent, plain_memory_changes_while_a_thread_pauses) {
    act({{"target",
          [&] {
              Program target("memory-target");
              target.accept_one("memory");
              // Told by the first message where to write; done when the last byte is there.
              const std::uint64_t place[2] = {target.at(8192), target.handle};
              std::memcpy(target.memory.get() + 4096, place, sizeof place);
              target.send(0, 4096, sizeof place);
              while (target.memory.get()[8192 + 99] == std::byte{0}) pause();
              EXPECT_EQ(target.memory.get()[8192], std::byte{7});
          }},
         {"writer", [&] {
              Program writer("memory-writer");
              writer.receive(0, 4096, 100);
              writer.request_patiently("memory-target", "memory");
              ASSERT_TRUE(writer.wait_done(writer.vi->receive));
              std::uint64_t place[2];
              std::memcpy(place, writer.memory.get() + 4096, sizeof place);
              std::memset(writer.memory.get() + 8192, 7, 100);
              queue::Descriptor& write = writer.make(1, 8192, 100);
              write.control.control = queue::control::rdma_write;
              write.control.segment_count = 2;
              write.segments[1] = write.segments[0];
              write.segments[0] = {place[0], static_cast<std::uint32_t>(place[1]), 0};
              ASSERT_EQ(writer.nic.post_send(*writer.vi, &write, writer.handle), Status::success);
              ASSERT_TRUE(writer.wait_done(writer.vi->send));
          }}});
}

TEST(SimAgent, connecting_fails_as_it_must) {
    Program program("fails");
    Program other("fails-other");
    EXPECT_EQ(program.request("fails-other", "nobody"), Status::no_match);
    EXPECT_EQ(program.request("no-such-host", "nobody"), Status::error_name_service);
    engine::Listener listener;
    listener.discriminator = word("deaf");
    ASSERT_EQ(other.nic.listen(listener), Status::success);
    const Time start = now();
    EXPECT_EQ(program.request("fails-other", "deaf", start + milliseconds(30)), Status::timeout);
    EXPECT_EQ(now(), start + milliseconds(30));
    other.nic.unlisten(listener);
    NetAddress nowhere;
    nowhere.host = program.agent->address();
    nowhere.host.bytes[3] = 251;
    ASSERT_EQ(program.nic.connect(*program.vi, {}, nowhere, Time::never()), Status::success);
    program.agent->wait({never, nullptr}, now() + milliseconds(1));
    EXPECT_EQ(program.vi->connect_status, Status::not_reachable);
    leave();
}

TEST(SimAgent, the_same_run_twice_goes_the_same_way) {
    const auto run = [] {
        std::string order;
        const auto note = [&order](char who) { order += who; };
        act({{"server",
              [&] {
                  Program server("twice-server");
                  for (std::size_t n = 0; n < 20; ++n) server.receive(n, 4096 + n * 64, 64);
                  server.accept_one("twice");
                  for (int n = 0; n < 20; ++n) {
                      ASSERT_TRUE(server.wait_done(server.vi->receive));
                      note('s');
                  }
              }},
             {"client",
              [&] {
                  Program client("twice-client");
                  client.request_patiently("twice-server", "twice");
                  void* done = nullptr;
                  for (std::size_t n = 0; n < 20; ++n) {
                      client.send(n, 8192, 64);
                      note('c');
                      if (n % 3 != 0) continue;
                      while (client.nic.done(client.vi->send, done) == Status::not_done) note('.');
                  }
                  while (client.nic.done(client.vi->send, done) != Status::descriptor_error)
                      note('.');
              }},
             {"bystander", [&] {
                  for (int n = 0; n < 30; ++n) {
                      pause();
                      note('b');
                  }
              }}});
        return order;
    };
    ASSERT_TRUE(restart(7));
    EXPECT_EQ(now(), Time{});
    const std::string first = run();
    const Time first_end = now();
    ASSERT_TRUE(restart(7));
    EXPECT_EQ(run(), first);
    EXPECT_EQ(now(), first_end);
    EXPECT_GT(first.size(), 70U);
    ASSERT_TRUE(restart(8));
    run();
    EXPECT_NE(now(), first_end);  // other delays
    leave();
}

TEST(SimAgent, world_in_use_cannot_begin_anew) {
    {
        Program program("in-use");
        EXPECT_FALSE(restart(1));
    }
    EXPECT_TRUE(restart(1));
    const Place place = enlist("somebody");
    EXPECT_FALSE(restart(1));
    const Away away;
    std::thread([place] { join(place); }).join();
}

TEST(SimAgent, handlers_run_on_a_thread_that_takes_part) {
    struct Told {
        std::vector<engine::ErrorCode> codes;
        std::thread::id thread;
    } told;
    Program server("handler-server");
    server.agent->set_error_handler({[](void* context, const engine::ErrorEvent& event) {
                                         auto& all = *static_cast<Told*>(context);
                                         all.codes.push_back(event.code);
                                         all.thread = std::this_thread::get_id();
                                         pause();  // it may wait, and call what it likes
                                     },
                                     &told});
    {
        std::unique_ptr<Program> client = std::make_unique<Program>("handler-client");
        engine::Listener listener;
        listener.discriminator = word("handler");
        ASSERT_EQ(server.nic.listen(listener), Status::success);
        NetAddress remote;
        remote.host = server.agent->address();
        remote.discriminator = word("handler");
        ASSERT_EQ(client->nic.connect(*client->vi, {}, remote, Time::never()), Status::success);
        while (!listener.given.load()) pause();
        ASSERT_TRUE(server.nic.unlisten(listener));
        EXPECT_EQ(listener.remote_host, client->agent->address());
        ASSERT_EQ(server.nic.with_turn(
                      [&] { return server.nic.engine().accept(listener.connection, *server.vi); }),
                  Status::success);
        while (client->vi->state.load() != ViState::connected) pause();
    }
    while (told.codes.empty()) pause();
    EXPECT_EQ(told.codes, std::vector{engine::ErrorCode::connection_lost});
    EXPECT_NE(told.thread, std::this_thread::get_id());
    // The one that is replaced is not running any more.
    const agent::Handler former = server.agent->set_error_handler({});
    EXPECT_EQ(former.context, &told);
    leave();
}

TEST(SimAgent, handler_may_close_its_own_nic) {
    struct Subject {
        std::unique_ptr<Program> program;
        bool closed = false;
    } subject;
    subject.program = std::make_unique<Program>("suicide", Reliability::unreliable);
    Program& program = *subject.program;
    program.agent->set_error_handler({[](void* context, const engine::ErrorEvent&) {
                                          auto& it = *static_cast<Subject*>(context);
                                          it.program->agent->close();
                                          it.program->agent->set_error_handler({});
                                          it.closed = true;
                                      },
                                      &subject});
    program.nic.with_turn([&] {
        program.nic.engine().report(*program.vi, engine::ErrorCode::catastrophic);
        return 0;
    });
    while (!subject.closed) pause();
    EXPECT_FALSE(program.agent->wait({never, nullptr}, Time::never()));  // at once
    subject.program.reset();
    leave();
}

TEST(SimAgent, close_brings_waiting_calls_home) {
    std::unique_ptr<Program> program = std::make_unique<Program>("closing");
    bool came_home = false;
    act({{"waiter",
          [&] {
              EXPECT_FALSE(program->agent->wait({never, nullptr}, Time::never()));
              came_home = true;
          }},
         {"closer", [&] {
              pause();
              EXPECT_FALSE(came_home);
              program->agent->close();
          }}});
    EXPECT_TRUE(came_home);
    program.reset();
    leave();
}

TEST(SimAgent, several_nics_of_a_host_are_like_its_processes) {
    Program first("shared");
    Program second("shared");
    EXPECT_EQ(first.agent->address(), second.agent->address());
    engine::Listener listener;
    listener.discriminator = word("shared");
    ASSERT_EQ(first.nic.listen(listener), Status::success);
    engine::Listener rival;
    rival.discriminator = word("shared");
    EXPECT_EQ(second.nic.listen(rival), Status::error_resource);
    NetAddress remote;
    remote.host = first.agent->address();
    remote.discriminator = word("shared");
    ASSERT_EQ(second.nic.connect(*second.vi, {}, remote, Time::never()), Status::success);
    while (!listener.given.load()) pause();
    EXPECT_TRUE(first.nic.unlisten(listener));
    EXPECT_EQ(first.nic.with_turn(
                  [&] { return first.nic.engine().accept(listener.connection, *first.vi); }),
              Status::success);
    while (second.vi->state.load() == ViState::connect_pending) pause();
    EXPECT_EQ(second.vi->state.load(), ViState::connected);
    leave();
}

TEST(SimAgent, hosts_have_names_and_addresses) {
    Program program("named");
    HostAddress address;
    EXPECT_EQ(program.agent->resolve_host("named", 0, address), Status::success);
    EXPECT_EQ(address, program.agent->address());
    EXPECT_EQ(address.length, 6);
    EXPECT_EQ(address.bytes[0], 10);
    EXPECT_EQ(address.bytes[4] * 256 + address.bytes[5], 9741);
    EXPECT_EQ(program.agent->resolve_host("named", 1, address), Status::error_name_service);
    EXPECT_EQ(program.agent->resolve_host("nobody-has-it", 0, address), Status::error_name_service);
    add_host("to-be-opened");
    EXPECT_EQ(program.agent->resolve_host("to-be-opened", 0, address), Status::success);
    std::string name;
    EXPECT_EQ(program.agent->host_name(address, name), Status::success);
    EXPECT_EQ(name, "to-be-opened");
    address.bytes[0] = 11;
    EXPECT_EQ(program.agent->host_name(address, name), Status::error_name_service);
    leave();
}

TEST(SimAgentDeathTest, threads_that_wait_for_ever_for_each_other_are_named) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            Program program("deadlock");
            std::thread other([&, place = enlist("the other one")] {
                join(place);
                program.agent->wait({never, nullptr}, Time::never());
            });
            program.agent->wait({never, nullptr}, Time::never());
            other.join();
        },
        "deadlock at .*nothing can happen.*NIC sim:deadlock(.|\n)*the other one, for NIC "
        "sim:deadlock");
}

}  // namespace
}  // namespace via::sim::sim_agent_test

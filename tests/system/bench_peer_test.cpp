// `via bench serve` and `via bench ... --peer`: two machines measure together, and strangers,
// clients that vanish and servers that are none do no harm.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "support/host.hpp"
#include "support/networks.hpp"

namespace system_test::bench_peer_test {

namespace {

constexpr int patience_ms = 60'000;
using Words = std::vector<std::string>;

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// A running `via bench ...`, on a host of `Networks` if one is named. What it prints on both
/// streams can be read line by line.
class Command {
public:
    explicit Command(const Words& words, const std::string& network = "") {
        int ends[2];
        require_call(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
        Words all{VIA_COMMAND, "bench"};
        all.insert(all.end(), words.begin(), words.end());
        std::vector<char*> pointers;
        for (std::string& word : all) pointers.push_back(word.data());
        pointers.push_back(nullptr);
        pid_ = fork();
        require_call(pid_ >= 0, "fork");
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (!network.empty()) enter_network(network);
            dup2(ends[1], STDOUT_FILENO);
            dup2(ends[1], STDERR_FILENO);
            execv(pointers[0], pointers.data());
            _exit(127);
        }
        close(ends[1]);
        output_ = ends[0];
    }
    ~Command() {
        if (pid_ > 0) end();
        close(output_);
    }
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    /// The next line; empty at the end.
    std::string line() {
        std::string text;
        char next = 0;
        while (next != '\n') {
            pollfd polled{output_, POLLIN, 0};
            require(poll(&polled, 1, patience_ms) > 0, "the command says something");
            if (read(output_, &next, 1) != 1) return text;
            text += next;
        }
        return text;
    }
    std::string line_with(const std::string& part) {
        std::string text = line();
        while (!text.empty() && !has(text, part)) text = line();
        require(!text.empty(), "the command says what is waited for");
        return text;
    }
    std::string rest() {
        std::string text;
        for (std::string next = line(); !next.empty(); next = line()) text += next;
        return text;
    }
    int code() {
        int status = 0;
        require_call(waitpid(pid_, &status, 0) == pid_, "waitpid");
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    void end() {
        kill(pid_, SIGKILL);
        code();
    }

private:
    pid_t pid_ = -1;
    int output_ = -1;
};

struct Outcome {
    int code = 0;
    std::string text;
};

Outcome run(const Words& words, const std::string& network = "") {
    Command command(words, network);
    const std::string text = command.rest();
    return {command.code(), text};
}

std::string processor(bool last) {
    cpu_set_t set;
    require_call(sched_getaffinity(0, sizeof set, &set) == 0, "sched_getaffinity");
    std::optional<int> found;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(static_cast<unsigned>(cpu), &set) && (last || !found)) found = cpu;
    }
    return std::to_string(*found);
}

/// A server at an address of this host and a port that the system chose.
class Server : public Command {
public:
    explicit Server(const std::string& address = "127.0.0.1", const std::string& network = "",
                    const Words& more = {})
        : Command(words(address, more), network) {
        const std::string said = line_with("listening at ");
        const std::size_t begin = said.find(address);
        place_ = said.substr(begin, said.find(',') - begin);
    }
    const std::string& place() const { return place_; }

private:
    static Words words(const std::string& address, const Words& more) {
        Words all{"serve", "--address", address + ":0", "--cpus", processor(true)};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    std::string place_;
};

/// A short run against it, without a NIC.
Words short_run(const std::string& place) {
    return {"latency", "--device", "tcp-socket",     "--size",           "8",      "--rounds",
            "1",       "--cpus",   processor(false), "--keep-disturbed", "--peer", place};
}

/// Somebody who speaks for himself.
class Stranger {
public:
    explicit Stranger(const std::string& place) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const auto port = static_cast<std::uint16_t>(std::stoi(place.substr(place.find(':') + 1)));
        address.sin_port = htons(port);
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        require_call(connect(socket_, generic, sizeof address) == 0, "connect");
    }
    ~Stranger() { close(socket_); }
    Stranger(const Stranger&) = delete;
    Stranger& operator=(const Stranger&) = delete;

    void say(const std::string& bytes) const {
        send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    /// Kind of the next message, and its body.
    std::pair<int, std::string> hear() const {
        std::string head(12, '\0');
        get(head);
        std::string body(
            static_cast<unsigned char>(head[8]) + 256u * static_cast<unsigned char>(head[9]), '\0');
        get(body);
        return {head[6], body};
    }

private:
    void get(std::string& bytes) const {
        std::size_t have = 0;
        while (have < bytes.size()) {
            pollfd polled{socket_, POLLIN, 0};
            require(poll(&polled, 1, patience_ms) > 0, "the server answers");
            const ssize_t got = recv(socket_, bytes.data() + have, bytes.size() - have, 0);
            require(got > 0, "the server answers before it closes");
            have += static_cast<std::size_t>(got);
        }
    }
    int socket_;
};

enum { hello = 0, welcome = 1, refusal = 2, open_channel = 3, order = 5 };

std::string little(std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
    return text;
}
std::string message(int kind, const std::string& body, int version = 3) {
    return "viab" + little(static_cast<std::uint64_t>(version), 2) +
           little(static_cast<std::uint64_t>(kind), 2) + little(body.size(), 4) + body;
}
std::string open_of(const std::string& name, std::uint64_t arena, std::uint64_t size) {
    // A latency of 8 bytes by sends, reliable delivery, one VI, one segment, one post a call,
    // buffers in turn.
    const std::string like = little(1 << 24, 6) + little(1, 4) + little(0, 4) + little(1, 4) +
                             little(1, 4) + little(1, 4) + little(255, 1) + little(8, 8);
    return message(open_channel, little(0, 2) + name + std::string(16 - name.size(), '\0') + like +
                                     little(arena, 8) + little(size, 8));
}

/// The server goes on: the next client comes through.
void expect_to_serve(const Server& server) {
    const Outcome outcome = run(short_run(server.place()));
    EXPECT_EQ(outcome.code, 0) << outcome.text;
}

TEST(BenchPeer, TwoHostsMeasureOverEachChannel) {
    const Networks networks;
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    Host host;
    Server server(Networks::address(1), networks.name(1));
    for (const Words& what : {Words{"latency", "--device", "udp", "--size", "8,4K"},
                              Words{"bandwidth", "--device", "auto", "--size", "4K"},
                              Words{"rate", "--device", "udp", "--cq", "--vis", "3"},
                              Words{"latency", "--device", "udp", "--wait", "block"},
                              Words{"latency", "--device", "udp", "--op", "read"}}) {
        Words words{"--against", "kernel", "--rounds", "1", "--cpus", processor(false), "--json"};
        words.insert(words.end(), {"--keep-disturbed", "--peer", server.place()});
        words.insert(words.begin(), what.begin(), what.end());
        const Outcome outcome = run(words, networks.name(0));
        EXPECT_EQ(outcome.code, 0) << outcome.text;
        for (const std::string& channel :
             {what[2], std::string("udp-socket"), std::string("tcp-socket")}) {
            EXPECT_TRUE(has(outcome.text, "\"device\":\"" + channel + '"')) << outcome.text;
        }
        std::istringstream lines(outcome.text);
        for (std::string line; std::getline(lines, line);) {
            EXPECT_TRUE(has(line, "\"probe_ns\":null,\"mode\":\"remote\"")) << line;
        }
    }
}

TEST(BenchPeer, OnlyOneAtATime) {
    Server server;
    {
        const Stranger first(server.place());
        first.say(message(hello, little(300, 4)));
        EXPECT_EQ(first.hear().first, welcome);
        const Outcome second = run(short_run(server.place()));
        EXPECT_EQ(second.code, 1);
        EXPECT_TRUE(has(second.text, "busy: has been serving 127.0.0.1:")) << second.text;
    }
    expect_to_serve(server);
}

TEST(BenchPeer, ASilentVisitorKeepsNobodyOut) {
    Server server;
    const Stranger silent(server.place());
    const Stranger slow(server.place());
    slow.say("via");
    expect_to_serve(server);
}

TEST(BenchPeer, StrangersAreToldSo) {
    Server server;
    const Stranger browser(server.place());
    browser.say("GET / HTTP/1.0\r\n\r\n");
    const auto [kind, text] = browser.hear();
    EXPECT_EQ(kind, refusal);
    EXPECT_TRUE(has(text, "no client")) << text;
    EXPECT_TRUE(has(server.line_with("was refused"), "no client"));

    const Stranger later(server.place());
    later.say(message(77, "four", 4));
    EXPECT_TRUE(has(later.hear().second, "version 3 of the bench's protocol, you speak 4"));

    const Stranger greedy(server.place());
    greedy.say(message(hello, little(301, 4)));
    EXPECT_TRUE(has(greedy.hear().second, "at most 300 s"));
    expect_to_serve(server);
}

TEST(BenchPeer, AClientCannotAskForEverything) {
    Server server;
    struct Case {
        std::string bytes;
        const char* answer;
    };
    for (const Case& one :
         {Case{open_of("udp-socket", 1ull << 40, 8), "are more than the"},
          Case{open_of("udp-socket", 1 << 20, 1ull << 40), "are more than the"},
          Case{open_of("line", 1 << 20, 8), "no channel between machines"},
          Case{open_of("udp:eth0", 1 << 20, 8), "no channel between machines"},
          Case{message(order, std::string(61, '\xff')), "makes no sense"},
          Case{message(order, ""), "makes no sense"}, Case{message(99, "?"), "makes no sense"},
          Case{message(7, little(5, 2)), "there is no channel 5"}}) {
        const Stranger client(server.place());
        client.say(message(hello, little(1, 4)));
        EXPECT_EQ(client.hear().first, welcome);
        client.say(one.bytes);
        const auto heard = client.hear();
        EXPECT_EQ(heard.first, refusal);
        EXPECT_TRUE(has(heard.second, one.answer)) << heard.second;
        EXPECT_TRUE(has(server.line_with("ended: "), one.answer));
    }
    expect_to_serve(server);
}

TEST(BenchPeer, AClientThatIsKilledDoesNotMatter) {
    Server server;
    Words words = short_run(server.place());
    *(std::find(words.begin(), words.end(), "--rounds") + 1) = "10000";
    for (int round = 0; round < 3; ++round) {
        Command client(words);
        server.line_with("begins");
        client.end();
        server.line_with("after");
    }
    expect_to_serve(server);
}

TEST(BenchPeer, AServerThatIsKilledIsTold) {
    std::optional<Server> server;
    server.emplace();
    Words words = short_run(server->place());
    *(std::find(words.begin(), words.end(), "--rounds") + 1) = "10000";
    Command client(words);
    server->line_with("begins");
    server.reset();
    const std::string text = client.rest();
    EXPECT_EQ(client.code(), 1) << text;
    // What it was just doing is named: connecting, waiting for an answer, or measuring.
    EXPECT_TRUE(has(text, "via bench: tcp-socket: ")) << text;
}

/// Listens, takes one visitor, and says what it was told to say.
class FalseServer {
public:
    FalseServer() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        socklen_t length = sizeof address;
        require_call(bind(socket_, generic, length) == 0 && listen(socket_, 1) == 0, "listen");
        require_call(getsockname(socket_, generic, &length) == 0, "getsockname");
        place_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    }
    ~FalseServer() { close(socket_); }
    FalseServer(const FalseServer&) = delete;
    FalseServer& operator=(const FalseServer&) = delete;

    Outcome serve(const std::string& bytes) const {
        Command client(short_run(place_));
        const int visitor = accept(socket_, nullptr, nullptr);
        char ignored[16];
        (void)!recv(visitor, ignored, sizeof ignored, MSG_WAITALL);
        (void)!send(visitor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        shutdown(visitor, SHUT_WR);
        const std::string text = client.rest();
        close(visitor);
        return {client.code(), text};
    }

private:
    int socket_;
    std::string place_;
};

TEST(BenchPeer, AServerThatIsNoneIsTold) {
    const FalseServer server;
    struct Case {
        std::string bytes;
        const char* told;
    };
    for (const Case& one :
         {Case{"220 mail.example.org ESMTP ready", "does not speak as 'via bench' does"},
          Case{message(welcome, "", 4), "speaks version 4"},
          Case{message(refusal, "come later", 4), "come later"},
          Case{message(refusal, "\x1b[2Jred"), "?[2Jred"}, Case{message(order, ""), "out of turn"},
          Case{"", "closed the connection"}, Case{message(welcome, ""), "closed the connection"},
          Case{message(welcome, "") + message(4, "short"), "makes no sense"}}) {
        const Outcome outcome = server.serve(one.bytes);
        EXPECT_EQ(outcome.code, 1) << outcome.text;
        EXPECT_TRUE(has(outcome.text, one.told)) << outcome.text;
    }
}

TEST(BenchPeer, NobodyThereIsTold) {
    const Outcome outcome = run(short_run("127.0.0.1:1"));
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(has(outcome.text, "127.0.0.1:1") && has(outcome.text, "'via bench serve' must run"))
        << outcome.text;
}

TEST(BenchPeer, WhatMakesNoSenseBetweenMachinesIsUsage) {
    for (const Words& more :
         {Words{"--netns", "a,b"}, Words{"--export"}, Words{"--mode", "near"},
          Words{"--against", "line"}, Words{"--against", "nonsense"}, Words{"--device", "shm"},
          Words{"--cpus", "0,1"}, Words{"--address", "127.0.0.1"}}) {
        Words words{"latency", "--peer", "127.0.0.1:1", "--device", "udp"};
        if (more[0] == "--device") words.resize(3);
        words.insert(words.end(), more.begin(), more.end());
        EXPECT_EQ(run(words).code, 2) << more[0];
    }
    EXPECT_EQ(run({"serve", "--size", "8"}).code, 2);
    EXPECT_EQ(run({"serve", "--address", "127.0.0.1:port"}).code, 2);
}

}  // namespace

}  // namespace system_test::bench_peer_test

#include "lab/exec/cluster.hpp"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "lab/exec/process.hpp"

extern char** environ;

namespace via::lab::exec {
namespace {

std::unexpected<std::string> failed(const std::string& what) {
    return std::unexpected(what + ": " + std::strerror(errno));
}

}  // namespace

std::expected<std::unique_ptr<Cluster>, std::string> Cluster::make(
    carrier::Plan plan, std::uint64_t seed, std::chrono::milliseconds patience) {
    auto cluster = std::unique_ptr<Cluster>(new Cluster);
    cluster->patience_ = patience;
    plan.host_for_each = true;
    auto made =
        carrier::ClusterCarrier::make(std::move(plan), cluster->clock_, cluster->fabric_, seed);
    if (!made) return std::unexpected(made.error());
    cluster->carrier_ = std::move(*made);
    cluster->fabric_.carry_by(*cluster->carrier_);
    if (auto listening = cluster->listen(); !listening) return std::unexpected(listening.error());
    return cluster;
}

Cluster::~Cluster() {
    clients_.clear();
    if (listener_ >= 0) close(listener_);
    if (folder_.empty()) return;
    unlink((folder_ + "/world").c_str());
    rmdir(folder_.c_str());
}

/// In a folder that is ours alone.
std::expected<void, std::string> Cluster::listen() {
    const char* const base = std::getenv("TMPDIR");
    std::string name = std::string(base == nullptr ? "/tmp" : base) + "/via-lab-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) return failed("cannot make a folder " + name);
    folder_ = name;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ + "/world";
    if (path.size() >= sizeof address.sun_path)
        return std::unexpected(path + " is too long for a socket's name");
    std::memcpy(address.sun_path, path.c_str(), path.size());
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (listener_ < 0 ||
        bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 128) != 0)
        return failed("cannot listen at " + path);
    return {};
}

/// Its memory is where it is in every run: translation caches look at addresses.
std::expected<void, std::string> Cluster::start(const Program& program) {
    const std::string variable = std::string(sim::remote::variable) + "=" + folder_ + "/world";
    std::vector<char*> arguments, environment;
    for (const std::string& word : program) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    for (char** word = environ; *word != nullptr; ++word) environment.push_back(*word);
    environment.push_back(const_cast<char*>(variable.c_str()));
    environment.push_back(nullptr);
    const int before = personality(0xFFFFFFFF);
    personality(static_cast<unsigned long>(before) | ADDR_NO_RANDOMIZE);
    pid_t pid = -1;
    const int error = posix_spawnp(&pid, program[0].c_str(), nullptr, nullptr, arguments.data(),
                                   environment.data());
    personality(static_cast<unsigned long>(before));
    if (error != 0) {
        errno = error;
        return failed("cannot run " + program[0]);
    }
    children_.push_back({pid, false, 0});
    return {};
}

std::expected<Outcome, std::string> Cluster::run(const std::vector<Program>& programs) {
    std::expected<void, std::string> going;
    for (const Program& program : programs) {
        going = start(program);
        if (going) going = wait_for_first_call();
        if (!going) break;
    }
    while (going && !all_ended()) going = go_on();
    if (!going) {
        end_all();
        return std::unexpected(going.error());
    }
    Outcome outcome;
    outcome.time = clock_.now();
    for (const Child& child : children_) outcome.statuses.push_back(child.status);
    return outcome;
}

/// The next one when this one waits for the first time, so that every run is the same.
std::expected<void, std::string> Cluster::wait_for_first_call() {
    const auto end = std::chrono::steady_clock::now() + patience_;
    while (!children_.back().ended) {
        const auto came = accept(20);
        if (!came) return std::unexpected(came.error());
        if (*came) return {};
        reap();
        if (std::chrono::steady_clock::now() < end || children_.back().ended) continue;
        const pid_t pid = children_.back().pid;
        return std::unexpected(describe_process(pid) + " has called nothing of VIPL yet, and " +
                               what_it_does(pid) + "; --patience is how long it may");
    }
    return {};
}

/// One process runs, or time goes on.
std::expected<void, std::string> Cluster::go_on() {
    const auto came = accept(0);
    if (!came) return std::unexpected(came.error());
    const auto woken = wake_one();
    if (!woken) return std::unexpected(woken.error());
    if (*came || *woken) return {};
    if (clients_.empty()) {
        const auto first = accept(20);
        if (!first) return std::unexpected(first.error());
        reap();
        return {};
    }
    Time end = Time::never();
    for (const Client& client : clients_) end = earlier(end, client.until());
    if (!carrier_->next().is_never() && carrier_->next() <= end) {
        carrier_->run(end);
        return {};
    }
    if (!end.is_never()) {
        clock_.advance_to(std::max(end, clock_.now()));
        return {};
    }
    // All wait for what another one would have to begin.
    constexpr int last_chance_ms = 2'000;
    const auto last = accept(last_chance_ms);
    if (!last) return std::unexpected(last.error());
    if (*last) return {};
    return std::unexpected(
        "nothing can happen any more, and every program waits for a message without end:" +
        all_descriptions());
}

std::string Cluster::all_descriptions() const {
    std::string text;
    for (const Client& client : clients_) text += "\n  " + client.description();
    return text;
}

/// True: a process came, and ran until it waited.
std::expected<bool, std::string> Cluster::accept(int wait_ms) {
    pollfd ready{listener_, POLLIN, 0};
    if (::poll(&ready, 1, wait_ms) <= 0) return false;
    const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0) return false;
    clients_.emplace_back(descriptor, fabric_, *carrier_, patience_);
    return let_run(std::prev(clients_.end()));
}

std::expected<bool, std::string> Cluster::let_run(std::list<Client>::iterator client) {
    const Client::Turn turn = client->run();
    if (turn == Client::Turn::gone) {
        clients_.erase(client);
        reap();
    }
    if (turn != Client::Turn::silent) return true;
    return std::unexpected(
        "virtual time stands still until one of these calls VIPL again; "
        "--patience is how long it may:" +
        all_descriptions());
}

/// The first that has something to do, in the order of coming.
std::expected<bool, std::string> Cluster::wake_one() {
    const auto due = std::ranges::find_if(clients_, [](Client& client) { return client.is_due(); });
    if (due == clients_.end()) return false;
    if (due->wake()) return let_run(due);
    clients_.erase(due);
    reap();
    return true;
}

void Cluster::reap() {
    for (Child& child : children_) {
        int status = 0;
        if (child.ended || waitpid(child.pid, &status, WNOHANG) != child.pid) continue;
        child.ended = true;
        child.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

/// Who does not end when asked is ended.
void Cluster::end_all() {
    constexpr auto grace = std::chrono::seconds(2);
    for (const Child& child : children_)
        if (!child.ended) kill(child.pid, SIGTERM);
    const auto end = std::chrono::steady_clock::now() + grace;
    for (reap(); !all_ended() && std::chrono::steady_clock::now() < end; reap())
        ::poll(nullptr, 0, 10);
    for (Child& child : children_) {
        if (child.ended) continue;
        kill(child.pid, SIGKILL);
        waitpid(child.pid, nullptr, 0);
        child.ended = true;
    }
}

bool Cluster::all_ended() const { return std::ranges::all_of(children_, &Child::ended); }

}  // namespace via::lab::exec

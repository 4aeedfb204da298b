// Open MPI, MPICH and ZeroMQ, by small programs of ours on their public interfaces, which are built
// where those are installed and live beside `via`. They do what our own loops do: rotate over
// buffers, number messages, read every cache line at the receiver.
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "bench/peers/printed.hpp"
#include "bench/peers/tool_peer.hpp"
#include "bench/tool.hpp"

namespace via::bench {

namespace {

constexpr std::string_view client_schema = "via-peer-2";
constexpr std::uint64_t most_bytes = 64u << 20;
constexpr std::uint64_t least_warmup = 20;

// Beside a spinner all is disturbed, and what a moment without it told would be a lie.
std::uint64_t phases_of(const Question& question) { return question.spinners > 0 ? 1 : 20; }

Result<std::string> find_client(const std::string& name, std::string_view package) {
    std::error_code error;
    const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
    const std::filesystem::path beside = own.parent_path() / name;
    if (!error && ::access(beside.c_str(), X_OK) == 0) return beside.string();
    if (auto found = find_program(name, package, setup_peers); found) return *found;
    return fail(
        "there is no program {}: it is built where Debian's package {} is installed ('{}', then "
        "build again)",
        name, package, setup_peers);
}

// The arguments that all clients understand.
std::vector<std::string> job_of(const ToolOrder& order) {
    const Question& question = order.question;
    return {is_stream(question) ? "stream" : "latency",
            std::to_string(question.size),
            std::to_string(order.messages),
            std::to_string(std::max(order.messages, least_warmup)),
            std::to_string(phases_of(question)),
            std::to_string(question.depth),
            std::to_string(buffers_for(question)),
            std::to_string(order.cpus[0]),
            std::to_string(order.cpus[1])};
}

class OwnClient : public ToolPeer {
public:
    Result<std::string> version() const override {
        const auto printed = printed_by(name_, {client_, "--version"});
        if (!printed) return std::unexpected(printed.error());
        std::string version;
        for (const std::string_view word : split(*printed, " \t\n")) {
            if (word != "Version:") version += (version.empty() ? "" : " ") + std::string(word);
        }
        if (version.empty()) return makes_no_sense(name_, *printed);
        return version;
    }
    std::string refuses(const Question& question) const override {
        return question.size > most_bytes ? "is asked for messages of up to 64M only" : "";
    }
    bool listens() const override { return false; }
    std::uint64_t phases(const Question& question) const override { return phases_of(question); }
    std::int64_t lost_ns(std::string_view printed) const override {
        return std::llround(PrintedRow(printed, client_schema, " ").number("lost_ns"));
    }
    Result<double> message_ns(std::string_view printed, const ToolOrder& order) const override {
        const PrintedRow row(printed, client_schema, " ");
        const double took_ns = row.number("took_ns");
        const auto messages = static_cast<double>(order.messages);
        const bool asked = row.number("messages") == messages && row.number("phases") > 0 &&
                           row.number("bytes") == static_cast<double>(order.question.size);
        if (took_ns <= 0 || !asked) return makes_no_sense(name_, printed);
        return took_ns / messages / (is_stream(order.question) ? 1 : 2);
    }

protected:
    OwnClient(std::string name, std::string_view package)
        : name_(std::move(name)), package_(package) {}

    std::string name_;
    std::string_view package_;
    std::string client_;
};

class MpiClient final : public OwnClient {
public:
    explicit MpiClient(bool openmpi)
        : OwnClient(openmpi ? "via-peer-openmpi" : "via-peer-mpich",
                    openmpi ? "libopenmpi-dev" : "libmpich-dev"),
          openmpi_(openmpi) {}

    Status find() override {
        auto client = find_client(name_, package_);
        if (!client) return std::unexpected(client.error());
        client_ = *client;
        auto launcher = openmpi_ ? find_program("mpirun.openmpi", "openmpi-bin", setup_peers)
                                 : find_program("mpirun.mpich", "mpich", setup_peers);
        if (!launcher) return std::unexpected(launcher.error());
        launcher_ = *launcher;
        return {};
    }
    bool is_launcher() const override { return true; }
    ToolCommand command(const ToolOrder& order) const override {
        ToolCommand command;
        if (openmpi_) {
            // The launcher sees one processor, and would have its ranks yield to each other.
            command.settings = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                "OMPI_MCA_mpi_yield_when_idle=0", "OMPI_MCA_btl=self,vader",
                                "OMPI_MCA_pml=ob1"};
            command.arguments = {launcher_, "--host", "localhost:2", "--bind-to",
                                 "none",    "-n",     "2",           client_};
        } else {
            command.arguments = {launcher_, "-bind-to", "none", "-n", "2", client_};
        }
        for (std::string& argument : job_of(order)) {
            command.arguments.push_back(std::move(argument));
        }
        return command;
    }

private:
    bool openmpi_;
    std::string launcher_;
};

class ZeromqClient final : public OwnClient {
public:
    ZeromqClient() : OwnClient("via-peer-zeromq", "libzmq3-dev") {}

    Status find() override {
        auto client = find_client(name_, package_);
        if (!client) return std::unexpected(client.error());
        client_ = *client;
        return {};
    }
    // Its threads sleep, whatever its caller does.
    Question adapt(const Question& asked) const override {
        Question question = ToolPeer::adapt(asked);
        question.wait = Wait::block;
        return question;
    }
    ToolCommand command(const ToolOrder& order) const override {
        ToolCommand command{{client_}, {}};
        for (std::string& argument : job_of(order)) {
            command.arguments.push_back(std::move(argument));
        }
        command.arguments.push_back(order.side == Side::first ? "connect" : "bind");
        command.arguments.push_back(fmt::format("ipc://@via-peer-{}", order.word));
        return command;
    }
};

}  // namespace

std::unique_ptr<ToolPeer> make_client(Client client) {
    if (client == Client::zeromq) return std::make_unique<ZeromqClient>();
    return std::make_unique<MpiClient>(client == Client::openmpi);
}

}  // namespace via::bench

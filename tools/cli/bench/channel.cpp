#include "bench/channel.hpp"

#include <algorithm>

#include "bench/peers/tool_peer.hpp"

namespace via::bench {

namespace {

struct Entry {
    ChannelInfo info;
    std::unique_ptr<Channel> (*make)(std::string_view name, const Places& places);
};

template <std::unique_ptr<Channel> (*Make)()>
std::unique_ptr<Channel> anywhere(std::string_view, const Places&) {
    return Make();
}

template <std::unique_ptr<Channel> (*Make)(const Places&)>
std::unique_ptr<Channel> placed(std::string_view, const Places& places) {
    return Make(places);
}

// A program of others, or one of ours on their library.
template <auto Make, auto Which>
std::unique_ptr<Channel> by_tool(std::string_view name, const Places& places) {
    return make_tool_channel(std::string(name), Make(Which), places);
}

const std::vector<Entry>& entries() {
    constexpr Sort kernel = Sort::kernel;
    constexpr Sort limit = Sort::limit;
    constexpr Sort peer = Sort::peer;
    static const std::vector<Entry> all{
        {{"pipe", "two pipes of 1 MB", kernel, false}, anywhere<make_pipe>},
        {{"unix-socket", "a Unix stream socket", kernel, false}, anywhere<make_unix_socket>},
        {{"tcp-socket", "TCP over loopback, --netns or --peer, TCP_NODELAY", kernel, true},
         placed<make_tcp_socket>},
        {{"tcp-cubic", "the same by CUBIC, whatever the kernel's default is", kernel, true},
         placed<make_tcp_cubic>},
        {{"tls", "TLS 1.3 by OpenSSL (AES-256-GCM) over tcp-socket's, or --netns", peer, false},
         placed<make_tls>},
#ifndef VIA_NO_SOCKETS
        {{"sockets", "tcp-socket's program as 'via sockets' runs it", Sort::ours, false},
         placed<make_sockets>},
#endif
        {{"udp-socket", "UDP over loopback, --netns or --peer, with a window", kernel, true},
         placed<make_udp_socket>},
        {{"libfabric-tcp", "libfabric's tcp provider, by fi_pingpong (latency)", peer, false},
         by_tool<make_fi_pingpong, Provider::tcp>},
        {{"libfabric-shm", "libfabric's shm provider, by fi_pingpong (latency)", peer, false},
         by_tool<make_fi_pingpong, Provider::shm>},
        {{"ucx-tag", "UCX's tagged messages over posix memory, by ucx_perftest", peer, false},
         by_tool<make_ucx_perftest, UcxTest::tag>},
        {{"ucx-am", "UCX's active messages, likewise", peer, false},
         by_tool<make_ucx_perftest, UcxTest::am>},
        {{"ucx-put", "UCX's one-sided put, likewise; nobody reads the bytes", peer, false},
         by_tool<make_ucx_perftest, UcxTest::put>},
        {{"ucx-uct-am", "its transport's active messages, likewise (up to 4K)", peer, false},
         by_tool<make_ucx_perftest, UcxTest::uct_am>},
        {{"ucx-tcp", "UCX's tagged messages over tcp, likewise", peer, false},
         by_tool<make_ucx_perftest, UcxTest::tag_tcp>},
        {{"openmpi", "Open MPI, two ranks of a client of ours", peer, false},
         by_tool<make_client, Client::openmpi>},
        {{"mpich", "MPICH, likewise", peer, false}, by_tool<make_client, Client::mpich>},
        {{"zeromq", "ZeroMQ over ipc, likewise (blocking)", peer, false},
         by_tool<make_client, Client::zeromq>},
        {{"line", "a cache line each way (latency)", limit, false}, anywhere<make_line>},
        {{"two-copy", "copied in, flag, copied out, not pipelined", limit, false},
         anywhere<make_two_copy>},
        {{"ring", "copied in and out, pipelined, best of a sweep", limit, false},
         anywhere<make_ring>},
        {{"cma", "process_vm_readv: one copy by the kernel", limit, false}, anywhere<make_cma>},
        {{"spsc", "a queue of 64-byte slots (up to 56 bytes)", limit, false}, anywhere<make_spsc>},
        {{"futex", "a bare futex hand-over (latency, blocking)", limit, false},
         anywhere<make_futex>},
        {{"udp-burst", "UDP sockets, cut and joined by the kernel, over loopback or --netns", limit,
          false},
         placed<make_udp_burst>},
        {{"put", "copied into memory of both, where the other one polls it", limit, false},
         anywhere<make_put>},
        {{"memcpy", "one process copies, nobody receives", limit, false}, anywhere<make_memcpy>},
    };
    return all;
}

const Entry* find(std::string_view name) {
    const auto& all = entries();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Entry& entry) { return entry.info.name == name; });
    return found == all.end() ? nullptr : &*found;
}

}  // namespace

const std::vector<ChannelInfo>& known_channels() {
    static const std::vector<ChannelInfo> infos = [] {
        std::vector<ChannelInfo> list;
        for (const Entry& entry : entries()) list.push_back(entry.info);
        return list;
    }();
    return infos;
}

bool is_known_channel(std::string_view name) { return find(name) != nullptr; }

bool goes_between_machines(std::string_view name) {
    const Entry* entry = find(name);
    return entry != nullptr && entry->info.between_machines;
}

std::unique_ptr<Channel> make_comparison(std::string_view name, const Places& places) {
    const Entry* entry = find(name);
    return entry == nullptr ? nullptr : entry->make(name, places);
}

}  // namespace via::bench

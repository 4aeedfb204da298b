#include "bench/channel.hpp"

#include <algorithm>

namespace via::bench {

namespace {

struct Entry {
    ChannelInfo info;
    std::unique_ptr<Channel> (*make)(const Places& places);
};

template <std::unique_ptr<Channel> (*Make)()>
std::unique_ptr<Channel> anywhere(const Places&) {
    return Make();
}

const std::vector<Entry>& entries() {
    constexpr Sort kernel = Sort::kernel;
    constexpr Sort limit = Sort::limit;
    static const std::vector<Entry> all{
        {{"pipe", "two pipes of 1 MB", kernel, false}, anywhere<make_pipe>},
        {{"unix-socket", "a Unix stream socket", kernel, false}, anywhere<make_unix_socket>},
        {{"tcp-socket", "TCP over loopback, --netns or --peer, TCP_NODELAY", kernel, true},
         make_tcp_socket},
        {{"tcp-cubic", "the same by CUBIC, whatever the kernel's default is", Sort::peer, true},
         make_tcp_cubic},
        {{"udp-socket", "UDP over loopback, --netns or --peer, with a window", kernel, true},
         make_udp_socket},
        {{"libfabric-tcp", "libfabric's tcp provider, by fi_pingpong (latency)", Sort::peer, false},
         make_libfabric_tcp},
        {{"line", "a cache line each way (latency)", limit, false}, anywhere<make_line>},
        {{"two-copy", "copied in, flag, copied out, not pipelined", limit, false},
         anywhere<make_two_copy>},
        {{"ring", "copied in and out, pipelined, best of a sweep", limit, false},
         anywhere<make_ring>},
        {{"cma", "process_vm_readv: one copy by the kernel", limit, false}, anywhere<make_cma>},
        {{"spsc", "a queue of 64-byte slots (up to 56 bytes)", limit, false}, anywhere<make_spsc>},
        {{"futex", "a bare futex hand-over (latency, blocking)", limit, false},
         anywhere<make_futex>},
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
    return entry == nullptr ? nullptr : entry->make(places);
}

}  // namespace via::bench

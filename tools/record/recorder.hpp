// What libvia-record writes, and when: a line for each thing that was asked of VIA. What it is read
// by: tools/cli/laboratory/recording.cpp.
#pragma once

#include <dlfcn.h>
#include <unistd.h>
#include <via/via.h>
#include <vipl.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace via::record {

class Recorder {
public:
    explicit Recorder(pid_t pid) : pid_(pid) {
        const char* folder = std::getenv("VIA_RECORD");
        const std::string name =
            std::string(folder != nullptr ? folder : ".") + "/" + std::to_string(pid) + ".record";
        file_ = std::fopen(name.c_str(), "wx");
        if (file_ == nullptr)
            std::fprintf(stderr, "via lab record: cannot write %s\n", name.c_str());
    }
    pid_t pid() const { return pid_; }
    void line(const std::string& text) {
        if (file_ == nullptr) return;
        const std::lock_guard guard(lock_);
        std::fprintf(file_, "%s\n", text.c_str());
    }
    void end() {
        if (file_ != nullptr && std::fflush(file_) != 0)
            std::fprintf(stderr, "via lab record: the recording of process %d is not whole\n",
                         static_cast<int>(pid_));
    }
    /// Of a connection that is to be accepted: the line's end.
    void asked(VIP_CONN_HANDLE connection, std::string names) {
        const std::lock_guard guard(lock_);
        asked_[connection] = std::move(names);
    }
    std::string names_of(VIP_CONN_HANDLE connection) {
        const std::lock_guard guard(lock_);
        const auto found = asked_.find(connection);
        return found == asked_.end() ? std::string() : found->second;
    }
    void listens(VIA_LISTENER_HANDLE listener, std::string name) {
        const std::lock_guard guard(lock_);
        listeners_[listener] = std::move(name);
    }
    std::string name_of(VIA_LISTENER_HANDLE listener) {
        const std::lock_guard guard(lock_);
        return listeners_[listener];
    }

private:
    pid_t pid_;
    std::mutex lock_;
    std::FILE* file_ = nullptr;
    std::map<VIP_CONN_HANDLE, std::string> asked_;
    std::map<VIA_LISTENER_HANDLE, std::string> listeners_;
};

/// Lives for ever: threads of the library call to the end. A child of fork() has its own.
inline Recorder& recorder() {
    static std::mutex lock;
    static Recorder* all = nullptr;
    const std::lock_guard guard(lock);
    if (all == nullptr || all->pid() != ::getpid()) all = new Recorder(::getpid());
    return *all;
}
/// The library's own function of that name.
template <class Function>
Function* real(Function* /*mine*/, const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
#define REAL(function)                                                      \
    ([] {                                                                   \
        static auto* const found = via::record::real(&function, #function); \
        return found;                                                       \
    }())

inline std::string hex(std::uint64_t value) {
    char text[20];
    std::snprintf(text, sizeof text, " %" PRIx64, value);
    return text;
}
inline std::string hex(const void* handle) { return hex(reinterpret_cast<std::uintptr_t>(handle)); }

/// All processes of a host have the same clock.
inline std::string now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    constexpr std::uint64_t second = 1'000'000'000;
    return hex(static_cast<std::uint64_t>(time.tv_sec) * second +
               static_cast<std::uint64_t>(time.tv_nsec));
}

/// A discriminator; hosts may be written in several ways.
inline std::string name_of(const VIP_NET_ADDRESS* address) {
    if (address == nullptr) return " -";
    std::string text = " ";
    const VIP_UINT8* at = address->HostAddress + address->HostAddressLen;
    for (VIP_UINT16 n = 0; n < address->DiscriminatorLen; ++n) {
        char byte[4];
        std::snprintf(byte, sizeof byte, "%02x", at[n]);
        text += byte;
    }
    return address->DiscriminatorLen == 0 ? " -" : text;
}

inline char kind_of(bool receive, const VIP_DESCRIPTOR& descriptor) {
    const int operation = descriptor.CS.Control & VIP_CONTROL_OP_MASK;
    if (receive) return 'V';
    if (operation == VIP_CONTROL_OP_RDMAWRITE) return 'W';
    return operation == VIP_CONTROL_OP_RDMAREAD ? 'G' : 'S';
}

/// Before the post: then the descriptor is the library's.
inline std::string line_of(VIP_VI_HANDLE vi, char kind, const VIP_DESCRIPTOR& descriptor) {
    std::string text = kind + now() + hex(vi);
    const unsigned first = kind == 'W' || kind == 'G' ? 1 : 0;
    if (first != 0) text += hex(descriptor.DS[0].Remote.Data.AddressBits);
    for (unsigned n = first; n < descriptor.CS.SegCount; ++n) {
        const VIP_DATA_SEGMENT& segment = descriptor.DS[n].Local;
        text += hex(segment.Data.AddressBits) + hex(segment.Length);
    }
    return text;
}

template <class Call>
VIP_RETURN post_as(char kind, VIP_VI_HANDLE vi, const VIP_DESCRIPTOR* descriptor, Call call) {
    if (descriptor == nullptr) return call();
    const std::string line = line_of(vi, kind, *descriptor);
    const VIP_RETURN code = call();
    if (code == VIP_SUCCESS) recorder().line(line);
    return code;
}
template <class Call>
VIP_RETURN post(VIP_VI_HANDLE vi, bool receive, const VIP_DESCRIPTOR* descriptor, Call call) {
    const char kind = descriptor == nullptr ? 'S' : kind_of(receive, *descriptor);
    return post_as(kind, vi, descriptor, call);
}

template <class Call>
VIP_RETURN post_many(VIP_VI_HANDLE vi, bool receive, VIP_DESCRIPTOR* const* descriptors,
                     VIP_UINT32 count, const VIP_UINT32* posted, Call call) {
    if (descriptors == nullptr || posted == nullptr) return call();
    std::vector<std::string> all;
    for (VIP_UINT32 n = 0; n < count; ++n)
        all.push_back(line_of(vi, kind_of(receive, *descriptors[n]), *descriptors[n]));
    const VIP_RETURN code = call();
    for (VIP_UINT32 n = 0; n < *posted && n < count; ++n) recorder().line(all[n]);
    return code;
}

template <class Call>
VIP_RETURN request(VIP_VI_HANDLE vi, const VIP_NET_ADDRESS* local, const VIP_NET_ADDRESS* remote,
                   const char* role, Call call) {
    const std::string line =
        std::string("C") + now() + hex(vi) + role + name_of(local) + name_of(remote);
    const VIP_RETURN code = call();
    if (code == VIP_SUCCESS) recorder().line(line);
    return code;
}

template <class Call>
VIP_RETURN take(const std::string& local, VIP_NET_ADDRESS* remote, VIP_CONN_HANDLE* connection,
                Call call) {
    const VIP_RETURN code = call();
    if (code == VIP_SUCCESS) recorder().asked(*connection, name_of(remote) + local);
    return code;
}

template <class Call>
VIP_RETURN accept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE vi, Call call) {
    const std::string names = recorder().names_of(connection);
    const std::string line = std::string("C") + now() + hex(vi) + " a" + names;
    const VIP_RETURN code = call();
    if (code == VIP_SUCCESS && !names.empty()) recorder().line(line);
    return code;
}

template <class Call>
VIP_RETURN registered(const void* address, std::uint64_t length, const char* kind, Call call) {
    const std::string line = kind + now() + hex(address) + hex(length);
    const VIP_RETURN code = call();
    if (code == VIP_SUCCESS) recorder().line(line);
    return code;
}

}  // namespace via::record

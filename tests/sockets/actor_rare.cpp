// Threads that share a socket, limits of time, and memory that is used up.
#include <errno.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

#include "actor.hpp"

namespace {

struct Reader {
    std::thread thread;
    std::string said;
};
std::map<int, Reader> readers;

}  // namespace

std::string flood_with_limit(int fd, std::uint64_t seed, std::uint64_t at) {
    timeval time{0, 20000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    std::size_t sum = 0;
    std::string said;
    while (said.empty()) {
        const std::vector<unsigned char> bytes = pattern(seed, at + sum, 300000);
        const auto begun = std::chrono::steady_clock::now();
        const long sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        const int error = errno;
        const auto took = std::chrono::steady_clock::now() - begun;
        if (sent > 0)
            sum += static_cast<std::size_t>(sent);
        else if (error != EAGAIN || took < std::chrono::milliseconds(19))
            said = result(sent, error);
        else
            said = std::to_string(sum);
    }
    time = {};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    return said;
}

/// No new mapping from now on; what the heap has is there still.
std::string do_memory(Words& words) {
    int poor = 0;
    words >> poor;
    mallopt(M_MMAP_THRESHOLD, 32 << 20);  // more is refused
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    void* volatile spare = malloc(16 << 20);  // volatile: else the compiler leaves both out
    free(spare);
    long pages = 0;
    FILE* const file = std::fopen("/proc/self/statm", "r");
    if (file == nullptr || std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    if (file != nullptr) std::fclose(file);
    rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = poor != 0 ? static_cast<rlim_t>(pages * 4096) : limit.rlim_max;
    const int done = setrlimit(RLIMIT_AS, &limit);
    return result(done, errno);
}

/// Each thread sends letters of its own.
std::string do_crowd_send(Words& words, int fd) {
    std::size_t count = 0;
    std::size_t length = 0;
    words >> count >> length;
    std::vector<long> sent(count);
    std::vector<std::thread> threads;
    for (std::size_t at = 0; at < count; ++at)
        threads.emplace_back([&, at] {
            const std::vector<unsigned char> bytes(length, static_cast<unsigned char>('a' + at));
            sent[at] = send(fd, bytes.data(), length, MSG_NOSIGNAL);
        });
    for (std::thread& one : threads) one.join();
    std::string said;
    for (const long one : sent) said += std::to_string(one) + " ";
    return said;
}

std::string do_crowd_told(Words& words, int fd) {
    std::size_t count = 0;
    std::size_t length = 0;
    words >> count >> length;
    std::vector<unsigned char> bytes(count * length);
    std::string said;
    await_bytes(fd, bytes.size());
    for (std::size_t sum = 0; sum < bytes.size();) {
        const long got = recv(fd, bytes.data() + sum, bytes.size() - sum, 0);
        if (got <= 0) return result(got, errno);
        sum += static_cast<std::size_t>(got);
    }
    for (std::size_t at = 0; at < bytes.size(); at += length) {
        const unsigned char* const block = bytes.data() + at;
        if (std::count(block, block + length, *block) != static_cast<long>(length)) return "mixed";
        said += static_cast<char>(*block);
    }
    std::sort(said.begin(), said.end());
    return said;
}

std::string do_crowd_receive(Words& words, int fd) {
    std::size_t count = 0;
    std::size_t length = 0;
    words >> count >> length;
    await_bytes(fd, count * length);
    std::vector<std::string> told(count);
    std::vector<std::thread> threads;
    for (std::string& one : told)
        threads.emplace_back([&one, fd, length] {
            std::vector<unsigned char> bytes(length);
            const long got = recv(fd, bytes.data(), length, 0);
            one = result(got, errno) + " " + digest(bytes.data(), std::max(got, 0l));
        });
    for (std::thread& one : threads) one.join();
    std::sort(told.begin(), told.end());
    std::string said;
    for (const std::string& one : told) said += one + ", ";
    return said;
}

std::string do_reader(Words& words, int fd) {
    std::size_t length = 0;
    words >> length;
    Reader& reader = readers[fd];
    reader.thread = std::thread([&reader, fd, length] {
        std::vector<unsigned char> bytes(length);
        const long got = recv(fd, bytes.data(), length, MSG_WAITALL);
        reader.said = result(got, errno) + " " + digest(bytes.data(), std::max(got, 0l));
    });
    return "begun";
}

std::string do_joined(int fd) {
    readers[fd].thread.join();
    const std::string said = readers[fd].said;
    readers.erase(fd);
    return said;
}

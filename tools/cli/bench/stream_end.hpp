// One end of a stream of bytes, for channels over pipes and sockets.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "bench/end.hpp"

namespace via::bench {

/// What is called: the C library's functions, or those of a library that goes before it.
struct StreamCalls {
    ssize_t (*read)(int, void*, std::size_t) = ::read;
    ssize_t (*write)(int, const void*, std::size_t) = ::write;
    int (*fcntl)(int, int, ...) = ::fcntl;
};

struct StreamFiles {
    int in = -1;
    int out = -1;
    StreamCalls calls{};
};

/// While polling it spins on non-blocking calls; while blocking it sleeps in the call.
class StreamEnd : public End {
public:
    StreamEnd(Link& link, StreamFiles files) : End(link), files_(files) {}

    bool begin(const Question& question, std::uint64_t messages) {
        // A stream has no empty message: one byte stands for it.
        bytes_ = std::max<std::size_t>(question.size, 1);
        return End::begin(question, messages) && set_spinning(question.wait == Wait::poll);
    }

    bool send(std::uint64_t i) {
        const std::byte* from = stamped(i);
        for (std::size_t done = 0; done < bytes_;) {
            const ssize_t put = files_.calls.write(files_.out, from + done, bytes_ - done);
            if (put > 0) {
                done += static_cast<std::size_t>(put);
            } else if (put < 0 && errno != EAGAIN && errno != EINTR) {
                return give_up_errno("write");
            }
        }
        return true;
    }

    bool receive(std::uint64_t i) {
        std::byte* to = pools_.receive.at(i);
        for (std::size_t done = 0; done < bytes_;) {
            const ssize_t got = files_.calls.read(files_.in, to + done, bytes_ - done);
            if (got > 0) {
                done += static_cast<std::size_t>(got);
            } else if (got == 0) {
                return give_up("the other process closed its end");
            } else if (errno != EAGAIN && errno != EINTR) {
                return give_up_errno("read");
            }
        }
        return check(i);
    }

private:
    bool set_spinning(bool spinning) {
        for (const int fd : {files_.in, files_.out}) {
            const int flags = files_.calls.fcntl(fd, F_GETFL);
            if (flags < 0) return give_up_errno("fcntl");
            const int wanted = spinning ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
            if (wanted != flags && files_.calls.fcntl(fd, F_SETFL, wanted) < 0)
                return give_up_errno("fcntl");
        }
        return true;
    }

    StreamFiles files_;
    std::size_t bytes_ = 1;
};

}  // namespace via::bench

// A program of others: found in PATH, started with its output caught, and given so much time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/file_handle.hpp"
#include "bench/types.hpp"

namespace via::bench {

// The file of the program `name` in PATH; fails with the Debian package to install, and by which
// command of ours.
Result<std::string> find_program(const std::string& name, std::string_view package,
                                 std::string_view setup);

// `text` as one line that is safe to show, cut to what a person reads.
std::string shown(std::string_view text);

// One run of it. It dies with the thread that started it, or with this object.
class Tool {
public:
    explicit Tool(std::string name) : name_(std::move(name)) {}
    Tool(const Tool&) = delete;
    Tool& operator=(const Tool&) = delete;
    ~Tool();

    // `arguments` begins with the program's file, `settings` ("NAME=VALUE") are added to the
    // environment, "NAME" is removed, `input` is all it can read from its standard input.
    Status start(std::vector<std::string> arguments, const std::vector<std::string>& settings = {},
                 std::string_view input = {});

    // True once it has closed its output; at once.
    bool has_ended() const;

    // What happens to it counts from now on; otherwise from its beginning.
    void watch();

    // How long its first thread was ready and did not run, but for its own other threads; once it
    // has ended.
    std::int64_t lost_ns() const { return lost_ns_; }

    // What it prints on both streams, once it has ended well within `patience_ns`. More than
    // most_bytes is a failure as well.
    Result<std::string> finish(std::int64_t patience_ns, std::size_t most_bytes = 65536);

private:
    [[noreturn]] static void become(std::vector<std::string>& arguments,
                                    const std::vector<std::string>& settings, int input, int output,
                                    pid_t parent);
    struct Load {
        std::int64_t delay_ns = 0;   // of the first thread: ready, not running
        std::int64_t first_ns = 0;   // processor time of the first thread
        std::int64_t others_ns = 0;  // and of its other ones
    };
    Load load() const;
    int wait();

    std::string name_;
    pid_t pid_ = -1;
    FileHandle output_;
    Load from_;
    std::int64_t lost_ns_ = 0;
};

}  // namespace via::bench

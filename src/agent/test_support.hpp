// For the tests of this room: folders that vanish, children that end, limits that come back.
#pragma once

#include <dirent.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace via::agent::test {

/// A new folder, removed with everything in it.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string path = std::filesystem::temp_directory_path() / "via-agent-XXXXXX";
        if (mkdtemp(path.data()) == nullptr) ADD_FAILURE() << "mkdtemp: " << path;
        path_ = path;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

/// Descriptors open now.
inline int open_descriptors() {
    int count = -1;  // the stream's own
    DIR* stream = opendir("/proc/self/fd");
    if (stream == nullptr) return -1;
    while (const dirent* entry = readdir(stream))
        if (entry->d_name[0] != '.') ++count;
    closedir(stream);
    return count;
}

/// A resource has this limit while this lives.
class Limit {
public:
    Limit(__rlimit_resource resource, rlim_t limit) : resource_(resource) {
        EXPECT_EQ(getrlimit(resource_, &before_), 0);
        rlimit low = before_;
        low.rlim_cur = limit;
        EXPECT_EQ(setrlimit(resource_, &low), 0);
    }
    ~Limit() { EXPECT_EQ(setrlimit(resource_, &before_), 0); }
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;

private:
    __rlimit_resource resource_;
    rlimit before_{};
};

/// No descriptor can be opened below `limit` while this lives; 0: none at all.
class DescriptorLimit : public Limit {
public:
    explicit DescriptorLimit(rlim_t limit) : Limit(RLIMIT_NOFILE, limit) {}
};

/// All descriptors but `spare` are used up while this lives.
class DescriptorsUsedUp {
public:
    explicit DescriptorsUsedUp(std::size_t spare) : limit_(fewest + spare) {
        for (int filler = dup(0); filler >= 0; filler = dup(0)) fillers_.push_back(filler);
        EXPECT_EQ(errno, EMFILE);
        EXPECT_GE(fillers_.size(), spare);
        for (; spare > 0 && !fillers_.empty(); --spare) give_back();
    }
    ~DescriptorsUsedUp() {
        while (!fillers_.empty()) give_back();
    }
    DescriptorsUsedUp(const DescriptorsUsedUp&) = delete;
    DescriptorsUsedUp& operator=(const DescriptorsUsedUp&) = delete;

private:
    static constexpr std::size_t fewest = 256;  // more than a test has open
    void give_back() {
        close(fillers_.back());
        fillers_.pop_back();
    }
    DescriptorLimit limit_;
    std::vector<int> fillers_;
};

/// Sets or (nullptr) clears a variable of the environment, until it goes.
class Variable {
public:
    Variable(const char* name, const char* value) : name_(name) {
        if (const char* before = getenv(name)) {
            before_ = before;
            was_set_ = true;
        }
        value == nullptr ? unsetenv(name) : setenv(name, value, 1);
    }
    ~Variable() { was_set_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
    std::string before_;
    bool was_set_ = false;
};

/// fork(3), without the handlers that pthread_atfork() knows.
inline pid_t fork_past_handlers() {
    return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

/// Runs `body` in a forked child; its result (0 to 255) or -1 when a signal ended it.
template <class Body>
int in_child(Body body, pid_t (*make)() = fork) {
    const pid_t child = make();
    if (child < 0) return -1;
    if (child == 0) _exit(body());
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

}  // namespace via::agent::test

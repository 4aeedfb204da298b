#include "agent/process.hpp"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>

#include "agent/locked_memory.hpp"
#include "agent/same_file.hpp"
#include "agent/write_now.hpp"

namespace via::agent {

std::atomic<volatile char*> process_page{nullptr};

namespace {

std::mutex alive_mutex;

/// There is no log yet: what is wrong with the user's wish for one.
[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char line[sizeof text + 40];
    const int length = std::snprintf(line, sizeof line, "openvia[%d]: warning: %s\n",
                                     static_cast<int>(getpid()), text);
    write_now(STDERR_FILENO, {line, static_cast<std::size_t>(length)});
}

struct Log {
    int level = 1;
    int file = STDERR_FILENO;
    SameFile named;  ///< by OPENVIA_LOG; else whatever standard error is

    Log() {
        if (const char* text = secure_getenv("OPENVIA_LOG_LEVEL")) read_level(text);
        open_file();
    }

    void open_file() {
        file = STDERR_FILENO;
        named = {};
        const char* path = secure_getenv("OPENVIA_LOG");
        if (path == nullptr) return;
        if (const int opened = open_at(path); opened >= 0) {
            file = opened;
            named = SameFile::of(file);
            return;
        }
        const char* why = strerrordesc_np(errno);
        complain("the log stays on standard error: cannot open OPENVIA_LOG (%.256s): %s", path,
                 why != nullptr ? why : "unknown error");
    }

private:
    /// A new one is for its owner, whatever the umask of the program: later ones write to it, too.
    static int open_at(const char* path) {
        constexpr int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
        constexpr mode_t mode = 0600;
        const auto open = [&](int more) {
            return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags | more, mode));
        };
        const int made = open(O_CREAT | O_EXCL);
        if (made >= 0) fchmod(made, mode);  // refused, it still takes this program's lines
        return made >= 0 || errno != EEXIST ? made : open(O_CREAT);
    }
    void read_level(const char* text) {
        const char* const end = text + std::strlen(text);
        int wanted = 0;
        const auto read = std::from_chars(text, end, wanted);
        if (read.ec == std::errc{} && read.ptr == end && wanted >= 0 && wanted <= 2) {
            level = wanted;
            return;
        }
        complain(
            "OPENVIA_LOG_LEVEL is \"%.64s\", which is none of 0 (errors), 1 (warnings), 2 "
            "(information); it is taken as %d",
            text, level);
    }
};

constexpr unsigned lines_per_second_max = 20;

struct LogRate {
    std::mutex mutex;
    time_t second = 0;
    unsigned lines = 0;
};
constinit LogRate log_rate;
std::atomic<unsigned> lines_left_out{0};

/// Room for one more line this second?
bool may_log() {
    std::lock_guard guard(log_rate.mutex);
    const time_t now = time(nullptr);
    if (now != log_rate.second) {
        log_rate.second = now;
        log_rate.lines = 0;
    }
    if (log_rate.lines == lines_per_second_max) return false;
    ++log_rate.lines;
    return true;
}

Log& log_settings() {
    static Log log;
    return log;
}

/// Where a line goes now, and what that is: looked at once for each line.
int log_file(struct stat& status) {
    std::lock_guard guard(log_rate.mutex);
    Log& log = log_settings();
    bool is_there = fstat(log.file, &status) == 0;
    if (is_there ? !log.named.is(status) : log.named.is_known() && errno == EBADF) {
        log.open_file();
        is_there = fstat(log.file, &status) == 0;
    }
    return is_there ? log.file : -1;
}

/// Names of hosts, files and NICs may be anybody's: nothing in them moves a terminal's cursor.
void make_harmless(std::span<char> text) {
    bool begins_control = false;  // of two bytes in UTF-8: 0xC2, then 0x80 to 0x9F
    for (char& letter : text) {
        const auto byte = static_cast<unsigned char>(letter);
        if (byte < ' ' || byte == 0x7F || (begins_control && byte >= 0x80 && byte < 0xA0))
            letter = '?';
        begins_control = byte == 0xC2;
    }
}

}  // namespace

namespace {

void (*begin_in_child)() = nullptr;
ProcessState state_before = ProcessState::own;  ///< of the fork that is under way

/// What other threads do under the mutex once and for all is done before a child begins.
void before_fork() {
    alive_mutex.lock();
    state_before = process_state();
}
void after_fork() { alive_mutex.unlock(); }
/// Here threads of the parent may hold locks, also ours; nobody will ever let go of them.
void after_fork_in_child() {
    alive_mutex.unlock();
    std::construct_at(&log_rate.mutex);
    volatile char* page = process_page.load(std::memory_order_relaxed);
    if (page == nullptr || state_before == ProcessState::lost) return;
    LockedMemory::begin_in_child();
    if (begin_in_child != nullptr) begin_in_child();
    *page = static_cast<char>(ProcessState::child);
}

}  // namespace

bool remember_process(void (*child_begins)()) {
    std::lock_guard guard(alive_mutex);
    if (child_begins != nullptr) begin_in_child = child_begins;
    if (process_page.load(std::memory_order_relaxed) != nullptr) return true;
    log_settings();
    const auto size = static_cast<std::size_t>(1) << LockSystem::real().page_bits();
    void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    if (madvise(page, size, MADV_WIPEONFORK) != 0 ||
        pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0) {
        munmap(page, size);
        return false;
    }
    auto* state = static_cast<volatile char*>(page);
    *state = static_cast<char>(ProcessState::own);
    process_page.store(state, std::memory_order_release);
    return true;
}

void give_up_process() {
    if (volatile char* page = process_page.load(std::memory_order_acquire))
        __atomic_store_n(page, 0, __ATOMIC_RELAXED);
}

void log(int level, const char* format, ...) {
    const Log& log = log_settings();
    if (level > log.level) return;
    if (!may_log()) {
        lines_left_out.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    const unsigned left_out = lines_left_out.exchange(0, std::memory_order_relaxed);
    char line[512];
    constexpr const char* names[] = {"error", "warning", "info"};
    int length = std::snprintf(line, sizeof line, "openvia[%d]: %s: ", static_cast<int>(getpid()),
                               names[level < 2 ? level : 2]);
    va_list arguments;
    va_start(arguments, format);
    length += std::vsnprintf(line + length, sizeof line - static_cast<std::size_t>(length), format,
                             arguments);
    va_end(arguments);
    make_harmless({line, static_cast<std::size_t>(std::min<int>(length, sizeof line - 1))});
    if (length > static_cast<int>(sizeof line) - 48) length = static_cast<int>(sizeof line) - 48;
    if (left_out != 0)
        length += std::snprintf(line + length, 47, " (and %u more lines left out)", left_out);
    line[length++] = '\n';
    struct stat status;
    const int file = log_file(status);
    if (file < 0 || !write_now(file, status, {line, static_cast<std::size_t>(length)}))
        lines_left_out.fetch_add(left_out + 1, std::memory_order_relaxed);
}

}  // namespace via::agent

#include "agent/statistics.hpp"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <iterator>
#include <new>

#include "agent/process.hpp"
#include "agent/statistics_wire.hpp"
#include "posix/resize.hpp"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace via::agent {

namespace {

constexpr int callers_waiting_max = 16;
constexpr int answers_per_call_max = 8;

std::unexpected<std::string> failure(const char* what, int error) {
    std::string text = std::string("live counters: ") + what + ": " + strerror(error);
    if (error == EMFILE) text += "; raise the limit on open files (ulimit -n)";
    if (error == ENOMEM) text += "; free memory, or raise the memory limit";
    if (error == EFBIG) text += "; raise the limit on the size of files (ulimit -f)";
    if (error == ENOSPC) text += "; free space, or raise fs.epoll.max_user_watches";
    return std::unexpected(std::move(text));
}

int create_memory() {
    constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    const int file = memfd_create("via-statistics", flags | MFD_NOEXEC_SEAL);
    if (file >= 0 || errno != EINVAL) return file;
    return memfd_create("via-statistics", flags);  // Linux before 6.3
}

template <std::size_t size>
void copy_name(char (&to)[size], std::string_view from) {
    const std::size_t length = from.size() < size - 1 ? from.size() : size - 1;
    memcpy(to, from.data(), length);
    to[length] = '\0';
}

}  // namespace

std::expected<std::unique_ptr<Statistics>, std::string> Statistics::open(
    const std::string& directory, const std::string& nic_name) {
    std::unique_ptr<Statistics> self(new Statistics);
    self->owner_ = getpid();
    if (const auto made = self->make_page(nic_name); !made) return std::unexpected(made.error());
    if (const auto made = self->listen(directory); !made) return std::unexpected(made.error());
    return self;
}

std::expected<void, std::string> Statistics::make_page(const std::string& nic_name) {
    const File writable(create_memory());
    if (!writable.valid()) return failure("cannot make memory for them (memfd_create)", errno);
    if (posix::resize(writable.get(), sizeof(StatisticsPage)) < 0)
        return failure("cannot give them memory (ftruncate)", errno);
    void* memory = mmap(nullptr, sizeof(StatisticsPage), PROT_READ | PROT_WRITE, MAP_SHARED,
                        writable.get(), 0);
    if (memory == MAP_FAILED) return failure("cannot map their memory (mmap)", errno);
    page_ = new (memory) StatisticsPage{};
    if (madvise(memory, sizeof(StatisticsPage), MADV_DONTFORK) < 0)
        return failure("cannot keep their memory from children (madvise)", errno);
    if (fcntl(writable.get(), F_ADD_SEALS, page_seals) < 0)
        return failure("cannot seal their memory (F_ADD_SEALS)", errno);
    const std::string again = "/proc/self/fd/" + std::to_string(writable.get());
    file_ = File(::open(again.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_.valid())
        return failure("cannot open their memory again (open /proc/self/fd)", errno);

    struct stat status;
    if (fstat(file_.get(), &status) < 0)
        return failure("cannot look at their memory (fstat)", errno);
    same_file_ = SameFile(status);
    page_->magic = StatisticsPage::magic_value;
    page_->counter_count = counter_count;
    page_->process = static_cast<std::uint32_t>(owner_);
    page_->opened_at = static_cast<std::uint64_t>(time(nullptr));
    copy_name(page_->name, nic_name);
    copy_name(page_->program, program_invocation_short_name);
    return {};
}

namespace {

/// Nobody listens at it, whatever a number of a process means to us: it may be of another pid
/// namespace. One that is not ready looks so, too, for a moment.
bool is_dead(const std::string& directory, int folder, const std::string& name) {
    constexpr time_t unready_age_max = 60;
    struct stat status;
    if (name.starts_with(unready_prefix) &&
        (fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) < 0 ||
         time(nullptr) - status.st_ctim.tv_sec < unready_age_max))
        return false;
    const File caller(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const sockaddr_un address = socket_address(directory, folder, name);
    return caller.valid() &&
           connect(caller.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 &&
           errno == ECONNREFUSED;
}

/// What killed processes left behind; nobody else would remove it until somebody looks.
void remove_dead_sockets(const std::string& directory) {
    DIR* folder = opendir(directory.c_str());
    if (folder == nullptr) return;  // the caller's own use of it says what is wrong
    while (const dirent* entry = readdir(folder)) {
        const std::string_view name = entry->d_name;
        for (const std::string_view prefix :
             {std::string_view(socket_prefix), std::string_view(unready_prefix)}) {
            if (!name.starts_with(prefix)) continue;
            const int process = atoi(entry->d_name + prefix.size());
            if (process > 0 && kill(process, 0) < 0 && errno == ESRCH &&
                is_dead(directory, dirfd(folder), entry->d_name))
                unlinkat(dirfd(folder), entry->d_name, 0);
            break;
        }
    }
    closedir(folder);
}

}  // namespace

std::expected<void, std::string> Statistics::listen(const std::string& directory) {
    remove_dead_sockets(directory);
    std::uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return failure("cannot get a random number (getrandom)", errno);
    char digits[random_digits + 1];
    snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
    const std::string rest = std::to_string(owner_) + "-" + digits;
    const std::string name = std::string(socket_prefix) + rest;
    // A socket that does not listen yet looks dead, so it gets its real name afterwards.
    const std::string unready = std::string(unready_prefix) + rest;

    const File folder(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.valid()) return failure(("cannot open " + directory + " (open)").c_str(), errno);
    listener_ = File(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!listener_.valid()) return failure("cannot make a socket (socket)", errno);
    const sockaddr_un address = socket_address(directory, folder.get(), unready);
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0)
        return failure(("cannot make a socket in " + directory + " (bind)").c_str(), errno);
    path_ = directory + "/" + unready;
    // Whatever the umask of the program: a socket that may not be written to lets nobody connect.
    if (fchmodat(folder.get(), unready.c_str(), 0600, 0) < 0)
        return failure(("cannot set the mode of a socket in " + directory + " (fchmodat)").c_str(),
                       errno);
    if (::listen(listener_.get(), callers_waiting_max) < 0)
        return failure(("cannot listen on a socket in " + directory + " (listen)").c_str(), errno);

    if (const auto watched = watch_callers(); !watched) return watched;

    if (renameat(folder.get(), unready.c_str(), folder.get(), name.c_str()) < 0)
        return failure(("cannot name our socket in " + directory + " (renameat)").c_str(), errno);
    path_ = directory + "/" + name;
    return {};
}

std::expected<void, std::string> Statistics::watch_callers() {
    if (!knocks_.valid()) knocks_ = File(epoll_create1(EPOLL_CLOEXEC));
    if (!knocks_.valid()) return failure("cannot watch a socket (epoll_create1)", errno);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    if (epoll_ctl(knocks_.get(), EPOLL_CTL_ADD, listener_.get(), &event) < 0)
        return failure("cannot watch a socket (epoll_ctl)", errno);
    if (!reserve_.valid()) reserve_ = File(fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
    if (!reserve_.valid())
        return failure("cannot hold a descriptor in reserve (F_DUPFD_CLOEXEC)", errno);
    return {};
}

bool Statistics::is_known() const {
    struct stat status;
    return lstat(path_.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

std::expected<void, std::string> Statistics::make_known(const std::string& directory) {
    File former = std::move(listener_);
    const std::string former_path = path_;
    auto made = listen(directory);
    if (made) return made;
    if (path_ != former_path) unlink(path_.c_str());
    listener_ = std::move(former);
    path_ = former_path;
    return made;
}

bool Statistics::has_its_descriptors() const { return same_file_.is(file_.get()); }

void Statistics::retire() {
    if (getpid() == owner_ && !path_.empty()) unlink(path_.c_str());
    path_.clear();
    for (File* file : {&file_, &listener_, &knocks_, &reserve_}) file->reset();
}

Statistics::~Statistics() {
    // A forked child has the descriptors, but neither the page nor a say in the name.
    if (getpid() != owner_) return;
    if (!path_.empty()) unlink(path_.c_str());
    if (page_ != nullptr) munmap(page_, sizeof(StatisticsPage));
}

void Statistics::answer(const AskForWays& ways_now) {
    // Takes the news: from now on only a new caller makes descriptor() readable.
    epoll_event event{};
    if (epoll_wait(knocks_.get(), &event, 1, 0) < 0 && errno != EINTR)
        log(0, "live counters: cannot look for callers (epoll_wait): %s", strerror(errno));
    if (!reserve_.valid()) reserve_ = File(fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
    for (int n = 0; n < answers_per_call_max; ++n) {
        const File peer(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (peer.valid()) {
            hand_out(peer.get(), ways_now);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR && errno != ECONNABORTED && !turn_away(errno)) {
            return;
        }
    }
    event.events = EPOLLIN | EPOLLET;  // makes it news again, if somebody is left
    if (epoll_ctl(knocks_.get(), EPOLL_CTL_MOD, listener_.get(), &event) < 0)
        log(0, "live counters: cannot watch for callers (epoll_ctl): %s", strerror(errno));
}

void Statistics::hand_out(int peer, const AskForWays& ways_now) {
    ucred who{};
    socklen_t length = sizeof who;
    if (getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0 || who.uid != geteuid()) {
        log(1, "live counters: refused to process %d of user %u", who.pid, who.uid);
        return;
    }
    WaysNow now = ways_now();
    now.ways.resize(std::min(now.ways.size(), ways_max));
    Answer answer{answer_magic, static_cast<std::uint32_t>(now.ways.size()),
                  static_cast<std::uint32_t>(now.all)};
    iovec bytes[] = {{&answer, sizeof answer},
                     {now.ways.data(), now.ways.size() * sizeof(device::Way)}};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = bytes;
    message.msg_iovlen = std::size(bytes);
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* attached = CMSG_FIRSTHDR(&message);
    attached->cmsg_level = SOL_SOCKET;
    attached->cmsg_type = SCM_RIGHTS;
    attached->cmsg_len = CMSG_LEN(sizeof(int));
    const int file = file_.get();
    memcpy(CMSG_DATA(attached), &file, sizeof file);
    if (sendmsg(peer, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EPIPE &&
        errno != ECONNRESET)
        log(1, "live counters: cannot answer process %d (sendmsg): %s", who.pid, strerror(errno));
}

/// A caller could not be accepted. False: nothing more can be done until the next one comes.
bool Statistics::turn_away(int error) {
    log(1, "live counters: a process that asks is turned away (accept4): %s", strerror(error));
    if (!reserve_.valid() || (error != EMFILE && error != ENFILE)) return false;
    reserve_.reset();
    const bool accepted = File(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)).valid();
    reserve_ = File(fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
    return accepted;
}

}  // namespace via::agent

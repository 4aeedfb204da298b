// The reading side: finds the pages of running processes. Whatever comes from a socket may be a
// lie, even one of our own user's.
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <span>

#include "agent/process.hpp"
#include "agent/statistics.hpp"
#include "agent/statistics_wire.hpp"

namespace via::agent {

namespace {

constexpr std::size_t asked_at_once = 64;
constexpr std::int64_t answer_timeout_ms = 1000;
constexpr std::int64_t unready_age_max_s = 60;

/// The pages that were found.
struct Found {
    std::vector<StatisticsView> views;
    bool complete = true;
};

struct Asked {
    std::string name;
    File socket;
};

std::int64_t now_ms() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

/// "PID-RANDOM"?
bool is_pid_and_random(std::string_view text) {
    const std::size_t dash = text.find('-');
    return dash != 0 && dash != text.npos && dash <= 10 &&
           text.find_first_not_of("0123456789") == dash &&
           text.size() == dash + 1 + random_digits &&
           text.find_first_not_of("0123456789abcdef", dash + 1) == text.npos;
}

bool has_form(std::string_view name, std::string_view prefix) {
    return name.starts_with(prefix) && is_pid_and_random(name.substr(prefix.size()));
}

std::vector<std::string> sockets_in(int directory, Found& found) {
    std::vector<std::string> names;
    const int readable = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* stream = readable < 0 ? nullptr : fdopendir(readable);
    if (stream == nullptr) {
        log(1, "live counters: cannot list the directory (openat, fdopendir): %s", strerror(errno));
        found.complete = false;
        if (readable >= 0) close(readable);
        return names;
    }
    while (const dirent* entry = readdir(stream)) {
        const std::string_view name = entry->d_name;
        if (has_form(name, socket_prefix) || has_form(name, unready_prefix))
            names.emplace_back(name);
    }
    closedir(stream);
    return names;
}

/// Nobody listens there. A name that is not ready may just belong to a slow opener.
void remove_dead(int directory, const std::string& name) {
    if (has_form(name, unready_prefix)) {
        struct stat status;
        if (fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            time(nullptr) - status.st_ctim.tv_sec < unready_age_max_s)
            return;
    }
    if (unlinkat(directory, name.c_str(), 0) < 0 && errno != ENOENT)
        log(1, "live counters: cannot remove %s, left by a dead process (unlinkat): %s",
            name.c_str(), strerror(errno));
}

/// Connects to `name`; the answer comes later. Invalid: there is nobody to ask.
File ask(const std::string& path, int directory, const std::string& name, Found& found) {
    File caller(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!caller.valid()) {
        log(1, "live counters: cannot make a socket to ask %s (socket): %s", name.c_str(),
            strerror(errno));
        found.complete = false;
        return {};
    }
    const sockaddr_un address = socket_address(path, directory, name);
    int error = 0;
    do {
        error =
            connect(caller.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0
                ? errno
                : 0;
    } while (error == EINTR);
    if (error == 0) return caller;
    if (error == ECONNREFUSED) {
        remove_dead(directory, name);
    } else if (error != ENOENT) {
        log(1, "live counters: cannot ask %s (connect): %s", name.c_str(),
            error == EAGAIN ? "too many ask already (is it stopped?)" : strerror(error));
        found.complete = false;
    }
    return {};
}

/// What a NIC may say; every byte may be a lie.
bool is_plausible(const device::Way& way) {
    const auto has_length = [](const HostAddress& address) {
        return address.length == 6 || address.length == 18;
    };
    return way.state <= device::WayState::passed_on && has_length(way.own) &&
           has_length(way.peer) && (has_length(way.over) || way.over.length == 0);
}

/// False: the bytes are no answer of ours.
bool read_answer(std::span<const std::byte> bytes, WaysNow& ways) {
    Answer answer{};
    if (bytes.size() < sizeof answer) return false;
    std::memcpy(&answer, bytes.data(), sizeof answer);
    const auto rest = bytes.subspan(sizeof answer);
    if (answer.magic != answer_magic || answer.count > Statistics::ways_max ||
        rest.size() != answer.count * sizeof(device::Way))
        return false;
    ways.all = answer.all;
    ways.ways.resize(answer.count);
    if (answer.count != 0) std::memcpy(ways.ways.data(), rest.data(), rest.size());
    return std::ranges::all_of(ways.ways, is_plausible);
}

/// The descriptor that came with an answer; invalid, and `why` says it, when it is no good answer.
File receive_page(int socket, WaysNow& ways, const char*& why) {
    std::vector<std::byte> answer(answer_length_max);
    iovec bytes{answer.data(), answer.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t length = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    File first;
    int count = 0;
    // The room is rounded up, so that two may fit; all that came are ours to close.
    const cmsghdr* part = length < 0 ? nullptr : CMSG_FIRSTHDR(&message);
    if (part != nullptr && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
        count = static_cast<int>((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (int n = count; n-- > 0;) {
            int descriptor = -1;
            memcpy(&descriptor, CMSG_DATA(part) + static_cast<std::size_t>(n) * sizeof(int),
                   sizeof descriptor);
            first = File(descriptor);
        }
    }
    if (length < 0) {
        why = strerror(errno);
    } else if (length == 0) {
        why = "it turned us away";
    } else if ((message.msg_flags & MSG_TRUNC) != 0 ||
               !read_answer(std::span(answer).first(static_cast<std::size_t>(length)), ways)) {
        why = "its answer is not one, or of another version";
    } else if (count != 1 || (message.msg_flags & MSG_CTRUNC) != 0) {
        why = "not one descriptor came with its answer, or ours are used up";
    } else {
        return first;
    }
    return {};
}

/// Maps the page after making sure that reading it can never fault.
const StatisticsPage* map_page(int file, const char*& why) {
    const int seals = fcntl(file, F_GET_SEALS);
    struct stat status;
    if (seals < 0 || (seals & page_seals) != page_seals) {
        why = "its page is not sealed";
    } else if (fstat(file, &status) < 0 || status.st_size != sizeof(StatisticsPage)) {
        why = "its page has another size: of another version?";
    } else {
        void* memory = mmap(nullptr, sizeof(StatisticsPage), PROT_READ, MAP_SHARED, file, 0);
        if (memory == MAP_FAILED) {
            why = strerror(errno);
            return nullptr;
        }
        const auto* page = static_cast<const StatisticsPage*>(memory);
        if (atomic_load_at(&page->magic, std::memory_order_relaxed) ==
                StatisticsPage::magic_value &&
            atomic_load_at(&page->counter_count, std::memory_order_relaxed) == counter_count)
            return page;
        munmap(memory, sizeof(StatisticsPage));
        why = "its page is of another version";
    }
    return nullptr;
}

void take_answer(const Asked& asked, Found& found) {
    const char* why = nullptr;
    ucred who{};
    socklen_t length = sizeof who;
    if (getsockopt(asked.socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) < 0) {
        why = strerror(errno);
    } else if (who.uid != geteuid()) {
        why = "it belongs to another user";
    } else {
        WaysNow ways;
        const File file = receive_page(asked.socket.get(), ways, why);
        const StatisticsPage* const page = file.valid() ? map_page(file.get(), why) : nullptr;
        if (page != nullptr) found.views.emplace_back(page, who.pid, std::move(ways));
    }
    if (why == nullptr) return;
    log(1, "live counters: %s (process %d) is left out: %s", asked.name.c_str(), who.pid, why);
    found.complete = false;
}

/// Takes the answers as they come, until all are there or time is up.
void take_answers(std::vector<Asked>& asked, Found& found) {
    const std::int64_t deadline = now_ms() + answer_timeout_ms;
    while (!asked.empty()) {
        const std::int64_t left = deadline - now_ms();
        if (left <= 0) break;
        std::vector<pollfd> polled;
        polled.reserve(asked.size());
        for (const Asked& one : asked) polled.push_back({one.socket.get(), POLLIN, 0});
        if (poll(polled.data(), polled.size(), static_cast<int>(left)) <= 0) continue;
        for (std::size_t n = polled.size(); n-- > 0;) {
            if (polled[n].revents == 0) continue;
            take_answer(asked[n], found);
            asked.erase(asked.begin() + static_cast<std::ptrdiff_t>(n));
        }
    }
    for (const Asked& one : asked)
        log(1, "live counters: %s is left out: it does not answer (is it stopped?)",
            one.name.c_str());
    found.complete = found.complete && asked.empty();
    asked.clear();
}

/// Reads each byte of the page once.
std::string printable(const char* text, std::size_t size) {
    std::string copy;
    for (std::size_t n = 0; n < size; ++n) {
        const char letter = atomic_load_at(text + n, std::memory_order_relaxed);
        if (letter == '\0') break;
        copy += letter >= ' ' && letter <= '~' ? letter : '?';
    }
    return copy;
}

}  // namespace

StatisticsView::~StatisticsView() {
    if (page_ != nullptr) munmap(const_cast<StatisticsPage*>(page_), sizeof *page_);
}

StatisticsView::StatisticsView(StatisticsView&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)),
      process_(other.process_),
      ways_(std::move(other.ways_)) {}

StatisticsView& StatisticsView::operator=(StatisticsView&& other) noexcept {
    std::swap(page_, other.page_);
    std::swap(process_, other.process_);
    std::swap(ways_, other.ways_);
    return *this;
}

std::string StatisticsView::nic_name() const { return printable(page_->name, sizeof page_->name); }

std::string StatisticsView::program() const {
    return printable(page_->program, sizeof page_->program);
}

namespace {

Found look_for_pages(const std::string& directory) {
    Found found;
    const File folder(open(directory.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.valid()) {
        if (errno == ENOENT) return found;
        log(1, "live counters: cannot open %s (open): %s", directory.c_str(), strerror(errno));
        found.complete = false;
        return found;
    }
    const std::vector<std::string> names = sockets_in(folder.get(), found);
    std::vector<Asked> asked;
    for (const std::string& name : names) {
        if (File socket = ask(directory, folder.get(), name, found); socket.valid())
            asked.push_back({name, std::move(socket)});
        if (asked.size() == asked_at_once) take_answers(asked, found);
    }
    take_answers(asked, found);
    return found;
}

}  // namespace

std::vector<StatisticsView> find_statistics(const std::string& directory, bool* complete) {
    Found found = look_for_pages(directory);
    std::vector<StatisticsView>& views = found.views;
    if (complete != nullptr) *complete = found.complete;
    // Moments are read once: sorting by something that changes meanwhile would be undefined.
    std::vector<std::pair<std::pair<int, std::uint64_t>, std::size_t>> order;
    order.reserve(views.size());
    for (const StatisticsView& view : views)
        order.push_back({{view.process(), view.opened_at()}, order.size()});
    std::sort(order.begin(), order.end());
    std::vector<StatisticsView> sorted;
    sorted.reserve(views.size());
    for (const auto& place : order) sorted.push_back(std::move(views[place.second]));
    return sorted;
}

}  // namespace via::agent

#include "device/udp/other_users.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "device/udp/names.hpp"

namespace via::device::udp {

namespace {

/// Of the name of a user's directory: random, so that nobody can take it first.
constexpr std::size_t random_length = 6;
/// So many directories count, and so many of one user: who makes more hides only its own.
constexpr std::size_t directories_max = 256;
constexpr std::ptrdiff_t directories_of_user_max = 4;
/// A stranger may ask a thousand times a second who listens; the answer is not older than this.
constexpr Duration look_interval = milliseconds(20);
/// Of one look: some hundred microseconds, whatever others put there.
constexpr int names_per_look = 2048;
constexpr int directories_per_look = 64;
constexpr int looks_for_all_max = 512;

}  // namespace

std::optional<Since> made_when(System& system, int directory, const std::string& link) {
    struct stat status{};
    if (system.lstatat(directory, link.c_str(), &status) < 0) return std::nullopt;
    return Since{status.st_ctim.tv_sec, status.st_ctim.tv_nsec, status.st_ino};
}

std::string link_target(System& system, int directory, const std::string& link) {
    char target[name_max];
    const ssize_t length = system.readlinkat(directory, link.c_str(), target, sizeof target);
    if (length <= 0 || static_cast<std::size_t>(length) == sizeof target) return {};
    return {target, static_cast<std::size_t>(length)};
}

OtherUsers::OtherUsers(System& system, const std::string& directory, bool shared)
    : system_(&system) {
    const std::size_t slash = directory.rfind('/');
    if (!shared || slash == directory.npos) return;
    parent_path_ = directory.substr(0, slash);
    own_ = directory.substr(slash + 1);
}

void OtherUsers::look_around(bool now) {
    if (parent_path_.empty()) return;
    const Time time = system_->now();
    if (!now && time < looked_ + look_interval) return;
    looked_ = time;
    look_further();
}

void OtherUsers::look_at_all() {
    if (parent_path_.empty()) return;
    for (int looks = 0; looks < looks_for_all_max && look_further(); ++looks) {
    }
}

/// False: that was the rest of them.
bool OtherUsers::look_further() {
    constexpr int flags = O_RDONLY | O_DIRECTORY;
    if (!parent_.valid())
        parent_ = Descriptor(*system_, system_->openat(AT_FDCWD, parent_path_.c_str(), flags));
    if (!parent_.valid()) return false;
    if (!listing_.valid()) {
        found_.clear();
        listing_ = Descriptor(*system_, system_->openat(parent_.get(), ".", flags));
        if (!listing_.valid()) return false;
    }
    const std::string prefix = own_.substr(0, own_.size() - random_length);
    considered_ = 0;
    for (int names = 0; names < names_per_look && considered_ < directories_per_look;) {
        const int more = next_names(*system_, listing_.get(), [&](const std::string& name) {
            if (name.size() == own_.size() && name.starts_with(prefix) && name != own_)
                consider(name);
            return true;
        });
        if (more <= 0) {
            listing_.reset();
            if (more == 0) users_ = found_;
            return false;
        }
        names += more;
    }
    return true;
}

void OtherUsers::consider(const std::string& name) {
    ++considered_;
    const Descriptor directory(*system_, system_->open_below(parent_.get(), name.c_str()));
    struct stat status{};
    if (!directory.valid() || system_->fstat(directory.get(), &status) < 0) return;
    for (std::vector<User>* all : {&found_, &users_}) {
        const auto is_this = [&](const User& user) {
            return user.directory == name && user.user == status.st_uid;
        };
        const auto of_user = std::count_if(
            all->begin(), all->end(), [&](const User& user) { return user.user == status.st_uid; });
        if (all->size() < directories_max && of_user < directories_of_user_max &&
            std::none_of(all->begin(), all->end(), is_this))
            all->push_back({name, status.st_uid});
    }
}

Descriptor OtherUsers::open_directory(const User& user) const {
    Descriptor directory(*system_, system_->open_below(parent_.get(), user.directory.c_str()));
    struct stat status{};
    if (directory.valid() && (system_->fstat(directory.get(), &status) < 0 ||
                              status.st_uid != user.user || !S_ISDIR(status.st_mode)))
        directory.reset();
    return directory;
}

/// Its file, if `nic` is alive. A pipe or a device of that name neither blocks nor counts.
Descriptor OtherUsers::open_alive(int directory, uid_t user, const std::string& nic) const {
    if (!is_nic_name(nic)) return {};
    Descriptor file(*system_, system_->openat(directory, nic.c_str(), O_RDONLY | O_NONBLOCK));
    struct stat status{};
    if (file.valid() && (system_->fstat(file.get(), &status) < 0 || !S_ISREG(status.st_mode) ||
                         status.st_uid != user || system_->is_locked(file.get()) != 1))
        file.reset();
    return file;
}

std::optional<Claim> OtherUsers::oldest(const std::string& link) const {
    std::optional<Claim> best;
    for (const User& user : users_) {
        const Descriptor directory = open_directory(user);
        if (!directory.valid()) continue;
        const auto since = made_when(*system_, directory.get(), link);
        if (!since || (best && best->since < *since)) continue;
        const std::string nic = link_target(*system_, directory.get(), link);
        if (open_alive(directory.get(), user.user, nic).valid()) best = Claim{nic, *since};
    }
    return best;
}

Descriptor OtherUsers::open_holder(const std::string& link) const {
    for (const User& user : users_) {
        const Descriptor directory = open_directory(user);
        if (!directory.valid()) continue;
        Descriptor file =
            open_alive(directory.get(), user.user, link_target(*system_, directory.get(), link));
        if (file.valid()) return file;
    }
    return {};
}

}  // namespace via::device::udp

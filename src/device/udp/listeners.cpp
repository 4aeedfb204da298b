#include "device/udp/listeners.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "device/udp/because.hpp"
#include "device/udp/names.hpp"

namespace via::device::udp {

namespace {

constexpr const char* holder_link = "holder";
constexpr mode_t file_mode = 0644;
constexpr int directory_flags = O_RDONLY | O_DIRECTORY;

std::unexpected<std::string> is_held(const std::string& owner, const char* whose = "") {
    return std::unexpected("udp: " + owner + whose +
                           " listens to this discriminator already; choose another one or end "
                           "that process");
}

}  // namespace

std::expected<Listeners, std::string> Listeners::open(System& system, const std::string& directory,
                                                      bool shared, std::uint16_t data_port,
                                                      std::uint64_t instance) {
    Descriptor opened(system, system.openat(AT_FDCWD, directory.c_str(), directory_flags));
    if (!opened.valid())
        return std::unexpected("udp: cannot open the directory " + directory + " (openat)" +
                               because(errno));
    Listeners self(system, std::move(opened), directory, shared);
    self.remove_leftovers();
    self.others_.look_at_all();
    if (auto done = self.put_down(data_port, instance); !done)
        return std::unexpected(std::move(done.error()));
    return self;
}

Listeners::~Listeners() {
    if (!directory_.valid() || name_.empty()) return;
    // While our file is locked nobody takes us for dead, so links that lead to us stay ours.
    for (const auto& [link, count] : listening_)
        if (target_of(link) == name_) remove(link);
    if (target_of(holder_link) == name_) remove(holder_link);
    remove(name_);
    if (shared_) system_->rmdir(path_.c_str());  // while another NIC is there, it stays
}

/// Our file gets its name when it is locked: one that is not looks dead.
std::expected<void, std::string> Listeners::put_down(std::uint16_t data_port,
                                                     std::uint64_t instance) {
    const std::string name = nic_name(system_->getpid(), data_port, instance);
    const std::string temporary = "new" + name.substr(3);
    const auto failed = [&](const char* what, const char* calls) {
        const std::string text = std::string("udp: cannot ") + what + " in " + path_ + calls +
                                 because(errno, "; look at its permissions and its space");
        return std::unexpected(text);
    };
    lock_ = Descriptor(
        *system_, system_->openat(directory_.get(), temporary.c_str(), O_RDWR | O_CREAT | O_EXCL));
    if (!lock_.valid()) return failed("make a file", " (openat)");
    // Read by other users, too; only once it is locked, for who reads it may lock it for reading.
    if (system_->lock(lock_.get()) == 0 && system_->fchmod(lock_.get(), file_mode) == 0 &&
        system_->renameat(directory_.get(), temporary.c_str(), name.c_str()) == 0) {
        name_ = name;
        place_ = path_ + "/" + name_;
        return {};
    }
    auto failure = failed("lock and name a file", " (fcntl, fchmod, renameat)");
    remove(temporary);
    return failure;
}

/// What cannot be seen now counts as alive; what is no file never was a NIC's.
bool Listeners::is_alive(const std::string& name) const {
    if (name == name_) return true;
    const Descriptor file(*system_, system_->openat(directory_.get(), name.c_str(), O_RDONLY));
    if (!file.valid())
        return errno != ENOENT && errno != ELOOP && errno != ENXIO && errno != ENODEV;
    struct stat status{};
    if (system_->fstat(file.get(), &status) == 0 && !S_ISREG(status.st_mode)) return false;
    return system_->is_locked(file.get()) != 0;
}

std::string Listeners::target_of(const std::string& link) const {
    return link_target(*system_, directory_.get(), link);
}

std::optional<Since> Listeners::own_since(const std::string& link) const {
    return made_when(*system_, directory_.get(), link);
}

/// One more try for what an interruption or a lack of memory prevented; what stays nevertheless is
/// removed by a later opener.
bool Listeners::remove(const std::string& name) const {
    if (system_->unlinkat(directory_.get(), name.c_str()) == 0) return true;
    return errno != ENOENT && system_->unlinkat(directory_.get(), name.c_str()) == 0;
}

bool Listeners::is_known() const {
    // By the path: a directory that is gone is nobody's way to us.
    struct stat status{};
    if (system_->lstatat(AT_FDCWD, place_.c_str(), &status) == 0) return true;
    return errno != ENOENT && errno != ENOTDIR;
}

std::expected<void, std::string> Listeners::make_known(const std::string& directory, bool shared,
                                                       std::uint16_t data_port,
                                                       std::uint64_t instance) {
    auto made = open(*system_, directory, shared, data_port, instance);
    if (!made) return std::unexpected(std::move(made.error()));
    name_.clear();  // what is gone needs no removal
    directory_ = std::move(made->directory_);
    path_ = made->path_;
    shared_ = shared;
    others_ = std::move(made->others_);
    lock_ = std::move(made->lock_);
    name_ = std::exchange(made->name_, {});
    place_ = std::move(made->place_);
    std::expected<void, std::string> all;
    for (const auto& [link, count] : listening_)
        if (auto taken = take_link(link); !taken) all = std::move(taken);
    return all;
}

bool Listeners::lock_directory() const {
    // Held for a few calls only; but its holder may be stopped, so we do not wait for it.
    for (int attempt = 0; attempt < 64; ++attempt) {
        if (system_->flock(directory_.get(), LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        system_->yield();
    }
    return false;
}

std::expected<void, std::string> Listeners::take_link(const std::string& link) {
    const auto make = [&] {
        return system_->symlinkat(name_.c_str(), directory_.get(), link.c_str()) == 0;
    };
    if (make()) return {};
    const std::string owner = target_of(link);
    if (owner == name_) return {};
    if (is_alive(owner)) return is_held(owner);
    // Under a lock, so that two who do this at once cannot remove a third one's new link.
    bool made = false;
    int error = 0;
    if (lock_directory()) {
        if (target_of(link) == owner) remove(link);
        made = make();
        error = errno;
        system_->flock(directory_.get(), LOCK_UN);
    } else {
        error = errno;
    }
    if (made) return {};
    return std::unexpected("udp: cannot announce a listener in " + path_ + " (flock, symlinkat)" +
                           because(error));
}

/// Who of other users has it longer than our link says, if anybody. Asked when that is made: of two
/// who make theirs at once, the same one sees it on both sides.
std::string Listeners::others_owner(const std::string& link) {
    others_.look_around(true);
    const auto claim = others_.oldest(link);
    const auto own = claim ? own_since(link) : std::nullopt;
    return own && claim->since < *own ? claim->owner : std::string();
}

std::expected<void, std::string> Listeners::listen(const Discriminator& discriminator) {
    const std::string link = link_name(discriminator);
    const auto entry = listening_.try_emplace(link, 0U).first;  // first what needs memory
    if (entry->second == 0) {
        // Whatever its time: the system's clock may have been set back since.
        others_.look_around(true);
        if (const auto claim = others_.oldest(link)) {
            listening_.erase(entry);
            return is_held(claim->owner, " of another user");
        }
        if (auto taken = take_link(link); !taken) {
            listening_.erase(entry);
            return taken;
        }
        if (const std::string owner = others_owner(link); !owner.empty()) {
            remove(link);
            listening_.erase(entry);
            return is_held(owner, " of another user");
        }
    }
    ++entry->second;
    return {};
}

void Listeners::unlisten(const Discriminator& discriminator) {
    const auto found = listening_.find(link_name(discriminator));
    if (found == listening_.end() || --found->second > 0) return;
    if (target_of(found->first) == name_) remove(found->first);
    listening_.erase(found);
}

bool Listeners::find(const Discriminator& discriminator, std::uint16_t& data_port,
                     std::uint64_t& instance) {
    const std::string link = link_name(discriminator);
    std::string owner = target_of(link);
    if (!is_nic_name(owner) || !is_alive(owner)) owner.clear();
    others_.look_around(false);
    if (const auto claim = others_.oldest(link)) {
        const auto own = owner.empty() ? std::nullopt : own_since(link);
        if (!own || claim->since < *own) owner = claim->owner;
    }
    return parse_nic_name(owner, data_port, instance);
}

void Listeners::list(const std::function<bool(const std::string&)>& take) const {
    // A descriptor of its own: reading moves its position.
    const Descriptor listing(*system_, system_->openat(directory_.get(), ".", directory_flags));
    if (listing.valid()) list_names(*system_, listing.get(), take);
}

std::string Listeners::holder() const { return target_of(holder_link); }

bool Listeners::is_replaced() {
    const std::string other = holder();
    if (other == name_) return false;
    if (is_nic_name(other) && is_alive(other)) return true;
    note_holder();
    return false;
}

void Listeners::note_holder() {
    // The former one may just take it away, and of two who take the port over the last one has it.
    for (int tries = 0; tries < 3 && target_of(holder_link) != name_; ++tries) {
        remove(holder_link);
        system_->symlinkat(name_.c_str(), directory_.get(), holder_link);
    }
}

bool Listeners::watch_holder(int inotify) {
    // It has its file open for writing; however it ends, that is closed.
    const auto watch = [&](const std::string& path) {
        return system_->inotify_add_watch(inotify, path.c_str(), IN_CLOSE_WRITE) >= 0;
    };
    const std::string other = holder();
    if (other == name_) return false;
    if (!other.empty() && is_alive(other) && watch(path_ + "/" + other) && is_alive(other))
        return true;
    others_.look_around(true);
    const Descriptor file = others_.open_holder(holder_link);
    // By our descriptor: the path may be another one's by now.
    return file.valid() && watch("/proc/self/fd/" + std::to_string(file.get())) &&
           system_->is_locked(file.get()) == 1;
}

bool Listeners::has_others() {
    bool others = false;
    list([&](const std::string& name) {
        others = is_nic_name(name) && name != name_ && is_alive(name);
        return !others;
    });
    if (others) return true;
    others_.look_around(true);
    return others_.open_holder(holder_link).valid();
}

/// One that is being made is not locked yet, and its process may have no number here (another pid
/// namespace): so it stays for a time that nobody takes to make it.
bool Listeners::was_never_made(const std::string& name) const {
    constexpr time_t making_max_s = 60;
    struct stat status{};
    int pid = 0;
    return std::sscanf(name.c_str(), "new-%9d-", &pid) == 1 && system_->kill(pid, 0) < 0 &&
           errno == ESRCH && system_->lstatat(directory_.get(), name.c_str(), &status) == 0 &&
           ::time(nullptr) - status.st_mtim.tv_sec > making_max_s && !is_alive(name);
}

bool Listeners::is_left_over(const std::string& name) const {
    if (name.starts_with("d-") || name == holder_link) {
        const std::string owner = target_of(name);
        return !owner.empty() && !is_alive(owner);
    }
    if (name.starts_with("nic-")) return !is_alive(name);
    return name.starts_with("new-") && was_never_made(name);
}

/// A courtesy: what cannot be seen or removed now is left to the next opener.
void Listeners::remove_leftovers() {
    std::vector<std::string> names;
    list([&](const std::string& name) {
        if (is_left_over(name)) names.push_back(name);
        return true;
    });
    if (names.empty() || !lock_directory()) return;
    for (const std::string& name : names)
        if (is_left_over(name)) remove(name);
    system_->flock(directory_.get(), LOCK_UN);
}

bool somebody_lives(System& system, const std::string& directory) {
    Descriptor opened(system, system.openat(AT_FDCWD, directory.c_str(), directory_flags));
    return opened.valid() && Listeners(system, std::move(opened), directory, false).has_others();
}

}  // namespace via::device::udp

// Is a descriptor still the file that we opened? The program may have closed it (closefrom(3)), and
// its number may be that of a file of the program's.
#pragma once

#include <errno.h>
#include <sys/stat.h>

namespace via::agent {

class SameFile {
public:
    /// Any file is the same as none.
    SameFile() = default;
    explicit SameFile(const struct stat& opened)
        : device_(opened.st_dev), inode_(opened.st_ino), is_known_(true) {}
    static SameFile of(int descriptor) {
        struct stat opened;
        return fstat(descriptor, &opened) == 0 ? SameFile(opened) : SameFile();
    }

    bool is_known() const { return is_known_; }
    bool is(const struct stat& now) const {
        return !is_known_ || (now.st_dev == device_ && now.st_ino == inode_);
    }
    /// As far as the system can say.
    bool is(int descriptor) const {
        struct stat now;
        return fstat(descriptor, &now) < 0 ? !is_known_ || errno != EBADF : is(now);
    }

private:
    dev_t device_ = 0;
    ino_t inode_ = 0;
    bool is_known_ = false;
};

}  // namespace via::agent

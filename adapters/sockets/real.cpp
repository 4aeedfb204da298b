#include "real.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>

namespace via::sockets {

constinit Real real_calls;

void load_real() {
#define VIA_SOCKETS_LOAD(name) \
    real_calls.name = reinterpret_cast<decltype(real_calls.name)>(dlsym(RTLD_NEXT, #name));
    VIA_SOCKETS_CALLS(VIA_SOCKETS_LOAD)
#undef VIA_SOCKETS_LOAD
    real_calls.loaded = true;
}

long raw_send(int fd, const void* bytes, std::size_t length, int flags) {
    return real().syscall(SYS_sendto, fd, bytes, length, flags, nullptr, 0);
}

long raw_receive(int fd, void* bytes, std::size_t length, int flags) {
    return real().syscall(SYS_recvfrom, fd, bytes, length, flags, nullptr, nullptr);
}

}  // namespace via::sockets

// SPDX-License-Identifier: Apache-2.0
// Loads libvipl as an old program does, by dlopen, and looks up every function of VIPL 1.0
// (VIPL 1.10).
// Usage: symbols_test PATH-OF-LIBRARY
#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>

namespace {

const char* const functions[] = {
#define VIPL_FUNCTION(name, parameters) #name,
#define VIPL_FUNCTION_OF(type, name, parameters) #name,
#include "vipl_functions.def"
#undef VIPL_FUNCTION
#undef VIPL_FUNCTION_OF
};

// A name found in a library that libvipl needs would not be libvipl's: compare load addresses.
bool is_exported_by(void* library, const char* name) {
    void* address = dlsym(library, name);
    if (address == nullptr) {
        std::fprintf(stderr, "%s: not found\n", name);
        return false;
    }
    link_map* map = nullptr;
    Dl_info info{};
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || dladdr(address, &info) == 0) {
        std::fprintf(stderr, "%s: cannot tell where it comes from\n", name);
        return false;
    }
    // dladdr's base is the first mapped byte, which of a shared library is its load address.
    if (reinterpret_cast<ElfW(Addr)>(info.dli_fbase) != map->l_addr) {
        std::fprintf(stderr, "%s: comes from %s\n", name, info.dli_fname);
        return false;
    }
    if (info.dli_sname == nullptr || std::strcmp(info.dli_sname, name) != 0) {
        std::fprintf(stderr, "%s: is %s\n", name, info.dli_sname ? info.dli_sname : "nameless");
        return false;
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: symbols_test PATH-OF-LIBRARY\n");
        return 2;
    }
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int missing = 0;
    for (const char* name : functions) {
        missing += is_exported_by(library, name) ? 0 : 1;
    }
    return missing == 0 ? 0 : 1;
}

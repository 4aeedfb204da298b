#include "secure/ipsec_mb/functions.hpp"

#if VIA_HAS_IPSEC_MB
#include <dlfcn.h>

#include <memory>
#endif

namespace via::secure::ipsec_mb {
namespace {

#if VIA_HAS_IPSEC_MB

#define VIA_TEXT_OF(number) #number
#define VIA_TEXT(number) VIA_TEXT_OF(number)

// Functions are only added to the manager's end while the library's name is the same.
static_assert(IMB_VERSION_NUM >= IMB_VERSION(1, 3, 0) && IMB_VERSION_NUM < IMB_VERSION(2, 0, 0));
constexpr const char* library_name = "libIPSec_MB.so.1";

std::string last_error() {
    const char* const text = ::dlerror();
    return text != nullptr ? text : "unknown error";
}

const char* name_of(IMB_ARCH processor) {
    switch (processor) {
        case IMB_ARCH_SSE:
            return "SSE";
        case IMB_ARCH_AVX:
            return "AVX";
        case IMB_ARCH_AVX2:
            return "AVX2";
        case IMB_ARCH_AVX512:
            return "AVX-512";
        default:
            return nullptr;  // without instructions for AES: its tables show what they are asked
    }
}

Functions take(const IMB_MGR& manager, IMB_ARCH processor, const char* version) {
    return {
        .gcm_key = manager.gcm256_pre,
        .gcm_seal = manager.gcm256_enc,
        .gcm_open = manager.gcm256_dec,
        .gcm_begin = manager.gcm256_init,
        .gcm_seal_more = manager.gcm256_enc_update,
        .gcm_seal_end = manager.gcm256_enc_finalize,
        .chacha_begin = manager.chacha20_poly1305_init,
        .chacha_seal_more = manager.chacha20_poly1305_enc_update,
        .chacha_open_more = manager.chacha20_poly1305_dec_update,
        .chacha_end = manager.chacha20_poly1305_finalize,
        .has_fast_chacha = processor == IMB_ARCH_AVX2 || processor == IMB_ARCH_AVX512,
        .name = std::string("ipsec-mb ") + version + " (" + name_of(processor) + ")",
    };
}

std::expected<Functions, std::string> load() {
    void* const library = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::unexpected(last_error());
#define VIA_IPSEC_MB_LOAD(name)                                                     \
    const auto name = reinterpret_cast<decltype(&::name)>(::dlsym(library, #name)); \
    if ((name) == nullptr) return std::unexpected(last_error());
    VIA_IPSEC_MB_LOAD(imb_get_version)
    VIA_IPSEC_MB_LOAD(imb_get_version_str)
    VIA_IPSEC_MB_LOAD(imb_get_errno)
    VIA_IPSEC_MB_LOAD(imb_get_strerror)
    VIA_IPSEC_MB_LOAD(alloc_mb_mgr)
    VIA_IPSEC_MB_LOAD(free_mb_mgr)
    VIA_IPSEC_MB_LOAD(init_mb_mgr_auto)
#undef VIA_IPSEC_MB_LOAD
    if (imb_get_version() < IMB_VERSION_NUM)
        return std::unexpected(std::string(library_name) + " is version " + imb_get_version_str() +
                               ", older than " IMB_VERSION_STR ", which this was built with");
    const std::unique_ptr<IMB_MGR, decltype(free_mb_mgr)> manager(alloc_mb_mgr(0), free_mb_mgr);
    if (!manager) return std::unexpected(std::string(library_name) + " has no memory");
    IMB_ARCH processor = IMB_ARCH_NONE;
    init_mb_mgr_auto(manager.get(), &processor);
    // It tries its ciphers with known texts before it says that all is well.
    constexpr std::uint64_t tested = IMB_FEATURE_SELF_TEST | IMB_FEATURE_SELF_TEST_PASS;
    if (const int error = imb_get_errno(manager.get()); error != 0)
        return std::unexpected(std::string(library_name) + ": " + imb_get_strerror(error));
    if ((manager->features & tested) != tested)
        return std::unexpected(std::string(library_name) + " does not pass its own test");
    if ((manager->features & IMB_FEATURE_SAFE_DATA) == 0)
        return std::unexpected(std::string(library_name) +
                               " was built so that it leaves keys in registers and on the stack");
    if (name_of(processor) == nullptr)
        return std::unexpected("this processor has no instructions for AES");
    return take(*manager, processor, imb_get_version_str());
}

#else

std::expected<Functions, std::string> load() {
#if defined(__x86_64__)
    return std::unexpected("OpenVIA was built without its header");
#else
    return std::unexpected("there is none for this processor");
#endif
}

#endif

}  // namespace

const std::expected<Functions, std::string>& functions() {
    static const std::expected<Functions, std::string> loaded = load();
    return loaded;
}

}  // namespace via::secure::ipsec_mb

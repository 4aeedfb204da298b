// Memory that processes share by pages over RDMA, on vipl.h alone: each page has a home, whose copy
// is the true one. A process that touches another's page reads it from there; at a barrier it
// writes what it has changed to the homes, word by word, and forgets pages that others have
// changed. Right for programs in which nobody reads what another writes between the same two
// barriers.
#pragma once

#include <vipl.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace via::pages {

constexpr std::size_t page_bytes = 4096;

/// What a kernel knows of its processes.
class World {
public:
    World(unsigned process, unsigned processes) : me(process), count(processes) {}
    virtual ~World() = default;
    virtual void barrier() {}
    const unsigned me;
    const unsigned count;
    /// Of `all` things in a row, those of this process.
    std::size_t first(std::size_t all) const { return all * me / count; }
    std::size_t end(std::size_t all) const { return all * (me + 1) / count; }
};

class SharedPages final : public World {
public:
    /// `memory` lies at the same address in all processes, which `job` tells from others.
    SharedPages(unsigned process, std::string job, char* memory, std::vector<unsigned> homes,
                unsigned processes);
    ~SharedPages() override;
    void barrier() override;

private:
    enum class State : std::uint8_t { absent, clean, changed, home };
    struct Peer {
        VIP_VI_HANDLE vi = nullptr;
        VIP_MEM_HANDLE memory = 0;  ///< its handle of the shared pages
        std::size_t area = 0;       ///< its descriptors and messages, within ours
    };

    static void on_fault(int number, void* address);
    void touch(std::size_t page);
    void connect(unsigned peer);
    void fetch(std::size_t page);
    void send_changes(std::size_t page);
    void post(unsigned peer, unsigned operation, char* local, VIP_MEM_HANDLE handle,
              std::size_t length);
    void post_receives(unsigned peer);
    void tell_all(const std::vector<std::uint8_t>& notice);
    void hear_all(std::vector<std::uint8_t>& changed);
    void protect(std::size_t page, int rights) const;
    char* at(std::size_t page) const { return memory_ + page * page_bytes; }
    std::size_t pages() const { return homes_.size(); }
    VIP_DESCRIPTOR* descriptor(unsigned peer, unsigned which);
    char* text(unsigned peer, unsigned which);

    std::string job_;
    char* memory_;
    std::vector<unsigned> homes_;
    std::vector<State> states_;
    std::vector<char> twins_;  ///< of a page as it was when it was last the same everywhere
    std::size_t notice_bytes_;
    char* area_ = nullptr;  ///< descriptors and messages
    VIP_NIC_HANDLE nic_ = nullptr;
    VIP_MEM_HANDLE shared_ = 0;
    VIP_MEM_HANDLE own_ = 0;
    std::vector<Peer> peers_;
};

/// Whoever cannot go on says why, and ends.
[[noreturn]] void fail(const char* what);
void check(VIP_RETURN code, const char* what);

}  // namespace via::pages

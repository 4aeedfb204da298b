// What the pages of memory allow, and what registering it and using it then says (VIPL 4.6, 4.12).
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "harness/end.hpp"

namespace conformance::pages_test {
namespace {

constexpr std::size_t page = 4096;

/// Pages of the program's own, never touched.
class Pages {
public:
    explicit Pages(std::size_t count) : length_(count * page) {
        void* at =
            mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        require(at != MAP_FAILED, "there are pages");
        at_ = static_cast<std::byte*>(at);
    }
    ~Pages() {
        munmap(at_, hole_);
        if (hole_ != length_) munmap(at_ + hole_ + page, length_ - hole_ - page);
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    std::byte* at(std::size_t number) const { return at_ + number * page; }
    void protect(std::size_t number, std::size_t count, int how) const {
        require(mprotect(at(number), count * page, how) == 0, "pages can be protected");
    }
    /// One; what others map there later is theirs.
    void unmap(std::size_t number) {
        require(munmap(at(number), page) == 0, "a page can be given back");
        hole_ = number * page;
    }

private:
    std::size_t length_;
    std::size_t hole_ = length_;
    std::byte* at_;
};

VIP_RETURN enter(Nic& nic, std::byte* at, std::size_t bytes, bool write, VIP_MEM_HANDLE& handle) {
    VIP_MEM_ATTRIBUTES attributes = rights(write, false);
    return VipRegisterMem(nic.handle(), at, bytes, &attributes, &handle);
}

bool is_there(void* address) {
    unsigned char resident = 0;
    return mincore(address, page, &resident) == 0;
}

/// False: another thread has mapped something where nothing was to be.
bool tells_of_holes(Nic& nic) {
    Pages pages(8);
    pages.unmap(3);
    pages.protect(6, 1, PROT_NONE);
    VIP_MEM_HANDLE handle = 77;
    std::vector<VIP_RETURN> answers;
    for (const bool write : {false, true}) {
        answers.push_back(enter(nic, pages.at(0), 3 * page + 1, write, handle));
        answers.push_back(enter(nic, pages.at(3) + 5, 1, write, handle));
        answers.push_back(enter(nic, pages.at(5), 2 * page, write, handle));
    }
    if (is_there(pages.at(3))) return false;
    for (const VIP_RETURN answer : answers) EXPECT_EQ(VIP_INVALID_PARAMETER, answer);
    EXPECT_EQ(77U, handle);
    OK(enter(nic, pages.at(0), 3 * page, true, handle));
    OK(enter(nic, pages.at(4) + 7, 2 * page - 7, true, handle));
    return true;
}

VIPL_TEST(Vipl_4_6_memory_that_is_not_there_is_refused, configured) {
    test.role("only", [](Role& me) {
        for (const char* options : {"pin=prefer", "pin=never", "table_entries=64"}) {
            Nic nic(me.device_name() + "," + options);
            bool is_told = false;
            for (int tries = 0; tries < 100 && !is_told; ++tries) is_told = tells_of_holes(nic);
            EXPECT_TRUE(is_told);
        }
    });
}

/// As a program that maps more than its file has: a byte of a peer's there would be a SIGBUS.
VIPL_TEST(Vipl_4_6_memory_behind_the_end_of_its_file_is_refused, configured) {
    test.role("only", [](Role& me) {
        const int file = memfd_create("short", MFD_CLOEXEC);
        require(ftruncate(file, 2 * page) == 0, "there is a file of two pages");
        void* at = mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        require(at != MAP_FAILED, "it is mapped");
        auto* const begin = static_cast<std::byte*>(at);
        for (const char* options : {"pin=prefer", "pin=never", "table_entries=64"}) {
            Nic nic(me.device_name() + "," + options);
            VIP_MEM_HANDLE handle = 77;
            for (const bool write : {false, true})
                EXPECT_EQ(VIP_INVALID_PARAMETER, enter(nic, begin, 2 * page + 1, write, handle));
            EXPECT_EQ(77U, handle);
            OK(enter(nic, begin, 2 * page, true, handle));
        }
        munmap(at, 4 * page);
        close(file);
    });
}

VIPL_TEST(Vipl_4_6_peers_get_no_right_to_write_where_the_program_has_none, configured) {
    test.role("only", [](Role& me) {
        const Pages pages(4);
        pages.protect(2, 1, PROT_READ);
        VIP_MEM_HANDLE handle = 77;
        EXPECT_EQ(VIP_INVALID_PARAMETER, enter(me.nic(), pages.at(0), 4 * page, true, handle));
        EXPECT_EQ(77U, handle);
        OK(enter(me.nic(), pages.at(0), 4 * page, false, handle));
        VIP_MEM_ATTRIBUTES attributes = rights(true, false);
        const VIP_NIC_HANDLE nic = me.nic().handle();
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  VipSetMemAttributes(nic, pages.at(0), handle, &attributes));
        attributes = rights(false, true);
        OK(VipSetMemAttributes(nic, pages.at(0), handle, &attributes));
        OK(VipDeregisterMem(nic, pages.at(0), handle));
    });
}

VIPL_TEST(Vipl_4_12_what_may_only_be_read_is_sent_and_never_received_into, configured) {
    test.role("server", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        const Pages pages(2);
        std::memset(pages.at(0), 7, 2 * page);
        pages.protect(0, 2, PROT_READ);
        Piece closed{pages.at(0), page, 0};
        OK(enter(me.nic(), closed.data, closed.length, false, closed.handle));
        const Piece room = end.take(64);
        end.receive(closed);
        end.receive(closed.part(0, 64));
        const Piece mixed[] = {room.part(0, 8), closed.part(0, 8)};
        end.receive(mixed);
        end.accept("client");
        for (int n = 0; n < 3; ++n)
            EXPECT_TRUE(
                has_status(end.received(VIP_DESCRIPTOR_ERROR),
                           VIP_STATUS_OP_RECEIVE | VIP_STATUS_DONE | VIP_STATUS_PROTECTION_ERROR));
        EXPECT_EQ(std::byte{7}, closed.data[0]);
        // A descriptor is written to as well.
        EXPECT_EQ(
            VIP_INVALID_PARAMETER,
            VipPostRecv(end.vi(), reinterpret_cast<VIP_DESCRIPTOR*>(pages.at(0)), closed.handle));
        end.receive(room);
        me.tell("client", 'g');
        EXPECT_EQ(room.length, end.received()->CS.Length);
        OK(VipDeregisterMem(me.nic().handle(), closed.data, closed.handle));
    });
    test.role("client", [](Role& me) {
        End end(me, {.level = VIP_SERVICE_UNRELIABLE});
        const Pages pages(1);
        pages.protect(0, 1, PROT_READ);
        Piece closed{pages.at(0), 64, 0};
        OK(enter(me.nic(), closed.data, page, false, closed.handle));
        end.connect("server");
        me.hear<char>("server");
        end.send(closed);
        end.sent();
        me.wait_for_end_of("server");
        OK(VipDeregisterMem(me.nic().handle(), closed.data, closed.handle));
    });
}

VIPL_TEST(Vipl_4_12_an_rdma_read_into_what_may_only_be_read_is_a_protection_error, configured) {
    test.role("reads", [](Role& me) {
        End end(me);
        const Pages pages(1);
        pages.protect(0, 1, PROT_READ);
        Piece closed{pages.at(0), 64, 0};
        OK(enter(me.nic(), closed.data, page, false, closed.handle));
        end.connect("is_read");
        end.read(me.hear<Target>("is_read"), closed);
        EXPECT_TRUE(has_status(end.sent(VIP_DESCRIPTOR_ERROR), VIP_STATUS_OP_RDMA_READ |
                                                                   VIP_STATUS_DONE |
                                                                   VIP_STATUS_PROTECTION_ERROR));
        end.disconnect();
        OK(VipDeregisterMem(me.nic().handle(), closed.data, closed.handle));
    });
    test.role("is_read", [](Role& me) {
        End end(me);
        end.accept("reads");
        me.tell("reads", Target(end.filled(64, 1)));
        me.wait_for_end_of("reads");
    });
}

}  // namespace
}  // namespace conformance::pages_test

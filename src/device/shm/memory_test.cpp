#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "device/shm/memory.hpp"
#include "device/shm/test_support.hpp"

namespace via::device::shm::test::memory_test {
namespace {

const Layout layout{64, 1U << 16};

TEST(ShmMemory, WhatIsCreatedIsAcceptedAndShared) {
    auto own = OwnMemory::create(System::real(), layout);
    ASSERT_TRUE(own) << own.error().text;
    auto peer = PeerMemory::map(System::real(), own->descriptor(), layout);
    ASSERT_TRUE(peer) << peer.error().text;
    own->control().head.store(17);
    EXPECT_EQ(peer->control().head.load(), 17U);
    own->ring()[63].words[7].store(18);
    EXPECT_EQ(peer->ring()[63].words[7].load(), 18U);
    own->arena()[layout.arena_bytes - 1] = std::byte{19};
    EXPECT_EQ(peer->arena()[layout.arena_bytes - 1], std::byte{19});
}

TEST(ShmMemory, ThePeersDescriptorCannotBeMappedForWriting) {
    auto own = OwnMemory::create(System::real(), layout);
    ASSERT_TRUE(own);
    void* at =
        ::mmap(nullptr, layout.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, own->descriptor(), 0);
    EXPECT_EQ(at, MAP_FAILED);
    EXPECT_EQ(errno, EACCES);
    at = ::mmap(nullptr, layout.bytes(), PROT_READ, MAP_SHARED, own->descriptor(), 0);
    ASSERT_NE(at, MAP_FAILED);
    EXPECT_LT(::mprotect(at, layout.bytes(), PROT_READ | PROT_WRITE), 0);
    ::munmap(at, layout.bytes());
    EXPECT_LT(::ftruncate(own->descriptor(), 0), 0);
}

TEST(ShmMemory, BothSidesWriteTheMailbox) {
    auto made = MailboxMemory::create(System::real());
    ASSERT_TRUE(made) << made.error().text;
    auto mapped = MailboxMemory::map(System::real(), made->descriptor());
    ASSERT_TRUE(mapped) << mapped.error().text;
    made->line()->words[0].store(17);
    EXPECT_EQ(mapped->line()->words[0].load(), 17U);
    mapped->line()->words[7].store(18);
    EXPECT_EQ(made->line()->words[7].load(), 18U);
    EXPECT_LT(::ftruncate(made->descriptor(), 0), 0) << "it cannot be taken away";
}

TEST(ShmMemory, ASmallLimitOfFileSizesIsToldAndKillsNobody) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit small = before;
    small.rlim_cur = 100;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto own = OwnMemory::create(System::real(), layout);
    const auto mailbox = MailboxMemory::create(System::real());
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ASSERT_FALSE(own || mailbox);
    for (const std::string& text : {own.error().text, mailbox.error().text})
        EXPECT_NE(text.find("(ulimit -f)"), std::string::npos) << text;
}

TEST(ShmMemory, GivingBackTheArenaFreesPages) {
    auto own = OwnMemory::create(System::real(), layout);
    ASSERT_TRUE(own);
    struct stat status;
    ASSERT_EQ(::fstat(own->descriptor(), &status), 0);
    const auto before = status.st_blocks;
    std::memset(own->arena(), 1, layout.arena_bytes);
    own->ring()[5].words[1].store(77);
    ASSERT_EQ(::fstat(own->descriptor(), &status), 0);
    EXPECT_GE(status.st_blocks, before + layout.arena_bytes / 512);
    ASSERT_EQ(own->give_back_arena(), 0);
    ASSERT_EQ(::fstat(own->descriptor(), &status), 0);
    EXPECT_LT(status.st_blocks, before + 2 * 65536 / 512);
    EXPECT_EQ(own->arena()[100], std::byte{0});
    EXPECT_EQ(own->ring()[5].words[1].load(), 77U);
}

TEST(ShmMemory, NotInheritedByAForkedChild) {
    auto own = OwnMemory::create(System::real(), layout);
    ASSERT_TRUE(own);
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(count_mappings() == 0 ? 0 : 1);
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(ShmMemory, LessThanSealedIsRefused) {
    Directory directory;
    for (const int seals : {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW,
                            F_SEAL_SHRINK | F_SEAL_SEAL, F_SEAL_GROW | F_SEAL_SEAL}) {
        Liar liar(directory);
        liar.layout = layout;
        Liar::MemoryOptions options;
        options.seals = seals;
        const auto peer = PeerMemory::map(System::real(), liar.make_memory(options), layout);
        ASSERT_FALSE(peer) << seals;
        EXPECT_EQ(peer.error().status, Status::not_reachable);
        EXPECT_NE(peer.error().text.find("sealed"), std::string::npos);
    }
}

TEST(ShmMemory, AnotherSizeIsRefused) {
    Directory directory;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, layout.bytes() - 1,
                                    layout.bytes() + 1, 2 * layout.bytes()}) {
        Liar liar(directory);
        Liar::MemoryOptions options;
        options.bytes = bytes;
        const auto peer = PeerMemory::map(System::real(), liar.make_memory(options), layout);
        ASSERT_FALSE(peer) << bytes;
        EXPECT_NE(peer.error().text.find("size"), std::string::npos);
    }
}

TEST(ShmMemory, ForeignDescriptorsAreRefused) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const int root = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const int fd : {ends[0], ends[1], null, root, -1, 100000}) {
        EXPECT_FALSE(PeerMemory::map(System::real(), fd, layout)) << fd;
    }
    for (const int fd : {ends[0], ends[1], null, root}) ::close(fd);
}

TEST(ShmMemory, HugePagesAreRefused) {
    const Layout huge{1U << 16, 1U << 26};  // whatever its size is, it has to be refused
    const int fd = ::memfd_create("via-huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (fd < 0) GTEST_SKIP() << "no huge pages here";
    ASSERT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    const auto peer = PeerMemory::map(System::real(), fd, huge);
    ASSERT_FALSE(peer);
    EXPECT_NE(peer.error().text.find("plain"), std::string::npos);
    ::close(fd);
}

TEST(ShmMemory, AHeaderThatDiffersFromTheGreetingIsRefused) {
    Directory directory;
    for (int field = 0; field < 4; ++field) {
        Liar liar(directory);
        liar.layout = layout;
        const int fd = liar.make_memory();
        if (field == 0) liar.control().magic.store(1);
        if (field == 1) liar.control().version.store(9);
        if (field == 2) liar.control().ring_slots.store(128);
        if (field == 3) liar.control().arena_bytes.store(1U << 20);
        const auto peer = PeerMemory::map(System::real(), fd, layout);
        ASSERT_FALSE(peer) << field;
        EXPECT_NE(peer.error().text.find("header"), std::string::npos);
    }
    EXPECT_EQ(count_mappings(), 0U);
}

}  // namespace
}  // namespace via::device::shm::test::memory_test

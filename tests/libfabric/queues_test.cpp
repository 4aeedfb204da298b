// SPDX-License-Identifier: Apache-2.0
// Completion queues and counters: full, flushed, slept on, shared by threads.
#include <poll.h>
#include <sys/resource.h>

#include <thread>

#include "scene.hpp"

using namespace scene;

namespace queues_test {
namespace {

/// What is sent where it does not matter.
const std::uint64_t word_sent = 7;

Options waiting(fi_wait_obj object) {
    Options options;
    options.queue.wait_obj = object;
    return options;
}

TEST(Queues, WhenFullTheProgramIsToldToTryAgain) {
    Options options;
    options.queue_size = 8;
    options.queue.size = 1;  // it never overflows, whatever it is said to hold
    std::uint64_t room = 0;  // outlives the endpoints: not all that was sent is waited for
    Pair pair(options);
    for (int count = 0; count < 8; ++count)
        ASSERT_EQ(fi_recv(pair.right.get(), &room, 8, nullptr, 0, nullptr), 0);
    EXPECT_EQ(fi_recv(pair.right.get(), &room, 8, nullptr, 0, nullptr), -FI_EAGAIN);
    for (int count = 0; count < 8; ++count)
        ASSERT_EQ(fi_send(pair.left.get(), &word_sent, 4, nullptr, 0, nullptr), 0);
    EXPECT_EQ(fi_send(pair.left.get(), &word_sent, 4, nullptr, 0, nullptr), -FI_EAGAIN);
    completion(pair.a, &pair.b);
    EXPECT_EQ(fi_send(pair.left.get(), &word_sent, 4, nullptr, 0, nullptr), 0);
    completion(pair.b);
    EXPECT_EQ(fi_recv(pair.right.get(), &room, 8, nullptr, 0, nullptr), 0);
}

TEST(Queues, WhatTheKernelRefusesADescriptorForIsAnswered) {
    const Side side;
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit none{0, limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    fi_eq_attr events{};
    events.wait_obj = FI_WAIT_FD;
    fid_eq* event_queue = nullptr;
    EXPECT_EQ(fi_eq_open(side.fabric.get(), &events, &event_queue, nullptr), -FI_EMFILE);
    fi_cq_attr completions{};
    completions.wait_obj = FI_WAIT_FD;
    fid_cq* queue = nullptr;
    EXPECT_EQ(fi_cq_open(side.domain.get(), &completions, &queue, nullptr), -FI_EMFILE);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(Queues, ManyEndpointsShareOne) {
    Options options;
    options.queue.size = 65536;
    Pair pair(options);
    constexpr std::size_t count = 140;  // with their 512 entries each, more than one of VIA's
    std::vector<Owned<fid_ep>> left(count);
    std::vector<Owned<fid_ep>> right(count);
    for (std::size_t number = 0; number < count; ++number) {
        pair.connect(left[number], right[number]);
        ASSERT_EQ(fi_recv(right[number].get(), nullptr, 0, nullptr, 0, word(number)), 0);
    }
    for (auto& endpoint : left) ASSERT_EQ(fi_inject(endpoint.get(), nullptr, 0, 0), 0);
    std::vector<bool> seen(count);
    for (std::size_t number = 0; number < count; ++number)
        seen[reinterpret_cast<std::uintptr_t>(completion(pair.b, &pair.a).op_context)] = true;
    EXPECT_EQ(seen, std::vector<bool>(count, true));
}

TEST(Queues, ClosingFlushesReceives) {
    Pair pair;
    std::byte room[16];
    for (std::uintptr_t number = 0; number < 128; ++number)
        ASSERT_EQ(fi_recv(pair.right.get(), room, 16, nullptr, 0, word(number)), 0);
    pair.right.reset();
    for (std::uintptr_t number = 0; number < 128; ++number) {
        const fi_cq_err_entry error = failure(pair.b);
        EXPECT_EQ(error.err, FI_ECANCELED);
        EXPECT_EQ(error.op_context, word(number));
        EXPECT_EQ(error.flags, FI_MSG | FI_RECV);
    }
    fi_cq_data_entry none;
    EXPECT_EQ(fi_cq_read(pair.b.queue.get(), &none, 1), -FI_EAGAIN);
}

TEST(Queues, WhoTookAllIsToldSoWithoutALook) {
    Pair pair;
    std::uint64_t room = 0;
    for (int count = 0; count < 2; ++count)
        ASSERT_EQ(fi_recv(pair.right.get(), &room, 8, nullptr, 0, nullptr), 0);
    const auto read = [&] {
        fi_cq_data_entry entries[2];
        return fi_cq_read(pair.b.queue.get(), entries, 2);
    };
    ASSERT_EQ(fi_inject(pair.left.get(), &word_sent, 8, 0), 0);
    ssize_t got = 0;
    while ((got = read()) == -FI_EAGAIN) fi_cq_read(pair.a.queue.get(), nullptr, 0);
    EXPECT_EQ(got, 1);
    ASSERT_EQ(fi_inject(pair.left.get(), &word_sent, 8, 0), 0);
    EXPECT_EQ(read(), -FI_EAGAIN);
    while ((got = read()) == -FI_EAGAIN) fi_cq_read(pair.a.queue.get(), nullptr, 0);
    EXPECT_EQ(got, 1);
}

/// There is no context to tell it with.
TEST(Queues, InjectedMessagesTellNothingWhenTheyAreFlushed) {
    Pair pair;
    std::uint64_t target = 0;
    const auto region = pair.b.memory(&target, 8, FI_REMOTE_WRITE);
    // No receive: they wait for credits.
    ASSERT_EQ(fi_inject(pair.left.get(), &word_sent, 8, 0), 0);
    ASSERT_EQ(fi_injectdata(pair.left.get(), &word_sent, 8, 5, 0), 0);
    ASSERT_EQ(fi_inject_write(pair.left.get(), &word_sent, 8, 0,
                              reinterpret_cast<std::uintptr_t>(&target), fi_mr_key(region.get())),
              0);
    ASSERT_EQ(fi_send(pair.left.get(), &word_sent, 8, nullptr, 0, word(1)), 0);
    pair.right.reset();
    pair.a.expect(FI_SHUTDOWN, &pair.left->fid);
    ASSERT_EQ(fi_inject(pair.left.get(), &word_sent, 8, 0), 0);
    const fi_cq_err_entry error = failure(pair.a);
    EXPECT_EQ(error.err, FI_ECANCELED);
    EXPECT_EQ(error.op_context, word(1));
    pair.left.reset();
    fi_cq_data_entry none;
    EXPECT_EQ(fi_cq_read(pair.a.queue.get(), &none, 1), -FI_EAGAIN);
}

/// libfabric's ofi_rxm closes an endpoint, then reads what it left, and answers that on it.
TEST(Queues, AClosedEndpointIsThereUntilAllIsRead) {
    Options options;
    options.op_flags = FI_DELIVERY_COMPLETE;
    Pair pair(options);
    std::uint64_t room = 0;
    for (std::uintptr_t number = 1; number < 3; ++number)
        ASSERT_EQ(fi_recv(pair.left.get(), &room, 8, nullptr, 0, word(number)), 0);
    ASSERT_EQ(fi_send(pair.right.get(), &word_sent, 8, nullptr, 0, nullptr), 0);
    completion(pair.b, &pair.a);
    fid_ep* const closed = pair.left.get();
    pair.left.reset();
    EXPECT_EQ(completion(pair.a).op_context, word(1));
    EXPECT_EQ(room, word_sent);
    ASSERT_EQ(fi_recv(closed, &room, 8, nullptr, 0, word(11)), 0);
    ASSERT_EQ(fi_send(closed, &room, 8, nullptr, 0, word(12)), 0);
    ASSERT_EQ(fi_inject(closed, &room, 8, 0), 0);
    ASSERT_EQ(fi_read(closed, &room, 8, nullptr, 0, 4096, 1, word(13)), 0);
    const std::uint64_t kinds[] = {FI_MSG | FI_RECV, FI_MSG | FI_RECV, FI_MSG | FI_SEND,
                                   FI_RMA | FI_READ};
    for (std::uintptr_t number = 0; number < 4; ++number) {
        const fi_cq_err_entry error = failure(pair.a);
        EXPECT_EQ(error.err, FI_ECANCELED);
        EXPECT_EQ(error.op_context, word(number == 0 ? 2 : 10 + number));
        EXPECT_EQ(error.flags, kinds[number]);
    }
    fi_cq_data_entry none;
    EXPECT_EQ(fi_cq_read(pair.a.queue.get(), &none, 1), -FI_EAGAIN);
}

TEST(Queues, LosingThePeerFlushesReceives) {
    Pair pair;
    std::byte room[16];
    ASSERT_EQ(fi_recv(pair.right.get(), room, 16, nullptr, 0, word(1)), 0);
    pair.left.reset();
    pair.b.expect(FI_SHUTDOWN, &pair.right->fid);
    EXPECT_EQ(failure(pair.b).err, FI_ECANCELED);
}

TEST(Queues, SleepersWakeUp) {
    for (const fi_wait_obj object : {FI_WAIT_UNSPEC, FI_WAIT_FD}) {
        Pair pair(waiting(object));
        std::uint64_t room = 0;
        ASSERT_EQ(fi_recv(pair.right.get(), &room, 8, nullptr, 0, nullptr), 0);
        fi_cq_data_entry entry{};
        EXPECT_EQ(fi_cq_sread(pair.b.queue.get(), &entry, 1, nullptr, 1), -FI_EAGAIN);
        std::thread sender([&] {
            const std::uint64_t value = 12345;
            EXPECT_EQ(fi_inject(pair.left.get(), &value, 8, 0), 0);
        });
        EXPECT_EQ(fi_cq_sread(pair.b.queue.get(), &entry, 1, nullptr, patience_ms), 1);
        sender.join();
        EXPECT_EQ(room, 12345U);
        std::thread signaller([&] { EXPECT_EQ(fi_cq_signal(pair.b.queue.get()), 0); });
        EXPECT_EQ(fi_cq_sread(pair.b.queue.get(), &entry, 1, nullptr, patience_ms), -FI_EAGAIN);
        signaller.join();
    }
}

TEST(Queues, ADescriptorToPoll) {
    Pair pair(waiting(FI_WAIT_FD));
    int descriptor = -1;
    ASSERT_EQ(fi_control(&pair.b.queue->fid, FI_GETWAIT, &descriptor), 0);
    for (int round = 0; round < 50; ++round) {
        std::uint64_t room = 0;
        ASSERT_EQ(fi_recv(pair.right.get(), &room, 8, nullptr, 0, nullptr), 0);
        std::thread sender([&] { EXPECT_EQ(fi_inject(pair.left.get(), &word_sent, 8, 0), 0); });
        fi_cq_data_entry entry{};
        const ssize_t got =
            read_by_descriptor(pair.b.fabric.get(), pair.b.queue.get(), descriptor, &entry);
        sender.join();
        EXPECT_EQ(got, 1);
    }
}

TEST(Queues, FormatsHaveTheirSizes) {
    for (const fi_cq_format format : {FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA}) {
        Options options;
        options.queue.format = format;
        Pair pair(options);
        std::uint64_t room[2];
        for (std::uintptr_t number = 0; number < 2; ++number)
            ASSERT_EQ(fi_recv(pair.right.get(), &room[number], 8, nullptr, 0, word(number + 1)), 0);
        for (int count = 0; count < 2; ++count)
            ASSERT_EQ(fi_inject(pair.left.get(), &count, 4, 0), 0);
        union {
            fi_cq_entry context[2];
            fi_cq_msg_entry message[2];
            fi_cq_data_entry data[2];
        } entries{};
        std::size_t got = 0;
        const std::size_t sizes[] = {0, sizeof(fi_cq_entry), sizeof(fi_cq_msg_entry),
                                     sizeof(fi_cq_data_entry)};
        for (int tries = 0; got < 2 && tries < 100000000; ++tries) {
            const ssize_t more =
                fi_cq_read(pair.b.queue.get(),
                           reinterpret_cast<std::byte*>(&entries) + got * sizes[format], 2 - got);
            if (more > 0) got += static_cast<std::size_t>(more);
        }
        ASSERT_EQ(got, 2U);
        const auto& last =
            *reinterpret_cast<fi_cq_entry*>(reinterpret_cast<std::byte*>(&entries) + sizes[format]);
        EXPECT_EQ(last.op_context, word(2));
    }
}

TEST(Queues, SelectiveCompletionTellsWhatIsAskedFor) {
    Options options;
    options.queue_flags |= FI_SELECTIVE_COMPLETION;
    Pair pair(options);
    std::uint64_t room = 0;
    fi_msg message{};
    iovec piece{&room, 8};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.context = word(8);
    ASSERT_EQ(fi_recv(pair.right.get(), &room, 8, nullptr, 0, word(7)), 0);
    ASSERT_EQ(fi_recvmsg(pair.right.get(), &message, FI_COMPLETION), 0);
    ASSERT_EQ(fi_send(pair.left.get(), &word_sent, 8, nullptr, 0, word(1)), 0);
    iovec sent{const_cast<std::uint64_t*>(&word_sent), 8};
    message.msg_iov = &sent;
    ASSERT_EQ(fi_sendmsg(pair.left.get(), &message, FI_COMPLETION), 0);
    EXPECT_EQ(completion(pair.b, &pair.a).op_context, word(8));
    EXPECT_EQ(completion(pair.a).op_context, word(8));
}

TEST(PollSets, TellWhichHaveSomething) {
    Pair pair;
    fi_cq_attr attributes = pair.a.options.queue;
    fid_cq* opened = nullptr;
    ASSERT_EQ(fi_cq_open(pair.b.domain.get(), &attributes, &opened, word(9)), 0);
    auto quiet = Owned<fid_cq>(opened);
    fid_poll* made = nullptr;
    fi_poll_attr none{};
    ASSERT_EQ(fi_poll_open(pair.b.domain.get(), &none, &made), 0);
    auto set = Owned<fid_poll>(made);
    pair.b.queue->fid.context = word(5);
    EXPECT_EQ(fi_poll_add(made, &pair.b.domain->fid, 0), -FI_EINVAL);
    ASSERT_EQ(fi_poll_add(made, &quiet->fid, 0), 0);
    ASSERT_EQ(fi_poll_add(made, &pair.b.queue->fid, 0), 0);
    void* contexts[4] = {};
    EXPECT_EQ(fi_poll(made, contexts, 4), 0);
    ASSERT_EQ(fi_recv(pair.right.get(), nullptr, 0, nullptr, 0, word(1)), 0);
    ASSERT_EQ(fi_send(pair.left.get(), nullptr, 0, nullptr, 0, word(2)), 0);
    int found = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    while (found == 0 && std::chrono::steady_clock::now() < end) found = fi_poll(made, contexts, 4);
    EXPECT_EQ(found, 1);
    EXPECT_EQ(contexts[0], word(5));
    EXPECT_EQ(fi_poll(made, contexts, 4), 1);  // until it is read
    EXPECT_EQ(fi_poll(made, contexts, 0), 0);
    EXPECT_EQ(completion(pair.b).op_context, word(1));
    EXPECT_EQ(fi_poll(made, contexts, 4), 0);
    // What is in it stays open.
    EXPECT_EQ(fi_close(&quiet->fid), -FI_EBUSY);
    EXPECT_EQ(fi_poll_del(made, &quiet->fid, 0), 0);
    EXPECT_EQ(fi_poll_del(made, &quiet->fid, 0), -FI_EINVAL);
    quiet.reset();
    set.reset();
    completion(pair.a);
}

TEST(Counters, CountWithoutACompletionQueue) {
    fid_cntr* sends = nullptr;
    fid_cntr* receives = nullptr;
    Options options;
    Side a(options);
    Side b(options);
    ASSERT_EQ(fi_cntr_open(a.domain.get(), nullptr, &sends, nullptr), 0);
    ASSERT_EQ(fi_cntr_open(b.domain.get(), nullptr, &receives, nullptr), 0);
    const Owned<fid_cntr> owned[] = {Owned<fid_cntr>(sends), Owned<fid_cntr>(receives)};
    a.options.queue_flags = b.options.queue_flags = 0;
    a.options.bind_more = [&](fid_ep* endpoint) {
        EXPECT_EQ(fi_ep_bind(endpoint, &sends->fid, FI_SEND | FI_WRITE), 0);
        EXPECT_EQ(fi_ep_bind(endpoint, &sends->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
    };
    b.options.bind_more = [&](fid_ep* endpoint) {
        EXPECT_EQ(fi_ep_bind(endpoint, &receives->fid, FI_RECV), 0);
    };
    sockaddr_in address;
    const auto listener = b.listen(address);
    const auto left = a.endpoint();
    Info request(nullptr, fi_freeinfo);
    ASSERT_NO_FATAL_FAILURE(ask(left.get(), b, listener, address, request));
    const auto right = b.endpoint(request.get());
    ASSERT_EQ(fi_accept(right.get(), nullptr, 0), 0);
    a.expect(FI_CONNECTED, &left->fid);
    std::uint64_t room = 0;
    for (int count = 0; count < 10; ++count)
        ASSERT_EQ(fi_recv(right.get(), &room, 8, nullptr, 0, nullptr), 0);
    for (int count = 0; count < 10; ++count)
        ASSERT_EQ(fi_send(left.get(), &word_sent, 8, nullptr, 0, nullptr), 0);
    EXPECT_EQ(fi_cntr_wait(receives, 10, patience_ms), 0);
    EXPECT_EQ(fi_cntr_wait(sends, 10, patience_ms), 0);
    EXPECT_EQ(fi_cntr_read(sends), 10U);
    EXPECT_EQ(fi_cntr_wait(sends, 11, 1), -FI_ETIMEDOUT);
    EXPECT_EQ(fi_cntr_add(sends, 5), 0);
    EXPECT_EQ(fi_cntr_read(sends), 15U);
    EXPECT_EQ(fi_cntr_set(sends, 0), 0);
    EXPECT_EQ(fi_cntr_readerr(sends), 0U);
}

/// FI_THREAD_SAFE: threads send on one endpoint, and threads read one completion queue.
TEST(Threads, ShareEndpointsAndQueues) {
    Pair pair;
    constexpr int threads = 4;
    constexpr std::uint64_t each = 2000;
    std::vector<std::uint64_t> rooms(128);
    for (std::uint64_t& room : rooms)
        ASSERT_EQ(fi_recv(pair.right.get(), &room, 8, nullptr, 0, &room), 0);
    std::atomic<std::uint64_t> sum{0};
    std::atomic<std::uint64_t> received{0};
    std::vector<std::thread> all;
    for (int number = 0; number < threads; ++number) {
        all.emplace_back([&, number] {
            for (std::uint64_t count = 0; count < each;) {
                const std::uint64_t value = each * static_cast<unsigned>(number) + count;
                const ssize_t sent = fi_inject(pair.left.get(), &value, 8, 0);
                if (sent == 0) {
                    ++count;
                } else {
                    ASSERT_EQ(sent, -FI_EAGAIN);
                    fi_cq_read(pair.a.queue.get(), nullptr, 0);
                    std::this_thread::yield();
                }
            }
        });
        all.emplace_back([&] {
            while (received < threads * each) {
                fi_cq_data_entry entry{};
                const ssize_t got = fi_cq_read(pair.b.queue.get(), &entry, 1);
                if (got != 1) {
                    ASSERT_EQ(got, -FI_EAGAIN);
                    std::this_thread::yield();
                    continue;
                }
                sum += *static_cast<std::uint64_t*>(entry.op_context);
                ++received;
                ASSERT_EQ(
                    fi_recv(pair.right.get(), entry.op_context, 8, nullptr, 0, entry.op_context),
                    0);
            }
        });
    }
    for (std::thread& thread : all) thread.join();
    const std::uint64_t count = threads * each;
    EXPECT_EQ(sum, count * (count - 1) / 2);
}

}  // namespace
}  // namespace queues_test

/* How long 8 bytes take there and back, by polling. In two terminals, in any order:
 *     ping serve
 *     ping ask
 * A second argument names the NIC; without it, it is shm. ping.cpp is the same in C++. */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <via/via.h>

#define ROUNDS 1000
#define PATIENCE_MS 10000
#define CHECK(call) check(#call, (call))

static struct {
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR send, receive;
    VIP_UINT64 out, in;
} room;

static VIP_NIC_HANDLE nic;
static VIP_VI_HANDLE vi;
static VIP_MEM_HANDLE memory;
static VIP_VI_ATTRIBUTES theirs;
static VIP_VI_ATTRIBUTES ours = {.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
                                 .MaxTransferSize = sizeof room.out};
static union {
    VIP_NET_ADDRESS address;
    char bytes[128];
} here, there;

static void check(const char* call, VIP_RETURN code) {
    if (code == VIP_SUCCESS) return;
    fprintf(stderr, "ping: %s: %s\n", call, ViaReturnText(code));
    exit(1);
}

static void describe(VIP_DESCRIPTOR* descriptor, void* data, VIP_UINT32 length) {
    descriptor->CS.SegCount = 1;
    descriptor->CS.Length = length;
    descriptor->DS[0].Local = (VIP_DATA_SEGMENT){{.Address = data}, memory, length};
}

static void prepare(const char* name) {
    CHECK(VipOpenNic(name, &nic)); /* says on standard error why not */
    CHECK(VipRegisterMem(nic, &room, sizeof room, NULL, &memory));
    CHECK(VipCreateVi(nic, &ours, NULL, NULL, &vi));
    describe(&room.send, &room.out, sizeof room.out);
    describe(&room.receive, &room.in, sizeof room.in);
    CHECK(VipPostRecv(vi, &room.receive, memory)); /* before anybody can send */
    CHECK(VipNSGetHostByName(nic, "localhost", &there.address, 0));
    there.address.DiscriminatorLen = 4;
    memcpy(there.bytes + 4 + there.address.HostAddressLen, "ping", 4);
}

static void poll_until(VIP_RETURN (*done)(VIP_VI_HANDLE, VIP_DESCRIPTOR**)) {
    VIP_DESCRIPTOR* descriptor;
    VIP_RETURN code;
    do code = done(vi, &descriptor);
    while (code == VIP_NOT_DONE);
    check("VipSendDone or VipRecvDone", code);
}

static void one_way(void) {
    CHECK(VipPostSend(vi, &room.send, memory));
    poll_until(VipSendDone);
}
static void other_way(int again) {
    poll_until(VipRecvDone);
    if (again) CHECK(VipPostRecv(vi, &room.receive, memory));
}

int main(int argc, char** argv) {
    const int serve = argc > 1 && strcmp(argv[1], "serve") == 0;
    if (argc < 2 || argc > 3 || (!serve && strcmp(argv[1], "ask") != 0))
        return fprintf(stderr, "usage: ping serve|ask [NIC]\n"), 2;
    prepare(argc > 2 ? argv[2] : "shm");
    if (serve) {
        VIP_CONN_HANDLE caller;
        CHECK(VipConnectWait(nic, &there.address, PATIENCE_MS, &here.address, &theirs, &caller));
        CHECK(VipConnectAccept(caller, vi));
        for (int n = 1; n <= ROUNDS; ++n) other_way(n < ROUNDS), one_way();
    } else {
        struct timespec begin, end;
        VIP_RETURN code;
        do code = VipConnectRequest(vi, &here.address, &there.address, PATIENCE_MS, &theirs);
        while (code == VIP_NO_MATCH && poll(NULL, 0, 10) == 0); /* nobody listens yet */
        check("VipConnectRequest", code);
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int n = 1; n <= ROUNDS; ++n) one_way(), other_way(n < ROUNDS);
        clock_gettime(CLOCK_MONOTONIC, &end);
        const long us =
            (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000;
        printf("%d round trips, %.2f us each\n", ROUNDS, (double)us / ROUNDS);
    }
    CHECK(VipCloseNic(nic));
    return 0;
}

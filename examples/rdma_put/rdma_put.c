/* One process writes into the memory of another, which makes no call for it. In two terminals, in
 * any order:
 *     rdma_put show
 *     rdma_put put TEXT
 * The owner of the memory says where it is, and its handle, in the private data of its acceptance.
 */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <via/via.h>

#define PATIENCE_MS 10000
#define CHECK(call) check(#call, (call))

/* The last word tells that all is there: lower addresses become visible first (VIPL 4.24). */
struct board {
    char text[56];
    volatile VIP_UINT64 complete;
};
struct place {
    VIP_UINT64 address;
    VIP_MEM_HANDLE handle;
};

static struct {
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR descriptor;
    struct board board;
} room;
static VIP_NIC_HANDLE nic;
static VIP_VI_HANDLE vi;
static VIP_MEM_HANDLE memory;
static VIP_MEM_ATTRIBUTES rights = {.EnableRdmaWrite = VIP_TRUE};
static VIP_VI_ATTRIBUTES theirs;
static VIP_VI_ATTRIBUTES ours = {.ReliabilityLevel = VIP_SERVICE_RELIABLE_RECEPTION,
                                 .MaxTransferSize = sizeof room.board,
                                 .EnableRdmaWrite = VIP_TRUE};
static union {
    VIP_NET_ADDRESS address;
    char bytes[128];
} here, there;

static void check(const char* call, VIP_RETURN code) {
    if (code == VIP_SUCCESS) return;
    fprintf(stderr, "rdma_put: %s: %s\n", call, ViaReturnText(code));
    exit(1);
}

static void show(void) {
    const struct place place = {(VIP_UINT64)(size_t)&room.board, memory};
    VIP_CONN_HANDLE caller;
    CHECK(VipConnectWait(nic, &there.address, PATIENCE_MS, &here.address, &theirs, &caller));
    CHECK(ViaConnectAccept(caller, vi, &place, sizeof place));
    while (room.board.complete == 0) sched_yield();
    printf("%s\n", room.board.text);
}

static void put(const char* text) {
    VIP_RETURN code;
    do code = VipConnectRequest(vi, &here.address, &there.address, PATIENCE_MS, &theirs);
    while (code == VIP_NO_MATCH && poll(NULL, 0, 10) == 0); /* nobody listens yet */
    check("VipConnectRequest", code);
    struct place place = {0, 0};
    VIP_UINT32 length = sizeof place;
    CHECK(ViaQueryPrivateData(vi, &place, &length));

    snprintf(room.board.text, sizeof room.board.text, "%s", text);
    room.board.complete = 1;
    VIP_DESCRIPTOR* descriptor = &room.descriptor;
    descriptor->CS.SegCount = 2;
    descriptor->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
    descriptor->CS.Length = sizeof room.board;
    descriptor->DS[0].Remote.Data.AddressBits = place.address;
    descriptor->DS[0].Remote.Handle = place.handle;
    descriptor->DS[1].Local.Data.Address = &room.board;
    descriptor->DS[1].Local.Handle = memory;
    descriptor->DS[1].Local.Length = sizeof room.board;
    CHECK(VipPostSend(vi, descriptor, memory));
    CHECK(VipSendWait(vi, PATIENCE_MS, &descriptor)); /* now it is in the other's memory */
}

int main(int argc, char** argv) {
    const int shows = argc == 2 && strcmp(argv[1], "show") == 0;
    if (!shows && (argc != 3 || strcmp(argv[1], "put") != 0))
        return fprintf(stderr, "usage: rdma_put show\n       rdma_put put TEXT\n"), 2;
    CHECK(VipOpenNic("shm", &nic));
    CHECK(VipRegisterMem(nic, &room, sizeof room, &rights, &memory));
    CHECK(VipCreateVi(nic, &ours, NULL, NULL, &vi));
    CHECK(VipNSGetHostByName(nic, "localhost", &there.address, 0));
    there.address.DiscriminatorLen = 3;
    memcpy(there.bytes + 4 + there.address.HostAddressLen, "put", 3);
    shows ? show() : put(argv[2]);
    CHECK(VipCloseNic(nic));
    return 0;
}

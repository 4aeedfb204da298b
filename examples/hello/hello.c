/* One message from one process to another. In two terminals, within ten seconds of each other:
 *     hello hear
 *     hello say
 * A second argument names the NIC; without it, it is shm. Whoever leaves first ends the connection,
 * which the library logs on the other side: this program sets no error handler. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vipl.h>

#define PATIENCE_MS 10000
#define CHECK(call) check(#call, (call))

/* Everything that the NIC reads or writes: one region. A descriptor begins on 64 bytes. */
static struct {
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR descriptor;
    char text[64];
} room;

static VIP_NIC_HANDLE nic;
static VIP_VI_HANDLE vi;
static VIP_MEM_HANDLE memory;
static VIP_VI_ATTRIBUTES ours = {.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
                                 .MaxTransferSize = sizeof room.text};
static VIP_VI_ATTRIBUTES theirs;
static VIP_DESCRIPTOR* done;
/* Addresses have no fixed length: host bytes, and behind them the listener's name. */
static union {
    VIP_NET_ADDRESS address;
    char bytes[128];
} here, there;

static void check(const char* call, VIP_RETURN code) {
    if (code == VIP_SUCCESS) return;
    fprintf(stderr, "hello: %s: VIP_RETURN %d\n", call, (int)code);
    exit(1);
}

static void name_listener(VIP_NET_ADDRESS* address, const char* name) {
    address->DiscriminatorLen = (VIP_UINT16)strlen(name);
    memcpy((char*)address + 4 + address->HostAddressLen, name, strlen(name));
}

static void describe(size_t length) {
    room.descriptor.CS.SegCount = 1;
    room.descriptor.CS.Control = VIP_CONTROL_OP_SENDRECV;
    room.descriptor.CS.Length = (VIP_UINT32)length;
    room.descriptor.DS[0].Local.Data.Address = room.text;
    room.descriptor.DS[0].Local.Handle = memory;
    room.descriptor.DS[0].Local.Length = (VIP_UINT32)length;
}

/* While nobody listens the answer is VIP_NO_MATCH, at once. */
static VIP_RETURN request(void) {
    const struct timespec pause = {0, 10000000};
    VIP_RETURN code = VIP_NO_MATCH;
    for (int tries = 0; code == VIP_NO_MATCH && tries < PATIENCE_MS / 10; ++tries) {
        if (tries > 0) nanosleep(&pause, NULL);
        code = VipConnectRequest(vi, &here.address, &there.address, PATIENCE_MS, &theirs);
    }
    return code;
}

static void say(const char* name, const char* text) {
    CHECK(VipOpenNic(name, &nic));
    CHECK(VipRegisterMem(nic, &room, sizeof room, NULL, &memory));
    CHECK(VipCreateVi(nic, &ours, NULL, NULL, &vi));
    CHECK(VipNSGetHostByName(nic, "localhost", &there.address, 0));
    name_listener(&there.address, "hello");
    CHECK(request());
    describe(strlen(strcpy(room.text, text)));
    CHECK(VipPostSend(vi, &room.descriptor, memory));
    CHECK(VipSendWait(vi, PATIENCE_MS, &done));
    CHECK(VipCloseNic(nic));
}

static void hear(const char* name) {
    VIP_CONN_HANDLE caller;
    CHECK(VipOpenNic(name, &nic));
    CHECK(VipRegisterMem(nic, &room, sizeof room, NULL, &memory));
    CHECK(VipCreateVi(nic, &ours, NULL, NULL, &vi));
    describe(sizeof room.text);
    CHECK(VipPostRecv(vi, &room.descriptor, memory));
    name_listener(&here.address, "hello");
    CHECK(VipConnectWait(nic, &here.address, PATIENCE_MS, &there.address, &theirs, &caller));
    CHECK(VipConnectAccept(caller, vi));
    CHECK(VipRecvWait(vi, PATIENCE_MS, &done));
    printf("%.*s\n", (int)done->CS.Length, room.text);
    CHECK(VipCloseNic(nic));
}

int main(int argc, char** argv) {
    const char* name = argc > 2 ? argv[2] : "shm";
    if (argc > 1 && strcmp(argv[1], "hear") == 0) return hear(name), 0;
    if (argc > 1 && strcmp(argv[1], "say") == 0) return say(name, "Hello, neighbour!"), 0;
    return fprintf(stderr, "usage: hello hear|say [NIC]\n"), 2;
}

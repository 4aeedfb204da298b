/* One thread hears many connections: the receives of all VIs complete on one queue.
 * The clients are children of the program, forked before the NIC is opened. */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <via/via.h>

#define CLIENTS 5
#define MESSAGES 4 /* of each client; so many receives are posted before it can send */
#define PATIENCE_MS 10000
#define CHECK(call) check(#call, (call))
static struct message {
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR descriptor;
    char text[64];
} room[CLIENTS * MESSAGES];
static VIP_NIC_HANDLE nic;
static VIP_MEM_HANDLE memory;
static VIP_VI_ATTRIBUTES theirs;
static VIP_VI_ATTRIBUTES ours = {VIP_SERVICE_RELIABLE_DELIVERY, 64, NULL, NULL, 0, 0};
static union {
    VIP_NET_ADDRESS address;
    char bytes[128];
} here, there;

static void check(const char* call, VIP_RETURN code) {
    if (code == VIP_SUCCESS) return;
    fprintf(stderr, "completion_queue: %s: %s\n", call, ViaReturnText(code));
    exit(1);
}
static void ignore(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) { (void)context, (void)error; }

static void prepare(pid_t server) {
    CHECK(VipOpenNic("shm", &nic));
    CHECK(VipErrorCallback(nic, NULL, ignore)); /* that a client leaves is no news */
    CHECK(VipRegisterMem(nic, room, sizeof room, NULL, &memory));
    CHECK(VipNSGetHostByName(nic, "localhost", &there.address, 0));
    there.address.DiscriminatorLen = sizeof server; /* runs beside each other do not meet */
    memcpy(there.bytes + 4 + there.address.HostAddressLen, &server, sizeof server);
}

static VIP_DESCRIPTOR* describe(struct message* message, size_t length) {
    message->descriptor.CS.SegCount = 1;
    message->descriptor.CS.Length = (VIP_UINT32)length;
    message->descriptor.DS[0].Local =
        (VIP_DATA_SEGMENT){{.Address = message->text}, memory, (VIP_UINT32)length};
    return &message->descriptor;
}

static void client(int number) {
    VIP_VI_HANDLE vi;
    VIP_DESCRIPTOR* done;
    VIP_RETURN code;
    CHECK(VipCreateVi(nic, &ours, NULL, NULL, &vi));
    do code = VipConnectRequest(vi, &here.address, &there.address, PATIENCE_MS, &theirs);
    while (code == VIP_NO_MATCH && poll(NULL, 0, 10) == 0); /* nobody listens yet */
    check("VipConnectRequest", code);
    for (int n = 0; n < MESSAGES; ++n) {
        const int length = sprintf(room[0].text, "client %d, message %d", number, n);
        CHECK(VipPostSend(vi, describe(&room[0], (size_t)length), memory));
        CHECK(VipSendWait(vi, PATIENCE_MS, &done));
    }
}

static void server(void) {
    VIP_CQ_HANDLE queue;
    VIP_VI_HANDLE vi;
    VIP_CONN_HANDLE caller;
    VIP_BOOLEAN receive;
    VIP_DESCRIPTOR* done;
    CHECK(VipCreateCQ(nic, 64, &queue));
    for (int n = 0; n < CLIENTS; ++n) {
        CHECK(VipCreateVi(nic, &ours, NULL, queue, &vi)); /* sends complete on the VI itself */
        for (struct message* m = &room[n * MESSAGES]; m < &room[(n + 1) * MESSAGES]; ++m)
            CHECK(VipPostRecv(vi, describe(m, sizeof m->text), memory));
        CHECK(VipConnectWait(nic, &there.address, PATIENCE_MS, &here.address, &theirs, &caller));
        CHECK(VipConnectAccept(caller, vi));
    }
    for (int n = 0; n < CLIENTS * MESSAGES; ++n) {
        CHECK(VipCQWait(queue, PATIENCE_MS, &vi, &receive)); /* says where one is done */
        CHECK(VipRecvDone(vi, &done));
        printf("%.*s\n", (int)done->CS.Length, ((struct message*)done)->text);
    }
}

int main(int argc, char** argv) {
    const pid_t me = getpid();
    if (argc > 1) return fprintf(stderr, "usage: %s\n", argv[0]), 2;
    int number = 0, status, failed = 0;
    while (number < CLIENTS && fork() != 0) ++number;
    prepare(me);
    getpid() == me ? server() : client(number);
    CHECK(VipCloseNic(nic));
    while (wait(&status) > 0) failed |= status;
    return failed != 0;
}

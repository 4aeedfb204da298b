/* A server whose one loop hears all connections and whatever else has a descriptor.
 *     epoll_server               answers in capitals; ends when its standard input does
 * 'coroutine_echo ask TEXT' asks. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <via/via.h>

#define CHECK(call) check(#call, (call))
static struct client {
    _Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR receive, send;
    char in[64], out[64];
} clients[100];
static size_t left = sizeof clients / sizeof *clients;
static VIP_NIC_HANDLE nic;
static VIP_CQ_HANDLE queue;
static VIA_LISTENER_HANDLE listener;
static VIP_MEM_HANDLE memory;
static VIP_VI_ATTRIBUTES ours = {VIP_SERVICE_RELIABLE_DELIVERY, 64, NULL, NULL, 0, 0};
static union {
    VIP_NET_ADDRESS address;
    char bytes[128];
} remote, local = {.address = {.DiscriminatorLen = 4}};

static void check(const char* call, VIP_RETURN code) {
    if (code == VIP_SUCCESS) return;
    fprintf(stderr, "epoll_server: %s: %s\n", call, ViaReturnText(code));
    _exit(1);
}
static void ignore(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) { (void)context, (void)error; }

static VIP_DESCRIPTOR* describe(VIP_DESCRIPTOR* descriptor, char* text, size_t length) {
    descriptor->CS.SegCount = 1;
    descriptor->CS.Length = (VIP_UINT32)length;
    descriptor->DS[0].Local = (VIP_DATA_SEGMENT){{.Address = text}, memory, (VIP_UINT32)length};
    return descriptor;
}

/* Each slot serves one client; after the last one nobody is accepted any more. */
static void accept_clients(void) {
    VIP_VI_HANDLE vi;
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE caller;
    VIP_UINT32 none = 0; /* no private data is wanted */
    while (left > 0 && ViaListenerWait(listener, 0, &remote.address, &theirs, &caller, NULL,
                                       &none) == VIP_SUCCESS) {
        struct client* c = &clients[--left];
        CHECK(VipCreateVi(nic, &ours, queue, queue, &vi));
        CHECK(VipPostRecv(vi, describe(&c->receive, c->in, sizeof c->in), memory));
        if (VipConnectAccept(caller, vi) != VIP_SUCCESS) VipConnectReject(caller);
        if (left == 0) CHECK(ViaDestroyListener(listener));
    }
}

static void serve(VIP_VI_HANDLE vi, VIP_BOOLEAN is_receive) {
    VIP_DESCRIPTOR* done;
    if ((is_receive ? VipRecvDone : VipSendDone)(vi, &done) != VIP_SUCCESS) {
        CHECK(VipDisconnect(vi)); /* the client has gone */
        while (VipRecvDone(vi, &done) != VIP_NOT_DONE && done != NULL) continue;
        while (VipSendDone(vi, &done) != VIP_NOT_DONE && done != NULL) continue;
        CHECK(VipDestroyVi(vi));
    } else if (is_receive) {
        struct client* c = (struct client*)done;
        const size_t length = done->CS.Length;
        for (size_t n = 0; n < length; ++n) c->out[n] = (char)toupper((unsigned char)c->in[n]);
        CHECK(VipPostRecv(vi, describe(&c->receive, c->in, sizeof c->in), memory));
        CHECK(VipPostSend(vi, describe(&c->send, c->out, length), memory));
    }
}

static void watch(int loop, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    if (epoll_ctl(loop, EPOLL_CTL_ADD, descriptor, &event) == 0) return;
    if (errno != EPERM) perror("epoll_ctl"), exit(1); /* a file: it never ends */
}

int main(int argc, char** argv) {
    int loop = epoll_create1(EPOLL_CLOEXEC), completions, requests;
    struct epoll_event event;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN is_receive;
    if (argc > 1) return fprintf(stderr, "usage: %s\n", argv[0]), 2;
    memcpy(local.address.HostAddress, "echo", 4);
    CHECK(VipOpenNic("shm", &nic));
    CHECK(VipErrorCallback(nic, NULL, ignore)); /* that a client leaves is no news */
    CHECK(VipRegisterMem(nic, clients, sizeof clients, NULL, &memory));
    CHECK(VipCreateCQ(nic, 1024, &queue));
    CHECK(ViaCreateListener(nic, &local.address, 64, &listener));
    CHECK(ViaCQDescriptor(queue, &completions));
    CHECK(ViaListenerDescriptor(listener, &requests));
    watch(loop, completions), watch(loop, requests), watch(loop, STDIN_FILENO);
    for (;;) {
        if (epoll_wait(loop, &event, 1, -1) < 1) continue;
        if (event.data.fd == STDIN_FILENO && getchar() == EOF) return VipCloseNic(nic) != 0;
        while (VipCQDone(queue, &vi, &is_receive) == VIP_SUCCESS) serve(vi, is_receive);
        accept_clients();
    }
}

/* A program for tests of `via lab exec`: it opens a NIC, and then polls memory that nobody writes,
   without a call of VIPL. With an argument it waits within VIPL instead, without end. */
#include <string.h>
#include <vipl.h>

static int wait_without_end(VIP_NIC_HANDLE nic) {
    struct {
        VIP_NET_ADDRESS address;
        VIP_UINT8 bytes[64];
    } here, there;
    VIP_VI_ATTRIBUTES theirs;
    VIP_CONN_HANDLE caller;
    memset(&here, 0, sizeof here);
    VipNSInit(nic, NULL);
    if (VipNSGetHostByName(nic, "localhost", &here.address, 0) != VIP_SUCCESS) return 1;
    here.address.DiscriminatorLen = 1;
    here.address.HostAddress[here.address.HostAddressLen] = 'x';
    return VipConnectWait(nic, &here.address, VIP_INFINITE, &there.address, &theirs, &caller) !=
           VIP_SUCCESS;
}

int main(int count, char** words) {
    VIP_NIC_HANDLE nic;
    volatile int written = 0;
    (void)words;
    if (VipOpenNic("shm", &nic) != VIP_SUCCESS) return 1;
    if (count > 1) return wait_without_end(nic);
    while (!written) {
    }
    return 0;
}

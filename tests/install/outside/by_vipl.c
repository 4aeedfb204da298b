/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <vipl.h>

int main(void) {
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES attributes;
    VIP_VI_ATTRIBUTES wanted = {0};
    VIP_VI_HANDLE vi;
    if (VipOpenNic("loopback", &nic) != VIP_SUCCESS) return 1;
    if (VipQueryNic(nic, &attributes) != VIP_SUCCESS) return 1;
    wanted.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    wanted.MaxTransferSize = 1000;
    if (VipCreateVi(nic, &wanted, NULL, NULL, &vi) != VIP_SUCCESS) return 1;
    if (VipDestroyVi(vi) != VIP_SUCCESS) return 1;
    printf("%s\n", attributes.Name);
    return VipCloseNic(nic) == VIP_SUCCESS ? 0 : 1;
}

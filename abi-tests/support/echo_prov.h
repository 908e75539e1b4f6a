/* What the echo provider reports in domain_attr->cq_cnt: fields of later ABI versions that reached it empty. */
#define ECHO_NO_DOMAIN_1_1 0x01
#define ECHO_NO_EP_1_1     0x02
#define ECHO_NO_NIC_1_2    0x04
#define ECHO_NO_DOMAIN_1_3 0x08
#define ECHO_NO_TX_1_3     0x10
#define ECHO_NO_DOMAIN_1_7 0x20
#define ECHO_NO_DOMAIN_1_8 0x40
#define ECHO_NO_DOMAIN_1_9 0x80

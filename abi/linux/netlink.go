package linux

// Numbers of rtnetlink(7).
//
// headers: linux/netlink.h linux/rtnetlink.h linux/if_link.h linux/if_addr.h linux/neighbour.h linux/if_arp.h linux/if.h
const (
	ARPHRD_ETHER    = 1
	ARPHRD_LOOPBACK = 0x304
	ARPHRD_NONE     = 0xfffe

	IFA_ADDRESS     = 1
	IFA_F_PERMANENT = 0x80
	IFA_LABEL       = 3
	IFA_LOCAL       = 2

	IFF_BROADCAST   = 2
	IFF_LOOPBACK    = 8
	IFF_LOWER_UP    = 0x10000
	IFF_MULTICAST   = 0x1000
	IFF_POINTOPOINT = 0x10
	IFF_RUNNING     = 0x40
	IFF_UP          = 1

	IFLA_ADDRESS           = 1
	IFLA_BROADCAST         = 2
	IFLA_IFNAME            = 3
	IFLA_MTU               = 4
	IFLA_QDISC             = 6
	IFLA_STATS             = 7
	IFLA_TXQLEN            = 13
	IFLA_OPERSTATE         = 16
	IFLA_LINKMODE          = 17
	IFLA_STATS64           = 23
	IFLA_GROUP             = 27
	NDA_DST                = 1
	NDA_LLADDR             = 2
	NETLINK_GET_STRICT_CHK = 12
	NETLINK_KOBJECT_UEVENT = 15
	NETLINK_ROUTE          = 0
	NETLINK_SOCK_DIAG      = 4
	NLMSG_DONE             = 3
	NLMSG_ERROR            = 2

	NLM_F_ACK     = 4
	NLM_F_DUMP    = 0x300
	NLM_F_MULTI   = 2
	NLM_F_REQUEST = 1

	RTA_CACHEINFO = 12
	RTA_DST       = 1
	RTA_GATEWAY   = 5
	RTA_OIF       = 4
	RTA_PREFSRC   = 7
	RTA_PRIORITY  = 6
	RTA_TABLE     = 15

	RTM_BASE     = 0x10
	RTM_GETADDR  = 22
	RTM_GETLINK  = 18
	RTM_GETNEIGH = 30
	RTM_GETQDISC = 38
	RTM_GETROUTE = 26
	RTM_GETRULE  = 34
	RTM_NEWADDR  = 20
	RTM_NEWLINK  = 0x10
	RTM_NEWNEIGH = 28
	RTM_NEWROUTE = 24
	RTM_NEWRULE  = 32

	RTN_LOCAL     = 2
	RTN_MULTICAST = 5
	RTN_UNICAST   = 1

	RTPROT_KERNEL = 2
	RTPROT_STATIC = 4
	RTPROT_UNSPEC = 0

	RT_SCOPE_HOST     = 254
	RT_SCOPE_LINK     = 253
	RT_SCOPE_UNIVERSE = 0
	RT_TABLE_DEFAULT  = 253
	RT_TABLE_LOCAL    = 255
	RT_TABLE_MAIN     = 254
)

// Attributes and actions of rules.
//
// headers: linux/fib_rules.h
const (
	FRA_PRIORITY           = 6
	FRA_SUPPRESS_PREFIXLEN = 14
	FRA_TABLE              = 15
	FRA_PROTOCOL           = 21
	FR_ACT_TO_TBL          = 1
)

// Numbers of sock_diag(7).
//
// headers: linux/sock_diag.h linux/inet_diag.h linux/unix_diag.h
const (
	INET_DIAG_CONG      = 4
	INET_DIAG_INFO      = 2
	INET_DIAG_SKMEMINFO = 7
	INET_DIAG_SKV6ONLY  = 11
	INET_DIAG_TCLASS    = 6
	INET_DIAG_TOS       = 5

	SOCK_DIAG_BY_FAMILY = 20

	UDIAG_SHOW_NAME  = 1
	UDIAG_SHOW_PEER  = 4
	UDIAG_SHOW_RQLEN = 0x10
	UDIAG_SHOW_UID   = 0x40
	UNIX_DIAG_NAME   = 0
	UNIX_DIAG_PEER   = 2
	UNIX_DIAG_RQLEN  = 4
	UNIX_DIAG_UID    = 7
)

// Families of multicast routes in requests of rtnetlink(7).
const (
	RTNL_FAMILY_IPMR  = 128
	RTNL_FAMILY_IP6MR = 129
)

package linux

import (
	"fmt"
	"strings"
	"testing"
)

// The constants list the C headers that declare the structures, by source file.
const (
	fileHeaders    = "fcntl.h sys/stat.h linux/stat.h sys/statfs.h linux/openat2.h poll.h sys/epoll.h"
	socketHeaders  = "sys/socket.h sys/uio.h linux/filter.h"
	timeHeaders    = "sys/time.h time.h sys/timex.h utime.h"
	processHeaders = "sys/resource.h sys/utsname.h linux/capability.h"
)

var (
	timex = &Timex{1, 2, 3, 4, 5, 6, 7, 8, 9, Timeval{10, 11}, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}
	stat  = &Stat{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, Timespec{11, 12}, Timespec{13, 14}, Timespec{15, 16}}
)

// TestSizes compares the sizes for which this package has no type.
func TestSizes(t *testing.T) {
	const headers = "sys/socket.h netinet/in.h linux/un.h linux/netlink.h linux/rtnetlink.h linux/if_addr.h linux/if_packet.h linux/filter.h net/if.h " +
		"asm/ioctls.h asm/termbits.h asm/ioctl.h stddef.h"
	sizes := map[string]int{
		"sizeof(struct sockaddr_in)": SizeofSockaddrIn, "sizeof(struct sockaddr_in6)": SizeofSockaddrIn6,
		"sizeof(struct sockaddr_nl)": SizeofSockaddrNl, "sizeof(struct sockaddr_ll)": SizeofSockaddrLl,
		"sizeof(struct sockaddr_storage)": SizeofSockaddrStorage, "sizeof(((struct sockaddr_un *)0)->sun_path)": SizeofSunPath,
		"sizeof(struct ucred)": SizeofUcred, "sizeof(struct linger)": SizeofLinger, "sizeof(struct ifreq)": SizeofIfreq, "sizeof(struct ifconf)": SizeofIfconf,
		"sizeof(struct group_req)": SizeofGroupReq, "sizeof(struct group_source_req)": SizeofGroupSourceReq,
		"sizeof(struct ip_mreq_source)": SizeofIPMreqSource, "sizeof(struct in_pktinfo)": SizeofInPktinfo,
		"sizeof(struct in6_pktinfo)": SizeofIn6Pktinfo, "sizeof(struct nlmsghdr)": SizeofNlMsghdr, "NLMSG_HDRLEN": NLMSG_HDRLEN,
		"sizeof(struct rtmsg)": SizeofRtMsg, "sizeof(struct rtattr)": SizeofRtAttr, "sizeof(struct ifinfomsg)": SizeofIfInfomsg,
		"sizeof(struct ifaddrmsg)": SizeofIfAddrmsg, "sizeof(struct nlmsgerr)": SizeofNlMsgerr,
		"sizeof(struct mmsghdr)": SizeofMmsghdr, "offsetof(struct mmsghdr, msg_len)": MmsghdrLen,
		"offsetof(struct msghdr, msg_name)": MsghdrName, "offsetof(struct msghdr, msg_namelen)": MsghdrNamelen,
		"offsetof(struct msghdr, msg_iov)": MsghdrIov, "offsetof(struct msghdr, msg_control)": MsghdrControl,
		"offsetof(struct msghdr, msg_controllen)": MsghdrControllen, "offsetof(struct msghdr, msg_flags)": MsghdrFlags,
		"sizeof(struct sock_filter)": SizeofSockFilter, "offsetof(struct sock_fprog, filter)": SockFprogFilter,
		"sizeof(struct termios)": SizeofTermios, "sizeof(struct termios2)": SizeofTermios2,
		"offsetof(struct termios2, c_cc)": termiosChars, "offsetof(struct termios2, c_ispeed)": SizeofTermios,
	}
	var names []string
	var body strings.Builder
	for c := range sizes {
		names = append(names, c)
		fmt.Fprintf(&body, "printf(\"%%zu\\n\", (size_t)(%s));\n", c)
	}
	for i, line := range strings.Fields(compileAndRun(t, strings.Fields(headers), body.String())) {
		if want := fmt.Sprint(sizes[names[i]]); line != want {
			t.Errorf("%s is %s in C, %s here", names[i], line, want)
		}
	}
}

// TestAllocs: encoding and decoding allocate nothing.
func TestAllocs(t *testing.T) {
	var room [SizeofTimex]byte
	if n := testing.AllocsPerRun(10, func() {
		stat.Put(room[:])
		s := ParseStat(room[:])
		timex.Put(room[:])
		x := ParseTimex(room[:])
		Timespec{s.Size, x.Tick}.Put(room[:])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestNanoTimespec: for a time before 1970, the field of nanoseconds is positive and is added to the negative seconds
// (as in clock_gettime(2)).
func TestNanoTimespec(t *testing.T) {
	for nano, want := range map[int64]Timespec{0: {}, 1: {0, 1}, -1: {-1, 999_999_999}, 3_000_000_004: {3, 4}} {
		got := NanoTimespec(nano)
		if got != want || got.Nano() != nano {
			t.Errorf("%d is %+v, want %+v", nano, got, want)
		}
	}
}

// TestTimeval: a time before 1970 is rounded down, so that microseconds are positive.
func TestTimeval(t *testing.T) {
	for nano, want := range map[int64]Timeval{0: {}, 999: {}, 1000: {0, 1}, -1: {-1, 999_999}, 2_000_003_999: {2, 3}} {
		got := NanoTimeval(nano)
		if got != want || got.Nano() > nano || got.Nano() <= nano-1000 {
			t.Errorf("%d is %+v, want %+v", nano, got, want)
		}
	}
}

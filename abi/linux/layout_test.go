package linux

import (
	"encoding/hex"
	"fmt"
	"reflect"
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

// layouts has each structure as C code and as a Go value. Both set the fields to the same values, and each field to a
// different value.
var layouts = []struct {
	headers string
	c       string // C code that declares and fills the variable s
	put     func(b []byte)
	size    int
	parse   func(b []byte) any // decodes the bytes; nil: this package only encodes the structure
	want    any
}{
	{timeHeaders, "struct timespec s = {1, 2};", Timespec{1, 2}.Put, SizeofTimespec,
		func(b []byte) any { return ParseTimespec(b) }, Timespec{1, 2}},
	{timeHeaders, "struct timeval s = {-1, 2};", Timeval{-1, 2}.Put, SizeofTimeval,
		func(b []byte) any { return ParseTimeval(b) }, Timeval{-1, 2}},
	{timeHeaders, "struct utimbuf s = {3, 4};", nil, SizeofUtimbuf,
		func(b []byte) any { return ParseUtimbuf(b) }, Utimbuf{3, 4}},
	{timeHeaders, "struct itimerspec s = {{1, 2}, {3, 4}};", Itimerspec{Timespec{1, 2}, Timespec{3, 4}}.Put, SizeofItimerspec,
		func(b []byte) any { return ParseItimerspec(b) }, Itimerspec{Timespec{1, 2}, Timespec{3, 4}}},
	{timeHeaders, `struct timex s; memset(&s, 0, sizeof s); s.modes = 1; s.offset = 2; s.freq = 3; s.maxerror = 4;
		s.esterror = 5; s.status = 6; s.constant = 7; s.precision = 8; s.tolerance = 9; s.time.tv_sec = 10; s.time.tv_usec = 11;
		s.tick = 12; s.ppsfreq = 13; s.jitter = 14; s.shift = 15; s.stabil = 16; s.jitcnt = 17; s.calcnt = 18; s.errcnt = 19;
		s.stbcnt = 20; s.tai = 21;`, timex.Put, SizeofTimex, func(b []byte) any { return ParseTimex(b) }, timex},
	{fileHeaders, `struct stat s; memset(&s, 0, sizeof s); s.st_dev = 1; s.st_ino = 2; s.st_nlink = 3; s.st_mode = 4; s.st_uid = 5;
		s.st_gid = 6; s.st_rdev = 7; s.st_size = 8; s.st_blksize = 9; s.st_blocks = 10; s.st_atim.tv_sec = 11; s.st_atim.tv_nsec = 12;
		s.st_mtim.tv_sec = 13; s.st_mtim.tv_nsec = 14; s.st_ctim.tv_sec = 15; s.st_ctim.tv_nsec = 16;`,
		stat.Put, SizeofStat, func(b []byte) any { return ParseStat(b) }, stat},
	{fileHeaders, `struct statx s; memset(&s, 0, sizeof s); s.stx_mask = 1; s.stx_blksize = 2; s.stx_nlink = 3; s.stx_uid = 4;
		s.stx_gid = 5; s.stx_mode = 6; s.stx_ino = 7; s.stx_size = 8; s.stx_blocks = 9; s.stx_atime.tv_sec = 10;
		s.stx_atime.tv_nsec = 11; s.stx_ctime.tv_sec = 12; s.stx_ctime.tv_nsec = 13; s.stx_mtime.tv_sec = 14;
		s.stx_mtime.tv_nsec = 15; s.stx_rdev_major = 16; s.stx_rdev_minor = 17; s.stx_dev_major = 18; s.stx_dev_minor = 19;`,
		(&Statx{1, 2, 3, 4, 5, 6, 7, 8, 9, Timespec{10, 11}, Timespec{12, 13}, Timespec{14, 15}, 16, 17, 18, 19}).Put, SizeofStatx, nil, nil},
	{fileHeaders, `struct statfs s; memset(&s, 0, sizeof s); s.f_type = 1; s.f_bsize = 2; s.f_blocks = 3; s.f_bfree = 4;
		s.f_bavail = 5; s.f_files = 6; s.f_ffree = 7; s.f_namelen = 8; s.f_frsize = 9; s.f_flags = 10;`,
		(&Statfs{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}).Put, SizeofStatfs, nil, nil},
	{fileHeaders, `struct flock s; memset(&s, 0, sizeof s); s.l_type = 1; s.l_whence = 2; s.l_start = 3; s.l_len = 4; s.l_pid = 5;`,
		Flock{1, 2, 3, 4, 5}.Put, SizeofFlock, func(b []byte) any { return ParseFlock(b) }, Flock{1, 2, 3, 4, 5}},
	{fileHeaders, "struct open_how s = {1, 2, 3};", nil, SizeofOpenHow, func(b []byte) any { return ParseOpenHow(b) }, OpenHow{1, 2, 3}},
	{fileHeaders, "struct pollfd s = {-1, 2, 3};", PollFD{-1, 2, 3}.Put, SizeofPollFD, func(b []byte) any { return ParsePollFD(b) }, PollFD{-1, 2, 3}},
	{fileHeaders, "struct epoll_event s; s.events = 1; s.data.u64 = 0x123456789a;", EpollEvent{1, 0x123456789a}.Put, SizeofEpollEvent,
		func(b []byte) any { return ParseEpollEvent(b) }, EpollEvent{1, 0x123456789a}},
	{"asm/termbits.h", `struct termios2 s = {1, 2, 3, 4, 5, {6, 7}, 8, 9};`, termios2.Put, SizeofTermios2,
		func(b []byte) any { return ParseTermios(b) }, termios2},
	{"asm/termbits.h", `struct termios s = {1, 2, 3, 4, 5, {6, 7}};`, termios2.Put, SizeofTermios, nil, nil},
	{"asm/termios.h", `struct winsize s = {1, 2, 3, 4};`, Winsize{1, 2, 3, 4}.Put, SizeofWinsize,
		func(b []byte) any { return ParseWinsize(b) }, Winsize{1, 2, 3, 4}},
	{socketHeaders, "struct iovec s = {(void *)1, 2};", nil, SizeofIovec, func(b []byte) any { return ParseIovec(b) }, Iovec{1, 2}},
	{socketHeaders, `struct msghdr s; memset(&s, 0, sizeof s); s.msg_name = (void *)1; s.msg_namelen = 2; s.msg_iov = (void *)3;
		s.msg_iovlen = 4; s.msg_control = (void *)5; s.msg_controllen = 6; s.msg_flags = 7;`,
		nil, SizeofMsghdr, func(b []byte) any { return ParseMsghdr(b) }, Msghdr{1, 2, 3, 4, 5, 6, 7}},
	{socketHeaders, "struct cmsghdr s = {1, 2, 3};", func(b []byte) { Cmsghdr{1, 2, 3}.Append(b[:0]) }, SizeofCmsghdr,
		func(b []byte) any { return ParseCmsghdr(b) }, Cmsghdr{1, 2, 3}},
	{socketHeaders, "struct sock_fprog s; memset(&s, 0, sizeof s); s.len = 1; s.filter = (void *)2;", nil, SizeofSockFprog,
		func(b []byte) any { return ParseSockFprog(b) }, SockFprog{1, 2}},
	{processHeaders, "struct rlimit s = {1, 2};", Rlimit{1, 2}.Put, SizeofRlimit, func(b []byte) any { return ParseRlimit(b) }, Rlimit{1, 2}},
	{processHeaders, `struct utsname s; memset(&s, 0, sizeof s); strcpy(s.sysname, "a"); strcpy(s.nodename, "bb"); strcpy(s.release, "c");
		strcpy(s.version, "d"); strcpy(s.machine, "e"); strcpy(s.domainname, "f");`,
		(&Utsname{"a", "bb", "c", "d", "e", "f"}).Put, SizeofUtsname, nil, nil},
	{processHeaders, "struct __user_cap_header_struct s = {1, 2};", CapHeader{1, 2}.Put, SizeofCapHeader,
		func(b []byte) any { return ParseCapHeader(b) }, CapHeader{1, 2}},
	{processHeaders, "struct __user_cap_data_struct s[2] = {{1, 2, 3}, {4, 5, 6}};", capData.Put, SizeofCapData,
		func(b []byte) any { return ParseCapData(b) }, capData},
}

var (
	timex   = &Timex{1, 2, 3, 4, 5, 6, 7, 8, 9, Timeval{10, 11}, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}
	stat    = &Stat{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, Timespec{11, 12}, Timespec{13, 14}, Timespec{15, 16}}
	capData = CapData{Effective: 1 | 4<<32, Permitted: 2 | 5<<32, Inheritable: 3 | 6<<32}
)

// TestLayouts compares the bytes of structures filled by C with the bytes that this package encodes.
func TestLayouts(t *testing.T) {
	byHeaders := map[string][]int{}
	for i, l := range layouts {
		byHeaders[l.headers] = append(byHeaders[l.headers], i)
	}
	for headers, list := range byHeaders {
		var body strings.Builder
		for _, i := range list {
			fmt.Fprintf(&body, "{ %s for (size_t i = 0; i < sizeof s; i++) printf(\"%%02x\", ((unsigned char *)&s)[i]); printf(\"\\n\"); }\n", layouts[i].c)
		}
		lines := strings.Fields(compileAndRun(t, strings.Fields(headers), body.String()))
		for n, i := range list {
			compareLayout(t, i, lines[n])
		}
	}
}

func compareLayout(t *testing.T, i int, line string) {
	l := layouts[i]
	want, err := hex.DecodeString(line)
	if err != nil || len(want) != l.size {
		t.Errorf("%s has %d bytes, not %d (%v)", l.c, len(want), l.size, err)
		return
	}
	if l.put != nil {
		got := make([]byte, l.size)
		l.put(got)
		if string(got) != string(want) {
			t.Errorf("%s\nencodes as %x\nin C it is  %x", l.c, got, want)
		}
	}
	if l.parse == nil {
		return
	}
	expected := reflect.ValueOf(l.want)
	if expected.Kind() == reflect.Pointer {
		expected = expected.Elem()
	}
	if got := l.parse(want); got != expected.Interface() {
		t.Errorf("%s\ndecodes as %+v", l.c, got)
	}
}

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
		"sizeof(struct termios)": SizeofTermios, "sizeof(struct termios2)": SizeofTermios2, "8": SizeofWinsize,
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

// termios2 is the Go value for struct termios2 in layouts.
var termios2 = Termios{Input: 1, Output: 2, Control: 3, Local: 4, Discipline: 5, Chars: [NCCS]uint8{6, 7}, InSpeed: 8, OutSpeed: 9}

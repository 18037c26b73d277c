//go:build !race

package unikernel

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// filtered is the reason why a call returns ENOSYS: the filter of a process rejects it (package seal).
const filtered = "the filter of a process rejects it"

// errnoDifferences lists calls whose errno may differ from Linux: the beginning of the output line, and the reason.
var errnoDifferences = []struct{ prefix, reason string }{
	{"epoll_ctl add: argument 1 ", "Linux finds out first that a regular file cannot be polled"},
	{"epoll_wait: argument 2 ", "addresses are looked at when there is an event to write"},
	{"execve of ", filtered},
	{"fchmod: argument 1 an e", "what is in no file system has no mode to refuse"},
	{"fchown: argument 1 an e", "as for fchmod"},
	{"fcntl F_GETLK: argument 1 ", "a range of length 0 at offset 0 is valid here whatever l_whence says; what is no file of the tree has no locks"},
	{"flock: argument 1 ", "what is no file of the tree has no locks"},
	{"fstatfs: argument 1 ", "pipes and sockets are in no file system"},
	{"getpgid of nobody", filtered},
	{"getsid of nobody", filtered},
	{"getdents64: argument 2 ", "addresses are looked at before the folder, which is at its end"},
	{"ioctl ", "an epoll set refuses requests as other files do; the argument of a terminal's request is read first"},
	{"linkat: argument 4 ", "both names are read before the first is looked up"},
	{"madvise of no kind", filtered},
	{"mmap: argument 5 ", "what is no file of the tree cannot be mapped"},
	{"mprotect of nothing: argument 2 the least", "the sum of address and length is not checked"},
	{"msync of nothing", "memory that is no shared mapping of a file is not looked at"},
	{"openat2 with flags: ", "the name is read first"},
	{"ptrace of nobody", "nobody can be traced"},
	{"read: argument 2 none", "the first page is refused before the file is asked, which is at its end"},
	{"readv", "lengths are checked before the descriptor's access mode, and their sum before addresses"},
	{"recvfrom: argument ", "addresses are looked at before the socket, which is empty"},
	{"recvmmsg: argument 1 a Unix socket", "what an earlier line sent differs"},
	{"rt_sigqueueinfo of nobody", filtered},
	{"sched_getaffinity: argument 1 ", filtered},
	{"sendfile: argument 2 ", "EINVAL has programs copy, whatever the file is"},
	{"sendto: argument ", "addresses are looked at before the socket, which has no peer"},
	{"socket: argument ", "the type is looked at before the family's protocols, and what is unknown is not supported"},
	{"timer_create of no kind", filtered},
	{"utimensat at no time: argument 2 ", "times are read before the name"},
	{"write: argument 1 an eventfd", "eight bytes are taken of what is longer"},
	{"writev: argument 1 an eventfd", "eight bytes are taken of what is longer"},
	{"writev from nowhere: ", "the bytes are read before the file is asked"},
}

// TestErrnos runs one program on Linux and as a Loam process. The program makes each call with bad
// addresses, lengths, counts and descriptors, and prints the errno of each.
func TestErrnos(t *testing.T) {
	before := modeOf(t, os.DevNull)
	onLinux := errnosOf(t, exec.Command(onThisHost(t, "errno")))
	if after := modeOf(t, os.DevNull); after != before {
		t.Errorf("on Linux, the program has changed the mode of %s from %v to %v", os.DevNull, before, after)
	}
	onLoam := errnosOf(t, guestCommand(NoNetwork, "errno"))
	if len(onLinux) < 1500 {
		t.Fatalf("only %d calls were tried", len(onLinux))
	}
	used := map[string]bool{}
	same := 0
	for what, want := range onLinux {
		got, ok := onLoam[what]
		if ok && got == want {
			same++
			continue
		}
		if prefix := differs(what); prefix != "" {
			used[prefix] = true
			continue
		}
		t.Errorf("%s: %s on Linux, %q on Loam", what, want, got)
	}
	t.Logf("%d of %d lines are the same", same, len(onLinux))
	for _, d := range errnoDifferences {
		if !used[d.prefix] {
			t.Errorf("%q does not differ any more: %s", d.prefix, d.reason)
		}
	}
}

func modeOf(t *testing.T, path string) os.FileMode {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Mode()
}

// differs returns the prefix in errnoDifferences that matches a line, or an empty string.
func differs(what string) string {
	for _, d := range errnoDifferences {
		if strings.HasPrefix(what, d.prefix) {
			return d.prefix
		}
	}
	return ""
}

// errnosOf runs the program and returns the errnos that it prints, by call.
func errnosOf(t *testing.T, cmd *exec.Cmd) map[string]string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	all := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if what, errno, ok := strings.Cut(lines.Text(), "\t"); ok {
			all[what] = errno
		}
	}
	return all
}

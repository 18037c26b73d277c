package procfs

import (
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/posix/credential"
)

// Each row of status shows the value of its field.
func TestRowsOfStatus(t *testing.T) {
	s := sample()
	s.Name, s.PID, s.TID, s.Parent, s.Group, s.Session, s.Tracer = "a\\b\nc", 11, 12, 13, 14, 15, 16
	s.Umask, s.TableSize, s.Threads, s.Queued, s.Limits[linux.RLIMIT_SIGPENDING].Cur = 0o27, 256, 3, 4, 5000
	s.Credentials = credential.Set{
		UID: 21, EUID: 22, SUID: 23, FSUID: 24, GID: 31, EGID: 32, SGID: 33, FSGID: 34, Groups: []uint32{41, 42}, NoNewPrivs: true,
		Inheritable: 0x51, Permitted: 0x52, Effective: 0x53, Bounding: 0x54, Ambient: 0x55,
	}
	s.Pending, s.SharedPending, s.Blocked, s.Ignored, s.Caught = 0x61, 0x62, 0x63, 0x64, 0x65
	s.Filtered, s.Filters, s.Voluntary, s.Involuntary = 2, 6, 71, 72
	const kB = 1 << 10
	s.Size, s.Locked, s.Resident, s.Anonymous, s.Data, s.Stack, s.Code = 900*kB, 81*kB, 500*kB, 300*kB, 84*kB, 85*kB, 86*kB
	for state, want := range map[byte]string{'R': "R (running)", 'S': "S (sleeping)", 't': "t (tracing stop)", 'Z': "Z (zombie)"} {
		s.State = state
		checkRows(t, s.status(), map[string]string{"State": want})
	}
	checkRows(t, s.status(), map[string]string{
		"Name": `a\\b\nc`, "Umask": "0027", "Tgid": "11", "Pid": "12", "PPid": "13", "TracerPid": "16", "Uid": "21\t22\t23\t24",
		"Gid": "31\t32\t33\t34", "FDSize": "256", "Groups": "41 42", "NStgid": "11", "NSpid": "12", "NSpgid": "14", "NSsid": "15",
		"Kthread": "0", "Threads": "3", "SigQ": "4/5000", "SigPnd": "0000000000000061", "ShdPnd": "0000000000000062",
		"SigBlk": "0000000000000063", "SigIgn": "0000000000000064", "SigCgt": "0000000000000065", "CapInh": "0000000000000051",
		"CapPrm": "0000000000000052", "CapEff": "0000000000000053", "CapBnd": "0000000000000054", "CapAmb": "0000000000000055",
		"NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": "6", "Cpus_allowed": "3", "Cpus_allowed_list": "0-1",
		"voluntary_ctxt_switches": "71", "nonvoluntary_ctxt_switches": "72", "THP_enabled": "1", "CoreDumping": "0",
		"VmPeak": "900 kB", "VmSize": "900 kB", "VmLck": "81 kB", "VmHWM": "500 kB", "VmRSS": "500 kB", "RssAnon": "300 kB",
		"RssFile": "200 kB", "VmData": "84 kB", "VmStk": "85 kB", "VmExe": "86 kB",
	})
	s.Peak, s.ResidentPeak, s.SmallPages = 950*kB, 550*kB, true
	checkRows(t, s.status(), map[string]string{"VmPeak": "950 kB", "VmHWM": "550 kB", "THP_enabled": "0"})
	s.Memory = false // a zombie
	if text := s.status(); strings.Contains(text, "Vm") || strings.Contains(text, "THP_enabled") {
		t.Errorf("a process without memory has rows about memory: %s", text)
	}
}

func TestRowsOfIO(t *testing.T) {
	checkRows(t, Counts{BytesRead: 1, BytesWritten: 2, Reads: 3, Writes: 4}.io(), map[string]string{"rchar": "1", "wchar": "2", "syscr": "3", "syscw": "4"})
}

// checkRows compares rows of a text: a name, a colon and a value.
func checkRows(t *testing.T, text string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		got[name] = strings.TrimSpace(value)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %q, want %q", name, got[name], value)
		}
	}
}

package main

import (
	"cmp"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"loam/unikernel"
	"loam/usernet"
)

// parseRun checks and parses the flags of "loam run" without starting a program.
func parseRun(t *testing.T, args ...string) (unikernel.Options, error) {
	t.Helper()
	var f runFlags
	var o unikernel.Options
	cmd := &cobra.Command{
		Use: "run", Args: oneProgram, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o, err = f.options(splitProgram(cmd, args))
			return err
		},
	}
	f.register(cmd)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return o, err
}

// long: it is a table.
func TestRunOptions(t *testing.T) {
	port := func(n uint16) netip.AddrPort { return netip.AddrPortFrom(netip.Addr{}, n) }
	program := func(name string) unikernel.Target { return unikernel.Target{Args: []string{name}} }
	type options = unikernel.Options
	type network = unikernel.Network
	type machine = unikernel.MachineConfig
	forwarded := func(list ...usernet.Forward) network {
		return network{Kind: unikernel.UserNetwork, Forwards: list}
	}
	user := network{Kind: unikernel.UserNetwork}
	shell := "/bin/sh"
	for _, test := range []struct {
		args string
		want options
	}{
		{".", options{Target: program("."), Network: user}},
		{"--root testdata:rw /bin/sh", options{Target: program("/bin/sh"), Network: user, Root: "testdata", RootShared: true}},
		{"--root testdata:rw,cache=none /bin/sh", options{Target: program("/bin/sh"), Network: user, Root: "testdata", RootShared: true, RootNoCache: true}},
		{"--root image.tar:rw", options{Network: user, Root: "image.tar:rw"}}, // a tag
		{"-u www-data:adm --root d /bin/sh", options{Target: program("/bin/sh"), Network: user, Root: "d", User: "www-data:adm"}},
		{"--root image.tar", options{Network: user, Root: "image.tar"}},
		{"--root image.tar --entrypoint /bin/sh -- -c ls", options{Network: user, Root: "image.tar", Entrypoint: &shell, Args: []string{"-c", "ls"}}},
		{"./server -- -v --x=y", options{Target: program("./server"), Network: user, Args: []string{"-v", "--x=y"}}},
		{"example.org/cmd/x@v1.2.3", options{Target: program("example.org/cmd/x@v1.2.3"), Network: user}},
		{"-p 8080:80 main.go", options{Target: program("main.go"), Network: forwarded(usernet.Forward{Proto: "tcp", Host: port(8080), Guest: port(80)})}},
		{"main.go -p 8080:80/tcp --publish 53:53/udp", options{Target: program("main.go"), Network: forwarded(
			usernet.Forward{Proto: "tcp", Host: port(8080), Guest: port(80)},
			usernet.Forward{Proto: "udp", Host: port(53), Guest: port(53)},
		)}},
		{"-p 8080:80 -p 8080:80/udp .", options{Target: program("."), Network: forwarded(
			usernet.Forward{Proto: "tcp", Host: port(8080), Guest: port(80)},
			usernet.Forward{Proto: "udp", Host: port(8080), Guest: port(80)},
		)}},
		{"-p 0.0.0.0:8080:80 -p [::1]:9:9 .", options{Target: program("."), Network: forwarded(
			usernet.Forward{Proto: "tcp", Host: netip.MustParseAddrPort("0.0.0.0:8080"), Guest: port(80)},
			usernet.Forward{Proto: "tcp", Host: netip.MustParseAddrPort("[::1]:9"), Guest: port(9)},
		)}},
		{"-e A=1 -e B= -e C=x=y,z .", options{Target: program("."), Network: user, Env: []string{"A=1", "B=", "C=x=y,z"}}},
		{"-v testdata:/srv/../data -v options.go:/etc/x .", options{Target: program("."), Network: user, Volumes: []unikernel.Volume{
			{Host: "testdata", Guest: "/data"}, {Host: "options.go", Guest: "/etc/x"},
		}}},
		{"-v options.go:/a/b/c -v testdata:/a:ro .", options{Target: program("."), Network: user, Volumes: []unikernel.Volume{
			{Host: "testdata", Guest: "/a"}, {Host: "options.go", Guest: "/a/b/c"},
		}}},
		{"-v testdata:/a:rw -v testdata:/b:rw,cache=none .", options{Target: program("."), Network: user, Shared: []unikernel.Shared{
			{Host: "testdata", Guest: "/a"}, {Host: "testdata", Guest: "/b", NoCache: true},
		}}},
		{"--relay .", options{Target: program("."), Network: network{Kind: unikernel.UserNetwork, Relay: true}}},
		{"--pcap all.pcapng .", options{Target: program("."), Network: network{Kind: unikernel.UserNetwork, Trace: "all.pcapng"}}},
		{"--platform process --net none .", options{Target: program("."), Network: network{Kind: unikernel.NoNetwork}}},
		{"--platform vm -m 2G --cpus 4 .", options{Target: program("."), Network: user, Machine: machine{Memory: 2 << 30, CPUs: 4, Model: "q35"}}},
		{"--nic e1000e .", options{Target: program("."), Network: user, Machine: machine{Card: "e1000e"}}},
		{"--machine microvm .", options{Target: program("."), Network: user, Machine: machine{Model: "microvm"}}},
		{"--platform vm --disk d.img --disk e,f.img .", options{Target: program("."), Network: user, Disks: []unikernel.Disk{
			{Kind: "virtio", File: "d.img"}, {Kind: "virtio", File: "e,f.img"},
		}}},
		{"--disk d.img:/data --disk nvme:e:/e:ro --disk-size 1G .", options{Target: program("."), Network: user, Disks: []unikernel.Disk{
			{Kind: "virtio", File: "d.img", Path: "/data", Size: 1 << 30}, {Kind: "nvme", File: "e", Path: "/e", ReadOnly: true, Size: 1 << 30},
		}}},
		{"-o snapshot --root d.img --disk e.img:/e bash", options{Target: program("bash"), Network: user, Root: "d.img", RootSnapshot: true, Disks: []unikernel.Disk{
			{Kind: "virtio", File: "e.img", Path: "/e", Snapshot: true},
		}}},
		{"-o ro --root d.img bash", options{Target: program("bash"), Network: user, Root: "d.img", RootReadOnly: true}},
		{"-t /bin/bash", options{Target: program("/bin/bash"), Network: user, Terminal: unikernel.OwnTerminal}},
		{"-t=false /bin/bash", options{Target: program("/bin/bash"), Network: user, Terminal: unikernel.NoTerminal}},
		{"--host-loopback .", options{Target: program("."), Network: network{Kind: unikernel.UserNetwork, HostLoopback: true}}},
		{"--net tap:loam0 .", options{Target: program("."), Network: network{Kind: unikernel.TapNetwork, Tap: "loam0"}}},
		{"--net tap:loam0 --ip 192.0.2.2/24 --gw 192.0.2.1 .", options{Target: program("."), Network: network{
			Kind: unikernel.TapNetwork, Tap: "loam0",
			Address: netip.MustParsePrefix("192.0.2.2/24"), Gateway: netip.MustParseAddr("192.0.2.1"),
		}}},
		{"--net tap:loam0 --ip 192.0.2.2/24,2001:db8::2/64 --gw fe80::1 .", options{Target: program("."), Network: network{
			Kind: unikernel.TapNetwork, Tap: "loam0", Address: netip.MustParsePrefix("192.0.2.2/24"),
			Address6: netip.MustParsePrefix("2001:db8::2/64"), Gateway6: netip.MustParseAddr("fe80::1"),
		}}},
		{"--net tap:loam0 --ip 192.0.2.0/31 .", options{Target: program("."), Network: network{
			Kind: unikernel.TapNetwork, Tap: "loam0", Address: netip.MustParsePrefix("192.0.2.0/31"),
		}}},
	} {
		got, err := parseRun(t, strings.Fields(test.args)...)
		if err != nil {
			t.Errorf("%s: %v", test.args, err)
			continue
		}
		want := test.want
		if !strings.Contains(test.args, "--platform process") { // settings of a machine that no flag changes
			m := &want.Machine
			m.Memory, m.CPUs, m.Model = cmp.Or(m.Memory, 256<<20), cmp.Or(m.CPUs, 1), cmp.Or(m.Model, "q35")
		}
		// the comparison treats an empty list and nil as equal
		if len(got.Env) == 0 {
			got.Env = nil
		}
		if len(got.Args) == 0 {
			got.Args = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", test.args, got, want)
		}
	}
}

// TestRunRefuses checks that every mistake is reported with what is wrong and what to do.
func TestRunRefuses(t *testing.T) {
	for _, test := range []struct{ args, wrong string }{
		{"", "there is no program to run"},
		{"-- -v", "there is no program to run"},
		{"a b", `"b" stands behind the program "a"`},
		{"a b -- c", `"b" stands behind the program "a"`},
		{"--platform cloud .", `there is no platform "cloud"`},
		{"--platform vm -m lots .", `-m lots is no size`},
		{"-m lots .", `-m lots is no size`},
		{"--disk d.img --disk-size lots .", `--disk-size lots is no size`},
		{"--disk-size 1G .", `--disk-size has no use without --disk`},
		{"-o ro .", `-o ro has no use without --disk or --root`},
		{"-o snapshot --root testdata:rw sh", `-o snapshot cannot be used with --root testdata:rw, which is written`},
		{"-o sync --root a .", `there is no option -o sync`},
		{"-o ro --disk d:/d:snapshot .", `--disk d:/d:snapshot: ro and snapshot exclude each other`},
		{"--disk d.img:/ .", `--disk d.img:/ would be the root`},
		{"--disk :/data .", `--disk :/data names no file`},
		{"-v missing:/x .", `-v missing:/x: no such file or directory`},
		{"--entrypoint /bin/sh .", `--entrypoint has no use without --root`},
		{"--root image.tar a b", `"b" stands behind the program "a"`},
		{"-u :adm .", `-u :adm names no user`},
		{"-u www-data: .", `-u www-data: names no user`},
		{"-v / .", `-v "/" is no folder or file, or would be the root`},
		{"-v .:/ .", `-v ".:/" is no folder or file, or would be the root`},
		{"-v .:/a -v testdata:/a/ .", "-v .:/a and -v testdata:/a/ take the same place"},
		{"-v options.go:/a:rw .", `-v options.go:/a:rw: only a folder can be given with :rw, and this is none: give its folder`},
		{"-v none:/a:rw .", `-v none:/a:rw: no such file or directory`},
		{"-v .:/a:rw,cache=all .", `-v .:/a:rw,cache=all: there is no mode rw,cache=all`},
		{"-v .:/a:rw -v testdata:/a/b .", `-v testdata:/a/b lies inside -v .:/a:rw`},
		{"-v /dev/null:/a .", `-v /dev/null:/a: it is neither a folder nor a file, but a device, a socket or a pipe`},
		{"--net none --host-loopback .", "--host-loopback has no use with --net none"},
		{"--net tun:x .", `there is no network "tun:x"`},
		{"--net tap .", `there is no network "tap"`},
		{"--net= .", `there is no network ""`},
		{"--net tap: .", "--net tap: names no device"},
		{"--net tap:0123456789abcdef .", "--net tap:0123456789abcdef names no device"},
		{"--net tap:a/b .", "--net tap:a/b names no device"},
		{"--net tap:tap%d .", "--net tap:tap%d names no device"},
		{"--net tap:.. .", "--net tap:.. names no device"},
		{"--ip 192.0.2.2/24 .", "--ip and --gw have no use with --net user"},
		{"--net none --gw 192.0.2.1 .", "--ip and --gw have no use with --net none"},
		{"--net tap:t --ip 192.0.2.2 .", "--ip 192.0.2.2 is no address with a prefix"},
		{"--net tap:t --ip 192.0.2.2/33 .", "--ip 192.0.2.2/33 is no address with a prefix"},
		{"--net tap:t --ip ::ffff:192.0.2.2/120 .", "--ip ::ffff:192.0.2.2/120 is no address with a prefix"},
		{"--net tap:t --ip ff02::1/64 .", "--ip ff02::1/64 cannot be the address of a host"},
		{"--net tap:t --ip 192.0.2.2/24,192.0.2.3/24 .", "--ip 192.0.2.2/24 and --ip 192.0.2.3/24 are of one version of IP"},
		{"--net tap:t --ip 192.0.2.2/24 --gw fe80::1 .", "--gw fe80::1 needs --ip"},
		{"--net tap:t --ip 2001:db8::2/64 --gw fe80::1%eth0 .", "--gw fe80::1%eth0 is no address"},
		{"--net tap:t --ip 2001:db8::2/64 --gw fe80::1 --gw 2001:db8::1 .", "--gw fe80::1 and --gw 2001:db8::1 are of one version of IP"},
		{"--net tap:t --ip 2001:db8::2/64 --gw 2001:db8:1::1 .", "--gw 2001:db8:1::1 is not a neighbour of --ip 2001:db8::2/64"},
		{"--net tap:t --ip 192.0.2.0/24 .", "--ip 192.0.2.0/24 is the first or last address of its network"},
		{"--net tap:t --ip 192.0.2.255/24 .", "--ip 192.0.2.255/24 is the first or last address of its network"},
		{"--net tap:t --ip 127.0.0.2/24 .", "--ip 127.0.0.2/24 cannot be the address of a host"},
		{"--net tap:t --ip 224.0.0.5/24 .", "--ip 224.0.0.5/24 cannot be the address of a host"},
		{"--net tap:t --ip 0.0.0.0/0 .", "--ip 0.0.0.0/0 cannot be the address of a host"},
		{"--net tap:t --gw 192.0.2.1 .", "--gw 192.0.2.1 needs --ip"},
		{"--net tap:t --ip 192.0.2.2/24 --gw x .", "--gw x is no address"},
		{"--net tap:t --ip 192.0.2.2/24 --gw 192.0.3.1 .", "--gw 192.0.3.1 is not a neighbour of --ip 192.0.2.2/24"},
		{"--net tap:t --ip 192.0.2.2/24 --gw 192.0.2.2 .", "--gw 192.0.2.2 is not a neighbour of --ip 192.0.2.2/24"},
		{"-p 8080:80 --net none .", "-p has no use with --net none"},
		{"-p 8080:80 --net tap:t .", "-p has no use with --net tap:t"},
		{"-p 80 .", "-p 80 is no pair of ports"},
		{"-p 0:80 .", "-p 0:80 is no pair of ports"},
		{"-p 80:0 .", "-p 80:0 is no pair of ports"},
		{"-p 80:65536 .", "-p 80:65536 is no pair of ports"},
		{"-p +80:80 .", "-p +80:80 is no pair of ports"},
		{"-p 80:80/sctp .", "-p 80:80/sctp is no pair of ports"},
		{"-p localhost:80:80 .", "-p localhost:80:80 is no pair of ports"},
		{"-p 1.2.3.4:0:80 .", "-p 1.2.3.4:0:80 is no pair of ports"},
		{"-p ::1:80:80 .", "-p ::1:80:80 is no pair of ports"},
		{"-p 80:80 -p 127.0.0.1:80:81 .", "-p 80:80 and -p 127.0.0.1:80:81 take the same port of the host"},
		{"-e PATH .", "-e PATH sets nothing"},
		{"-e =x .", "-e =x sets nothing"},
	} {
		_, err := parseRun(t, strings.Fields(test.args)...)
		usage, ok := err.(*usageError)
		if !ok {
			t.Errorf("%s: got %v, want a mistake of the user", test.args, err)
			continue
		}
		if usage.wrong != test.wrong || usage.do == "" {
			t.Errorf("%s: got %q, want %q and what to do", test.args, usage, test.wrong)
		}
	}
}
